"""FedSASRec against the same network written in NumPy, place by place, and against finite differences of its loss."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from ownview import FederationOptions, FedSASRec
from ownview.base.errors import SettingError
from ownview.base.randomness import chances
from ownview.baselines.sasrec import SASRec
from ownview.data.interactions import Interactions
from ownview.data.splitting.splits import leave_one_out
from ownview.messages.upload import Upload
from ownview.parts.sequences import passes
from ownview.parts.sequences.filters import low_pass
from ownview.parts.sequences.prefixes import prefixes
from ownview.parts.sequences.sequence import SequenceSettings
from ownview.parts.sequences.slopes import turned
from ownview.parts.sequences.transformer import Transformer, lesson
from ownview.parts.shortened import rounded
from ownview.round.federation import Federation
from ownview.round.scorers import scorer_of
from ownview.seam.client import Patch, Product
from ownview.seam.roles import RECEIVED
from ownview.testing.federated import alone_equals_vector
from ownview.testing.worlds import federation, small_world
from tests.methods.golden import AdamByHand

Matrix = NDArray[np.float64]
Values = dict[str, Matrix]

LENGTH = 6
METHOD = FedSASRec(embedding_size=4, blocks=2, heads=2, length=LENGTH, dropout=0.0, learning_rate=0.01)


def norm(p: Values, name: str, x: Matrix) -> Matrix:
    centred = x - x.mean()
    scaled: Matrix = centred / np.sqrt((centred**2).mean() + 1e-8) * p[f"{name}.scale"]
    return scaled + p[f"{name}.shift"]


def filtered(z: Matrix, root: Matrix, waves: int, causal: bool) -> Matrix:
    """Through the Fourier transform of `LENGTH` places, of which a sequence fills the first ones."""
    found = np.zeros_like(z)
    for t in range(len(z)):
        seen = np.zeros((LENGTH, z.shape[1]))
        there = t + 1 if causal else len(z)
        seen[:there] = z[:there]
        spectrum = np.fft.rfft(seen, axis=0)
        spectrum[waves:] = 0
        low = np.fft.irfft(spectrum, n=LENGTH, axis=0)[t]
        found[t] = low + root**2 * (z[t] - low)
    return found


def states(p: Values, items: list[int], frequency: float = 0.0, waves: int = 2, causal: bool = True) -> Matrix:
    """[n, d] what the network makes of a sequence, one place after the other."""
    d, n = p["items"].shape[1], len(items)
    x = np.array([2.0 * p["items"][item] + p["places"][n - 1 - t] for t, item in enumerate(items)])  # sqrt(4)
    for block in range(2):
        name = f"block{block}.attention"
        z = np.array([norm(p, name, one) for one in x])
        query, key, value = np.split(z @ p[f"{name}.inward"], 3, axis=1)
        added = np.zeros_like(x)
        for t in range(n):
            for number, head in enumerate((slice(0, d // 2), slice(d // 2, d))):
                apart = p[f"{name}.apart"][number, t::-1] if f"{name}.apart" in p else 0.0  # places t, t - 1, ... apart
                near = np.exp(key[: t + 1, head] @ query[t, head] / np.sqrt(d // 2) + apart)
                added[t, head] = near @ value[: t + 1, head] / near.sum()
        seen = added @ p[f"{name}.outward"]
        if frequency:
            passed = filtered(z, p[f"block{block}.filter.root"], waves, causal)
            seen = (1 - frequency) * seen + frequency * passed
        x = x + seen
        name = f"block{block}.forward"
        inner = np.array([norm(p, name, one) for one in x]) @ p[f"{name}.inward"] + p[f"{name}.inward.bias"]
        x = x + np.maximum(inner, 0) @ p[f"{name}.outward"] + p[f"{name}.outward.bias"]
    return np.array([norm(p, "last", one) for one in x])


def cosines(states: Matrix, items: Matrix, temperature: float) -> Matrix:
    """[..., m] over the temperature."""
    lengths = np.linalg.norm(states, axis=-1)[..., None] * np.linalg.norm(items, axis=-1)
    found: Matrix = states @ items.T / lengths / temperature
    return found


def loss(p: Values, items: list[int], horizon: float = 0.0, smoothing: float = 0.0) -> float:
    """The sum over the last `LENGTH` places; each may learn from several targets, the k-th after it by exp(-k / h)."""
    items = items[-LENGTH - 1 :]
    total, targets = 0.0, items[1:]
    for t, row in enumerate(states(p, items[:-1]) @ p["items"].T):
        later = targets[t:] if horizon else targets[t : t + 1]
        weights = [np.exp(-k / horizon) if horizon else 1.0 for k in range(len(later))]
        mean = sum(weight * row[item] for weight, item in zip(weights, later, strict=True)) / sum(weights)
        total += float(np.log(np.exp(row).sum()) - (1 - smoothing) * mean - smoothing * row.mean())
    return total


def loss_of_prefixes(p: Values, items: list[int], frequency: float, horizon: float) -> float:
    """The sum over all beginnings, each a sequence of its own whose last place learns what came after it."""
    total = 0.0
    for cut in range(1, len(items)):
        row = p["items"] @ states(p, items[max(0, cut - LENGTH) : cut], frequency, causal=False)[-1]
        later = items[cut:] if horizon else items[cut : cut + 1]
        weights = [np.exp(-k / horizon) if horizon else 1.0 for k in range(len(later))]
        mean = sum(weight * row[item] for weight, item in zip(weights, later, strict=True)) / sum(weights)
        total += float(np.log(np.exp(row).sum()) - mean)
    return total


def sequence(one: Federation, client: int) -> list[int]:
    found: list[int] = one.split.timeline.items.of(client).tolist()
    return found


def plain(one: Federation) -> Values:
    return {name: value.numpy().copy() for name, value in one.server.shared.items()}


def sent(one: Federation, clients: list[int]) -> Upload:
    block = torch.tensor(clients)
    return one.work.do(one.work.samples(1, block), one.server.download(1, block))


def sums(one: Federation, clients: list[int]) -> dict[str, Tensor]:
    """What clients send, every sum of it written out, and the items' gradient whole."""
    found: dict[str, Tensor] = {}
    for name, value in sent(one, clients).sums.items():
        whole = value.left.mT @ value.right if isinstance(value, Product) else value
        assert isinstance(whole, Tensor), name
        found[name] = whole
    if "along" in found:
        along, items = found.pop("along"), one.server.shared["items"]
        found["gradient.items"] = torch.stack(
            [turned(slope, here, items) for slope, here in zip(found["gradient.items"], along, strict=True)]
        )
    return found


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


