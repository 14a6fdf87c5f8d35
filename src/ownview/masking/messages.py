"""What clients and server say to each other besides the masked numbers themselves, as values and as bytes.

Every message, little-endian: "OM", version, kind: 4 bytes; round, client, number of entries: 4 bytes each; then the
entries, all of one length.

    kind                   entries
    1 keys, up             one: the client's public keys, for sealing and for masks
    2 neighbours, down     of every neighbour its number and public keys, and how many of them lift masks together
    3 sealed shares        up: to every neighbour, its number and what only it can open; down: from every neighbour
    4 who is left, down    a neighbour's number, and 1 where its masked numbers have arrived, else 0
    5 shares, up           a neighbour's number, 1 for a share of its seed and 0 for one of its key, the share
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ownview.base.errors import MessageError
from ownview.masking.primitives import SECRET, TAG
from ownview.masking.shamir import SHARE

VERSION = 1
SEALED = 2 * SHARE + TAG
"""Bytes of a sealed pair of shares."""

_HEAD = struct.Struct("<2s2B3I")
_KEYS, _NEIGHBOURS, _SEALED, _LEFT, _SHARES = range(1, 6)
_ENTRIES = {
    _KEYS: struct.Struct(f"<{SECRET}s{SECRET}s"),
    _NEIGHBOURS: struct.Struct(f"<II{SECRET}s{SECRET}s"),
    _SEALED: struct.Struct(f"<I{SEALED}s"),
    _LEFT: struct.Struct("<I?"),
    _SHARES: struct.Struct(f"<I?{SHARE}s"),
}


@dataclass(frozen=True)
class Keys:
    """A client's public keys of one round.

    Args:
        round: they are for.
        client: whose they are.
        sealing: agrees on keys for sealed shares.
        masking: agrees on masks.
    """

    round: int
    client: int
    sealing: bytes
    masking: bytes

    def pack(self) -> bytes:
        """As bytes."""
        return _packed(_KEYS, self.round, self.client, [(self.sealing, self.masking)])

    @classmethod
    def unpack(cls, data: bytes) -> Keys:
        """What `pack` wrote."""
        number, client, entries = _unpacked(_KEYS, data)
        if len(entries) != 1:
            raise MessageError(f"{len(entries)} entries with public keys; expected 1")
        return cls(number, client, *entries[0])


@dataclass(frozen=True)
class Neighbours:
    """Whom a client shares masks with.

    Args:
        round: it is for.
        client: it is told.
        threshold: how many neighbours lift a client's masks together.
        keys: of every neighbour.
    """

    round: int
    client: int
    threshold: int
    keys: tuple[Keys, ...]

    def pack(self) -> bytes:
        """As bytes."""
        entries = [(one.client, self.threshold, one.sealing, one.masking) for one in self.keys]
        return _packed(_NEIGHBOURS, self.round, self.client, entries)

    @classmethod
    def unpack(cls, data: bytes) -> Neighbours:
        """What `pack` wrote."""
        number, client, entries = _unpacked(_NEIGHBOURS, data)
        thresholds = {threshold for _, threshold, _, _ in entries}
        if len(thresholds) != 1:
            raise MessageError(f"neighbours with the thresholds {sorted(thresholds)}; expected one for all")
        keys = tuple(Keys(number, who, sealing, masking) for who, _, sealing, masking in entries)
        return cls(number, client, thresholds.pop(), keys)


@dataclass(frozen=True)
class SealedShares:
    """Shares of a client's secrets on their way.

    Args:
        round: they belong to.
        client: who sends them to the server, or gets them from it.
        boxes: by the neighbour they are for, or from.
    """

    round: int
    client: int
    boxes: Mapping[int, bytes]

    def pack(self) -> bytes:
        """As bytes."""
        return _packed(_SEALED, self.round, self.client, list(self.boxes.items()))

    @classmethod
    def unpack(cls, data: bytes) -> SealedShares:
        """What `pack` wrote."""
        number, client, entries = _unpacked(_SEALED, data)
        return cls(number, client, dict(entries))


@dataclass(frozen=True)
class Left:
    """Which of a client's neighbours are left, now that masked numbers have arrived.

    Args:
        round: it is about.
        client: it is told.
        arrived: by neighbour, of all that had sent shares.
    """

    round: int
    client: int
    arrived: Mapping[int, bool]

    def pack(self) -> bytes:
        """As bytes."""
        return _packed(_LEFT, self.round, self.client, list(self.arrived.items()))

    @classmethod
    def unpack(cls, data: bytes) -> Left:
        """What `pack` wrote."""
        number, client, entries = _unpacked(_LEFT, data)
        return cls(number, client, dict(entries))


@dataclass(frozen=True)
class Shares:
    """Shares that a client holds of its neighbours: of the seed of one that is left, of the key of one that is not.

    Args:
        round: they belong to.
        client: who held them.
        seeds: by neighbour.
        keys: by neighbour.
    """

    round: int
    client: int
    seeds: Mapping[int, int]
    keys: Mapping[int, int]

    def pack(self) -> bytes:
        """As bytes."""
        entries = [(who, True, share.to_bytes(SHARE, "big")) for who, share in self.seeds.items()]
        entries += [(who, False, share.to_bytes(SHARE, "big")) for who, share in self.keys.items()]
        return _packed(_SHARES, self.round, self.client, entries)

    @classmethod
    def unpack(cls, data: bytes) -> Shares:
        """What `pack` wrote."""
        number, client, entries = _unpacked(_SHARES, data)
        seeds, keys = (
            {who: int.from_bytes(share, "big") for who, of_seed, share in entries if of_seed == wanted}
            for wanted in (True, False)
        )
        return cls(number, client, seeds, keys)


def _packed(kind: int, number: int, client: int, entries: Sequence[tuple[Any, ...]]) -> bytes:
    head = _HEAD.pack(b"OM", VERSION, kind, number, client, len(entries))
    return head + b"".join(_ENTRIES[kind].pack(*one) for one in entries)


def _unpacked(kind: int, data: bytes) -> tuple[int, int, list[tuple[Any, ...]]]:
    """Round, client and entries."""
    entry = _ENTRIES[kind]
    if len(data) < _HEAD.size:
        raise MessageError(f"a message about masks of {len(data)} bytes; expected {_HEAD.size} at least")
    magic, version, found, number, client, count = _HEAD.unpack_from(data)
    if (magic, version, found) != (b"OM", VERSION, kind):
        raise MessageError(f"{magic!r} version {version} kind {found}; expected b'OM' version {VERSION} kind {kind}")
    if len(data) != _HEAD.size + count * entry.size:
        raise MessageError(f"a message about masks of {len(data)} bytes that announces {count} entries")
    entries = list(entry.iter_unpack(data[_HEAD.size :]))
    if kind != _KEYS and len({one[0] for one in entries}) < count:
        raise MessageError("a message about masks that names a client twice")
    return number, client, entries
