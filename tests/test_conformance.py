"""Every registered method and every plug-in around every method it accepts, through every check."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from torch import Tensor

from ownview import (
    CoLR,
    ElasticMerging,
    FedEM,
    FedFast,
    FedMF,
    FedNCF,
    FedRAP,
    FedRecon,
    GPFedRec,
    PerFedRec,
    PFedGraph,
)
from ownview.base.errors import SettingError
from ownview.registry import METHODS, PLUGINS
from ownview.seam.method import Method
from ownview.seam.training import Batch, Context, Params
from ownview.testing import CHECKS


def _combinations() -> dict[str, Method]:
    found: dict[str, Method] = {name: cls() for name, cls in METHODS.items()}
    for plugin in PLUGINS.values():
        for name, method in METHODS.items():
            try:
                found[f"{name}+{plugin.name}"] = plugin(inner=method())
            except SettingError:
                continue
    return found


COMBINATIONS = _combinations()


# With its published rates FedRAP fits its private tables so fast that the shared one teaches nothing; that is a finding
# of the project, not a fault of the code. Without the private table it must learn like everybody else.
SLOW_ENOUGH_TO_LEARN = {
    "fedrap": FedRAP(variant="c", network_rate=0.5, table_rate=30.0, step_decay=1.0, round_decay=1.0),
    # One pass a round and a table that starts anew from the mean: 40 rounds teach it less than others.
    "gpfedrec": GPFedRec(optimizer="adam", learning_rate=0.01, local_epochs=10),
}


# At the adapter's published rate of 0.1 Adam makes two engines' difference in the last digit 1e5 times larger in three
# rounds; at a tenth of it, that digit is all that differs.
GENTLE: dict[str, Method] = {
    "fedem": FedEM(learning_rate=0.01, adapter_rate=0.01),
    "pfedgraph+elastic-merging": ElasticMerging(inner=PFedGraph(), adapter_rate=0.01),
}


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("name", COMBINATIONS)
def test_conforms(name: str, check: str) -> None:
    method = COMBINATIONS[name] if check == "learns" else GENTLE.get(name, COMBINATIONS[name])
    inner, _, plugin = name.partition("+")
    if check == "learns" and inner in SLOW_ENOUGH_TO_LEARN:
        slow = SLOW_ENOUGH_TO_LEARN[inner]
        method = PLUGINS[plugin](inner=slow) if plugin else slow
    CHECKS[check](method)


EXACT = [name for name in CHECKS if name not in ("learns", "neutral changes nothing", "only shared leaves")]

# Options that go through the seam in ways no default does; batches small enough for clients of several batches each.
OPTIONS: dict[str, Method] = {
    "shrinks at falling rates": FedRAP(update="proximal", sparse=2.0, table_rate=20.0, batch_size=32, local_epochs=3),
    "shrinks at one rate": FedRAP(
        update="proximal", sparse=2.0, table_rate=20.0, step_decay=1.0, batch_size=32, local_epochs=3
    ),
    "regularised": FedMF(regularization=0.05, initial_scale=0.1, batch_size=32, local_epochs=3),
    "distances for similarities": GPFedRec(released=True, guidance=0.3, rate_factor=0.5, batch_size=32, local_epochs=3),
    "few neighbours": GPFedRec(threshold=1.00001, optimizer="adam", learning_rate=0.01, batch_size=32),
    "two clusters": PerFedRec(clusters=2, layers=0, embedding_size=4, batch_size=32, local_epochs=3),
    "two clusters of users": FedFast(clusters=2, decay=1.0, embedding_size=4, batch_size=32, local_epochs=3),
    "far from the shares": PFedGraph(alpha=0.05, guidance=1.0, embedding_size=4, batch_size=32, local_epochs=3),
    "stops early": FedRAP(stop_below=0.05, network_rate=0.3, table_rate=5.0, batch_size=32, embedding_size=4),
    "halves of several batches": FedRecon(batch_size=16, reconstruction_epochs=3, local_epochs=2, embedding_size=4),
    "no halves": FedRecon(split=False, batch_size=32, embedding_size=4, user_scale=1.0),
    "merges again": FedEM(
        merges_again=True, learning_rate=0.01, adapter_rate=0.01, embedding_size=4, batch_size=32, local_epochs=3
    ),
    "three rates": FedNCF(optimizer="sgd", learning_rate=0.05, rate_factor=0.3, embedding_size=4, batch_size=32),
    "updates of full rank": CoLR(rank=4, embedding_size=4, batch_size=32, local_epochs=3),
}


@pytest.mark.parametrize("check", EXACT)
@pytest.mark.parametrize("name", OPTIONS)
def test_options_conform(name: str, check: str) -> None:
    CHECKS[check](OPTIONS[name])


def test_nothing_is_left_out() -> None:
    """An empty loop would pass silently: the collected names are the registry's, spelt out once."""
    assert set(METHODS) == {
        "colr", "fedem", "fedfast", "fedmf", "fedncf", "fedrap", "fedrecon", "gpfedrec", "local-only", "perfedrec",
        "pfedclr", "pfedgraph", "pfedrec",
    }  # fmt: skip
    assert set(PLUGINS) == {"dual-personalisation", "elastic-merging", "late-aggregation", "plgc"}
    share_a_table = ("fedfast", "fedmf", "fedncf", "fedrap", "fedrecon", "pfedclr", "pfedrec")
    begin_with_one_beside = ("gpfedrec", "perfedrec", "pfedgraph")
    paired = {f"{name}+{plugin}" for name in (*share_a_table, *begin_with_one_beside) for plugin in PLUGINS}
    # FedNCF shares a network too; FedRecon has learnt nothing when an adapter would be trained. With received tables
    # beside the own one a client is personal already, and looks at them whatever it begins with.
    refused = {"fedncf+late-aggregation", "fedrecon+elastic-merging"}
    refused |= {f"{n}+{p}" for n in begin_with_one_beside for p in ("dual-personalisation", "late-aggregation")}
    assert set(COMBINATIONS) == {*METHODS, *paired} - refused


def test_a_method_that_breaks_a_rule_is_caught() -> None:
    """The kit itself must be able to fail: a method whose loss depends on the padding of its block."""

    @dataclass(frozen=True)
    class Padded(FedMF):
        def loss(self, p: Params, batch: Batch, context: Context) -> Tensor:
            return super().loss(p, batch, context) * p["items"].shape[0]

    with pytest.raises(AssertionError):
        CHECKS["loop equals vector"](Padded())