def test_the_server_divides_by_all_positions_and_moves_by_adam() -> None:
    one = federation(METHOD, small_world())
    adam, places = AdamByHand(), ("block0.forward.inward", (1, 2))
    for number in (1, 2):
        before = float(one.server.shared[places[0]][places[1]])
        upload = sums(one, list(range(one.world.num_clients)))
        gradient = upload[f"gradient.{places[0]}"].sum(0)[places[1]] / upload["positions"].sum()
        one.round(number)
        expected = adam.move(before, float(gradient), 0.01)
        assert float(one.server.shared[places[0]][places[1]]) == pytest.approx(expected, abs=1e-14)


def test_several_steps_send_the_sum_of_the_gradients_on_the_way() -> None:
    rate, settings = 0.5, {**METHOD.values(), "local_rate": 0.5}
    first = federation(METHOD, small_world())
    moved = federation(METHOD, small_world())
    twice = federation(FedSASRec.of({**settings, "local_steps": 2}), small_world())
    start = sums(first, [4])
    share = rate / float(start["positions"][0])
    for name, value in moved.server.shared.items():
        moved.server.shared[name] = value - share * start[f"gradient.{name}"][0]
    second, both = sums(moved, [4]), sums(twice, [4])
    for name in first.server.shared:
        expected = start[f"gradient.{name}"] + second[f"gradient.{name}"]
        assert float((both[f"gradient.{name}"] - expected).abs().max()) < 1e-13


def test_with_drawn_items_only_their_rows_and_the_clients_own_are_sent() -> None:
    one = federation(FedSASRec.of({**METHOD.values(), "negatives": 3}), small_world())
    upload = sent(one, [1])
    rows = upload.sums["gradient.items"][0].ne(0).any(1).nonzero()[:, 0].tolist()
    mine = set(sequence(one, 1)[-LENGTH - 1 :])
    assert mine <= set(rows)
    assert 0 < len(set(rows) - mine) <= 3


def test_factors_are_sent_where_they_are_shorter_than_what_they_stand_for() -> None:
    wide = FedSASRec.of({**METHOD.values(), "embedding_size": 64, "length": 3, "temperature": 0.2})
    for method, factors in ((wide, True), (METHOD, False)):
        upload = sent(federation(method, small_world()), [1, 2])
        for name in ("items", "block0.attention.inward", "block1.forward.outward"):
            assert isinstance(upload.sums[f"gradient.{name}"], Product) is factors, name


def test_the_largest_rows_alone_are_sent() -> None:
    whole = sums(federation(METHOD, small_world()), [1])["gradient.items"][0]
    upload = sent(federation(FedSASRec.of({**METHOD.values(), "sent_rows": 5}), small_world()), [1])
    patch = upload.sums["gradient.items"]
    assert isinstance(patch, Patch)
    largest = whole.norm(dim=1).argsort(descending=True)[:5]
    assert set(patch.rows[0].tolist()) == set(largest.tolist())
    assert torch.allclose(patch.values[0], whole[patch.rows[0]], rtol=0, atol=1e-12)  # written out, not in factors


