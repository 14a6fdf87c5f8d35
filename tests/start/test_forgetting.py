"""`ownview forget START`: all of it or nothing, and after a kill anywhere the same command does the rest."""

from __future__ import annotations

import re
import shutil
import sqlite3
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from ownview.data import Interactions
from ownview.sums.additions import update
from ownview.sums.forgetting import people_of
from ownview.sums.living import kept
from tests.apart import Apart, killed_at_moment
from tests.outcome import Outcome
from tests.start.worlds import bytes_of, write_shop

PLACE = Path("place")
START = ("start", "shop.csv", "--method", "popularity", "--method", "fedease", "-k", "3", "--out", str(PLACE))
HER = "zyx-person"
NEW = f"u0,23,late,1800000000\n{HER},23,late,1800000000\n{HER},99,brand new,1800000001\n"
MEASURED = ("comparison", "report.html", "verdict.json", "plan.json")


@pytest.fixture(autouse=True)
def _start(own_folder: Path, ownview: Callable[..., Outcome]) -> None:
    write_shop(own_folder / "shop.csv", str)
    made = ownview(*START)
    assert made.code == 0, made.err
    Path("new.csv").write_text("user,item,title,timestamp\n" + NEW)


def files() -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in PLACE.rglob("*") if path.is_file()}


def traces() -> list[Path]:
    """Files that name the person or what only she had."""
    return [path for path in PLACE.rglob("*") if any(one in bytes_of(path) for one in (HER.encode(), b"brand new"))]


def grown(ownview: Callable[..., Outcome]) -> None:
    """She is in the model, the copy of the file, lists and page."""
    with Path("shop.csv").open("a") as file:
        file.write(NEW)
    again = ownview(
        "start", "shop.csv", "--method", "popularity", "--method", "fedease", "-k", "3", "--out", str(PLACE)
    )
    assert again.code == 0, again.err


def test_where_the_model_cannot_forget_nothing_is_removed(ownview: Callable[..., Outcome]) -> None:
    assert ownview("sums", "show", str(PLACE / "model")).code == 0
    journal = sqlite3.connect(PLACE / "model" / "sums" / "journal.sqlite")
    with journal:  # as a machine that rounds otherwise would have noted it
        journal.execute(
            "UPDATE contributions SET digest = 'another' WHERE id IN (SELECT id FROM people WHERE name = 'u3')"
        )
    journal.close()
    before = files()
    for user, message in (("u3", "rounds otherwise than the one that added user u3"), ("nobody", "unknown user")):
        refused = ownview("forget", str(PLACE), user)
        assert (refused.code, refused.err.count("\n")) == (2, 1)
        assert message in refused.err
        assert files() == before


def test_who_is_in_the_sums_alone_is_known(ownview: Callable[..., Outcome]) -> None:
    """As after a kill between sums and version."""
    with kept(PLACE / "model") as (_, store):
        assert store is not None
        users, items = (np.array([one, one], dtype=object) for one in (HER, "99"))
        update(store, Interactions.from_rows("new", users, items, timestamp=np.array([1, 2])), "new.csv")
    assert traces()
    gone = ownview("forget", str(PLACE), HER)
    assert gone.code == 0, gone.err
    assert not traces()


