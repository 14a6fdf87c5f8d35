"""Clients in workers end as clients in one process do, also where a worker is killed."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from ownview import FedEASE, FederationOptions, FedFast, FedMF, FedNext, PFedGraph, PFedRec
from ownview.base.errors import DeviceError, SettingError
from ownview.cluster.federation import ClusterFederation
from ownview.engine.machine import Machine, Workers
from ownview.round.federation import Federation
from ownview.round.scorers import scorer_of
from ownview.seam.method import Federated
from ownview.testing.worlds import small_world
from tests.outcome import Outcome

pytestmark = pytest.mark.xdist_group("workers")  # two test processes would start Ray twice
PRECISION = {torch.float64: 1e-9, torch.float32: 1e-5}
SPLIT = small_world()


def _made(
    method: Federated, workers: Workers | None, dtype: torch.dtype, clients: str = "all", privacy: str = "none"
) -> Federation:
    place = Machine(torch.device("cpu"), dtype, workers=workers)
    kind = Federation if workers is None else ClusterFederation
    options = FederationOptions(clients=clients, privacy=privacy).for_rounds(3)
    return kind(method, SPLIT, SPLIT.training_items(), options, 0, place)


def _assert_same(found: dict[str, Tensor], expected: dict[str, Tensor], dtype: torch.dtype) -> None:
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        size = max(float(value.double().abs().max()), 1.0) if value.numel() else 1.0
        assert found[name].shape == value.shape, name
        assert float((found[name].double() - value.double()).abs().max()) <= PRECISION[dtype] * size, name


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
@pytest.mark.parametrize(
    ("method", "clients"),
    [
        (FedMF(embedding_size=4), "all"),
        (FedMF(embedding_size=4), "9"),
        (PFedRec(embedding_size=4), "9"),
        (FedEASE(), "all"),
        (FedNext(rank=4), "all"),
        (FedFast(embedding_size=4), "9"),
    ],
    ids=["fedmf", "fedmf-some", "pfedrec-some", "fedease", "fednext-rank", "fedfast-some"],
)
def test_one_process_one_worker_and_two_are_equal(
    two: Workers, method: Federated, clients: str, dtype: torch.dtype
) -> None:
    alone = _made(method, None, dtype, clients)
    with_one, with_two = _made(method, replace(two, count=1), dtype, clients), _made(method, two, dtype, clients)
    for number in (1, 2, 3):
        expected = alone.round(number)
        for one in (with_one, with_two):
            report = one.round(number)
            assert (report.clients, report.bytes_up, report.bytes_down) == (
                expected.clients,
                expected.bytes_up,
                expected.bytes_down,
            )
            assert (report.loss is None) == (expected.loss is None)
            assert (report.loss or 0) == pytest.approx(expected.loss or 0, rel=PRECISION[dtype])
    for one in (with_one, with_two):
        _assert_same(one.pack(), alone.pack(), dtype)


@pytest.mark.parametrize(
    "privacy", ["laplace:0.1", "masked:clip=1,masks=skipped", "central:epsilon=8,clip=adaptive,noise=seeded"]
)
def test_noise_and_whole_numbers_are_the_same_wherever_clients_are(two: Workers, privacy: str) -> None:
    made = [_made(FedMF(embedding_size=4), team, torch.float64, privacy=privacy) for team in (None, two)]
    for number in (1, 2):
        reports = [one.round(number) for one in made]
        assert reports[0].bytes_up == reports[1].bytes_up
    _assert_same(made[1].pack(), made[0].pack(), torch.float64)


def test_a_killed_worker_loses_nothing(two: Workers, capfd: pytest.CaptureFixture[str]) -> None:
    """Killed while it trains, with a round behind it that was not saved; and another while it adds up."""
    method = PFedRec(embedding_size=4)
    alone, apart = _made(method, None, torch.float64, "9"), _made(method, two, torch.float64, "9")
    assert isinstance(apart, ClusterFederation)
    kills = {(3, 1, "round"), (4, 0, "add")}
    ask = apart.fleet.pool.ask
    number = 0

    def asked(worker: int, what: str, *given: Any, answers: int = 1) -> Any:
        promise = ask(worker, what, *given, answers=answers)
        if (number, worker, what) in kills:
            kills.remove((number, worker, what))
            apart.fleet.pool.ray.kill(apart.fleet.pool.workers[worker])
        return promise

    lives = sum(apart.fleet.pool.lives)
    apart.fleet.pool.ask = asked  # type: ignore[method-assign]
    try:
        for number in (1, 2, 3, 4, 5):
            alone.round(number)
            apart.round(number)
            if number == 1:
                assert not apart.fleet.log, "saved"
                apart.fleet.saving = float("inf")
    finally:
        apart.fleet.pool.ask = ask  # type: ignore[method-assign]
    assert not kills
    assert sum(apart.fleet.pool.lives) == lives + 2
    assert len(apart.fleet.log) == 4
    assert not capfd.readouterr().out, "standard output is for results"
    _assert_same(apart.pack(), alone.pack(), torch.float64)


def test_a_worker_that_dies_with_what_it_was_given_is_given_it_again(two: Workers) -> None:
    """As on a resume: it dies after it has taken its clients' values, and before it has saved them."""
    method = PFedRec(embedding_size=4)
    alone, apart = _made(method, None, torch.float64), _made(method, two, torch.float64)
    assert isinstance(apart, ClusterFederation)
    for number in (1, 2):
        alone.round(number)
    ask, killed = apart.fleet.pool.ask, list[int]()

    def asked(worker: int, what: str, *given: Any, answers: int = 1) -> Any:
        if what == "save" and not killed:
            killed.append(worker)
            apart.fleet.pool.ray.kill(apart.fleet.pool.workers[worker])
        return ask(worker, what, *given, answers=answers)

    apart.fleet.pool.ask = asked  # type: ignore[method-assign]
    try:
        apart.unpack(alone.pack())
    finally:
        apart.fleet.pool.ask = ask  # type: ignore[method-assign]
    assert killed
    assert not apart.fleet.log, "saved"
    for one in (alone, apart):
        one.round(3)
    _assert_same(apart.pack(), alone.pack(), torch.float64)


