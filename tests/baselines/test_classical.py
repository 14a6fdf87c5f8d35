"""The wrapped models against their formulas, and what happens where a package is not there."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from ownview import BPR, EASE, IALS, SLIM, ItemKNN, Params, RP3Beta
from ownview.base.errors import DeviceError
from ownview.baselines.parts.central import OneShot
from ownview.baselines.parts.packages import training_matrix
from ownview.data.splitting.splits import Split
from ownview.engine.machine import Machine
from ownview.evaluation.named_protocols import HONEST
from ownview.federation.options import FederationOptions
from ownview.runs.training.trainers import trainer
from ownview.testing.worlds import block_world, small_world
from tests.outcome import Outcome
from tests.questions import about

Array = np.ndarray[tuple[int, ...], np.dtype[np.float64]]


@pytest.fixture(scope="module")
def split() -> Split:
    return small_world()


def fitted(model: OneShot, split: Split) -> tuple[Params, Array]:
    """What it learnt, and everybody's scores."""
    learned = model.fit(split, split.training_items(), seed=0)
    return learned, model.scores(learned, about(split)).double().numpy()


def matrix(split: Split) -> Array:
    dense = np.zeros((split.num_users, split.num_items))
    for user in range(split.num_users):
        dense[user, split.train.of(user).numpy()] = 1
    return dense


def test_the_matrix_is_ones_where_users_trained(split: Split) -> None:
    assert np.array_equal(training_matrix(split).toarray(), matrix(split))


def test_ease_is_its_closed_form(split: Split) -> None:
    x = matrix(split)
    inverse = np.linalg.inv(x.T @ x + 7.5 * np.eye(split.num_items))
    weights = -inverse / np.diag(inverse)
    np.fill_diagonal(weights, 0)
    _, scores = fitted(EASE(strength=7.5), split)
    assert scores == pytest.approx(x @ weights, abs=1e-5)


def test_itemknn_is_the_shrunk_cosine_of_the_nearest(split: Split) -> None:
    x = matrix(split)
    norms = np.linalg.norm(x, axis=0)
    cosine = x.T @ x / (np.outer(norms, norms) + 4.0)
    _, scores = fitted(ItemKNN(neighbours=split.num_items, shrinkage=4.0), split)
    np.fill_diagonal(cosine, 0)
    assert scores == pytest.approx(x @ cosine, rel=1e-5)  # the package takes its norms in single precision
    few, _ = fitted(ItemKNN(neighbours=5, shrinkage=4.0), split)
    kept = few["weights.values"] != 0
    assert torch.bincount(few["weights.rows"][kept], minlength=split.num_items).tolist() == [5] * split.num_items
    nearest = np.sort(cosine, axis=1)[:, -5:].sum()
    assert float(few["weights.values"].sum()) == pytest.approx(nearest, rel=1e-5)


def test_rp3beta_is_the_walk_with_popularity_played_down(split: Split) -> None:
    x = matrix(split)
    users_of, items_of = x.sum(0), x.sum(1)
    to_user = x.T / np.maximum(users_of, 1)[:, None]
    to_item = x / items_of[:, None]
    weights = to_user @ to_item / np.maximum(users_of, 1) ** 0.4
    _, scores = fitted(RP3Beta(neighbours=split.num_items, beta=0.4), split)
    ratio = scores[x @ weights > 0] / (x @ weights)[x @ weights > 0]
    assert ratio == pytest.approx(np.full(len(ratio), ratio[0]), rel=1e-5)


def test_slim_cannot_be_improved(split: Split) -> None:
    """The gradient of its loss is zero where W is positive, and never negative where W is zero."""
    x = matrix(split)
    learned, _ = fitted(SLIM(strength=0.02, l1_share=0.1, iterations=2000, tolerance=1e-7), split)
    m = split.num_items
    weights = np.zeros((m, m))
    offsets = learned["weights.offsets"].tolist()
    for i in range(m):
        here = slice(offsets[i], offsets[i + 1])
        weights[learned["weights.rows"][here].numpy(), i] = learned["weights.values"][here].numpy()
    assert np.all(weights >= 0)
    assert np.all(np.diag(weights) == 0)
    gradient = x.T @ (x @ weights - x) + split.num_users * 0.02 * (0.9 * weights + 0.1)
    np.fill_diagonal(gradient, 0)
    assert np.abs(gradient[weights > 0]).max() < 1e-2
    assert gradient[weights == 0].min() > -1e-2


def test_ials_comes_to_rest_where_its_loss_does(split: Split) -> None:
    x = matrix(split)
    model = IALS(embedding_size=4, unobserved=0.3, strength=0.02, epochs=300, steps=8)
    learned, scores = fitted(model, split)
    u, q = learned["users"].double().numpy(), learned["items"].double().numpy()
    assert scores == pytest.approx(u @ q.T, abs=1e-5)
    wrong = x * (u @ q.T - 1) + 0.3 * (u @ q.T)
    by_user = wrong @ q + 0.02 * (x.sum(1) + 0.3 * split.num_items)[:, None] * u
    by_item = wrong.T @ u + 0.02 * (x.sum(0) + 0.3 * split.num_users)[:, None] * q
    assert np.abs(q).max() > 0.1
    assert np.abs(by_item).max() < 1e-2
    assert np.abs(by_user).max() < 1e-2


def test_bpr_puts_what_users_have_before_the_rest() -> None:
    split = block_world()
    learned, scores = fitted(BPR(embedding_size=8, learning_rate=0.05, epochs=150), split)
    x = matrix(split)
    better = [float((scores[u][x[u] == 1][:, None] > scores[u][x[u] == 0]).mean()) for u in range(split.num_users)]
    assert np.mean(better) > 0.9
    assert learned["users"].shape == (split.num_users, 9)
    assert torch.equal(learned["users"][:, -1], torch.ones(split.num_users))


@pytest.mark.parametrize("name", ["ials", "bpr"])
def test_the_seed_decides_where_a_start_is_drawn(name: str, split: Split) -> None:
    model = {"ials": IALS(embedding_size=4), "bpr": BPR(embedding_size=4, epochs=3)}[name]
    users = [model.fit(split, split.training_items(), seed)["users"] for seed in (0, 0, 1)]
    assert torch.equal(users[0], users[1])
    assert not torch.equal(users[0], users[2])


@pytest.mark.parametrize(("method", "module"), [("ials", "irspack"), ("bpr", "implicit")])
def test_a_missing_package_is_named_before_anything_is_made(
    method: str, module: str, ownview: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    done = ownview("run", method, "--out", tmp_path / "run")
    assert done.code == 2
    assert f'{method} needs the package {module}, which is not installed: pip install -e ".[baselines]"' in done.err
    assert not (tmp_path / "run").exists()


def test_a_run_prints_nothing_of_the_packages_own(ownview: Callable[..., Outcome], tmp_path: Path) -> None:
    done = ownview("run", "ials", "--set", "embedding_size=4", "--out", tmp_path / "run", "--json")
    assert done.code == 0
    assert done.out.startswith("{")
    assert done.err == ""


def test_weights_that_do_not_fit_are_refused_before_they_are_made(split: Split) -> None:
    small = Machine(torch.device("cpu"), memory=10_000)
    with pytest.raises(DeviceError, match=r"ease's standing values need 57.6 kB and .* 10 kB; raise --memory$"):
        trainer(EASE(), split, HONEST, FederationOptions(), 0, small)
