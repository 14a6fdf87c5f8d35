"""Interactions, the readers and the catalogue they come from, and the splits they go into."""

from ownview.data.datasets.catalog import load
from ownview.data.interactions import Interactions
from ownview.data.reading.readers import read

__all__ = ["Interactions", "load", "read"]
