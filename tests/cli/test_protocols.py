"""Protocols that need times, moments or newcomers, from the command line."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from ownview.cli.options import PROTOCOL_NAMES
from ownview.evaluation.named_protocols import PROTOCOLS
from tests.outcome import Outcome

DAY = 86_400


@pytest.fixture(autouse=True)
def _worlds(own_folder: Path) -> None:
    """world.csv has sittings ten days apart; untimed.csv is the same without times."""
    chance = random.Random(1)
    rows = []
    for user in range(20):
        items = chance.sample(range(40), 12)
        rows += [
            (f"u{user}", f"i{item}", (place // 2 * 10 + chance.random()) * DAY) for place, item in enumerate(items)
        ]
    Path("world.csv").write_text("user,item,timestamp\n" + "".join(f"{u},{i},{int(t)}\n" for u, i, t in rows))
    Path("untimed.csv").write_text("user,item\n" + "".join(f"{u},{i}\n" for u, i, _ in rows))


def assert_refused(outcome: Outcome, *facts: str) -> None:
    """One line on stderr, exit code 2, nothing on stdout, and nothing left behind."""
    assert outcome.code == 2, outcome
    assert outcome.out == ""
    assert re.fullmatch(r"ownview: \S[^\n]*\S\n", outcome.err), outcome.err
    for fact in facts:
        assert fact in outcome.err
    assert not Path("out").exists()


@pytest.mark.parametrize("protocol", ["next-sitting", "next-sitting@0.5", "honest-time"])
@pytest.mark.parametrize("method", ["popularity", "fedmf"])
def test_a_moment_needs_times(ownview: Callable[..., Outcome], method: str, protocol: str) -> None:
    refused = ownview("run", method, "--data", "untimed.csv", "--protocol", protocol, "--out", "out")
    facts = (
        f"untimed: protocol {protocol} asks at a moment in time",
        "has no times",
        "expected a column of timestamps",
    )
    assert_refused(refused, *facts, "another protocol: honest, or sequential")


@pytest.mark.parametrize("protocol", ["next-sitting@", "next-sitting@2", "next-sittin"])
def test_a_name_that_is_none_is_refused(ownview: Callable[..., Outcome], protocol: str) -> None:
    refused = ownview("run", "popularity", "--data", "world.csv", "--protocol", protocol, "--out", "out")
    assert_refused(
        refused, f"protocol {protocol}" if "@" in protocol else f"'{protocol}'; did you mean 'next-sitting'?"
    )


def test_values_of_every_user_say_nothing_about_newcomers(ownview: Callable[..., Outcome]) -> None:
    refused = ownview("run", "mf", "--data", "world.csv", "--protocol", "new-users", "--out", "out")
    assert_refused(refused, "mf learns values for every user", "under protocol new-users", "such as ease")


def test_a_world_where_nobody_comes_back_is_refused(ownview: Callable[..., Outcome]) -> None:
    rows = "".join(f"u{user},i{item},{100 * item + user}\n" for item in range(9) for user in range(9))
    Path("one-evening.csv").write_text("user,item,timestamp\n" + rows)
    refused = ownview("run", "popularity", "--data", "one-evening.csv", "--protocol", "next-sitting", "--out", "out")
    assert_refused(refused, "one-evening: no user can be asked for validation under protocol next-sitting")


@pytest.mark.parametrize("protocol", ["next-sitting@0.5", "honest-time", "sequential", "new-users"])
def test_runs_and_recommends(ownview: Callable[..., Outcome], protocol: str) -> None:
    done = ownview("run", "fedease", "--data", "world.csv", "--protocol", protocol, "--out", "out")
    assert done.code == 0, done
    users = [line.split(",")[0] for line in Path("out/users.csv").read_text().splitlines()[1:]]
    shown = ownview("recommend", "out", "--user", users[0], "-k", "3", "--json")
    assert shown.code == 0, shown
    found = json.loads(shown.out)
    assert found["protocol"] == protocol
    assert len({one["item"] for one in found["recommendations"]}) == 3


def test_untimed_rows_in_order_may_be_asked_for_the_next(ownview: Callable[..., Outcome]) -> None:
    done = ownview("run", "fedease", "--data", "untimed.csv", "--protocol", "sequential", "--out", "out")
    assert done.code == 0, done
    assert "the rows of the file are taken to be in time order" in done.words


def test_a_table_says_that_there_are_no_times(ownview: Callable[..., Outcome]) -> None:
    rows = "".join(f'[[rows]]\nmethod = "{name}"\n' for name in ("popularity", "fednext", "recent-popularity"))
    head = 'title = "T"\nabout = "A"\nrounds = 1\nseeds = 1\nprotocols = ["honest"]\ndata = ["untimed.csv"]\n'
    Path("suite.toml").write_text(head + rows)
    done = ownview("bench", "suite.toml", "--out", "out", "--jobs", "1")
    assert done.code == 3
    lines = [line for line in Path("out/results.md").read_text().splitlines() if line.startswith("| ")]
    assert [line.count("| no times |") + line.count(" no times | no times |") > 0 for line in lines[2:]] == [
        False, True, True,
    ]  # fmt: skip


@pytest.mark.parametrize("command", ["run", "compare", "audit"])
def test_help_names_every_protocol(command: str, ownview: Callable[..., Outcome]) -> None:
    named = set(re.findall(r"[a-z][a-z-]+", ownview(command, "--help").out))
    assert named >= set(PROTOCOLS)


def test_a_description_shows_dates(ownview: Callable[..., Outcome]) -> None:
    Path("dated.csv").write_text("user,item,timestamp\nu1,a,885075824\nu1,b,885075825\n")
    assert "1998-01-17 22:23 UTC to" in ownview("data", "describe", "dated.csv").words


def test_the_help_names_all_protocols() -> None:
    assert PROTOCOL_NAMES.split(", ") == [*PROTOCOLS, "or a .toml file"]
