"""Cryptographic primitives of masks, all from the package cryptography (extra `privacy`).

Keys are agreed on by X25519 and HKDF-SHA256, masks are keystreams of ChaCha20, and what a client says to another by way
of the server is sealed with ChaCha20-Poly1305.
"""

from __future__ import annotations

import hashlib
import importlib
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ownview.base.errors import MessageError, SettingError
from ownview.base.extras import how_to_install

SECRET = 32
"""Bytes of a private key, a public key, an agreed key and a seed."""
TAG = 16
"""Bytes that sealing adds."""

CHECK = 16
"""Bytes of a share's check."""

Entropy = Callable[[int], bytes]
"""A number of bytes -> so many unpredictable ones; `secrets.token_bytes` on a device."""

Words = npt.NDArray[np.uint32]
"""Whole numbers modulo 2^32, which numpy's addition and subtraction of this type keep to."""


class _Package(NamedTuple):
    """The parts of the package that are used."""

    x25519: Any
    hashes: Any
    hkdf: Any
    ciphers: Any
    aead: Any
    InvalidTag: type[Exception]


def require_package() -> None:
    """Refuse to begin without the package."""
    _package()


class KeyPair:
    """A private key and the public one that goes with it.

    Args:
        private: 32 random bytes.
    """

    def __init__(self, private: bytes) -> None:
        self.private = private
        self._key = _package().x25519.X25519PrivateKey.from_private_bytes(private)
        self.public: bytes = self._key.public_key().public_bytes_raw()

    def agreed(self, other: bytes, purpose: bytes) -> bytes:
        """32 bytes that only the two holders of these keys know; the same for both of them.

        Args:
            other: the other's public key.
            purpose: what they are for; other purposes have other bytes.
        """
        package = _package()
        try:
            common = self._key.exchange(package.x25519.X25519PublicKey.from_public_bytes(other))
        except ValueError as error:
            raise MessageError(f"no valid public key: {error}") from error
        info = purpose + b"".join(sorted((self.public, other)))
        derived: bytes = package.hkdf.HKDF(package.hashes.SHA256(), SECRET, None, info).derive(common)
        return derived


def usable(public: bytes) -> bool:
    """Whether others can agree on bytes with this public key: not with a point of small order, which none makes."""
    try:
        _probe().agreed(public, b"")
    except MessageError:
        return False
    return True


@cache
def _probe() -> KeyPair:
    """Any key shows it; this one is no secret."""
    return KeyPair(bytes([64]) * SECRET)


def stream(seed: bytes, count: int) -> Words:
    """[count] the first words of a seed's keystream. A seed is used for one stream and never again."""
    ciphers = _package().ciphers
    cipher = ciphers.Cipher(ciphers.algorithms.ChaCha20(seed, bytes(16)), mode=None)
    return np.frombuffer(cipher.encryptor().update(bytes(4 * count)), dtype="<u4").astype(np.uint32, copy=False)


def sealed(key: bytes, number: int, content: bytes, about: bytes) -> bytes:
    """Authenticated encryption: readable with the key alone, changes are detected.

    Args:
        key: of 32 bytes.
        number: the nonce; never reuse a (key, nonce) pair.
        content: the plaintext.
        about: associated data: authenticated, not encrypted.
    """
    box: bytes = _package().aead.ChaCha20Poly1305(key).encrypt(number.to_bytes(12, "big"), content, about)
    return box


def opened(key: bytes, number: int, box: bytes, about: bytes) -> bytes:
    """Decrypt what `sealed` made; refuses altered messages."""
    package = _package()
    try:
        content: bytes = package.aead.ChaCha20Poly1305(key).decrypt(number.to_bytes(12, "big"), box, about)
    except package.InvalidTag as error:
        raise MessageError("a sealed share was changed on its way, or is not meant for this client") from error
    return content


def check(secret: bytes, about: bytes) -> bytes:
    """SHA-256 by which a secret of 256 random bits is known again: it says nothing of one that was not shown."""
    return hashlib.sha256(b"ownview check" + about + secret).digest()


@cache
def _package() -> _Package:
    """The package, imported at first use."""
    primitives = "cryptography.hazmat.primitives"
    try:
        return _Package(
            importlib.import_module(f"{primitives}.asymmetric.x25519"),
            importlib.import_module(f"{primitives}.hashes"),
            importlib.import_module(f"{primitives}.kdf.hkdf"),
            importlib.import_module(f"{primitives}.ciphers"),
            importlib.import_module(f"{primitives}.ciphers.aead"),
            importlib.import_module("cryptography.exceptions").InvalidTag,
        )
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != "cryptography":
            raise
        raise SettingError(
            f"masks need the package cryptography, which is not installed: {how_to_install('privacy')}; a "
            "simulation can leave them out: masks=skipped"
        ) from None
