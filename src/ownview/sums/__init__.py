"""Sums over people that are kept: a model that can be added to, taken from, merged and solved again, exactly."""
