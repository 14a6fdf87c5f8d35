"""The report: one self-contained page made from run folders."""
