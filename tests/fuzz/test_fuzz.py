"""Seeded cases, one after the other in this process; a failure names its seed, which repeats it anywhere."""

from __future__ import annotations

import contextlib
import io
import random
import re
import sys
import traceback
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from ownview.base.errors import DownloadError
from ownview.cli.main import entry
from ownview.data.datasets.unpack import unpack
from ownview.runs.experiment import Experiment
from ownview.runs.findings.audits import findings_of
from ownview.runs.run import run
from tests.faults.conftest import write_world
from tests.fuzz.cases import case
from tests.fuzz.harm import spoilt_bytes

FOUND = (333, 492, 2752, 3309, 5560, 7012, 7307, 8819, 9810)
"""Seeds beyond those of every day that ended in a traceback once."""

STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2028\u2029]")


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What is spoilt: data in several forms, a run that has finished, and one that has not."""
    import polars as pl

    folder = tmp_path_factory.mktemp("sound")
    world = write_world(folder / "world.csv")
    pl.read_csv(world).write_parquet(folder / "world.parquet")
    experiment = Experiment(
        method="fedmf", data=str(world), rounds=2, settings={"embedding_size": 4, "local_epochs": 1}, watch=("u1",)
    )
    findings_of([run(experiment, out=folder / "done")], probe=True)
    with contextlib.suppress(_StopError):
        run(experiment, out=folder / "begun", on_round=_stop_late)
    return folder


class _StopError(Exception):
    """Ends a run after its second round."""


def _stop_late(number: int, metrics: dict[str, float]) -> None:
    if number == 2:
        raise _StopError


def outcome(arguments: list[str]) -> tuple[object, str, str]:
    """Exit code, stdout and stderr of a command in this process; a bug's traceback instead of the code."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    code: object = "returned"
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), _called_with(arguments):
        try:
            entry()
        except SystemExit as ended:
            code = ended.code
        except BaseException:
            code = traceback.format_exc()
    for stream in (out, err):
        stream.flush()
    return code, out.buffer.getvalue().decode(), err.buffer.getvalue().decode()


@contextlib.contextmanager
def _called_with(arguments: list[str]) -> Iterator[None]:
    before = sys.argv
    sys.argv = ["ownview", *arguments]
    try:
        yield
    finally:
        sys.argv = before


def fault(code: object, out: str, err: str) -> str | None:
    """What is wrong with how a command ended; None where nothing is."""
    if code not in (0, 2, 3):
        return f"ended with {code}"
    if found := STEERING.search(out + err):
        return f"{found[0]!r} reached the terminal: {out + err}"
    if code == 0:
        return None if "Traceback" not in err else err
    lines = err.splitlines()
    usage = lines[:1] == [] or lines[0].startswith("Usage:")
    if not lines or not lines[-1].startswith("ownview: ") or (len(lines) > 1 and not usage) or "Traceback" in err:
        return f"ended with {code} and {err!r}"
    return None


def faults(seeds: range, sound: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    for seed in seeds:
        place = tmp_path / str(seed)
        place.mkdir()
        monkeypatch.chdir(place)
        arguments = case(seed, sound)
        if found := fault(*outcome(arguments)):
            yield f"seed {seed}: ownview {' '.join(map(ascii, arguments))}\n{found}"


@pytest.mark.usefixtures("own_folder")
@pytest.mark.parametrize("start", range(0, 500, 50))
def test_no_traceback(start: int, sound: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = list(faults(range(start, start + 50), sound, tmp_path, monkeypatch))
    assert not found, "\n\n".join(found)


@pytest.mark.usefixtures("own_folder")
def test_seeds_that_have_found_something(sound: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = [one for seed in FOUND for one in faults(range(seed, seed + 1), sound, tmp_path, monkeypatch)]
    assert not found, "\n\n".join(found)


@pytest.mark.slow
@pytest.mark.usefixtures("own_folder")
@pytest.mark.parametrize("start", range(500, 10_500, 500))
def test_no_traceback_in_ten_thousand(start: int, sound: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = list(faults(range(start, start + 500), sound, tmp_path, monkeypatch))
    assert not found, "\n\n".join(found)


def test_archives(tmp_path: Path) -> None:
    """Archives that nobody vouches for, spoilt 400 times: unpacked, or refused."""
    chance, path = random.Random(3), tmp_path / "a.zip"
    for _ in range(400):
        packed = io.BytesIO()
        kind = chance.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA))
        with zipfile.ZipFile(packed, "w", kind) as archive:
            archive.writestr("ml/u.data", "1\t2\t3\t4\n" * chance.randint(1, 90))
        path.write_bytes(spoilt_bytes(packed.getvalue(), chance))
        with contextlib.suppress(DownloadError):
            assert unpack(path, "ml/u.data", tmp_path).is_file()


@pytest.mark.usefixtures("own_folder")
def test_the_cases_reach_what_they_are_meant_to(sound: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Most are refused, some are not harmed enough: both must be among them, and every command."""
    codes, commands = set(), set()
    for seed in range(60):
        place = tmp_path / str(seed)
        place.mkdir()
        monkeypatch.chdir(place)
        arguments = case(seed, sound)
        commands.add(arguments[0])
        codes.add(outcome(arguments)[0])
    assert {0, 2} <= codes
    assert {"run", "data", "recommend", "report", "ls", "bench"} <= commands
