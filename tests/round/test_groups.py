"""Masked sums by groups: one that is unlike the others does not count, and each has T clients and noise of its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ownview import FedEASE, FederationOptions, FedMF
from ownview.base.errors import SettingError, TrainingError
from ownview.deploy.places.floor import Floor
from ownview.federation.server import AggregationServer
from ownview.messages.sums import Partial
from ownview.messages.upload import MODULUS, Upload
from ownview.privacy.masking.groups import alike, distances, drawn
from ownview.privacy.masks import masked_sums
from ownview.round.alone import ProcessFederation
from ownview.round.conduct import Round, Uploads
from ownview.round.federation import Federation
from ownview.round.local_fleet import LocalFleet
from ownview.seam.protection import Protection
from ownview.testing.worlds import federation, small_world

FEDMF = FedMF(embedding_size=3, local_epochs=2)
GROUPS = "masked:clip=5,groups=4"
LIAR = 7


class _OneLiar(LocalFleet):
    """One client adds 2^28 steps to its first number; masks would hide that."""

    def ask(self, going: Round) -> Uploads:
        for upload in super().ask(going):
            yield _lied(upload)


def _lied(upload: Upload) -> Upload:
    assert upload.words is not None
    words = upload.words.clone()
    words[upload.clients == LIAR, 0] += 2**28
    return replace(upload, words=words % MODULUS)


def _with_liar(privacy: str, method: Any = FEDMF) -> Federation:
    one = federation(method, small_world(), options=FederationOptions(privacy=privacy))
    one.fleet = _OneLiar(one.terms, one.work)
    return one


@settings(max_examples=60)
@given(sizes=st.lists(st.integers(1, 6), min_size=3, max_size=40), groups=st.integers(3, 9), seed=st.integers(0, 99))
def test_everybody_is_in_one_group_and_places_stay_together(sizes: list[int], groups: int, seed: int) -> None:
    ends = np.cumsum([0, *sizes]).tolist()
    units = [list(range(first, last)) for first, last in pairwise(ends)]
    found = drawn(units, groups, Random(seed).shuffle)
    assert sorted(one for group in found for one in group) == list(range(ends[-1]))
    whose = {one: place for place, group in enumerate(found) for one in group}
    assert all(len({whose[one] for one in unit}) == 1 for unit in units)
    assert max(map(len, found)) - min(map(len, found)) <= max(sizes), "as equal as places allow"


def test_groups_are_drawn_anew_in_every_round_and_by_entropy_where_it_is_no_simulation() -> None:
    server = federation(FEDMF, small_world(), options=FederationOptions(privacy=GROUPS)).server
    orders = [list(range(20)) for _ in range(5)]
    for number, order in zip((1, 1, 2), orders, strict=False):
        server.shuffle(number, order)
    assert orders[0] == orders[1] != orders[2], "a simulation repeats"
    server.secret = True
    for order in orders[3:]:
        server.shuffle(1, order)
    assert orders[3] != orders[4], "a server does not: 20! orders"


def test_the_group_that_stands_out_is_left_out_and_no_honest_one() -> None:
    random = np.random.default_rng(0)
    means = random.normal(size=(10, 50))
    assert bool(alike(distances([means])).all())
    means[3, 0] += 100
    assert alike(distances([means[:, :20], means[:, 20:]])).tolist() == [one != 3 for one in range(10)]


@pytest.mark.parametrize("masks", ["", ",masks=signed", ",masks=skipped"])
def test_a_liars_group_does_not_count_and_its_members_go_back(masks: str) -> None:
    one = _with_liar(GROUPS + masks)
    before = {name: value.clone() for name, value in one.clients.own.items()}
    done = one.round(1)
    left = sorted(done.left_out)
    assert LIAR in left
    assert 5 <= len(left) <= 6, "a group of 23 in four"
    assert "times as far from the median of all" in done.left_out[LIAR]
    honest = federation(FEDMF, small_world(), options=FederationOptions(privacy=f"masked:clip=5,threshold=13{masks}"))
    honest.fleet = _Some(honest.terms, honest.work, left)
    honest.round(1)
    for name, value in honest.server.shared.items():
        assert torch.allclose(one.server.shared[name], value, atol=1e-12), name
    assert (~one.server.joined).nonzero()[:, 0].tolist() == left
    for name, value in before.items():
        assert torch.equal(one.clients.own[name][left], value[left]), name
        assert not torch.equal(one.clients.own[name], value), name


class _Some(LocalFleet):
    """Uploads of some clients are not counted."""

    def __init__(self, terms: Any, work: Any, out: list[int]) -> None:
        super().__init__(terms, work)
        self.out = out

    def ask(self, going: Round) -> Uploads:
        coming: Iterator[Upload] = super().ask(going)
        going.leave_out(self.out, "left out")
        for upload in coming:
            yield upload.without(self.out)


def test_without_groups_the_same_liar_spoils_the_sum() -> None:
    spoilt, fair = _with_liar("masked:clip=5"), federation(FEDMF, small_world())
    spoilt.round(1)
    fair.round(1)
    apart = {name: (value - fair.server.shared[name]).abs().max() for name, value in spoilt.server.shared.items()}
    assert max(map(float, apart.values())) > 0.5


@pytest.mark.parametrize("masks", ["", ",masks=skipped"])
def test_the_median_counts_everybody_and_not_the_liar(masks: str) -> None:
    one = _with_liar(f"masked:clip=5,groups=5,combine=median{masks}")
    assert not one.round(1).left_out
    fair = federation(FEDMF, small_world(), options=FederationOptions(privacy="masked:clip=5,groups=5,combine=median"))
    fair.round(1)
    for name, value in fair.server.shared.items():
        assert float((one.server.shared[name] - value).abs().max()) < 0.1, name


def test_honest_groups_give_the_sum_of_all(tmp_path: Path) -> None:
    """Where no group stands out, groups change no number; also where every client is a process that sees bytes."""
    split = small_world()
    options = [FederationOptions(privacy=text) for text in (GROUPS, "masked:clip=5")]
    one, plain = (federation(FEDMF, split, options=each) for each in options)
    assert not one.round(1).left_out
    plain.round(1)
    for name, value in plain.server.shared.items():
        assert torch.equal(one.server.shared[name], value), name
    agreed = FEDMF, one.world, FederationOptions(privacy=GROUPS), one.seed, one.machine
    with ProcessFederation(agreed, split, split.training_items(), tmp_path, together=True) as apart:
        apart.round(1)
        for name, value in apart.server.shared.items():
            assert torch.allclose(one.server.shared[name], value, atol=1e-10), name


def test_a_place_with_too_many_users_for_so_many_groups_is_lost_and_says_why() -> None:
    """No client would take part in a group of 2 T or more: two sums over T of it could have no client in common."""

    class OneLarge(LocalFleet):
        def units(self, clients: Iterable[int]) -> list[list[int]]:
            every = sorted(clients)
            return [every[:8], *([one] for one in every[8:])]

    one = federation(FEDMF, small_world(), options=FederationOptions(privacy=GROUPS))
    one.fleet = OneLarge(one.terms, one.work)
    done = one.round(1)
    assert sorted(done.left_out) == list(range(8))
    assert "has 8 clients, 7 of so many groups at most: one place has too many users" in done.left_out[0]


class _Silent(LocalFleet):
    """Some clients send keys and nothing more."""

    quiet: frozenset[int] = frozenset()

    def about_masks(self, going: Round, step: Any, messages: Any) -> Any:
        answers = super().about_masks(going, step, messages)
        if not self.quiet and going.masks is not None and going.masks.every:
            self.quiet = frozenset(going.masks.every[0].members[:4])
        return {one: data for one, data in answers.items() if one not in self.quiet}


def test_a_group_in_which_too_few_are_left_does_not_keep_the_others() -> None:
    one = federation(FEDMF, small_world(), options=FederationOptions(privacy=GROUPS))
    one.fleet = _Silent(one.terms, one.work)
    done = one.round(1)
    assert {why.partition(":")[0] for why in done.left_out.values()} == {"group 1 of 4"}
    assert all("clients sent shares, and 4 are needed" in why for why in done.left_out.values())
    assert done.clients == 23 - len(done.left_out)


def test_sums_have_groups_as_well() -> None:
    """A method whose clients report: of a liar's group nothing is in the Gram matrix."""
    one = _with_liar("masked:clip=1000,groups=4,masks=skipped", FedEASE())
    done = one.round(1)
    assert LIAR in done.left_out
    options = FederationOptions(privacy="masked:clip=1000,threshold=13,masks=skipped")
    plain = federation(FedEASE(), small_world(), options=options)
    plain.fleet = _Some(plain.terms, plain.work, sorted(done.left_out))
    plain.round(1)
    assert torch.equal(one.server.held["gram"], plain.server.held["gram"])


