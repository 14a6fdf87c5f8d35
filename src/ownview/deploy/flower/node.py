"""A place as a node of Flower's: it asks the link for messages, answers them, and sends the answers.

Flower's own node program would start a process for every message and run in it what the server sends. Here the place
stays where it is, with its values in memory, and no code is taken from anybody.
"""

from __future__ import annotations

import ssl
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import httpx
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from flwr.app import Message
from flwr.app.message import remove_content_from_message
from flwr.common.serde import message_to_proto
from flwr.proto.fleet_pb2 import (
    ActivateNodeRequest,
    DeactivateNodeRequest,
    PullMessagesRequest,
    PushMessagesRequest,
)
from flwr.proto.heartbeat_pb2 import SendNodeHeartbeatRequest
from flwr.proto.message_pb2 import ConfirmMessageReceivedRequest
from flwr.proto.node_pb2 import Node
from flwr.supercore.inflatable.inflatable_object import (
    get_all_nested_objects,
    get_object_tree,
    iterate_object_tree,
    no_object_id_recompute,
)
from flwr.supercore.inflatable.inflatable_protobuf_utils import (
    make_pull_object_fn_protobuf,
    make_push_object_fn_protobuf,
)
from flwr.supercore.inflatable.inflatable_utils import (
    ObjectPullError,
    ObjectPushError,
    inflate_object_from_contents,
    pull_objects,
    push_objects,
)
from flwr.supercore.interceptors import RuntimeVersionHttpInterceptor
from flwr.supercore.primitives.asymmetric import public_key_to_bytes
from flwr.supernode.fleet_http_client import FleetHttpClient
from flwr.supernode.node_auth_http_interceptor import NodeAuthHttpInterceptor

from ownview.base.errors import DataError, MessageError
from ownview.base.files import write_text
from ownview.deploy.flower.parcels import opened, reply
from ownview.deploy.transport import Answering

HEARTBEAT = 20.0
"""Seconds between signs of life; the link takes a place for gone after four times as long without one."""
_GROWTH = 1.1
"""Of the time between two questions, from one to the next."""


def attend(
    place: Answering,
    address: tuple[str, int],
    certificates: Path,
    name: str,
    stop: threading.Event,
    say: Callable[[str], None] = lambda line: None,
    pace: Pace | None = None,
) -> None:
    """A place's end: ask the link for messages and answer them, until `stop`; where the link is away, try again.

    Args:
        place: that answers.
        address: of the link.
        certificates: folder with ca.crt and NAME.key; NAME.node is written there.
        name: of the place; the coordinator knows it by its key.
        stop: ends it.
        say: told in one line what a person should know.
        pace: how often and how long it asks.

    Raises:
        MessageError: the link does not know this place, or is not the one whose authority is known here.
    """
    _Node(place, address, certificates, name, stop, say, pace or Pace()).serve()


@dataclass(frozen=True)
class Pace:
    """How often and how long a place asks.

    Args:
        interval: seconds between questions for messages, after a message.
        longest: seconds between them at most; they grow as long as there are none, because questions cost the link.
        patience: seconds in which the server may come to know a place's key.
    """

    interval: float = 0.5
    longest: float = 5.0
    patience: float = 60.0


