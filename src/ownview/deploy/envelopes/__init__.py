"""The form of every message between coordinator and place."""
