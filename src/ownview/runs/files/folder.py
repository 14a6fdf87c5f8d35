"""The run folder: what was asked, what happened round by round, and what came out.

experiment.toml          everything that decides the result
provenance.json          versions, revision, data fingerprint, device
rounds.jsonl             one JSON object a round: loss, metrics, seconds, bytes, sparsity of what is shared
checkpoint.safetensors   the state to go on from; gone once the run has finished
best-NUMBER.safetensors  the state of the best round so far, beside a checkpoint; gone with it
noise.key                what secret noise is drawn from, for its owner's eyes alone; gone once the run has finished
model.safetensors        the state of the chosen round
users.csv                test values of every user
recommended.safetensors  ten items for every user, popularity; some users with history and titles; of measured runs
histories.safetensors    a copy of the data; of models that were trained on everything
audit.json               what probes found about the data under the protocol; written by comparisons
attack.json              what one upload gives away, and what one lying client reaches; of comparisons and starts
cost.json                what a client and the server hold, send and need; federated methods only
privacy.json             the accounted budget: noise round by round, whom it protects from whom, and what it leaves out
result.json              the figures, with protocol, seed and notes, or that there are none: trained on everything;
                         its presence means finished
manifest.json            SHA-256 of all that the result rests on, for `ownview verify`
source                   (folder) Python files of a method of one's own, to be read; run only where they are trusted
"""

from __future__ import annotations

import csv
import json
import math
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

from ownview.base.display.cells import as_cell, from_cell
from ownview.base.errors import OutputError, nearest_beside
from ownview.base.files import (
    append_line,
    drop_unfinished,
    is_file,
    write_bytes,
    write_json,
    write_text,
    write_whole,
    writing,
)  # fmt: skip
from ownview.base.json_shapes import misfit
from ownview.base.json_text import parse_json
from ownview.config.layers import parse_toml
from ownview.evaluation.metrics import HEADLINE
from ownview.privacy.entropy import NoiseKey
from ownview.runs.files.shapes import CHECKPOINT, PROVENANCE, RECOMMENDED, WATCHED, is_round, result_shape
from ownview.runs.files.tensor_files import read_tensors, write_tensors
from ownview.runs.files.versions import FILES, in_use, model_within

_SHAPES: dict[str, Any] = {"checkpoint": CHECKPOINT, "recommended": RECOMMENDED, "watched": WATCHED}
"""Of descriptions of tensors."""

_USER_COLUMNS = {"user", "held_out"}
"""Columns of users.csv that hold text; all others hold numbers."""

_BY_ANSWER = {"better", "tied"}
"""Columns with a number for every right answer, parted by semicolons."""
_FINDINGS = ("audit", "attack")


def going_on(folder: Path) -> str:
    """What is added to a command so that it goes on in a folder."""
    return f"--resume {shlex.quote(str(folder))}"


