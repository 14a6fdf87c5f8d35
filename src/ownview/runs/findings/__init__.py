"""Attacks, audits and probes of runs."""
