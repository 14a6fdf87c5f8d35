"""Who took part in a release, as keyed hashes: enough to see that two releases share people, and no list of names.

[n] hashes of 64 bits, sorted, in a file named by its SHA-256, so that the same people are kept once. Two people with
one hash are taken for one, which may count a release too often and never too rarely. The key is of this ledger alone.

The items of a release are kept in the same way: data without a common item is of different shops, whose ids 1, 2, 3
are different people. A file that has grown, another month, and two files together share items with what was before.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ownview.base.errors import OutputError
from ownview.base.files import make_folder, write_bytes

People = npt.NDArray[np.uint64]
OWN = "own"
"""The world of all ids that are of no dataset of the catalogue: where data shares an item, equal ids are one person."""

_NAME = b"ownview people"


def hashed(key: bytes, world: str, ids: Iterable[object]) -> People:
    """[n] sorted hashes of users, or of items.

    Args:
        key: of the ledger.
        world: whose ids they are; equal ids of different worlds are different people.
        ids: of the users or items.
    """
    found = bytearray()
    for one in ids:
        found += hashlib.blake2b(f"{world}\0{one}".encode(), digest_size=8, key=key, person=_NAME).digest()
    return np.unique(np.frombuffer(bytes(found), dtype="<u8").astype(np.uint64))


def write_people(folder: Path, people: People) -> str:
    """Keep them in the folder; returns the name of their file."""
    content = people.astype("<u8").tobytes()
    name = hashlib.sha256(content).hexdigest()
    make_folder(folder, private=True)
    if not (folder / name).is_file():
        write_bytes(folder / name, content, private=True)
    return name


def read_people(folder: Path, name: str) -> People:
    """Read them back.

    Raises:
        OutputError: the file is missing or damaged.
    """
    path = folder / name
    try:
        content = path.read_bytes()
    except OSError as error:
        raise OutputError(
            f"{path}: cannot be read: {error.strerror or error}; it tells who took part in a release, so nothing is "
            "released; bring a sound copy of the ledger's folder back"
        ) from None
    if hashlib.sha256(content).hexdigest() != name:
        raise OutputError(f"{path}: is damaged, so nothing is released; bring a sound copy of the ledger's folder back")
    return np.frombuffer(content, dtype="<u8").astype(np.uint64)
