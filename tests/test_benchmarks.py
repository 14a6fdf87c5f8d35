"""What the benchmarks reckon, and the page that shows what they measured."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from benchmarks import asynchronous, cheaper_rounds, hostile_tabs, lived, next_rank, one_message, peers, sums_by_size
from benchmarks.floor import bytes_of_a_round
from benchmarks.measuring import RESEARCH, Case, Measured, measured
from benchmarks.methods import PAGES, RESULTS, WORLD, about, cases, everything, kept
from benchmarks.pair_sketch import PairSketch, SketchedEASE
from benchmarks.peers_table import rendered as rendered_peers
from benchmarks.rendering import in_short, rendered
from benchmarks.shop import orders
from benchmarks.watched import watched
from benchmarks.worlds import crowd, in_sittings, of_clients

from ownview.data.interactions import Interactions
from ownview.data.splitting.splits import leave_one_out
from ownview.engine.machine import Machine
from ownview.federation.options import FederationOptions
from ownview.methods.fedease import FedEASE
from ownview.methods.fedmf import FedMF
from ownview.registry import METHODS
from ownview.round.federation import Federation
from ownview.seam.method import Federated

ROOT = Path(__file__).resolve().parents[1]
MACHINE = Path("machine.json")


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


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_pages_show_what_is_committed(page: Path) -> None:
    documents = [json.loads(path.read_text("utf-8")) for path in sorted((ROOT / RESULTS).glob("*.json"))]
    text = (ROOT / page).read_text("utf-8")
    assert PAGES[page](text, documents) == text, "run: python -m benchmarks.methods --render"


def _document(*found: Measured) -> dict[str, Any]:
    return {"about": about(MACHINE) | {"copy_bytes_per_second": 1e10}, "cases": [asdict(one) for one in found]}


def _found(engine: str, world: str = WORLD, *, total: float = 2.0) -> Measured:
    case, every = Case("fedmf", engine, world), 1 if engine == "vector" else 20
    seconds = {"sample": 0.5, "train": 1.0}
    return Measured(case, 1000, every, 3, False, seconds, total, 10**8, 10**9, 1.5)


@pytest.mark.parametrize("part", lived.PAGES)
def test_pages_of_models_in_use_show_what_is_committed(part: str) -> None:
    root = Path(__file__).parents[1]
    record = json.loads((root / "results" / "living.json").read_text(encoding="utf-8"))
    page = (root / lived.PAGES[part]).read_text(encoding="utf-8")
    assert lived.rendered(page, part, record) == page
    assert lived.rendered(page, part, {**record, "machine": {"processor": "another", "cores": 3}}) != page


@pytest.mark.parametrize("benchmark", [cheaper_rounds, hostile_tabs, one_message, sums_by_size])
def test_tables_of_single_benchmarks_are_those_of_their_records(benchmark: Any) -> None:
    record = json.loads(benchmark.RESULTS.read_text(encoding="utf-8"))
    rows = record if isinstance(record, list) else record["rows"]
    _, begin, rest = benchmark.PAGE.read_text(encoding="utf-8").partition(benchmark.BEGIN)
    shown, end, _ = rest.partition(benchmark.END)
    assert begin
    assert end
    assert shown.strip() == benchmark.table(rows).strip()
    if hasattr(benchmark, "PICTURE"):
        assert benchmark.PICTURE.read_text(encoding="utf-8") == benchmark.drawn(rows)


def test_a_measured_method_has_its_row_and_a_page_without_markers_is_refused() -> None:
    document = _document(_found("vector"), _found("loop", total=12.0), _found("vector", "1000"))
    page = rendered("a\n<!-- speed -->\nold\n<!-- end of speed -->\nz\n", [document])
    assert "| fedmf | 0.50 | 1.00 | 0.00 | 2.00 | 0.10 | 12.0 (8.0 x) |  | 100 MB |" in page
    assert "Loop engine: every 20th client" in page
    assert "Research style" not in page
    assert "1,000 clients 2.00 ms" in page
    assert "old" not in page
    short = in_short("<!-- speed -->\n<!-- end of speed -->", [document, {}])
    assert "| fedmf | 2.00 | 12.0 (8.0 x) |  | 100 MB |" in short
    with pytest.raises(SystemExit, match="expected the lines"):
        rendered("no markers", [])


def test_what_is_measured_is_kept(tmp_path: Path) -> None:
    path = tmp_path / MACHINE
    path.write_text(json.dumps(_document(_found("vector"))), "utf-8")
    before = path.read_bytes()
    everything([Case("fedmf", "vector", WORLD)], path, again=False)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "expected a file that this benchmark wrote"),
        ("[]", "expected a file that this benchmark wrote"),
        (json.dumps({"about": about(MACHINE) | {"torch": "0.1"}, "cases": []}), "measured with torch '0.1'"),
    ],
)
def test_a_file_of_another_machine_is_not_gone_on_with(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / MACHINE
    path.write_text(text, "utf-8")
    with pytest.raises(SystemExit, match=said):
        kept(path)


def test_every_method_is_measured_and_slow_engines_where_clients_train() -> None:
    named = {(case.method, case.engine) for case in cases(sorted(METHODS), [10])}
    assert {name for name, engine in named if engine == "vector"} == set(METHODS)
    assert ("pfedrec", "loop") in named
    assert ("fedease", "loop") not in named
    assert {name for name, engine in named if engine == "research"} == set(RESEARCH)


def test_seconds_of_sampled_clients_are_scaled_to_all() -> None:
    found = measured(Case("fedmf", "loop", "40"))
    assert (found.every, found.rounds, found.first) == (20, 3, False)
    assert found.floor_bytes is None
    assert "server" not in found.seconds
    assert found.total > found.seconds["train"] > 0


def test_a_crowd_in_sittings_has_the_same_items_in_another_order_with_pauses() -> None:
    plain = crowd(30, 100, 10)
    timed = in_sittings(plain)
    assert timed.order == "times"
    assert timed.timeline.times is not None
    assert timed.timeline.now is not None
    for client in range(30):
        assert sorted(timed.train.of(client).tolist()) == plain.train.of(client).tolist()
    gaps = timed.timeline.times.values.reshape(30, 10).diff(dim=1)
    assert set(torch.unique(gaps).tolist()) == {60, 3 * 86_400}
    assert (timed.timeline.now - timed.timeline.last == 60).all()


def test_growth_is_a_line_through_the_smallest_and_the_largest_world_of_as_many_items() -> None:
    def found(clients: int, items: int, seconds: float) -> tuple[next_rank.Case, next_rank.Cost]:
        return next_rank.Case(clients, items, 10, 4, 1), next_rank.Cost(1.0, seconds - 1, 0.0, 0, 0)

    worlds = [found(500, 90, 4.0), found(1_000, 100, 3.0), found(3_000, 100, 6.0), found(11_000, 100, 13.0)]
    assert next_rank.growth(worlds) == ["100 items: 2 CPU-seconds and 100 us an interaction"]


@pytest.mark.parametrize("text", ["10x20", "0x20x5", "10x9x5", "axbxc"])
def test_a_world_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="expected"):
        next_rank.world(text)


def test_a_shop_has_the_size_that_was_asked_for_baskets_and_a_long_tail() -> None:
    made = orders(700, 300, 6_000)
    assert len(made.customer) == len(made.product) == len(made.time) == 6_000
    assert (len(np.unique(made.customer)), len(np.unique(made.product))) == (700, 300)
    sold = np.sort(np.bincount(made.product))
    assert sold[-30:].sum() > 3 * sold[:150].sum()
    baskets = np.unique(np.stack([made.customer, made.time]), axis=1).shape[1]
    assert 0.2 * 6_000 < baskets < 0.5 * 6_000
    assert all((np.diff(made.time[made.customer == one]) >= 0).all() for one in range(20))
    again = orders(700, 300, 6_000)
    assert all(np.array_equal(getattr(made, name), getattr(again, name)) for name in ("customer", "product", "time"))


def test_the_page_has_the_table_of_asynchronous_rounds_as_recorded() -> None:
    assert "\n".join(asynchronous.table()) in (ROOT / "docs" / "federation.md").read_text(encoding="utf-8")


@pytest.mark.skipif(sys.platform != "linux", reason="memory is read in /proc")
def test_a_watched_command_is_silent_as_long_as_it_says_nothing() -> None:
    held = "held = b'x' * 60_000_000"
    seen = watched([sys.executable, "-uc", f"import time\nprint('first')\n{held}\ntime.sleep(1.2)\nprint('second')"])
    assert (seen.code, seen.after) == (0, "first")
    assert 1.1 <= seen.longest_silence <= seen.wall_seconds
    assert seen.peak_gigabytes >= 0.06
    assert watched([sys.executable, "-c", "raise SystemExit(3)"]).code == 3


def test_the_page_has_the_record_of_other_frameworks() -> None:
    page = (ROOT / "docs" / "speed.md").read_text("utf-8")
    assert rendered_peers(page) == page


def test_a_loss_is_that_of_every_sample() -> None:
    given = {"offsets": np.array([0, 1, 3]), "items": np.array([0, 1, 0]), "labels": np.array([1.0, 0.0, 1.0])}
    values = {"users": np.array([[1.0], [2.0]]), "table": np.array([[0.5], [-1.0]])}
    logits = [(0.5, 1), (-2.0, 0), (1.0, 1)]
    expected = sum(np.log1p(np.exp(z)) - z * label for z, label in logits) / 3
    assert peers.loss(given, values) == pytest.approx(expected, abs=1e-12)


def _symmetric(size: int, seed: int) -> torch.Tensor:
    half = torch.rand(size, size, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return half + half.T


def test_sketches_add_up_and_their_estimates_are_right_on_the_mean() -> None:
    one, other, sketch = _symmetric(40, 1), _symmetric(40, 2), PairSketch(64)
    torch.testing.assert_close(sketch.of(one) + sketch.of(other), sketch.of(one + other))
    seeds = [PairSketch(64, seed) for seed in range(400)]
    estimates = torch.stack([each.estimate(each.of(one), one.diagonal()) for each in seeds])
    assert torch.equal(estimates[0].diagonal(), one.diagonal())
    assert torch.equal(estimates[0], estimates[0].T)
    others = (one.triu(1).square().sum() - one.square()) / 64  # the variance that a pair's estimate has
    near = (estimates.mean(0) - one).abs() <= 6 * (others / len(seeds)).sqrt() + 1e-9
    assert near.all()
    assert (estimates.var(0)[0, 1:] / others[0, 1:]).mean().item() == pytest.approx(1, abs=0.2)


def test_a_sketch_with_room_for_every_pair_gives_fedease_back() -> None:
    gram, users = _symmetric(30, 4), np.repeat(np.arange(8), 5)
    apart = PairSketch(10**6)  # 435 pairs, of which no two share a number
    torch.testing.assert_close(apart.estimate(apart.of(gram), gram.diagonal()), gram)
    few = Interactions.from_rows("few", users, (users * 3 + np.tile(np.arange(5), 8)) % 12, timestamp=np.arange(40))
    split = leave_one_out(few, ties="file", untimed="appearance", seed=0)
    learnt = []
    for method in (FedEASE(), SketchedEASE(width=10**6)):
        at_work = Federation(method, split, split.known_items(), FederationOptions(), 0, Machine(torch.device("cpu")))
        at_work.round(1)
        learnt.append(at_work.server.shared["weights"])
    torch.testing.assert_close(learnt[1], learnt[0])
