"""The coordinator's end of the transport: messages go to places through Flower's grid, answers are looked for there."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import httpx
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from cryptography.x509 import load_pem_x509_certificate
from flwr.proto.runtime_pb2 import SendTaskHeartbeatRequest
from flwr.supercore.inflatable.inflatable_utils import ObjectPushError
from flwr.supercore.primitives.asymmetric import bytes_to_public_key, public_key_to_bytes

from ownview.base.errors import DataError
from ownview.deploy.certificates import fingerprint, key_fingerprint
from ownview.deploy.flower.access import Access, Running
from ownview.deploy.flower.parcels import opened, parcel
from ownview.deploy.keys import KnownKeys

HEARTBEAT = 10.0
"""Seconds between signs of life; the link forgets a run after a minute without one."""
AGAIN = 120.0
"""Seconds after which a message that a connected place has not answered is sent to it again."""
_FRESH = 1.0
"""Seconds for which it is known who is connected; a place that has begun anew has lost what it was sent before."""
_LINK_IS_AWAY = (httpx.HTTPError, ObjectPushError)


@dataclass(frozen=True)
class _Node:
    number: int
    since: str


@dataclass(frozen=True)
class _Waiting:
    place: str
    message: bytes
    node: _Node
    sent: float


class FlowerTransport:
    """Messages through a link. Where the link is away, nobody is connected, and it is asked again a little later.

    Args:
        access: to the link.
        certificates: folder with NAME.crt of every place.
        keys: whose key is whose; places that are added come in without a restart.
        interval: seconds between looks for answers.
        say: told in one line what a person should know.
    """

    def __init__(
        self,
        access: Access,
        certificates: Path,
        keys: KnownKeys,
        say: Callable[[str], None] = lambda line: None,
        interval: float = 0.2,
    ) -> None:
        self.access, self.certificates, self.keys, self.interval, self.say = access, certificates, keys, interval, say
        self.enrolled: set[str] = set()
        self.running: Running | None = None
        self.nodes: dict[str, _Node] = {}
        self.waiting: dict[str, _Waiting] = {}
        self._alive_at = self._tried_at = self._seen_at = float("-inf")

    def places(self) -> Sequence[str]:
        """Names of the places that are connected now, ascending."""
        self.nodes = {}
        try:
            running = self._connected()
            found = [] if running is None else running.grid.get_nodes()
        except _LINK_IS_AWAY as error:
            self._lost(error)
            return []
        self._seen_at, names = time.monotonic(), self.keys.names()
        for one in found:
            name = names.get(_fingerprint(one.public_key))
            if name is not None:
                self.nodes[name] = _Node(one.node_id, one.last_activated_at)
        return sorted(self.nodes)

    def send(self, place: str, message: bytes) -> None:
        """Send a message; nothing happens where the place is not there, or has the same message already."""
        if place not in self.nodes or time.monotonic() - self._seen_at > _FRESH:
            self.places()
        node = self.nodes.get(place)
        if node is None or self.running is None or self._has_it(place, message, node):
            return
        try:
            numbers = list(self.running.grid.push_messages([parcel(message, node.number)]))
        except _LINK_IS_AWAY as error:
            self._lost(error)
            return
        if numbers and numbers[0]:
            self.waiting[numbers[0]] = _Waiting(place, message, node, time.monotonic())

    def receive(self, patience: float) -> list[tuple[str, bytes]]:
        """Answers that came, each with the name of its place; waits for the first one at most `patience` seconds."""
        until = time.monotonic() + patience
        while True:
            answers = self._look()
            left = until - time.monotonic()
            if answers or left <= 0:
                return answers
            time.sleep(min(self.interval, left))

    def close(self) -> None:
        """Send and receive nothing any more."""
        if self.running is not None:
            self.running.grid.close()
        self.running, self.nodes, self.waiting, self.enrolled = None, {}, {}, set()

    def _look(self) -> list[tuple[str, bytes]]:
        answers = []
        try:
            running = self._connected()
            found = running.grid.pull_messages(list(self.waiting)) if running is not None and self.waiting else []
        except _LINK_IS_AWAY as error:
            self._lost(error)
            return []
        for one in found:
            asked = self.waiting.pop(one.metadata.reply_to_message_id, None)
            inside = opened(one)
            if asked is not None and inside is not None and one.metadata.src_node_id == asked.node.number:
                answers.append((asked.place, inside))
        return answers

    def _has_it(self, place: str, message: bytes, node: _Node) -> bool:
        """Whether the message is on its way to a place that has not begun anew since: it will be answered."""
        now = time.monotonic()
        return any(
            one.place == place and one.node == node and one.message == message and now - one.sent < AGAIN
            for one in self.waiting.values()
        )

    def _connected(self) -> Running | None:
        """The run at the link, begun where there is none; None until it is time to try again."""
        now = time.monotonic()
        if self.running is None:
            if now - self._tried_at < self.interval:
                return None
            self._tried_at = now
            self.running = self.access.begin()
            self.say(f"the link at {self.access.address} is there")
        new = self.keys.names().keys() - self.enrolled
        if new:
            self.access.enrol(self._public(self.keys.names()[key], key) for key in sorted(new))
            self.enrolled |= new
        if now - self._alive_at > HEARTBEAT:
            self.running.runtime.SendTaskHeartbeat(SendTaskHeartbeatRequest())
            self._alive_at = now
        return self.running

    def _public(self, name: str, expected: str) -> bytes:
        """A place's public key as PEM, from its certificate."""
        file = self.certificates / f"{name}.crt"
        try:
            content = file.read_bytes()
        except FileNotFoundError as error:
            raise DataError(f"{file}: is not there; expected the certificate of place {name!r}") from error
        if fingerprint(content) != expected:
            raise DataError(f"{file}: has another key than the one that place {name!r} is known by")
        return _pem(content)

    def _lost(self, error: Exception) -> None:
        if self.running is not None:
            self.say(f"the link at {self.access.address} is away: {type(error).__name__}")
        self.close()


def _pem(certificate: bytes) -> bytes:
    key = load_pem_x509_certificate(certificate).public_key()
    assert isinstance(key, ec.EllipticCurvePublicKey)  # as `deploy.certificates` makes them
    return public_key_to_bytes(key)


def _fingerprint(key: bytes) -> str:
    """Of a public key as PEM."""
    return key_fingerprint(bytes_to_public_key(key).public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo))
