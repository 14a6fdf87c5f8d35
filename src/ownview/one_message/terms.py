"""What everybody who sends a message has agreed on: one JSON file, whose SHA-256 is the agreement's name.

Numbers that would depend on a machine's rounding stand in it as whole numbers: what a pair of items counts at every
distance is a table, made once.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from ownview.base.errors import DataError, SettingError
from ownview.base.json_text import parse_json
from ownview.one_message.budget import ShareBudget
from ownview.one_message.next import next_largest, next_size, vectors_of
from ownview.one_message.tables import BITS, LONGEST, MOST_HISTORY, next_tables, pair_table

FORMAT = 1
Share = Literal["a", "b"]
SHARES: tuple[Share, Share] = ("a", "b")
METHODS = ("fedease", "counts", "fednext")
MOST_ITEMS = 20_000
MOST_NUMBERS = 50_005_000
"""Of a contribution: FedEASE's of 10,000 items, 200 MB."""
FEWEST = 100
MOST_WORK = 30
FEWEST_GROUPS, MOST_GROUPS = 5, 64
"""With fewer groups no outlier can be found."""
MOST_NAMES = 1 << 20
"""Messages of a batch: the servers send each other 16 bytes for each."""
_LEAST_ROOM = 8
"""Messages of a group, a quarter of which may change what was added before."""
_LONGEST = 16 << 20
_KEY_BYTES = 32
_SETTINGS: dict[str, dict[str, Any]] = {
    "fedease": {"nearness": 16.0},
    "fednext": {"scales": (1.0, 8.0, 64.0), "horizon": 1.0, "weighting": 0.5, "length": 200},
    "counts": {},
}
"""Settings of the methods that decide what a client sends, and their defaults."""


