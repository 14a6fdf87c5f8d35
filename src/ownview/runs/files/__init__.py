"""Files of a run folder: what each holds, how it is checked, where a result comes from."""
