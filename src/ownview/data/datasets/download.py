"""Download one file over HTTP: resumed after a break, never glued from two versions, verified at the end."""

from __future__ import annotations

import http.client
import json
import re
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ownview.base.errors import DownloadError
from ownview.base.files import sha256_of, write_bytes

Progress = Callable[[int, int | None], None]
"""Called with the bytes that are here and the bytes there will be (None where the server does not say)."""

_CHUNK = 1 << 18
_TIMEOUT_SECONDS = 60
_CONTENT_RANGE = re.compile(r"bytes (\d+)-\d+/(\d+)")


@dataclass(frozen=True)
class _Version:
    """What tells one version of the remote file from another."""

    url: str
    etag: str | None
    modified: str | None
    total: int | None

    def validator(self) -> str | None:
        """For If-Range; weak tags do not promise equal bytes, so they do not count."""
        strong = self.etag if self.etag and not self.etag.startswith("W/") else None
        return strong or self.modified


def download(url: str, target: Path, *, sha256: str | None = None, progress: Progress | None = None) -> str:
    """Fetch url to target and return its SHA-256; a broken download stays as `.part` and is resumed.

    Raises:
        DownloadError: unreachable, refused, cut short, or another checksum than expected (the file is
            then removed, so that the next try starts afresh).
    """
    if urlsplit(url).scheme not in ("http", "https"):
        raise DownloadError(f"{url}: expected an http or https address")
    part = target.with_name(target.name + ".part")
    _receive(url, part, progress or (lambda done, total: None))
    found = sha256_of(part)
    if sha256 is not None and found != sha256:
        part.unlink()
        _note(part).unlink(missing_ok=True)
        raise DownloadError(f"{url}: wrong SHA-256 {found}; expected {sha256}; the file was removed")
    part.replace(target)
    _note(part).unlink(missing_ok=True)
    return found


def _receive(url: str, part: Path, progress: Progress) -> None:
    known = _known_version(url, part)
    done = part.stat().st_size if known is not None else 0
    if known is not None and known.total is not None and done == known.total:
        return
    try:
        response, version, start = _connect(url, known, done)
        with response:
            write_bytes(_note(part), json.dumps(asdict(version)).encode())
            with part.open("r+b" if start else "wb") as file:
                file.seek(start)
                file.truncate()
                _copy(response, file, start, version.total, progress)
    except urllib.error.HTTPError as error:
        raise DownloadError(_refused(url, error)) from None
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", None) or error
        raise DownloadError(f"{url}: cannot be reached or broke off ({reason}); run it again to go on") from None
    size = part.stat().st_size
    if version.total is not None and size != version.total:
        raise DownloadError(
            f"{url}: truncated, {size:,} of {version.total:,} bytes came; run it again to fetch the rest"
        )


def _connect(url: str, known: _Version | None, done: int) -> tuple[Any, _Version, int]:
    """The open response, the version that is coming, and the offset it starts at.

    The offset is 0 unless the server goes on, in the same version, exactly where the part file ends.
    """
    if known is not None and done:
        response = _open(url, known, done)
        if response is not None:
            version, start = _version(url, response)
            if start == 0 or (start == done and version == known):
                return response, version, start
            response.close()
    response = _open(url, None, 0)
    return response, *_version(url, response)


def _open(url: str, known: _Version | None, done: int) -> Any:
    """Ask for the file, or for its rest; None when the server says there is no such rest."""
    headers = {"User-Agent": "ownview"}
    if known is not None:
        headers["Range"] = f"bytes={done}-"
        if known.validator() is not None:
            headers["If-Range"] = str(known.validator())
    try:
        return urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=_TIMEOUT_SECONDS)
    except urllib.error.HTTPError as error:
        if known is None or error.code != http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            raise
        error.close()
        return None


def _version(url: str, response: Any) -> tuple[_Version, int]:
    """Version and offset of what comes; the offset is -1 where a partial answer does not say it."""
    headers = response.headers
    length, start = headers.get("Content-Length"), 0
    if response.status == http.HTTPStatus.PARTIAL_CONTENT:
        span = _CONTENT_RANGE.fullmatch(headers.get("Content-Range", ""))
        start, length = (int(span[1]), span[2]) if span else (-1, None)
    total = int(length) if length else None
    return _Version(url, headers.get("ETag"), headers.get("Last-Modified"), total), start


def _copy(response: Any, file: Any, done: int, total: int | None, progress: Progress) -> None:
    progress(done, total)
    while chunk := response.read(_CHUNK):
        file.write(chunk)
        done += len(chunk)
        progress(done, total)


def _known_version(url: str, part: Path) -> _Version | None:
    """Version of the bytes in the part file; None when there is nothing safe to go on from."""
    if not part.exists():
        return None
    try:
        version = _Version(**json.loads(_note(part).read_text()))
    except (OSError, ValueError, TypeError):
        return None
    return version if version.url == url and version.total is not None else None


def _note(part: Path) -> Path:
    return part.with_name(part.name + ".json")


def _refused(url: str, error: urllib.error.HTTPError) -> str:
    if error.code == http.HTTPStatus.NOT_FOUND:
        return f"{url}: not found (HTTP 404); the file has moved, see the dataset's homepage"
    return f"{url}: refused (HTTP {error.code} {error.reason})"
