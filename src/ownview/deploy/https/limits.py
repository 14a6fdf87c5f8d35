"""What a server lets others take of it before and after they have shown who they are."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from ownview.base.platforms import files_allowed
from ownview.config.settings import Settings, setting

_KEPT_FREE = 64
"""Files that the server keeps free for itself: checkpoints, logs, what libraries open."""


@dataclass(frozen=True)
class Limits(Settings):
    """Table `limits` of deployment.toml."""

    title: ClassVar[str] = "limits"

    connections: int = setting(1024, "open connections at most, one for every certificate", low=1)
    strangers: int = setting(256, "connections at most that have not shown a certificate yet", low=1)
    per_address: int = setting(64, "of these, from one address", low=1)
    handshake: float = setting(10.0, "seconds to show a certificate", above=0)
    handshakes: float = setting(100.0, "connections that are taken a second; others wait with the system", above=0)
    head: float = setting(10.0, "seconds for the head of a request", above=0)
    head_bytes: int = setting(8192, "bytes of the head of a request", low=1024)
    body: float = setting(600.0, "seconds for a message, either way", above=0)
    idle: float = setting(3600.0, "seconds that a place may take to work on a message", above=0)
    message_bytes: int = setting(256 << 20, "bytes of an answer, unless the agreement needs fewer", low=1024)
    waiting: int = setting(4, "messages that wait for one place", low=1)
    lines: int = setting(30, "lines a minute about connections and requests", low=1)

    def room(self) -> int:
        """Connections that the process can have open and still open its own files."""
        return int(max(8, min(self.connections, files_allowed() - _open_now() - _KEPT_FREE)))


def _open_now() -> int:
    with suppress(OSError):
        return len(os.listdir(Path("/proc/self/fd")))  # noqa: PTH208 - a list of numbers, not of paths
    return _KEPT_FREE
