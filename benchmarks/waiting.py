"""How long a round of many devices takes when they are slow, far away, or gone: simulated from measured pieces.

    python -m benchmarks.waiting                                 # FedMF's bytes, 10^6 devices
    python -m benchmarks.waiting --devices 1000000000 --cohort 100000 --down 6400034 --up 17021

A device downloads, works and uploads; its rates and its slowness are log-normal, and some drop out and never answer.
Every number of the world below is an assumption that an option changes; bytes and CPU-seconds of a device and of the
server are measured by `benchmarks.pieces`. The server asks for more devices than it needs and ends the round when
enough have answered. Leaves of a tree of aggregators hand the download out and add uploads up; their partial sums are
merged level by level.
"""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

_DRAWN = 10**6
"""Devices that are drawn at most; of more, quantiles are the same."""


@dataclass(frozen=True)
class World:
    """What is assumed, and what was measured.

    Args:
        devices: that exist.
        cohort: that are asked in a round; 0 for all of them.
        down: bytes to a device (measured).
        up: bytes from a device (measured).
        sums: bytes of a partial sum (measured).
        work: CPU-seconds of a device's work on a core of ours (measured).
        upload: CPU-seconds of the server for an upload (measured).
        merge: CPU-seconds to merge two partial sums (measured).
        finish: CPU-seconds at the end of a round (measured).
        slower: how many times slower than that core the middle device is.
        down_rate: bits a second, of the middle device.
        up_rate: bits a second, of the middle device.
        spread: standard deviation of the logarithm of rates and slowness.
        latency: seconds of a connection that is made.
        dropout: share of devices that drop out in a round.
        fan: children of an aggregator.
        leaf: uploads that a leaf takes in a round.
        backbone: bits a second between aggregators, and out of every leaf.
    """

    devices: int = 1_000_000
    cohort: int = 0
    down: int = 6_400_034
    up: int = 17_021
    sums: int = 6_400_008
    work: float = 0.002
    upload: float = 0.0004
    merge: float = 0.0005
    finish: float = 0.003
    slower: float = 5.0
    down_rate: float = 20e6
    up_rate: float = 5e6
    spread: float = 0.8
    latency: float = 0.2
    dropout: float = 0.1
    fan: int = 32
    leaf: int = 5_000
    backbone: float = 10e9


@dataclass(frozen=True)
class Tree:
    """Aggregators over a cohort, one core each.

    Args:
        leaves: how many.
        depth: levels above them.
        handing: seconds until a leaf has handed the download out to all of its devices.
        adding: seconds of a leaf for its uploads.
        merging: seconds of merging, all levels together.
        sending: seconds of partial sums on their way, all levels together.
    """

    leaves: int
    depth: int
    handing: float
    adding: float
    merging: float
    sending: float


def answers(world: World, count: int, random: np.random.Generator) -> Floats:
    """[count] seconds until each device's upload has arrived, ascending; infinite for those that drop out."""
    slowness, down, up = np.exp(world.spread * random.standard_normal((3, count)))
    parts = np.stack(
        [
            world.latency + world.down * 8 / (world.down_rate * down),
            np.full(count, world.work * world.slower) * slowness,
            world.latency + world.up * 8 / (world.up_rate * up),
        ]
    )
    seconds: Floats = parts.sum(0)
    seconds[random.random(count) < world.dropout] = math.inf
    return np.sort(seconds)


def tree(world: World, count: int) -> Tree:
    """Of aggregators for so many uploads."""
    leaves = math.ceil(count / world.leaf)
    depth = math.ceil(math.log(leaves, world.fan)) if leaves > 1 else 0
    handing = min(world.leaf, count) * world.down * 8 / world.backbone
    adding = min(world.leaf, count) * world.upload
    widest = min(world.fan, leaves)
    merging = depth * widest * world.merge
    sending = depth * widest * world.sums * 8 / world.backbone
    return Tree(leaves, depth, handing, adding, merging, sending)


def main() -> None:
    """Draw, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for one in fields(World):
        parser.add_argument(f"--{one.name.replace('_', '-')}", type=type(one.default), default=one.default)
    world = World(**vars(parser.parse_args()))
    cohort = world.cohort or world.devices
    drawn = answers(world, min(cohort, _DRAWN), np.random.default_rng(0))
    found = tree(world, cohort)
    print(f"{cohort:,} of {world.devices:,} devices are asked, {1 - world.dropout:.0%} of them answer")
    print(f"bytes: {cohort * world.down / 1e12:,.3f} TB down, {cohort * world.up / 1e9:,.3f} GB up")
    print(f"server: {cohort * world.upload:,.1f} CPU-s for uploads")
    print(f"tree: {found.leaves:,} leaves, {found.depth} levels above; a leaf hands out for {found.handing:.1f} s")
    print(
        f"after the last upload: at most {found.adding:.2f} s at a leaf, {found.merging:.3f} s of merging, "
        f"{found.sending:.2f} s between aggregators, {world.finish:.3f} s at the end"
    )
    for share in (0.5, 0.8, 0.85, 0.88, 0.89, 0.899, 1.0):
        place = min(int(share * len(drawn)), len(drawn)) - 1
        waited = drawn[place]
        words = "never: some drop out" if math.isinf(waited) else f"{waited:,.1f} s"
        print(f"until {share:.1%} of those asked have answered: {words}")


if __name__ == "__main__":
    main()
