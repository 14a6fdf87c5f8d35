"""A model behind HTTP: lists for a history in the request, for a known user, items like an item, items by title."""
