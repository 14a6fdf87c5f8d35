"""Which column of a source is the user, the item, the rating and the time.

A mapping from canonical name to the source's name (or number, counted from 0) always wins; without one,
the names that common datasets use are recognised in any case and punctuation.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from ownview.base.display.shown import one_line
from ownview.base.errors import DataError, SettingError, nearest, suggestion
from ownview.base.items.column_names import ALIASES, RECBOLE_TYPE, bare_name
from ownview.data.reading.date_forms import read_dates

CANONICAL = ("user", "item", "rating", "timestamp")
REQUIRED = ("user", "item")
NAMEABLE = (*CANONICAL, "title")
"""What a mapping may name."""

LEFT_OUT = "-"
"""As the name of a rating's, timestamp's or title's column: do not read one, even if the file has it."""

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


class MissingColumnError(DataError):
    """No column of a source is known to be the user, or the item."""


def parse_columns(text: str | None) -> dict[str, str] | None:
    """Read `user=who,item=what` from the command line; None stays None.

    Keys are user, item, rating, timestamp and title; values are names or numbers of the source's columns, or "-" to
    leave the rating, the timestamp or the title out.
    """
    if text is None:
        return None
    columns: dict[str, str] = {}
    for part in text.split(","):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or not key or not value:
            raise SettingError(f"columns: found {part!r}; expected name=column, as in user=who,item=what")
        if key in columns:
            raise SettingError(f"columns: {key!r} is given twice")
        columns[key] = value
    _require_canonical_keys(columns)
    return columns


def has_header(first_row: Sequence[str], columns: Mapping[str, str] | None) -> bool:
    """Whether the first row names columns rather than being data.

    A mapping by column numbers says that there are no names to go by: then only a row that names both user
    and item is a header, for 'ann,film' may well be data. Otherwise a row with a known or mapped name is a
    header, and so is a row without a single number or date.
    """
    known = _by_alias(first_row, REQUIRED)
    wanted = set((columns or {}).values()) - {LEFT_OUT}
    if wanted and all(map(_is_number, wanted)):
        return len(known) == len(REQUIRED)
    if known or wanted & {field.strip() for field in first_row}:
        return True
    fields = [field.strip() for field in first_row]
    return not any(map(_NUMBER.fullmatch, fields)) and not any(read_dates(fields, None).seconds.values())


def header_place(*readings: Sequence[Sequence[str]]) -> int:
    """Which of a file's first rows names user and item, or one of them, where a report's title is above it; else 0.

    What stands above fills at most half as many fields as the header does: rows of data do not. One of the two is
    enough only where the rows below are as wide: else a title such as 'The Book of Tea', parted by blanks, would do.

    Args:
        readings: the same rows, parted by every separator that may be meant; only those that part all rows evenly are
            looked at, where there are such.
    """
    even = [rows for rows in readings if len({len(row) for row in rows}) == 1 and len(rows[0]) > 1]
    for needed in (len(REQUIRED), 1):
        headers = [place for rows in even or readings if (place := _header_in(rows, needed)) is not None]
        if headers:
            return min(headers)
    return 0


def _header_in(rows: Sequence[Sequence[str]], needed: int) -> int | None:
    filled = [sum(bool(field.strip()) for field in row) for row in rows]
    place = next((place for place, row in enumerate(rows) if len(_by_alias(row, REQUIRED)) >= needed), None)
    if place is None or 2 * max(filled[:place], default=0) > filled[place]:
        return None
    wide = filled[place] > 2 and len({len(row) for row in rows[place:]}) == 1
    return place if needed > 1 or wide else None


def locate(
    path: Path, header: Sequence[str] | None, width: int, columns: Mapping[str, str] | None
) -> dict[str, list[int]]:
    """Positions of the source's columns by canonical name; user and item are always there, title where it is named.

    A timestamp may be `year+month+day`: then it has one position for each part.

    Args:
        path: the file, for messages.
        header: the source's column names, or None where it has none.
        width: how many columns the source has.
        columns: the mapping asked for, if any.
    """
    _require_canonical_keys(columns or {})
    if header is None:
        return _by_number(path, width, columns)
    found = _by_alias(header, CANONICAL)
    if "item" not in found and (titles := _by_alias(header, ("title",), but="name")):
        found["item"] = titles["title"]  # a thing without a number goes by what it is called
    for key, name in (columns or {}).items():
        if name == LEFT_OUT:
            found.pop(key, None)
            continue
        parts = [name] if key != "timestamp" or name in header else name.split("+")
        found[key] = [_position(path, header, key, part) for part in parts]
    missing = [key for key in REQUIRED if key not in found]
    if missing:
        raise MissingColumnError(_missing_message(path, header, missing[0]))
    _require_one_each(path, header, found, columns or {})
    return found


