"""FedSASRec against the same network written in NumPy, place by place, and against finite differences of its loss."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from ownview import FedSASRec
from ownview.base.randomness import chances
from ownview.data.interactions import Interactions
from ownview.data.splitting.splits import leave_one_out
from ownview.parts.sequences import passes
from ownview.parts.sequences.filters import low_pass
from ownview.parts.sequences.prefixes import prefixes
from ownview.parts.sequences.transformer import Transformer, lesson
from ownview.round.scorers import scorer_of
from ownview.seam.roles import RECEIVED
from ownview.testing.worlds import federation, small_world
from tests.methods.fedsasrec_by_hand import (
    LENGTH,
    METHOD,
    Matrix,
    Values,
    cosines,
    loss,
    loss_of_prefixes,
    plain,
    sequence,
    states,
    sums,
)


def test_scores_are_those_of_the_network_place_by_place() -> None:
    one = federation(METHOD, small_world())
    one.round(1)
    p, found = plain(one), scorer_of(one).scores(torch.arange(one.world.num_clients), None).numpy()
    for client in range(one.world.num_clients):
        expected = p["items"] @ states(p, sequence(one, client)[-LENGTH:])[-1]
        assert found[client] == pytest.approx(expected, abs=1e-12)


def require_slopes(
    loss_of: Callable[[Values], float], p: Values, upload: dict[str, Tensor], touched: int, seed: int, near: float
) -> None:
    """Difference quotients of a loss at one random number of every value (of `items`, in the row `touched`)."""
    random = np.random.default_rng(seed)
    for name, value in p.items():
        row = (touched,) if name == "items" else (0,) * (value.ndim - 1)
        cell = (*row, int(random.integers(value.shape[-1])))
        sides = []
        for step in (1e-5, -1e-5):
            moved = {**p, name: value.copy()}
            moved[name][cell] += step
            sides.append(loss_of(moved))
        found = float(upload[f"gradient.{name}"][(0, *cell)])
        assert found == pytest.approx((sides[0] - sides[1]) / 2e-5, rel=1e-5, abs=near), name


@pytest.mark.parametrize(
    ("client", "horizon", "smoothing"), [(1, 0.0, 0.0), (2, 0.0, 0.0), (2, 1.5, 0.0), (2, 0.0, 0.2), (2, 1.5, 0.2)]
)
def test_a_client_sends_the_gradient_of_its_summed_losses(client: int, horizon: float, smoothing: float) -> None:
    settings = {**METHOD.values(), "horizon": horizon, "label_smoothing": smoothing}
    one = federation(FedSASRec.of(settings), small_world())
    p, items = plain(one), sequence(one, client)
    upload = sums(one, [client])
    assert float(upload["positions"][0]) == min(len(items) - 1, LENGTH)
    require_slopes(lambda p: loss(p, items, horizon, smoothing), p, upload, items[-1], client, 1e-7)


@pytest.mark.parametrize(
    ("frequency", "horizon", "beginnings"), [(0.0, 0.0, True), (0.7, 0.0, True), (0.7, 1.5, True), (0.7, 0.0, False)]
)
def test_a_filter_and_beginnings_have_the_gradients_of_their_losses(
    frequency: float, horizon: float, beginnings: bool
) -> None:
    more = {"frequency": frequency, "horizon": horizon, "prefixes": beginnings} | ({"waves": 2} if frequency else {})
    one = federation(FedSASRec.of({**METHOD.values(), **more}), small_world())
    client = max(range(one.world.num_clients), key=lambda client: len(sequence(one, client)))
    p, items = plain(one), sequence(one, client)
    assert len(items) > LENGTH + 1  # some beginnings are longer than what is looked back at
    assert ("block1.filter.root" in p) == (frequency > 0)
    upload = sums(one, [client])
    assert float(upload["positions"][0]) == (len(items) - 1 if beginnings else LENGTH)

    def whole(p: Values) -> float:
        if beginnings:
            return loss_of_prefixes(p, items, frequency, horizon)
        rows = states(p, items[-LENGTH - 1 : -1], frequency) @ p["items"].T
        targets = items[-LENGTH:]
        return float(sum(np.log(np.exp(row).sum()) - row[item] for row, item in zip(rows, targets, strict=True)))

    require_slopes(whole, p, upload, items[-1], client, 1e-6)


@pytest.mark.parametrize(
    ("relative", "temperature", "beginnings"),
    [(True, 0.0, False), (False, 0.5, False), (True, 0.5, False), (True, 0.5, True)],
)
def test_distances_and_cosines_have_the_scores_and_the_gradients_of_their_losses(
    relative: bool, temperature: float, beginnings: bool
) -> None:
    more = {"relative": relative, "temperature": temperature, "prefixes": beginnings}
    one = federation(FedSASRec.of({**METHOD.values(), **more}), small_world())
    for number in (1, 2, 3):
        one.round(number)  # distances count for nothing before they have learnt
    client = max(range(one.world.num_clients), key=lambda client: len(sequence(one, client)))
    p, items = plain(one), sequence(one, client)
    assert len(items) > LENGTH + 1
    apart = [value for name, value in p.items() if name.endswith(".apart")]
    assert len(apart) == (2 if relative else 0)
    assert all(np.abs(value[:, :-1]).min() > 1e-4 for value in apart)

    def scores(p: Values, known: list[int]) -> Matrix:
        found = states(p, known)
        return cosines(found, p["items"], temperature) if temperature else found @ p["items"].T

    def whole(p: Values) -> float:
        if beginnings:
            rows = [scores(p, items[max(0, cut - LENGTH) : cut])[-1] for cut in range(1, len(items))]
        else:
            rows = list(scores(p, items[-LENGTH - 1 : -1]))
        targets = items[-len(rows) :]
        return float(sum(np.log(np.exp(row).sum()) - row[item] for row, item in zip(rows, targets, strict=True)))

    require_slopes(whole, p, sums(one, [client]), items[-1], client, 1e-6)
    found = scorer_of(one).scores(torch.tensor([client]), None)[0].numpy()
    assert found == pytest.approx(scores(p, items[-LENGTH:])[-1], abs=1e-12)


@pytest.mark.parametrize("temperature", [0.0, 0.5])
def test_items_that_were_had_are_no_candidates_but_what_comes_next_is(temperature: float) -> None:
    """By hand: each place's softmax is over the items that do not stand up to it, and its target, which may repeat."""
    users, items = [0] * 7 + [1] * 4, [4, 2, 4, 5, 2, 2, 1, 0, 3, 1, 5]
    data = Interactions.from_rows("repeats", users, items, timestamp=range(11))
    split = leave_one_out(data, ties="hash", untimed="random", seed=0)
    one = federation(FedSASRec.of({**METHOD.values(), "exclude_seen": True, "temperature": temperature}), split)
    p, known = plain(one), sequence(one, 0)
    assert len(known) > len(set(known))  # an item comes again

    def whole(p: Values) -> float:
        found, total = states(p, known[:-1]), 0.0
        scores = cosines(found, p["items"], temperature) if temperature else found @ p["items"].T
        for t, row in enumerate(scores):
            target = known[t + 1]
            candidates = [item for item in range(len(row)) if item == target or item not in known[: t + 1]]
            total += float(np.log(np.exp(row[candidates]).sum()) - row[target])
        return total

    require_slopes(whole, p, sums(one, [0]), known[0], 1, 1e-6)


