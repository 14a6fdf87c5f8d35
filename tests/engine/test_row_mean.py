"""Rows averaged over the clients that touched them, by hand and through whole rounds."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from ownview import FedEM, FederationOptions, FedMF, FedNCF, LocalOnly, Method, PFedRec, Sgd
from ownview.base.errors import SettingError
from ownview.engine.samples import Samples
from ownview.federation.server import MeanChange
from ownview.federation.uploads import Upload
from ownview.plugins.late_aggregation import LateAggregation
from ownview.testing import federation, small_world
from tests.engine.golden import ITEMS, UNEVEN_COUNTS, dot, uneven_errors, uneven_federation


def _samples(rows: list[list[int]], sampled: list[list[int]]) -> Samples:
    """Clients with these rows at hand (items 0 to 3), and samples about some of them."""
    items = torch.tensor(rows)
    places = torch.tensor(sampled)
    count = torch.full((len(rows),), places.shape[1])
    labels = torch.zeros(places.shape, dtype=torch.float64)
    return Samples(
        torch.arange(len(rows)), items, count * 0 + items.shape[1], places, labels, count, tuple(count.tolist())
    )


def test_a_row_is_divided_by_the_weights_of_those_who_touched_it() -> None:
    table = torch.zeros(4, 1, dtype=torch.float64)
    change = MeanChange({"items": table, "w": torch.zeros(1)}, {"items"})
    rows = {"items": torch.tensor([[[6.0], [2.0]], [[10.0], [5.0]]], dtype=torch.float64)}
    upload = Upload(
        _samples([[0, 2], [2, 3]], [[0, 1], [0, 1]]), rows, {"w": torch.tensor([[4.0], [8.0]])}, torch.tensor([3, 1])
    )
    change.add(upload)
    found = change.mean()
    assert found["items"].flatten().tolist() == [6.0, 0.0, (3 * 2 + 10) / 4, 5.0]
    assert found["w"].tolist() == [5.0], "what has no rows is averaged over everybody"


def test_what_others_send_of_a_row_does_not_count() -> None:
    """A whole table arrives (noise was added, or an own table is uploaded), and each client was sampled on two rows."""
    change = MeanChange({"items": torch.zeros(4, 1, dtype=torch.float64)}, {"items"})
    whole = torch.tensor([[[1.0], [2.0], [3.0], [4.0]], [[50.0], [60.0], [70.0], [80.0]]], dtype=torch.float64)
    change.add(Upload(_samples([[0, 2], [2, 3]], [[0, 1], [0, 1]]), {}, {"items": whole}, torch.tensor([1, 1])))
    assert change.mean()["items"].flatten().tolist() == [1.0, 0.0, (3 + 70) / 2, 80.0]


def test_a_row_at_hand_that_no_sample_is_about_is_not_touched() -> None:
    """With full tables every row is at hand."""
    change = MeanChange({"items": torch.zeros(4, 1, dtype=torch.float64)}, {"items"})
    every = torch.ones(1, 4, 1, dtype=torch.float64)
    change.add(Upload(_samples([[0, 1, 2, 3]], [[1, 3]]), {"items": every}, {}, torch.tensor([2])))
    assert change.row_weights is not None
    assert change.row_weights.tolist() == [0.0, 2.0, 0.0, 2.0]


@pytest.mark.parametrize("engine", ["loop", "vector"])
@pytest.mark.parametrize(("weighting", "weights"), [("samples", (4, 2)), ("uniform", (1, 1))])
def test_a_round_by_hand(engine: str, weighting: str, weights: tuple[int, int]) -> None:
    """FedMF by SGD in the uneven world: item 0 and 2 are client 0's alone, item 3 is client 1's, item 1 is both's."""
    method = FedMF(embedding_size=2, negatives=1, local_epochs=1, optimizer="sgd", learning_rate=0.5)
    assert isinstance(method.phases(uneven_federation(method, engine).world)[0].steps[0].optimizer, Sgd)
    one = uneven_federation(method, engine, row_mean="touched", weighting=weighting)
    table, users = one.state.shared["items"].tolist(), one.state.own["user"].tolist()
    one.round(1)
    expected = [list(row) for row in table]
    for i in range(ITEMS):
        touched = [u for u in (0, 1) if UNEVEN_COUNTS[u][i]]
        for j in range(2):
            moves = {
                u: -0.5 * uneven_errors(u, [dot(users[u], row) for row in table])[i] * users[u][j] for u in touched
            }
            expected[i][j] += sum(weights[u] * moves[u] for u in touched) / sum(weights[u] for u in touched)
    assert one.state.shared["items"].tolist() == pytest.approx(np.array(expected), abs=1e-9)


