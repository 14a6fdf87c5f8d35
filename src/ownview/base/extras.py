"""What to do where a package of an extra is not installed."""

from __future__ import annotations


def how_to_install(extra: str) -> str:
    """The command that installs an extra (`pyproject.toml`), and where it works.

    The name `ownview` is on no package index, so `pip install "ownview[...]"` finds nothing, or what a stranger put
    there.
    """
    return f'pip install -e ".[{extra}]" (in a clone of Ownview)'