def test_uploads_are_added_up_by_group_and_not_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    added: list[int] = []
    add = Partial.add

    def noted(self: Partial, upload: Upload) -> None:
        added.append(len(upload.clients))
        add(self, upload)

    monkeypatch.setattr(Partial, "add", noted)
    federation(FEDMF, small_world(), options=FederationOptions(privacy=f"{GROUPS},masks=skipped")).round(1)
    assert sum(added) == 23
    assert len(added) < 12, "blocks of clients, each in four groups at most"


class _Away(_Some):
    """In the first round alone."""

    def ask(self, going: Round) -> Uploads:
        yield from super().ask(going) if going.number == 1 else LocalFleet.ask(self, going)


class _AwayAndLies(_Away):
    """Far beyond the clip, as soon as it is there."""

    def ask(self, going: Round) -> Uploads:
        for upload in super().ask(going):
            yield upload if going.number == 1 else _lied(upload)


@pytest.mark.parametrize("fleet", [_Away, _AwayAndLies])
def test_who_reports_late_counts_among_groups_that_have_nothing_new_unless_it_lies(fleet: type[_Away]) -> None:
    """A method that reports once sends zeros from the second round on: the middle group is at the median of all."""
    one = federation(FedEASE(), small_world(), options=FederationOptions(privacy="masked:clip=1000,groups=4"))
    one.fleet = fleet(one.terms, one.work, [LIAR])
    assert sorted(one.round(1).left_out) == [LIAR]
    before, done = one.server.held["gram"].clone(), one.round(2)
    if fleet is _Away:
        plain = federation(FedEASE(), small_world(), options=FederationOptions(privacy="masked:clip=1000"))
        plain.round(1)
        assert not done.left_out
        assert torch.allclose(one.server.held["gram"], plain.server.held["gram"], atol=1e-3)
    else:
        assert LIAR in done.left_out
        assert torch.equal(one.server.held["gram"], before)


