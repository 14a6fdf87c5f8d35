"""Bring a dataset of the catalogue here: download, verify, unpack, convert, keep."""

from __future__ import annotations

import tempfile
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

from ownview.base.errors import DownloadError
from ownview.base.files import make_folder, sha256_of
from ownview.data.datasets.catalog import Entry, how_to_get
from ownview.data.datasets.download import Progress, download
from ownview.data.datasets.storage import INTERACTIONS, embedded_dir, store, write_dir
from ownview.data.datasets.unpack import unpack
from ownview.data.interactions import Interactions
from ownview.data.reading.readers import read


def fetch(entry: Entry, data_dir: Path | None = None, *, progress: Progress | None = None) -> Path:
    """Return the interactions file of the dataset, downloading it where it is not here yet.

    A download that is already in the dataset's folder (put there by hand, say on a machine without
    network) is verified and used, and left where it is.

    Args:
        entry: the dataset.
        data_dir: folder of datasets; $OWNVIEW_DATA or the cache where None.
        progress: called with bytes done and bytes in all (None where unknown).

    Raises:
        DownloadError: no direct download, or it could not be had whole and verified.
    """
    if entry.embedded:
        return embedded_dir() / entry.name / INTERACTIONS
    folder = write_dir(data_dir)
    kept = folder / entry.name / INTERACTIONS
    if kept.is_file():
        return kept
    if not entry.urls:
        raise DownloadError(f"{entry.name}: has no direct download; {how_to_get(entry)}")
    make_folder(kept.parent)
    return _from_any(entry, folder, progress)


def _from_any(entry: Entry, folder: Path, progress: Progress | None) -> Path:
    """Try the addresses in order; the last failure is the one reported."""
    failure: DownloadError | None = None
    for url in entry.urls:
        try:
            return _from(url, entry, folder, progress)
        except DownloadError as error:
            failure = error
    assert failure is not None
    raise failure


def _from(url: str, entry: Entry, folder: Path, progress: Progress | None) -> Path:
    source = folder / entry.name / Path(urlsplit(url).path).name
    by_hand = source.is_file()
    if by_hand:
        digest = sha256_of(source)
        if entry.sha256 is not None and digest != entry.sha256:
            raise DownloadError(f"{source}: wrong SHA-256 {digest}; expected {entry.sha256}; replace the file")
    else:
        digest = download(url, source, sha256=entry.sha256, progress=progress)
    provenance = {
        "dataset": entry.name,
        "url": url,
        "sha256": digest,
        "sha256_expected": entry.sha256,
        "bytes": source.stat().st_size,
        "member": entry.member,
        "fetched": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    try:
        data = _converted(entry, source)
    finally:
        # Kept in no case: good, it is stored in the one form; bad, the next try must fetch it anew.
        if not by_hand:
            source.unlink(missing_ok=True)
    return store(data, entry.name, folder, provenance)


def _converted(entry: Entry, source: Path) -> Interactions:
    with tempfile.TemporaryDirectory(dir=source.parent, prefix=".unpacking-") as scratch:
        file = source if entry.member is None else unpack(source, entry.member, Path(scratch))
        return read(
            file,
            columns=entry.columns,
            name=entry.name,
            separator=entry.separator,
            allow_negative_times=entry.allow_negative_times,
        )
