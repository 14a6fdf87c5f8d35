"""What everything stands on: errors, files, randomness, the version."""
