"""Attacks of the literature on item tables that clients train and send the changes of, one a file."""
