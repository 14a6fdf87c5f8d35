"""Ownview in Flower's simulation, by Flower's public interface: bit for bit what the same places give without it."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from ownview.base.errors import SettingError
from ownview.deploy.agreement import Agreement
from ownview.deploy.coordination.refusals import NoQuorumError
from ownview.deploy.coordinator import Coordinator
from ownview.deploy.place import Place
from ownview.deploy.places.floor import Floor
from ownview.federation.options import FederationOptions
from tests.deploy.in_process import InProcess
from tests.deploy.world import QUICK, agreement, assert_equal, replayed, write_homes

flwr = pytest.importorskip("flwr", reason="Flower is not installed; expected the extra: flower")

NAMES = ("place0", "place1")
ROUNDS = 3
CASES = {
    "pfedrec": agreement("pfedrec", room=8, precision="float32"),
    "fednext": agreement("fednext", room=8),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_in_flower_equals_without_it(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    agreed, root = CASES[case], Path(__file__).resolve().parents[2]
    monkeypatch.setenv("FLWR_TELEMETRY_ENABLED", "0")
    monkeypatch.setenv("FLWR_HOME", str(tmp_path / "flwr"))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(root), str(root / "src")]))  # of Ray's processes
    homes = write_homes(tmp_path / "flower", NAMES, users=4)
    (tmp_path / "flower" / "agreement").write_bytes(agreed.pack())
    _simulate({"folder": str(tmp_path / "flower"), "places": len(NAMES), "rounds": ROUNDS})
    places = {name: Place(home) for name, home in homes.items()}
    in_flower = _read(agreed, tmp_path / "flower" / "coordinator", places)
    assert in_flower.done == ROUNDS

    others = {name: Place(home) for name, home in write_homes(tmp_path / "alone", NAMES, users=4).items()}
    alone = Coordinator(agreed, InProcess(others), tmp_path / "alone" / "coordinator", QUICK)
    alone.run(ROUNDS)
    found, expected = in_flower.server.pack(), alone.server.pack()
    assert found.keys() == expected.keys()
    assert all(torch.equal(found[name], value) for name, value in expected.items())
    for name, place in places.items():
        kept, other = place.generations.newest, others[name].generations.newest
        assert kept is not None
        assert other is not None
        assert kept.values.keys() == other.values.keys()
        assert all(torch.equal(kept.values[one], value) for one, value in other.values.items())
    assert_equal(agreed, in_flower, places, replayed(agreed, homes, tmp_path / "flower" / "coordinator"), within=1e-5)


def test_masks_are_refused_in_words() -> None:
    from examples.flower.app import require_no_masks

    with pytest.raises(SettingError, match="masks need places that stay in memory"):
        require_no_masks(agreement("fedease", options=FederationOptions(privacy="masked:clip=1000")))


def test_where_a_place_refuses_the_run_ends_and_says_why(tmp_path: Path) -> None:
    """All users are expected, so no round can be without those of a place that refuses: it waited for ever."""
    from examples.flower.app import coordinator_of

    homes = write_homes(tmp_path, NAMES, users=4)
    places = {"place0": Place(homes["place0"]), "place1": Place(homes["place1"], floor=Floor("local:epsilon=1"))}
    agreed = agreement("fedmf", room=8)
    coordinator = coordinator_of(agreed, InProcess(places), set(NAMES), tmp_path / "coordinator", 1.0)
    with pytest.raises(NoQuorumError, match=r"4 users are there .* place1 refused: privacy='none' is below"):
        coordinator.run(1)


def _simulate(settings: dict[str, Any]) -> None:
    """Run the app as `flwr run` does, with settings that no file names."""
    from examples.flower import app
    from flwr.app import Context, Message
    from flwr.clientapp import ClientApp
    from flwr.serverapp import Grid, ServerApp
    from flwr.simulation import run_simulation

    server, client = ServerApp(), ClientApp()

    @server.main()
    def conduct(grid: Grid, context: Context) -> None:
        app.conduct(grid, replace(context, run_config=settings))

    @client.query()
    def answer(message: Message, context: Context) -> Message:
        return app.answer(message, replace(context, run_config=settings))

    resources: dict[str, Any] = {"client_resources": {"num_cpus": 1, "num_gpus": 0.0}, "init_args": {"num_cpus": 1}}
    run_simulation(server, client, len(NAMES), backend_config=resources)


def _read(agreed: Agreement, folder: Path, places: dict[str, Place]) -> Coordinator:
    return Coordinator(agreed, InProcess(places), folder, QUICK)
