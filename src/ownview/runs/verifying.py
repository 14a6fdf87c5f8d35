"""Is a run what it says: files, source, data, figures; and, run once more, does it come out again."""

from __future__ import annotations

import tempfile
from dataclasses import asdict, dataclass
from itertools import zip_longest
from pathlib import Path
from statistics import mean
from typing import Any

from ownview.base.errors import OwnviewError
from ownview.base.trust import UntrustedError
from ownview.base.version import __version__
from ownview.runs.experiment import Experiment
from ownview.runs.files.folder import RunFolder
from ownview.runs.files.manifest import fingerprints, read_manifest
from ownview.runs.files.provenance import package_versions
from ownview.runs.files.sources import METHOD, method_fingerprint
from ownview.runs.run import experiment_of, run
from ownview.runs.training.setup import ExperimentSetup

HOLDS, DIFFERS, UNKNOWN = "holds", "differs", "unknown"
_SAME = 1e-9
"""What a figure of result.json may differ by from the mean of users.csv, whose values have 12 places."""


@dataclass(frozen=True)
class Check:
    """One thing that was looked at.

    Args:
        what: it is.
        found: "holds", "differs", or "unknown" where the folder or this machine cannot tell.
        sentence: what was seen, naming what differs.
    """

    what: str
    found: str
    sentence: str

    def to_dict(self) -> dict[str, str]:
        """As plain values."""
        return asdict(self)


def verify(path: str | Path, *, again: bool = False, data_dir: Path | None = None, memory: str = "auto") -> list[Check]:
    """Look at a finished run.

    Args:
        path: its folder.
        again: whether it is carried out once more, in a temporary folder; a method's own file must be trusted.
        data_dir: where datasets are.
        memory: what running it again may take.
    """
    folder = RunFolder.open(Path(path))
    result, written = folder.read_result(), folder.read_provenance()
    experiment = experiment_of(folder)
    checks = [_files(folder.path), _versions(written), _method(experiment, written)]
    checks += [_data(experiment, written, data_dir), _figures(folder, result)]
    return [*checks, _again(folder, experiment, result, data_dir, memory)] if again else checks


def _files(folder: Path) -> Check:
    noted = read_manifest(folder)
    if noted is None:
        return Check("files", UNKNOWN, "no manifest.json: made by an earlier version, or stopped before it was written")
    now = fingerprints(folder)
    how = {
        name: "is gone" if name not in now else "is new" if name not in noted else "has changed" for name in noted | now
    }
    wrong = [f"{name} {how[name]}" for name in sorted(how) if noted.get(name) != now.get(name)]
    if wrong:
        return Check("files", DIFFERS, f"{'; '.join(wrong[:5])} since the run finished")
    return Check("files", HOLDS, f"{len(now)} files are as they were when the run finished")


def _versions(written: dict[str, Any]) -> Check:
    was = {"ownview": written.get("ownview"), **dict(written.get("packages") or {})}
    now = {"ownview": __version__, **package_versions()}
    wrong = [f"{name} {was[name]} then, {now.get(name)} now" for name in was if was[name] != now.get(name)]
    told = "; ".join(wrong) or ", ".join(f"{name} {version}" for name, version in now.items())
    return Check("versions", DIFFERS if wrong else HOLDS, told)


def _method(experiment: Experiment, written: dict[str, Any]) -> Check:
    try:
        now = method_fingerprint(experiment)
    except OwnviewError as error:
        return Check("method", DIFFERS, str(error))
    if now is None and written.get(METHOD) is None:
        return Check("method", HOLDS, f"{experiment.label()} comes with Ownview or an installed package")
    return _alike("method", experiment.method, "SHA-256", now, written.get(METHOD))


def _data(experiment: Experiment, written: dict[str, Any], data_dir: Path | None) -> Check:
    noted = dict(written.get("data") or {}).get("fingerprint")
    try:
        now = ExperimentSetup.of(experiment, data_dir=data_dir).split.data.fingerprint()
    except OwnviewError as error:
        return Check("data", UNKNOWN, str(error))
    return _alike("data", experiment.data_label(), "fingerprint", now, noted)


def _alike(what: str, name: str, mark: str, now: str | None, noted: Any) -> Check:
    if now != noted:
        return Check(what, DIFFERS, f"{name}: {mark} {now}; the run was made with {noted}")
    return Check(what, HOLDS, f"{name}: {mark} {now}")


def _figures(folder: RunFolder, result: dict[str, Any]) -> Check:
    if not folder.has_users:
        return Check("figures", UNKNOWN, "nothing was held out, so there are no figures")
    users, stated = folder.read_users(), result["test"]
    found = {name: mean(map(float, users[name])) for name in stated if name in users}
    wrong = [
        f"{name} is {one:.6f}, stated {stated[name]:.6f}"
        for name, one in found.items()
        if abs(one - stated[name]) > _SAME
    ]
    if wrong:
        return Check("figures", DIFFERS, f"by users.csv {'; '.join(wrong)}")
    return Check("figures", HOLDS, f"result.json follows from the values of {len(users['user'])} users")


def _again(
    folder: RunFolder, experiment: Experiment, result: dict[str, Any], data_dir: Path | None, memory: str
) -> Check:
    with tempfile.TemporaryDirectory() as place:
        try:
            made = run(experiment, out=Path(place) / "again", memory=memory, data_dir=data_dir)
        except UntrustedError:
            raise
        except OwnviewError as error:
            return Check("again", DIFFERS, f"it does not run: {error}")
        then, now = result.get("test", {}), made.result.get("test", {})
        wrong = [
            f"{name} was {value!r}, is {now.get(name)!r}" for name, value in then.items() if now.get(name) != value
        ]
        if made.result["chosen_round"] != result["chosen_round"]:
            wrong.append(f"round {result['chosen_round']} was chosen, now {made.result['chosen_round']}")
        if not wrong and folder.has_users:
            wrong = _other_users(folder.read_users(), made.folder.read_users())
    if wrong:
        return Check("again", DIFFERS, "; ".join(wrong))
    return Check("again", HOLDS, "run once more, every figure of every user is the same")


def _other_users(before: dict[str, list[str]], now: dict[str, list[str]]) -> list[str]:
    for name, column in before.items():
        for user, one, other in zip_longest(before["user"], column, now.get(name, [])):
            if one != other:
                return [f"{name} of user {user} was {one}, is {other}"]
    return []
