"""Training of a run: set-up, trainers, rounds, the end."""
