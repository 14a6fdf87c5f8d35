"""Secret randomness: keys from the operating system's entropy, and the cryptographic streams that are drawn from them.

A key of 32 bytes is never a stream itself. It gives every purpose a key of its own through a keyed hash (BLAKE2b),
a one-way function, and each of those is used for one stream of ChaCha20 from its beginning. So no (key,
nonce) pair is ever used for two streams, and a stream that became known would say nothing of another.

A key from a seed draws noise that the seed reveals. It is for simulations that must repeat, and marked.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import secrets
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ownview.base.errors import SettingError
from ownview.base.extras import how_to_install

KEY = 32
"""Bytes of a key."""

_NAME = b"ownview noise 1"
"""Sets these hashes apart from all others that are made with BLAKE2b."""

Words = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class NoiseKey:
    """A key for noise.

    Args:
        key: 32 bytes; never printed.
        seeded: whether it comes from a seed, so that the seed reveals all noise.
    """

    key: bytes = field(repr=False)
    seeded: bool = False

    def __post_init__(self) -> None:
        if len(self.key) != KEY:
            raise ValueError(f"a key of {len(self.key)} bytes; expected {KEY}")

    @classmethod
    def fresh(cls) -> NoiseKey:
        """A fresh secret key."""
        return cls(secrets.token_bytes(KEY))

    @classmethod
    def from_seed(cls, seed: int) -> NoiseKey:
        """The key of a simulation that must repeat: not private."""
        return cls(hashlib.blake2b(f"seed {seed}".encode(), digest_size=KEY, person=_NAME).digest(), seeded=True)

    def derived(self, *purpose: str | int) -> NoiseKey:
        """Derive the key for one purpose; it reveals neither this key nor those for other purposes."""
        return NoiseKey(self._hashed(purpose, b""), self.seeded)

    def stream(self, *purpose: str | int, content: npt.NDArray[Any] | None = None) -> Stream:
        """The stream for one purpose.

        Args:
            purpose: names the stream.
            content: what the noise will be added to. A secret key draws different noise for different content, so that
                subtracting two releases for one purpose does not cancel the noise; the same content gets the same
                noise again, and releasing it twice reveals nothing more. A seeded key ignores it, so that sums which
                differ by rounding get the same noise.
        """
        digest = b"" if content is None or self.seeded else hashlib.blake2b(np.ascontiguousarray(content).data).digest()
        return Stream(self._hashed(purpose, digest))

    @property
    def name(self) -> str:
        """A public name of the key, derived one way: releases of one name share one key."""
        return self._hashed(("release",), b"")[:16].hex()

    def number(self, *purpose: str | int) -> int:
        """63 bits for draws that need not be secret; they do not reveal the key."""
        return int.from_bytes(self._hashed(purpose, b"")[:8], "little") >> 1

    def _hashed(self, purpose: tuple[str | int, ...], content: bytes) -> bytes:
        about = json.dumps(list(purpose)).encode()  # no two purposes are written alike
        return hashlib.blake2b(about + b"\0" + content, digest_size=KEY, key=self.key, person=_NAME).digest()


class Stream:
    """Random bits from ChaCha20 (RFC 8439), keyed once.

    Args:
        key: 32 bytes that no other stream has.
    """

    def __init__(self, key: bytes) -> None:
        ciphers = _ciphers()
        self._encryptor = ciphers.Cipher(ciphers.algorithms.ChaCha20(key, bytes(16)), mode=None).encryptor()
        self._zeros = b""

    def words(self, count: int) -> Words:
        """[count] words of the next 64 bits each."""
        size = 8 * count
        if len(self._zeros) < size:
            self._zeros = bytes(size)
        found = np.empty(count, dtype="<u8")
        if count:
            self._encryptor.update_into(memoryview(self._zeros)[:size], found.data.cast("B"))
        return found.astype(np.uint64, copy=False)

    def units(self, count: int) -> npt.NDArray[np.float64]:
        """[count] uniform numbers in [0, 1), multiples of 2^-53."""
        return np.asarray((self.words(count) >> np.uint64(11)) * 2.0**-53, dtype=np.float64)


def require_package() -> None:
    """Refuse to begin without the package."""
    _ciphers()


def _ciphers() -> Any:
    """Ciphers of the package cryptography, imported at first use."""
    try:
        return importlib.import_module("cryptography.hazmat.primitives.ciphers")
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != "cryptography":
            raise
        raise SettingError(
            "noise under a budget needs the package cryptography, which is not installed: " + how_to_install("privacy")
        ) from None
