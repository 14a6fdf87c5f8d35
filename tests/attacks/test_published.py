"""Attacks of the literature go down what their papers go down, with what their papers know."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity, logsigmoid

from ownview.attacks.dishonest.audit import DishonestSettings, audit
from ownview.attacks.dishonest.crew import (
    DEMOTE,
    FEDRECATTACK,
    PIECK_IPE,
    PIECK_UEA,
    PROMOTE,
    PUBLISHED,
    Crew,
)
from ownview.attacks.dishonest.published import Published
from ownview.base.errors import SettingError
from ownview.messages.upload import Upload
from ownview.testing.worlds import small_world
from tests.attacks.scenes import scene

WORLD = small_world(num_users=80, num_items=120)


def _honest(client: int) -> Upload:
    items = torch.arange(5)[None]
    return Upload(torch.tensor([client]), torch.ones(1), items, items >= 0, rows={"items": torch.ones(1, 5, 4)})


def _second_round(means: str) -> tuple[Published, Tensor]:
    """The attack after two tables; items 7, 8 and 9 moved the most, 9 the furthest."""
    one = Published(Crew(WORLD, PROMOTE, means, 2))
    table = torch.randn(120, 4, generator=torch.Generator().manual_seed(0))
    one.begin({"items": table})
    assert torch.equal(one.lie(_honest(0)).rows["items"], torch.ones(1, 5, 4)), (
        "honest work before anything has changed"
    )
    moved = table + 0.001 * torch.arange(120)[:, None].flip(0)
    for rank, item in enumerate((7, 8, 9), start=1):
        assert item != one.crew.target
        moved[item] += rank
    one.begin({"items": moved})
    return one, moved.double()


def test_popular_items_are_those_whose_rows_moved_the_most() -> None:
    one, _ = _second_round(PIECK_UEA)
    assert one.popular is not None
    assert one.popular[:3].tolist() == [9, 8, 7]
    assert one.crew.target not in one.popular.tolist()


def test_pieck_moves_the_targets_row_alone_to_where_popular_items_score_it_higher() -> None:
    one, table = _second_round(PIECK_UEA)
    lie = one.lie(_honest(0))
    assert lie.items.tolist() == [[one.crew.target]]
    popular, target = table[one.popular], table[one.crew.target]
    change = lie.rows["items"][0, 0].double()
    expected = (torch.sigmoid(-popular @ target)[:, None] * popular).mean(0)
    torch.testing.assert_close(change, expected, rtol=1e-5, atol=1e-6)
    assert logsigmoid(popular @ (target + 0.01 * change)).mean() > logsigmoid(popular @ target).mean()


def test_pieck_aligns_the_targets_row_with_popular_ones_by_their_rank() -> None:
    one, table = _second_round(PIECK_IPE)
    popular, target = table[one.popular], table[one.crew.target]
    change = one.lie(_honest(0)).rows["items"][0, 0].double()
    weights = torch.arange(10, 0, -1).double() / 55

    def loss(row: Tensor) -> float:
        alike = weights * cosine_similarity(popular, row[None])
        parts = [part.mean() for part in (alike[alike > 0], alike[alike <= 0]) if len(part)]
        return float(-0.9 * torch.stack(parts).sum())

    assert loss(target + 0.01 * change) < loss(target)
    steps = 1e-6 * torch.eye(4).double()
    slope = torch.tensor([(loss(target + step) - loss(target - step)) / 2e-6 for step in steps])
    torch.testing.assert_close(change, -slope.double(), rtol=1e-4, atol=1e-6)


def test_fedrecattack_shares_its_gradient_out_among_the_liars() -> None:
    one, _ = _second_round(FEDRECATTACK)
    users, items = one.known
    assert len(users) == len(items) == round(0.05 * int(WORLD.training_items().lengths.sum()))
    first, second = one.lie(_honest(0)), one.lie(_honest(1))
    whole = one._gradient(torch.zeros(120, 4).double())
    assert whole.shape == (120, 4)
    for lie in (first, second):
        assert lie.items[0, 0] == one.crew.target
        assert len(set(lie.items[0].tolist())) == lie.items.shape[1] <= 60
        assert float(lie.rows["items"].norm(dim=2).max()) <= 1 + 1e-6
    assert one.left is not None
    sent = torch.zeros(120, 4)
    for lie in (first, second):
        sent[lie.items[0]] -= lie.rows["items"][0]
    again = Published(one.crew, table=one.table, popular=one.popular)
    expected = again._gradient(one.table)  # type: ignore[arg-type]
    torch.testing.assert_close(sent.double() + one.left, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("means", PUBLISHED)
def test_methods_without_one_table_of_items_and_other_goals_are_refused(means: str) -> None:
    settings = DishonestSettings(2, (PROMOTE,), (means,), ())
    with pytest.raises(SettingError, match=f"{means}: promotes items of methods that send one table of items"):
        audit(scene("fedease", WORLD), settings)
    with pytest.raises(SettingError, match="promotes items"):
        audit(scene("fedmf", WORLD), DishonestSettings(2, (DEMOTE,), (means,), ()))


@pytest.mark.parametrize("means", PUBLISHED)
def test_an_audit_runs_them(means: str) -> None:
    """One client, and one in twenty; each sends in every round."""
    found = audit(scene("fedmf", WORLD), DishonestSettings(3, (PROMOTE,), (means,), (0.05,)))
    assert [one.values["clients"] for one in found] == [1.0, 4.0]
    assert all(one.values["sent"] == 3 * one.values["clients"] for one in found)
