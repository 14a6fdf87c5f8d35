"""What others print for a question that a suite asks too, beside our rows, and what may be said of it.

<!-- anchors:sequential/sequential amazon-beauty
sasrec = SASRec, central
cosines/sasrec, cosines = SASRec with scores as cosines, central
-->
<!-- end of anchors -->

A row of another suite than the block's has that suite's name before it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ownview.base.errors import OutputError
from ownview.evaluation.comparison import Cell
from ownview.evaluation.metrics import HEADLINE
from ownview.runs.table import table_lines
from ownview.studies.bench.results import ANCHORS
from reproduction.pages.figures import Records, on_page

_FORMAT = 1
_DIGITS = 4
_BLOCK = re.compile(
    r"(?P<head><!-- anchors:(?P<suite>[\w-]+)/(?P<protocol>[\w@.-]+) (?P<data>[\w.-]+)\n"
    r"(?P<rows>(?:[^\n]+ = [^\n]+\n)+)-->\n).*?(?P<end><!-- end of anchors -->)",
    re.DOTALL,
)


@dataclass(frozen=True)
class Anchor:
    """A figure that others print.

    Args:
        data: a dataset's name here.
        name: of the model.
        venue: where it appeared.
        figures: HR@10 and NDCG@10, by metric.
        items: which filter, and how many items are left.
        ties: how equal times are ordered, against ours.
        source: where the figure stands.
        note: what must be known besides.
    """

    data: str
    name: str
    venue: str
    figures: Mapping[str, float]
    items: str
    ties: str
    source: str
    note: str

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Anchor:
        """From plain values."""
        words = {name: str(values[name]) for name in ("data", "name", "venue", "items", "ties", "source", "note")}
        return cls(**words, figures={metric: float(values[metric]) for metric in HEADLINE})


def read_anchors(path: Path) -> list[Anchor]:
    """Raises where the file is none, or of another format."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        if values["format"] != _FORMAT:
            raise OutputError(f"{path}: format {values['format']!r}, expected {_FORMAT}")
        return [Anchor.of(one) for one in values["anchors"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise OutputError(f"{path}: cannot be read as printed figures: {error!r}") from None


def with_anchors(text: str, anchors: Sequence[Anchor], known: Records, source: str) -> str:
    """The text with printed figures beside ours where its markers ask for them."""

    def block(found: re.Match[str]) -> str:
        printed = [one for one in anchors if one.data == found["data"]]
        if not printed:
            raise OutputError(f"anchors of {found['data']}: {ANCHORS} has none")
        names = dict(line.rsplit(" = ", 1) for line in found["rows"].splitlines())

        def cells(row: str) -> Mapping[str, Cell]:
            suite, _, name = row.rpartition("/")
            place = suite or found["suite"], found["data"], found["protocol"]
            return {metric: known.cell(*place, name, metric) for metric in HEADLINE}

        ours = {name: cells(row) for row, name in names.items()}
        lines = [*_table(printed, ours), "", *_said(printed, ours)]
        return f"{found['head']}\n" + "\n".join(lines) + f"\n\n{found['end']}"

    with on_page(source):
        return _BLOCK.sub(block, text)


Ours = Mapping[str, Mapping[str, Cell]]


def _table(printed: Sequence[Anchor], ours: Ours) -> list[str]:
    """By falling NDCG@10; those made here in bold."""
    last = HEADLINE[-1]
    rows = [
        (one.figures[last], [f"{one.name} ({one.venue})", *_printed(one), one.items, one.ties, _where(one)])
        for one in printed
    ]
    rows += [
        (cells[last].mean, [f"**{name}**", *_figures({metric: cell.mean for metric, cell in cells.items()}), "", "",
         f"here, {_seeds(cells[last])}"])
        for name, cells in ours.items()
    ]  # fmt: skip
    ordered = [row for _, row in sorted(rows, key=lambda pair: -pair[0])]
    return table_lines(["model", *HEADLINE, "items", "order of ties", "source"], ordered)


def _printed(one: Anchor) -> list[str]:
    """With the digits that the source has."""
    return [f"{one.figures[metric]:g}".removeprefix("0") for metric in HEADLINE]


def _figures(values: Mapping[str, float]) -> list[str]:
    return [_short(values[metric]) for metric in HEADLINE]


def _short(value: float) -> str:
    return f"{value:.{_DIGITS}f}".removeprefix("0")


def _where(one: Anchor) -> str:
    return one.source + (f"; {one.note}" if one.note else "")


def _seeds(cell: Cell) -> str:
    return "one seed" if cell.seeds == 1 else f"{cell.seeds} seeds"


def _said(printed: Sequence[Anchor], ours: Ours) -> list[str]:
    """How far each of our rows is from the highest printed figure."""
    lines = []
    for name, cells in ours.items():
        parts = []
        for metric, cell in cells.items():
            best = max(printed, key=lambda one: one.figures[metric])
            apart = cell.mean - best.figures[metric]
            side = "above" if apart > 0 else "below"
            highest = f"{best.name} {_short(best.figures[metric])}"
            parts.append(f"{metric} {_short(abs(apart))} {side} the highest printed ({highest})")
        lines.append(f"- **{name}**: {', '.join(parts)}.")
    return lines
