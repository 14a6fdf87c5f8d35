"""Random harm to files, settings and folders: whatever it is, no command ends in a traceback."""
