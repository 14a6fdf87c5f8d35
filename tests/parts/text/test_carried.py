"""What text carries to new items, against values worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.sparse import csr_matrix

from ownview.base.errors import SettingError
from ownview.data.splitting.new_items import drawn_items
from ownview.evaluation.named_protocols import NEW_ITEMS
from ownview.evaluation.ranking import rankers
from ownview.parts.text.carried import Carrier, carrier
from ownview.registry import build
from ownview.runs.experiment import Experiment
from ownview.runs.training.carrying import CarryingTrainer
from ownview.runs.training.setup import ExperimentSetup
from ownview.seam.portable import Factors, Linear, LowRank, Refusal, Ridge, SparseRows, Term
from ownview.testing import small_world


def test_a_new_item_like_one_of_two_has_the_values_worked_by_hand() -> None:
    """Texts (1, 0), (0, 1) and new (1, 0): K = I, k = (1, 0), mu 1: (K + I)^-1 k = (1/2, 0); the rest is the mean's."""
    found = carrier(csr_matrix([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]), 1)
    assert found.weights[:, 0].tolist() == pytest.approx([0.75, 0.25])
    scores = found.columns(torch.tensor([[4.0, 0.0, 99.0]], dtype=torch.float64))
    assert scores.tolist() == [[4.0, 0.0, pytest.approx(3.0)]]


def test_a_new_item_that_nothing_is_known_of_has_the_mean() -> None:
    found = carrier(csr_matrix([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]), 1)
    assert found.weights[:, 0].tolist() == pytest.approx([0.5, 0.5])


def test_columns_vectors_and_scores_are_carried_to_the_same_numbers() -> None:
    random = np.random.default_rng(0)
    taken, new, rank = 7, 3, 2
    m = taken + new
    carried = Carrier(torch.from_numpy(random.random((taken, new))))
    left, right = (torch.from_numpy(random.random(size)) for size in ((m, rank), (rank, m)))
    whole, bias, history = left @ right, torch.from_numpy(random.random(m)), torch.tensor([0, 4])
    cells = torch.arange(m * m)
    sparse = SparseRows(torch.arange(0, m * m + 1, m), cells % m, whole.reshape(-1))
    for weights in (whole, LowRank(left, right), sparse):
        form = Linear((Term(weights, 3.0),), bias)
        made = carried.portable(form)
        assert isinstance(made, Linear)
        torch.testing.assert_close(made.scores(history), carried.columns(form.scores(history)))
    factors = Factors(torch.from_numpy(random.random((m, rank))), Ridge(1.0, 0.0, 1.0, 0.5), bias)
    made_factors = carried.portable(factors)
    assert isinstance(made_factors, Factors)
    torch.testing.assert_close(made_factors.scores(history), carried.columns(factors.scores(history)))
    assert isinstance(carried.portable(Refusal()), Refusal)


@pytest.mark.parametrize("name", ["fedease", "fednext", "ease", "mf", "fedmf", "fedsasrec", "popularity"])
def test_every_model_is_asked_for_new_items_and_its_form_gives_its_scores(name: str) -> None:
    experiment = Experiment(name, protocol=NEW_ITEMS, rounds=1, device="cpu")
    setup = ExperimentSetup.of(experiment, data=small_world().data)
    model = setup.trainer(experiment, build(name, {}))
    model.round(1)
    test = setup.rankers[1]
    scores = model.asked(test.question).scores(test.users, None)
    new = scores[:, -setup.split.num_new :]
    assert float(new.std(1).max()) > 0, "new items must be told apart"
    form = model.portable()
    if name in ("ease", "fedease"):
        assert isinstance(form, Linear)
        for row, user in enumerate(test.users.tolist()[:5]):
            expected = form.scores(test.question.known.items.of(user))
            torch.testing.assert_close(scores[row].double(), expected, rtol=1e-4, atol=1e-5)


def test_without_text_new_items_are_refused_and_text_needs_no_carrying() -> None:
    data = small_world().data
    experiment = Experiment("ease", protocol=NEW_ITEMS, rounds=1, device="cpu")
    bare = ExperimentSetup.of(experiment, data=replace(data, about=None))
    with pytest.raises(SettingError, match="nothing is but their ids; expected a file with columns item and title"):
        bare.trainer(experiment, build("ease", {}))
    text = ExperimentSetup.of(experiment, data=data).trainer(experiment, build("text", {}))
    assert not isinstance(text, CarryingTrainer)


def test_what_stands_in_the_rows_of_new_items_does_not_matter() -> None:
    split = drawn_items(small_world().data, share=0.2, ties="hash", untimed="random", seed=0, among_new=True)
    assert split.data.about is not None
    _, test = rankers(NEW_ITEMS, split, 0, torch.device("cpu"), 10**8)
    carried = Carrier(torch.full((split.num_items - split.num_new, split.num_new), 0.1))
    values = torch.rand(len(test.users), split.num_items)
    other = values.clone()
    other[:, -split.num_new :] = 1e6
    assert torch.equal(carried.columns(values), carried.columns(other))
