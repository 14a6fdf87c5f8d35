"""What counts as a line of code."""

from __future__ import annotations

from tools.lines import by_folder, lines_of_code

MODULE = '''"""A module.

Of several lines.
"""

import os  # one


def halved(
    value: float,
) -> float:
    """Half of it."""
    # A comment.

    text = """not a docstring,
    two lines"""
    return value / 2 if text else os.EX_OK
'''


def test_blanks_comments_and_docstrings_do_not_count() -> None:
    assert lines_of_code(MODULE) == 1 + 3 + 2 + 1


def test_every_folder_of_the_wheel_is_counted() -> None:
    found = by_folder()
    assert {"methods", "round", "."} <= set(found)
    assert min(found.values()) > 0
