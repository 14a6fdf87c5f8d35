"""Every registered method and every plug-in around every method it accepts, through every check."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import pytest
import torch
from torch import Tensor

from ownview import (
    FCF,
    PLGC,
    Batch,
    CoLR,
    Context,
    FedCIA,
    FedEASE,
    FedEM,
    Federated,
    FederationOptions,
    FedFast,
    FedIALS,
    FedMF,
    FedNCF,
    FedNext,
    FedRAP,
    FedRecon,
    FedSASRec,
    GPFedRec,
    IFedRec,
    LocalOnly,
    Params,
    PerFedRec,
    PFedCLR,
    PFedGraph,
    PFedRec,
    Summands,
)
from ownview.base.errors import SettingError
from ownview.registry import METHODS, PLUGINS, build
from ownview.round.alone import can_travel
from ownview.seam.client import Training
from ownview.seam.server import EACH
from ownview.seam.training import ANY_WORLD
from ownview.testing import CHECKS, conform, federation, small_world
from ownview.testing.checks import options_for
from ownview.testing.federated import alone_equals_vector

# Small vectors, few epochs, and batches so small that most clients have several.
SMALL = {"embedding_size": 4, "hidden_size": 8, "local_epochs": 2, "batch_size": 64, "reconstruction_epochs": 3}

# At the adapter's published rate of 0.1 Adam makes two engines' difference in the last digit 1e5 times larger in three
# rounds; at a tenth of it, that digit is all that differs. A hundred steps on a norm whose gradient never gets small do
# the same to FedCIA.
GENTLE: dict[str, dict[str, Any]] = {
    "fedem": {"learning_rate": 0.01, "adapter_rate": 0.01},
    "fedcia": {"fit_steps": 10, "fit_rate": 0.01},
    "elastic-merging": {"adapter_rate": 0.01},
}


def _small(cls: type[Federated], **changes: Any) -> Federated:
    known = {one.name for one in fields(cls)}
    values = {name: value for name, value in {**SMALL, **GENTLE.get(cls.name, {})}.items() if name in known}
    return cls.of({**values, **changes})


def _around(methods: dict[str, Federated]) -> dict[str, Federated]:
    """The methods, and every plug-in around each that it accepts."""
    found = dict(methods)
    for plugin in PLUGINS.values():
        for name, method in methods.items():
            try:
                found[f"{name}+{plugin.name}"] = plugin.around(method, GENTLE.get(plugin.name, {}))
            except SettingError:
                continue
    return found


COMBINATIONS = _around(
    {name: _small(cls) for name, cls in METHODS.items()}
    | {"fednext by rank": FedNext(rank=4, iterations=1, scales=(1.0, 4.0))}
)

# Rates at which 60 rounds teach two groups of twenty clients their items. Published rates are for worlds a hundred
# times as large; FedRAP's fit its private table so fast that the shared one teaches nothing, a finding of the project.
LEARNING = _around(
    {
        "colr": CoLR(embedding_size=8, rank=4, learning_rate=0.05, local_epochs=5, initial_scale=0.3),
        "fcf": FCF(embedding_size=4, regularization=1.0),
        "fedcia": FedCIA(embedding_size=8, local_epochs=5, learning_rate=0.05, fit_steps=20, noise=0.0),
        "fedease": FedEASE(regularization=10.0),
        "fedem": FedEM(embedding_size=8, learning_rate=0.05, adapter_rate=0.01, initial_scale=0.1, local_epochs=2),
        "fedfast": FedFast(embedding_size=4, learning_rate=0.1, local_epochs=5),
        "fedials": FedIALS(embedding_size=8),
        "fedmf": FedMF(embedding_size=8, learning_rate=0.05, local_epochs=5, initial_scale=0.3),
        "fedncf": FedNCF(embedding_size=4, hidden_layers=(32,), learning_rate=0.05, local_epochs=5),
        "fednext": FedNext(),
        "fednext by rank": FedNext(rank=8, iterations=1, scales=(1.0, 4.0)),
        "fedrap": FedRAP(
            variant="c", embedding_size=8, network_rate=0.5, table_rate=30.0, step_decay=1.0, round_decay=1.0,
            local_epochs=5,
        ),
        "fedrecon": FedRecon(embedding_size=16),
        "fedsasrec": FedSASRec(embedding_size=8, learning_rate=0.03, dropout=0.1, length=12),
        "gpfedrec": GPFedRec(
            embedding_size=4, hidden_layers=(8,), optimizer="adam", learning_rate=0.05, local_epochs=3
        ),
        "ifedrec": IFedRec(
            embedding_size=8, hidden_size=16, penalty=0.01, learning_rate=0.2, table_rate_factor=1.0, local_epochs=2
        ),
        "local-only": LocalOnly(embedding_size=8, learning_rate=0.05, local_epochs=5, initial_scale=0.3),
        "perfedrec": PerFedRec(embedding_size=8, clusters=2, learning_rate=0.05, local_epochs=2),
        "pfedclr": PFedCLR(embedding_size=8, learning_rate=0.2, buffer_rate=1e-4, local_epochs=2),
        "pfedgraph": PFedGraph(embedding_size=4, learning_rate=0.1, local_epochs=3),
        "pfedrec": PFedRec(embedding_size=8, learning_rate=0.2, local_epochs=2),
    }
)  # fmt: skip


@pytest.mark.parametrize("check", [name for name in CHECKS if name not in ("learns", "alone equals vector")])
@pytest.mark.parametrize("name", COMBINATIONS)
def test_conforms(name: str, check: str) -> None:
    if check == "neutral changes nothing" and "+" not in name:
        pytest.skip("a method around nothing")
    CHECKS[check](COMBINATIONS[name])


# What papers or released code do otherwise, an option each. Batches are small, so that clients have several an epoch.
VARIANTS: dict[str, Federated] = {
    "fedem by epoch": _small(FedEM, nesting="epoch"),
    "fedem by batch, among those who receive": _small(
        FedEM, nesting="batch", merges_again=True, mixed_among="receiving"
    ),
    "fedrap with decay and clipping": _small(FedRAP, weight_decay=0.01, clip_gradient=0.01, curriculum="sin-released"),
    "pfedclr with clipping": _small(PFedCLR, clip_gradient=0.01),
    "fedease beside text": FedEASE(text=10.0),
    "fednext by rank beside text": FedNext(text=10.0, rank=4, iterations=1, scales=(1.0, 4.0)),
    "plgc by epoch": PLGC.around(_small(FedMF), {"share_every": "epoch"}),
}


@pytest.mark.parametrize("name", VARIANTS)
def test_variants_equal_one_client_at_a_time(name: str) -> None:
    CHECKS["loop equals vector"](VARIANTS[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", VARIANTS)
def test_variants_conform(name: str) -> None:
    for check in CHECKS:
        if check not in ("learns", "alone equals vector", "neutral changes nothing"):
            CHECKS[check](VARIANTS[name])
    receiving = FederationOptions(receiving=0.5) if "receive" in name else FederationOptions()
    alone_equals_vector(VARIANTS[name], receiving, torch.float64)


@pytest.mark.parametrize("name", LEARNING)
def test_learns(name: str) -> None:
    CHECKS["learns"](LEARNING[name])


ALONE = list(COMBINATIONS)
APART = ("fedease", "fedrecon", "fedsasrec", "perfedrec", "pfedrec", "fedmf+plgc")
"""In processes of their own, which take some thirty times as long: few that have every role among them, receive before
and after the round, and train before they predict. All others stay in one process, with files and bytes alone; the slow
tests give every one its processes."""


@pytest.mark.parametrize("name", ALONE)
def test_alone_equals_vector(name: str) -> None:
    """Once for every combination; which clients, which optimiser and which precision take turns."""
    turn, every = ALONE.index(name), options_for(COMBINATIONS[name])
    dtype = torch.float32 if turn % 5 == 4 else torch.float64
    alone_equals_vector(COMBINATIONS[name], every[turn % len(every)], dtype, together=name not in APART)


def test_those_in_processes_of_their_own_have_all_that_a_process_must_keep_and_every_method_can_travel() -> None:
    def kinds(names: Iterable[str]) -> set[object]:
        found: set[object] = set()
        for client in (COMBINATIONS[name].client(ANY_WORLD) for name in names):
            found |= {param.role for param in client.params.values()}
            found |= {(type(client.work), getattr(client.work, "receives_after", None)), bool(client.before_predicting)}
        return found

    assert kinds(APART) == kinds(COMBINATIONS)
    assert [name for name, method in COMBINATIONS.items() if not can_travel(method)] == []


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
@pytest.mark.parametrize("turn", range(4))
@pytest.mark.parametrize("name", ALONE)
def test_alone_equals_vector_in_every_way(name: str, turn: int, dtype: torch.dtype) -> None:
    every = options_for(COMBINATIONS[name])
    if turn >= len(every):
        pytest.skip("no optimiser of the server")
    alone_equals_vector(COMBINATIONS[name], every[turn], dtype)


def test_whose_server_needs_every_upload() -> None:
    """All others can be added up in a tree, masked and noised. Nobody is refused to run alone."""
    each = {name for name, method in COMBINATIONS.items() if method.server(ANY_WORLD).needs == EACH}
    methods = {"fedem", "fedfast", "gpfedrec", "perfedrec", "pfedgraph"}
    assert each == {name for name in COMBINATIONS if name.partition("+")[0] in methods}


EXACT = ("loop equals vector", "touched equals dense", "blocks change nothing", "resumes exactly")

# Options that go through the seam in ways no default does; batches small enough for clients of several batches each.
OPTIONS: dict[str, Federated] = {
    "shrinks at falling rates": FedRAP(update="proximal", sparse=2.0, table_rate=20.0, batch_size=32, local_epochs=3),
    "shrinks at one rate": FedRAP(
        update="proximal", sparse=2.0, table_rate=20.0, step_decay=1.0, batch_size=32, local_epochs=3
    ),
    "regularised": FedMF(regularization=0.05, initial_scale=0.1, batch_size=32, local_epochs=3),
    "distances for similarities": GPFedRec(released=True, guidance=0.3, rate_factor=0.5, batch_size=32, local_epochs=3),
    "guided over the table": GPFedRec(guided_over="table", rate_factor=0.5, batch_size=32, local_epochs=3),
    "few neighbours": GPFedRec(threshold=1.00001, optimizer="adam", learning_rate=0.01, batch_size=32),
    "two clusters": PerFedRec(clusters=2, layers=0, embedding_size=4, batch_size=32, local_epochs=3),
    "two clusters of users": FedFast(clusters=2, decay=1.0, embedding_size=4, batch_size=32, local_epochs=3),
    "far from the shares": PFedGraph(alpha=0.05, guidance=1.0, embedding_size=4, batch_size=32, local_epochs=3),
    "stops early": FedRAP(
        stop_below=0.05, network_rate=0.3, table_rate=5.0, batch_size=32, embedding_size=4, local_epochs=5
    ),
    "halves of several batches": FedRecon(batch_size=16, reconstruction_epochs=3, local_epochs=2, embedding_size=4),
    "no halves": FedRecon(split=False, batch_size=32, reconstruction_epochs=3, embedding_size=4, user_scale=1.0),
    "merges again": FedEM(
        merges_again=True, learning_rate=0.01, adapter_rate=0.01, embedding_size=4, batch_size=32, local_epochs=3
    ),
    "three rates": FedNCF(
        optimizer="sgd", learning_rate=0.05, rate_factor=0.3, embedding_size=4, batch_size=32, local_epochs=3
    ),
    "updates of full rank": CoLR(rank=4, embedding_size=4, batch_size=32, local_epochs=3),
    "little regularisation": FedIALS(embedding_size=4, exponent=0.0, regularization=0.5),
    "squares": FedCIA(loss="squares", fit_steps=5, fit_rate=0.01, noise=0.0, local_epochs=3),
    "as released": FedCIA(loss="released", fit_steps=5, fit_rate=0.01, local_epochs=2),
    "drawn items and several steps": FedSASRec(embedding_size=4, length=7, negatives=5, local_steps=3, local_rate=0.5),
    "beginnings and a filter": FedSASRec(
        embedding_size=4, length=7, prefixes=True, drawn=3, frequency=0.6, waves=2, widening=2, local_steps=2
    ),
    "a filter that looks back, short messages": FedSASRec(
        embedding_size=4, length=7, frequency=0.6, waves=2, sent_rows=9, sent_bits=8
    ),
    "two passes, items seen left out": FedSASRec(
        embedding_size=4, length=7, temperature=0.2, exclude_seen=True, r_drop=0.5, decay_steps=3
    ),
    "no momentum": FCF(first_decay=0.0, embedding_size=3),
}


@pytest.mark.parametrize("check", EXACT)
@pytest.mark.parametrize("name", OPTIONS)
def test_options_conform(name: str, check: str) -> None:
    CHECKS[check](OPTIONS[name])


def test_nothing_is_left_out() -> None:
    """An empty loop would pass silently: the collected names are the registry's, spelt out once."""
    assert set(METHODS) == {
        "colr", "fcf", "fedcia", "fedease", "fedem", "fedfast", "fedials", "fedmf", "fedncf", "fednext", "fedrap",
        "fedrecon", "fedsasrec", "gpfedrec", "ifedrec", "local-only", "perfedrec", "pfedclr", "pfedgraph", "pfedrec",
    }  # fmt: skip
    assert set(PLUGINS) == {"dual-personalisation", "elastic-merging", "late-aggregation", "plgc"}
    share_a_table = ("fedfast", "fedmf", "fedncf", "fedrap", "fedrecon", "ifedrec", "pfedclr", "pfedrec")
    begin_with_one_beside = ("gpfedrec", "perfedrec", "pfedgraph")
    paired = {f"{name}+{plugin}" for name in (*share_a_table, *begin_with_one_beside) for plugin in PLUGINS}
    # FedNCF shares a network too; FedRecon has learnt nothing when an adapter would be trained. With received tables
    # beside the own one a client is personal already, and looks at them whatever it begins with.
    refused = {"fedncf+late-aggregation", "fedrecon+elastic-merging"}
    # IFedRec's server rewrites shared vectors after every round, which a client with a table of its own would not see.
    refused |= {"ifedrec+dual-personalisation"}
    refused |= {f"{n}+{p}" for n in begin_with_one_beside for p in ("dual-personalisation", "late-aggregation")}
    assert set(COMBINATIONS) == set(LEARNING) == {*METHODS, "fednext by rank", *paired} - refused


