"""What everybody who sends a message has agreed on: one JSON file, whose SHA-256 is the agreement's name.

Numbers that would depend on a machine's rounding stand in it as whole numbers: what a pair of items counts at every
distance is a table, made once.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from ownview.base.errors import DataError, SettingError
from ownview.base.json_text import parse_json

FORMAT = 1
Share = Literal["a", "b"]
SHARES: tuple[Share, Share] = ("a", "b")
METHODS = ("fedease", "counts")
STEP = 4096
"""Steps that a pair side by side counts: 2^20 contributions then fit into 32 bits."""
MOST_ITEMS = 20_000
MOST_HISTORY = 10_000
"""Rows of a history that a client looks at, the latest."""
FEWEST = 100
_LONGEST = 16 << 20
_KEY_BYTES = 32


@dataclass(frozen=True)
class Terms:
    """An agreement.

    Args:
        content: the file, byte by byte as it is published.
        method: what is summed: "fedease" or "counts".
        items: [m] ids.
        table: [t] steps that a pair counts by its distance, 0 for an item itself ("fedease").
        beyond: steps at greater distances.
        fewest: contributions that are opened together at least.
        urls: of the two servers.
        keys: their X25519 public keys, 32 bytes each.
    """

    content: bytes
    method: str
    items: tuple[str, ...]
    table: tuple[int, ...]
    beyond: int
    fewest: int
    urls: dict[Share, str]
    keys: dict[Share, bytes]

    @property
    def name(self) -> bytes:
        """32 bytes."""
        return hashlib.sha256(self.content).digest()

    @property
    def size(self) -> int:
        """Numbers of a contribution."""
        m = len(self.items)
        return m * (m + 1) // 2 if self.method == "fedease" else m + m * m

    @property
    def most(self) -> int:
        """Contributions that may be opened together: the sum of more may not fit into 32 bits, with a sign."""
        return (2**31 - 1) // max(*self.table, self.beyond) if self.method == "fedease" else 2**31 // MOST_HISTORY

    @cached_property
    def place(self) -> dict[str, int]:
        """By id."""
        return {item: place for place, item in enumerate(self.items)}

    @classmethod
    def read(cls, content: bytes, source: str = "agreement") -> Terms:
        """Of a file.

        Raises:
            DataError: it is no agreement of this version; says what is wrong.
        """
        try:
            told = parse_json(content.decode("utf-8")) if len(content) <= _LONGEST else None
            assert isinstance(told, dict)
            assert told["format"] == FORMAT
            servers = {share: told["servers"][share] for share in SHARES}
            keys = {share: base64.b64decode(one["key"], validate=True) for share, one in servers.items()}
            urls = {share: str(one["url"]).rstrip("/") for share, one in servers.items()}
            table, items = tuple(told.get("table", ())), tuple(told["items"])
            made = cls(content, told["method"], items, table, told.get("beyond", 0), told["fewest"], urls, keys)
            made._require()
        except (AssertionError, KeyError, TypeError, ValueError) as error:
            raise DataError(f"{source}: is no agreement of format {FORMAT} ({type(error).__name__}: {error})") from None
        return made

    def _require(self) -> None:
        assert self.method in METHODS, "method"
        assert 0 < len(self.items) <= MOST_ITEMS, "items"
        assert all(isinstance(item, str) for item in self.items), "items"
        assert len({*self.items}) == len(self.items), "items"
        assert all(type(one) is int and 0 <= one < 2**24 for one in (*self.table, self.beyond)), "table"
        assert bool(self.table) == (self.method == "fedease"), "table"
        assert type(self.fewest) is int, "fewest"
        assert self.fewest >= 1, "fewest"
        assert all(len(key) == _KEY_BYTES for key in self.keys.values()), "keys"


def agreed(
    method: str, items: list[str], urls: dict[Share, str], keys: dict[Share, bytes], *, nearness: float = 16.0,
    fewest: int = FEWEST,
) -> Terms:  # fmt: skip
    """A new agreement.

    Args:
        method: "fedease" or "counts".
        items: ids.
        urls: of the servers, as browsers reach them.
        keys: of the servers.
        nearness: places after which a pair counts 1/e; infinite: all pairs count 1.
        fewest: contributions that are opened together at least.
    """
    if method not in METHODS:
        raise SettingError(f"method {method}: no summand of it is specified; expected one of {', '.join(METHODS)}")
    told: dict[str, Any] = {"format": FORMAT, "method": method, "items": items, "fewest": fewest}
    if method == "fedease":
        told |= pair_table(nearness)
    told["servers"] = {
        share: {"url": urls[share], "key": base64.b64encode(keys[share]).decode("ascii")} for share in SHARES
    }
    return Terms.read((json.dumps(told, ensure_ascii=False, indent=1) + "\n").encode())


def pair_table(nearness: float) -> dict[str, Any]:
    """Steps by distance, as long as they are not 0; "beyond" is for all greater distances."""
    if math.isinf(nearness):
        return {"table": [STEP], "beyond": STEP}
    table: list[int] = []
    while (steps := round(STEP * math.exp(-len(table) / nearness))) and len(table) < MOST_HISTORY:
        table.append(steps)
    return {"table": table, "beyond": 0}
