"""Items in stock: a file of ids, one a line, that is read again when it changes."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ownview.base.errors import DataError
from ownview.serve.model import Mask, ServedModel

LARGEST = 256 << 20
"""Bytes of the file."""


class Stock:
    """What is in stock now.

    Args:
        path: of a UTF-8 file; lines that are empty are passed over.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.ids: frozenset[str] = frozenset()
        self._stamp: tuple[int, int, int] | None = None
        self._masks: dict[str, Mask] = {}

    def refresh(self) -> bool:
        """Read the file where it is another than last time; whether it was.

        Raises:
            DataError: it cannot be read; what was known stays.
        """
        try:
            about = self.path.stat()
            stamp = (about.st_ino, about.st_mtime_ns, about.st_size)
            if stamp == self._stamp:
                return False
            self._stamp = stamp
            if about.st_size > LARGEST:
                raise DataError(f"{self.path}: {about.st_size:,} bytes; expected ids of items, {LARGEST:,} at most")
            lines = self.path.read_text(encoding="utf-8-sig").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise DataError(f"{self.path}: cannot be read: {error}; expected ids of items, one a line") from error
        self.ids = frozenset(line.strip() for line in lines) - {""}
        self._masks = {}
        return True

    def mask(self, model: ServedModel) -> Mask:
        """[m] which items of a model are in stock; not to be written to."""
        found = self._masks.get(model.version)
        if found is None:
            found = np.fromiter((item in self.ids for item, _ in model.items), bool, model.size)
            self._masks = {**dict(list(self._masks.items())[-3:]), model.version: found}
        return found