OPTIONS = {
    "plain": {},
    "momentum": {"server_optimizer": "momentum", "clients": "0.5"},
    "adam": {"server_optimizer": "adam", "server_learning_rate": 0.1, "clients": "0.3"},
    "laplace": {"privacy": "laplace:0.1"},
    "gaussian": {"privacy": "gaussian:clip=0.5,noise=0.1", "clients": "0.5"},
}
METHODS: dict[str, Method] = {
    "fedmf": FedMF(embedding_size=4, local_epochs=2),
    "fedncf": FedNCF(embedding_size=4, local_epochs=2),
    "pfedrec": PFedRec(embedding_size=4, table_rate_factor=1.0),
    "own tables": LateAggregation(inner=FedMF(embedding_size=4, local_epochs=2), start=3),
    "merged by a mean": FedEM(aggregation="mean", learning_rate=0.01, adapter_rate=0.01, local_epochs=2),
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_engines_blocks_and_full_tables_agree(method: Method, options: dict[str, object]) -> None:
    chosen = FederationOptions.of({**options, "row_mean": "touched"})
    ends = []
    for how in ({}, {"engine": "loop"}, {"dense": True}, {"block_clients": 3}):
        one = federation(method, small_world(), options=chosen, **how)  # type: ignore[arg-type]
        for number in (1, 2, 3):
            one.round(number)
        ends.append(one.state.shared)
    for other in ends[1:]:
        for name, value in ends[0].items():
            assert torch.allclose(value, other[name], atol=1e-9), name
    plain = federation(method, small_world(), options=FederationOptions.of({**options, "row_mean": "all"}))
    plain.round(1)
    fewer = federation(method, small_world(), options=chosen)
    fewer.round(1)
    assert not torch.allclose(plain.state.shared["items"], fewer.state.shared["items"])


def test_rows_nobody_touched_stay() -> None:
    one = federation(FedMF(embedding_size=4), small_world(), options=FederationOptions(clients="1", row_mean="touched"))
    before = one.state.shared["items"].clone()
    samples = one.samples(1, one.participants(1))
    one.round(1)
    touched = torch.zeros(len(before), dtype=torch.bool)
    touched[samples.items[0]] = True
    assert 0 < int(touched.sum()) < len(before)
    assert torch.equal(one.state.shared["items"][~touched], before[~touched])
    assert (one.state.shared["items"][touched] != before[touched]).all()


def test_noise_on_rows_nobody_touched_stays_out() -> None:
    options = FederationOptions(clients="1", row_mean="touched", privacy="laplace:5")
    one = federation(FedMF(embedding_size=4), small_world(), options=options)
    before = one.state.shared["items"].clone()
    one.round(1)
    still = (one.state.shared["items"] == before).all(dim=1)
    assert still.any()


@pytest.mark.parametrize("method", [LocalOnly(), FedEM()], ids=["nothing shared", "mixed for each client"])
def test_where_no_table_is_averaged_it_is_refused(method: Method) -> None:
    with pytest.raises(SettingError, match=r"row_mean='touched': the server averages no item table"):
        federation(method, small_world(), options=FederationOptions(row_mean="touched"))
    federation(method, small_world(), options=FederationOptions(row_mean="all"))


def test_an_unknown_mean_names_the_known_ones() -> None:
    with pytest.raises(SettingError, match=r"row_mean.*touched"):
        FederationOptions(row_mean="touch")
