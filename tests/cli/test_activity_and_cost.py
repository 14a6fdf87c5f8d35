"""`ownview run` tells how active and inactive users fare, and what the method costs."""

from __future__ import annotations

import csv
import json
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from ownview import FedMF
from ownview.base.display.amounts import readable
from ownview.data.datasets.catalog import load
from ownview.evaluation.named_protocols import HONEST
from ownview.testing.worlds import federation
from tests.methods.golden import touched_rows
from tests.outcome import Outcome

QUICK = ("--rounds", "2", "--set", "embedding_size=4", "--set", "local_epochs=1")
ITEMS = 60


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Twenty users with 6 to 25 interactions; every item occurs."""
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.chdir(tmp_path)
    chance = random.Random(1)
    rows = ["user,item,rating,timestamp"]
    for user in range(20):
        chosen = {3 * user, 3 * user + 1, 3 * user + 2, *chance.sample(range(ITEMS), ITEMS)[: user + 3]}
        rest = (item for item in range(ITEMS) if item not in chosen)
        chosen |= {next(rest) for _ in range(user + 6 - len(chosen))}
        rows += [f"u{user},i{item},3,{chance.randint(0, 5000)}" for item in sorted(chosen)]
    path = tmp_path / "world.csv"
    path.write_text("\n".join(rows) + "\n")
    return path


def object_of(outcome: Outcome) -> dict[str, Any]:
    assert (outcome.code, outcome.err) == (0, "")
    found = json.loads(outcome.out)
    assert isinstance(found, dict)
    return found


def test_run_prints_and_writes_quarters_and_inactive_users(world: Path, ownview: Callable[..., Outcome]) -> None:
    outcome = ownview("run", "fedmf", "--data", world, *QUICK, "--inactive", "10:13", "--out", "run")
    assert (outcome.code, outcome.err) == (0, "")
    result = json.loads(Path("run/result.json").read_text())
    groups, inactive = result["groups"], result["inactive"]
    assert [(one["users"], one["interactions"]) for one in groups] == [
        (5, [6, 10]), (5, [11, 15]), (5, [16, 20]), (5, [21, 25]),
    ]  # fmt: skip
    cells = [f"{one['test']['HR@10']:.4f} ({one['interactions'][0]}-{one['interactions'][1]})" for one in groups]
    assert f"HR@10 by interactions of the user: {' '.join(cells)}" in outcome.words
    with Path("run/users.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["user"] in ("u4", "u5", "u6")]
    assert (inactive["users"], inactive["interactions"]) == (3, [10, 12])
    for name, value in inactive["test"].items():
        assert value == pytest.approx(sum(float(row[name]) for row in rows) / 3)
    assert re.search(r"inactive 10:13 \(10-12 interactions\), 3 users: HR@10 0\.\d+ NDCG@10 0\.\d+", outcome.words)


def test_run_prints_and_writes_the_cost(world: Path, ownview: Callable[..., Outcome]) -> None:
    outcome = ownview("run", "fedmf", "--data", world, *QUICK, "--out", "run")
    result, whole = (json.loads(Path(f"run/{name}.json").read_text()) for name in ("result", "cost"))
    assert whole["declared"]["client_values"] == (ITEMS + 1) * 4
    assert (whole["measured"]["client"], whole["measured"]["samples"]) == ("u19", 23 * 5)
    cost = result["cost"]
    assert (cost["client_bytes"], cost["server_bytes"]) == ((ITEMS + 1) * 16, ITEMS * 16)
    headings = 16 + (1 + len("items") + 12)  # of the message, and of the one table that it carries
    assert result["bytes_down_per_client"] == headings + cost["bytes_down_per_client"]
    method = FedMF(embedding_size=4, local_epochs=1)
    one = federation(method, HONEST.prepare(load(world)), dtype=torch.float32)
    # Up go the rows that a client's samples are about, with their numbers, or the whole table where that is shorter.
    up = [[headings + min(4 + rows * (4 + 16), 960) for rows in touched_rows(one, number)] for number in (1, 2)]
    assert result["bytes_up_per_client"] == round(sum(round(sum(sizes) / 20) for sizes in up) / 2)
    assert result["bytes_up_per_client"] < headings + cost["bytes_up_per_client"]
    laps = [json.loads(line)["seconds"]["server"] for line in Path("run/rounds.jsonl").read_text().splitlines()]
    assert cost["seconds"]["server"] == pytest.approx(sum(laps) / len(laps), abs=1e-6)
    down, upload = (readable(result[f"bytes_{way}_per_client"]) for way in ("down", "up"))
    cost_line = f"cost: client 976 bytes, server 960 bytes, down {down} and up {upload} a round of "
    assert re.search(cost_line + r"[\d.e-]+ s \(slowest client [\d.e-]+, server [\d.e-]+\)", outcome.words)


def test_a_model_that_is_not_federated_has_groups_but_no_cost(world: Path, ownview: Callable[..., Outcome]) -> None:
    outcome = ownview("run", "popularity", "--data", world, "--out", "run")
    assert "HR@10 by interactions of the user" in outcome.words
    assert "cost:" not in outcome.words
    result = json.loads(Path("run/result.json").read_text())
    assert len(result["groups"]) == 4
    assert not {"cost", "inactive"} & set(result)
    assert not Path("run/cost.json").exists()


def test_inactive_comes_from_a_config_and_the_option_overrides_it(world: Path, ownview: Callable[..., Outcome]) -> None:
    Path("mine.toml").write_text(f"method = 'popularity'\ndata = '{world}'\ninactive = '6:9'\n")
    found = object_of(ownview("run", "--config", "mine.toml", "--out", "one", "--json"))
    assert found["inactive"]["label"] == "inactive 6:9"
    again = object_of(ownview("run", "--config", "one/experiment.toml", "--out", "two", "--json"))
    assert again["inactive"] == found["inactive"]
    other = object_of(ownview("run", "--config", "mine.toml", "--inactive", "07:14", "--out", "three", "--json"))
    assert other["inactive"]["label"] == "inactive 7:14"
    assert ownview("run", "--resume", "three", "--inactive", "07:14").code == 0
    refused = ownview("run", "--resume", "three", "--inactive", "6:9")
    assert (refused.code, "inactive='7:14', not '6:9'" in refused.err) == (2, True)
    none = object_of(ownview("run", "--config", "mine.toml", "--inactive", "", "--out", "four", "--json"))
    assert "inactive" not in none


def test_a_range_without_users_is_refused_before_training(world: Path, ownview: Callable[..., Outcome]) -> None:
    outcome = ownview("run", "fedmf", "--data", world, "--inactive", "26:30", "--out", "run")
    message = "ownview: setting inactive='26:30': no ranked user has so many interactions; expected a range that meets "
    assert outcome == Outcome(2, "", message + "6 to 25, such as 6:15\n")
    assert not Path("run").exists()


def test_a_result_of_an_earlier_version_is_still_shown(world: Path, ownview: Callable[..., Outcome]) -> None:
    assert ownview("run", "fedmf", "--data", world, *QUICK, "--out", "run").code == 0
    result = json.loads(Path("run/result.json").read_text())
    del result["groups"], result["cost"]
    Path("run/result.json").write_text(json.dumps(result))
    outcome = ownview("run", "--resume", "run")
    assert (outcome.code, outcome.err) == (0, "")
    assert "HR@10's 95 % interval over users" in outcome.words
    assert "cost:" not in outcome.words
