"""Messages of the exchange of masks besides the masked numbers, as values and as bytes.

Every message, little-endian: "OM", version, kind: 4 bytes; round, client, number of entries: 4 bytes each; then the
entries, all of one length.

    kind                   entries
    1 keys, up             one: the client's public keys, for sealing and for masks, and a check of its seed
    2 introduction, down   of everybody in the order of the ring: number, public keys, check of the seed
    3 sealed shares        up: for everybody, its number, what only it can open, checks of the two shares inside;
                           down: the same from everybody
    4 who is left, down    a client's number, and 1 where its masked numbers have arrived, else 0
    5 shares, up           a client's number, 1 for a share of its seed and 0 for one of its key, the share
    6, 7                   (signed masks) 1 and 2, each entry with the public key that signed it and the signature
    8 agreed, up           (signed masks) one: a signature of who takes part and who is left
    9 agreements, down     (signed masks) a client's number and what it signed with 8

A check is a hash by which a secret is known again once it is shown: of a seed 32 bytes, of a share 16. What is hashed
has 256 random bits, so that a check says nothing about it.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ownview.base.errors import MessageError
from ownview.privacy.masking.primitives import CHECK, SECRET, TAG
from ownview.privacy.masking.shamir import SHARE
from ownview.privacy.masking.signatures import PUBLIC, SIGNATURE

VERSION = 2
SEALED = 2 * SHARE + TAG
"""Bytes of a sealed pair of shares."""

_HEAD = struct.Struct("<2s2B3I")
(
    _KEYS, _INTRODUCTION, _SEALED, _LEFT, _SHARES, _SIGNED_KEYS, _SIGNED_INTRODUCTION, _AGREED, _AGREEMENTS,
) = range(1, 10)  # fmt: skip
_ENTRIES = {
    _KEYS: struct.Struct(f"<{SECRET}s{SECRET}s{SECRET}s"),
    _INTRODUCTION: struct.Struct(f"<I{SECRET}s{SECRET}s{SECRET}s"),
    _SEALED: struct.Struct(f"<I{SEALED}s{CHECK}s{CHECK}s"),
    _LEFT: struct.Struct("<I?"),
    _SHARES: struct.Struct(f"<I?{SHARE}s"),
    _SIGNED_KEYS: struct.Struct(f"<{SECRET}s{SECRET}s{SECRET}s{PUBLIC}s{SIGNATURE}s"),
    _SIGNED_INTRODUCTION: struct.Struct(f"<I{SECRET}s{SECRET}s{SECRET}s{PUBLIC}s{SIGNATURE}s"),
    _AGREED: struct.Struct(f"<{SIGNATURE}s"),
    _AGREEMENTS: struct.Struct(f"<I{SIGNATURE}s"),
}
_ONE = (_KEYS, _SIGNED_KEYS, _AGREED)
"""Kinds with one entry, which names no client."""


@dataclass(frozen=True)
class Keys:
    """A client's public keys of one round.

    Args:
        round: they are for.
        client: whose they are.
        sealing: agrees on keys for sealed shares.
        masking: agrees on masks.
        seed: check of the seed of its own mask.
        signer: public key by which all of this is signed; empty where nothing is.
        signature: of `content`.
    """

    round: int
    client: int
    sealing: bytes
    masking: bytes
    seed: bytes
    signer: bytes = b""
    signature: bytes = b""

    @property
    def content(self) -> bytes:
        """What is signed."""
        return struct.pack("<2I", self.round, self.client) + self.sealing + self.masking + self.seed

    @property
    def entry(self) -> tuple[bytes, ...]:
        """The bytes of one entry."""
        plain = self.sealing, self.masking, self.seed
        return (*plain, self.signer, self.signature) if self.signer else plain

    def pack(self) -> bytes:
        """Serialise."""
        return _packed(_SIGNED_KEYS if self.signer else _KEYS, self.round, self.client, [self.entry])

    @classmethod
    def unpack(cls, data: bytes) -> Keys:
        """What `pack` wrote."""
        number, client, entries = _unpacked(_either(data, _KEYS, _SIGNED_KEYS), data)
        if len(entries) != 1:
            raise MessageError(f"{len(entries)} entries with public keys; expected 1")
        return cls(number, client, *entries[0])


@dataclass(frozen=True)
class Introduction:
    """Participants of a round and their public keys.

    Args:
        round: it is for.
        client: its recipient.
        keys: of all participants, the client included, in the order of the ring.
    """

    round: int
    client: int
    keys: tuple[Keys, ...]

    def pack(self) -> bytes:
        """Serialise."""
        kind = _SIGNED_INTRODUCTION if any(one.signer for one in self.keys) else _INTRODUCTION
        return _packed(kind, self.round, self.client, [(one.client, *one.entry) for one in self.keys])

    @classmethod
    def unpack(cls, data: bytes) -> Introduction:
        """What `pack` wrote."""
        number, client, entries = _unpacked(_either(data, _INTRODUCTION, _SIGNED_INTRODUCTION), data)
        return cls(number, client, tuple(Keys(number, *entry) for entry in entries))


class Sealed(NamedTuple):
    """Two shares on their way from one client to another.

    Args:
        box: that only the receiver can open.
        seed: check of the share of the sender's seed.
        key: check of the share of its private key.
    """

    box: bytes
    seed: bytes
    key: bytes


@dataclass(frozen=True)
class SealedShares:
    """Shares of clients' secrets on their way.

    Args:
        round: they belong to.
        client: who sends them to the server, or gets them from it.
        boxes: by the client they are for, or from.
    """

    round: int
    client: int
    boxes: Mapping[int, Sealed]

    def pack(self) -> bytes:
        """Serialise."""
        return _packed(_SEALED, self.round, self.client, [(who, *one) for who, one in self.boxes.items()])

    @classmethod
    def unpack(cls, data: bytes) -> SealedShares:
        """What `pack` wrote."""
        number, client, entries = _unpacked(_SEALED, data)
        return cls(number, client, {who: Sealed(*parts) for who, *parts in entries})


@dataclass(frozen=True)
class Left:
    """Clients whose masked numbers have arrived.

    Args:
        round: it is about.
        client: its recipient.
        arrived: by client, of all that had sent shares.
    """

    round: int
    client: int
    arrived: Mapping[int, bool]

    def pack(self) -> bytes:
        """Serialise."""
        return _packed(_LEFT, self.round, self.client, list(self.arrived.items()))

    @classmethod
    def unpack(cls, data: bytes) -> Left:
        """What `pack` wrote."""
        number, client, entries = _unpacked(_LEFT, data)
        return cls(number, client, dict(entries))


@dataclass(frozen=True)
class Shares:
    """Shares that a client holds: of the seed of each client that is left, of the key of each that is not.

    Args:
        round: they belong to.
        client: who held them.
        seeds: by client.
        keys: by client.
    """

    round: int
    client: int
    seeds: Mapping[int, bytes]
    keys: Mapping[int, bytes]

    def pack(self) -> bytes:
        """Serialise."""
        entries = [(who, True, share) for who, share in self.seeds.items()]
        entries += [(who, False, share) for who, share in self.keys.items()]
        return _packed(_SHARES, self.round, self.client, entries)

    @classmethod
    def unpack(cls, data: bytes) -> Shares:
        """What `pack` wrote."""
        number, client, entries = _unpacked(_SHARES, data)
        seeds, keys = ({who: share for who, of_seed, share in entries if of_seed == wanted} for wanted in (True, False))
        return cls(number, client, seeds, keys)


@dataclass(frozen=True)
class Agreed:
    """A client's signature of who takes part in a round and who is left (`privacy.masking.signatures.story`).

    Args:
        round: it is about.
        client: who signs.
        signature: by the key that signed the client's keys.
    """

    round: int
    client: int
    signature: bytes

    def pack(self) -> bytes:
        """Serialise."""
        return _packed(_AGREED, self.round, self.client, [(self.signature,)])

    @classmethod
    def unpack(cls, data: bytes) -> Agreed:
        """What `pack` wrote."""
        number, client, entries = _unpacked(_AGREED, data)
        if len(entries) != 1:
            raise MessageError(f"{len(entries)} signatures; expected 1")
        return cls(number, client, *entries[0])


@dataclass(frozen=True)
class Agreements:
    """Signatures of clients, relayed by the server.

    Args:
        round: it is about.
        client: its recipient.
        signatures: by client.
    """

    round: int
    client: int
    signatures: Mapping[int, bytes]

    def pack(self) -> bytes:
        """Serialise."""
        return _packed(_AGREEMENTS, self.round, self.client, list(self.signatures.items()))

    @classmethod
    def unpack(cls, data: bytes) -> Agreements:
        """What `pack` wrote."""
        number, client, entries = _unpacked(_AGREEMENTS, data)
        return cls(number, client, dict(entries))


def _either(data: bytes, plain: int, signed: int) -> int:
    """The kind of a message, one of two."""
    return signed if data[3:4] == bytes([signed]) else plain


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
    if kind not in _ONE and len({one[0] for one in entries}) < count:
        raise MessageError("a message about masks that names a client twice")
    return number, client, entries
