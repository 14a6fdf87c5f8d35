"""What the roles promise: a table beside the own one, squares outside, openings, and who receives."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch
from torch import Tensor

from ownview import PLGC, DualPersonalisation, FedEM, FederationOptions, FedMF, FedRAP, LocalOnly, Method, PFedRec
from ownview.base.errors import SettingError
from ownview.round.federation import Federation
from ownview.seam.optimizers import Sgd
from ownview.seam.roles import (
    CHANCE,
    HISTORY,
    KEPT,
    PERSONAL,
    REPORTED,
    SHARED,
    TIMELINE,
    Param,
    held,
    kept,
    personal,
    private,
    shared,
    table,
    timeline,
    visible,
)
from ownview.seam.training import Context, Params, Phase, Step, World
from ownview.testing.worlds import federation, small_world
from tests.methods.golden import ITEMS, UNEVEN_COUNTS, UNEVEN_SHARES, Matrix, dot, uneven_errors, uneven_federation
from tests.methods.merging_by_hand import SIZE, train_user_and_table

CLIENTS = (0, 1)

# --- what may be declared ---


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ({"role": REPORTED, "rows": True}, "a reported parameter is no table"),
        ({"role": TIMELINE, "rows": True}, "a timeline parameter is no table"),
        ({"role": CHANCE, "rows": True}, "a chance parameter is no table"),
        ({"role": HISTORY}, r"a history parameter is a table: write table\(history"),
        ({"role": PERSONAL, "rows": True}, "every personal value needs one"),
        ({"role": KEPT, "rows": True, "received_as": "received"}, "received_as belongs to personal values"),
        ({"received_as": "received"}, "received_as belongs to personal values"),
        ({"role": SHARED, "rows": True, "everybodys_mean": "mean"}, "everybodys_mean belongs to personal values"),
        ({"squares_outside": True}, "squares_outside belongs to tables"),
        ({"role": KEPT, "squares_outside": True}, "squares_outside belongs to tables"),
    ],
)
def test_impossible_parameters_are_refused(words: dict[str, object], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        Param((2,), **words)  # type: ignore[arg-type]


def test_what_a_client_sees() -> None:
    params = {
        "user": private(2),
        "plain": replace(table(private(2)), squares_outside=True),
        "items": replace(personal(2, received_as="received"), squares_outside=True),
        "secret": held(2),
        "past": timeline(),
    }
    seen = visible(params)
    tables = {"plain", "plain.outside", "items", "items.outside", "received", "received.outside"}
    assert set(seen) == {"user", *tables, "past.rows", "past.times", "past.mask", "past.now"}
    assert {name for name, param in seen.items() if param.rows} == {"plain", "items", "received"}
    assert [name for name, param in params.items() if param.own] == ["user", "plain", "items"]
    assert [name for name, param in params.items() if param.sends] == ["items"]
    assert [name for name, param in params.items() if param.from_server] == ["items"]
    assert not shared(2).own
    assert kept(2).own


# --- a table beside the own one ---


@pytest.mark.parametrize("aggregation", ["mean", "similarity"])
def test_a_newcomer_begins_with_a_copy_of_what_it_received(aggregation: str) -> None:
    """And never again: in later rounds it goes on from its own table. Rows it does not sample show both."""
    split = small_world(num_items=300)
    method = FedEM(
        embedding_size=3, local_epochs=1, variant="sm", rho=0.4, merged_rows="trained", aggregation=aggregation
    )
    one = federation(method, split, options=FederationOptions(clients="6"))
    before_first: dict[int, Tensor] = {}
    touched = torch.zeros(split.num_users, split.num_items, dtype=torch.bool)
    joined = []
    for number in range(1, 7):
        sent = one.predicting(torch.arange(split.num_users), None, frozenset({"received"}))[0]["received"]
        taking_part = one.participants(number)
        for client in taking_part.tolist():
            touched[client, one.work.samples(number, torch.tensor([client])).items[0]] = True
            if client not in before_first:
                joined.append(number)
                before_first[client] = sent[client].clone()
        one.round(number)
    assert max(joined) > 2, "a client must come late for this test to mean something"
    assert len(joined) < 36, "a client must come again"
    for client, begun in before_first.items():
        own = one.clients.whole("items", torch.tensor([client]))[0]
        assert touched[client].any()
        assert torch.allclose(own[~touched[client]], begun[~touched[client]], atol=1e-12)
        assert not torch.allclose(own[touched[client]], begun[touched[client]], atol=1e-3)


def test_a_newcomer_receives_the_mean_of_those_who_came_before() -> None:
    one = federation(FedEM(embedding_size=3, local_epochs=1), small_world(), options=FederationOptions(clients="6"))
    initial = one.server.shared["items"].clone()
    clients = torch.arange(one.world.num_clients)
    assert torch.equal(one.server.mixtures["items"].sent(clients), initial.expand(len(clients), *initial.shape))
    one.round(1)
    known = one.participants(1).tolist()
    sizes = {client: float(one.split.train.lengths[client]) for client in known}
    tables = {client: one.clients.whole("items", torch.tensor([client]))[0] for client in known}
    mean = sum(tables[client] * (sizes[client] / sum(sizes.values())) for client in known)
    late = [client for client in clients.tolist() if client not in known]
    for found in one.server.mixtures["items"].sent(torch.tensor(late)):
        assert torch.allclose(found, torch.as_tensor(mean), atol=1e-12)


# --- squares outside ---


def _with_squares_outside() -> Federation:
    """Some rounds of a method that asks for squares outside, so that every client has a table of its own."""
    inner = FedMF(embedding_size=3, local_epochs=1, optimizer="sgd", learning_rate=0.5)
    one = federation(PLGC(inner=inner), small_world())
    one.round(1)
    one.round(2)
    return one


def test_squares_outside_are_of_the_rows_not_at_hand() -> None:
    one = _with_squares_outside()
    clients = one.work.blocks(torch.arange(one.world.num_clients))[0]
    samples = one.work.samples(3, clients)
    assert not samples.real_rows.all(), "there must be padding"
    values = one.clients.open(samples, one.server.download(3, clients)).values
    for k, client in enumerate(clients.tolist()):
        at_hand = samples.items[k][samples.real_rows[k]].tolist()
        own = one.clients.whole("items", torch.tensor([client]))[0].tolist()
        for name, whole in (("items", own), ("received", one.server.shared["items"].tolist())):
            left = sum(x * x for item, row in enumerate(whole) if item not in at_hand for x in row)
            assert float(values[f"{name}.outside"][k]) == pytest.approx(left, abs=1e-9)
            assert values[name][k, : len(at_hand)].tolist() == [whole[item] for item in at_hand]
            assert not values[name][k, len(at_hand) :].any(), "padding rows must be zero"


def test_squares_outside_of_what_clients_predict_with() -> None:
    one = _with_squares_outside()
    clients, items = torch.tensor([4, 7]), torch.tensor([[3, 59, 10], [0, 1, 2]])
    few, axes = one.predicting(clients, items)
    whole, _ = one.predicting(clients, None)
    for name in ("items", "received"):
        assert axes[f"{name}.outside"] == 0
        for k in range(2):
            rows = whole[name][k].tolist()
            left = sum(x * x for item, row in enumerate(rows) if item not in items[k].tolist() for x in row)
            assert float(few[f"{name}.outside"][k]) == pytest.approx(left, abs=1e-9)
            assert float(whole[f"{name}.outside"][k]) == pytest.approx(0, abs=1e-9)


# --- who receives ---


@pytest.mark.parametrize(
    "method",
    [FedMF(), LocalOnly(), PFedRec(), FedRAP(), DualPersonalisation(inner=FedMF()), PLGC.neutral(FedMF())],
    ids=lambda method: method.name,
)
def test_clients_without_a_table_to_go_on_from_must_receive(method: Method) -> None:
    with pytest.raises(SettingError, match=rf"receiving=0.5: a client of {method.name} has no table .* expected 1.0"):
        federation(method, small_world(), options=FederationOptions(receiving=0.5))
    federation(method, small_world(), options=FederationOptions(receiving=1.0))


@pytest.mark.parametrize("share", [0.0, -0.5, 1.5])
def test_impossible_shares_are_refused(share: float) -> None:
    with pytest.raises(SettingError, match=r"receiving=.*expected a number above 0 and at most 1"):
        FederationOptions(receiving=share)


def test_who_does_not_receive_has_its_own_table_beside_itself() -> None:
    one = _with_squares_outside()
    clients = torch.tensor([1, 5, 8])
    samples = one.work.samples(3, clients)
    receiving = torch.tensor([True, False, True])
    download = one.server.download(3, clients)
    found = one.clients.open(samples, replace(download, receives=receiving))
    everything = one.clients.open(samples, download)
    own = one.clients.whole("items", samples.clients)
    for k, there in enumerate(receiving.tolist()):
        beside = one.server.shared["items"] if there else own[k]
        at_hand = samples.items[k][samples.real_rows[k]]
        assert torch.equal(found.beside["received"][k], beside)
        assert torch.equal(found.values["received"][k, : len(at_hand)], beside[at_hand])
        if not there:
            assert float(found.values["received.outside"][k]) == pytest.approx(float(found.values["items.outside"][k]))
    assert torch.equal(found.values["items"], everything.values["items"])


def test_the_share_of_those_who_receive() -> None:
    options = FederationOptions(receiving=0.3)
    one = federation(FedEM(embedding_size=3), small_world(), options=options)
    many = torch.arange(20_000)
    one.server.joined = torch.ones(len(many), dtype=torch.bool)
    drawn = [one.server._receives(number, many) for number in (1, 2)]
    for receiving in drawn:
        assert receiving is not None
        assert float(receiving.double().mean()) == pytest.approx(0.3, abs=5 * (0.21 / 20_000) ** 0.5)
        again = one.server._receives(1 if receiving is drawn[0] else 2, many[5:9])
        assert again is not None
        assert torch.equal(again, receiving[5:9]), "who else takes part must not matter"
    first, second = drawn
    assert first is not None
    assert second is not None
    assert float((first == second).double().mean()) == pytest.approx(0.58, abs=0.02)


def test_a_client_receives_in_its_first_round_whatever_is_drawn() -> None:
    options = FederationOptions(clients="6", receiving=0.01)
    one = federation(FedEM(embedding_size=3, local_epochs=1), small_world(), options=options)
    clients, joined = torch.arange(one.world.num_clients), torch.zeros(one.world.num_clients, dtype=torch.bool)
    for number in (1, 2, 3):
        receives = one.server.download(number, clients, for_training=True).receives
        assert receives is not None
        assert receives[~joined].all()
        assert not receives[joined].all() or not joined.any()
        joined[one.participants(number)] = True
        one.round(number)
    assert 6 < int(joined.sum()) < len(clients)


@pytest.mark.parametrize("engine", ["loop", "vector"])
def test_who_does_not_receive_goes_on_from_its_own_table(engine: str) -> None:
    """Replacement by hand: who receives begins with the mean, all others with what they had."""
    method = FedEM(
        variant="sr", aggregation="mean", embedding_size=SIZE, learning_rate=0.2, negatives=1, local_epochs=2
    )
    one = uneven_federation(method, engine, receiving=0.5)
    clients = torch.tensor(CLIENTS)
    shared = one.server.shared["items"].tolist()
    tables, users = [[list(row) for row in shared] for _ in CLIENTS], one.clients.own["user"].tolist()
    patterns = set()
    for number in range(1, 7):
        receiving = one.server._receives(number, clients)
        assert receiving is not None
        patterns.add(tuple(receiving.tolist()))
        one.round(number)
        for u in CLIENTS:
            if receiving[u]:
                tables[u] = [list(row) for row in shared]
            train_user_and_table(u, users[u], tables[u], epochs=2, rate=0.2)
        shared = _mean(tables)
        assert one.clients.whole("items", clients).tolist() == pytest.approx(np.array(tables), abs=1e-9)
        assert one.server.shared["items"].tolist() == pytest.approx(np.array(shared), abs=1e-9)
    assert len(patterns) > 2, "the rounds must differ in who receives"


def _mean(tables: list[Matrix]) -> Matrix:
    return [[sum(UNEVEN_SHARES[u] * tables[u][i][j] for u in CLIENTS) for j in range(SIZE)] for i in range(ITEMS)]


# --- openings ---


@dataclass(frozen=True)
class Opens(LocalOnly):
    """Only the user vector is trained. The second phase opens with q_i * u_0, the third with q_i + 1 and u / 2."""

    everywhere: bool = True

    def phases(self, world: World) -> tuple[Phase, ...]:
        steps = (Step(("user",), Sgd(0.5)),)
        return (
            Phase(steps, 2),
            Phase(steps, 1, opening=self._times, everywhere=self.everywhere),
            Phase(steps, 1, opening=self._plus, everywhere=self.everywhere),
        )

    def _times(self, p: Params, context: Context) -> Params:
        return {"items": p["items"] * p["user"][0]}

    def _plus(self, p: Params, context: Context) -> Params:
        return {"items": p["items"] + 1, "user": p["user"] / 2}


def _opens_by_hand(client: int, user: list[float], table: Matrix, *, everywhere: bool) -> None:
    """In place; the table moves by openings alone."""

    def epoch() -> None:
        errors = uneven_errors(client, [dot(user, row) for row in table])
        user[:] = [user[j] - 0.5 * sum(errors[i] * table[i][j] for i in range(ITEMS)) for j in range(SIZE)]

    opened = [i for i in range(ITEMS) if everywhere or UNEVEN_COUNTS[client][i]]
    epoch()
    epoch()
    for i in opened:
        table[i] = [x * user[0] for x in table[i]]
    epoch()
    for i in opened:
        table[i] = [x + 1 for x in table[i]]
    user[:] = [x / 2 for x in user]
    epoch()


@pytest.mark.parametrize("engine", ["loop", "vector"])
@pytest.mark.parametrize("everywhere", [True, False])
def test_openings_reach_the_rows_they_are_for(everywhere: bool, engine: str) -> None:
    """Rows that are not at hand follow with the values that others had when the phase was opened."""
    one = uneven_federation(Opens(embedding_size=SIZE, negatives=1, everywhere=everywhere), engine)
    clients = torch.tensor(CLIENTS)
    users, tables = one.clients.own["user"].tolist(), one.clients.whole("items", clients).tolist()
    for number in (1, 2):
        one.round(number)
        for u in CLIENTS:
            _opens_by_hand(u, users[u], tables[u], everywhere=everywhere)
        assert one.clients.own["user"].tolist() == pytest.approx(np.array(users), abs=1e-9)
        assert one.clients.whole("items", clients).tolist() == pytest.approx(np.array(tables), abs=1e-9)


@pytest.mark.parametrize("everywhere", [True, False])
def test_rows_at_hand_without_a_sample_are_opened_like_those_that_are_not(everywhere: bool) -> None:
    found = []
    for dense in (False, True):
        one = federation(Opens(embedding_size=3, local_epochs=1, everywhere=everywhere), small_world(), dense=dense)
        one.round(1)
        found.append(one.clients.whole("items", torch.arange(one.world.num_clients)))
    assert torch.allclose(found[0], found[1], atol=1e-12)
