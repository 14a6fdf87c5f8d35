"""Federated methods, one file each, written for one client. None imports the engine."""
