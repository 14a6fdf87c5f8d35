"""What a round costs a device: CPU-seconds a message at a resident client, and bytes on the wire beyond the payload.

    python -m benchmarks.devices                       # FedMF on goodbooks, three devices of one user, HTTPS
    python -m benchmarks.devices --method pfedrec --users 10

The devices are threads of this process and take turns, so that CPU-seconds are theirs alone: only `Place.answer` is
timed. A relay on loopback between them and the coordinator counts what goes over the wire, handshakes left out. The
payload is what the devices' downloads and uploads have as Ownview counts them (docs/federation.md).
"""

from __future__ import annotations

import argparse
import json
import resource
import socket
import statistics
import tempfile
import threading
import time
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ownview.data.datasets.catalog import load
from ownview.deploy.agreement import Agreement
from ownview.deploy.coordinator import Coordinator
from ownview.deploy.envelopes.envelope import Envelope, Kind
from ownview.deploy.https.polling import attend
from ownview.deploy.https.server import HttpsTransport
from ownview.deploy.identities.certificates import (
    certificate_request,
    fingerprint,
    new_key,
    sign_request,
    write_authority,
    write_key,
    write_server,
)
from ownview.deploy.identities.keys import KnownKeys
from ownview.deploy.place import Place

LOOPBACK = "127.0.0.1"


@dataclass
class Relay:
    """Passes bytes on between devices and a coordinator, and counts them."""

    to: tuple[str, int]
    counted: int = 0
    listening: socket.socket = field(default_factory=lambda: socket.create_server((LOOPBACK, 0)))

    def start(self) -> tuple[str, int]:
        """The address that devices connect to."""
        threading.Thread(target=self._listen, daemon=True).start()
        host, port = self.listening.getsockname()[:2]
        return str(host), int(port)

    def _listen(self) -> None:
        while True:
            near, _ = self.listening.accept()
            far = socket.create_connection(self.to)
            for pair in ((near, far), (far, near)):
                threading.Thread(target=self._pass_on, args=pair, daemon=True).start()

    def _pass_on(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while part := source.recv(1 << 16):
                self.counted += len(part)
                target.sendall(part)


@dataclass
class Timed:
    """A device whose work is timed, one message at a time, and whose payload is weighed."""

    place: Place
    turn: threading.Lock
    seconds: list[float] = field(default_factory=list)
    payload: list[int] = field(default_factory=list)

    def answer(self, message: bytes) -> bytes:
        """The device's answer."""
        with self.turn:
            before = time.thread_time()
            answer = self.place.answer(message)
            taken = time.thread_time() - before
        if Envelope.unpack(message).kind is Kind.WORK:
            self.seconds.append(taken)
            self.payload.append(sum(len(part) for one in (message, answer) for part in Envelope.unpack(one).parts))
        return answer


def measure(method: str, data: str, devices: int, users: int, rounds: int, folder: Path) -> dict[str, Any]:
    """Rounds of a method with some users of a dataset on some devices; the first round is left out."""
    torch.set_num_threads(1)
    source = load(data)
    titles = source.titles
    chosen = np.linspace(0, source.num_users - 1, devices * users).astype(int).reshape(devices, users)
    items = tuple(str(one) for one in source.items.tolist())
    agreement = Agreement(method, devices * users, items, titles or ())
    certificates = folder / "certificates"
    write_authority(certificates)
    write_server(certificates)
    keys = KnownKeys(certificates / "keys.json")
    made = []
    turn = threading.Lock()
    for number, mine in enumerate(chosen.tolist()):
        name, home = f"device{number}", folder / f"device{number}"
        key = new_key()
        write_key(certificates / f"{name}.key", key)
        certificate = sign_request(certificates, name, certificate_request(name, key))
        (certificates / f"{name}.crt").write_bytes(certificate)
        keys.enrol(name, fingerprint(certificate))
        home.mkdir()
        rows = [(user, int(item)) for user in mine for item in source.item[source.of(user)].tolist()]
        text = "".join(f"{source.users[user]},{items[item]}\n" for user, item in rows)
        (home / "ratings.csv").write_text("user,item\n" + text, encoding="utf-8")
        made.append(Timed(Place(home), turn))
    on_wire, all_seconds = _run(agreement, made, rounds, folder, certificates, keys)
    seconds = [one for device in made for one in device.seconds[1:]]
    payload = sum(one for device in made for one in device.payload[1:])
    return {
        "method": method,
        "data": data,
        "items": len(items),
        "devices": devices,
        "users a device": users,
        "messages": len(seconds),
        "cpu-seconds a message, median": round(statistics.median(seconds), 4),
        "cpu-seconds a message, devices and coordinator with all that carries it": round(all_seconds / len(seconds), 4),
        "cpu-seconds a message, most": round(max(seconds), 4),
        "payload bytes a message and its answer": round(payload / len(seconds)),
        "bytes on the wire beyond payload": round((on_wire - payload) / len(seconds)),
        "peak memory of all, MB": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    }


def _run(
    agreement: Agreement,
    made: list[Timed],
    rounds: int,
    folder: Path,
    certificates: Path,
    keys: KnownKeys,
) -> tuple[int, float]:
    """Bytes on the wire and CPU-seconds of this process, from the second round on."""
    stop = threading.Event()
    ends = HttpsTransport((LOOPBACK, 0), certificates, keys)
    with closing(ends):
        relay = Relay(ends.address)
        address = relay.start()
        for number, device in enumerate(made):
            given = (device, address, certificates, f"device{number}", stop)
            threading.Thread(target=attend, args=given, daemon=True).start()
        while len(ends.places()) < len(made):
            time.sleep(0.1)
        coordinator = Coordinator(agreement, ends, folder / "coordinator")
        coordinator.round(1)
        before, began = relay.counted, time.process_time()
        for number in range(2, rounds + 1):
            coordinator.round(number)
        taken = relay.counted - before, time.process_time() - began
        stop.set()
    return taken


def main() -> None:
    """Measure and print JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--method", default="fedmf")
    parser.add_argument("--data", default="goodbooks")
    parser.add_argument("--devices", type=int, default=3)
    parser.add_argument("--users", type=int, default=1, help="users of a device")
    parser.add_argument("--rounds", type=int, default=11)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = measure(asked.method, asked.data, asked.devices, asked.users, asked.rounds, Path(folder))
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
