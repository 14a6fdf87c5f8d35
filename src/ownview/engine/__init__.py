"""Runs methods: the local training loop, two engines over it, and the federation around them. Names no method."""
