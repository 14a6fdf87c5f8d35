"""The ASGI application that places talk to: next message, answer, enrolment."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from ownview.base.errors import MessageError, OwnviewError
from ownview.deploy.envelopes.envelope import VERSION
from ownview.deploy.https.bounded_log import Say
from ownview.deploy.https.connection import CALLER, Connection
from ownview.deploy.https.limits import Limits
from ownview.deploy.https.mailboxes import Mailboxes
from ownview.deploy.identities.certificates import LONGEST_REQUEST
from ownview.deploy.identities.keys import KnownKeys

Scope = MutableMapping[str, Any]
Event = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Event]]
Send = Callable[[Event], Awaitable[None]]
Enrol = Callable[[str, bytes], bytes]
"""From the fingerprint of an invitation's key and a certificate request to the certificate (PEM)."""

NUMBER, LONGEST = "ownview-message", "ownview-longest"
"""Names of headers: the number of a message, and the bytes that its answer may have."""
POLL = 25.0
"""Seconds that a request for the next message waits for one."""
_PIECE = 1 << 18
"""Bytes of a message that are handed to the connection at once, so that a slow reader holds no more in memory."""


@dataclass(frozen=True)
class _Response:
    status: HTTPStatus
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()


class _RefusedError(Exception):
    """A request that is answered with a status and one line."""

    def __init__(self, status: HTTPStatus, why: str) -> None:
        super().__init__(why)
        self.status = status


class App:
    """Answers requests of places.

    Args:
        keys: whose key is whose; it is asked for every request.
        mailboxes: messages and answers.
        limits: on bytes and seconds.
        longest: bytes of an answer at most.
        say: takes lines about what was refused.
        enrol: signs certificate requests; None if no place can join.
    """

    def __init__(
        self, keys: KnownKeys, mailboxes: Mailboxes, limits: Limits, longest: int, say: Say, enrol: Enrol | None
    ) -> None:
        self.keys, self.mailboxes, self.limits, self.longest = keys, mailboxes, limits, longest
        self.say, self.enrol = say, enrol

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        caller: Connection = scope["state"][CALLER]
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        try:
            if sum(len(name) + len(value) for name, value in scope["headers"]) > self.limits.head_bytes:
                raise _RefusedError(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "the head of a request is too long")
            answer = await self._answer(caller, f"{scope['method']} {scope['path']}", headers, receive)
        except _RefusedError as error:
            self.say(f"{caller.address}: refused: {error}")
            answer = _Response(error.status, f"{error}\n".encode(), (("connection", "close"),))
        except (ConnectionError, TimeoutError) as error:
            self.say(f"{caller.address}: hung up: {error}")
            caller.abort()
            return
        await self._send(caller, answer, send)

    async def _answer(self, caller: Connection, what: str, headers: dict[str, str], receive: Receive) -> _Response:
        """The response; nothing of a body is read before it is known whose it is and that it is wanted."""
        prefix = f"/v{VERSION}/"
        known = {f"GET {prefix}next": self._next, f"POST {prefix}answer": self._take, f"POST {prefix}enrol": self._join}
        chosen = known.get(what)
        if chosen is None:
            raise _RefusedError(
                HTTPStatus.NOT_FOUND, f"{what[:80]!r}: this program speaks version {VERSION} of messages"
            )
        return await chosen(caller, headers, receive)

    async def _next(self, caller: Connection, _: dict[str, str], __: Receive) -> _Response:
        place = self._place(caller)
        self.mailboxes.open(place, caller)
        letter = await self.mailboxes.next(place, caller, POLL if caller.polled else 0.0)
        caller.polled = True  # the first answer comes at once, so that a place knows that it is connected
        self._place(caller)  # it may have been revoked meanwhile
        if letter is None:
            return _Response(HTTPStatus.NO_CONTENT)
        about = ((NUMBER, str(letter.number)), (LONGEST, str(self.longest)))
        return _Response(HTTPStatus.OK, letter.message, about)

    async def _take(self, caller: Connection, headers: dict[str, str], receive: Receive) -> _Response:
        place = self._place(caller)
        number = headers.get(NUMBER, "")
        letter = self.mailboxes.asked(place, int(number)) if number.isdecimal() and len(number) < 20 else None
        if letter is None:
            raise _RefusedError(HTTPStatus.CONFLICT, f"place {place}: an answer without a question")
        body = await self._body(headers, receive, self.longest)
        self._place(caller)
        self.mailboxes.answer(place, letter, body)
        return _Response(HTTPStatus.NO_CONTENT)

    async def _join(self, caller: Connection, headers: dict[str, str], receive: Receive) -> _Response:
        if self.enrol is None or self.keys.invited(caller.key) is None:
            raise _RefusedError(HTTPStatus.FORBIDDEN, "no invitation, or one that was withdrawn")
        request = await self._body(headers, receive, LONGEST_REQUEST)
        try:
            certificate = await asyncio.to_thread(self.enrol, caller.key, request)
        except MessageError as error:
            raise _RefusedError(HTTPStatus.FORBIDDEN, str(error)) from error
        except OwnviewError as error:  # names files of the server, which are for its own log alone
            self.say(f"{caller.address}: could not be enrolled: {error}")
            why = "this key cannot be enrolled; expected a new key, made in a new folder, or see the server's log"
            raise _RefusedError(HTTPStatus.FORBIDDEN, why) from error
        return _Response(HTTPStatus.OK, certificate)

    def _place(self, caller: Connection) -> str:
        """The name that belongs to the caller's key now; a name in the message is ignored."""
        name = self.keys.names().get(caller.key)
        if name is None:
            raise _RefusedError(HTTPStatus.FORBIDDEN, self.keys.why_unknown(caller.key))
        caller.name = name
        return name

    async def _body(self, headers: dict[str, str], receive: Receive, longest: int) -> bytes:
        """A body whose length is said beforehand and is not too long."""
        length = headers.get("content-length", "")
        if not length.isdecimal() or "transfer-encoding" in headers:
            raise _RefusedError(HTTPStatus.LENGTH_REQUIRED, "a body without its length; expected Content-Length")
        if len(length) > 19 or int(length) > longest:
            why = f"a body of {length[:20]} bytes; expected {longest} at most"
            raise _RefusedError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, why)
        body = bytearray()
        async with asyncio.timeout(self.limits.body):
            while True:
                event = await receive()
                if event["type"] != "http.request":
                    raise ConnectionError("the connection ended within a body")
                body += event["body"]
                if not event.get("more_body", False):
                    return bytes(body)

    async def _send(self, caller: Connection, answer: _Response, send: Send) -> None:
        headers = [(name.encode(), value.encode()) for name, value in answer.headers]
        if answer.status is not HTTPStatus.NO_CONTENT:
            headers.append((b"content-length", str(len(answer.body)).encode()))
        try:
            async with asyncio.timeout(self.limits.body):
                await send({"type": "http.response.start", "status": int(answer.status), "headers": headers})
                for begin in range(0, max(1, len(answer.body)), _PIECE):
                    end = begin + _PIECE
                    more = end < len(answer.body)
                    await send({"type": "http.response.body", "body": answer.body[begin:end], "more_body": more})
        except TimeoutError:
            self.say(f"{caller.address}: hung up: it did not read its message in {self.limits.body:g} s")
            caller.abort()
