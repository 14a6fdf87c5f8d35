"""Text at home beside what browsers' sums say: one more public term, made of the items' table alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from ownview.base.errors import SettingError
from ownview.base.items.item_table import ItemTable
from ownview.base.items.item_text import term_vectors
from ownview.one_message.budget import ShareBudget
from ownview.one_message.numbers import signed, summand
from ownview.one_message.solving import solve
from ownview.one_message.terms import Share, Terms, agreed
from ownview.seam.portable import Linear
from tests.outcome import Outcome

ITEMS, PEOPLE, WEIGHT = 12, 40, 3.0
URLS: dict[Share, str] = {"a": "https://a.example", "b": "https://b.example"}
WORDS = ("sea", "ship", "storm", "garden", "rose", "winter")
ABOUT = ItemTable({"title": tuple(f"{WORDS[item % 6]} {WORDS[(item * item + 1) % 6]}" for item in range(ITEMS))})


def terms_of(method: str, budget: ShareBudget | None = None, **options: Any) -> Terms:
    return agreed(
        method, [str(item) for item in range(ITEMS)], URLS, dict.fromkeys(URLS, bytes(32)), budget=budget, **options
    )


def total_of(terms: Terms) -> Any:
    chance = np.random.default_rng(3)
    return sum(signed(summand(terms, chance.permutation(ITEMS)[:5].tolist())) for _ in range(PEOPLE))


def solved(terms: Terms, about: ItemTable | None, **settings: Any) -> Linear:
    return solve(terms, total_of(terms), 1, PEOPLE, settings, 1, about).form


@pytest.mark.parametrize(
    ("method", "options"),
    [("fedease", {}), ("fednext", {}), ("fednext", {"vectors": np.eye(ITEMS)[:, :4]})],
)
def test_scores_are_those_of_the_sums_and_of_the_text(method: str, options: dict[str, Any]) -> None:
    """score = s + W loud sum_i exp(-k / 2) K_i, with loud the root mean square of the weights behind s."""
    terms = terms_of(method, **options)
    plain, both = solved(terms, None), solved(terms, ABOUT, text=WEIGHT)
    assert [one.public for one in both.terms] == [False] * len(plain.terms) + [True]
    vectors = term_vectors(ABOUT).toarray()
    kernel = vectors @ vectors.T * (1 - np.eye(ITEMS))
    by_text = np.exp(-0.5) * kernel[7] + kernel[2]
    gained = (both.scores(torch.tensor([7, 2])) - plain.scores(torch.tensor([7, 2]))).double().numpy()
    here = by_text > 0
    shares = gained[here] / by_text[here]
    assert here.any()
    np.testing.assert_allclose(gained[~here], 0, atol=1e-6)
    np.testing.assert_allclose(shares, shares[0], rtol=1e-3)
    if method == "fedease":
        rows = torch.stack([plain.scores(torch.tensor([item])) for item in range(ITEMS)]).double()
        np.testing.assert_allclose(shares[0], WEIGHT * float(rows.square().mean().sqrt()), rtol=1e-3)


def test_items_that_are_left_out_leave_the_text_as_well() -> None:
    terms = terms_of("fedease")
    total = signed(summand(terms, [0, 1, 2])) * 5 + signed(summand(terms, [3, 4]))
    found = solve(terms, total, 1, 6, {"text": WEIGHT}, 3, ABOUT)
    assert found.ids == ["0", "1", "2"]
    assert len(found.form.scores(torch.tensor([0]))) == 3


def test_under_a_budget_the_weight_is_fixed() -> None:
    """To choose it on people's histories would spend what was agreed on."""
    form = solved(terms_of("fedease", ShareBudget.planned(8.0, 1e-5)), ABOUT)
    assert form.terms[-1].public


def test_what_lacks_is_one_line() -> None:
    with pytest.raises(SettingError, match="--items FILE"):
        solved(terms_of("fedease"), None, text=WEIGHT)
    with pytest.raises(SettingError, match="--set text=W"):
        solved(terms_of("fedease"), ABOUT)
    with pytest.raises(SettingError, match="counts have no place for text"):
        solved(terms_of("counts"), ABOUT)


def test_the_command_reads_the_items(tmp_path: Path, ownview: Callable[..., Outcome]) -> None:
    """A file of other items is refused before a store is opened."""
    (tmp_path / "agreement.json").write_bytes(terms_of("fedease").content)
    (tmp_path / "items.csv").write_text("item,title\nx,sea\n", encoding="utf-8")
    words = (
        "sums",
        "weights",
        tmp_path / "agreement.json",
        "--folder",
        tmp_path / "b",
        "--items",
        tmp_path / "items.csv",
    )
    done = ownview(*words, "--set", f"text={WEIGHT}")
    assert done.code == 2
    assert "names none of the 12 items" in done.err
    assert not (tmp_path / "b").exists()


@pytest.mark.parametrize(
    ("method", "options", "why"),
    [
        ("fedease", {"budget": ShareBudget.planned(8.0, 1e-5)}, "FedEASE setting takers=5: under a budget"),
        ("fednext", {"vectors": np.eye(ITEMS)[:, :4]}, "FedNext setting takers=5: in the rank form"),
    ],
)
def test_a_limit_by_takers_is_refused_where_nobody_counts_them(method: str, options: dict[str, Any], why: str) -> None:
    with pytest.raises(SettingError, match=f"^{why}.*; expected 0$"):
        solved(terms_of(method, **options), None, takers=5)
