"""The words of the seam between a method and what runs it."""
