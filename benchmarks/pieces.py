"""What one device and one server core spend on a round, by method: bytes each way, and CPU-seconds of every piece.

    python -m benchmarks.pieces --items 10000
    python -m benchmarks.pieces --items 100000 --methods fedmf pfedrec fednext:rank=32

A device has 50 items. Bytes up are those of the messages as they are written, bytes down those of whole tables.
A device's seconds are those of its work alone, on one core of this machine. The server's are of one upload, read and
added up; of two partial sums merged, as in a tree; and of the end of a round, when what is shared moves.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from benchmarks.scale import method
from benchmarks.worlds import crowd
from ownview.base.errors import OwnviewError
from ownview.engine.machine import machine
from ownview.federation.options import FederationOptions
from ownview.registry import enough_rounds
from ownview.round.federation import Federation

DEVICES, EACH, REPEATS, LONG = 32, 50, 3, 5.0
USUAL = ("fedmf", "pfedrec", "fedrap", "pfedclr", "colr", "fedials", "fedease", "fednext:rank=32")


@dataclass(frozen=True)
class Pieces:
    """Of one round of a method.

    Args:
        method: its name.
        items: m.
        rounds: that it needs where that is known, None where it is chosen on validation.
        down: bytes to a device.
        up: bytes from a device, the mean.
        device: CPU-seconds of a device's work.
        upload: CPU-seconds of the server for one upload.
        merge: CPU-seconds to merge two partial sums.
        finish: CPU-seconds at the end of a round.
        sums: bytes of a partial sum.
    """

    method: str
    items: int
    rounds: int | None
    down: int
    up: int
    device: float
    upload: float
    merge: float
    finish: float
    sums: int


def measured(name: str, items: int) -> Pieces:
    """Of a method on a world of a few devices."""
    made, split = method(name), crowd(DEVICES, items, EACH)
    one = Federation(made, split, split.train, FederationOptions(), 0, machine("cpu", "8GB"))
    if one.terms.mixed:
        raise OwnviewError("the server holds the latest table of every device")
    place = torch.tensor([0])
    device = least(lambda: one.work.rehearsal(place, 1, one.newest(place)))
    clients = torch.arange(DEVICES)
    one.clients.begin(one.server.download(1, clients[:0]), clients)
    messages, codec = [], one.terms.codec
    for block in one.work.blocks(clients):
        upload = one.work.do(one.work.samples(1, block), one.server.download(1, block))
        messages += [codec.write_upload(upload.one(k), 1) for k in range(len(upload.clients))]
    total = one.server.begin(1)

    def read() -> None:
        for data in messages:
            total.add(codec.read_upload(data, 0))

    upload_seconds = least(lambda: read) / max(len(messages), 1)
    packed = {key: value.clone() for key, value in total.pack().items()}
    merge = least(lambda: lambda: total.merge(packed))

    def end() -> Callable[[], None]:
        arrived = one.server.begin(1)
        arrived.merge(packed)
        return lambda: one.server.finish(1, arrived, clients)

    finish = least(end)
    down = codec.dense_download(one.server.download(1, clients[:0]))  # with many devices nothing is zero
    up = round(sum(map(len, messages)) / DEVICES)
    sums = sum(value.nbytes for value in packed.values())
    rounds = enough_rounds(made)
    return Pieces(name, items, rounds, down, up, device, upload_seconds, merge, finish, sums)


def least(prepared: Callable[[], Callable[[], object]]) -> float:
    """CPU-seconds of what is prepared, the least of a few times; of long work, of the first."""
    found: list[float] = []
    while len(found) <= REPEATS and sum(found) < LONG:
        work = prepared()
        start = time.process_time()
        work()
        found.append(time.process_time() - start)
    return min(found)


def main() -> None:
    """Measure, print a table, write JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", nargs="+", default=list(USUAL), help="NAME or NAME:SETTING=NUMBER")
    parser.add_argument("--items", type=int, default=10_000)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/pieces.json"))
    asked = parser.parse_args()
    torch.set_num_threads(1)
    found = []
    print("| method | rounds | down | up | device CPU-s | server CPU-ms an upload | merge ms | end of round s | sums |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for name in asked.methods:
        try:
            one = measured(name, asked.items)
        except OwnviewError as error:
            print(f"| {name} | {error} |||||||")
            continue
        found.append(one)
        print(
            f"| {name} | {one.rounds or 'chosen'} | {one.down:,} B | {one.up:,} B | {one.device:.3f} | "
            f"{one.upload * 1e3:.3f} | {one.merge * 1e3:.2f} | {one.finish:.3f} | {one.sums / 1e6:,.1f} MB |",
            flush=True,
        )
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    asked.out.write_text(json.dumps([asdict(one) for one in found], indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
