"""Sums of pairs of items: solving them, again, and under a budget."""