def test_numbers_of_one_byte_are_those_gradients_in_the_mean_and_a_quarter_as_long() -> None:
    whole = sums(federation(METHOD, small_world()), [1])
    short = federation(FedSASRec.of({**METHOD.values(), "sent_bits": 8}), small_world())
    download, codec = short.server.download(1, torch.tensor([1])), short.terms.codec
    upload = short.work.do(short.work.samples(1, torch.tensor([1])), download)
    read = codec.read_upload(codec.write_upload(upload, 1), 1).written_out()
    total = 0
    for name, value in whole.items():
        found = read[name][0]
        if value.dim() < 3:  # vectors go as they are
            assert torch.allclose(found, value[0], rtol=0, atol=1e-12)
            continue
        step = 2.0 ** (value[0].abs().amax(1, keepdim=True).clamp(min=1e-20) / 127).log2().ceil()
        assert bool(((found - value[0]).abs() < step).all()), name
        counts = found / step
        assert torch.equal(counts, counts.round())
        total += int((found != value[0]).sum())
    assert total > 100


def test_rounding_at_random_is_right_in_the_mean_and_does_not_depend_on_what_else_is_sent() -> None:
    values = torch.tensor([[1.0, -0.3, 0.11, 0.0], [5e-5, 1e-5, -2e-5, 3e-5]], dtype=torch.float64)
    patch = Patch(torch.tensor([4, 1]), torch.zeros(0, dtype=torch.long), values)
    luck = chances(0, "luck", 1, torch.arange(4000))
    found = torch.stack([rounded(patch, one, 0).values for one in luck])
    step = 2.0 ** (values.abs().amax(1) / 127).log2().ceil()
    assert bool(((found.mean(0) - values).abs() < 5 * step[:, None] / np.sqrt(4 * 4000)).all())  # five deviations
    assert torch.equal(found[..., 3][:, 0], torch.zeros(4000, dtype=torch.float64))
    alone = rounded(patch._replace(rows=patch.rows[1:], values=values[1:]), luck[0], 0)
    assert torch.equal(alone.values, found[0, 1:])
    assert not torch.equal(torch.stack([rounded(patch, one, 1).values for one in luck[:50]]), found[:50])


def test_other_bits_than_8_and_32_are_refused() -> None:
    with pytest.raises(SettingError, match=r"sent_bits=16: expected 8 or 32, such as 8"):
        FedSASRec(sent_bits=16)


def test_a_client_with_one_item_has_nothing_to_say() -> None:
    one = federation(METHOD, small_world())
    assert len(sequence(one, 0)) == 1
    assert sent(one, [0, 1]).clients.tolist() == [1]
    users, items = np.repeat(np.arange(4), 3), np.arange(12) % 5
    lonely = Interactions.from_rows("one item each", users, items, timestamp=np.arange(12))
    quiet = federation(METHOD, leave_one_out(lonely, ties="hash", untimed="random", seed=0))
    before = plain(quiet)
    quiet.round(1)
    assert all(np.array_equal(before[name], value) for name, value in plain(quiet).items())
    assert bool(torch.isfinite(scorer_of(quiet).scores(torch.arange(4), None)).all())


def test_dropout_drops_its_share_and_is_keyed_by_client_round_and_step() -> None:
    network = Transformer(size=32, blocks=1, heads=1, length=100, dropout=0.3)
    luck = [chances(0, "luck", number, torch.tensor([client]))[0] for number, client in ((1, 0), (1, 1), (2, 0))]
    masks = [network._dropped(torch.ones(100, 32), one, 0, 0) for one in (*luck, luck[0])]
    masks += [network._dropped(torch.ones(100, 32), luck[0], place, step) for place, step in ((1, 0), (0, 1))]
    assert torch.equal(masks[0], masks[3])
    for other in (masks[1], masks[2], *masks[4:]):
        assert 0.3 < float((masks[0] != other).double().mean()) < 0.55  # chance is 2 * 0.3 * 0.7
    dropped = float((masks[0] == 0).double().mean())
    assert abs(dropped - 0.3) < 5 * np.sqrt(0.3 * 0.7 / 3200)
    assert float(masks[0].max()) == pytest.approx(1 / 0.7)
    assert torch.equal(network._dropped(torch.ones(40, 32), luck[0], 0, 0), masks[0][:40])


