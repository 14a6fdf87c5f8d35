"""Rows averaged over the clients that touched them, by hand and through whole rounds."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from ownview import FedEM, Federated, FederationOptions, FedMF, FedNCF, LocalOnly, Method, PFedRec, Sgd
from ownview.base.errors import SettingError
from ownview.messages.sums import MeanPartial
from ownview.plugins.late_aggregation import LateAggregation
from ownview.testing.worlds import federation, small_world
from tests.messages.uploads import upload_of
from tests.methods.golden import ITEMS, UNEVEN_COUNTS, dot, uneven_errors, uneven_federation


def _items() -> dict[str, Tensor]:
    return {"items": torch.zeros(4, 1, dtype=torch.float64)}


def _by_row(shared: dict[str, Tensor]) -> MeanPartial:
    return MeanPartial(shared, shared["items"], "samples", by_row=frozenset({"items"}))


def test_a_row_is_divided_by_the_weights_of_those_who_touched_it() -> None:
    total = _by_row({**_items(), "w": torch.zeros(1)})
    rows = {"items": torch.tensor([[[6.0], [2.0]], [[10.0], [5.0]]], dtype=torch.float64)}
    whole = {"w": torch.tensor([[4.0], [8.0]])}
    total.add(upload_of(rows, whole, items=[[0, 2], [2, 3]], samples=[3, 1]))
    found = total.mean()
    assert found["items"].flatten().tolist() == [6.0, 0.0, (3 * 2 + 10) / 4, 5.0]
    assert found["w"].tolist() == [5.0], "what has no rows is averaged over everybody"


def test_what_others_send_of_a_row_does_not_count() -> None:
    """A whole table arrives (noise was added, or an own table is uploaded), and each client was sampled on two rows."""
    total = _by_row(_items())
    whole = torch.tensor([[[1.0], [2.0], [3.0], [4.0]], [[50.0], [60.0], [70.0], [80.0]]], dtype=torch.float64)
    total.add(upload_of(whole={"items": whole}, items=[[0, 2], [2, 3]]))
    assert total.mean()["items"].flatten().tolist() == [1.0, 0.0, (3 + 70) / 2, 80.0]


def test_a_personal_table_counts_by_what_it_moved_from_the_one_sent_out() -> None:
    sent = torch.full((4, 1), 2.0, dtype=torch.float64)
    whole = torch.tensor([[[3.0], [2.0], [7.0], [2.0]], [[90.0], [2.0], [5.0], [6.0]]], dtype=torch.float64)
    upload = upload_of(whole={"items": whole}, items=[[0, 2], [2, 3]])
    touched = MeanPartial({"items": sent}, sent, "samples", frozenset({"items"}), frozenset({"items"}))
    partial = MeanPartial({"items": sent}, sent, "samples", frozenset({"items"}))
    touched.add(upload)
    partial.add(upload)
    assert touched.mean()["items"].flatten().tolist() == [1.0, 0.0, (5 + 3) / 2, 4.0]
    assert partial.mean()["items"].flatten().tolist() == [(1 + 88) / 2, 0.0, 4.0, 2.0]


def test_a_row_at_hand_that_no_sample_is_about_is_not_touched() -> None:
    """With full tables every row is at hand."""
    total = _by_row(_items())
    every = torch.ones(1, 4, 1, dtype=torch.float64)
    about = [[False, True, False, True]]
    total.add(upload_of({"items": every}, items=[[0, 1, 2, 3]], touched=about, samples=[2]))
    assert total.row_weights["items"].tolist() == [0.0, 2.0, 0.0, 2.0]


@pytest.mark.parametrize("dense", [False, True])
def test_an_upload_tells_which_rows_its_samples_are_about(dense: bool) -> None:
    one = federation(FedMF(embedding_size=2), small_world(), dense=dense)
    clients = one.work.blocks(torch.arange(one.world.num_clients))[-1]
    samples = one.work.samples(1, clients)
    upload = one.work.do(samples, one.server.download(1, clients))
    for k in range(len(clients)):
        mine = samples.alone(k)
        assert set(upload.items[k][upload.touched[k]].tolist()) == set(mine.items[mine.rows].tolist())
    assert not upload.touched.all()


@pytest.mark.parametrize("engine", ["loop", "vector"])
@pytest.mark.parametrize(("weighting", "weights"), [("samples", (4, 2)), ("uniform", (1, 1))])
def test_a_round_by_hand(engine: str, weighting: str, weights: tuple[int, int]) -> None:
    """FedMF by SGD in the uneven world: item 0 and 2 are client 0's alone, item 3 is client 1's, item 1 is both's."""
    method = FedMF(embedding_size=2, negatives=1, local_epochs=1, optimizer="sgd", learning_rate=0.5)
    assert isinstance(method.phases(uneven_federation(method, engine).world)[0].steps[0].optimizer, Sgd)
    one = uneven_federation(method, engine, row_mean="touched", weighting=weighting)
    table, users = one.server.shared["items"].tolist(), one.clients.own["user"].tolist()
    one.round(1)
    expected = [list(row) for row in table]
    for i in range(ITEMS):
        touched = [u for u in (0, 1) if UNEVEN_COUNTS[u][i]]
        for j in range(2):
            moves = {
                u: -0.5 * uneven_errors(u, [dot(users[u], row) for row in table])[i] * users[u][j] for u in touched
            }
            expected[i][j] += sum(weights[u] * moves[u] for u in touched) / sum(weights[u] for u in touched)
    assert one.server.shared["items"].tolist() == pytest.approx(np.array(expected), abs=1e-9)


