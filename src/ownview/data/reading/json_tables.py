"""Tables from JSON Lines (an object a line) and from one JSON list of objects."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import polars as pl

from ownview.base.errors import DataError
from ownview.data.reading.problems import EXAMPLES, Problem, Problems
from ownview.data.reading.source_text import SourceText
from ownview.data.reading.string_table import Table

_MOST_COLUMNS = 1000
"""A table has some dozens; objects whose keys are data would make millions."""


def json_table(source: SourceText, problems: Problems) -> Table:
    """One column for every key, in order of first appearance; what is nested stays JSON text, null is empty."""
    rows: list[dict[str, Any]] = []
    places: list[str] = []
    bad: list[tuple[str, str]] = []
    for place, value in _values(source):
        if isinstance(value, dict):
            rows.append(value)
            places.append(place)
        else:
            bad.append((place, str(value)))
    if bad:
        advice = f'{bad[0][0]}: no JSON object ({bad[0][1][:60]}); expected one such as {{"user": 1, "item": 2}}'
        shown = tuple(place for place, _ in bad[:EXAMPLES])
        problems.add(Problem("places that are no JSON object", len(bad), shown, "left out", advice))
    names = list(dict.fromkeys(name for row in rows for name in row))
    if not names:
        raise DataError(
            f"{source.path}: looks like JSON without objects in it; expected JSON Lines such as "
            '{"user": 1, "item": 2}, or CSV, TSV, Parquet or Excel'
        )
    if len(names) > _MOST_COLUMNS:
        raise DataError(f"{source.path}: its objects have {len(names):,} different keys; expected the same few in all")
    frame = pl.DataFrame(
        {f"column_{k + 1}": [_text(row.get(name)) for row in rows] for k, name in enumerate(names)},
        schema={f"column_{k + 1}": pl.String for k in range(len(names))},
    )
    return Table(source.path, names, frame, lambda row: places[row])


def _values(source: SourceText) -> Iterator[tuple[str, Any]]:
    """Places and what stands there; a text for what is no JSON."""
    text = source.original.decode()
    if text.lstrip().startswith("["):
        whole = _parsed(text)
        if isinstance(whole, list):
            yield from ((f"row {number}", value) for number, value in enumerate(whole, 1))
            return
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            yield f"line {number}", _parsed(line)


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        return str(error) or "nested too deeply"


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    return json.dumps(value, ensure_ascii=True)
