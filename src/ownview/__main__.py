"""`python -m ownview` is `ownview`."""

from ownview.cli.main import entry

entry()
