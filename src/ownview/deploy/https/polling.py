"""A place's end of HTTPS: ask for the next message, answer it, ask again. Nothing listens here."""

from __future__ import annotations

import http.client
import select
import ssl
import threading
from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path
from typing import cast

from ownview.base.errors import MessageError
from ownview.deploy.envelopes.envelope import VERSION, digest_of, refusal
from ownview.deploy.https.app import LONGEST, NUMBER, POLL
from ownview.deploy.https.contexts import notice_loss, place_context, tls_failure
from ownview.deploy.transport import Answering
from ownview.messages.limits import LONGEST_MESSAGE

Address = tuple[str, int]
_LOOK = 0.1
"""Seconds from one look of an idle place at whether it should stop to the next."""
_RETRY = 0.05, 5.0
"""Seconds until a place tries again to reach its server, at first and at most."""
_SUSPICIOUS = 5
"""Connections in a row that end before anything was answered, after which a warning is printed."""
_SILENCE = 2 * POLL
"""Seconds without a byte within a request, after which the connection is given up."""


class Line:
    """One connection to a server, opened when it is first needed.

    Args:
        address: of the server; its certificate must have this name or address.
        context: TLS.
        patience: seconds to wait for the server's next byte.
    """

    def __init__(self, address: Address, context: ssl.SSLContext, patience: float = _SILENCE) -> None:
        self.connection = http.client.HTTPSConnection(*address, context=context, timeout=patience)
        self.connected = False

    def request(
        self, method: str, what: str, body: bytes | None = None, number: str = "", stop: threading.Event | None = None
    ) -> http.client.HTTPResponse:
        """Send a request and wait for the head of its response.

        Raises:
            InterruptedError: `stop` was set first.
            OSError: the connection broke, or the handshake failed.
        """
        if self.connection.sock is None:
            self.connection.connect()
            self.connected = True
            notice_loss(cast(ssl.SSLSocket, self.connection.sock))
        headers = {NUMBER: number} if number else {}
        self.connection.request(method, f"/v{VERSION}/{what}", body, headers)
        while stop is not None and not self._readable():
            if stop.is_set():
                raise InterruptedError
        try:
            return self.connection.getresponse()
        except http.client.HTTPException as error:
            raise ConnectionError(f"no HTTP: {error}") from error

    def read(self, response: http.client.HTTPResponse, longest: int) -> bytes:
        """The body of a response, which says its length and is not too long."""
        if response.length is None or response.length > longest:
            raise MessageError(f"a message of {response.length} bytes; expected {longest} at most")
        try:
            return response.read()
        except http.client.HTTPException as error:
            raise ConnectionError(f"the connection ended within a message: {error}") from error

    def close(self) -> None:
        """Hang up."""
        self.connection.close()

    def _readable(self) -> bool:
        connection = self.connection.sock
        poll = select.poll()  # select() itself knows the first 1,024 files alone
        poll.register(connection, select.POLLIN)
        return bool(connection.pending() or poll.poll(1000 * _LOOK))


def attend(
    place: Answering,
    address: Address,
    certificates: Path,
    name: str,
    stop: threading.Event,
    say: Callable[[str], None] = lambda line: None,
) -> None:
    """Answer messages, and connect again when the connection breaks, until `stop`.

    Args:
        place: that answers.
        address: of the server.
        certificates: folder with ca.crt, NAME.crt and NAME.key.
        name: of the place; the server knows it by its key.
        stop: ends it.
        say: takes lines that a person should read.

    Raises:
        MessageError: the server refuses this place, or is not the one whose authority and name are known here.
    """
    context = place_context(certificates, name)
    where = f"{address[0]}:{address[1]}"
    wait, lost = _RETRY[0], 0
    while not stop.is_set():
        line = Line(address, context)
        try:
            first = line.request("GET", "next", stop=stop)
            message = _message(line, first)
            say(f"connected to {where} as {name}")
            wait, lost = _RETRY[0], 0
            _answer_all(place, line, first, message, stop)
        except InterruptedError:
            pass
        except OSError as error:
            if isinstance(error, ssl.SSLError) and not isinstance(error, ssl.SSLEOFError):
                raise MessageError(f"{where}: {tls_failure(error)}") from error
            lost += line.connected
            if lost == _SUSPICIOUS:  # a server that refuses a certificate need not say so, nor one that is flooded
                say(f"{where}: ends connections before it answers; perhaps it does not know this place's authority")
            stop.wait(wait)
            wait = min(2 * wait, _RETRY[1])
        finally:
            line.close()


def _answer_all(
    place: Answering, line: Line, response: http.client.HTTPResponse, message: bytes | None, stop: threading.Event
) -> None:
    """Answer a message, and those after it, until `stop`."""
    while True:
        if message is not None:
            answer = place.answer(message)
            longest = int(response.headers[LONGEST])
            if len(answer) > longest:
                why = f"its answer has {len(answer)} bytes; the server takes {longest} at most"
                answer = refusal(why, digest_of(message)).pack()
            taken = line.request("POST", "answer", answer, response.headers[NUMBER])
            if taken.status == HTTPStatus.CONFLICT:  # the server has started again, and will ask again
                taken.read()
            else:
                _require_taken(line, taken)
        if stop.is_set():
            return
        response = line.request("GET", "next", stop=stop)
        message = _message(line, response)


def _message(line: Line, response: http.client.HTTPResponse) -> bytes | None:
    """The message of a response; None where there is none."""
    if response.status == HTTPStatus.OK:
        return line.read(response, LONGEST_MESSAGE)
    _require_taken(line, response)
    return None


def _require_taken(line: Line, response: http.client.HTTPResponse) -> None:
    """Raise `MessageError` with the server's own line where it refuses, `ConnectionError` where it has failed."""
    if response.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        raise ConnectionError(f"the server answered with status {response.status}")
    if response.status != HTTPStatus.NO_CONTENT:
        raise MessageError(line.read(response, 1 << 12).decode("utf-8", "replace").strip())
    response.read()
