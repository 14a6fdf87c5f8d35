"""Take one file out of an untrusted zip archive."""

from __future__ import annotations

import lzma
import stat
import struct
import zipfile
import zlib
from pathlib import Path, PurePosixPath

from ownview.base.errors import DownloadError, suggestion
from ownview.data.reading.source_text import LARGEST_BYTES

_DAMAGE = (
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, EOFError),
    *(NotImplementedError, RuntimeError, ValueError, OSError),  # what unknown methods, bad names and bzip2 come as
)


def unpack(archive: Path, member: str, folder: Path, *, largest: int = LARGEST_BYTES) -> Path:
    """Write the member into the folder under its last name and return its path.

    The whole archive is refused when any entry would leave the folder or is a link: such an archive is
    not what its makers published.

    Raises:
        DownloadError: no zip, damaged, unsafe, too large when unpacked, or without the member.
    """
    try:
        with zipfile.ZipFile(archive) as opened:
            for info in opened.infolist():
                _refuse_unsafe(archive, info)
            return _extract(archive, opened, _member(archive, opened, member), folder, largest)
    except _DAMAGE as error:
        raise DownloadError(f"{archive.name}: not a sound zip archive ({error}); expected {member} in it") from None


def _extract(archive: Path, opened: zipfile.ZipFile, info: zipfile.ZipInfo, folder: Path, largest: int) -> Path:
    target = folder / PurePosixPath(info.filename).name
    written = 0
    with opened.open(info) as source, target.open("wb") as file:
        # Counted while unpacking: the size an archive states need not be true.
        while chunk := source.read(1 << 20):
            written += len(chunk)
            if written > largest:
                raise DownloadError(f"{archive.name}: {info.filename} unpacks to over {largest:,} bytes; refused")
            file.write(chunk)
    return target


def _member(archive: Path, opened: zipfile.ZipFile, member: str) -> zipfile.ZipInfo:
    files = [info for info in opened.infolist() if not info.is_dir()]
    exact = [info for info in files if info.filename == member]
    # Makers have repacked archives with and without a top folder.
    by_name = [info for info in files if PurePosixPath(info.filename).name == PurePosixPath(member).name]
    for found in (exact, by_name):
        if len(found) == 1:
            if found[0].flag_bits & 0x1:
                raise DownloadError(f"{archive.name}: {member} is encrypted; expected a plain archive")
            return found[0]
    names = [info.filename for info in files]
    raise DownloadError(f"{archive.name}: no file {member!r} in the archive{suggestion(member, names)}")


def _refuse_unsafe(archive: Path, info: zipfile.ZipInfo) -> None:
    name = info.orig_filename.replace("\\", "/")
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or ":" in name or "\0" in name:
        raise DownloadError(f"{archive.name}: unsafe name {info.orig_filename!r} in the archive; refused")
    if stat.S_ISLNK(info.external_attr >> 16):
        raise DownloadError(f"{archive.name}: {info.filename!r} is a link; expected plain files; refused")
