"""Figures in pages that are written by hand: each names the record it is from, and is written anew from it.

A figure is NDCG@10 on test unless the comment ends with ` hr` or another measure, such as ` recall@20` or
` validation NDCG@10`; two figures with a slash between them are HR@10 / NDCG@10:

    .157<!-- best: ml-1m honest blend with fedsasrec -->

` seed 0` in front of that takes one seed of several. A whole number is how many settings a row was chosen from:

    16<!-- best: amazon-instant-video honest fedease tried -->

Words that say how two rows stand to each other, one of them the best of its column or compared with the other by its
suite (`beside`); and by how much the first is above the other, with the 95 % interval over persons (measures as above,
where the suite compares rows in them):

    cannot be told from<!-- best: ml-1m honest blend with fedsasrec ~ blend, central -->
    .128 (.121 to .135)<!-- citeulike: citeulike new-items fedease and text - ifedrec recall@20 -->

A table of some rows on some data, a line a row with what the page calls it (`digits=4` for more digits):

    <!-- figures:best/honest ml-100k ml-1m
    popularity = Popularity
    -->
    <!-- end of figures -->

The best rows of a protocol on some data, and what cannot be told from them:

    <!-- best rows:best/honest ml-100k ml-1m -->
    <!-- end of best rows -->
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from ownview.base.errors import OutputError, suggestion
from ownview.evaluation.comparison import LEVEL as P_LEVEL
from ownview.evaluation.comparison import NOT_ABOVE, SIGNS, Cell, Mark
from ownview.evaluation.metrics import HEADLINE
from ownview.evaluation.named_protocols import pooled
from ownview.runs.table import Comparison, pooling, table_lines
from ownview.studies.bench.results import Document, tables

HR, NDCG = HEADLINE

_NUMBER = r"[01]?\.\d+"
_SEED = r"(?: seed (?P<seed>\d+))?"
_MEASURE = r"(?: (?P<measure>hr|(?:validation )?(?:HR|NDCG|recall)@\d+))?"
_PLACE = r"<!-- (?!printed: |trial: )(?P<suite>[\w-]+): (?P<data>[\w.-]+) (?P<protocol>[\w@.-]+) "
_FIGURE = re.compile(
    rf"(?P<figure>{_NUMBER}(?: / {_NUMBER})?)(?P<bold>\**){_PLACE}(?P<row>[^~>\n]+?){_SEED}{_MEASURE} -->"
)
_TRIED = re.compile(rf"(?<![\w.,])(?P<number>\d+){_PLACE}(?P<row>[^~>\n]+?) tried -->")

AHEAD, LEVEL, BEHIND = "is ahead of", "cannot be told from", "is behind"
_TURNED = {AHEAD: BEHIND, BEHIND: AHEAD}
_VERDICT = re.compile(
    rf"(?P<words>{AHEAD}|{LEVEL}|{BEHIND}){_PLACE}(?P<row>[^~>\n]+?) ~ (?P<other>[^~>\n]+?){_MEASURE} -->"
)
_DIFFERENCE = re.compile(
    rf"(?P<difference>{_NUMBER}) \(-?{_NUMBER} to {_NUMBER}\){_PLACE}"
    rf"(?P<row>[^~>\n]+?) - (?P<other>[^~>\n]+?){_MEASURE} -->"
)
_TABLE = re.compile(
    r"(?P<head><!-- figures:(?P<suite>[\w-]+)/(?P<protocol>[\w@.-]+)(?P<words>(?: [\w.=-]+)*)\n"
    r"(?P<rows>(?:[^\n]+ = [^\n]+\n)*)-->\n).*?(?P<end><!-- end of figures -->)",
    re.DOTALL,
)
_BEST = re.compile(
    r"(?P<head><!-- best rows:(?P<suite>[\w-]+)/(?P<protocol>[\w@.-]+)(?P<words>(?: [\w.-]+)*) -->\n)"
    r".*?(?P<end><!-- end of best rows -->)",
    re.DOTALL,
)


class Records:
    """The cells of all records by suite, data, protocol, row and metric; tables are made when one is asked for."""

    def __init__(self, documents: Mapping[str, Document]) -> None:
        self.documents = documents
        self.made: dict[str, dict[str, Comparison]] = {}

    def table(self, suite: str, data: str) -> Comparison:
        """One dataset of a suite."""
        if suite not in self.documents:
            raise OutputError(f"{suite}: no such results{suggestion(suite, self.documents)}")
        if suite not in self.made:
            self.made[suite] = {one.data: one for one in tables(self.documents[suite])}
        if data not in self.made[suite]:
            raise OutputError(f"{suite}: {data}: no such data in it{suggestion(data, self.made[suite])}")
        return self.made[suite][data]

    def cell(self, suite: str, data: str, protocol: str, row: str, metric: str) -> Cell:
        """One figure."""
        cells = self.table(suite, data).cells
        if (row, protocol, metric) not in cells:
            known = {method for method, under, _ in cells if under == protocol} or {under for _, under, _ in cells}
            raise OutputError(f"{suite}: {data} {protocol} {row}: no such figure{suggestion(row, sorted(known))}")
        return cells[row, protocol, metric]

    def mean(self, suite: str, data: str, protocol: str, row: str, measure: str, seed: str | None = None) -> float:
        """One figure, also of one seed and of measures that tables do not show: the mean over all questions of runs."""
        if measure in HEADLINE and seed is None:
            return self.cell(suite, data, protocol, row, measure).mean
        self.cell(suite, data, protocol, row, NDCG)  # refuses what there is not
        part, metric = ("validation", measure.split()[1]) if " " in measure else ("test", measure)
        asked = (data, protocol, row)
        every = self.documents[suite]["runs"]
        runs = [one for one in every if (one["data"], pooled(one["protocol"]), one["method"]) == asked]
        runs = [one for one in runs if seed is None or one["seed"] == int(seed)]
        if not runs or any(metric not in one.get(part, ()) for one in runs):
            raise OutputError(
                f"{suite}: {data} {protocol} {row}: its runs have no {measure}" + f" of seed {seed}" * bool(seed)
            )
        questions = sum(one["users_ranked"] for one in runs)
        return float(sum(one[part][metric] * one["users_ranked"] for one in runs) / questions)

    def compared(self, suite: str, data: str, protocol: str, row: str, metric: str) -> Mapping[str, Any]:
        """How a row stands against the best of its column, in any measure that the suite compares rows in."""
        self.cell(suite, data, protocol, row, NDCG)  # refuses what there is not
        asked = {"data": data, "protocol": protocol, "method": row, "metric": metric}
        entries = [one for one in self.documents[suite]["comparison"] if asked.items() <= one.items()]
        if not entries:
            raise OutputError(f"{suite}: {data} {protocol} {row}: its record does not compare rows in {metric}")
        return dict(entries[0])

    def before(self, suite: str, data: str, protocol: str) -> list[str]:
        """Said of marks that were recorded before one test and one correction stood behind all of them."""
        here = [
            one for one in self.documents[suite]["comparison"] if (one["data"], one["protocol"]) == (data, protocol)
        ]
        return [] if all("persons" in one for one in here) else ["marks by an earlier test"]

    def tried(self, suite: str, data: str, protocol: str, row: str) -> int:
        """How many settings a row was chosen from."""
        self.cell(suite, data, protocol, row, NDCG)
        found = self.table(suite, data).tried.get(row)
        if found is None:
            raise OutputError(f"{suite}: {data} {protocol} {row}: how many settings were tried is not recorded")
        return found.settings


@contextmanager
def on_page(source: str) -> Iterator[None]:
    """Errors inside name the page."""
    try:
        yield
    except OutputError as error:
        raise OutputError(f"{source}: {error}") from None


def with_figures(text: str, known: Records, source: str) -> str:
    """The text with every figure, every verdict and every small table as the records have them.

    Args:
        text: of a page.
        known: what is recorded.
        source: names the page in errors.

    Raises:
        OutputError: a reference that names nothing, or stands behind nothing that could be written anew.
    """

    def figure(found: re.Match[str]) -> str:
        first = found["figure"].split(" / ")
        measures = [HR, NDCG] if len(first) == 2 else [_metric(found)]
        place = found["suite"], found["data"], found["protocol"], found["row"]
        now = [
            as_written(known.mean(*place, name, found["seed"]), like)
            for name, like in zip(measures, first, strict=True)
        ]
        return found[0].replace(found["figure"], " / ".join(now), 1)

    def tried(found: re.Match[str]) -> str:
        number = known.tried(found["suite"], found["data"], found["protocol"], found["row"])
        return f"{number}{found[0].removeprefix(found['number'])}"

    def verdict(found: re.Match[str]) -> str:
        return _stands(*pair(found), found[0]) + found[0].removeprefix(found["words"])

    def pair(found: re.Match[str]) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        place = found["suite"], found["data"], found["protocol"]
        one, other = (known.compared(*place, found[name], _metric(found)) for name in ("row", "other"))
        return one, other

    def difference(found: re.Match[str]) -> str:
        numbers = [as_written(one, found["difference"]) for one in _apart(*pair(found), found[0])]
        return "{} ({} to {})".format(*numbers) + found[0][found[0].index(")") + 1 :]

    def table(found: re.Match[str]) -> str:
        return f"{found['head']}\n{_small_table(known, found)}\n{found['end']}"

    def best(found: re.Match[str]) -> str:
        lines = [
            line
            for data in found["words"].split()
            for line in _best_rows(
                known.table(found["suite"], data),
                found["protocol"],
                known.before(found["suite"], data, found["protocol"]),
            )
        ]
        return f"{found['head']}\n" + "\n".join(lines) + f"\n\n{found['end']}"

    inline = {_FIGURE: figure, _DIFFERENCE: difference, _VERDICT: verdict, _TRIED: tried}
    with on_page(source):
        text = _BEST.sub(best, _TABLE.sub(table, text))
        for kind, anew in inline.items():
            text = kind.sub(anew, text)
    _require_no_strays(text, inline, known.documents, source)
    return text


def _require_no_strays(text: str, kinds: Iterable[re.Pattern[str]], suites: Iterable[str], source: str) -> None:
    """Refuse a reference that stands behind nothing that could be written anew."""
    rest = text
    for kind in kinds:
        rest = kind.sub("", rest)
    names = "|".join(map(re.escape, suites))
    for stray in re.finditer(rf"[^\n]{{0,40}}<!-- (?:{names}): [^>]*-->", rest):
        raise OutputError(
            f"{source}: {stray[0]!r}: expected a figure such as .157 in front of it, or one of: "
            f"{AHEAD}, {LEVEL}, {BEHIND}"
        )


def _metric(found: re.Match[str]) -> str:
    return HR if found["measure"] == "hr" else found["measure"] or NDCG


def as_written(value: float, like: str) -> str:
    """A figure with as many digits as the page has, and with a nought in front where it has one."""
    text = f"{value:.{len(like.partition('.')[2])}f}"
    return text if like[0] != "." or abs(value) >= 1 else text.replace("0.", ".", 1)


def _stands(one: Mapping[str, Any], other: Mapping[str, Any], where: str) -> str:
    """How a row stands to another, by the marks of the record."""
    for first, second, ahead in ((one, other, AHEAD), (other, one, BEHIND)):
        if first.get("beside", {}).get("label") == second["method"]:
            level = first["beside"]["p_corrected"] >= P_LEVEL
            return LEVEL if level else ahead if first["beside"]["test"]["difference"] > 0 else _TURNED[ahead]
    marks = Mark(one["mark"]), Mark(other["mark"])
    for best, mark, ahead in ((*marks, AHEAD), (*marks[::-1], BEHIND)):
        if best is Mark.BEST and mark in (Mark.LEVEL, Mark.WORSE):
            return LEVEL if mark is Mark.LEVEL else ahead
    raise OutputError(f"{where}: neither is the best of its column, nor compared with the other by the suite")


def _apart(one: Mapping[str, Any], other: Mapping[str, Any], where: str) -> tuple[float, float, float]:
    """How much a row is above another, and the ends of the interval."""
    if one.get("beside", {}).get("label") == other["method"]:
        test = one["beside"]["test"]
        return test["difference"], test["low"], test["high"]
    if Mark(one["mark"]) is not Mark.BEST or other["against_best"] is None:
        raise OutputError(f"{where}: expected the best row of its column first, or one that the suite compares so")
    test = other["against_best"]
    return -test["difference"], -test["high"], -test["low"]


def _figure(cell: Cell, digits: int) -> str:
    text = as_written(cell.mean, "." + "0" * digits)
    level = SIGNS[Mark.LEVEL] if cell.mark is Mark.LEVEL else ""
    return (f"**{text}**" if cell.mark is Mark.BEST else text) + level + NOT_ABOVE * bool(cell.not_above)


def _small_table(known: Records, found: re.Match[str]) -> str:
    words = found["words"].split()
    digits = next((int(one.removeprefix("digits=")) for one in words if one.startswith("digits=")), 3)
    shown = [known.table(found["suite"], one) for one in words if "=" not in one]
    names = dict(line.rsplit(" = ", 1) for line in found["rows"].splitlines())
    protocol = found["protocol"]
    if not names:
        every = (row for table in shown for row, under, _ in table.cells if under == protocol)
        names = {row: f"`{row}`" for row in dict.fromkeys(every)}
    rows = []
    for row, name in names.items():
        if not any((row, protocol, NDCG) in table.cells for table in shown):
            known.cell(found["suite"], shown[0].data, protocol, row, NDCG)  # says which rows there are
        rows.append([name, *(_pair(table, row, protocol, digits) for table in shown)])
    seeds = max((table.seeds for table in shown), default=1)
    notes = [
        note for table in shown for note in _under(table, protocol, known.before(found["suite"], table.data, protocol))
    ]
    legend = (
        f"HR@10 / NDCG@10, {'one seed' if seeds == 1 else f'means over up to {seeds} seeds'}, from `results/"
        f"{found['suite']}.json`. **Bold**: the best row of the record; {SIGNS[Mark.LEVEL]}: cannot be told from it; "
        f"{NOT_ABOVE}: cannot be told to be above the yardsticks."
    )
    return "\n".join([*table_lines(["", *(table.data for table in shown)], rows), "", legend, *notes, ""])


def _under(table: Comparison, protocol: str, before: Sequence[str]) -> list[str]:
    cells = {key: cell for key, cell in table.cells.items() if key[1] == protocol}
    outdated = [one.sentence for one in table.findings.get(protocol, ()) if one.probe == "outdated"]
    return [f"{table.data}: {note}." for note in (*pooling(cells), *outdated, *before)]


def _pair(table: Comparison, row: str, protocol: str, digits: int) -> str:
    cells = [table.cells.get((row, protocol, metric)) for metric in HEADLINE]
    there = [_figure(cell, digits) for cell in cells if cell is not None]
    return " / ".join(there) if there else table.missing(row, protocol)


def _best_rows(table: Comparison, protocol: str, before: Sequence[str]) -> list[str]:
    """By metric the best row, and all that cannot be told from it; `before` is said of how that was found."""
    parts = []
    for metric in (NDCG, HR):
        mine = [cell for (_, under, name), cell in table.cells.items() if (under, name) == (protocol, metric)]
        best = [cell for cell in mine if cell.mark is Mark.BEST]
        if not best:
            parts.append(f"{metric}: rows were made at different times and are not compared")
            continue
        level = [_named(cell) for cell in mine if cell.mark is Mark.LEVEL]
        rest = f"; cannot be told from it: {', '.join(level)}" if level else ", ahead of all others"
        parts.append(f"{metric}: {_named(best[0])}{rest}")
    notes = [f"{note[0].upper()}{note[1:]}" for note in before]
    return [f"- **{table.data}**, {'. '.join([*parts, *notes])}."]


def _named(cell: Cell) -> str:
    return f"`{cell.label}` {as_written(cell.mean, '.000')}"
