"""Whose signatures a place believes under signed masks: `signers.txt`, which people carry from place to place.

The file has a line for every place, its own among them: a name for people, and the public key that
`ownview client signer` prints there. What comes from the server instead would protect against no server that lies.
"""

from __future__ import annotations

import secrets
from pathlib import Path

from ownview.base.errors import DataError
from ownview.base.files import drop_unfinished, write_bytes
from ownview.privacy.masking.primitives import SECRET, require_package
from ownview.privacy.masking.signatures import PUBLIC, Signer, Trust

SIGNERS = "signers.txt"
_EXPECTED = "expected a line for every place: a name, and the key that ownview client signer prints there"


def own_signer(file: Path) -> Signer:
    """The key that a place signs with, made here at its first use; it never leaves."""
    require_package()
    if not file.is_file():
        drop_unfinished(file)
        write_bytes(file, secrets.token_bytes(SECRET), private=True)
    private = file.read_bytes()
    if len(private) != SECRET:
        raise DataError(
            f"{file}: is damaged: {len(private)} bytes; expected {SECRET}: put a copy back, or remove it and carry "
            "the new key to all places"
        )
    return Signer(private)


def trust(file: Path, signer: Signer) -> Trust:
    """What a place signs with and whose signatures it believes; `DataError` where its own key is not listed."""
    known = read_signers(file)
    if signer.public not in known.values():
        raise DataError(f"{file}: does not list this place's own key {signer.public.hex()}; {_EXPECTED}")
    return Trust(signer, frozenset(known.values()))


def read_signers(file: Path) -> dict[str, bytes]:
    """Public keys by name; empty lines and lines that begin with # say nothing."""
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{file}: cannot be read ({error}); masks=signed needs it: {_EXPECTED}") from error
    known: dict[str, bytes] = {}
    for number, line in enumerate(lines, start=1):
        name, _, key = line.strip().partition(" ")
        if not name or name.startswith("#"):
            continue
        try:
            public = bytes.fromhex(key.strip())
        except ValueError:
            public = b""
        if len(public) != PUBLIC:
            raise DataError(f"{file}, line {number}: no key of {2 * PUBLIC} hexadecimal digits; {_EXPECTED}")
        if name in known or public in known.values():
            raise DataError(f"{file}, line {number}: {name[:80]!r} or its key stands there twice; {_EXPECTED}")
        known[name] = public
    return known
