"""Protocols, ranking, metrics and statistics: how a number comes about."""
