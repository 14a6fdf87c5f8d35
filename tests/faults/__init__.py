"""Faults that were found by breaking Ownview, each with the line it ends in now."""
