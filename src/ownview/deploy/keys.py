"""Which key is whose: names of places by the fingerprints of their keys. The coordinator's side alone decides it."""

from __future__ import annotations

import json
from pathlib import Path

from ownview.base.errors import DataError
from ownview.base.files import write_json


class KnownKeys:
    """Names by fingerprint, in a file; it is read anew for everybody who comes, so that places may come at any time.

    Args:
        file: JSON; no place is known where it is not there.
    """

    def __init__(self, file: Path) -> None:
        self.file = file

    def names(self) -> dict[str, str]:
        """By fingerprint."""
        if not self.file.is_file():
            return {}
        try:
            found = json.loads(self.file.read_text(encoding="utf-8"))
        except ValueError as error:
            raise DataError(f"{self.file}: is no JSON ({error}); expected names by fingerprints of keys") from error
        return {str(key): str(name) for key, name in found.items()}

    def enrol(self, name: str, fingerprint: str) -> None:
        """From now on whoever has this key is the place of this name; an earlier key of the place counts no more."""
        kept = {key: known for key, known in self.names().items() if known != name}
        if fingerprint in kept:
            raise DataError(
                f"{self.file}: key {fingerprint[:16]} is that of place {kept[fingerprint]!r}; one key, one place"
            )
        write_json(self.file, {**kept, fingerprint: name})