def test_what_is_lost_with_a_machine_ends_the_run_in_one_line(two: Workers) -> None:
    one = _made(FedMF(embedding_size=4), two, torch.float64)
    assert isinstance(one, ClusterFederation)
    promise = one.fleet.pool.put({"a": torch.zeros(10**6).numpy()})
    from ray._private.internal_api import free

    free([promise])
    for lost in (promise, one.fleet.pool.ask(0, "add", promise, promise)):
        with pytest.raises(DeviceError, match=r"has gone with what its workers had worked out .*--resume$"):
            one.fleet.pool.get(lost)


def test_values_are_given_back_to_workers_and_scored_here(two: Workers) -> None:
    method, clients = PFedRec(embedding_size=4), torch.arange(SPLIT.num_users)
    alone, apart = _made(method, None, torch.float64), _made(method, two, torch.float64)
    for number in (1, 2):
        alone.round(number)
    apart.unpack(alone.pack())
    for one in (alone, apart):
        one.round(3)
    _assert_same(apart.pack(), alone.pack(), torch.float64)
    expected, found = (scorer_of(one).scores(clients, None) for one in (alone, apart))
    assert torch.allclose(expected, found, atol=1e-9)


def test_a_method_in_a_file_by_the_command_line(two: Workers, ownview: Callable[..., Outcome], tmp_path: Path) -> None:
    """Workers cannot import the file; it travels."""
    data, own = tmp_path / "ratings.csv", tmp_path / "own.py"
    rows = [f"{user},{item},{place}" for user in range(12) for place, item in enumerate(range(user % 4, user % 4 + 9))]
    data.write_text("user,item,timestamp\n" + "\n".join(rows) + "\n", encoding="utf-8")
    own.write_text((Path(__file__).parents[2] / "examples" / "pairwise_mf.py").read_text(encoding="utf-8"))
    common = ("run", own, "--trust", "--data", data, "--rounds", "2", "--device", "cpu")
    for more, out in (((), "alone"), (("--workers", "2", "--shards", tmp_path / "shards"), "apart")):
        assert ownview(*common, *more, "--out", tmp_path / out).code == 0
    users = [(tmp_path / out / "users.csv").read_text(encoding="utf-8") for out in ("alone", "apart")]
    assert users[0] == users[1]


