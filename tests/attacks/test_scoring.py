"""How guesses are scored, worked by hand."""

from __future__ import annotations

import pytest
import torch

from ownview.attacks.guesses import ItemGuess, VectorGuess
from ownview.attacks.membership import attack
from ownview.attacks.scoring import areas, items_scored, vectors_scored
from ownview.data.ragged import Ragged
from tests.attacks.scenes import scene

_TRUTH = Ragged(torch.tensor([0, 2, 3]), torch.tensor([0, 1, 4]))
"""Client 0 has items 0 and 1, client 1 has item 4, of 5."""


def test_figures_of_a_guess_are_means_over_clients() -> None:
    scores = torch.tensor([[5.0, 1.0, 3.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 2.0]])
    values = items_scored("a", "b", ItemGuess(torch.tensor([0, 1]), scores > 2, scores), _TRUTH, 0).values
    assert values["precision"] == pytest.approx(0.25)  # 1 of 2, and 2.0 is not above 2: nothing of nothing
    assert values["recall"] == pytest.approx(0.25)
    assert values["precision at k"] == pytest.approx(0.75)
    assert values["AUC"] == pytest.approx((5 / 6 + 1) / 2)
    assert values["shuffled precision"] == 0


@pytest.mark.parametrize(
    ("users", "items", "applies", "succeeds", "words"),
    [
        (3, 5, True, True, "the server reads a user's items"),  # one in 126^3 by chance
        (1, 1, False, False, "cannot be told of so few items"),  # one in nine
    ],
)
def test_of_few_items_a_perfect_guess_is_told_from_chance_or_not_at_all(
    users: int, items: int, applies: bool, succeeds: bool, words: str
) -> None:
    truth = Ragged(torch.arange(users + 1) * items, (torch.arange(users * items) * 2) % 9)
    scores = torch.zeros(users, 9)
    for user in range(users):
        scores[user, truth.values[user * items : (user + 1) * items]] = 1.0
    found = items_scored("a", "one upload", ItemGuess(torch.arange(users), scores > 0, scores), truth, 0)
    assert found.values["AUC"] == 1
    assert (found.applies, found.succeeds) == (applies, succeeds)
    assert words in found.sentence


def test_areas_count_ties_half_and_know_nothing_of_nobody() -> None:
    scores = torch.tensor([[1.0, 1.0, 1.0], [3.0, 2.0, 1.0], [1.0, 2.0, 3.0]])
    positive = torch.tensor([[True, False, False], [True, True, False], [False, False, False]])
    assert areas(scores, positive).tolist() == [0.5, 1.0, 0.5]


def test_directions_have_no_sign_and_must_tell_users_apart() -> None:
    held = {"user": torch.tensor([[1.0, 0.0], [0.0, 1.0]])}
    turned = VectorGuess(torch.tensor([0, 1]), {2: torch.tensor([[-2.0, 0.0], [0.0, 3.0]], dtype=torch.float64)})
    found = vectors_scored("a", "b", turned, held, 0)
    assert found.succeeds
    assert (found.values["cosine"], found.values["shuffled cosine"]) == (1, 0)
    same = VectorGuess(torch.tensor([0, 1]), {2: torch.ones(2, 2, dtype=torch.float64)})
    assert not vectors_scored("a", "b", same, held, 0).succeeds
    assert not vectors_scored("a", "b", same, {"user": torch.ones(2, 3)}, 0).applies


def test_exact_sums_of_pairs_tell_who_is_among_them() -> None:
    found = attack(scene("fedease"), 15)
    assert found.succeeds
    assert found.values["AUC"] >= 0.9
    noisy = attack(scene("fedease", privacy="gaussian:clip=1,noise=3"), 15)
    assert noisy.values["AUC"] < found.values["AUC"]


@pytest.mark.parametrize(("method", "why"), [("fedem", "every single upload"), ("local-only", "clients send nothing")])
def test_membership_says_why_it_does_not_apply(method: str, why: str) -> None:
    found = attack(scene(method), 5)
    assert not found.applies
    assert why in found.sentence
