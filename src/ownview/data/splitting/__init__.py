"""What trains and what is asked: splits by order, at a moment, from files, of new people and items."""
