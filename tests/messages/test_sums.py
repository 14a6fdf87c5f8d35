"""Partial sums: the uploads of some clients, merged with those of others, are those of all."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from ownview import FCF, FedEM, Federated, FederationOptions, FedFast, FedIALS, FedMF
from ownview.messages.sums import MeanPartial, SumPartial
from ownview.messages.upload import Upload
from ownview.seam.client import Product, Summand
from ownview.testing.worlds import federation, small_world
from tests.messages.uploads import upload_of

ITEMS, SHARED = 5, torch.full((5, 2), 0.5, dtype=torch.float64)


def _upload(seed: int) -> Upload:
    """Two clients with changed rows of one table, a whole personal table, and a vector."""
    random = torch.Generator().manual_seed(seed)

    def drawn(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=random, dtype=torch.float64)

    return upload_of(
        {"items": drawn(2, 2, 2)},
        {"own": drawn(2, ITEMS, 2), "w": drawn(2, 3)},
        items=[[seed % ITEMS, 4], [1, 3]] if seed % ITEMS < 4 else [[0, 2], [1, 3]],
        samples=[seed + 1, 7],
    )


def _mean(weighting: str, by_row: tuple[str, ...] = (), weigh: Callable[[Tensor], Tensor] | None = None) -> MeanPartial:
    shared = {"items": SHARED, "own": SHARED, "w": torch.zeros(3, dtype=torch.float64)}
    return MeanPartial(
        shared,
        SHARED,
        weighting,
        frozenset({"own"}),
        frozenset(by_row),
        weigh,
        frozenset({"items", "own"}) if weigh else frozenset(),
    )


MEANS: dict[str, Callable[[], MeanPartial]] = {
    "by samples": lambda: _mean("samples"),
    "uniform": lambda: _mean("uniform"),
    "by row": lambda: _mean("samples", by_row=("items", "own")),
    "own weights": lambda: _mean("samples", weigh=lambda change: change.abs().sum(-1)),
}


@pytest.mark.parametrize("begin", MEANS.values(), ids=MEANS)
def test_means_of_parts_merge_to_the_mean_of_all(begin: Callable[[], MeanPartial]) -> None:
    whole, left, right = begin(), begin(), begin()
    for seed in range(6):
        whole.add(_upload(seed))
        (left if seed % 3 else right).add(_upload(seed))
    right_alone = {name: value.clone() for name, value in right.mean().items()}
    packed = right.pack()
    left.merge(packed)
    for name, expected in whole.mean().items():
        assert torch.allclose(left.mean()[name], expected, rtol=0, atol=1e-12), name
        assert not torch.allclose(right_alone[name], expected, atol=1e-3), f"the parts must differ in {name}"
        assert torch.equal(right.mean()[name], right_alone[name]), "what was merged stays as it was"
    assert {name: value.dtype for name, value in packed.items()} == {n: v.dtype for n, v in whole.pack().items()}


def _summands(seed: int) -> Upload:
    random = torch.Generator().manual_seed(seed)
    left, right = (torch.randn(2, 3, n, generator=random, dtype=torch.float64) for n in (4, 6))
    nothing = torch.zeros(2, 0, dtype=torch.long)
    sums: dict[str, Tensor | Product] = {"x": Product(left, right), "y": left[:, 0]}
    return Upload(torch.arange(2), torch.ones(2, dtype=torch.long), nothing, nothing.bool(), sums=sums)


def test_sums_of_parts_merge_to_the_sum_of_all() -> None:
    declared = {"x": Summand((4, 2, 3), "x"), "y": Summand((4,), "y")}
    whole, left, right = (SumPartial(declared, torch.empty(0, dtype=torch.float64)) for _ in range(3))
    for seed in range(5):
        whole.add(_summands(seed))
        (left if seed % 2 else right).add(_summands(seed))
    alone = left.sums["x"].clone()
    left.merge(right.pack())
    assert int(left.clients) == int(whole.clients) == 10
    assert int(right.clients) == 6
    for name, expected in whole.sums.items():
        assert torch.allclose(left.sums[name], expected, rtol=0, atol=1e-12), name
    assert not torch.allclose(left.sums["x"], alone, atol=1e-3)


@pytest.mark.parametrize(
    ("method", "options"),
    [
        (FedMF(embedding_size=3, local_epochs=1), {}),
        (FedMF(embedding_size=3, local_epochs=1), {"row_mean": "touched", "privacy": "laplace:0.1"}),
        (FedEM(embedding_size=3, local_epochs=1, aggregation="mean"), {"row_mean": "touched"}),
        (FedFast(embedding_size=3, local_epochs=1), {}),
        (FCF(), {}),
        (FedIALS(embedding_size=3), {}),
    ],
    ids=["mean", "touched rows with noise", "personal tables", "own weights", "sums", "products"],
)
def test_two_servers_that_merge_end_as_one(method: Federated, options: dict[str, object]) -> None:
    """A round through two partial sums, by clients' parity, ends where a round through one does."""
    chosen = FederationOptions.of(options)
    one, two = (federation(method, small_world(), options=chosen) for _ in range(2))
    one.round(1)
    cohort = two.participants(1)
    two.clients.begin(two.server.download(1, cohort[:0]), cohort)
    parts = [two.server.begin(1), two.server.begin(1)]
    for client in cohort:
        here = client.reshape(1)
        upload = two.work.do(two.work.samples(1, here), two.server.download(1, here, for_training=True))
        sent = two.terms.sent(upload, 1)
        parts[int(client) % 2].add(sent)
        two.server.take(sent)
    parts[0].merge(parts[1].pack())
    two.server.finish(1, parts[0], cohort)
    for name, value in one.server.shared.items():
        assert torch.allclose(two.server.shared[name], value, rtol=1e-9, atol=1e-9), name