class RunFolder:
    """Reads and writes the files of one run."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def create(cls, path: Path) -> RunFolder:
        """A new, empty folder, or one that a process made and was killed before it wrote anything; refuses others."""
        if str(path) != str(path).encode("utf-8", "replace").decode():
            raise OutputError(f"{path}: the name is not UTF-8, which files of tensors need; choose another --out")
        with writing(path):
            try:
                path.mkdir(parents=True)
            except FileExistsError:
                if path.is_dir() and all(one.name.startswith(".experiment.toml.") for one in path.iterdir()):
                    cls(path).drop_unfinished()
                    return cls(path)
                raise cls(path)._taken() from None
        return cls(path)

    @classmethod
    def open(cls, path: Path) -> RunFolder:
        """An existing run's folder; of a model with versions, that of the version in use."""
        path = in_use(path)
        if not is_file(path / "experiment.toml") and not path.exists():
            raise no_such_run(path)
        if not is_file(path / "experiment.toml"):
            raise OutputError(f"{path}: not a run folder: it has no experiment.toml{model_within(path)}")
        return cls(path)

    @property
    def begun(self) -> bool:
        """Whether there is something to go on with; a process may have been killed right after it made the folder."""
        return is_file(self.path / "experiment.toml")

    @property
    def finished(self) -> bool:
        """Whether the result is there."""
        return (self.path / "result.json").is_file()

    @property
    def go_on(self) -> str:
        """How to finish an interrupted run, in words: whichever command began it, this one ends it."""
        return f"go on with: ownview run {going_on(self.path)}"

    def write_experiment(self, toml: str) -> None:
        """Write experiment.toml."""
        write_text(self.path / "experiment.toml", toml)

    def read_experiment(self) -> str:
        """Text of experiment.toml."""
        path = self.path / "experiment.toml"
        try:
            return path.read_text(encoding="utf-8")
        except OSError as error:
            raise OutputError(f"{path}: cannot be read: {error.strerror or error}") from None
        except UnicodeDecodeError as error:
            raise _damaged(path, error) from None

    def write_provenance(self, values: Mapping[str, Any]) -> None:
        """Write provenance.json."""
        write_json(self.path / "provenance.json", values)

    def read_provenance(self) -> dict[str, Any]:
        """Content of provenance.json; empty where a crash came before it."""
        return self._read("provenance.json", PROVENANCE)

    def write_noise_key(self, noise: NoiseKey) -> None:
        """Write noise.key: a run that goes on draws the same noise for the same round, and never other noise again."""
        write_bytes(self.path / "noise.key", noise.key, private=True)

    def read_noise_key(self) -> NoiseKey | None:
        """Content of noise.key; None where there is none."""
        path = self.path / "noise.key"
        try:
            return NoiseKey(path.read_bytes()) if path.is_file() else None
        except OSError as error:
            raise OutputError(f"{path}: cannot be read: {error.strerror or error}") from None
        except ValueError as error:
            raise _damaged(path, error) from None

    def drop_noise_key(self) -> None:
        """Forget what noise was drawn from."""
        with writing(self.path):
            (self.path / "noise.key").unlink(missing_ok=True)

    def append_round(self, values: Mapping[str, Any]) -> None:
        """Add one line to rounds.jsonl; it is on the disk when this returns."""
        append_line(self.path / "rounds.jsonl", json.dumps(values, allow_nan=False))

    def read_rounds(self) -> list[dict[str, Any]]:
        """The rounds of rounds.jsonl, 1, 2, ...; a line that a crash cut off, and what follows it, is left out.

        Raises:
            OutputError: the run has finished, and not all of its rounds are there.
        """
        path = self.path / "rounds.jsonl"
        text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
        found: list[dict[str, Any]] = []
        for line in text.splitlines():
            values = _round(line)
            if values is None or values["round"] != len(found) + 1:
                break
            found.append(values)
        if self.finished and len(found) != (expected := self.read_result()["rounds"]):
            raise OutputError(
                f"{path}: line {len(found) + 1} is damaged or missing; expected {expected} rounds; "
                "bring a sound copy back, or start a new run"
            )
        return found

    def write_rounds(self, rounds: Iterable[Mapping[str, Any]]) -> None:
        """Write rounds.jsonl anew; rounds that are not among these are run again."""
        text = "".join(json.dumps(line, allow_nan=False) + "\n" for line in rounds)
        write_text(self.path / "rounds.jsonl", text)

    def write_tensors(self, name: str, tensors: Mapping[str, Tensor], about: Mapping[str, Any]) -> None:
        """Write NAME.safetensors with a JSON description, a checksum, and what experiment.toml says."""
        write_tensors(self.path / f"{name}.safetensors", tensors, about, self._experiment())

    def read_tensors(self, name: str) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Tensors and description of NAME.safetensors.

        Raises:
            OutputError: damaged, or experiment.toml has been changed since it was written.
        """
        path = self.path / f"{name}.safetensors"
        tensors, about, written = read_tensors(path)
        if found := misfit(about, _SHAPES.get(name, {})):
            raise OutputError(f"{path}: is damaged: {found}; start a new run with another --out")
        self._require_same(name, written)
        return tensors, about

    def _experiment(self) -> dict[str, Any]:
        """What decides a result, but where the data lies and on which device: those are looked at by themselves."""
        source = self.path / "experiment.toml"
        values = parse_toml(self.read_experiment(), str(source)) if source.is_file() else {}
        method = str(values.get("method", ""))
        values["method"] = Path(method).name if method.endswith(".py") else method
        return {name: value for name, value in values.items() if name not in ("data", "device")}

    def _require_same(self, name: str, written: Mapping[str, Any]) -> None:
        now = _flat(self._experiment())
        for setting, value in (before := _flat(written)).items():
            if now.get(setting) != value:
                raise self._changed(name, setting, now.get(setting), value)
        for setting in now.keys() - before.keys():
            raise self._changed(name, setting, now[setting], None)

    def _changed(self, name: str, setting: str, now: Any, before: Any) -> OutputError:
        return OutputError(
            f"{self.path / 'experiment.toml'}: {setting} is {now!r}, and {name}.safetensors was made with {before!r}: "
            "the experiment was changed after the run began; put it back, or start a new run"
        )

    def has_tensors(self, name: str) -> bool:
        """Whether NAME.safetensors is there."""
        return (self.path / f"{name}.safetensors").is_file()

    def drop_tensors(self, name: str) -> None:
        """Remove NAME.safetensors."""
        path = self.path / f"{name}.safetensors"
        with writing(path):
            path.unlink(missing_ok=True)

    def drop_checkpoint(self) -> None:
        """Remove everything to go on from."""
        self.drop_tensors("checkpoint")
        self.drop_best()

    def drop_best(self, but: str = "") -> None:
        """Remove the states of best rounds, but one by name."""
        for path in self.path.glob("best-*.safetensors"):
            if path.stem != but:
                self.drop_tensors(path.stem)

    def drop_unfinished(self) -> None:
        """Remove temporary files that a killed process left behind."""
        for name in FILES:
            drop_unfinished(self.path / name)

    def require_not_begun(self) -> None:
        """Refuse a folder that another process took while this one waited for it."""
        if (self.path / "experiment.toml").is_file():
            raise self._taken()

    def _taken(self) -> OutputError:
        go_on = f", or {self.go_on}" if self.begun and not self.finished else ""
        return OutputError(f"{self.path}: already exists; choose another --out{go_on}")

    def drop_if_not_begun(self) -> None:
        """Remove a folder that a process made and was killed before it had written anything whole."""
        if self.path.is_dir():
            self.drop_unfinished()
            if not any(self.path.iterdir()):
                self.path.rmdir()

    def write_users(self, columns: Mapping[str, Sequence[Any]]) -> None:
        """Write users.csv."""

        def fill(path: Path) -> None:
            with path.open("w", encoding="utf-8", newline="") as out:
                table = csv.writer(out, lineterminator="\n")
                table.writerow(columns)
                cells = {name: map(as_cell, map(str, columns[name])) for name in _USER_COLUMNS & set(columns)}
                table.writerows(zip(*{**columns, **cells}.values(), strict=True))

        write_whole(self.path / "users.csv", fill)

    @property
    def has_users(self) -> bool:
        """Whether users.csv is there."""
        return (self.path / "users.csv").is_file()

    def read_users(self) -> dict[str, list[str]]:
        """Columns of users.csv by name, as text; all but the ids are numbers."""
        path = self.path / "users.csv"
        try:
            with path.open(encoding="utf-8", newline="") as lines:
                names, *rows = csv.reader(lines, strict=True)
            table = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
        except (OSError, ValueError, csv.Error) as error:
            raise OutputError(f"{path}: cannot be read: {error}") from None
        table |= {name: [from_cell(one) for one in table[name]] for name in _USER_COLUMNS & set(table)}
        for name in ("user", "held_out", *HEADLINE):
            if name not in table:
                raise OutputError(f"{path}: is damaged: no column {name!r}; bring a sound copy back")
        for name in table.keys() - _USER_COLUMNS:
            if _all_numbers(table[name]):
                continue
            for row, value in enumerate(table[name], start=2):
                if not all(map(_is_number, value.split(";") if name in _BY_ANSWER else [value])):
                    raise OutputError(f"{path}: line {row}, column {name!r}: {value!r}: expected a number")
        return table

    def write_note(self, name: str, values: Mapping[str, Any]) -> None:
        """Write NAME.json: audit, attack, cost or privacy."""
        write_json(self.path / f"{name}.json", values)

    def read_note(self, name: str) -> dict[str, Any]:
        """Content of NAME.json; empty where there is none, and where a finding is damaged, which can be made anew."""
        try:
            return self._read(f"{name}.json")
        except OutputError:
            if name in _FINDINGS:
                return {}
            raise

    def write_result(self, values: Mapping[str, Any]) -> None:
        """Write result.json; the run is finished from then on."""
        write_json(self.path / "result.json", values)

    def read_result(self) -> dict[str, Any]:
        """Content of result.json."""
        if not self.finished:
            raise OutputError(f"{self.path}: the run has not finished; {self.go_on}")
        values = self._read("result.json")
        if found := misfit(values, result_shape(values)):
            raise _damaged(self.path / "result.json", found)
        return values

    def _read(self, name: str, shape: Any = dict) -> dict[str, Any]:
        """A JSON file's content, of the shape it must have; empty where it is not there."""
        path = self.path / name
        try:
            values = parse_json(path.read_text(encoding="utf-8")) if path.is_file() else None
        except OSError as error:
            raise OutputError(f"{path}: cannot be read: {error.strerror or error}") from None
        except ValueError as error:
            raise _damaged(path, error) from None
        if values is None:
            return {}
        if found := misfit(values, shape):
            raise _damaged(path, found)
        return dict(values)


def no_such_run(path: Path) -> OutputError:
    """What to say of a folder that is not there."""
    return OutputError(f"{path}: no such run folder{nearest_beside(path, Path.is_dir)}")


def _damaged(path: Path, error: Exception | str) -> OutputError:
    return OutputError(f"{path}: is damaged: {error}; start a new run with another --out")


def _round(line: str) -> dict[str, Any] | None:
    """A line of rounds.jsonl; None where it is damaged."""
    try:
        values = parse_json(line)
    except ValueError:
        return None
    return dict(values) if is_round(values) else None


def _all_numbers(column: Sequence[str]) -> bool:
    """The same of all texts at once, in a fraction of the time."""
    try:
        return all(map(math.isfinite, map(float, column)))
    except ValueError:
        return False


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _flat(values: Mapping[str, Any], where: str = "") -> dict[str, Any]:
    """By names such as settings.learning_rate."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        found |= _flat(value, f"{where}{name}.") if isinstance(value, Mapping) else {f"{where}{name}": value}
    return found
