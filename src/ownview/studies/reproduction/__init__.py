"""Published tables, run again: the papers' figures, the settings behind every row, and a report of both."""
