"""`ownview attack` on the command line, from Python, and as a finding of comparisons."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import ownview as ov
from ownview.attacks.scoring import AttackFinding
from ownview.attacks.suite import from_one_upload
from ownview.attacks.view import Scene
from ownview.runs.findings import exposure
from ownview.runs.findings.exposure import exposures
from ownview.runs.run import open_run
from tests.outcome import Outcome
from tests.studies.worlds import write_random_world

_LITTLE = ("--data", "world.csv", "--rounds", "1", "--clients", "12", "--audit-seeds", "1")


@pytest.fixture
def world(own_folder: Path) -> Path:
    write_random_world(own_folder / "world.csv", users=30, items=200)
    return own_folder


def test_a_method_is_attacked_in_a_table_and_as_json(world: Path, ownview: Callable[..., Outcome]) -> None:
    shown = ownview("attack", "fedmf", *_LITTLE, "-o", "attack.json")
    assert shown.code == 0, shown.err
    assert "sign: the server reads a user's items from one upload" in shown.words
    assert "privacy none: 1 round watched" in shown.words
    written = json.loads((world / "attack.json").read_text(encoding="utf-8"))
    assert (written["method"], written["privacy"], written["protocol"], written["seed"]) == (
        "fedmf",
        "none",
        "honest",
        0,
    )
    by_name = {one["attack"]: one for one in written["attacks"]}
    assert by_name["sign"]["values"]["precision"] >= 0.99
    assert not by_name["diagonal"]["applies"]
    assert by_name["canary audit"]["succeeds"]
    again = ownview("attack", "fedmf", *_LITTLE, "--json")
    assert json.loads(again.out)["attacks"] == written["attacks"]
    same = ov.attack(ov.FedMF(), ov.read(world / "world.csv"), rounds=1, clients=12, audit_seeds=0)
    assert same.finding("sign").to_dict() == by_name["sign"]


def test_a_run_is_attacked_as_it_was_and_with_noise(world: Path, ownview: Callable[..., Outcome]) -> None:
    assert ownview("run", "pfedrec", "--data", "world.csv", "--rounds", "1", "--out", "mine").code == 0
    asked = ("attack", "mine", "--rounds", "1", "--audit-seeds", "0", "--json")
    plain, noisy = (json.loads(ownview(*asked, *more).out) for more in ((), ("--privacy", "laplace:1000")))
    assert [one["succeeds"] for one in plain["attacks"] if one["attack"] == "sign"] == [True]
    assert [one["succeeds"] for one in noisy["attacks"] if one["attack"] == "sign"] == [False]
    assert noisy["privacy"] == "laplace:1000"
    assert "no epsilon" in noisy["notes"][0]
    refused = ownview("attack", "mine", "--data", "world.csv")
    assert (refused.code, refused.err) == (2, "ownview: --data: not with a run's folder, which has its own\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("popularity",), "not federated"),
        (("fedmff",), "did you mean 'fedmf'"),
        (("fedmf", "--privacy", "laplace:-1"), "is not above 0"),
        (("nowhere/run",), "unknown method"),
    ],
)
def test_what_cannot_be_attacked_is_refused_in_one_line(
    world: Path, ownview: Callable[..., Outcome], arguments: tuple[str, ...], message: str
) -> None:
    refused = ownview("attack", *arguments, "--data", "world.csv", "-o", "attack.json")
    assert refused.code == 2
    assert message in refused.err
    assert refused.err.count("\n") == 1
    assert not (world / "attack.json").exists()


def test_comparisons_say_what_one_upload_gives_away(
    world: Path, ownview: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ("compare", "popularity", "fedmf", "local-only", "--data", "world.csv", "--rounds", "1", "--out", "all")
    shown = " ".join(ownview(*arguments).out.split())
    assert "! fedmf: the server reads a user's items from one upload" in shown
    assert "local-only: the server" not in shown
    asked: list[int] = []

    def counted(scene: Scene, clients: int) -> AttackFinding:
        asked.append(clients)
        return from_one_upload(scene, clients)

    monkeypatch.setattr(exposure, "from_one_upload", counted)
    table = json.loads(ownview(*arguments, "--resume", "all", "--json").out)
    assert table["attacks"]["fedmf"]["fires"]
    assert not table["attacks"]["local-only"]["fires"]
    assert set(table["attacks"]) == set(table["liars"]) == {"fedmf", "local-only"}
    assert all("one client that lies" in one["sentence"] for one in table["liars"].values())
    assert not asked, "what a folder tells is not found out again"
    run = open_run(Path("all/fedmf-honest-seed0"))
    run.folder.write_note("attack", {"damaged": 1})
    assert exposures([run]) == {}
    assert exposures([run], probe=True)["fedmf"].fires
    assert len(asked) == 1
