"""Differential privacy with an accountant: budgets, the noise that they need, and what a run reports of it."""
