"""Cards, pages and exports under a budget: they printed the seed of the noise, exact counts and a hash of the data.

The seed took the noise off (`test_printed_seed.py`); the number of interactions and the hash told whether one guessed
interaction was there. Figures were measured on held-out interactions of the same people, which no epsilon covers.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import ownview as ov
from ownview.base.errors import SettingError
from ownview.data import Interactions
from ownview.pages.export import export
from ownview.pages.page import page
from ownview.runs.run import Run
from tests.shop import shop

_PRIVATE = {"privacy": "central:epsilon=8"}


@pytest.fixture(scope="module")
def data() -> Interactions:
    return shop()


@pytest.fixture(scope="module")
def private(data: Interactions, tmp_path_factory: pytest.TempPathFactory) -> Run:
    out = tmp_path_factory.mktemp("fit") / "run"
    return ov.fit(ov.FedEASE(), data, seed=7_654_321, federation=_PRIVATE, out=out)


def test_nothing_exact_is_published(private: Run, data: Interactions, tmp_path: Path) -> None:
    folder = export(private, tmp_path / "model").path
    html = page(private, tmp_path / "page.html").path
    texts = [(folder / name).read_text(encoding="utf-8") for name in ("model.json", "MODEL_CARD.md")]
    for text in [*texts, html.read_text(encoding="utf-8")]:
        assert "7654321" not in text
        assert data.fingerprint()[:12] not in text
        assert f"{len(data)} interactions" not in text
    about = json.loads(texts[0])
    assert "seed" not in about
    assert not {"interactions", "fingerprint"} & set(about["data"])
    assert isinstance(about["figures"], str)
    assert set(about["agreement"]) == {"sentence"}
    assert any(note.startswith("private: central noise, epsilon 8") for note in about["notes"])


def test_a_model_without_a_budget_says_what_it_said(data: Interactions, tmp_path: Path) -> None:
    plain = ov.fit(ov.FedEASE(), data, seed=5)
    about = json.loads((export(plain, tmp_path / "model", min_people=1).path / "model.json").read_text())
    assert about["seed"] == 5
    assert about["data"]["interactions"] == len(data)


def test_a_model_whose_noise_is_known_is_not_published(data: Interactions, tmp_path: Path) -> None:
    seeded = ov.fit(ov.FedEASE(), data, federation={"privacy": "central:epsilon=8,noise=seeded"})
    for publish in (export, page):
        with pytest.raises(SettingError, match="not private: noise from a seed"):
            publish(seeded, tmp_path / "made")


def test_a_round_chosen_by_held_out_interactions_is_not_published(data: Interactions, tmp_path: Path) -> None:
    measured = ov.run(ov.FedEASE(), data, rounds=2, federation=_PRIVATE, out=tmp_path / "run")
    with pytest.raises(SettingError, match="its round was chosen by held-out interactions"):
        export(measured, tmp_path / "made")
    with pytest.raises(SettingError, match="settings and rounds come from a run that was measured"):
        export(ov.fit(like=measured, data=data), tmp_path / "made")
