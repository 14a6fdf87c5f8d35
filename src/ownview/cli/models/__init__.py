"""Commands that make models and use them."""
