"""Whether a client of a large crowd costs more than one of a small crowd, on a machine that does other things too.

    python -m benchmarks.scale_growth                        # FedMF, 10^6 clients beside 10^4: about 4 CPU-minutes
    python -m benchmarks.scale_growth --clients 100000

One round of the large crowd is held now and then, and the small crowd has a whole round meanwhile, in the same process
and thread. So whatever else is at work on the machine slows both down alike, and their ratio says what the number of
clients does. CPU-seconds; worlds as in `benchmarks.scale`.
"""

from __future__ import annotations

import argparse
import time

import torch

from benchmarks.scale import EACH, method
from benchmarks.worlds import crowd
from ownview.engine.machine import machine
from ownview.federation.options import FederationOptions
from ownview.round.conduct import Fleet, Round, Uploads
from ownview.round.federation import Federation

HELD = 20
"""Times that the large crowd's round is held, about."""


class Interleaved:
    """A round that is held after so many blocks for a round of others.

    Args:
        fleet: whose round it is.
        others: have a round of theirs each time.
        every: blocks.
    """

    def __init__(self, fleet: Fleet, others: Federation, every: int) -> None:
        self.others, self.every, self.blocks, self.number = others, every, 0, 1
        self.seconds: list[float] = []
        self._ask = fleet.ask
        fleet.ask = self._counted  # type: ignore[method-assign]

    def _counted(self, going: Round) -> Uploads:
        for upload in self._ask(going):
            yield upload
            self.blocks += 1
            if self.blocks % self.every == 0:
                start, self.number = time.process_time(), self.number + 1
                self.others.round(self.number)
                self.seconds.append(time.process_time() - start)


def main() -> None:
    """Measure and print one line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--method", default="fedmf", help="NAME or NAME:SETTING=NUMBER")
    parser.add_argument("--clients", type=int, default=1_000_000)
    parser.add_argument("--beside", type=int, default=10_000)
    parser.add_argument("--items", type=int, default=100_000)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    small, large = (_made(asked.method, count, asked.items) for count in (asked.beside, asked.clients))
    small.round(1)
    blocks = len(large.work.blocks(torch.arange(asked.clients)))
    between = Interleaved(large.fleet, small, max(1, blocks // HELD))
    start = time.process_time()
    large.round(1)
    whole = time.process_time() - start - sum(between.seconds)
    costs = whole / asked.clients, sum(between.seconds) / len(between.seconds) / asked.beside
    print(
        f"{asked.method}: {asked.clients:,} clients {whole:.1f} CPU-s, {costs[0] * 1e6:.1f} us each; "
        f"of {asked.beside:,}, {len(between.seconds)} rounds between, {costs[1] * 1e6:.1f} us each; "
        f"ratio {costs[0] / costs[1]:.3f}"
    )


def _made(name: str, clients: int, items: int) -> Federation:
    split = crowd(clients, items, EACH)
    return Federation(method(name), split, split.train, FederationOptions(), 0, machine("cpu", "20GB"))


if __name__ == "__main__":
    main()