def test_two_passes_are_held_together_by_both_divergences_of_their_shares() -> None:
    random = np.random.default_rng(0)
    scores, hidden = random.normal(size=(2, 3, 7)), random.random((3, 7)) < 0.3
    shares = np.exp(scores) * ~hidden
    shares /= shares.sum(-1, keepdims=True)
    expected = []
    for place in range(3):
        p, q = (one[place][~hidden[place]] for one in shares)
        expected.append(float((p * np.log(p / q)).sum() + (q * np.log(q / p)).sum()))
    found = passes.shares(torch.tensor(scores), torch.tensor(hidden))
    assert found.numpy() == pytest.approx(shares, abs=1e-15)
    assert passes.divergence(torch.tensor(scores), found).tolist() == pytest.approx(expected, abs=1e-12)
    moving = torch.tensor(scores, requires_grad=True)
    again = passes.shares(moving, torch.tensor(hidden))
    every = torch.logsumexp(moving.masked_fill(torch.tensor(hidden), -torch.inf), -1).mean(0)
    slope = torch.autograd.grad((every + 0.35 * passes.divergence(moving, again)).sum(), moving)[0]
    assert torch.allclose(passes.every_slope(torch.tensor(scores), found, 0.7), slope, rtol=0, atol=1e-14)


@pytest.mark.parametrize(
    "more", [{}, {"horizon": 1.5, "label_smoothing": 0.2}, {"temperature": 0.3, "exclude_seen": True}], ids=str
)
def test_what_a_client_sends_of_two_passes_is_the_gradient_of_their_loss(more: dict[str, Any]) -> None:
    method = FedSASRec.of({**METHOD.values(), "dropout": 0.4, "r_drop": 0.7, **more})
    one = federation(method, small_world())
    network, client, luck = method.network, 2, chances(one.terms.seed, "luck", 1, torch.tensor([2]))[0]
    p, line = dict(one.server.shared), torch.tensor(sequence(one, client))
    taught = lesson(line, torch.ones(len(line), dtype=torch.float64), LENGTH)
    upload = sums(one, [client])
    slopes = torch.func.grad(lambda here: network.loss(here, taught, luck))({name: p[name] for name in network.names})
    for name, slope in slopes.items():
        assert torch.allclose(upload[f"gradient.{name}"][0], slope, rtol=0, atol=1e-10), name
    first, second = network.taught(p, network.table(p), taught, luck)[0]
    assert not torch.allclose(first, second)
    plain_network = Transformer(4, 2, 2, LENGTH, 0.4, temperature=network.temperature)
    assert torch.equal(plain_network.taught(p, network.table(p), taught, luck)[0][0], first)  # the first is as ever


