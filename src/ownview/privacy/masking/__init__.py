"""Sums of which nobody sees the parts: clients put masks on what they send, and the masks cancel in the sum."""
