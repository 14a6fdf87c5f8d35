"""Two models behind one address: a sticky, keyed split, and a log of impressions without identities.

The arm of a unit (a session, an account) is a keyed hash of it: the same unit sees the same model for as long as key
and share stay, on every worker and after every restart, and without the key no one can say which, or choose it.

The log has, for a list that was shown: the hour, the arm, the model's version, a random name of the impression, and
one of `BUCKETS` buckets, which another keyed hash of the unit gives. A bucket is shared by all units that fall into it;
it is there because lists of one unit are alike, so that an interval must be taken over buckets and not over lists. No
history, no item, no unit and no address is in it.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import secrets
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ownview.base.errors import OutputError, SettingError
from ownview.base.files import write_bytes

Arm = Literal["a", "b"]
ARMS: tuple[Arm, Arm] = ("a", "b")

BUCKETS = 200
"""Of an arm: enough for a t interval to be close to a normal one, few enough for many units to share one."""

_KEY_BYTES = 32


@dataclass(frozen=True)
class Split:
    """Which units see model b.

    Args:
        key: secret; another key is another split.
        share: of units that see b.
    """

    key: bytes
    share: float

    def arm(self, unit: str) -> Arm:
        """Always the same for a unit."""
        return "b" if self._hash("arm", unit) < self.share * 2.0**64 else "a"

    def bucket(self, unit: str) -> int:
        """Of `BUCKETS`, independent of the arm."""
        return self._hash("bucket", unit) % BUCKETS

    def _hash(self, use: str, unit: str) -> int:
        digest = hashlib.blake2b(
            unit.encode("utf-8", "surrogatepass"), key=self.key, person=use.encode(), digest_size=8
        )
        return int.from_bytes(digest.digest(), "big")


def read_key(path: Path) -> bytes:
    """The key of a split; made from the system's entropy where there is no such file."""
    if not path.exists():
        write_bytes(path, secrets.token_bytes(_KEY_BYTES), private=True)
    key = path.read_bytes()
    if len(key) != _KEY_BYTES:
        raise SettingError(f"{path}: {len(key):,} bytes; expected a key of {_KEY_BYTES}, or no file: one is made")
    return key


class ImpressionLog:
    """Lines of JSON; several processes may write to one file, a line is one write.

    A line that a full disk or a kill has cut short is ended before the next one, so that one line is lost and not two.

    Args:
        path: of the file; it is made, for its owner alone, where it is not there.
    """

    def __init__(self, path: Path) -> None:
        try:
            self.handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
        except OSError as error:
            raise OutputError(f"{path}: cannot be written: {error.strerror}; choose another --log") from error

    def shown(self, arm: Arm, bucket: int, model: str) -> str:
        """Log a list; returns the name of the impression, which its outcome is reported with."""
        name = secrets.token_hex(12)
        self._write({"shown": name, "hour": _hour(), "arm": arm, "bucket": bucket, "model": model})
        return name

    def chosen(self, impression: str) -> None:
        """Log that something of a list was chosen."""
        self._write({"chosen": impression, "hour": _hour()})

    def begun(self, share: float) -> None:
        """Log which share of units sees model b from now on."""
        self._write({"split": share, "hour": _hour()})

    def close(self) -> None:
        """Let go of the file."""
        os.close(self.handle)

    def _write(self, about: dict[str, Any]) -> None:
        line = (json.dumps(about, separators=(",", ":")) + "\n").encode()
        size = os.fstat(self.handle).st_size  # 0 of what is no plain file
        if size and os.pread(self.handle, 1, size - 1) != b"\n":
            line = b"\n" + line
        if os.write(self.handle, line) < len(line):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _hour() -> str:
    return time.strftime("%Y-%m-%dT%HZ", time.gmtime())