@dataclass(frozen=True)
class Terms:
    """An agreement.

    Args:
        content: the file, byte by byte as it is published.
        method: what is summed, one of `METHODS`.
        items: [m] ids.
        settings: of the method, that decide what a client sends; tables were made of them.
        table: [t] steps that a pair counts by its distance, 0 for an item itself ("fedease").
        beyond: steps at greater distances.
        next: FedNext's tables; None for other methods.
        budget: of a contribution; None where sums are opened as they are.
        work: zero bits that a message's proof of work has; 0 for none.
        groups: that contributions are put into by chance, and opened by; one that stands out is left out.
        fewest: contributions that are opened together at least, in each group.
        urls: of the two servers.
        keys: their X25519 public keys, 32 bytes each.
    """

    content: bytes
    method: str
    items: tuple[str, ...]
    settings: Mapping[str, Any]
    table: tuple[int, ...]
    beyond: int
    next: dict[str, Any] | None
    budget: ShareBudget | None
    work: int
    groups: int
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
        if self.next is not None:
            return next_size(self.next, m)
        return m * (m + 1) // 2 if self.method == "fedease" else m + m * m

    @cached_property
    def most(self) -> int:
        """Messages of a group that may be opened together: the sum of more may not fit into 32 bits, with a sign."""
        return min(self._most_added, MOST_NAMES // self.groups)

    @property
    def _most_added(self) -> int:
        if self.budget is not None:
            return int((2**31 - 1 - 2 ** (self.budget.exponent + 5)) // self.budget.clip)
        if self.next is not None:
            return (2**31 - 1) // next_largest(self.next)
        return (2**31 - 1) // (max(*self.table, self.beyond) if self.method == "fedease" else MOST_HISTORY)

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
            _expect(len(content) <= _LONGEST, f"{len(content):,} bytes")
            document = parse_json(content.decode("utf-8"))
            _expect(isinstance(document, dict) and document["format"] == FORMAT, "format")
            servers = {share: document["servers"][share] for share in SHARES}
            keys = {share: base64.b64decode(one["key"], validate=True) for share, one in servers.items()}
            urls = {share: str(one["url"]).rstrip("/") for share, one in servers.items()}
            budget = ShareBudget(**document["budget"]) if document.get("budget") is not None else None
            made = cls(
                content, document["method"], tuple(document["items"]), dict(document.get("settings", {})),
                tuple(document.get("table", ())), document.get("beyond", 0), document.get("next"), budget,
                document.get("work", 0), document.get("groups", 1), document["fewest"], urls, keys,
            )  # fmt: skip
            made._require()
        except (ArithmeticError, AttributeError, KeyError, TypeError, ValueError) as error:
            raise DataError(f"{source}: is no agreement of format {FORMAT} ({type(error).__name__}: {error})") from None
        return made

    def _require(self) -> None:
        _expect(self.method in METHODS, "method")
        _expect(0 < len(self.items) <= MOST_ITEMS, "items")
        _expect(all(isinstance(item, str) for item in self.items), "items")
        _expect(len({*self.items}) == len(self.items), "items")
        _expect(_whole([*self.table, self.beyond], 2**24), "table")
        _expect(bool(self.table) == (self.method == "fedease"), "table")
        _expect((self.next is not None) == (self.method == "fednext"), "next")
        if self.next is not None:
            _require_next(self.next, len(self.items))
        _expect(self.size <= MOST_NUMBERS, f"{self.size} numbers; expected {MOST_NUMBERS} at most")
        _expect(_whole([self.fewest, self.work, self.groups], 2**30), "fewest, work, groups")
        _expect(self.groups == 1 or FEWEST_GROUPS <= self.groups <= MOST_GROUPS, "groups")
        _expect(self.fewest >= 1, "fewest")
        _expect(self.work <= MOST_WORK, "work")
        if self.budget is not None:
            one = self.budget
            _expect(_whole([one.clip, one.exponent, one.releases], 2**24), "budget")
            _expect(one.clip >= 1, "budget")
            _expect(2 <= one.exponent <= 22, "budget")
            _expect(one.releases >= 2, "budget")
            _expect(one.epsilon > 0, "budget")
            _expect(0 < one.delta < 1, "budget")
        room = f"fewest: {self.fewest}; expected half of {self.most} at most: no more messages of a group fit together"
        _expect(max(2 * self.fewest, _LEAST_ROOM) <= self.most, room)
        _expect(all(len(key) == _KEY_BYTES for key in self.keys.values()), "keys")


def _expect(condition: bool, what: str) -> None:
    """An assertion that no option of Python leaves out."""
    if not condition:
        raise ValueError(what)


def _whole(values: Sequence[Any], below: int) -> bool:
    return all(type(one) is int and 0 <= one < below for one in values)


def _require_next(tables: dict[str, Any], m: int) -> None:
    length, one = tables["length"], 1 << BITS
    _expect(type(length) is int, "length")
    _expect(2 <= length <= LONGEST, "length")
    _expect(1 <= len(tables["past"]) <= 8, "past")
    for table in (*tables["past"], tables["future"], tables["weights"]):
        _expect(_whole(table, one + 1), "tables")
        _expect(1 <= len(table) <= length + 1, "tables")
    _expect(len(tables["weights"]) == length + 1, "weights")
    if rank := tables.get("rank", 0):
        _expect(_whole([rank], 4097), "rank")
        _expect(_whole([tables["down"]], 40), "down")
        vectors = vectors_of(tables)
        _expect(len(vectors) == m, "vectors")
        reach = max(sum(table) for table in tables["past"]) / one
        longest = int(abs(vectors).max(initial=0)) * reach + 1
        _expect(longest**2 * length * one < 2**53, "vectors: sums would not be below 2^53")


def agreed(
    method: str, items: list[str], urls: dict[Share, str], keys: dict[Share, bytes], *, fewest: int = FEWEST,
    budget: ShareBudget | None = None, work: int = 0, groups: int = 1, vectors: Any = None, **settings: Any,
) -> Terms:  # fmt: skip
    """A new agreement.

    Args:
        method: one of `METHODS`.
        items: ids.
        urls: of the servers, as browsers reach them.
        keys: of the servers.
        fewest: contributions that are opened together at least.
        budget: of a contribution; None: sums are opened as they are.
        work: zero bits of a message's proof of work.
        groups: that are opened one by one.
        vectors: [m, k] of the items: FedNext by rank.
        settings: of the method, as far as they decide what a client sends.
    """
    if method not in METHODS:
        raise SettingError(f"method {method}: no summand of it is specified; expected one of {', '.join(METHODS)}")
    known = _SETTINGS[method]
    if unknown := [name for name in settings if name not in known]:
        raise SettingError(f"setting {unknown[0]}: does not decide what is sent; expected {', '.join(known) or 'none'}")
    chosen = {**known, **settings}
    document: dict[str, Any] = {"format": FORMAT, "method": method, "items": items, "fewest": fewest}
    document["settings"] = {name: _plain(value) for name, value in chosen.items()}
    if method == "fedease":
        document |= pair_table(chosen["nearness"])
    if method == "fednext":
        document["next"] = next_tables(**chosen, vectors=vectors)
    if budget is not None:
        document["budget"] = budget.plain()
    document |= {"work": work} if work else {}
    document |= {"groups": groups} if groups > 1 else {}
    document["servers"] = {
        share: {"url": urls[share], "key": base64.b64encode(keys[share]).decode("ascii")} for share in SHARES
    }
    return Terms.read((json.dumps(document, ensure_ascii=False) + "\n").encode())


def _plain(value: Any) -> Any:
    """For JSON, which has no infinity."""
    if isinstance(value, tuple | list):
        return [_plain(one) for one in value]
    return "inf" if value == float("inf") else value
