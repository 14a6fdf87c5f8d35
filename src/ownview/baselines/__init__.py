"""Models that are not federated."""
