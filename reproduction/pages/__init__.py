"""Recorded results in the pages of the repository: tables, single figures, and figures that others print."""