def test_more_workers_than_there_is_room_for_are_refused(two: Workers, ownview: Callable[..., Outcome]) -> None:
    with pytest.raises(DeviceError, match=r"--workers 4096: this machine has \d+ free CPUs; expected at most"):
        _made(FedMF(), Workers(4096), torch.float32)
    refused = ownview("run", "fedmf", "--rounds", "1", "--workers", "4096")
    assert refused.code == 2
    assert len(refused.err.strip().splitlines()) == 1


def test_methods_whose_server_holds_every_table_are_refused(two: Workers) -> None:
    with pytest.raises(SettingError, match="holds the latest table of every single client"):
        _made(PFedGraph(), two, torch.float32)


def test_masks_that_are_put_on_are_refused(two: Workers) -> None:
    with pytest.raises(SettingError, match="expected masks=skipped in it"):
        _made(FedMF(), two, torch.float32, privacy="masked:clip=1")


@pytest.mark.parametrize("address", ["127.0.0.1", "127.0.0.1:seven", "127.0.0.1:{free}"])
def test_a_cluster_that_does_not_answer_is_named(ownview: Callable[..., Outcome], tmp_path: Path, address: str) -> None:
    pytest.importorskip("ray", reason="Ray is not here: pip install -e '.[ray]'")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: nobody answers there
        address = address.format(free=taken.getsockname()[1])
        refused = ownview("run", "fedmf", "--ray", address, "--out", tmp_path / "run")
    assert refused.code == 2
    assert f"--ray {address}: no cluster answers" in refused.err
    assert not (tmp_path / "run").exists()


def test_options_without_a_meaning_are_refused(ownview: Callable[..., Outcome], tmp_path: Path) -> None:
    refused = ownview("run", "popularity", "--workers", "2", "--out", tmp_path / "run")
    assert (refused.code, "has no clients to share out" in refused.err) == (2, True)
    refused = ownview("run", "fedmf", "--shards", tmp_path)
    assert (refused.code, "expected --workers or --ray with it" in refused.err) == (2, True)
    assert not (tmp_path / "run").exists()


def _processes_below(parent: int) -> set[int]:
    parents = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            parents[int(status.parent.name)] = int(status.read_text().rpartition(")")[2].split()[1])
    found = {parent}
    while more := {one for one, above in parents.items() if above in found} - found:
        found |= more
    return found


def _sockets_of(process: int) -> set[str]:
    names = set()
    for link in Path(f"/proc/{process}/fd").glob("*"):
        with suppress(OSError):
            names.add(str(link.readlink()))
    return {name.removeprefix("socket:[").removesuffix("]") for name in names if name.startswith("socket:")}


@pytest.mark.skipif(not Path("/proc/net/tcp6").exists(), reason="asks Linux who listens where")
def test_nobody_but_this_machine_can_reach_the_workers(two: Workers) -> None:
    _made(FedMF(embedding_size=4), two, torch.float64).round(1)
    ours = set[str]().union(*(_sockets_of(one) for one in _processes_below(os.getpid())))
    listening = []
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            cells = line.split()
            if cells[3] == "0A" and cells[9] in ours:
                listening.append(cells[1].partition(":")[0])
    loopback = {"0100007F", "00000000000000000000000001000000", "0000000000000000FFFF00000100007F"}
    assert len(listening) > 3, "Ray's own must have been found"
    assert set(listening) <= loopback
