"""What models say of themselves: forms that score as the model does, and refusals with a reason."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from scipy.sparse import csr_matrix

from ownview.base.errors import SettingError
from ownview.baselines.itemknn import ItemKNN
from ownview.baselines.parts.central import Asked
from ownview.data.ragged import Ragged
from ownview.data.timeline import Timeline
from ownview.methods.fedmf import FedMF
from ownview.pages.run_model import RunModel
from ownview.plugins.late_aggregation import LateAggregation
from ownview.runs.run import Run
from ownview.seam.portable import Factors, Linear, Logistic, LowRank, Refusal, Ridge, SparseRows, Term, overruled
from ownview.seam.training import ANY_WORLD, Params

EXACT: list[tuple[str, dict[str, Any]]] = [
    ("popularity", {}),
    ("markov", {}),
    ("ease", {}),
    ("slist", {}),
    ("fedease", {}),
    ("fednext", {}),
    ("fednext", {"rank": 6, "iterations": 2, "length": 5}),
    ("fedials", {"embedding_size": 5}),
    ("fcf", {"embedding_size": 5}),
]


@pytest.mark.parametrize(("method", "settings"), EXACT)
def test_closed_forms_score_as_the_model_does(made: Callable[..., Run], method: str, settings: dict[str, Any]) -> None:
    taken = RunModel.of(made(method, **settings))
    question = taken.setup.rankers[1].question
    users = torch.arange(len(question.known.items))
    expected = taken.trainer.asked(question).scores(users, None).double()
    found = torch.stack([taken.form.scores(question.known.items.of(int(user))) for user in users])
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    assert taken.fidelity(taken.form, np.arange(taken.data.num_items)).overlap > 0.99


@pytest.mark.parametrize(("method", "settings"), [("fedmf", {"embedding_size": 4, "local_epochs": 2}), ("pfedrec", {})])
def test_trained_methods_are_folded_in_with_their_shared_table(
    made: Callable[..., Run], method: str, settings: dict[str, Any]
) -> None:
    taken = RunModel.of(made(method, **settings))
    assert isinstance(taken.form, Factors)
    assert taken.form.scores(torch.tensor([1, 2, 3])).shape == (taken.data.num_items,)
    assert 0 <= taken.fidelity(taken.form, np.arange(taken.data.num_items)).overlap <= 1


def test_likeness_that_is_stored_by_columns_is_taken_by_rows() -> None:
    drawn = torch.rand(5, 5, generator=torch.Generator().manual_seed(2))
    stored = csr_matrix(torch.where(drawn > 0.5, drawn, 0.0).T.numpy())
    parts = {"offsets": stored.indptr, "rows": stored.indices, "values": stored.data}
    learned = {f"weights.{name}": torch.from_numpy(part) for name, part in parts.items()}
    known = Timeline(Ragged(torch.tensor([0, 2, 5]), torch.tensor([3, 1, 0, 4, 2])))
    model = ItemKNN()
    expected = model.scores(learned, Asked(torch.arange(2), known)).double()
    form = model.portable(learned)
    assert isinstance(form, Linear)
    torch.testing.assert_close(torch.stack([form.scores(known.items.of(user)) for user in range(2)]), expected)


def test_after_a_pause_fednext_does_something_else_and_says_so(made: Callable[..., Run]) -> None:
    assert "after a pause are left out" in RunModel.of(made("fednext")).form.left_out[0]


def test_a_term_counts_the_latest_items_and_repeats_once() -> None:
    weights = torch.arange(9.0).reshape(3, 3)
    form = Linear((Term(weights, fades=2.0, most=2),), bias=torch.tensor([0.0, 0.0, 10.0]))
    latest, before = weights[0], weights[2]
    expected = latest + math.exp(-0.5) * before + torch.tensor([0.0, 0.0, 10.0])
    torch.testing.assert_close(form.scores(torch.tensor([0, 1, 2, 0])), expected.double())


def test_sparse_rows_and_products_are_the_matrices_they_stand_for() -> None:
    left, right = torch.tensor([[1.0], [2.0], [0.0]]), torch.tensor([[3.0, 0.0, 1.0]])
    sparse = SparseRows(torch.tensor([0, 2, 4, 4]), torch.tensor([0, 2, 0, 2]), torch.tensor([3.0, 1.0, 6.0, 2.0]))
    history = torch.tensor([2, 1, 0])
    whole = Linear((Term(left @ right, fades=3.0),)).scores(history)
    for weights in (LowRank(left, right), sparse):
        torch.testing.assert_close(Linear((Term(weights, fades=3.0),)).scores(history), whole)


def test_a_ridge_solves_its_equations() -> None:
    items = torch.randn(6, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    how = Ridge(seen=2.0, every=0.5, target=3.0, ridge=0.1, count=4.0, exponent=0.5)
    mine, user = items[[1, 4]], how.vector(items, torch.zeros(6), torch.tensor([1, 4]))
    left = 2 * mine.T @ mine + 0.5 * items.T @ items + 0.1 * math.sqrt(6.0) * torch.eye(2)
    torch.testing.assert_close(left @ user, 3 * mine.sum(0))


def test_logistic_steps_go_down_to_where_the_gradient_is_zero() -> None:
    items = torch.randn(9, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    bias, history = torch.linspace(-1, 1, 9, dtype=torch.float64), torch.tensor([0, 5])
    seen = torch.zeros(9, dtype=torch.float64).index_fill(0, history, 1.0)
    weight = seen + (1 - seen) * (4 * 2 / 7)

    def loss(user: torch.Tensor) -> torch.Tensor:
        score = items @ user + bias
        return (weight * torch.nn.functional.softplus(torch.where(seen > 0, -score, score))).sum() + user @ user / 2

    found = [Logistic(4.0, 1.0, steps).vector(items, bias, history) for steps in (0, 1, 2, 5, 400)]
    values = [float(loss(user)) for user in found]
    assert values == sorted(values, reverse=True)
    last = found[-1].clone().requires_grad_()
    (gradient,) = torch.autograd.grad(loss(last), last)
    assert float(gradient.abs().max()) < 1e-8


def test_an_empty_history_has_the_bias_alone() -> None:
    nothing = torch.zeros(0, dtype=torch.long)
    bias = torch.tensor([1.0, 2.0])
    for how in (Ridge(1.0, 1.0, 1.0, 1.0), Logistic(4.0)):
        torch.testing.assert_close(Factors(torch.ones(2, 3), how, bias).scores(nothing), bias.double())


@pytest.mark.parametrize(
    ("method", "settings", "reason"),
    [
        ("local-only", {"embedding_size": 2, "local_epochs": 1}, "shares nothing"),
        ("pfedrec", {"hidden_layers": (4,)}, "hidden layers"),
        ("fedrap", {"embedding_size": 2, "local_epochs": 1}, "does not say how a device could score"),
        ("recent-popularity", {}, "take popularity"),
        ("blend", {"parts": ("fedease", "popularity")}, "--onnx takes it along"),
        ("fedsasrec", {"embedding_size": 4, "length": 5}, "--onnx takes it along"),
    ],
)
def test_others_are_refused_with_the_reason(
    made: Callable[..., Run], method: str, settings: dict[str, Any], reason: str
) -> None:
    with pytest.raises(SettingError, match=reason) as error:
        RunModel.of(made(method, **settings))
    assert method in str(error.value)
    assert "\n" not in str(error.value)


def test_a_plug_in_is_refused_by_its_name() -> None:
    refused = LateAggregation.around(FedMF(), {}).portable({}, ANY_WORLD)
    assert isinstance(refused, Refusal)
    assert "late-aggregation" in refused.reason


@dataclass(frozen=True)
class Shifted(FedMF):
    """Scores otherwise than FedMF, and does not say so."""

    name: ClassVar[str] = "shifted"

    def scores(self, p: Params) -> torch.Tensor:
        return super().scores(p) + p["items"].sum(-1)


def test_whoever_scores_otherwise_must_say_so_again() -> None:
    assert overruled(FedMF) is None
    refused = overruled(Shifted)
    assert refused is not None
    assert "does not say" in refused.reason