def test_the_rate_falls_along_a_line_to_a_fiftieth() -> None:
    method = FedSASRec.of({**METHOD.values(), "decay_steps": 4, "learning_rate": 0.01})
    assert [method.rate(step) for step in (1, 2, 4, 5, 99)] == pytest.approx([0.01, 0.0075, 0.0025, 0.0002, 0.0002])
    assert METHOD.rate(10**9) == METHOD.learning_rate
    falls, stays = (federation(one, small_world()) for one in (method, METHOD))
    for number in (1, 2):
        before = [one.server.shared["places"].clone() for one in (falls, stays)]
        falls.round(number)
        stays.round(number)
    moved = [one.server.shared["places"] - then for one, then in zip((falls, stays), before, strict=True)]
    assert torch.allclose(moved[0], 0.75 * moved[1], rtol=1e-9, atol=0)


def test_drawn_beginnings_are_some_of_all_and_others_in_every_round() -> None:
    network, rows, mask = METHOD.network, torch.arange(12), torch.ones(12)
    chance = [chances(0, "luck", number, torch.tensor([3]))[0] for number in range(40)]
    every = prefixes(network, rows, mask, chance[0])
    assert every.targets[:, 0].tolist() == list(range(1, 12))
    assert [rows[:there].tolist() for rows, there in zip(every.items, every.there, strict=True)] == [
        list(range(max(0, target - LENGTH), target)) for target in range(1, 12)
    ]
    drawn = [prefixes(network, rows, mask, one, 4) for one in chance]
    targets = [one.targets[:, 0].tolist() for one in drawn]
    assert all(len(set(one)) == 4 and set(one) <= set(range(1, 12)) for one in targets)
    assert set(chain(*targets)) == set(range(1, 12))
    assert len({tuple(sorted(one)) for one in targets}) > 20
    assert targets[0] != prefixes(network, rows, mask, chance[0], 4, step=1).targets[:, 0].tolist()
    longer = torch.cat([rows, rows]), torch.cat([mask, 0 * mask])  # padding changes nothing
    padded = prefixes(network, *longer, chance[0], 4)
    assert padded.targets[:, 0].tolist() == targets[0]
    assert torch.equal(padded.chances, drawn[0].chances)
    few = prefixes(network, rows[:3], mask[:3], chance[0], 4)
    assert sorted(few.targets[few.real > 0, 0].tolist()) == [1, 2]


def test_drawn_beginnings_look_as_far_ahead_as_all_of_them() -> None:
    network = FedSASRec.of({**METHOD.values(), "prefixes": True, "horizon": 3.0}).network
    rows, mask = torch.arange(40), torch.ones(40)
    luck = chances(0, "luck", 1, torch.tensor([3]))[0]
    every, drawn = prefixes(network, rows, mask, luck), prefixes(network, rows, mask, luck, 4)
    same = drawn.targets[:, 0] - 1  # the row of each among all
    assert every.targets.shape[1] > 4
    assert torch.equal(drawn.targets, every.targets[same])
    assert torch.equal(drawn.weights, every.weights[same])


def test_a_filter_is_a_cut_through_the_fourier_transform() -> None:
    x = torch.randn(9, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    for length in (9, 10):
        padded = torch.cat([x, x.new_zeros(length - 9, 3)])
        for waves in range(1, length // 2 + 3):
            spectrum = torch.fft.rfft(padded, dim=0)
            spectrum[waves:] = 0
            expected = torch.fft.irfft(spectrum, n=length, dim=0)
            assert torch.allclose(low_pass(length, waves, x, back_alone=False) @ padded, expected, atol=1e-14)
    assert bool((low_pass(9, 3, x, back_alone=True).triu(1) == 0).all())


def test_what_stands_behind_a_sequence_changes_nothing() -> None:
    network = FedSASRec.of({**METHOD.values(), "frequency": 0.5, "prefixes": True}).network
    p = {name: one.drawn(name, 30, 0).double() for name, one in network.params(30, RECEIVED).items()}
    rows, there = torch.tensor([4, 9, 2, 7, 7, 7]), torch.tensor(3)
    short = network.at_last(p, rows[:3], there)
    assert float((network.at_last(p, rows, there) - short).abs().max()) < 1e-14
    assert not torch.allclose(network.at_last(p, torch.tensor([9, 4, 2]), there), short)
