"""Memory that is asked for, and given back."""
