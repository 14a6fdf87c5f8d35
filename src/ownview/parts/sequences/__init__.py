"""Items in time order: places, transitions, a transformer."""
