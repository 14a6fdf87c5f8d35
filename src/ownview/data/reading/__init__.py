"""Files of interactions and titles as people have them, read into one form."""
