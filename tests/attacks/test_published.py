"""Attacks of the literature go down what their papers go down, with what their papers know."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity, logsigmoid

from ownview.attacks.dishonest.audit import DishonestSettings, audit
from ownview.attacks.dishonest.crew import (
    BACKDOOR,
    DEGRADE,
    DEMOTE,
    FEDRECATTACK,
    PIECK_IPE,
    PIECK_UEA,
    PIPATTACK,
    PROMOTE,
    SPATTACK_LD,
    SPATTACK_LS,
    SPATTACK_OD,
    SPATTACK_OS,
    Crew,
)
from ownview.attacks.dishonest.infiltration import infiltrated
from ownview.attacks.dishonest.published.catalogue import PUBLISHED
from ownview.attacks.dishonest.published.fedrecattack import FedRecAttack
from ownview.attacks.dishonest.published.pieck import Pieck
from ownview.attacks.dishonest.published.pipattack import PipAttack
from ownview.attacks.dishonest.published.spattack import Limited, Omniscient
from ownview.attacks.dishonest.published.table_attack import TableAttack
from ownview.base.errors import SettingError
from ownview.messages.upload import Upload
from ownview.testing.worlds import small_world
from tests.attacks.scenes import scene

WORLD = small_world(num_users=80, num_items=120)
TARGET = Crew(WORLD, PROMOTE, PIECK_UEA, 1).target


def _honest(client: int) -> Upload:
    items = torch.arange(5)[None]
    return Upload(torch.tensor([client]), torch.ones(1), items, items >= 0, rows={"items": torch.ones(1, 5, 4)})


def _tables() -> tuple[Tensor, Tensor]:
    """Two of them; items 7, 8 and 9 moved the most, 9 the furthest."""
    table = torch.randn(120, 4, generator=torch.Generator().manual_seed(0))
    moved = table + 0.001 * torch.arange(120)[:, None].flip(0)
    for rank, item in enumerate((7, 8, 9), start=1):
        assert item != TARGET
        moved[item] += rank
    return table, moved


def _to_the_second_round(one: TableAttack) -> Tensor:
    """The attack has seen two tables; what the second one is."""
    table, moved = _tables()
    one.begin({"items": table})
    assert torch.equal(one.lie(_honest(0)).rows["items"], torch.ones(1, 5, 4)), (
        "honest work before anything has changed"
    )
    one.begin({"items": moved})
    return moved.double()


def test_popular_items_are_those_whose_rows_moved_the_most() -> None:
    one = Pieck(Crew(WORLD, PROMOTE, PIECK_UEA, 2))
    _to_the_second_round(one)
    assert one.popular is not None
    assert one.popular[:3].tolist() == [9, 8, 7]
    assert one.crew.target not in one.popular.tolist()


def test_pieck_moves_the_targets_row_alone_to_where_popular_items_score_it_higher() -> None:
    one = Pieck(Crew(WORLD, PROMOTE, PIECK_UEA, 2))
    table = _to_the_second_round(one)
    assert one.popular is not None
    lie = one.lie(_honest(0))
    assert lie.items.tolist() == [[one.crew.target]]
    popular, target = table[one.popular], table[one.crew.target]
    change = lie.rows["items"][0, 0].double()
    expected = (torch.sigmoid(-popular @ target)[:, None] * popular).mean(0)
    torch.testing.assert_close(change, expected, rtol=1e-5, atol=1e-6)
    assert logsigmoid(popular @ (target + 0.01 * change)).mean() > logsigmoid(popular @ target).mean()


def test_pieck_aligns_the_targets_row_with_popular_ones_by_their_rank() -> None:
    one = Pieck(Crew(WORLD, PROMOTE, PIECK_IPE, 2))
    table = _to_the_second_round(one)
    assert one.popular is not None
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
    one = FedRecAttack(Crew(WORLD, PROMOTE, FEDRECATTACK, 2))
    table = _to_the_second_round(one)
    users, items = one.known
    assert len(users) == len(items) == round(0.05 * int(WORLD.training_items().lengths.sum()))
    first, second = one.lie(_honest(0)), one.lie(_honest(1))
    for lie in (first, second):
        assert lie.items[0, 0] == one.crew.target
        assert len(set(lie.items[0].tolist())) == lie.items.shape[1] <= 60
        assert float(lie.rows["items"].norm(dim=2).max()) <= 1 + 1e-6
    assert one.left is not None
    sent = torch.zeros(120, 4)
    for lie in (first, second):
        sent[lie.items[0]] -= lie.rows["items"][0]
    expected = FedRecAttack(one.crew).gradient(table)
    torch.testing.assert_close(sent.double() + one.left, expected, rtol=1e-4, atol=1e-4)


def test_pipattack_moves_the_targets_row_to_where_its_liars_and_its_network_want_it() -> None:
    one = PipAttack(Crew(WORLD, PROMOTE, PIPATTACK, 3))
    table = _to_the_second_round(one)
    classes = one.classes
    assert torch.bincount(classes).tolist() == [12, 40, 68]
    takers = one.crew.takers
    assert takers[classes == 0].min() >= takers[classes == 1].max()
    assert takers[classes == 1].min() >= takers[classes == 2].max()
    one._learn(table)
    right = one.classed(table).argmax(1) == classes
    assert all(right[classes == kind].float().mean() > 1 / 3 for kind in range(3)), "better than chance in every class"
    lie, honest = one.lie(_honest(0)), torch.ones(4).double()
    place = int((lie.items[0] == TARGET).nonzero()[0, 0])
    others = [item for item in range(5) if item != TARGET]
    assert sorted(lie.items[0].tolist()) == sorted({*range(5), TARGET})
    assert torch.equal(
        torch.cat([lie.rows["items"][0, :place], lie.rows["items"][0, place + 1 :]]), torch.ones(len(others), 4)
    )
    start = table[TARGET]
    assert one.loss(start + lie.rows["items"][0, place].double(), start, honest) < one.loss(start, start, honest)


def test_pipattacks_loss_by_hand() -> None:
    """Without a say of the network, one liar's vector (1, 0), from row (0, 2), honest change (0, 1)."""
    one = PipAttack(Crew(WORLD, PROMOTE, PIPATTACK, 1))
    one.people = torch.tensor([[1.0, 0.0]]).double()
    zeros = [torch.zeros(shape).double() for shape in ((2, 32), (32,), (32, 3), (3,))]
    one.network = zeros
    start, honest = torch.tensor([0.0, 2.0]).double(), torch.tensor([0.0, 1.0]).double()
    found = one.loss(start, start, honest)
    expected = torch.tensor([2.0, 3.0]).double().log().sum() + 0.01 * 1.0
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("weights", [(1.0, 1.0, 1.0, 1.0), (2.0, 3.0, 5.0, 7.0)])
@pytest.mark.parametrize("means", [SPATTACK_OD, SPATTACK_OS])
def test_liars_who_know_everything_send_minus_what_honest_clients_send(
    means: str, weights: tuple[float, float, float, float]
) -> None:
    one = Omniscient(Crew(WORLD, DEGRADE, means, 2))
    one.begin({"items": _tables()[0]})
    honest = [_honest(0), _honest(1)]
    liars = [_honest(client) for client in one.crew.members.tolist()]
    for upload, weight in zip(honest, weights[:2], strict=True):
        one.overhear(upload, torch.tensor([weight]))
    for upload, weight in zip(liars, weights[2:], strict=True):
        one.gather(upload, torch.tensor([weight]))
    total, sent = torch.zeros(120, 4).double(), torch.zeros(120, dtype=torch.bool)
    lies = [one.lie(upload) for upload in liars]
    for upload, weight in zip([*honest, *lies], weights, strict=True):
        assert len(set(upload.items[0].tolist())) == upload.items.shape[1]
        total[upload.items[0]] += weight * upload.rows["items"][0].double()
    for lie in lies:
        assert lie.items.shape[1] == (120 if means == SPATTACK_OD else 5)
        sent[lie.items[0]] = True
    assert means == SPATTACK_OS or bool(sent.all())
    known = torch.arange(120) < 5
    torch.testing.assert_close(total[sent], torch.zeros(int(sent.sum()), 4).double(), rtol=0, atol=1e-5)
    assert bool((total[~sent & known] == weights[0] + weights[1]).all())


