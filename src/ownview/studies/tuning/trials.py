"""The folder of a tuning: what was asked, every trial that ended, and the best settings so far.

question.json  everything that decides which trials come; the same question goes on, another one is refused
trials.jsonl   one JSON object for every trial that ended
best.toml      the best settings as an experiment for `ownview run --config`
suite.toml     the defaults beside the best settings as a suite for `ownview bench`, to which rows are added
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import tomli_w

from ownview.base.errors import OutputError, TrainingError
from ownview.base.files import make_folder, write_json, write_text, writing
from ownview.base.json_shapes import Maybe, OrNull, TableOf, misfit
from ownview.base.json_text import parse_json
from ownview.base.lock import sole_worker
from ownview.config.differences import differences
from ownview.runs.experiment import Experiment

COMPLETE, PRUNED, FAILED = "complete", "pruned", "failed"
_TRIAL = {
    "number": int, "state": str, "settings": TableOf(str), "params": {}, "value": OrNull(float), "round": int,
    "values": [float], "seconds": float, "reason": Maybe(str), "marks": Maybe({}),
}  # fmt: skip
"""What a line of trials.jsonl must be; a file of a stranger may hold anything."""


@dataclass(frozen=True)
class Trial:
    """A trial that ended.

    Args:
        number: from 1.
        state: complete, pruned (stopped because others did better by then), or failed (values not finite, say).
        settings: what was searched, by name, as text that `--set` takes.
        params: the same as the study drew it.
        value: the metric on validation at `round`; None where the trial failed.
        round: the one `ownview run` would choose; of a pruned trial, the best so far.
        values: the metric after every round that was measured.
        seconds: that it took.
        reason: why it failed.
        marks: what the pruner noted on it.
    """

    number: int
    state: str
    settings: dict[str, str]
    params: dict[str, Any]
    value: float | None
    round: int
    values: list[float]
    seconds: float
    reason: str = ""
    marks: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class TuningFolder:
    """Reads and writes the files of one tuning."""

    path: Path

    def held(self) -> AbstractContextManager[None]:
        """Make the folder if need be and keep other processes out of it; a killed process lets go of it."""
        make_folder(self.path)
        return sole_worker(self.path, patience=0.0, busy="another process tunes here; choose another --out")

    def begin(self, question: Mapping[str, Any]) -> None:
        """Note the question, or find that it is the one this folder began with."""
        path = self.path / "question.json"
        if not path.is_file():
            if any(not one.name.startswith(".") for one in self.path.iterdir()):
                raise OutputError(f"{self.path}: already exists and is no tuning; choose another --out")
            write_json(path, question)
            return
        try:
            written = dict(parse_json(path.read_text(encoding="utf-8")))
        except (ValueError, TypeError) as error:
            raise OutputError(f"{path}: is damaged: {error}; choose another --out") from None
        asked = json.loads(json.dumps(question))
        no_longer = ((name, here, None) for name, _, here in differences(asked, written))
        for name, here, value in (*differences(written, asked), *no_longer):
            raise OutputError(
                f"{self.path}: this tuning began with {name}={here!r}, not {value!r}; "
                "go on with the same options, or choose another --out"
            )

    def trials(self) -> list[Trial]:
        """Every trial that ended; a line that a crash cut off is left out, and removed."""
        path = self.path / "trials.jsonl"
        if not path.is_file():
            return []
        found: list[Trial] = []
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        for line in lines:
            try:
                values = parse_json(line)
                if misfit(values, _TRIAL) is not None:
                    break
                found.append(Trial(**values))
            except (ValueError, TypeError):
                break
        if len(found) < len(lines) or (lines and not path.read_bytes().endswith(b"\n")):
            write_text(path, "".join(_line(trial) for trial in found))
        return found

    def append(self, trial: Trial) -> None:
        """Note a trial."""
        path = self.path / "trials.jsonl"
        with writing(path), path.open("a", encoding="utf-8") as lines:
            lines.write(_line(trial))

    @property
    def best(self) -> Path:
        """Where the best settings are."""
        return self.path / "best.toml"

    @property
    def suite(self) -> Path:
        """Where the suite is."""
        return self.path / "suite.toml"


def recorded(folder: TuningFolder, path: Path) -> None:
    """Put a tuning into a record: its question, and of every trial the settings, the validation value and its end."""
    trials = [
        {"number": one.number, "state": one.state, "settings": one.settings, "value": one.value, "round": one.round}
        for one in folder.trials()
    ]
    make_folder(path.parent)
    write_json(path, {"question": json.loads((folder.path / "question.json").read_text("utf-8")), "trials": trials})


def _line(trial: Trial) -> str:
    return json.dumps(asdict(trial), allow_nan=False) + "\n"


def ranked(trials: Sequence[Trial]) -> list[Trial]:
    """The best first: whole trials by value, then pruned ones, then failed ones; equals in the order they came."""
    order = {COMPLETE: 0, PRUNED: 1, FAILED: 2}
    return sorted(trials, key=lambda trial: (order[trial.state], -(trial.value or 0.0), trial.number))


def best_of(trials: Sequence[Trial]) -> Trial:
    """The whole trial with the highest value, the earliest among equals.

    A pruned trial does not count: its rounds were cut short, so a run with its settings is another one.
    """
    first = ranked(trials)[0]
    if first.state != COMPLETE:
        reasons = dict.fromkeys(trial.reason for trial in trials if trial.reason)
        raise TrainingError(f"none of {len(trials)} trials came to an end: {'; '.join(reasons)}")
    return first


def suite_toml(plain: Experiment, best: Experiment, protocol: str) -> str:
    """A suite of two rows: the method as it was asked for, and with the settings that were found."""
    rows, begun = [], "untuned" if plain.settings or plain.plugins else "defaults"
    for name, one in ((f"{plain.label()}, {begun}", plain), (f"{plain.label()}, tuned", best)):
        made = one.to_dict()
        settings = {key: made[key] for key in ("settings", "plugins", "federation") if made.get(key)}
        tried = {"settings_tried": one.settings_tried, "tried_on": one.tried_on} if one.settings_tried else {}
        rows.append({"name": name, "method": one.method, **settings, **tried})
    suite = {
        "title": f"{plain.label()} on {plain.data_label()}", "rounds": plain.rounds, "seeds": 3,
        "protocols": [protocol], "data": [plain.data], "rows": rows,
    }  # fmt: skip
    about = "# Written by ownview tune: run it with ownview bench, and add rows to compare with.\n"
    return about + tomli_w.dumps(suite)


def best_toml(
    experiment: Experiment, best: Trial, trials: Sequence[Trial], metric: str, about: Mapping[str, Any]
) -> str:
    """An experiment for `ownview run --config`, with comments on where it comes from."""
    pruned = sum(trial.state == PRUNED for trial in trials)
    failed = sum(trial.state == FAILED for trial in trials)
    lines = [
        f"Found by ownview tune: trial {best.number} of {len(trials)} ({pruned} pruned, {failed} failed).",
        f"Validation {metric} {best.value:.6f} at round {best.round} of {experiment.rounds_needed}, "
        f"protocol {experiment.protocol.name}, seed {experiment.seed}.",
        f"Data {about['data']['name']}: {about['data']['users']} users, {about['data']['items']} items, "
        f"{about['data']['interactions']} interactions, fingerprint {about['data']['fingerprint']}.",
        f"Searched: {', '.join(best.settings)}.",
        f"Ownview {about['ownview']}, revision {about['revision'] or 'unknown'}, "
        f"torch {about['packages']['torch']}, on {about['machine']['device']}.",
        "Test was not looked at.",
    ]
    return "".join(f"# {line}\n" for line in lines) + "\n" + experiment.to_toml()
