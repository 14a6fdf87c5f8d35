"""IFedRec, against values worked out by hand."""

from __future__ import annotations

import math

import pytest
import torch

from ownview import IFedRec
from ownview.base.errors import SettingError
from ownview.base.items.item_table import ItemTable
from ownview.evaluation.named_protocols import NEW_ITEMS
from ownview.round.scorers import scorer_of
from ownview.seam.optimizers import Sgd
from ownview.seam.training import World
from ownview.testing import small_world
from ownview.testing.worlds import federation

ONE = IFedRec(embedding_size=1, hidden_size=1, penalty=0.5, learning_rate=0.1, table_rate_factor=5.0, server_rate=0.1)
WORLD = World(2, 4, items=ItemTable({"title": ("red", "blue", "red", "blue")}), num_new=2)


def _values() -> dict[str, torch.Tensor]:
    """Attributes of the items are (1, 0), (0, 1), (1, 0), (0, 1); the last two are new."""
    given = {
        "items": [[0.5], [-0.5], [9.0], [9.0]],
        "hidden_weight": [[1.0], [2.0]],
        "hidden_bias": [0.0],
        "out_weight": [[0.5]],
        "out_bias": [0.0],
    }
    values = {name: torch.tensor(value, dtype=torch.float64) for name, value in given.items()}
    moments = {
        f"{one}.{name}": torch.zeros_like(values[name]) for one in ("first", "second") for name in list(given)[1:]
    }
    return values | moments | {"steps": torch.zeros((), dtype=torch.float64), "text": torch.zeros(0)}


def test_the_servers_step_is_the_one_worked_by_hand() -> None:
    """Hidden values are 1 and 2, so r = tanh(1/2), tanh(1) = .462, .762, where the table has .5 and -.5.

    r is too small at the first item and far too large at the second: slopes are below 0 for the weight of 'red' and
    above 0 for all others, and Adam's first step moves each by its rate, .1. Then r is tanh(.4 (1.1 - .1) - .1), which
    is tanh(.3), and tanh(.4 (1.9 - .1) - .1), which is tanh(.62). The table goes half the
    way, 2 (.5) (.1) (5) / 1 = .5.
    """
    after = ONE.server(WORLD).after
    assert after is not None
    new = after(_values(), lambda name: torch.zeros(0))
    moved = {"hidden_weight": [1.1, 1.9], "hidden_bias": [-0.1], "out_weight": [0.4], "out_bias": [-0.1]}
    for name, wanted in moved.items():
        assert new[name].flatten().tolist() == pytest.approx(wanted, abs=1e-6)
    red, blue = math.tanh(0.3), math.tanh(0.62)
    wanted_items = [0.5 + (red - 0.5) / 2, -0.5 + (blue + 0.5) / 2, red, blue]
    assert new["items"][:, 0].tolist() == pytest.approx(wanted_items, abs=1e-6)
    assert float(new["steps"]) == 1


def test_a_client_scores_linearly_and_moves_at_two_rates() -> None:
    p = {
        "items": torch.tensor([[1.0, 2.0], [0.0, -1.0]]),
        "weight": torch.tensor([0.5, 3.0]),
        "bias": torch.tensor(0.25),
    }
    assert IFedRec(embedding_size=2).scores(p).tolist() == [6.75, -2.75]
    own, items = ONE.phases(WORLD)[0].steps
    assert (own.names, own.optimizer) == (("weight", "bias"), Sgd(0.1))
    assert (items.names, items.optimizer) == (("items",), Sgd(0.1 * 2 * 5.0)), "new items do not count"


def test_new_items_have_the_networks_vectors_and_are_told_apart() -> None:
    split = NEW_ITEMS.prepare(small_world().data)
    one = federation(IFedRec(embedding_size=4, hidden_size=8), split)
    for number in (1, 2):
        one.round(number)
    made = one.server.shared["items"][-split.num_new :]
    assert float(made.abs().max()) < 1, "tanh's values"
    scores = scorer_of(one).scores(torch.arange(4), None)[:, -split.num_new :]
    assert float(scores.std(1).min()) > 0


def test_data_without_text_is_refused_in_one_line() -> None:
    split = small_world()
    object.__setattr__(split.data, "about", None)
    with pytest.raises(SettingError, match="method ifedrec: parameter 'text': nothing is known of the items"):
        federation(IFedRec(embedding_size=4), split)
