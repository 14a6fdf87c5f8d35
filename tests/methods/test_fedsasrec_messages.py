"""What FedSASRec's clients send and its server makes of it, by what chance, and which settings are refused."""

from __future__ import annotations

from itertools import chain
from typing import Any

import numpy as np
import pytest
import torch

from ownview import FederationOptions, FedSASRec
from ownview.base.errors import SettingError
from ownview.base.randomness import chances
from ownview.baselines.sasrec import SASRec
from ownview.data.interactions import Interactions
from ownview.data.splitting.splits import leave_one_out
from ownview.parts.sequences.filters import low_pass
from ownview.parts.sequences.sequence import SequenceSettings
from ownview.parts.sequences.transformer import Transformer
from ownview.parts.shortened import rounded
from ownview.round.scorers import scorer_of
from ownview.seam.client import Patch, Product
from ownview.seam.roles import RECEIVED
from ownview.testing.federated import alone_equals_vector
from ownview.testing.worlds import federation, small_world
from tests.methods.fedsasrec_by_hand import LENGTH, METHOD, plain, sent, sequence, sums
from tests.methods.golden import AdamByHand


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
