"""Titles that a person types in and no model knows: an export's scorer takes them for a sum of items, by their text."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from ownview import Experiment
from ownview.base.items.item_text import item_terms
from ownview.evaluation.named_protocols import on_everything
from ownview.pages import scorer
from ownview.pages.export import export, write_portable
from ownview.pages.page import page
from ownview.pages.typed_titles import vocabulary
from ownview.pages.words import Words
from ownview.parts.text.carried import Carrier
from ownview.runs.run import Run, run
from ownview.seam.portable import Factors, Linear, Logistic, Ridge, Term
from ownview.testing import small_world
from tests.pages.carried_titles import carried_shares

TITLE = "Dragons again, by Ann Lee"
WORDS = ("dragons", "robots", "gardens", "winter", "summer")


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Run:
    experiment = Experiment("fedease", protocol=on_everything(), rounds=1, device="cpu")
    data = small_world().data
    titles = [f"Tale {item} of {WORDS[item % 5]} and {WORDS[item % 3]}" for item in data.items.tolist()]
    makers = [("Ann Lee", "Bo Ek", "Cy Oh", "Di Woo")[item % 4] for item in data.items.tolist()]
    titled = data.with_tables(items={"item": data.items.tolist(), "title": titles, "creator": makers})
    return run(experiment, data=titled, out=tmp_path_factory.mktemp("fit") / "run")


def test_words_of_published_items_are_kept_and_no_others(fitted: Run) -> None:
    about = fitted.loaded().split.data.about
    assert about is not None
    kept = [1, 4, 5]
    found = vocabulary(about, kept)
    assert found is not None
    names = item_terms(about).names
    said = {name for item in kept for name in np.array(names)[item_terms(about).present[item].indices]}
    rare = {name for name, weight in zip(names, item_terms(about).weights, strict=True) if weight > 0}
    assert set(found["terms"]) == said & rare
    assert len(found["rows"]) == len(kept)
    assert vocabulary(None, kept) is None


def test_shares_are_those_by_which_a_file_of_new_items_is_carried(fitted: Run) -> None:
    about = fitted.loaded().split.data.about
    assert about is not None
    words = Words(vocabulary(about, range(60)) or {})
    terms = ["dragons", "robots", "dragons and", "and robots", "creator:ann lee"]
    expected = carried_shares(about, list(range(60)), terms)
    assert expected.sum() == pytest.approx(1)
    np.testing.assert_allclose(words.shares("Dragons! And robots; Ann LEE"), expected, atol=1e-6)
    assert words.known("xyzzy") == []
    assert words.known("WINTER") == words.known("winter") != []


@pytest.mark.parametrize("kind", ["linear", "ridge", "logistic"])
def test_a_title_counts_as_the_sum_of_items_in_every_form(kind: str, fitted: Run, tmp_path: Path) -> None:
    data, draw = fitted.loaded().split.data, torch.Generator().manual_seed(3)
    m = data.num_items
    text = vocabulary(data.about, range(m))
    assert text is not None
    carrier = Carrier(torch.from_numpy(Words(text).shares(TITLE))[:, None])
    form: Linear | Factors
    if kind == "linear":
        form = Linear((Term(torch.randn(m, m, generator=draw), 2.0),), torch.randn(m, generator=draw))
        weights = form.terms[0].weights
        assert isinstance(weights, torch.Tensor)
        wide = Linear((Term(carrier.rows(torch.cat([weights, weights[:1]])), 2.0),), form.bias)
    else:
        fold = Ridge(0.5, 1.0, 1.0, 0.1, 2.0, 0.5) if kind == "ridge" else Logistic(2.0, 0.5, 10)
        form = Factors(torch.randn(m, 4, generator=draw), fold, torch.randn(m, generator=draw))
        assert form.bias is not None
        rows = carrier.rows(torch.cat([form.items, form.items[:1]]))
        bias = carrier.columns(torch.cat([form.bias, form.bias[:1]]))
        wide = Factors(rows, fold, bias)  # type: ignore[assignment]
    write_portable(tmp_path, form, data.items.tolist(), [data.title(k) for k in range(m)], {}, text)
    found = scorer.Model(tmp_path).with_titles([TITLE]).scores([3, 7, m])[:m]
    expected = wide.scores(torch.tensor([3, 7, m]))[:m]
    np.testing.assert_allclose(found, expected.double().numpy(), rtol=1e-4, atol=1e-4)


def test_a_folder_takes_titles_on_the_command_line(fitted: Run, tmp_path: Path) -> None:
    folder = export(fitted, tmp_path / "device", min_people=1).path
    assert "text.json" in json.loads((folder / "model.json").read_text())["sha256"]

    def asked(*words: str) -> subprocess.CompletedProcess[str]:
        program = [sys.executable, "-I", "-B", str(folder / "scorer.py"), *words]
        return subprocess.run(program, capture_output=True, text=True, check=False)

    alone, beside = asked(TITLE), asked("3", TITLE)
    assert len(alone.stdout.splitlines()) == len(beside.stdout.splitlines()) == 10
    assert alone.stdout != beside.stdout
    unknown = asked("3", "xyzzy")
    assert (unknown.returncode, unknown.stdout) == (2, "")
    assert unknown.stderr.startswith("scorer.py: no item has the id 'xyzzy'; expected ids of items.csv")


def test_words_that_take_too_much_room_are_left_out_and_the_maker_is_told(
    fitted: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = page(fitted, tmp_path / "whole.html", min_people=1)
    assert '"text":{"terms":[' in whole.path.read_text(encoding="utf-8")
    monkeypatch.setattr("ownview.pages.page.TEXT_SHARE", 0.0001)
    small = page(fitted, tmp_path / "small.html", min_people=1)
    assert '"text":null' in small.path.read_text(encoding="utf-8")
    assert any("cannot be typed in" in one for one in small.warnings())
