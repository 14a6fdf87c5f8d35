"""The coordinator's end of HTTPS: an event loop on a thread of its own, and the transport's four calls."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from uvicorn.config import Config

from ownview.base.http.listening import listening
from ownview.deploy.envelopes.envelope import digest_of, refusal
from ownview.deploy.https.app import App, Enrol
from ownview.deploy.https.bounded_log import BoundedLog, Say
from ownview.deploy.https.connection import Connections, logging_to
from ownview.deploy.https.contexts import server_context
from ownview.deploy.https.door import Door
from ownview.deploy.https.limits import Limits
from ownview.deploy.https.mailboxes import Mailboxes
from ownview.deploy.identities.keys import KnownKeys

Address = tuple[str, int]


class HttpsTransport:
    """The coordinator's end; see `deploy.transport.Transport`.

    Args:
        address: to listen at; port 0 takes any that is free.
        certificates: folder with ca.crt, server.crt and server.key.
        keys: whose key is whose.
        say: takes lines that a person should read; at most `limits.lines` a minute.
        limits: on what others may take.
        longest: bytes of an answer at most, by the agreement.
        enrol: signs certificate requests of those who were invited; None if no place can join.
    """

    def __init__(
        self,
        address: Address,
        certificates: Path,
        keys: KnownKeys,
        say: Say = lambda line: None,
        limits: Limits | None = None,
        longest: int | None = None,
        enrol: Enrol | None = None,
    ) -> None:
        self.keys, self.limits, self.enrol = keys, limits or Limits(), enrol
        self.longest = min(longest or self.limits.message_bytes, self.limits.message_bytes)
        self.say = BoundedLog(say, self.limits.lines)
        self.context = server_context(certificates)
        self.listening = listening(*address)
        self.address: Address = self.listening.getsockname()[:2]
        self.loop = asyncio.new_event_loop()
        self.loop.set_exception_handler(self._on_error)
        self.mailboxes = Mailboxes(self.loop, self.limits.waiting)
        self.serving: asyncio.Task[None] | None = None
        self.closed = threading.Event()
        self.thread = threading.Thread(target=self._run, name="https", daemon=True)
        self.thread.start()

    def places(self) -> Sequence[str]:
        """Names of the places that are connected now and were not revoked, ascending."""
        known = set(self.keys.names().values())
        return [one for one in self.mailboxes.present if one in known]

    def send(self, place: str, message: bytes) -> None:
        """Send a message; it is lost where the place is not connected, and refused at once where it was revoked."""
        if self.closed.is_set():
            return
        if place not in self.keys.names().values():
            why = "its key was revoked, or it was never enrolled"
            self.mailboxes.answers.put((place, refusal(why, digest_of(message)).pack()))
            return
        self.mailboxes.put(place, message)

    def receive(self, patience: float) -> list[tuple[str, bytes]]:
        """Answers that came, each with the name of its place; waits for the first one at most `patience` seconds."""
        answers: list[tuple[str, bytes]] = []
        with contextlib.suppress(queue.Empty):
            answers.append(self.mailboxes.answers.get(timeout=max(patience, 0.0)))
            while True:
                answers.append(self.mailboxes.answers.get_nowait())
        return answers

    def close(self) -> None:
        """Hang up, and listen no more."""
        if not self.closed.is_set():
            self.closed.set()
            self.loop.call_soon_threadsafe(lambda: self.serving and self.serving.cancel())
        self.thread.join()

    def _run(self) -> None:
        with logging_to(self.say), contextlib.closing(self.listening), contextlib.closing(self.loop):
            asyncio.set_event_loop(self.loop)
            self.serving = self.loop.create_task(self._serve())
            with contextlib.suppress(asyncio.CancelledError):
                self.loop.run_until_complete(self.serving)

    async def _serve(self) -> None:
        app = App(self.keys, self.mailboxes, self.limits, self.longest, self.say, self.enrol)
        config = Config(
            app,
            interface="asgi3",
            http="h11",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            date_header=False,
            timeout_keep_alive=int(self.limits.idle),
            h11_max_incomplete_event_size=self.limits.head_bytes,
        )
        config.load()
        connections = Connections(config, self.limits, self.mailboxes)
        door = Door(self.listening, self.context, connections.new, connections.__len__, self.limits, self.say)
        try:
            await door.serve()
        finally:
            await connections.close()

    def _on_error(self, _: asyncio.AbstractEventLoop, about: dict[str, Any]) -> None:
        """Log an error of asyncio in one line, without a traceback."""
        error = about.get("exception")
        self.say(f"{about.get('message', 'an error')}: {type(error).__name__}: {error}"[:500])
