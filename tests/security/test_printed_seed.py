"""Noise drawn again with the seed that stands in a model's card, and two models of one seed held against each other.

Both worked while `fit` drew noise from its seed: the sums came out exactly, and the difference of a January and a
February model was one person's items. Now noise comes from a key that is forgotten. With `noise=seeded` both still
work, and everything that is said of such a model begins with "not private".
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import ownview as ov
from ownview.base.randomness import derive
from ownview.data import Interactions
from ownview.privacy.entropy import NoiseKey
from ownview.privacy.exact_gaussian import rounded_gaussian
from ownview.privacy.transforms import drawn, gaussian
from ownview.runs.run import Run
from tests.shop import shop

_SEED = 0


def _popular(run: Run) -> torch.Tensor:
    """[m] the noisy sums of x / |x| that a model is made of."""
    return run.folder.read_tensors("model")[0]["shared.popular"].double()


def _fitted(data: Interactions, privacy: str) -> Run:
    total = None if "seeded" in privacy else 9.0  # several of the same people, knowingly
    return ov.fit(ov.FedEASE(), data, seed=_SEED, federation={"privacy": privacy}, total=total)


def _exact(data: Interactions) -> torch.Tensor:
    sums = torch.zeros(data.num_items, dtype=torch.float64)
    for user in range(data.num_users):
        items = torch.from_numpy(np.unique(data.item[data.of(user)]))
        sums[items] += len(items) ** -0.5
    return sums


def _guesses(data: Interactions) -> dict[str, torch.Tensor]:
    """Noise of standard deviation 1 as a reader of the card would draw it: as it was once, and as it is when seeded."""
    first = torch.zeros(1, dtype=torch.long)
    once = derive(derive(_SEED, "privacy of sums", 1), "popular")
    old = drawn(torch.zeros(1, data.num_items, dtype=torch.float64), once, first, gaussian, 1.0)[0]
    stream = NoiseKey.from_seed(_SEED).stream("sum", 1, "popular")
    new = torch.from_numpy(rounded_gaussian(stream, data.num_items, 20)).double() / 2.0**20
    return {"old": old, "seeded": new}


def _left(run: Run, data: Interactions) -> float:
    """How far the best guess of the noise, taken off at any scale, is from the exact sums: 0 where it is the noise."""
    exact, found = _exact(data), _popular(run)
    apart = found - exact
    return min(
        float((apart - (apart @ noise) / (noise @ noise) * noise).norm() / apart.norm())
        for noise in _guesses(data).values()
    )


@pytest.fixture(scope="module")
def data() -> Interactions:
    return shop()


def test_the_card_s_seed_does_not_take_the_noise_off(data: Interactions) -> None:
    assert _left(_fitted(data, "central:epsilon=1"), data) > 0.5
    seeded = _fitted(data, "central:epsilon=1,noise=seeded")
    assert _left(seeded, data) < 1e-4
    assert seeded.result["privacy"]["headline"].startswith("not private: noise from a seed")
    assert seeded.folder.read_note("privacy")["not_covered"][0].startswith("anything: noise from a seed")
    assert any(note.startswith("not private: noise from a seed") for note in seeded.result["notes"])


def _february(january: Interactions) -> Interactions:
    """The same people, of whom one has three items more."""
    mine = january.of(0)
    had = set(january.item[mine].tolist())
    new = [item for item in range(january.num_items) if item not in had][:3]
    users = np.concatenate([np.repeat(january.users, january.counts), np.repeat(january.users[:1], 3)])
    items = np.concatenate(
        [*(january.items[january.item[january.of(k)]] for k in range(january.num_users)), january.items[new]]
    )
    return Interactions.from_rows("february", users, items)


def test_two_models_of_one_seed_do_not_give_away_what_changed(data: Interactions) -> None:
    """Their difference has noise of its own: twice the variance, and nothing of one person stands out."""
    other = _february(data)
    order = [list(other.items).index(one) for one in data.items]

    def difference(privacy: str) -> torch.Tensor:
        return _popular(_fitted(other, privacy))[order] - _popular(_fitted(data, privacy))

    truth = _exact(other)[order] - _exact(data)
    assert torch.allclose(difference("central:epsilon=1,noise=seeded"), truth, atol=1e-3)
    apart = difference("central:epsilon=1") - truth
    assert float(apart.std()) > 5 * float(truth.abs().max())


def test_two_fits_never_share_noise(data: Interactions) -> None:
    first, second = (_popular(_fitted(data, "central:epsilon=1")) for _ in range(2))
    assert float((first - second).abs().min()) > 0


def test_the_key_is_gone_once_the_model_is_made(data: Interactions, tmp_path: Path) -> None:
    made = ov.fit(ov.FedEASE(), data, federation={"privacy": "central:epsilon=1"}, out=tmp_path / "model")
    assert not (made.folder.path / "noise.key").exists()