@pytest.mark.parametrize("means", [SPATTACK_LD, SPATTACK_LS])
def test_liars_who_know_nothing_send_the_same_noise_in_every_round(means: str) -> None:
    one = Limited(Crew(WORLD, DEGRADE, means, 2))
    table = torch.zeros(120, 4).double()
    for _ in range(2):
        one.begin({"items": _tables()[0]})
        one.overhear(_honest(0), torch.ones(1))
        for lie in (one.lie(_honest(1)), one.lie(_honest(2))):
            items, rows = lie.items[0], lie.rows["items"][0].double()
            known = table[items].any(1)
            assert torch.equal(table[items][known], rows[known])
            table[items] = rows
            assert len(items) == (120 if means == SPATTACK_LD else 5)
    if means == SPATTACK_LD:
        assert abs(float(table.mean())) < 0.2
        assert 0.9 < float(table.std()) < 1.1
        assert torch.equal(items, torch.arange(120))


def test_under_a_plain_server_omniscient_liars_keep_the_table_where_it_was() -> None:
    """A whole federation with one liar among 80: after each round the items are where they began, to rounding."""
    crew = Crew(WORLD, DEGRADE, SPATTACK_OD, 1)
    federation, fleet = infiltrated(scene("fedmf", WORLD), crew, 1.0, checked=False)
    start = federation.server.shared["items"].clone()
    for number in (1, 2):
        federation.round(number)
    torch.testing.assert_close(federation.server.shared["items"], start, rtol=0, atol=1e-5)
    assert (fleet.sent, fleet.refused) == (2, 0)


