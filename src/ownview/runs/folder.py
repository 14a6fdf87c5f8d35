"""The run folder: what was asked, what happened round by round, and what came out.

experiment.toml          everything that decides the result
provenance.json          versions, revision, data fingerprint, device
rounds.jsonl             one JSON object a round: loss, metrics, seconds, bytes, sparsity of what is shared
checkpoint.safetensors   the state to go on from; gone once the run has finished
model.safetensors        the state of the chosen round
users.csv                test values of every user
recommended.safetensors  ten items for every user, popularity of items; some users with history and titles
audit.json               what probes found about the data under the protocol; written by comparisons
cost.json                what a client and the server hold, send and need; federated methods only
result.json              the figures, with protocol, seed and notes; its presence means finished
"""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from ownview.base.errors import OutputError
from ownview.base.files import write_json, write_text, write_whole, writing

_FILES = (
    *("experiment.toml", "provenance.json", "rounds.jsonl", "users.csv", "cost.json", "audit.json", "result.json"),
    *("checkpoint.safetensors", "model.safetensors", "watched.safetensors", "recommended.safetensors"),
)


class RunFolder:
    """Reads and writes the files of one run."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def create(cls, path: Path) -> RunFolder:
        """A new, empty folder; refuses one that exists."""
        with writing(path):
            try:
                path.mkdir(parents=True)
            except FileExistsError:
                go_on = f", or go on with it by --resume {path}" if (path / "experiment.toml").is_file() else ""
                raise OutputError(f"{path}: already exists; choose another --out{go_on}") from None
        return cls(path)

    @classmethod
    def open(cls, path: Path) -> RunFolder:
        """An existing run's folder."""
        if not path.exists():
            raise OutputError(f"{path}: no such run folder")
        if not (path / "experiment.toml").is_file():
            raise OutputError(f"{path}: not a run folder: it has no experiment.toml")
        return cls(path)

    @property
    def finished(self) -> bool:
        """Whether the result is there."""
        return (self.path / "result.json").is_file()

    def write_experiment(self, toml: str) -> None:
        """Write experiment.toml."""
        write_text(self.path / "experiment.toml", toml)

    def read_experiment(self) -> str:
        """Text of experiment.toml."""
        path = self.path / "experiment.toml"
        try:
            return path.read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise _damaged(path, error) from None

    def write_provenance(self, values: Mapping[str, Any]) -> None:
        """Write provenance.json."""
        write_json(self.path / "provenance.json", values)

    def read_provenance(self) -> dict[str, Any]:
        """Content of provenance.json; empty where a crash came before it."""
        return self._read("provenance.json")

    def append_round(self, values: Mapping[str, Any]) -> None:
        """Add one line to rounds.jsonl."""
        path = self.path / "rounds.jsonl"
        with writing(path), path.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(values, allow_nan=False) + "\n")

    def read_rounds(self) -> list[dict[str, Any]]:
        """All whole lines of rounds.jsonl; a line that a crash cut off is left out."""
        path = self.path / "rounds.jsonl"
        if not path.is_file():
            return []
        found = []
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                values = json.loads(line)
            except json.JSONDecodeError:
                break
            if not isinstance(values, dict):
                break
            found.append(values)
        return found

    def keep_rounds(self, last: int) -> None:
        """Drop lines after round `last`; they are run again."""
        kept = [json.dumps(line, allow_nan=False) for line in self.read_rounds() if line["round"] <= last]
        write_text(self.path / "rounds.jsonl", "".join(line + "\n" for line in kept))

    def write_tensors(self, name: str, tensors: Mapping[str, Tensor], about: Mapping[str, Any]) -> None:
        """Write NAME.safetensors with a JSON description."""
        plain = {key: value.detach().cpu().contiguous() for key, value in tensors.items()}

        def fill(path: Path) -> None:
            try:
                save_file(plain, path, metadata={"about": json.dumps(about)})
            except SafetensorError as error:  # what a full disk comes as
                raise OSError(str(error).removeprefix("Error while serializing: ")) from error

        write_whole(self.path / f"{name}.safetensors", fill)

    def read_tensors(self, name: str) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Tensors and description of NAME.safetensors."""
        path = self.path / f"{name}.safetensors"
        try:
            with safe_open(path, framework="pt") as stored:
                about = json.loads(stored.metadata()["about"])
                return {key: stored.get_tensor(key) for key in stored.keys()}, about  # noqa: SIM118
        except (SafetensorError, FileNotFoundError) as error:
            raise OutputError(f"{path}: cannot be read: {error}") from None

    def has_tensors(self, name: str) -> bool:
        """Whether NAME.safetensors is there."""
        return (self.path / f"{name}.safetensors").is_file()

    def drop_tensors(self, name: str) -> None:
        """Remove NAME.safetensors."""
        (self.path / f"{name}.safetensors").unlink(missing_ok=True)

    def drop_unfinished(self) -> None:
        """Remove temporary files that a killed process left behind."""
        for name in _FILES:
            for left in self.path.glob(f".{name}.*"):
                left.unlink(missing_ok=True)

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
                table.writerows(zip(*columns.values(), strict=True))

        write_whole(self.path / "users.csv", fill)

    @property
    def has_users(self) -> bool:
        """Whether users.csv is there."""
        return (self.path / "users.csv").is_file()

    def read_users(self) -> dict[str, list[str]]:
        """Columns of users.csv by name, as text."""
        path = self.path / "users.csv"
        try:
            with path.open(encoding="utf-8", newline="") as lines:
                names, *rows = csv.reader(lines)
            return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
        except (OSError, ValueError) as error:
            raise OutputError(f"{path}: cannot be read: {error}") from None

    def write_audit(self, values: Mapping[str, Any]) -> None:
        """Write audit.json."""
        write_json(self.path / "audit.json", values)

    def read_audit(self) -> dict[str, Any]:
        """Content of audit.json; empty where nothing was probed, or where the file is damaged: it can be made anew."""
        try:
            return self._read("audit.json")
        except OutputError:
            return {}

    def write_cost(self, values: Mapping[str, Any]) -> None:
        """Write cost.json."""
        write_json(self.path / "cost.json", values)

    def read_cost(self) -> dict[str, Any]:
        """Content of cost.json; empty where there is none."""
        return self._read("cost.json")

    def write_result(self, values: Mapping[str, Any]) -> None:
        """Write result.json; the run is finished from then on."""
        write_json(self.path / "result.json", values)

    def read_result(self) -> dict[str, Any]:
        """Content of result.json."""
        if not self.finished:
            raise OutputError(f"{self.path}: the run has not finished; go on with it by --resume {self.path}")
        return self._read("result.json")

    def _read(self, name: str) -> dict[str, Any]:
        """A JSON file's content; empty where it is not there."""
        path = self.path / name
        try:
            return dict(json.loads(path.read_text(encoding="utf-8"))) if path.is_file() else {}
        except (ValueError, TypeError) as error:
            raise _damaged(path, error) from None


def _damaged(path: Path, error: Exception) -> OutputError:
    return OutputError(f"{path}: is damaged: {error}; start a new run with another --out")
