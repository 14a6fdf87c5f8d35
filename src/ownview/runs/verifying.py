"""Is a run what it says: files, source, data, figures; and, run once more, does it come out again."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import zip_longest
from pathlib import Path
from statistics import mean
from typing import Any

from ownview.base.arguments import kinds_checked
from ownview.base.display.shown import one_line
from ownview.base.errors import OwnviewError
from ownview.base.trust import UntrustedError
from ownview.base.version import __version__
from ownview.runs.experiment import Experiment
from ownview.runs.files.folder import RunFolder
from ownview.runs.files.manifest import fingerprints, read_manifest
from ownview.runs.files.provenance import package_versions
from ownview.runs.files.sources import METHOD, method_fingerprint
from ownview.runs.run import Run, experiment_of, run
from ownview.runs.scoring import is_of_lists, lists_of
from ownview.runs.training.setup import ExperimentSetup

HOLDS, DIFFERS, UNKNOWN = "holds", "differs", "unknown"
_SAME = 1e-9
"""What a figure of result.json may differ by from the mean of users.csv, whose values have 12 places."""
_SHOWN = 4
"""Decimals of a figure that tables and a board show."""


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


@kinds_checked()
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
    checks = [_files(folder.path), _versions(written), _method(folder.path, experiment, written)]
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
    versions = "; ".join(wrong) or ", ".join(f"{name} {version}" for name, version in now.items())
    return Check("versions", DIFFERS if wrong else HOLDS, versions)


def _method(folder: Path, experiment: Experiment, written: dict[str, Any]) -> Check:
    try:
        if is_of_lists(experiment):
            found = lists_of(folder)
            return _alike(
                "method", f"lists in {found.file.name}", "SHA-256", found.sha256, experiment.settings["sha256"]
            )
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
            model = lists_of(folder.path) if is_of_lists(experiment) else None
            made = run(experiment, model=model, out=Path(place) / "again", memory=memory, data_dir=data_dir)
        except UntrustedError:
            raise
        except OwnviewError as error:
            return Check("again", DIFFERS, f"it does not run: {error}")
        users = folder.read_users() if folder.has_users else {}
        return came_out_again(result, folder.read_provenance(), made, users)


def came_out_again(
    stated: Mapping[str, Any], then: Mapping[str, Any], made: Run, users: Mapping[str, list[str]] | None = None
) -> Check:
    """Hold a result against the same experiment's, carried out here.

    On the same kind of machine with the same versions every figure must be the same. Elsewhere other rounding gives
    other numbers: those that agree in the four decimals that tables show hold, and of headline figures that lie within
    the 95 % interval that was worked out here this machine cannot tell rounding from another result.

    Args:
        stated: the result: `test`, `chosen_round`.
        then: its provenance.
        made: here.
        users: columns of the run's users.csv, where they are known.
    """
    test, now = stated.get("test", {}), made.result.get("test", {})
    wrong = [f"{name} is {now.get(name)!r}, stated {value!r}" for name, value in test.items() if now.get(name) != value]
    if made.result["chosen_round"] != stated["chosen_round"]:
        wrong.append(f"round {made.result['chosen_round']} was chosen, stated {stated['chosen_round']}")
    if not wrong:
        wrong = _other_users(users, made.folder.read_users()) if users else []
    if not wrong:
        return Check("again", HOLDS, f"run once more, every figure{' of every user' if users else ''} is the same")
    elsewhere = _elsewhere(then, made.folder.read_provenance())
    if not elsewhere:
        return Check("again", DIFFERS, "; ".join(wrong))
    apart = {name: abs(now[name] - value) if name in now else math.inf for name, value in test.items()}
    most = max(apart, key=lambda name: apart[name])
    difference = f"{most} differs most, by {apart[most]:.1e}; this machine rounds otherwise: {elsewhere}"
    if apart[most] < 0.5 * 10**-_SHOWN:
        return Check("again", HOLDS, f"run once more, every figure agrees in {_SHOWN} decimals; {difference}")
    intervals = made.result.get("interval_95", {})
    if intervals and all(low <= test.get(name, math.inf) <= high for name, (low, high) in intervals.items()):
        return Check("again", UNKNOWN, f"run once more, figures lie within their 95 % intervals, but {difference}")
    return Check("again", DIFFERS, "; ".join(wrong))


def _elsewhere(then: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """In what two provenances differ that rounding hangs on, in words; empty where it is nothing."""
    differences = [
        f"Ownview's {name} {then.get(name)} then, {now.get(name)} now"
        for name in ("ownview", "revision")
        if then.get(name) != now.get(name)
    ]
    for part in ("packages", "machine"):
        was, has = (noted if isinstance(noted := one.get(part), dict) else {} for one in (then, now))
        differences += [
            f"{name} {was.get(name)} then, {has.get(name)} now" for name in has if was.get(name) != has.get(name)
        ]
    return one_line(", ".join(differences))


def _other_users(before: Mapping[str, list[str]], now: Mapping[str, list[str]]) -> list[str]:
    for name, column in before.items():
        for user, one, other in zip_longest(before["user"], column, now.get(name, [])):
            if one != other:
                return [f"{name} of user {user} was {one}, is {other}"]
    return []
