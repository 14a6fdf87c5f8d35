"""Examples, each of them a test."""
