"""A suite that takes seconds."""

from __future__ import annotations


def two_methods(data: str, *, rounds: int, seeds: int) -> str:
    """A suite's file: popularity, and a small fedmf in its last row."""
    return f"""
title = "Tiny"
about = "Two methods."
rounds = {rounds}
seeds = {seeds}
protocols = ["honest", "paper"]
data = ["{data}"]

[[rows]]
method = "popularity"

[[rows]]
name = "fedmf (small)"
method = "fedmf"
settings = {{ embedding_size = 4, local_epochs = 1 }}
"""
