"""What commands print with: text from elsewhere cannot steer the terminal, and no encoding is too small for it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import Any

import rich.console
from rich.console import ConsoleOptions, RenderableType
from rich.segment import Segment

from ownview.base.display.shown import shown


class Console(rich.console.Console):
    """Rich's, but control characters in what is printed are spelt out; Rich's own colours and movements stay."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Segments of text, cleaned; those that steer the terminal are Rich's own and marked as such."""
        for one in super().render(renderable, options):
            yield one if one.control else Segment(shown(one.text), one.style, one.control)


def settle_streams() -> None:
    r"""Let output spell out what the terminal's encoding lacks (▲ as \u25b2) instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure: Any = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def flush() -> None:
    """Write what is left, now, while a full disk can still be reported; raises `OSError`."""
    if sys.stdout is not None:
        sys.stdout.flush()


def give_up_output() -> None:
    """After output has failed: what is left in buffers goes nowhere, or Python would fail on it again at its end."""
    try:
        flush()
    except (OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def interactive() -> bool:
    """Whether a person is there to answer a question."""
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr))
