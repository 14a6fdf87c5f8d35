"""Published tables, run again: the papers' figures, the settings behind every row, and a report of both.

It stands beside the library, not in it: who installs Ownview installs none of this.
"""
