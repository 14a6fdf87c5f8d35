"""What HTTP libraries log of errors: kind and place, and nothing that a request held."""

from __future__ import annotations

import errno
import logging

from ownview.deploy.https.bounded_log import BoundedLog, LogHandler


def _line_of(error: Exception) -> str:
    lines: list[str] = []
    logger = logging.Logger("of.a.library")
    logger.addHandler(LogHandler(BoundedLog(lines.append, 10)))
    try:
        raise error
    except Exception:
        logger.exception("Exception in ASGI application")
    return lines[0]


def test_an_error_is_told_without_what_it_was_about() -> None:
    line = _line_of(KeyError("an item of a history"))
    assert line.startswith("Exception in ASGI application (KeyError at test_log_lines.py:")
    assert "history" not in line


def test_what_the_system_says_is_told() -> None:
    assert "No space left" in _line_of(OSError(errno.ENOSPC, "No space left on device"))
