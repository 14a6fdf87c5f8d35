"""Tables for a paper: LaTeX (booktabs), CSV and Markdown, any metrics, and one row against each other."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from ownview.base.errors import SettingError, suggestion
from ownview.evaluation.comparison import Cell, Mark, PairedTest, UserValues, compare_columns, paired_test
from ownview.evaluation.metrics import HEADLINE
from ownview.evaluation.named_protocols import pooled
from ownview.evaluation.sign_flips import p_between
from ownview.evaluation.statistics import by_person
from ownview.runs.run import Run
from ownview.runs.summaries.user_values import user_values
from ownview.runs.table import grouped
from ownview.studies.paper.rows import labelled

Column = tuple[str, str, str]
"""Data, protocol, metric."""
FORMS = ("latex", "csv", "markdown")


@dataclass(frozen=True)
class Against:
    """One row minus another in a column.

    Args:
        other: the row it is held against.
        test: the paired difference.
        p: sign-flip test of the mean difference over persons, Holm's correction over all rows and columns.
    """

    other: str
    column: Column
    test: PairedTest
    p: float


@dataclass(frozen=True)
class PaperTable:
    """Rows of methods, columns of data, protocols and metrics.

    Args:
        rows: labels, in order.
        columns: in order.
        cells: by row and column; absent where there is no run.
        values: by column and row, a value a user, where users are known.
    """

    rows: tuple[str, ...]
    columns: tuple[Column, ...]
    cells: Mapping[tuple[str, Column], Cell]
    values: Mapping[Column, Mapping[str, UserValues]]

    def text(self, form: str, *, digits: int = 4) -> str:
        """The table; best bold, second underlined, ≈ where a row cannot be told apart from the best."""
        if form not in FORMS:
            raise SettingError(f"form {form!r}: expected one of {', '.join(FORMS)}{suggestion(form, FORMS)}")
        return {"latex": self._latex, "csv": self._csv, "markdown": self._markdown}[form](digits)

    def against(self, mine: str) -> list[Against]:
        """A row held against each other one, in every column in which both were asked the same."""
        if mine not in self.rows:
            raise SettingError(f"no row {mine!r}{suggestion(mine, self.rows)}")
        found: list[tuple[str, Column, PairedTest, float]] = []
        for column, rows in self.values.items():
            for other in (one for one in self.rows if one != mine and one in rows and mine in rows):
                ours, theirs = rows[mine], rows[other]
                if ours.asked == theirs.asked:
                    both = by_person(np.stack([ours.by_user, theirs.by_user], axis=1), ours.units)
                    p = float(p_between(both, int(both.mean(axis=0).argmax()))[0, 1])
                    found.append((other, column, paired_test(ours.by_user, theirs.by_user, ours.units), p))
        corrected = _holm([p for *_, p in found])
        return [Against(other, column, test, p) for (other, column, test, _), p in zip(found, corrected, strict=True)]

    def _ranks(self, column: Column) -> dict[str, int]:
        there = [row for row in self.rows if (row, column) in self.cells]
        order = sorted(there, key=lambda row: -self.cells[row, column].mean)
        return {row: place for place, row in enumerate(order)}

    def _latex(self, digits: int) -> str:
        heads = [_head([part[: place + 1] for part in self.columns]) for place in (0, 1, 2)]
        lines = [r"% needs \usepackage{booktabs}; best bold, second underlined, \approx: not told apart from the best"]
        lines += [r"\begin{tabular}{l" + "r" * len(self.columns) + "}", r"\toprule", *heads, r"\midrule"]
        ranks = {column: self._ranks(column) for column in self.columns}
        for row in self.rows:
            cells = []
            for column in self.columns:
                cell = self.cells.get((row, column))
                text = "--" if cell is None else f"{cell.mean:.{digits}f}"
                place = ranks[column].get(row)
                text = rf"\textbf{{{text}}}" if place == 0 else rf"\underline{{{text}}}" if place == 1 else text
                if cell is not None and cell.spread is not None:
                    text += rf" {{\scriptsize$\pm${cell.spread:.{digits}f}}}"
                cells.append(text + (r"$^{\approx}$" if cell is not None and cell.mark is Mark.LEVEL else ""))
            lines.append(" & ".join([_tex(row), *cells]) + r" \\")
        return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])

    def _csv(self, digits: int) -> str:
        out = io.StringIO()
        write = csv.writer(out, lineterminator="\n").writerow
        write(["method", "data", "protocol", "metric", "mean", "spread", "low", "high", "seeds", "users", "mark"])
        for (row, column), cell in self.cells.items():
            numbers = [
                "" if one is None else f"{one:.{digits + 4}f}" for one in (cell.mean, cell.spread, cell.low, cell.high)
            ]
            write([row, *column, *numbers, cell.seeds, cell.users, cell.mark.value])
        return out.getvalue()

    def _markdown(self, digits: int) -> str:
        lines = [
            "| | " + " | ".join(" ".join(column) for column in self.columns) + " |",
            "| --- |" + " --- |" * len(self.columns),
        ]
        ranks = {column: self._ranks(column) for column in self.columns}
        for row in self.rows:
            cells = []
            for column in self.columns:
                cell, place = self.cells.get((row, column)), ranks[column].get(row)
                text = (
                    "-"
                    if cell is None
                    else f"{cell.mean:.{digits}f}" + ("" if cell.spread is None else f" ± {cell.spread:.{digits}f}")
                )
                level = " ≈" if cell is not None and cell.mark is Mark.LEVEL else ""
                cells.append((f"**{text}**" if place == 0 else f"_{text}_" if place == 1 else text) + level)
            lines.append(f"| {row} | " + " | ".join(cells) + " |")
        return "\n".join([*lines, ""])


def paper_table(runs: Sequence[Run], metrics: Sequence[str] = HEADLINE) -> PaperTable:
    """Of finished runs; those that differ in nothing but the seed are one row."""
    known = {name for run in runs for name in run.result.get("test", {})}
    for metric in metrics:
        if metric not in known:
            raise SettingError(f"no run has a metric {metric!r}{suggestion(metric, sorted(known))}")
    values: dict[Column, dict[str, UserValues]] = {}
    plain: dict[tuple[str, Column], Cell] = {}
    rows = labelled(runs)
    keys = [(label, run.result["data"], pooled(run.experiment.protocol.name)) for label, run in rows]
    for (label, data, protocol), seeds in grouped(zip(keys, (run for _, run in rows), strict=True)).items():
        listed = [metric for metric in metrics if all(metric in run.folder.read_users() for run in seeds)]
        for metric, own in (user_values(seeds, listed) or {}).items():
            values.setdefault((data, protocol, metric), {})[label] = own
        for metric in metrics:  # of whole lists, such as coverage: no value a user, and no interval
            numbers = [float(run.result["test"][metric]) for run in seeds if metric in run.result["test"]]
            if numbers:
                spread = float(np.std(numbers, ddof=1)) if len(numbers) > 1 else None
                one = float(np.mean(numbers))
                users = int(seeds[0].result["users_ranked"])
                plain[label, (data, protocol, metric)] = Cell(
                    label, one, spread, one, one, len(numbers), users, Mark.UNPAIRED
                )
    compared = {(cell.label, column): cell for column, cells in compare_columns(values).items() for cell in cells}
    columns = tuple(dict.fromkeys((data, protocol, metric) for _, data, protocol in keys for metric in metrics))
    return PaperTable(tuple(dict.fromkeys(label for label, _ in rows)), columns, {**plain, **compared}, values)


def against_text(mine: str, found: Sequence[Against], form: str, digits: int = 4) -> str:
    """One row against each: difference, 95 % interval, p."""
    heads = ["against", "data", "protocol", "metric", "difference", "95 % interval", "p", "users"]
    rows = [
        [one.other, *one.column, f"{one.test.difference:+.{digits}f}",
         f"{one.test.low:+.{digits}f} to {one.test.high:+.{digits}f}", f"{one.p:.4f}", str(one.test.users)]
        for one in found
    ]  # fmt: skip
    if form == "csv":
        out = io.StringIO()
        csv.writer(out, lineterminator="\n").writerows([heads, *rows])
        return out.getvalue()
    if form == "latex":
        # What is the same in all rows stands above the table, which has to fit a page.
        constant = [place for place in (1, 2) if len({row[place] for row in rows}) == 1]
        about = "".join(f", {rows[0][place]}" for place in constant)
        heads, *rows = [[cell for place, cell in enumerate(row) if place not in constant] for row in (heads, *rows)]
        body = [" & ".join(map(_tex, row)) + r" \\" for row in rows]
        top = [
            rf"% {mine} minus each{about}",
            rf"\begin{{tabular}}{{{'l' * (len(heads) - 4)}rrrr}}",
            r"\toprule",
            " & ".join(map(_tex, heads)) + r" \\",
            r"\midrule",
        ]
        return "\n".join([*top, *body, r"\bottomrule", r"\end{tabular}", ""])
    lines = [f"| {' | '.join(row)} |" for row in (heads, ["---"] * len(heads), *rows)]
    return "\n".join([f"{mine} minus each:", "", *lines, ""])


def _head(columns: Sequence[tuple[str, ...]]) -> str:
    """A line of heads; equal neighbours are one that spans their columns."""
    cells = []
    for column, alike in groupby(columns):
        width, name = len(list(alike)), _tex(column[-1])
        cells.append(name if width == 1 else rf"\multicolumn{{{width}}}{{c}}{{{name}}}")
    return " & ".join(["", *cells]) + r" \\"


def _holm(p: Sequence[float]) -> list[float]:
    """Holm's step-down correction."""
    order, worst = sorted(range(len(p)), key=lambda one: p[one]), 0.0
    found = [1.0] * len(p)
    for place, one in enumerate(order):
        worst = max(worst, min(1.0, p[one] * (len(p) - place)))
        found[one] = worst
    return found


_TEX = {"&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}", "\\": r"\textbackslash{}", "ε": r"$\varepsilon$"}  # fmt: skip


def _tex(text: str) -> str:
    return "".join(_TEX.get(letter, letter) for letter in text)
