"""Pages and exports of a deployment: masked FedEASE over HTTPS, from the folder of its server."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from ownview.base.errors import SettingError
from ownview.deploy.agreement import Agreement
from ownview.deploy.coordinator import Coordinator
from ownview.deploy.folders import Plan, ServerFolder, create_server_folder
from ownview.deploy.https.server import HttpsTransport
from ownview.deploy.place import Place
from ownview.deploy.places.holdings import read_holdings
from ownview.deploy.settings import CoordinatorSettings
from ownview.federation.options import FederationOptions
from ownview.pages.deployed_model import DeployedModel
from ownview.pages.export import export
from ownview.pages.page import page
from tests.deploy.in_process import InProcess
from tests.deploy.lines import Running, wait_for, write_place
from tests.deploy.world import ITEMS, NAMES, QUICK, agreement, write_homes
from tests.outcome import Outcome
from tests.pages.test_page import model_of

MASKED = FederationOptions(privacy="masked:clip=16")
TITLES = tuple(f"Book {item}" if item > 1 else "Book" for item in range(ITEMS))


def server_folder(
    path: Path, case: str = "fedease", options: FederationOptions = MASKED
) -> tuple[ServerFolder, Agreement]:
    agreed = replace(agreement(case, options=options), titles=TITLES)
    return create_server_folder(path, agreed, Plan(), CoordinatorSettings()), agreed


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A deployment of thirty people at three places that has ended: places/ beside server/."""
    where = tmp_path_factory.mktemp("deployment")
    server, agreed = server_folder(where / "server")
    homes = write_homes(where / "places")
    for name in NAMES:
        server.keys.enrol(name, write_place(server.certificates, name))
    transport = HttpsTransport(("127.0.0.1", 0), server.certificates, server.keys)
    running = [Running(Place(home), transport.address, server.certificates, name) for name, home in homes.items()]
    wait_for(lambda: list(transport.places()) == sorted(NAMES))
    Coordinator(agreed, transport, server.rounds, QUICK).run(1)
    transport.close()
    for one in running:
        one.end()
    return where


def had(folder: Path) -> np.ndarray:
    """[30, 24] who had what."""
    agreed, rows = ServerFolder(folder / "server").agreement(), []
    for name in NAMES:
        lists = read_holdings(folder / "places" / name / "ratings.csv", agreed).timeline.items
        rows += [[item in {*lists.of(user).tolist()} for item in range(ITEMS)] for user in range(len(lists))]
    return np.array(rows)


def test_the_sums_tell_how_many_people_had_an_item_and_never_too_many(folder: Path) -> None:
    truth = had(folder).astype(int)
    people = DeployedModel.of(ServerFolder(folder / "server")).people
    assert np.array_equal(people.count, truth.sum(0)), "no one is longer than the clip"
    together = people.together.toarray()
    assert (together <= truth.T @ truth).all()
    assert ((together > 0) == (truth.T @ truth > 0)).all()


def test_an_export_holds_the_weights_that_the_server_has(folder: Path, tmp_path: Path) -> None:
    export(folder / "server", tmp_path / "out", min_people=1)
    written = load_file(tmp_path / "out" / "model.safetensors")
    agreed = ServerFolder(folder / "server").agreement()
    weights = Coordinator(agreed, InProcess({}), folder / "server" / "rounds").server.shared["weights"]
    [found] = [one for one in written.values() if one.shape == (ITEMS, ITEMS)]
    assert np.allclose(found, weights.float().numpy(), atol=1e-6)
    about = json.loads((tmp_path / "out" / "model.json").read_text(encoding="utf-8"))
    assert about["privacy"]["simulated"] is False
    assert about["data"]["users"] == 30
    card = (tmp_path / "out" / "MODEL_CARD.md").read_text(encoding="utf-8")
    assert "devices of their own took part" in card
    assert "Uploads were masked: the server saw sums alone" in card
    assert "simulated" not in card.lower()


def test_the_command_line_makes_a_page_without_items_of_few(
    folder: Path, tmp_path: Path, ownview: Callable[..., Outcome]
) -> None:
    counts = had(folder).sum(0)
    least = int(np.sort(counts)[5])
    done = ownview("page", folder / "server", "-o", tmp_path / "page.html", "--min-people", least)
    assert done.code == 0, done.err
    few = int((counts < least).sum())
    assert f"left out: {few} items that fewer than {least} people had" in done.out
    assert "histories of one item" in done.out
    assert "no attack was tried on these weights: the server has no histories to compare guesses with" in done.out
    model = model_of((tmp_path / "page.html").read_text(encoding="utf-8"))
    assert model["ids"] == [f"i{item}" for item, count in enumerate(counts) if count >= least]
    twins = [f"Book (i{item})" for item in (0, 1) if counts[item] >= least]
    assert [title for title in model["titles"] if "(" in title] == twins, "two books of one title are told apart"


def test_a_page_of_everything_recommends_what_the_model_does(folder: Path, tmp_path: Path) -> None:
    made = page(folder / "server", tmp_path / "page.html", min_people=1)
    assert made.fidelity.overlap > 0.99
    assert made.fidelity.of_items
    assert made.titled


def test_what_cannot_be_published_is_one_line(folder: Path, tmp_path: Path, ownview: Callable[..., Outcome]) -> None:
    server_folder(tmp_path / "new")
    done = ownview("page", tmp_path / "new", "-o", tmp_path / "page.html")
    assert (done.code, done.err) == (
        2,
        f"ownview: {tmp_path}/new: no round is done yet; expected a deployment with a model\n",
    )
    done = ownview("page", folder / "server", "-o", tmp_path / "page.html", "--new-items", folder / "places")
    assert done.code == 2
    assert "--new-items: a deployment's items are those of its agreement" in done.err
    assert not (tmp_path / "page.html").exists()


def test_a_server_that_cannot_count_people_publishes_all_or_nothing(tmp_path: Path) -> None:
    server, agreed = server_folder(tmp_path / "server", "fednext", FederationOptions())
    places = {name: Place(home) for name, home in write_homes(tmp_path / "places").items()}
    Coordinator(agreed, InProcess(places), server.rounds, QUICK).run(1)
    with pytest.raises(SettingError, match=r"no sum that tells how many people had an item.* --min-people 1"):
        page(server.path, tmp_path / "page.html")
    assert page(server.path, tmp_path / "page.html", min_people=1).fidelity.overlap > 0.95