@pytest.mark.parametrize("copied", [True, False], ids=["in the copy too", "in the model alone"])
def test_killed_at_any_moment_the_same_command_does_the_rest(copied: bool, ownview: Callable[..., Outcome]) -> None:
    if copied:
        grown(ownview)
    else:
        assert ownview("update", str(PLACE / "model"), "new.csv").code == 0
    assert ownview("sums", "show", str(PLACE / "model")).code == 0
    shutil.copytree(PLACE, "whole")
    done = Apart("forget", PLACE, HER, within=partial(killed_at_moment, 0))
    assert done.wait() == 0, done.said()
    expected = {path for path in files() if "receipts" not in path.parts}
    lists = (PLACE / "lists.csv").read_bytes()
    assert not traces()
    count = int(re.findall(r"moments (\d+)", done.said())[-1])
    mark = finished = 0
    for moment in range(count, 0, -count // 9):
        shutil.rmtree(PLACE)
        shutil.copytree("whole", PLACE)
        assert Apart("forget", PLACE, HER, within=partial(killed_at_moment, moment)).wait() != 0
        if (PLACE / "forgetting").is_file():
            mark += 1
            assert HER.encode() not in (PLACE / "forgetting").read_bytes()
        again = ownview("forget", str(PLACE), HER)
        assert again.code == 0, f"moment {moment}: {again.err}"
        finished += "what was begun before is finished" in again.words
        assert not traces(), f"moment {moment}"
        assert {path for path in files() if "receipts" not in path.parts} == expected, f"moment {moment}"
        assert (PLACE / "lists.csv").read_bytes() == lists, f"moment {moment}"
    assert not list((PLACE / "model").rglob(".*")), "nothing half-written"
    assert min(mark, finished) > 1
    assert ownview("forget", str(PLACE), HER).code == 2, "now she is unknown"


def half_forgotten(ownview: Callable[..., Outcome]) -> None:
    """The model knows her no more, and the copy of the data does: as if a kill had come between the two."""
    grown(ownview)
    shutil.copytree(PLACE / "data", "data")
    assert ownview("forget", str(PLACE), HER).code == 0
    (PLACE / "forgetting").write_text("ownview forget goes on here\n")
    shutil.rmtree(PLACE / "data")
    shutil.copytree("data", PLACE / "data")


def test_another_persons_name_does_not_end_what_was_begun(ownview: Callable[..., Outcome]) -> None:
    half_forgotten(ownview)
    assert ownview("forget", str(PLACE), "nobody").code == 2
    assert traces()
    assert ownview("forget", str(PLACE), HER).code == 0
    assert not traces()
    assert not (PLACE / "forgetting").exists()


def test_a_start_does_not_go_on_while_a_person_is_half_forgotten(ownview: Callable[..., Outcome]) -> None:
    """The copy of the data may hold them still, and would bring them back into the model."""
    half_forgotten(ownview)
    for more in ("", "u0,22,another,1800000002\n"):
        with Path("shop.csv").open("a") as file:
            file.write(more)
        refused = ownview(*START)
        assert (refused.code, refused.err.count("\n")) == (2, 1)
        assert "a person was being forgotten" in refused.err
        assert "ownview forget place USER" in refused.err
    assert HER not in people_of(PLACE / "model")
    assert ownview("forget", str(PLACE), HER).code == 0
    assert not traces()


@pytest.mark.parametrize("folder", ["beside", "gone"])
def test_what_a_file_browser_leaves_beside_the_copy_keeps_nobody(folder: str, ownview: Callable[..., Outcome]) -> None:
    """The model forgets first, so that a copy that cannot be read would leave what can never be finished."""
    if folder == "gone":
        shutil.rmtree(PLACE / "data")
    else:
        (PLACE / "data" / ".DS_Store").write_bytes(b"\0\1")
    gone = ownview("forget", str(PLACE), "u3")
    assert gone.code == 0, gone.err
    assert not (PLACE / "forgetting").exists()
    assert ownview("forget", str(PLACE), "u3").code == 2


COMMANDS = ("recommend --user u3", "update shop.csv", "sums show", "serve", "page -o page.html")


def test_the_model_of_a_start_is_named_where_the_start_is_given(ownview: Callable[..., Outcome]) -> None:
    for command in COMMANDS:
        name, *others = command.split()
        words = (name, *others[:1], str(PLACE), *others[1:]) if name == "sums" else (name, str(PLACE), *others)
        refused = ownview(*words)
        assert (refused.code, refused.err.count("\n")) == (2, 1)
        assert "did you mean 'place/model'?" in refused.err
