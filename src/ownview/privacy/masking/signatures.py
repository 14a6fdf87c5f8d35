"""Signatures, by which clients of a masked sum see whether a server lies to them (Bonawitz et al. 2017, section 6).

Without them a server can hand out keys of its own, open what is sealed for them, and read a single upload. And by
telling every client another story about who is left it gets a sum over fewer than T clients. With them

    keys     every client signs its keys of a round; it seals shares only for keys signed by a public key that it knows
             from elsewhere than the server
    story    every client that is left signs who takes part and who is left; it shows no share before T have signed
             the same

A server that works with c clients can have two stories signed only where 2 T <= n + c. Signatures are Ed25519.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from struct import pack
from typing import Any

PUBLIC, SIGNATURE = 32, 64
"""Bytes of a public key and of a signature."""
_KEYS, _STORY = b"ownview signed keys", b"ownview signed story"


class Signer:
    """A key that signs.

    Args:
        private: 32 random bytes.
    """

    def __init__(self, private: bytes) -> None:
        self._key = _ed25519().Ed25519PrivateKey.from_private_bytes(private)
        self.public: bytes = self._key.public_key().public_bytes_raw()

    def keys(self, content: bytes) -> bytes:
        """Signature of a client's keys."""
        signature: bytes = self._key.sign(_KEYS + content)
        return signature

    def story(self, content: bytes) -> bytes:
        """Signature of who takes part and who is left."""
        signature: bytes = self._key.sign(_STORY + content)
        return signature


@dataclass(frozen=True)
class Trust:
    """A client's signing key, and the public keys that it accepts.

    Args:
        signer: its own, or that of its place.
        known: public keys of all possible participants, handed over by people and not by the server.
    """

    signer: Signer
    known: frozenset[bytes]


def signed_keys(public: bytes, signature: bytes, content: bytes) -> bool:
    """Whether keys are signed by this public key."""
    return _signed(public, signature, _KEYS + content)


def signed_story(public: bytes, signature: bytes, content: bytes) -> bool:
    """Whether a story is signed by this public key."""
    return _signed(public, signature, _STORY + content)


def story(number: int, keys: Sequence[bytes], arrived: Mapping[int, bool]) -> bytes:
    """Digest of who takes part in a round, by their keys in the order of the ring, and who of them is left."""
    arrivals = b"".join(pack("<I?", client, arrived[client]) for client in sorted(arrived))
    counts = pack("<3I", number, len(keys), len(arrived))
    return sha256(counts + b"".join(sha256(one).digest() for one in keys) + arrivals).digest()


def _signed(public: bytes, signature: bytes, content: bytes) -> bool:
    invalid = importlib.import_module("cryptography.exceptions").InvalidSignature
    try:
        _ed25519().Ed25519PublicKey.from_public_bytes(public).verify(signature, content)
    except (invalid, ValueError):
        return False
    return True


def _ed25519() -> Any:
    return importlib.import_module("cryptography.hazmat.primitives.asymmetric.ed25519")
