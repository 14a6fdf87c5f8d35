"""Attacks: what an honest but curious server learns of its clients from the messages it gets."""
