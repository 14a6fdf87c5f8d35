"""Secure aggregation: clients mask what they send, and the masks cancel in the sum."""
