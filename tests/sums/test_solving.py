"""Sums are solved again by a rank update where few items changed, and wholly where many did; both give the same."""

from __future__ import annotations

import pytest
import torch

from ownview.parts.pairs.pairs_again import PairsAgain
from ownview.parts.pairs.positive_definite import ease_weights

ITEMS, LAMBDA = 80, 5.0


def _gram(people: int, items: int = ITEMS, seed: int = 0) -> torch.Tensor:
    histories = (torch.rand(people, items, generator=torch.Generator().manual_seed(seed)) < 0.2).double()
    return histories.T @ histories


def _with_one_more(gram: torch.Tensor, items: list[int]) -> torch.Tensor:
    one = torch.zeros(len(gram), dtype=gram.dtype)
    one[items] = 1
    return gram + one[:, None] * one


def test_few_changed_items_are_a_rank_update_that_gives_what_solving_anew_gives() -> None:
    again = PairsAgain(LAMBDA)
    first = again({"pairs": _gram(50)}, {})
    assert first.how == "whole factorisation"
    changed = _with_one_more(_gram(50), [3, 17, 40])
    found = again({"pairs": changed}, first.kept)
    assert found.how == f"rank update of 3 of {ITEMS} items"
    assert torch.allclose(found.values["weights"], ease_weights(changed, LAMBDA), atol=1e-12, rtol=0)
    assert not found.kept  # what the whole factorisation left is what the next update begins with
    more = _with_one_more(changed, [8, 17])
    further = again({"pairs": more}, first.kept)
    assert further.how == f"rank update of 4 of {ITEMS} items"
    assert torch.allclose(further.values["weights"], ease_weights(more, LAMBDA), atol=1e-12, rtol=0)
    back = again({"pairs": _gram(50)}, first.kept)
    assert back.how == f"rank update of 0 of {ITEMS} items"
    assert torch.allclose(back.values["weights"], first.values["weights"], atol=1e-12, rtol=0)


def test_items_that_come_behind_the_others_are_part_of_an_update() -> None:
    again, grown = PairsAgain(LAMBDA), torch.zeros(ITEMS + 2, ITEMS + 2, dtype=torch.float64)
    first = again({"pairs": _gram(50)}, {})
    grown[:ITEMS, :ITEMS] = _gram(50)
    grown = _with_one_more(grown, [5, ITEMS, ITEMS + 1])
    found = again({"pairs": grown}, first.kept)
    assert found.how.startswith("rank update of 3")
    assert torch.allclose(found.values["weights"], ease_weights(grown, LAMBDA), atol=1e-12, rtol=0)


@pytest.mark.parametrize("why", ["many", "lambda", "fewer", "damaged"])
def test_all_is_solved_anew_where_an_update_would_not_pay_or_not_be_right(why: str) -> None:
    gram = _gram(50)
    kept = PairsAgain(LAMBDA)({"pairs": gram}, {}).kept
    strength = 7.0 if why == "lambda" else LAMBDA
    if why == "many":
        gram = _with_one_more(gram, list(range(40)))
    elif why == "fewer":
        gram = gram[:-1, :-1].contiguous()
    elif why == "damaged":
        kept["inverse"][3, 4] += 1e-3
    found = PairsAgain(strength)({"pairs": gram}, kept)
    assert found.how == "whole factorisation"
    assert torch.equal(found.values["weights"], ease_weights(gram, strength))
