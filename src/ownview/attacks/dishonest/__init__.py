"""What dishonest clients can do to everybody else's lists: goals, means, and how far they get."""
