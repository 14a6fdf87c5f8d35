"""What the benchmarks reckon, and the page that shows what they measured."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from benchmarks.floor import bytes_of_a_round
from benchmarks.rendering import rendered
from benchmarks.worlds import of_clients

from ownview.data.splits import leave_one_out
from ownview.engine.machine import Machine
from ownview.federation.options import FederationOptions
from ownview.federation.round import Federation
from ownview.methods.fedease import FedEASE
from ownview.methods.fedmf import FedMF
from ownview.seam.method import Federated

ROOT = Path(__file__).resolve().parents[1]


def _federation(method: Federated) -> Federation:
    split = leave_one_out(of_clients(6), ties="file", untimed="appearance", seed=0)
    return Federation(method, split, split.known_items(), FederationOptions(), 0, Machine(torch.device("cpu")))


def test_the_floor_counts_every_step_of_every_client() -> None:
    one = _federation(FedMF(embedding_size=3, local_epochs=2, batch_size=16, negatives=1))
    expected = 0
    for client in range(6):
        samples = one.work.samples(1, torch.tensor([client]))
        steps = -(-samples.host_sizes[0] // 16)
        expected += 2 * steps * 6 * 4 * 3 * (1 + int(samples.num_rows))  # six passes, four bytes, rows and a vector
    assert bytes_of_a_round(one, 1) == expected


def test_clients_that_report_have_no_such_floor() -> None:
    assert bytes_of_a_round(_federation(FedEASE()), 1) is None


def test_the_page_shows_what_is_committed() -> None:
    documents = [json.loads(path.read_text("utf-8")) for path in sorted((ROOT / "results" / "speed").glob("*.json"))]
    page = (ROOT / "docs" / "speed.md").read_text("utf-8")
    assert rendered(page, documents) == page, "run: python -m benchmarks.methods --render"


def test_a_measured_method_has_its_row_and_a_page_without_markers_is_refused() -> None:
    method = {
        "method": "fedmf",
        "seconds": {"train": 1.0},
        "total": 1.5,
        "floor_bytes": 10**9,
        "peak_memory_bytes": 10**8,
    }
    about = {"machine": "m", "cores": 2, "world": "w", "copy_bytes_per_second": 1e10, "load_before": 0, "load_after": 0}
    document = {"about": about, "methods": [method], "engines": [], "growth": [{"clients": 1000, "total": 2.0}]}
    page = rendered("a\n<!-- speed -->\nold\n<!-- end of speed -->\nz\n", [document])
    assert "| fedmf | 0.00 | 1.00 | 0.00 | 1.50 | 0.10 | 100 MB |" in page
    assert "1,000: 2.00 ms" in page
    assert "old" not in page
    with pytest.raises(SystemExit, match="expected the lines"):
        rendered("no markers", [])
