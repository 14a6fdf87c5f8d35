"""HTTP/1.1 on a connection, with an end to the patience for the head of a request."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_SECONDS = 10.0
HEAD_BYTES = 16 << 10


class BoundedHead(HttpToolsProtocol):
    """Hangs up where the head of a request does not come in time, or is too long."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._patience: asyncio.TimerHandle | None = None
        self._head = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first head."""
        super().connection_made(transport)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is waited for any more."""
        self._heard()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Count what comes before a head is whole."""
        if self.cycle is None or self.cycle.response_complete:
            self._head += len(data)
            if self._patience is None:
                self._wait()
        super().data_received(data)
        if self._patience is not None and self._head > HEAD_BYTES:
            self.transport.abort()

    def on_headers_complete(self) -> None:
        """The head is whole."""
        self._heard()
        super().on_headers_complete()

    def _wait(self) -> None:
        self._patience = self.loop.call_later(HEAD_SECONDS, self.transport.abort)

    def _heard(self) -> None:
        self._head = 0
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None
