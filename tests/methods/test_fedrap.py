"""FedRAP's rounds, worked out step by step with plain arithmetic (the world is the one of golden.py)."""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import pytest
import torch

from ownview import FedRAP
from ownview.base.errors import SettingError
from ownview.parts.curriculum import strength
from ownview.seam.training import Batch, Context
from tests.methods.golden import ITEMS, POSITIVES, dot, error, federation

APART, SPARSE, SIZE = 0.3, 0.2, 2
NETWORK, TABLE, STEP_DECAY, ROUND_DECAY = 0.1, 0.7, 0.9, 0.8
Matrix = list[list[float]]


def _client(
    client: int, w: list[float], b: float, own: Matrix, common: Matrix, number: int, update: str, sparse: float
) -> float:
    """Two epochs of one batch: everything moves by the same gradients, at rates that fall step by step."""
    strength = math.tanh(number / 10)
    share = [(1 if i in POSITIVES[client] else 2) / 6 for i in range(ITEMS)]
    for step in range(2):
        decay = ROUND_DECAY ** (number - 1) * STEP_DECAY**step
        table = [[own[i][j] + common[i][j] for j in range(SIZE)] for i in range(ITEMS)]
        errors = [error(client, i, dot(w, table[i]) + b) for i in range(ITEMS)]
        w_gradient = [sum(errors[i] * table[i][j] for i in range(ITEMS)) for j in range(SIZE)]
        for i in range(ITEMS):
            for j in range(SIZE):
                difference = own[i][j] - common[i][j]
                pull = APART * strength * share[i] * 2 * difference / SIZE
                weight = sparse * strength * share[i] / SIZE
                own[i][j] -= TABLE * decay * (errors[i] * w[j] - pull)
                if update == "subgradient":
                    common[i][j] -= TABLE * decay * (errors[i] * w[j] + pull + math.copysign(weight, common[i][j]))
                else:
                    moved = common[i][j] - TABLE * decay * (errors[i] * w[j] + pull)
                    common[i][j] = math.copysign(max(abs(moved) - TABLE * decay * weight, 0), moved)
        w[:] = [w[j] - NETWORK * decay * w_gradient[j] for j in range(SIZE)]
        b -= NETWORK * decay * sum(errors)
    return b


@pytest.mark.parametrize("engine", ["loop", "vector"])
@pytest.mark.parametrize(("update", "sparse"), [("subgradient", SPARSE), ("proximal", SPARSE), ("proximal", 20.0)])
def test_fedrap(engine: str, update: str, sparse: float) -> None:
    method = FedRAP(
        embedding_size=SIZE, negatives=2, local_epochs=2, apart=APART, sparse=sparse, network_rate=NETWORK,
        table_rate=TABLE, step_decay=STEP_DECAY, round_decay=ROUND_DECAY, update=update,
    )  # fmt: skip
    one = federation(method, engine)
    common = one.server.shared["common"].tolist()
    start = one.predicting(torch.tensor([0, 1]), None)[0]
    owns, w, b = start["own"].tolist(), start["weight"].tolist(), start["bias"].tolist()
    for number in (1, 2, 3):
        one.round(number)
        trained = [[list(row) for row in common] for _ in range(2)]
        for client in range(2):
            b[client] = _client(client, w[client], b[client], owns[client], trained[client], number, update, sparse)
        common = [[(trained[0][i][j] + trained[1][i][j]) / 2 for j in range(SIZE)] for i in range(ITEMS)]
        assert one.server.shared["common"].tolist() == pytest.approx(np.array(common), abs=1e-9)
    predicting = one.predicting(torch.tensor([0, 1]), None)[0]
    assert predicting["common"].tolist() == pytest.approx(np.array(common), abs=1e-9)  # the mean, not its own
    assert predicting["own"].tolist() == pytest.approx(np.array(owns), abs=1e-9)
    assert predicting["weight"].tolist() == pytest.approx(np.array(w), abs=1e-9)
    assert predicting["bias"].tolist() == pytest.approx(b, abs=1e-9)
    # In this world both clients touch every row, so what both make 0 the server's mean leaves at exactly 0.
    assert bool((one.server.shared["common"] == 0).any()) == (sparse == 20.0)


def test_proximal_belongs_to_l1() -> None:
    with pytest.raises(SettingError, match=r"FedRAP setting update='proximal': expected norm='l1' with it, found 'l2'"):
        FedRAP(update="proximal", norm="l2")


def test_the_loss_counts_the_penalty_whichever_way_it_is_made_small() -> None:
    reports = [
        federation(FedRAP(negatives=2, local_epochs=1, sparse=0.5, update=update), "vector").round(1)
        for update in ("subgradient", "proximal")
    ]
    assert reports[0].loss == pytest.approx(reports[1].loss, abs=1e-12)


def test_variants_hold_what_they_say() -> None:
    held = {variant: federation(FedRAP(variant=variant, negatives=2), "vector") for variant in ("full", "c", "d")}
    assert set(held["full"].server.shared) == set(held["c"].server.shared) == {"common"}
    assert held["d"].server.shared == {}
    assert set(held["full"].clients.tables) == set(held["d"].clients.tables) == {"own"}
    assert held["c"].clients.tables == {}


