"""Items by what their text says."""
