"""Ownview's methods in Flower, by Flower's public interface alone: `ServerApp`, `Grid` and `ClientApp`.

    python examples/flower/prepare.py "$PWD/runs/flower"
    flwr run examples/flower --run-config "folder='$PWD/runs/flower'" --stream

Flower carries bytes, and nothing of the method changes: the server's half is `Coordinator`, the client's half is
`Place`, as over HTTPS (docs/deploy.md). A node is a place: a folder with `ratings.csv` of its own users, which keeps
their state between messages, so that any process may answer for it.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from pathlib import Path

from flwr.app import ConfigRecord, Context, Message, MessageType, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp

from ownview.base.errors import SettingError, TrainingError
from ownview.deploy.agreement import Agreement
from ownview.deploy.coordinator import Coordinator
from ownview.deploy.place import Place
from ownview.deploy.settings import CoordinatorSettings
from ownview.deploy.transport import Transport

RECORD, BYTES, NAME = "ownview", "bytes", "name"
POLL = 0.02
"""Seconds from one look for answers to the next."""
LIFE = 600.0
"""Seconds after which Flower gives a message up: one that a killed process has taken would be waited for half a day."""
MOST_FAILURES = 8
"""Messages in a row that fail in Flower, after which the run ends: an app that cannot start would be asked for ever."""

client = ClientApp()
server = ServerApp()


@client.query()
def answer(message: Message, context: Context) -> Message:
    """The place's answer to a message; to an empty one, the place's name."""
    home = home_of(context)
    asked = message.content.config_records[RECORD][BYTES]
    assert isinstance(asked, bytes)
    record = ConfigRecord({BYTES: Place(home).answer(asked) if asked else b"", NAME: home.name})
    return Message(RecordDict({RECORD: record}), reply_to=message)


def home_of(context: Context) -> Path:
    """`home` of the node's own configuration or, in a simulation, the folder of its partition."""
    if "home" in context.node_config:
        return Path(str(context.node_config["home"]))
    return Path(str(context.run_config["folder"])) / f"place{context.node_config['partition-id']}"


@server.main()
def conduct(grid: Grid, context: Context) -> None:
    """All rounds; the coordinator's folder has the model, the log of rounds and a checkpoint to go on from."""
    settings = context.run_config
    folder = Path(str(settings["folder"]))
    agreement = Agreement.unpack((folder / "agreement").read_bytes())
    require_no_masks(agreement)
    carrier = GridTransport(grid, int(settings["places"]))
    waiting = float(settings.get("waiting", LIFE))
    coordinator = coordinator_of(agreement, carrier, carrier.nodes, folder / "coordinator", waiting)
    coordinator.run(int(settings["rounds"]))
    carrier.close()


def coordinator_of(
    agreement: Agreement, carrier: Transport, places: Collection[str], folder: Path, waiting: float
) -> Coordinator:
    """A coordinator that waits for all users of an agreement.

    Flower's places start with the run and no other comes later. So where one keeps refusing, the run ends and says why:
    after `waiting` seconds, or before where the others can never be enough.
    """
    settings = CoordinatorSettings(least=agreement.clients, waiting=waiting)
    return Coordinator(agreement, carrier, folder, settings, print, expected=lambda: places)


def require_no_masks(agreement: Agreement) -> None:
    """Refuse masked sums: keys of masks are in a place's memory alone, and Flower has a process for every message."""
    if agreement.terms().masked is not None:
        raise SettingError(
            f"federation setting privacy={agreement.federation.privacy!r}: masks need places that stay in memory, and "
            "Flower starts a process a message; expected privacy without masks, or `ownview deploy`, which stays"
        )


class GridTransport:
    """The coordinator's end of a carrier (`ownview.deploy.transport.Transport`) over Flower's grid.

    Flower numbers nodes anew in every run; places are known by the names that their nodes send at the beginning.

    Args:
        grid: of the run.
        count: nodes to wait for.
    """

    def __init__(self, grid: Grid, count: int) -> None:
        self.grid, self.pending, self.failures = grid, dict[str, str](), 0
        while len(nodes := list(grid.get_node_ids())) < count:
            time.sleep(POLL)
        named = list(grid.send_and_receive([_message(node, b"") for node in nodes], timeout=LIFE))
        lost = [_reason(one) for one in named if not one.has_content()]
        if lost or len(named) < len(nodes):
            why = ", ".join(lost) or f"no answer in {LIFE:g} s"
            raise TrainingError(f"not all of {len(nodes)} nodes said which place they are: {why}")
        self.nodes = {str(one.content.config_records[RECORD][NAME]): one.metadata.src_node_id for one in named}

    def places(self) -> Sequence[str]:
        """Names of the places whose nodes are connected."""
        here = set(self.grid.get_node_ids())
        return sorted(name for name, node in self.nodes.items() if node in here)

    def send(self, place: str, message: bytes) -> None:
        """Push a message; nothing where an earlier one is still unanswered, which Flower delivers by itself."""
        if place not in self.pending.values():
            (number,) = self.grid.push_messages([_message(self.nodes[place], message)])
            self.pending[number] = place

    def receive(self, patience: float) -> list[tuple[str, bytes]]:
        """Answers that came; waits for the first one at most `patience` seconds.

        Raises:
            TrainingError: Flower could not deliver `MOST_FAILURES` messages in a row, or the app failed on them.
        """
        until = time.monotonic() + patience
        while not (found := list(self.grid.pull_messages(list(self.pending)))) and time.monotonic() < until:
            time.sleep(POLL)
        answers: list[tuple[str, bytes]] = []
        for one in found:
            place = self.pending.pop(one.metadata.reply_to_message_id)
            content = one.content.config_records[RECORD][BYTES] if one.has_content() else None
            if isinstance(content, bytes):
                answers.append((place, content))
                self.failures = 0
                continue
            self.failures += 1
            print(f"{place}: no answer from Flower: {_reason(one)}")
            if self.failures >= MOST_FAILURES:
                raise TrainingError(f"{place}: {self.failures} messages in a row failed in Flower: {_reason(one)}")
        return answers

    def close(self) -> None:
        """Forget what is pending."""
        self.pending.clear()


def _reason(message: Message) -> str:
    """Why Flower has no answer, in one line; its own reason may be a traceback."""
    reason = (message.error.reason or "") if message.has_error() else ""
    return (reason.strip().splitlines() or ["no reason given"])[-1]


def _message(node: int, content: bytes) -> Message:
    record = RecordDict({RECORD: ConfigRecord({BYTES: content})})
    return Message(record, dst_node_id=node, message_type=MessageType.QUERY, ttl=LIFE)