@pytest.mark.parametrize("means", PUBLISHED)
def test_methods_without_one_table_of_items_and_other_goals_are_refused(means: str) -> None:
    goal = PUBLISHED[means].goal
    what = "promotes items" if goal == PROMOTE else "degrades the lists"
    with pytest.raises(SettingError, match=f"{means}: {what} of methods that send one table of items"):
        audit(scene("fedease", WORLD), DishonestSettings(2, (goal,), (means,), ()))
    for other in {DEMOTE, BACKDOOR, PROMOTE, DEGRADE} - {goal}:
        with pytest.raises(SettingError, match=what):
            audit(scene("fedmf", WORLD), DishonestSettings(2, (other,), (means,), ()))


@pytest.mark.parametrize("means", PUBLISHED)
def test_an_audit_runs_them(means: str) -> None:
    """One client, and one in twenty; each sends in every round."""
    settings = DishonestSettings(3, (PUBLISHED[means].goal,), (means,), (0.05,))
    found = audit(scene("fedmf", WORLD), settings)
    assert [one.values["clients"] for one in found] == [1.0, 4.0]
    assert all(one.values["sent"] == 3 * one.values["clients"] for one in found)


@pytest.mark.parametrize("means", [SPATTACK_OD, SPATTACK_OS, SPATTACK_LD, SPATTACK_LS])
def test_liars_among_liars_alone_send_what_can_be_counted(means: str) -> None:
    """No honest upload comes before theirs: nothing is known of how many rows one has, and how long it is."""
    crew = Crew(WORLD, DEGRADE, means, WORLD.num_users)
    federation, fleet = infiltrated(scene("fedmf", WORLD), crew, 1.0, checked=False)
    start = federation.server.shared["items"].clone()
    federation.round(1)
    assert fleet.sent == WORLD.num_users
    assert torch.equal(federation.server.shared["items"], start)


def test_rows_are_drawn_once_an_honest_client_has_sent_some() -> None:
    one = Limited(Crew(WORLD, DEGRADE, SPATTACK_LS, 2))
    one.begin({"items": _tables()[0]})
    assert one.lie(_honest(1)).items.shape == (1, 0)
    one.overhear(_honest(0), torch.ones(1))
    assert one.lie(_honest(1)).items.shape == (1, 5)


def test_liars_that_count_for_nothing_send_numbers() -> None:
    one = Omniscient(Crew(WORLD, DEGRADE, SPATTACK_OD, 1))
    one.begin({"items": _tables()[0]})
    one.overhear(_honest(0), torch.ones(1))
    liar = _honest(int(one.crew.members[0]))
    one.gather(liar, torch.zeros(1))
    assert bool(one.lie(liar).rows["items"].isfinite().all())
