"""Attacks on a run, by its server on one upload and by one of its clients: made once, then cached in the run folder."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ownview.attacks.dishonest.one_liar import one_liar
from ownview.attacks.suite import from_one_upload
from ownview.base.errors import DataError, OutputError, OwnviewError
from ownview.data.splitting.splits import Split
from ownview.evaluation.findings import Finding
from ownview.registry import find_model
from ownview.runs.files.folder import RunFolder
from ownview.runs.findings.attacking import scene_of
from ownview.runs.run import Run
from ownview.runs.training.setup import load_data, split_data

VERSION = 5
"""Of the attacks. Raised whenever one of them would find something else; what older ones found is made anew."""

_CLIENTS = 20
"""Clients whose uploads are read; only these take part, so that it takes a second."""


UPLOAD, LIAR = "finding", "liar"
"""What is found: by a curious server in one upload; by a client that lies."""


def exposures(
    runs: Sequence[Run], *, probe: bool = False, data_dir: Path | None = None, what: str = UPLOAD
) -> dict[str, Finding]:
    """What attacks find, by what tables call the method; methods without clients are left out.

    They are taken from attack.json of one of a method's runs; where none has it and `probe` asks for it and the data
    is here unchanged, it is made.

    Args:
        runs: finished.
        probe: whether to attack what has not been.
        data_dir: where datasets are.
        what: `UPLOAD` or `LIAR`.
    """
    found: dict[str, Finding] = {}
    splits: dict[str, Split] = {}
    for run in runs:
        label = run.experiment.label()
        if label in found or run.model is not None or not find_model(run.experiment.method).federated:
            continue
        known = kept(run, what)
        if known is None and probe and _made(run).get(what, "") is not None:
            known = _probed(run, splits, data_dir).get(what)
        if known is not None:
            found[label] = known
    return found


def kept(run: Run, what: str = UPLOAD) -> Finding | None:
    """What attack.json of a run says; None where there is none that still holds."""
    with contextlib.suppress(KeyError, TypeError, ValueError):  # a damaged file is as good as none
        return Finding.of(_made(run)[what])
    return None


def _made(run: Run) -> dict[str, Any]:
    """Content of attack.json; empty where it is of other attacks or other data."""
    key, read = _key(run), run.folder.read_note("attack")
    return read if {name: read.get(name) for name in key} == key else {}


def _key(run: Run) -> dict[str, Any]:
    """What the finding hangs on besides the run's own experiment, which never changes."""
    return {"attacks": VERSION, "clients": _CLIENTS, "data": _fingerprint(run.folder)}


def _fingerprint(folder: RunFolder) -> str:
    return str(folder.read_provenance().get("data", {}).get("fingerprint", "unknown"))


def _probed(run: Run, splits: dict[str, Split], data_dir: Path | None) -> dict[str, Finding]:
    """Both findings, or one: empty where the data is not here or has changed; a table must not fail for that."""
    experiment = run.experiment
    name = f"{experiment.data} {dict(experiment.columns)} {experiment.protocol.plain()}"
    try:
        if name not in splits:
            source = load_data(experiment, data_dir) if run.data is None else run.data
            splits[name] = split_data(experiment, source)
        if splits[name].data.fingerprint() != _fingerprint(run.folder):
            raise DataError(f"{experiment.data}: has changed since the run")
        scene = scene_of(experiment, experiment.model(), splits[name])
        found = {UPLOAD: from_one_upload(scene, _CLIENTS).as_finding()}
    except OwnviewError:
        return {}
    with contextlib.suppress(OwnviewError):  # liars are not tried on everything
        found[LIAR] = one_liar(scene, experiment.rounds_needed).as_finding()
    with contextlib.suppress(OutputError):  # folders may be read-only; then it is made again next time
        written = {what: found[what].to_dict() if what in found else None for what in (UPLOAD, LIAR)}
        run.folder.write_note("attack", {**_key(run), **written})
    return found