OPTIONS: dict[str, dict[str, object]] = {
    "plain": {},
    "momentum": {"server_optimizer": "momentum", "clients": "0.5"},
    "adam": {"server_optimizer": "adam", "server_learning_rate": 0.1, "clients": "0.5"},
    "laplace": {"privacy": "laplace:0.1"},
    "gaussian": {"privacy": "gaussian:clip=0.5,noise=0.1", "clients": "0.5"},
}
METHODS: dict[str, Federated] = {
    "fedmf": FedMF(embedding_size=4, local_epochs=2),
    "fedncf": FedNCF(embedding_size=4, local_epochs=2),
    "pfedrec": PFedRec(embedding_size=4, local_epochs=2, table_rate_factor=1.0),
    "own tables": LateAggregation(inner=FedMF(embedding_size=4, local_epochs=2), start=3),
    "merged by a mean": FedEM(aggregation="mean", learning_rate=0.01, adapter_rate=0.01, local_epochs=2),
}
SENT_WHOLE = ("own tables", "merged by a mean")
"""What has grown over all rounds cannot be clipped."""


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("name", METHODS)
def test_engines_blocks_and_full_tables_agree(name: str, options: str) -> None:
    method, chosen = METHODS[name], FederationOptions.of({**OPTIONS[options], "row_mean": "touched"})
    if options == "gaussian" and name in SENT_WHOLE:
        with pytest.raises(SettingError, match="its clients send whole values of their own"):
            federation(method, small_world(), options=chosen)
        return
    ends, split = [], small_world(num_users=9)
    for how in ({}, {"engine": "loop"}, {"dense": True}, {"block_clients": 3}):
        one = federation(method, split, options=chosen, **how)
        for number in (1, 2, 3):
            one.round(number)
        ends.append(one.server.shared)
    for other in ends[1:]:
        for table, value in ends[0].items():
            assert torch.allclose(value, other[table], atol=1e-9), table
    # One step of the server's Adam tells signs alone, so means of other rows differ from the second round on.
    plain = federation(method, split, options=FederationOptions.of({**OPTIONS[options], "row_mean": "all"}))
    for number in (1, 2, 3):
        plain.round(number)
    assert not torch.allclose(plain.server.shared["items"], ends[0]["items"])


def test_rows_nobody_touched_stay() -> None:
    one = federation(FedMF(embedding_size=4), small_world(), options=FederationOptions(clients="1", row_mean="touched"))
    before = one.server.shared["items"].clone()
    samples = one.work.samples(1, one.participants(1))
    one.round(1)
    touched = torch.zeros(len(before), dtype=torch.bool)
    touched[samples.items[0]] = True
    assert 0 < int(touched.sum()) < len(before)
    assert torch.equal(one.server.shared["items"][~touched], before[~touched])
    assert (one.server.shared["items"][touched] != before[touched]).all()


def test_noise_on_rows_nobody_touched_stays_out() -> None:
    options = FederationOptions(clients="1", row_mean="touched", privacy="laplace:5")
    one = federation(FedMF(embedding_size=4), small_world(), options=options)
    before = one.server.shared["items"].clone()
    one.round(1)
    still = (one.server.shared["items"] == before).all(dim=1)
    assert still.any()


@pytest.mark.parametrize("method", [LocalOnly(), FedEM()], ids=["nothing shared", "mixed for each client"])
def test_where_no_table_is_averaged_it_is_refused(method: Method) -> None:
    with pytest.raises(SettingError, match=r"row_mean='touched': the server averages no item table"):
        federation(method, small_world(), options=FederationOptions(row_mean="touched"))
    federation(method, small_world(), options=FederationOptions(row_mean="all"))


def test_an_unknown_mean_names_the_known_ones() -> None:
    with pytest.raises(SettingError, match=r"row_mean.*touched"):
        FederationOptions(row_mean="touch")