def test_under_a_budget_every_group_has_the_noise_of_a_sum_by_itself() -> None:
    """T devices of a group add variance sigma^2 / T each: the noise of all groups together is G-fold."""
    options = [FederationOptions(privacy=f"distributed:epsilon=8,rounds=1{more}") for more in ("", ",groups=5")]
    one, grouped = (federation(FEDMF, small_world(), options=each).terms for each in options)
    assert one.masked is not None
    assert grouped.masked is not None
    plain, parted = one.world.protection, grouped.world.protection
    assert plain is not None
    assert parted is not None
    assert (plain.epsilon, plain.noise) == (parted.epsilon, parted.noise)
    assert (plain.threshold, parted.threshold) == (19, 4)
    assert parted.in_sum(1) ** 2 == pytest.approx(plain.in_sum(1) ** 2 * 19 / 4)
    assert "5 sums over about 5 clients each (at least 4)" in grouped.masked.sentence()
    assert grouped.masked.described()["groups"] == 5
    assert "noise_of_the_median" not in grouped.masked.described()


def test_the_noise_of_a_median_is_said_to_be_more_than_that_of_a_sum() -> None:
    options = FederationOptions(privacy="distributed:epsilon=8,rounds=1,groups=5,combine=median")
    terms = federation(FEDMF, small_world(), options=options).terms
    masked, plan = terms.masked, terms.world.protection
    assert masked is not None
    assert plan is not None
    assert plan.in_sum(1) ** 2 == pytest.approx(replace(plan, median=False).in_sum(1) ** 2 * np.pi / 2)
    assert "at most pi / 2 times the variance" in masked.described()["noise_of_the_median"]
    drawn = np.random.default_rng(0).normal(size=(200_000, 3))
    assert np.median(drawn, axis=1).var() / drawn.mean(axis=1).var() == pytest.approx(1.35, abs=0.02)
    drawn = np.random.default_rng(0).normal(size=(20_000, 101))
    assert np.median(drawn, axis=1).var() / drawn.mean(axis=1).var() == pytest.approx(np.pi / 2, rel=0.05)


@pytest.mark.parametrize(
    ("privacy", "match"),
    [
        ("masked:clip=1,groups=2", "2 groups: of fewer than 3 none is the odd one"),
        ("masked:clip=1,groups=9", "a group .9 of 23 clients. has 2 clients, too few to hide among"),
        ("masked:clip=1,groups=4,threshold=9", "from 4 to 5 can be asked for"),
        ("masked:clip=1,groups=4,neighbours=4", "everybody is everybody's neighbour"),
        ("masked:clip=1,combine=median", "combine is about groups"),
        ("masked:clip=1,groups=4,combine=middle", "choose from alike, median"),
        ("central:epsilon=1,rounds=1,groups=4", "'groups' is no part of a central budget"),
    ],
)
def test_groups_that_make_no_sense_are_refused_in_a_line(privacy: str, match: str) -> None:
    with pytest.raises(SettingError, match=match) as error:
        federation(FEDMF, small_world(), options=FederationOptions(privacy=privacy))
    assert "\n" not in str(error.value)


