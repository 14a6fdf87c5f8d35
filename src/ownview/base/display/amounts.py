"""Counts and sizes in words."""

from __future__ import annotations


def counted(number: int, thing: str) -> str:
    """1 seed, 2 seeds, 1,200 seeds."""
    return f"{number:,} {thing}" + "s" * (number != 1)


def in_people(number: int) -> str:
    """1 person, 2 people."""
    return f"{number:,} {'person' if number == 1 else 'people'}"


def readable(size: int) -> str:
    """A number of bytes for people: '1.43 GB', '23.4 MB', '33.6 kB'."""
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= factor:
            return f"{size / factor:.3g} {unit}"
    return counted(size, "byte")