def locate_known(header: Sequence[str], keys: Sequence[str], but: str = "") -> dict[str, int]:
    """Positions of the columns whose names are known aliases of the keys, but for one; absent ones are left out."""
    return {key: positions[0] for key, positions in _by_alias(header, keys, but).items()}


def named(header: Sequence[str]) -> str:
    """Column names for a message, at most a dozen."""
    return ", ".join(map(one_line, header[:12])) + (", ..." if len(header) > 12 else "")


def _by_alias(header: Sequence[str], keys: Sequence[str], but: str = "") -> dict[str, list[int]]:
    names = [bare_name(field) for field in header]
    found = {}
    for key in keys:
        known = [alias for alias in ALIASES[key] if alias in names and alias != but]
        if known:
            found[key] = [names.index(known[0])]
    return found


def _by_number(path: Path, width: int, columns: Mapping[str, str] | None) -> dict[str, list[int]]:
    if columns is None:
        if not len(REQUIRED) <= width <= len(CANONICAL):
            raise MissingColumnError(
                f"{path}: line 1: {width} columns and no header; expected 2 to 4 (user, item, rating, "
                "timestamp), or column numbers such as user=0,item=1"
            )
        return {key: [position] for position, key in enumerate(CANONICAL[:width])}
    found = {}
    for key, name in columns.items():
        if name == LEFT_OUT:
            continue
        parts = name.split("+") if key == "timestamp" else [name]
        found[key] = [_number(path, width, key, part) for part in parts]
    missing = [key for key in REQUIRED if key not in found]
    if missing:
        raise SettingError(f"columns: {missing[0]!r} is not given; {path.name} has no header to find it in")
    return found


def _is_number(name: str) -> bool:
    """Whether a column is given by its number: digits of ASCII (² is a digit, and no number), and not too many."""
    return name.isascii() and name.isdigit() and len(name) < 10


def _number(path: Path, width: int, key: str, name: str) -> int:
    if _is_number(name) and int(name) < width:
        return int(name)
    raise DataError(f"{path}: no column {name!r} for {key}; the file has no header, expected 0 to {width - 1}")


def _position(path: Path, header: Sequence[str], key: str, name: str) -> int:
    plain = [RECBOLE_TYPE.sub("", field) for field in header]
    for names in (list(header), plain):
        if name in names:
            return names.index(name)
    if _is_number(name) and int(name) < len(header):
        return int(name)
    raise DataError(f"{path}: line 1: no column {name!r} for {key}; found {named(header)}{suggestion(name, plain)}")


def _require_one_each(
    path: Path, header: Sequence[str], found: Mapping[str, Sequence[int]], columns: Mapping[str, str]
) -> None:
    """Refuse a column that is called like another, unless it is given by number, and one that is both user and item."""
    names = [field.strip() for field in header]
    for key, positions in found.items():
        by_number = all(map(_is_number, columns.get(key, "").split("+")))
        for name in (names[place] for place in positions):
            if names.count(name) > 1 and not by_number:
                places = [str(place) for place, other in enumerate(names) if other == name]
                raise DataError(
                    f"{path}: line 1: {len(places)} columns are called {name!r}; expected one for {key}; "
                    f"name it by its number, counted from 0: --columns {key}={' or '.join(places)}"
                )
    if found["user"] == found["item"]:
        both = names[found["user"][0]]
        raise DataError(f"{path}: line 1: column {both!r} is both user and item; expected two columns")


def _missing_message(path: Path, header: Sequence[str], key: str) -> str:
    short = [name for name in header if len(name) <= len(key) + 2]
    return (
        f"{path}: line 1: no {key} column; found {named(header)}{nearest(key, short)}; "
        f"name it with --columns {key}=COLUMN, or by number where the file has no header (user=0,item=1)"
    )


def _require_canonical_keys(columns: Mapping[str, str]) -> None:
    for key in columns:
        if key not in NAMEABLE:
            raise SettingError(f"columns: unknown name {key!r}{suggestion(key, NAMEABLE)}")
