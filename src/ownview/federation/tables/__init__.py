"""Item tables of many clients: personal rows, mixtures, rows end to end."""
