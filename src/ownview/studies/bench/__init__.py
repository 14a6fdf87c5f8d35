"""Declared grids of methods, data, protocols and seeds, and what came out of them."""