# --- the kit itself must be able to fail ---


def test_a_method_that_breaks_a_rule_is_caught() -> None:
    """A method whose loss depends on the padding of its block."""

    @dataclass(frozen=True)
    class Padded(FedMF):
        def loss(self, p: Params, batch: Batch, context: Context) -> Tensor:
            return super().loss(p, batch, context) * p["items"].shape[0]

    with pytest.raises(SettingError, match="its loss counts rows that no sample is about"):
        CHECKS["loop equals vector"](Padded())


def test_a_method_that_learns_nothing_is_caught() -> None:
    with pytest.raises(AssertionError, match="of the first 5 are the group's"):
        CHECKS["learns"](FedMF(embedding_size=4, learning_rate=1e-6, local_epochs=1))


def test_a_method_that_is_never_done_is_caught_and_the_kit_says_what_it_checks() -> None:
    @dataclass(frozen=True)
    class Leaky(FedEASE):
        """Counts again every time a client takes part, so one round is not enough."""

        name: ClassVar[str] = "leaky"

        def report(self, p: Params, batch: Batch, context: Context) -> tuple[Summands, Params]:
            return super().report({**p, "told": torch.zeros_like(p["told"])}, batch, context)[0], {}

    said: list[str] = []
    with pytest.raises(AssertionError, match="enough is enough"):
        conform(Leaky(), said.append)
    assert said[0].startswith("leaky: loop equals vector - One client at a time")
    assert "enough is enough" in said[-1]


def test_a_summand_that_was_not_declared_is_refused() -> None:
    @dataclass(frozen=True)
    class Sly(FedEASE):
        def report(self, p: Params, batch: Batch, context: Context) -> tuple[Summands, Params]:
            sent, new = super().report(p, batch, context)
            return {**sent, "history": p["past.rows"]}, new

    with pytest.raises(SettingError, match="declared as leaving the device is"):
        federation(Sly(), small_world()).round(1)


@pytest.mark.parametrize("plugin", PLUGINS)
def test_plugins_around_reports_are_refused_with_the_reason(plugin: str) -> None:
    with pytest.raises(SettingError, match="clients of fedease send statistics that the server sums"):
        build("fedease", {}, [(plugin, {})])


def test_both_kinds_of_work_are_there() -> None:
    kinds = {type(method.client(ANY_WORLD).work) for method in COMBINATIONS.values()}
    assert len(kinds) == 2
    assert Training in kinds
