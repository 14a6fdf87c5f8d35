"""What is publicly known of items: columns, text."""
