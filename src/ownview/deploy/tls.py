"""Plain mutual TLS: every place keeps one connection to the coordinator open, and messages go over it."""

from __future__ import annotations

import contextlib
import queue
import select
import socket
import ssl
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from ownview.base.errors import DataError, MessageError, OwnviewError
from ownview.deploy.certificates import SERVER, fingerprint
from ownview.deploy.frames import context, greet, greeted, notice_loss, receive_frame, send_frame
from ownview.deploy.keys import KnownKeys
from ownview.deploy.link import Link, hang_up
from ownview.deploy.transport import Answering

Address = tuple[str, int]
_HANDSHAKE = 30.0
"""Seconds within which whoever connects has to say who it is."""
_LOOK = 0.1
"""Seconds from one look of an idle place at whether it should stop to the next."""
_RETRY = 0.05, 5.0
"""Seconds until a place tries again to reach its coordinator, at first and at most."""


class TlsTransport:
    """The coordinator's end.

    Args:
        address: to listen at; port 0 takes any that is free.
        certificates: folder with ca.crt, server.crt and server.key.
        keys: whose key is whose.
        say: told in one line what a person should know.
    """

    def __init__(
        self, address: Address, certificates: Path, keys: KnownKeys, say: Callable[[str], None] = lambda line: None
    ) -> None:
        self.keys, self.say = keys, say
        self.context = context(certificates, SERVER, server=True)
        self.links: dict[str, Link] = {}
        self.arrived: queue.SimpleQueue[tuple[str, bytes]] = queue.SimpleQueue()
        self.guard = threading.Lock()
        self.closed = False
        self.attending: set[threading.Thread] = set()
        try:
            self.listening = socket.create_server(address)
        except OSError as error:
            raise DataError(f"{address[0]}:{address[1]}: cannot be listened at: {error}") from error
        self.address: Address = self.listening.getsockname()[:2]
        self.listener = threading.Thread(target=self._listen, daemon=True)
        self.listener.start()

    def places(self) -> Sequence[str]:
        """Names of the places that are connected now."""
        with self.guard:
            return sorted(self.links)

    def send(self, place: str, message: bytes) -> None:
        """Send a message; where the place goes before it answers, it is lost, and has to be sent again."""
        with self.guard:
            link = self.links.get(place)
        if link is not None:
            link.send(message)

    def receive(self, patience: float) -> list[tuple[str, bytes]]:
        """Answers that came."""
        found: list[tuple[str, bytes]] = []
        with contextlib.suppress(queue.Empty):
            found.append(self.arrived.get(timeout=max(patience, 0.0)))
            while True:
                found.append(self.arrived.get_nowait())
        return found

    def close(self) -> None:
        """Hang up."""
        with self.guard:
            self.closed = True
            links, attending = list(self.links.values()), list(self.attending)
        with contextlib.suppress(OSError):
            self.listening.shutdown(socket.SHUT_RDWR)
        self.listening.close()
        self.listener.join()
        for link in links:
            link.close()
        for thread in attending:
            thread.join(_LOOK)

    def _listen(self) -> None:
        while not self.closed:
            try:
                plain, _ = self.listening.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._attend, args=(plain,), daemon=True)
            with self.guard:
                self.attending = {one for one in self.attending if one.is_alive()} | {thread}
            thread.start()

    def _attend(self, plain: socket.socket) -> None:
        """One place, for as long as it stays."""
        try:
            plain.settimeout(_HANDSHAKE)
            notice_loss(plain)
            connection = self.context.wrap_socket(plain, server_side=True)
        except OSError as error:
            self.say(f"somebody was refused: {_reason(error)}")
            plain.close()
            return
        try:
            place = self._known(connection)
            connection.settimeout(None)
        except (OwnviewError, OSError) as error:
            self.say(f"somebody was refused: {error}")
            with contextlib.suppress(OSError):
                greet(connection, refused=str(error))
            hang_up(connection)
            return
        link = Link(connection, lambda answer: self.arrived.put((place, answer)))
        with self.guard:
            earlier = self.links.get(place)
            self.links[place] = link
            if self.closed:
                link.close()
        if earlier is not None:  # the place has started again before anybody noticed that it was gone
            earlier.close()
        link.attend()
        with self.guard:
            if self.links.get(place) is link:
                del self.links[place]

    def _known(self, connection: ssl.SSLSocket) -> str:
        """The name that belongs to the other end's key, whatever it says of itself."""
        key = fingerprint(connection.getpeercert(binary_form=True) or b"")
        said = greeted(connection).get("place", "")
        name = self.keys.names().get(key)
        if name is None:
            raise MessageError(f"unknown key {key[:16]}; expected that of an enrolled place")
        if said not in ("", name):
            raise MessageError(f"key {key[:16]} is not that of place {said!r}; a name goes with its key")
        greet(connection, place=name)
        return name


def attend(
    place: Answering,
    address: Address,
    certificates: Path,
    name: str,
    stop: threading.Event,
    say: Callable[[str], None] = lambda line: None,
) -> None:
    """A place's end: connect, answer what is asked, and connect again when the line breaks, until `stop`.

    Args:
        place: that answers.
        address: of the coordinator.
        certificates: folder with ca.crt, NAME.crt and NAME.key.
        name: of the place; the coordinator knows it by its key.
        stop: ends it.
        say: told in one line what a person should know.

    Raises:
        MessageError: the coordinator refuses this place, or is not the one whose authority is known here.
    """
    secure = context(certificates, name, server=False)
    wait = _RETRY[0]
    while not stop.is_set():
        try:
            with _connected(secure, address) as link:
                greet(link, place=name)
                greeted(link)
                say(f"connected to {address[0]}:{address[1]} as {name}")
                wait = _RETRY[0]
                _answer_all(place, link, stop)
        except ssl.SSLEOFError:  # gone without a word
            stop.wait(wait)
        except ssl.SSLError as error:
            raise MessageError(f"{address[0]}:{address[1]}: {_reason(error)}") from error
        except OSError:
            stop.wait(wait)
            wait = min(2 * wait, _RETRY[1])


def _connected(secure: ssl.SSLContext, address: Address) -> ssl.SSLSocket:
    plain = socket.create_connection(address, timeout=_HANDSHAKE)
    try:
        notice_loss(plain)
        return secure.wrap_socket(plain, server_hostname=address[0])
    except BaseException:
        plain.close()
        raise


def _answer_all(place: Answering, link: ssl.SSLSocket, stop: threading.Event) -> None:
    link.settimeout(None)
    while not stop.is_set():
        if link.pending() or select.select([link], [], [], _LOOK)[0]:
            send_frame(link, place.answer(receive_frame(link)))


def _reason(error: OSError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"a certificate of another authority ({error.verify_message}); expected one of the authority in ca.crt"
    if isinstance(error, ssl.SSLError) and "ALERT" in str(error.reason or ""):
        return f"the other end refuses this certificate ({error.reason}); expected one of its own authority"
    return f"no mutual TLS ({error}); expected a certificate of the authority in ca.crt"