def test_settings_with_groups_are_written_as_they_are_read() -> None:
    for text in ("masked:clip=3,groups=7", "masked:clip=3,groups=7,combine=median,masks=signed"):
        assert str(masked_sums(text)) == text


def test_a_place_answers_no_more_groups_than_its_floor_says() -> None:
    floor = Floor(floor="masked:clip=5,groups=4")
    assert not floor.refusal("masked:clip=1,groups=3")
    assert not floor.refusal("masked:clip=1")
    assert "groups is 5; expected 4 at most" in floor.refusal("masked:clip=1,groups=5")
    assert "groups is 4; expected 1 at most" in Floor(floor="masked").refusal("masked:clip=1,groups=4")


def test_a_group_of_too_few_is_never_opened_where_a_simulation_leaves_masks_out_either() -> None:
    """With masks its sum would not be seen, so no attack may look at it."""
    opened: list[int] = []

    class Seeing(AggregationServer):
        def see_sum(self, total: Any) -> None:
            opened.append(1)

    for masks in ("", ",masks=skipped"):
        one = federation(FEDMF, small_world(), options=FederationOptions(privacy=GROUPS + masks))
        one.server, opened[:] = Seeing(one.terms), []
        one.fleet = _Some(one.terms, one.work, _of_first_group(one))
        assert {why.partition(":")[0] for why in one.round(1).left_out.values()} == {"left out", "group 1 of 4"}
        assert len(opened) == 3


def _of_first_group(one: Federation) -> list[int]:
    """All but one client of it."""
    units = [[client] for client in range(one.world.num_clients)]
    return drawn(units, 4, partial(one.server.shuffle, 1))[0][1:]


@pytest.mark.parametrize("privacy", ["masked:clip=5", "distributed:epsilon=8,rounds=1"])
@pytest.mark.parametrize("masks", ["", ",masks=skipped"])
def test_a_simulation_without_masks_releases_no_sum_that_masks_would_not(privacy: str, masks: str) -> None:
    """Under a budget so few devices would also add less noise than was accounted for."""
    options = FederationOptions(privacy=privacy + masks, devices="dropout=0.7")
    one = federation(FEDMF, small_world(), options=options)
    before = {name: value.clone() for name, value in one.server.shared.items()}
    with pytest.raises(TrainingError, match="and 19 are needed; nothing is released"):
        one.round(1)
    assert all(torch.equal(value, before[name]) for name, value in one.server.shared.items())


@pytest.mark.parametrize("groups", [3, 9])
def test_eigenvalues_of_a_medians_noise_are_below_the_edge(groups: int) -> None:
    """What private forms take for noise: an eigenvalue above the edge would count as people."""
    plan = Protection("distributed", 8.0, 1e-5, 1.0, False, (2.0, 2.0), 60.0, "", "", 60 // groups, median=True)
    side, random = 200, np.random.default_rng(0)
    noise = random.normal(size=(groups, side, side)) * plan.of_changes(2) / np.sqrt(2)
    of_groups = np.triu(noise, 1) + np.triu(noise, 1).swapaxes(1, 2)
    edge = 2 * plan.in_sum(2) * np.sqrt(side / 2)
    largest = np.linalg.eigvalsh(groups * np.median(of_groups, axis=0)).max()
    assert 0.85 * edge < largest < edge
    assert largest > 2 * replace(plan, median=False).in_sum(2) * np.sqrt(side / 2)


def test_where_half_of_the_groups_are_lost_nothing_is_released() -> None:
    one = federation(FEDMF, small_world(), options=FederationOptions(privacy=GROUPS))

    class Nearly(LocalFleet):
        def about_masks(self, going: Round, step: Any, messages: Any) -> Any:
            answers = super().about_masks(going, step, messages)
            lost = [] if going.masks is None else [one for group in going.masks.every[:2] for one in group.members]
            return {client: data for client, data in answers.items() if client not in lost}

    one.fleet = Nearly(one.terms, one.work)
    before = {name: value.clone() for name, value in one.server.shared.items()}
    with pytest.raises(TrainingError, match="2 of 4 groups are left, and more than half are needed; nothing is"):
        one.round(1)
    assert all(torch.equal(value, before[name]) for name, value in one.server.shared.items())
