"""Files of a server of shares, which are named in its journal once they are whole."""

from __future__ import annotations

import os
from pathlib import Path

from ownview.base.files import sync_folder, writing
from ownview.base.rights import OWN_FILE


def write_private(path: Path, content: bytes) -> None:
    """Whole and on the disk under its own name only when this returns; a half-written one has no row in the journal."""
    with writing(path):
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, OWN_FILE)
        try:
            with os.fdopen(handle, "wb", closefd=False) as file:
                file.write(content)
            os.fsync(handle)
        except OSError:
            path.unlink()  # what is half-written would take room that is lacking
            raise
        finally:
            os.close(handle)
        sync_folder(path.parent)
