"""Clients and a server that exchange messages."""
