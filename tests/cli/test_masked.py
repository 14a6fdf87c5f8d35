"""Masked sums on the command line: runs say so, attacks find nothing in uploads, and bad settings are one line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.outcome import Outcome
from tests.studies.worlds import write_random_world


@pytest.fixture
def world(own_folder: Path) -> Path:
    write_random_world(own_folder / "world.csv", users=20, items=60)
    return own_folder


def test_a_run_says_what_hides_its_uploads(world: Path, ownview: Callable[..., Outcome]) -> None:
    asked = ("run", "fedmf", "--data", "world.csv", "--rounds", "2", "--set", "embedding_size=2", "--out")
    done = ownview(*asked, "mine", "--privacy", "masked:clip=1")
    assert (done.code, done.err) == (0, "")
    assert "masked: the server sees sums over 16 to 20 clients, and no single upload; there is no noise" in done.words
    assert ownview(*asked, "private", "--privacy", "distributed:epsilon=50,masks=skipped").code == 0
    note = json.loads((world / "private" / "privacy.json").read_text(encoding="utf-8"))
    masks = note["masks"]
    assert (masks["clients"], masks["threshold"], masks["neighbours"], masks["carried_out"]) == (20, 16, 19, False)
    noise = masks["noise_of_a_device"]
    assert noise["distribution"] == "Gaussian, rounded to whole steps, drawn exactly"
    assert noise["steps_at_least"] > 4
    assert noise["delta_of_rounding"] < 1e-9 * note["delta"]
    assert any("work together with the server" in one for one in note["not_covered"])
    assert note["noise"][0]["in_the_sum"] == pytest.approx(note["noise"][0]["standard_deviation"] * (20 / 16) ** 0.5)


def test_an_attack_says_that_uploads_are_masked(world: Path, ownview: Callable[..., Outcome]) -> None:
    asked = ("attack", "fedmf", "--data", "world.csv", "--rounds", "1", "--audit-seeds", "0", "--json")
    found = json.loads(ownview(*asked, "--privacy", "masked:clip=1").out)
    assert found["notes"][0].startswith("masked: uploads are masked; attacks on one read masks")
    by_name = {one["attack"]: one for one in found["attacks"]}
    assert not any(one["succeeds"] for name, one in by_name.items() if name != "membership")
    assert not by_name["touched rows"]["applies"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("fedmf", "--privacy", "masked"), "clip is missing"),
        (("fedmf", "--privacy", "masked:clip=1,threshold=21"), "a round has 20 clients: from 11 to 20"),
        (("fedmf", "--privacy", "masked:clip=1", "--set", "clients=2"), "a round has 2 clients, too few"),
        (("fedmf", "--privacy", "distributed:epsilon=8,threshold=30"), "a round has 20 clients: from 11 to 20"),
        (("fedem", "--privacy", "masked:clip=1"), "its server needs every single upload"),
    ],
)
def test_what_cannot_be_masked_is_one_line(
    world: Path, ownview: Callable[..., Outcome], words: tuple[str, ...], said: str
) -> None:
    done = ownview("run", words[0], "--data", "world.csv", "--rounds", "1", "--out", "bad", *words[1:])
    assert done.code == 2
    assert said in done.err
    assert len(done.err.strip().splitlines()) == 1
    assert not (world / "bad").exists()
