"""From a file of one's own to recommendations: what suits the data, step by step, into one folder."""
