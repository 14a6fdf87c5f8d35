"""Clients shared out among workers, on one machine or many: shards, and Ray as the carrier. Names no method."""
