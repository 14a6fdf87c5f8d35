"""Figures for a paper from finished runs: curves, by activity, against bytes, epsilon or simulated time."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import cycle
from statistics import mean

from ownview.base.errors import SettingError
from ownview.evaluation.metrics import HEADLINE
from ownview.privacy.budget import budget
from ownview.runs.run import Run
from ownview.runs.table import grouped
from ownview.studies.paper.canvas import GREY, Canvas, Colour, Point, text_width
from ownview.studies.paper.rows import labelled

COLOURS: tuple[Colour, ...] = (
    (0.0, 0.27, 0.53), (0.85, 0.37, 0.01), (0.11, 0.62, 0.47), (0.46, 0.22, 0.60), (0.90, 0.16, 0.54),
    (0.40, 0.40, 0.40), (0.65, 0.46, 0.11), (0.20, 0.63, 0.79),
)  # fmt: skip
_DASHES: tuple[tuple[float, ...], ...] = ((), (5, 2), (1.5, 1.5), (6, 2, 1.5, 2))
"""Lines differ by dashes too, for a page printed in grey."""
Series = Mapping[str, Sequence[Point]]


def _curves(rows: Mapping[str, Sequence[Run]], metric: str) -> tuple[Series, str, str]:
    return _over(rows, metric, "round"), "round", f"validation {metric}"


def _time(rows: Mapping[str, Sequence[Run]], metric: str) -> tuple[Series, str, str]:
    return _over(rows, metric, "simulated_seconds"), "simulated seconds", f"validation {metric}"


def _over(rows: Mapping[str, Sequence[Run]], metric: str, along: str) -> Series:
    """By row, what validation was at each measurement, the mean over seeds that have it."""
    found = {}
    for label, seeds in rows.items():
        lines = [[line for line in run.folder.read_rounds() if "validation" in line and along in line] for run in seeds]
        together = list(zip(*lines, strict=False))
        if together:
            found[label] = [
                (mean(float(one[along]) for one in each), mean(one["validation"][metric] for one in each))
                for each in together
            ]
    return found


def _activity(rows: Mapping[str, Sequence[Run]], metric: str) -> tuple[Series, str, str]:
    found: dict[str, list[Point]] = {}
    for label, seeds in rows.items():
        groups = [run.result["groups"] for run in seeds if run.result.get("groups")]
        if groups:
            places = range(len(groups[0]))
            found[label] = [
                (place + 1.0, mean(float(one[place]["test"][metric]) for one in groups)) for place in places
            ]
    return found, "users by activity, the least active quarter first", f"test {metric}"


def _bytes(rows: Mapping[str, Sequence[Run]], metric: str) -> tuple[Series, str, str]:
    found = {}
    for label, seeds in rows.items():
        each = []
        for run in seeds:
            lines = run.folder.read_rounds()[: run.result["chosen_round"]]
            each.append(
                sum((one["bytes_down_per_client"] + one["bytes_up_per_client"]) * one["clients"] for one in lines)
            )
        total = mean(each) / max(1, int(seeds[0].result["users_ranked"]))
        if total > 0:
            found[label] = [(total / 1e6, mean(run.result["test"][metric] for run in seeds))]
    return found, "MB that a user sends and receives up to the chosen round", f"test {metric}"


def _epsilon(rows: Mapping[str, Sequence[Run]], metric: str) -> tuple[Series, str, str]:
    found: dict[str, list[Point]] = {}
    for seeds in rows.values():
        asked = budget(seeds[0].experiment.federation.privacy)
        if asked is not None:
            name = seeds[0].experiment.method
            found.setdefault(name, []).append((asked.epsilon, mean(run.result["test"][metric] for run in seeds)))
    return {name: sorted(points) for name, points in found.items()}, "epsilon", f"test {metric}"


KINDS: Mapping[str, Callable[[Mapping[str, Sequence[Run]], str], tuple[Series, str, str]]] = {
    "curves": _curves, "activity": _activity, "bytes": _bytes, "epsilon": _epsilon, "time": _time,
}  # fmt: skip
_LACKS = {
    "curves": "rounds that were measured", "activity": "groups by activity", "bytes": "federated methods",
    "epsilon": "budgets", "time": "simulated devices",
}  # fmt: skip


def figure(runs: Sequence[Run], kind: str, metric: str = HEADLINE[1]) -> Canvas:
    """One figure of finished runs of one dataset and protocol; runs that differ in the seed alone are one row."""
    if kind not in KINDS:
        raise SettingError(f"figure {kind!r}: expected one of {', '.join(KINDS)}")
    asked = {(run.result["data"], run.experiment.protocol.name) for run in runs}
    if len(asked) > 1:
        raise SettingError(
            f"a figure is of one dataset under one protocol; found {', '.join(map(' '.join, sorted(asked)))}"
        )
    if not all(metric in run.result["test"] for run in runs):
        raise SettingError(f"no metric {metric!r} in every run; expected one of {', '.join(runs[0].result['test'])}")
    rows = grouped(labelled(runs))
    series, across, up = KINDS[kind](rows, metric)
    if not series:
        raise SettingError(f"figure {kind}: none of these runs has {_LACKS[kind]}")
    return chart(series, across, up, log=kind in ("bytes", "epsilon"))


def chart(series: Series, across: str, up: str, *, log: bool = False) -> Canvas:
    """Lines, or marks where a row is one point, with axes and a legend below; as wide as a page of `article` prints."""
    width, left, right, top, plot = 340.0, 48.0, 10.0, 10.0, 200.0
    columns = max(1, int((width - left) // max(text_width(name, 9) + 34 for name in series)))
    page = Canvas(width, top + plot + 40 + 13 * -(-len(series) // columns))
    every = [point for points in series.values() for point in points]
    place = math.log10 if log else float
    lows, highs = (_ends([place(x) for x, _ in every], log), _ends([y for _, y in every], False))

    def at(x: float, y: float) -> Point:
        return (
            left + (place(x) - lows[0]) / (lows[1] - lows[0]) * (width - left - right),
            top + plot - (y - highs[0]) / (highs[1] - highs[0]) * plot,
        )

    for y in _ticks(*highs):
        page.line([at(10 ** lows[0] if log else lows[0], y), at(10 ** lows[1] if log else lows[1], y)], GREY, 0.4)
        page.words((left - 4, at(10 ** lows[0] if log else lows[0], y)[1] + 3), f"{y:.3g}", align="right")
    for x in [10.0**k for k in range(math.ceil(lows[0]), math.floor(lows[1]) + 1)] if log else _ticks(*lows):
        page.words((at(x, highs[0])[0], top + plot + 12), f"{x:g}", align="middle")
    page.line([(left, top), (left, top + plot), (width - right, top + plot)])
    page.words((left + (width - left - right) / 2, top + plot + 26), across, align="middle")
    page.words((11, top + plot / 2), up, align="middle", upright=True)
    styles = zip(cycle(COLOURS), [dash for dash in _DASHES for _ in COLOURS], strict=False)
    for number, ((name, points), (colour, dash)) in enumerate(zip(series.items(), styles, strict=False)):
        page.line([at(*point) for point in points], colour, 1.4, dash or _DASHES[number % len(_DASHES)])
        for point in points if len(points) < 12 else ():
            page.mark(at(*point), colour, 2.0)
        x, y = left + number % columns * ((width - left) / columns), top + plot + 42 + 13 * (number // columns)
        page.line([(x, y - 3), (x + 20, y - 3)], colour, 1.4, dash or _DASHES[number % len(_DASHES)])
        page.mark((x + 10, y - 3), colour, 2.0)
        page.words((x + 25, y), name)
    return page


def _ends(values: Sequence[float], whole: bool) -> tuple[float, float]:
    low, high = min(values), max(values)
    if whole:  # of powers of ten
        return math.floor(low), math.ceil(high) if math.ceil(high) > math.floor(low) else math.floor(low) + 1
    room = (high - low) * 0.06 or abs(high) * 0.1 or 1.0
    return (low - room if low - room >= 0 or low < 0 else 0.0), high + room


def _ticks(low: float, high: float) -> list[float]:
    """Five or so round numbers between two."""
    rough = (high - low) / 5
    power = 10 ** math.floor(math.log10(rough))
    step = next(one * power for one in (1, 2, 5, 10) if one * power >= rough)
    return [round(step * k, 10) for k in range(math.ceil(low / step), math.floor(high / step) + 1)]
