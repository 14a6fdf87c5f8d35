"""The ledger: every published figure, what it is here, what the same settings are worth honestly, and a verdict."""
