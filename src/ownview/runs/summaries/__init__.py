"""Runs in short: frames, a line, labels, lists of a sample of users."""
