"""What dishonest clients can do to the lists of honest ones: goals, means, and how far they get."""
