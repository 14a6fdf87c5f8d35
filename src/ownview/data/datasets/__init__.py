"""Datasets by name: the catalogue, how they come here, where they lie."""
