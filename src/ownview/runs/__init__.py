"""A run: an experiment carried out, and the folder that says everything about it."""
