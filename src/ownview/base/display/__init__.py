"""Text from data, made fit to be shown: counts, cells, lines."""
