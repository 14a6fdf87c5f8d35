"""Whatever the umask, nobody but its owner reads what a place or a server keeps.

Before, histories, members, states and answers were 0644 under the usual umask: every account of the machine read them.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from ownview.base.rights import inside
from ownview.deploy.coordinator import Coordinator
from ownview.deploy.place import Place
from ownview.federation.options import FederationOptions
from tests.deploy.in_process import InProcess
from tests.deploy.world import QUICK, agreement, write_homes, write_ratings

pytestmark = pytest.mark.skipif(os.name != "posix", reason="rights of files as POSIX has them")


@pytest.fixture
def everybody_reads() -> Iterator[None]:
    """A umask that takes nothing away."""
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.usefixtures("everybody_reads")
def test_only_the_owner_reads_what_places_and_servers_keep(tmp_path: Path) -> None:
    homes = write_homes(tmp_path, ("east", "north"), users=2)
    options = FederationOptions(privacy="local:epsilon=8,rounds=2")
    places = {name: Place(home) for name, home in homes.items()}
    coordinator = Coordinator(agreement(room=4, options=options), InProcess(places), tmp_path / "server", QUICK)
    coordinator.run(2)
    kept = [path for folder in (*homes.values(), tmp_path / "server") for path in inside(folder)]
    names = {path.name for path in kept}
    assert {"ratings.csv", "members.json", "newest", "sent.jsonl", "releases.jsonl", "secret", "agreement"} <= names
    assert {"register.json", "participants.jsonl", "a.generation", "b.generation"} <= names
    assert [path for path in kept if _mode(path) != (0o700 if path.is_dir() else 0o600)] == []


@pytest.mark.usefixtures("everybody_reads")
def test_a_wide_folder_of_before_is_narrowed_and_said(tmp_path: Path) -> None:
    home = write_homes(tmp_path, ("east",), users=2)["east"]
    place = Place(home)
    Coordinator(agreement(), InProcess({"east": place}), tmp_path / "server", QUICK).round(1)
    wide = inside(home)
    for path in wide:
        path.chmod(0o755 if path.is_dir() else 0o644)
    said: list[str] = []
    Place(home, said.append)
    assert [path for path in wide if _mode(path) & 0o077] == []
    assert said == [f"{home} and {len(wide) - 1} more: others could read it; now only its owner may"]
    again: list[str] = []
    Place(home, again.append)
    assert again == []


def test_ratings_that_are_put_there_later_are_narrowed_too(tmp_path: Path) -> None:
    home = write_homes(tmp_path, ("east",), users=2)["east"]
    place = Place(home)
    coordinator = Coordinator(agreement(), InProcess({"east": place}), tmp_path / "server", QUICK)
    coordinator.round(1)
    (home / "ratings.csv").unlink()
    write_ratings(home, "east", 3)
    (home / "ratings.csv").chmod(0o644)
    coordinator.round(2)
    assert _mode(home / "ratings.csv") == 0o600


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)
