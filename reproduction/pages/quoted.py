"""Figures in pages that no suite made: what papers print, and what single trials of a search had on validation.

0.893<!-- printed: FedEM filmtrust FedEM HR@10 -->      published.csv, of 100 candidates: paper, data, row, metric
.0143<!-- trial: systems ml-1m fedem best -->           results/trials: file, data, method; `trial 1` for one of them
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from ownview.base.errors import OutputError
from ownview.base.json_text import parse_json
from reproduction.pages.figures import as_written, on_page
from reproduction.papers import figures

_NUMBER = r"(?P<figure>[01]?\.\d+)\**"
_PRINTED = re.compile(rf"{_NUMBER}<!-- printed: (?P<paper>\S+) (?P<data>\S+) (?P<row>[^>\n]+) (?P<metric>\S+) -->")
_TRIAL = re.compile(
    rf"{_NUMBER}<!-- trial: (?P<file>[\w-]+) (?P<data>\S+) (?P<method>[^>\n]+?) (?P<which>best|trial \d+) -->"
)
_STRAY = re.compile(r"[^\n]{0,40}<!-- (?:printed|trial): [^>]*-->")


def with_quoted(text: str, trials: Path, source: str) -> str:
    """The text with every quoted figure as published.csv and the files of trials have it.

    Args:
        text: of a page.
        trials: folder of files that `ownview tune --record` wrote.
        source: names the page in errors.

    Raises:
        OutputError: a reference that names nothing, several figures, or stands behind no figure.
    """

    def anew(found: re.Match[str], value: float) -> str:
        return found[0].replace(found["figure"], as_written(value, found["figure"]), 1)

    with on_page(source):
        for stray in _STRAY.finditer(_TRIAL.sub("", _PRINTED.sub("", text))):
            raise OutputError(
                f"{stray[0]!r}: expected a figure such as .157 in front of it, and what it is of behind it"
            )
        text = _PRINTED.sub(lambda found: anew(found, _printed(found)), text)
        return _TRIAL.sub(lambda found: anew(found, _of_trial(found, trials)), text)


def _printed(found: re.Match[str]) -> float:
    asked = (found["paper"], found["data"], found["row"], found["metric"])
    sampled = [one for one in figures() if one.candidates == "sampled-99"]
    values = {one.value for one in sampled if (one.paper, one.data, one.method, one.metric) == asked}
    if len(values) != 1:
        raise OutputError(f"{' '.join(asked)}: {len(values)} figures in reproduction/published.csv; expected one")
    return values.pop()


def _of_trial(found: re.Match[str], trials: Path) -> float:
    path = trials / f"{found['file']}.json"
    if not path.is_file():
        raise OutputError(f"{path}: no such trials")
    every: list[dict[str, Any]] = parse_json(path.read_text(encoding="utf-8"))["trials"]
    asked = [one for one in every if (one["data"], one["method"]) == (found["data"], found["method"])]
    if found["which"] != "best":
        asked = [one for one in asked if one["trial"] == int(found["which"].split()[1])]
    values = [float(v) for one in asked for name, v in one.items() if name.startswith("validation ") and v is not None]
    if not values:
        raise OutputError(f"{path}: {found['data']} {found['method']} {found['which']}: no such trial")
    return max(values)
