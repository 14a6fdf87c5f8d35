"""Finding settings by validation: knobs, trials, the study that chooses them, and the folder it is kept in."""
