"""One run folder as the report sees it; what an older folder lacks is None or empty."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any

from torch import Tensor

from ownview.base.errors import OutputError
from ownview.evaluation.findings import Finding
from ownview.runs.audits import kept
from ownview.runs.recommended import misfit
from ownview.runs.run import Run, open_run

Tensors = dict[str, Tensor]


class SeenRun(Run):
    """A finished run, read without its data and without its method; each of its files is read once."""

    @property
    def name(self) -> str:
        """The folder's name and that of its parent: enough to find it again, and no path of this machine."""
        path = self.folder.path.resolve()
        return f"{path.parent.name}/{path.name}"

    @cached_property
    def rounds(self) -> list[dict[str, Any]]:
        """Lines of rounds.jsonl."""
        return self.folder.read_rounds()

    @cached_property
    def provenance(self) -> dict[str, Any]:
        """Versions and data."""
        return self.folder.read_provenance()

    @cached_property
    def recommended(self) -> tuple[Tensors, dict[str, Any]] | None:
        """Lists of all users, and sample users; None for runs of versions that did not write them."""
        found = self._tensors("recommended")
        if found is not None and (wrong := misfit(*found)):
            raise OutputError(f"{self.folder.path / 'recommended.safetensors'}: is damaged: {wrong}")
        return found

    @cached_property
    def watched(self) -> tuple[Tensors, dict[str, Any]] | None:
        """What watched clients hold; None where nobody was watched."""
        return self._tensors("watched")

    @cached_property
    def findings(self) -> list[Finding] | None:
        """What probes found about the data under the protocol; None where no comparison has had them at work."""
        return kept(self.folder, self.experiment)

    def _tensors(self, name: str) -> tuple[Tensors, dict[str, Any]] | None:
        return self.folder.read_tensors(name) if self.folder.has_tensors(name) else None


def read_run(path: Path) -> SeenRun:
    """A finished run's folder; others are refused with what to do."""
    opened = open_run(path)
    return SeenRun(opened.folder, opened.experiment, opened.result)


def find_runs(paths: list[Path]) -> list[Path]:
    """Run folders among the paths: a path that is no run itself stands for the runs right inside it.

    Raises:
        OutputError: a path is not there, or is neither a run nor holds one.
    """
    found: list[Path] = []
    for path in paths:
        if not path.exists():
            raise OutputError(f"{path}: no such run folder")
        inside = [path] if _is_run(path) else sorted(one for one in path.glob("*") if _is_run(one))
        if not inside:
            raise OutputError(f"{path}: not a run folder, and none lies in it: expected experiment.toml there")
        found += inside
    return list({one.resolve(): one for one in found}.values())


def _is_run(path: Path) -> bool:
    return (path / "experiment.toml").is_file()
