"""Ed25519 keys of those who sign results: private ones, of a file or for one set of results, and lists of known ones.

A file of known keys has one a line: the public key, as result files have it, a blank, and the name that it may sign as.
Empty lines and lines that begin with # are skipped. With such a file a name is no longer freely chosen.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ownview.base.errors import DataError, SettingError
from ownview.base.extras import how_to_install
from ownview.base.files import write_bytes

_MOST = 2**20
"""Bytes of a file of known keys."""


def new_key() -> Any:
    """A private key, in memory alone: what it signed can be verified, and nothing more is signed once it is gone."""
    return _ed25519()[0].generate()


def private_key(path: Path) -> Any:
    """The private key of a file in PEM without a password; made, for its owner's eyes alone, where it is not there."""
    kind, _, _ = _ed25519()
    from cryptography.hazmat.primitives import serialization as form  # noqa: PLC0415 - an extra

    if not path.exists():
        made = new_key()
        write_bytes(
            path, made.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption()), private=True
        )
        return made
    try:
        key = form.load_pem_private_key(path.read_bytes(), None)
    except (ValueError, TypeError, OSError) as error:
        raise SettingError(f"{path}: is no private key in PEM without a password: {error}") from None
    if not isinstance(key, kind):
        raise SettingError(
            f"{path}: is another kind of key; expected Ed25519, as in: openssl genpkey -algorithm ed25519"
        )
    return key


def public_text(private: Any) -> str:
    """The public key that belongs to a private one, in base64."""
    return base64.b64encode(private.public_key().public_bytes_raw()).decode()


def signature(private: Any, content: bytes) -> str:
    """Of some bytes, in base64."""
    return base64.b64encode(private.sign(content)).decode()


def holds(public: str, signed: str, content: bytes) -> bool:
    """Whether a signature is that of a public key; both in base64."""
    _, invalid, public_key = _ed25519()
    try:
        public_key.from_public_bytes(_raw(public)).verify(base64.b64decode(signed, validate=True), content)
    except (invalid, ValueError):
        return False
    return True


def fingerprint(public: str) -> str:
    """16 hexadecimal digits of a public key, for people to compare."""
    return hashlib.sha256(_raw(public)).hexdigest()[:16]


def known_keys(path: Path) -> Mapping[str, str]:
    """Names by public key, of a file of known ones."""
    if not path.is_file() or path.stat().st_size > _MOST:
        raise DataError(f"{path}: no file of known keys of at most {_MOST:,} bytes")
    found: dict[str, str] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8-sig", errors="replace").splitlines(), start=1):
        key, _, name = line.strip().partition(" ")
        if not key or key.startswith("#"):
            continue
        if not _is_key(key) or not name.strip():
            raise DataError(f"{path}, line {number}: expected a public key in base64, a blank, and a name")
        found[key] = name.strip()
    return found


def _is_key(text: str) -> bool:
    try:
        return len(_raw(text)) == 32
    except ValueError:
        return False


def _raw(public: str) -> bytes:
    return base64.b64decode(public, validate=True)


def _ed25519() -> tuple[Any, Any, Any]:
    try:
        from cryptography.exceptions import InvalidSignature  # noqa: PLC0415 - an extra
        from cryptography.hazmat.primitives.asymmetric import ed25519  # noqa: PLC0415
    except ImportError:
        hint = how_to_install("privacy")
        raise SettingError(f"signatures need the package cryptography, which is not installed: {hint}") from None
    return ed25519.Ed25519PrivateKey, InvalidSignature, ed25519.Ed25519PublicKey
