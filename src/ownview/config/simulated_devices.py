"""The setting `devices`: what clients run on, as a simulation has it. Seconds are simulated ones.

tiers=S:T[:M]+...  a share S of the clients has devices on which a round's work of a client with the mean number of
                   interactions takes T seconds, and M bytes of memory for it; shares add up to 1
spread=X           a round's work takes up to X of its time more or less, drawn anew in every round
dropout=P          a client disappears in mid-round with probability P
deadline=T         a synchronous round ends after T seconds without those that are late
hours=A-B          a client is there from hour A to hour B of its own day; days begin at any time
buffer=K           rounds are asynchronous: as many clients as `clients` says work at any time, each on what the
                   server had when it began, and the server goes on whenever K uploads have come (FedBuff)
staleness=A        (buffer) an upload that is t rounds old counts (1 + t)^-A times its change
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ownview.base.errors import SettingError, suggestion
from ownview.base.randomness import bits, derive, unit

NONE = "none"
DAY = 86400.0


@dataclass(frozen=True)
class Tier:
    """Devices of one kind.

    Args:
        share: of all clients.
        seconds: that a round's work takes a client with the mean number of interactions.
        memory: bytes that it has for it; 0 for enough.
    """

    share: float
    seconds: float
    memory: int = 0


@dataclass(frozen=True)
class SimulatedDevices:
    """What clients run on; see the module for the words."""

    tiers: tuple[Tier, ...] = (Tier(1.0, 1.0),)
    spread: float = 0.0
    dropout: float = 0.0
    deadline: float = 0.0
    hours: tuple[float, float] | None = None
    buffer: int = 0
    staleness: float = 0.5

    def tier_of(self, seed: int, clients: Tensor) -> Tensor:
        """[B] the place of each client's tier, the same in every round."""
        drawn = unit(bits(derive(seed, "tiers"), clients, torch.zeros_like(clients)))
        ends = torch.tensor([one.share for one in self.tiers], dtype=torch.float64, device=clients.device).cumsum(0)
        return torch.searchsorted(ends, drawn, right=True).clamp(max=len(self.tiers) - 1)

    def seconds(self, seed: int, number: int, clients: Tensor, work: Tensor) -> Tensor:
        """[B] that a round's work takes each client.

        Args:
            seed: of the run.
            number: of the round in which it begins.
            clients: [B] identities.
            work: [B] its interactions over the mean of all clients.
        """
        each = torch.tensor([one.seconds for one in self.tiers], dtype=torch.float64, device=clients.device)
        drawn = unit(bits(derive(seed, "work", number), clients, torch.zeros_like(clients)))
        return each[self.tier_of(seed, clients)] * work * (1 + self.spread * (2 * drawn - 1))

    def dropped(self, seed: int, number: int, clients: Tensor) -> Tensor:
        """[B] who disappears in the round that begins."""
        return unit(bits(derive(seed, "dropout", number), clients, torch.zeros_like(clients))) < self.dropout

    def fits(self, seed: int, clients: Tensor, needed: int) -> Tensor:
        """[B] whose device has the bytes that a round's work needs."""
        room = torch.tensor([one.memory or 2**62 for one in self.tiers], device=clients.device)
        return room[self.tier_of(seed, clients)] >= needed

    def there(self, seed: int, clients: Tensor, now: float) -> Tensor:
        """[B] whose device is there at a simulated time."""
        if self.hours is None:
            return torch.ones_like(clients, dtype=torch.bool)
        offset = unit(bits(derive(seed, "days"), clients, torch.zeros_like(clients))) * 24
        hour = (now / 3600 + offset) % 24
        first, last = self.hours
        return (hour >= first) & (hour < last) if first < last else (hour >= first) | (hour < last)


def devices(text: str) -> SimulatedDevices | None:
    """Read the setting; None for none."""
    if text == NONE:
        return None
    given: dict[str, object] = {}
    for part in text.split(","):
        name, _, value = part.partition("=")
        if name not in _READ:
            raise _wrong(text, f"found {part!r}; expected {', '.join(_READ)}{suggestion(name, _READ)}")
        if name in given:
            raise _wrong(text, f"{name} stands twice")
        try:
            given[name] = _READ[name](value)
        except (ValueError, SettingError):
            raise _wrong(text, f"{name}={value!r}: expected {_EXPECTED[name]}") from None
    found = SimulatedDevices(**given)  # type: ignore[arg-type]
    if found.buffer and found.deadline:
        raise _wrong(
            text, "a deadline belongs to synchronous rounds, and a buffer to asynchronous ones; give one of the two"
        )
    if "staleness" in given and not found.buffer:
        raise _wrong(text, "uploads are never stale in synchronous rounds; expected buffer=K as well")
    return found


def _tiers(text: str) -> tuple[Tier, ...]:
    found = []
    for part in text.split("+"):
        share, seconds, *memory = part.split(":")
        found.append(Tier(_number(share, 0, 1), _number(seconds, 1e-9), _bytes(memory[0]) if memory else 0))
    if abs(sum(one.share for one in found) - 1) > 1e-9:
        raise ValueError
    return tuple(found)


def _bytes(text: str) -> int:
    unit_of = {"kB": 10**3, "MB": 10**6, "GB": 10**9}
    return int(_number(text[:-2]) * unit_of[text[-2:]]) if text[-2:] in unit_of else _count(text)


def _number(text: str, low: float = 0.0, high: float = 1e12) -> float:
    value = float(text)
    if not low <= value <= high:
        raise ValueError
    return value


def _hours(text: str) -> tuple[float, float]:
    first, last = (_number(one, 0, 24) for one in text.split("-"))
    if first == last:
        raise ValueError
    return first, last


def _count(text: str) -> int:
    if int(text) < 1:
        raise ValueError
    return int(text)


_READ = {
    "tiers": _tiers, "spread": lambda text: _number(text, 0, 0.99), "dropout": lambda text: _number(text, 0, 0.99),
    "deadline": lambda text: _number(text, 1e-9), "hours": _hours, "buffer": _count, "staleness": _number,
}  # fmt: skip
_EXPECTED = {
    "tiers": "SHARE:SECONDS or SHARE:SECONDS:MEMORY, parted by +, shares adding up to 1, as in 0.7:1+0.3:10:64MB",
    "spread": "a share from 0 to 0.99", "dropout": "a probability from 0 to 0.99", "deadline": "seconds above 0",
    "hours": "two hours from 0 to 24, as in 8-22", "buffer": "a whole number of uploads from 1 on",
    "staleness": "a number from 0 on",
}  # fmt: skip


def _wrong(text: str, why: str) -> SettingError:
    return SettingError(f"federation setting devices={text!r}: {why}")