def test_items_that_are_left_out_leave_their_place_empty_and_are_keyed_by_client_round_and_step() -> None:
    """What an item says does not matter where it is left out; where it stays, and out of training, it does."""
    network = Transformer(size=8, blocks=1, heads=1, length=100, dropout=0.0, item_dropout=0.4)
    p = {name: one.drawn(name, 200, 0).double() for name, one in network.params(200, RECEIVED).items()}
    here, there = torch.arange(100), torch.tensor(100)

    def left_out(chance: torch.Tensor | None, step: int = 0) -> list[bool]:
        before = network.hidden(p, here, there, chance, step)
        found = []
        for place in range(100):
            other = torch.where(here == place, 150, here)
            found.append(torch.equal(network.hidden(p, other, there, chance, step), before))
        return found

    luck = [chances(0, "luck", number, torch.tensor([client]))[0] for number, client in ((1, 0), (1, 1), (2, 0))]
    masks = [left_out(one) for one in luck] + [left_out(luck[0], 1)]
    assert all(20 <= sum(mask) <= 60 for mask in masks)  # four deviations around 40
    assert all(mask != masks[0] for mask in masks[1:])
    assert masks[0] == left_out(luck[0])
    assert not any(left_out(None))


@pytest.mark.parametrize(
    "more",
    [
        {"prefixes": True, "drawn": 3, "frequency": 0.6},
        {"frequency": 0.6, "sent_rows": 9, "sent_bits": 8},
        {"relative": True, "temperature": 0.2, "negatives": 5},
        {"relative": True, "temperature": 0.2, "embedding_size": 64, "length": 3},
        {"temperature": 0.2, "exclude_seen": True, "r_drop": 0.5, "embedding_size": 64, "length": 3},
    ],
    ids=["beginnings", "short messages", "cosines", "factors", "two passes"],
)
def test_clients_that_are_alone_send_the_same_bytes_and_end_with_the_same_values(more: dict[str, Any]) -> None:
    alone_equals_vector(FedSASRec.of({**METHOD.values(), "dropout": 0.2, **more}), together=True)


def test_clients_in_turns_take_part_once_a_pass() -> None:
    one = federation(METHOD, small_world(), options=FederationOptions(clients="turns:8"))
    cohorts = [one.participants(number).tolist() for number in range(1, 7)]
    assert [len(cohort) for cohort in cohorts] == [8, 8, 7, 8, 8, 7]
    for start in (0, 3):
        assert sorted(chain(*cohorts[start : start + 3])) == list(range(23))
    assert cohorts[:3] != cohorts[3:]


@pytest.mark.parametrize(("name", "value"), [("horizon", 2.0), ("label_smoothing", 0.2)])
def test_other_targets_and_drawn_items_exclude_each_other(name: str, value: float) -> None:
    told = rf"^FedSASRec setting negatives=9 does not go with {name}={value}; expected {name}=0.0, or negatives=0$"
    with pytest.raises(SettingError, match=told):
        FedSASRec.of({name: value, "negatives": 9})


def test_heads_that_do_not_fit_are_refused_with_the_nearest_that_do() -> None:
    with pytest.raises(SettingError, match=r"heads=3: expected a divisor of embedding_size=64, such as 2"):
        FedSASRec(heads=3)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"drawn": 4}, r"drawn=4: draws of prefixes=True; expected that, or 0"),
        ({"waves": 5}, r"waves=5: is of a filter with frequency above 0; expected that, or 3"),
        ({"frequency": 0.5, "length": 6, "waves": 4}, r"waves=4: of a period of length=6 all waves pass.*at most 3"),
        ({"frequency": 0.5, "length": 1}, r"waves=3: of a period of length=1 all waves pass.*expected frequency=0"),
        ({"r_drop": 0.5, "dropout": 0.0}, r"r_drop=0.5: is of passes .* expected dropout or item_dropout above 0, or"),
        (
            {"r_drop": 0.5, "negatives": 3},
            r"r_drop=0.5 does not go with negatives=3; expected negatives=0, or r_",
        ),
        (
            {"exclude_seen": True, "horizon": 2.0, "prefixes": True, "label_smoothing": 0.1},
            r"exclude_seen=True does not go with prefixes=True, horizon=2.0, label_smoothing=0.1; expected "
            r"prefixes=False and horizon=0.0 and label_smoothing=0.0, or exclude_seen=False$",
        ),
    ],
)
@pytest.mark.parametrize("method", [FedSASRec, SASRec])
def test_settings_without_an_effect_are_refused(
    method: type[SequenceSettings], settings: dict[str, Any], told: str
) -> None:
    with pytest.raises(SettingError, match=f"^{method.title} setting {told}"):
        method.of(settings)


def test_the_most_waves_that_may_pass_still_filter() -> None:
    for length in (2, 3, 6, 7):
        one = FedSASRec(length=length, frequency=0.5, waves=length // 2)
        x = torch.eye(length, dtype=torch.float64)
        assert not torch.allclose(low_pass(length, one.waves, x, back_alone=False), x)
