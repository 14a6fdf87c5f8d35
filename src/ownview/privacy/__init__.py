"""Differential privacy that is accounted for: budgets, what noise they come to, and what a run says of it."""
