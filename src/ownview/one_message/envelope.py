"""The bytes of a message, and the two shares that it is cut into; docs/one-message.md has every byte.

    0   4   "OVM1"
    4   1   the server that it is for: "a" or "b"
    5   1   1 adds a contribution, 2 changes one, 3 takes one out
    6   2   0
    8  32   name of the agreement
   40  16   name of the message, random
   56  16   name of the contribution: of the message that added it
   72  ..   HPKE (RFC 9180, base mode, X25519, HKDF-SHA256, AES-256-GCM): enc [32], ciphertext; info is
            "ownview one message" and the 72 bytes before

Sealed: 32 bytes, and the share. When a contribution is added the 32 bytes are SHA-256 of a secret that its receipt
holds, later the secret itself. Share a is a key of 32 bytes; share b the numbers minus that key's stream, 32 bits
each, lowest byte first: AES-256-CTR from a counter of 0, encrypting zeros.
"""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass
from enum import IntEnum
from hashlib import sha256

import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite

from ownview.base.errors import MessageError
from ownview.one_message.numbers import Numbers
from ownview.one_message.terms import SHARES, Share, Terms

MAGIC = b"OVM1"
HEAD = 72
SEAL = 32 + 16
"""Bytes that sealing adds: the encapsulated key and the tag."""
INFO = b"ownview one message"
PROOF = 32
NAME = 16
KEY = 32
_SUITE = Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.AES_256_GCM)


class Operation(IntEnum):
    """What a message does."""

    ADD = 1
    CHANGE = 2
    TAKE_OUT = 3


@dataclass(frozen=True)
class Message:
    """What a server reads.

    Args:
        operation: what it does.
        name: of the message.
        contribution: that it adds or changes.
        proof: SHA-256 of the contribution's secret.
        share: a key, or numbers as bytes.
    """

    operation: Operation
    name: bytes
    contribution: bytes
    proof: bytes
    share: bytes


@dataclass(frozen=True)
class Receipt:
    """What a person keeps.

    Args:
        contribution: its name.
        secret: that changes it or takes it out.
    """

    contribution: bytes
    secret: bytes

    @classmethod
    def new(cls) -> Receipt:
        """From the system's entropy."""
        return cls(secrets.token_bytes(NAME), secrets.token_bytes(PROOF))


def stream(key: bytes, size: int) -> Numbers:
    """[size] numbers of a key."""
    made = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor().update(bytes(4 * size))
    return np.frombuffer(made, dtype="<u4").astype(np.uint32, copy=False)


def length(terms: Terms, share: Share) -> int:
    """Bytes of every message to a server."""
    return HEAD + SEAL + PROOF + (KEY if share == "a" else 4 * terms.size)


def sealed(terms: Terms, numbers: Numbers, receipt: Receipt, operation: Operation) -> tuple[dict[Share, bytes], bytes]:
    """A message to each server, and its name."""
    key = secrets.token_bytes(KEY)
    name = receipt.contribution if operation is Operation.ADD else secrets.token_bytes(NAME)
    proof = sha256(receipt.secret).digest() if operation is Operation.ADD else receipt.secret
    parts = {"a": key, "b": (numbers - stream(key, terms.size)).astype("<u4").tobytes()}
    made: dict[Share, bytes] = {}
    for share in SHARES:
        head = MAGIC + share.encode() + bytes([operation, 0, 0]) + terms.name + name + receipt.contribution
        public = X25519PublicKey.from_public_bytes(terms.keys[share])
        made[share] = head + _SUITE.encrypt(proof + parts[share], public, INFO + head)
    return made, name


def opened(terms: Terms, share: Share, key: X25519PrivateKey, body: bytes) -> Message:
    """A message, as its server reads it.

    Raises:
        MessageError: it is for another server or agreement, of another version, size or key.
    """
    if len(body) != length(terms, share):
        raise MessageError(f"{len(body):,} bytes; expected {length(terms, share):,}")
    head = body[:HEAD]
    if head[:4] != MAGIC or head[6:8] != bytes(2):
        raise MessageError("is no message of version 1")
    if head[4:5] != share.encode():
        raise MessageError(f"is for the other server; expected share {share}")
    if not hmac.compare_digest(head[8:40], terms.name):
        raise MessageError("is of another agreement")
    if head[5] not in Operation._value2member_map_:
        raise MessageError(f"operation {head[5]}; expected 1, 2 or 3")
    operation, name, contribution = Operation(head[5]), head[40:56], head[56:72]
    if (operation is Operation.ADD) != (name == contribution):
        raise MessageError("the name of the message does not go with its operation")
    try:
        plain = _SUITE.decrypt(body[HEAD:], key, INFO + head)
    except (InvalidTag, ValueError):
        raise MessageError("was not sealed to this server's key") from None
    proof = plain[:PROOF] if operation is Operation.ADD else sha256(plain[:PROOF]).digest()
    return Message(operation, name, contribution, proof, plain[PROOF:])
