"""Randomness that depends on what it is for, never on when or where it is drawn.

Every number is a hash of (run seed, purpose, round, client, counter), so results do not change with block
size, client order, number of workers or device: integer arithmetic is the same on CPU and CUDA.
"""

from __future__ import annotations

import hashlib

import numpy as np
import torch
from torch import Tensor

_GOLDEN = -7046029254386353131  # 0x9E3779B97F4A7C15 as a signed integer, SplitMix64's increment
_FIRST = -4658895280553007687  # 0xBF58476D1CE4E5B9
_SECOND = -7723592293110705685  # 0x94D049BB133111EB


def derive(seed: int, purpose: str, *numbers: int) -> int:
    """A 63-bit key for one purpose; other purposes, rounds or seeds give unrelated keys."""
    text = ":".join([str(seed), purpose, *map(str, numbers)])
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 1


def generator(seed: int, purpose: str, *numbers: int) -> torch.Generator:
    """A CPU generator for draws that happen once, such as initial values."""
    return torch.Generator().manual_seed(derive(seed, purpose, *numbers))


def bits(key: int | Tensor, clients: Tensor, counters: Tensor) -> Tensor:
    """63 random bits for each client and counter, as non-negative int64.

    Args:
        key: from `derive`; in a tensor [] of int64 where work is recorded and replayed with another key.
        clients: integers, broadcast against `counters`.
        counters: integers that tell one draw of a client from another.
    """
    stream = _mix(clients.long() * _GOLDEN + key)
    return _mix(stream + (counters.long() + 1) * _GOLDEN).bitwise_and_(0x7FFFFFFFFFFFFFFF)


def chances(seed: int, purpose: str, number: int, clients: Tensor) -> Tensor:
    """[B] a number for each client that keys everything it draws by itself in a round: 63 bits as int64.

    Args:
        seed: of the run.
        purpose: of the draws.
        number: of the round.
        clients: [B] identities.
    """
    return bits(derive(seed, "chance:" + purpose, number), clients, torch.zeros_like(clients))


def below(random_bits: Tensor, bound: Tensor | int) -> Tensor:
    """Uniform integers in [0, bound) from random bits; bound < 2**31. Bias is under bound / 2**32."""
    return ((random_bits >> 31) * bound) >> 32


def unit(random_bits: Tensor) -> Tensor:
    """Uniform float64 in [0, 1) from random bits."""
    return (random_bits >> 10).double() * 2.0**-53


def sort_keys(keys: Tensor) -> Tensor:
    """Sort int64 keys along the last axis, ascending; on CPU by NumPy, whose sort is vectorised."""
    if keys.device.type == "cpu":
        return torch.from_numpy(np.sort(keys.numpy(), axis=-1))
    return keys.sort(dim=-1).values


def _mix(state: Tensor) -> Tensor:
    """SplitMix64's finaliser; shifts are made logical by masking the sign's copies away."""
    first = (state >> 30).bitwise_and_(0x3FFFFFFFF).bitwise_xor_(state).mul_(_FIRST)
    second = (first >> 27).bitwise_and_(0x1FFFFFFFFF).bitwise_xor_(first).mul_(_SECOND)
    return (second >> 31).bitwise_and_(0x1FFFFFFFF).bitwise_xor_(second)