class _Node:
    """See `attend`. `number` remembers the node's number at the link, so that who was killed can come back at once."""

    def __init__(
        self,
        place: Answering,
        address: tuple[str, int],
        certificates: Path,
        name: str,
        stop: threading.Event,
        say: Callable[[str], None],
        pace: Pace,
    ) -> None:
        self.place, self.stopped, self.say, self.pace = place, stop, say, pace
        self.address, self.authority = f"{address[0]}:{address[1]}", certificates / "ca.crt"
        self.number = certificates / f"{name}.node"
        self.private = _private(certificates / f"{name}.key")
        self.public = public_key_to_bytes(self.private.public_key())
        self._at: Node | None = None

    def serve(self) -> None:
        """Until it is stopped."""
        with self._client() as client:
            beats = threading.Thread(target=self._live, daemon=True)
            beats.start()
            unknown_since: float | None = None
            wait, longest = self.pace.interval, self.pace.longest
            while not self.stopped.is_set():
                try:
                    if self._at is None:
                        self._at = self._activated(client)
                        self.say(f"connected to {self.address}")
                    unknown_since = None
                    wait = self.pace.interval if self._answered(client, self._at) else min(_GROWTH * wait, longest)
                    self.stopped.wait(wait)
                except httpx.HTTPStatusError as error:
                    now = time.monotonic()
                    unknown_since = now if unknown_since is None else unknown_since
                    self._forgotten(error, now - unknown_since)
                except (httpx.TransportError, ObjectPullError, ObjectPushError) as error:
                    self._away(error)
            self._leave(client)

    def _client(self) -> FleetHttpClient:
        signed = NodeAuthHttpInterceptor(self.private, self.private.public_key())
        version = RuntimeVersionHttpInterceptor(component_name="SuperNode")
        return FleetHttpClient.from_server_address(self.address, False, self.authority.read_bytes(), [version, signed])

    def _activated(self, client: FleetHttpClient) -> Node:
        """Connect. Who was killed and comes back is still there in the link's eyes, and leaves first."""
        wanted = ActivateNodeRequest(public_key=self.public, heartbeat_interval=2 * HEARTBEAT)
        try:
            node = client.ActivateNode(wanted).node_id
        except httpx.HTTPStatusError:
            if not self.number.is_file():
                raise
            client.DeactivateNode(DeactivateNodeRequest(node_id=int(self.number.read_text(encoding="ascii"))))
            node = client.ActivateNode(wanted).node_id
        write_text(self.number, str(node))
        return Node(node_id=node)

    def _answered(self, client: FleetHttpClient, node: Node) -> bool:
        """Take a message and answer it; False where there is none."""
        found = client.PullMessages(PullMessagesRequest(node=node))
        if not found.messages_list:
            return False
        run, tree = found.messages_list[0].metadata.run_id, found.message_object_trees[0]
        pull = make_pull_object_fn_protobuf(client.PullObject, node, run)
        contents = pull_objects([one.object_id for one in iterate_object_tree(tree)], pull)
        client.ConfirmMessageReceived(
            ConfirmMessageReceivedRequest(node=node, run_id=run, message_object_id=tree.object_id)
        )
        asked = inflate_object_from_contents(tree.object_id, contents)
        assert isinstance(asked, Message)
        asked.metadata.__dict__["_message_id"] = tree.object_id
        inside = opened(asked)
        if inside is not None:
            self._push(client, node, reply(self.place.answer(inside), asked))
        return True

    def _push(self, client: FleetHttpClient, node: Node, answer: Message) -> None:
        answer.metadata.__dict__["_message_id"] = answer.object_id
        with no_object_id_recompute():
            pushed = client.PushMessages(
                PushMessagesRequest(
                    node=node,
                    messages_list=[message_to_proto(remove_content_from_message(answer))],
                    message_object_trees=[get_object_tree(answer)],
                    clientapp_runtime_list=[0.0],
                )
            )
            push = make_push_object_fn_protobuf(client.PushObject, node, answer.metadata.run_id, pushed.session_id)
            push_objects(get_all_nested_objects(answer), push, object_ids_to_push=set(pushed.objects_to_push))

    def _live(self) -> None:
        """Signs of life, also while an answer takes long; what goes wrong here is found by the questions, too."""
        with self._client() as client:
            while not self.stopped.wait(HEARTBEAT):
                if self._at is not None:
                    try:
                        client.SendNodeHeartbeat(
                            SendNodeHeartbeatRequest(node=self._at, heartbeat_interval=2 * HEARTBEAT)
                        )
                    except httpx.HTTPError:
                        continue

    def _forgotten(self, error: httpx.HTTPStatusError, seconds: float) -> None:
        """The link was begun anew, or the run was, or nobody there knows the key; refused where that lasts."""
        if error.response.status_code >= httpx.codes.INTERNAL_SERVER_ERROR:
            self._away(error)
            return
        if self._at is None and seconds > self.pace.patience:
            raise MessageError(
                f"{self.address}: does not know the key of this place; expected a server on which this place was "
                "enrolled (ownview deploy init)"
            ) from error
        self._at = None
        self.stopped.wait(self.pace.interval)

    def _away(self, error: Exception) -> None:
        reason = _unverified(error)
        if "mismatch" in reason:
            raise MessageError(
                f"{self.address}: shows a certificate for another name; expected the --host of ownview deploy init"
            ) from error
        if reason:
            raise MessageError(
                f"{self.address}: shows a certificate of another authority than {self.authority}; expected the server "
                "that this place was enrolled on"
            ) from error
        if self._at is not None:
            self.say(f"{self.address} is away: {type(error).__name__}; trying again")
        self._at = None
        self.stopped.wait(2 * self.pace.interval)

    def _leave(self, client: FleetHttpClient) -> None:
        if self._at is not None:
            try:
                client.DeactivateNode(DeactivateNodeRequest(node_id=self._at.node_id))
            except httpx.HTTPError:
                return


def _private(file: Path) -> ec.EllipticCurvePrivateKey:
    try:
        key = load_pem_private_key(file.read_bytes(), None)
    except (OSError, ValueError, TypeError) as error:
        raise DataError(f"{file}: no private key can be read: {error}; expected one of ownview deploy init") from error
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise DataError(f"{file}: expected a key on an elliptic curve")
    return key


def _unverified(error: BaseException | None) -> str:
    """Why a certificate does not verify, where a chain of errors began with that; empty for other errors."""
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError) or "CERTIFICATE_VERIFY_FAILED" in str(error):
            return str(error)
        error = error.__cause__ or error.__context__
    return ""
