"""Models of the pages' small world that were trained on everything, with as many rounds as each method needs."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from ownview.runs.experiment import Experiment
from ownview.runs.full_fit import fit_of
from ownview.runs.run import Run, run
from tests.pages.worlds import KINDS, write_world


@cache
def fitted(folder: Path, kind: str) -> Run:
    """A model by the kind of form that it has, made once."""
    world = folder / "world.tsv"
    if not world.is_file():
        write_world(world)
    method, settings = KINDS[kind]
    rounds = 2 if kind in ("ridge", "logistic") else None
    return run(fit_of(Experiment(method=method, data=str(world), settings=settings), rounds), out=folder / kind)
