"""The interface between a method and what runs it: roles, client, server, training, memory."""