@pytest.mark.parametrize(
    ("curriculum", "expected"),
    [
        ("tanh", [0.0997, 0.9640]),
        ("fixed", [1, 1]),
        ("none", [1, 1]),
        ("sin", [0.0998, 0.9093]),
        ("square", [0, 0]),
        ("frac", [1 / 2, 1 / 21]),
        ("sin-released", [0, (math.sin(1.8) + 1) / 2]),
        ("square-released", [0, 0]),
    ],
)
def test_curricula(curriculum: str, expected: list[float]) -> None:
    assert [strength(curriculum, 1), strength(curriculum, 20)] == pytest.approx(expected, abs=1e-4)
    assert strength("square", 10) == 1
    wave = [strength("square-released", number) for number in range(1, 14)]
    assert wave == [0, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 1, 1], "off in the first round, then five rounds on and five off"


def _settings_of_the_papers_variants() -> dict[str, str]:
    """Variant and setting from the table of FedRAP's page."""
    page = (Path(__file__).resolve().parents[2] / "docs" / "methods" / "fedrap.md").read_text(encoding="utf-8")
    return dict(re.findall(r"^\| (FedRAP-\w+) \| `(\w+=\w+)` \|", page, flags=re.MULTILINE))


def test_every_variant_of_the_papers_ablation_is_one_setting() -> None:
    found = _settings_of_the_papers_variants()
    assert [name.removeprefix("FedRAP-") for name in found] == ["C", "D", "No", "L2", "fixed", "sin", "square", "frac"]
    made = [FedRAP.of(dict([setting.split("=")])) for setting in found.values()]
    assert len({FedRAP(), *made}) == 9


@pytest.mark.parametrize(("norm", "size"), [("l1", (3 + 0.5) / 2), ("l2", (9 + 0.25) / 2), ("none", 0)])
def test_norms_of_the_shared_table(norm: str, size: float) -> None:
    """Two rows, one in the batch three times: c = (3, -0.5) there; the other row must not count."""
    method = FedRAP(embedding_size=2, norm=norm, sparse=0.1, apart=0.2, curriculum="fixed")
    p = {
        "weight": torch.zeros(2), "bias": torch.zeros(()), "own": torch.zeros(2, 2),
        "common": torch.tensor([[3.0, -0.5], [70.0, 80.0]]),
    }  # fmt: skip
    counts, positives = torch.tensor([3.0, 0.0]), torch.tensor([1.0, 0.0])
    rows = torch.zeros(3, dtype=torch.long)
    batch = Batch(rows, torch.tensor([1.0, 0, 0]), torch.ones(3), positives, counts, rows[:0])
    expected = math.log(2) - 0.2 * (9 + 0.25) / 2 + 0.1 * size
    assert float(method.loss(p, batch, Context(1, numbers=method.by_round(1)))) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("engine", ["loop", "vector"])
@pytest.mark.parametrize(("decay", "clip"), [(0.3, 0.0), (0.0, 0.02), (0.3, 0.02)])
def test_weight_decay_and_clipping_by_gradient(engine: str, decay: float, clip: float) -> None:
    """One epoch of one batch, in which every client sees every item; only C's gradient is clipped."""
    method = FedRAP(
        embedding_size=SIZE, negatives=2, local_epochs=1, apart=0.0, sparse=0.0, network_rate=NETWORK,
        table_rate=TABLE, weight_decay=decay, clip_gradient=clip,
    )  # fmt: skip
    one = federation(method, engine)
    common = one.server.shared["common"].tolist()
    start = one.predicting(torch.tensor([0, 1]), None)[0]
    owns, ws, bs = start["own"].tolist(), start["weight"].tolist(), start["bias"].tolist()
    loss = one.round(1).loss
    plain = federation(FedRAP(embedding_size=SIZE, negatives=2, local_epochs=1, apart=0.0, sparse=0.0), engine)
    assert loss == pytest.approx(plain.round(1).loss, abs=1e-12), "the loss that is told has no decay in it"
    trained, norms = [], []
    for client, (own, w, b) in enumerate(zip(owns, ws, bs, strict=True)):
        table = [[own[i][j] + common[i][j] for j in range(SIZE)] for i in range(ITEMS)]
        errors = [error(client, i, dot(w, table[i]) + b) for i in range(ITEMS)]
        slopes = [[errors[i] * w[j] + decay * common[i][j] for j in range(SIZE)] for i in range(ITEMS)]
        norms.append(math.sqrt(sum(dot(row, row) for row in slopes)))
        factor = min(1.0, clip / norms[-1]) if clip else 1.0
        trained.append([[common[i][j] - TABLE * factor * slopes[i][j] for j in range(SIZE)] for i in range(ITEMS)])
        for i in range(ITEMS):
            own[i] = [own[i][j] - TABLE * (errors[i] * w[j] + decay * own[i][j]) for j in range(SIZE)]
        for_w = [sum(errors[i] * table[i][j] for i in range(ITEMS)) + decay * w[j] for j in range(SIZE)]
        bs[client] = b - NETWORK * (sum(errors) + decay * b)
        w[:] = [w[j] - NETWORK * for_w[j] for j in range(SIZE)]
    assert not clip or min(norms) > clip, "the bound must bind for this test to mean something"
    mean = [[(trained[0][i][j] + trained[1][i][j]) / 2 for j in range(SIZE)] for i in range(ITEMS)]
    assert one.server.shared["common"].tolist() == pytest.approx(np.array(mean), abs=1e-9)
    found = one.predicting(torch.tensor([0, 1]), None)[0]
    assert found["own"].tolist() == pytest.approx(np.array(owns), abs=1e-9)
    assert found["weight"].tolist() == pytest.approx(np.array(ws), abs=1e-9)
    assert found["bias"].tolist() == pytest.approx(bs, abs=1e-9)
