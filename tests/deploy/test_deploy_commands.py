"""`ownview deploy`: what it writes, what it says, and what it refuses in one line."""

from __future__ import annotations

import json
import re
import shutil
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from ownview.deploy import carriers
from ownview.deploy.folders import PlaceFolder, ServerFolder
from ownview.deploy.running import at_work_on, process_at
from tests.outcome import Outcome

Call = Callable[..., Outcome]


@pytest.fixture
def catalogue(tmp_path: Path) -> Path:
    file = tmp_path / "items.csv"
    file.write_text("item,title\na,Emma\nb,Persuasion\nc,\na,Emma again\n")
    return file


@pytest.fixture
def init(ownview: Call, tmp_path: Path, catalogue: Path) -> Call:
    """`ownview deploy init FOLDER fedmf` on plain TLS, with what else is said."""

    def call(*words: str) -> Outcome:
        return ownview(
            "deploy", "init", tmp_path / "books", "fedmf", "--items", catalogue, "--transport", "tls", *words
        )

    return call


def test_init_writes_folders_and_says_what_goes_where(init: Call, tmp_path: Path) -> None:
    done = init("--places", "east,west", "--host", "books.example", "--port", "9001", "--rounds", "7", "--users", "9")
    assert done.code == 0
    for words in ("carry", "ownview deploy client east", "ownview deploy server", "ca.key stays here"):
        assert words in done.out
    server = ServerFolder(tmp_path / "books")
    plan, conduct = server.plan()
    assert (plan.address, plan.listen, plan.rounds, conduct.quorum) == (("books.example", 9001), "0.0.0.0", 7, 1.0)
    agreed = server.agreement()
    assert (agreed.items, agreed.titles, agreed.clients) == (("a", "b", "c"), ("Emma", "Persuasion", "c"), 9)
    assert set(server.keys.names().values()) == {"east", "west"}
    for name in ("east", "west"):
        place = PlaceFolder(server.places / name)
        assert place.membership().values() == {
            "transport": "tls", "host": "books.example", "port": 9001, "name": name,
        }  # fmt: skip
        assert {one.name for one in place.certificates.iterdir()} == {"ca.crt", f"{name}.crt", f"{name}.key"}
        assert stat.S_IMODE((place.certificates / f"{name}.key").stat().st_mode) == 0o600
        assert not (server.certificates / f"{name}.key").exists(), "a key is its place's alone"


def test_places_are_added_later_and_names_are_taken_once(init: Call, ownview: Call, tmp_path: Path) -> None:
    assert init("--places", "east").code == 0
    assert ownview("deploy", "init", tmp_path / "books", "--places", "north").code == 0
    assert set(ServerFolder(tmp_path / "books").keys.names().values()) == {"east", "north"}
    again = ownview("deploy", "init", tmp_path / "books", "--places", "south,east")
    assert again.code == 2
    assert "--places east: is a place already" in again.err
    assert not (tmp_path / "books" / "places" / "south").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--transport", "pigeon"], "transport='pigeon'"),
        (["--places", "ca"], "neither 'ca' nor 'server'"),
        (["--places", "a/b"], "expected letters"),
        (["--set", "embedding=3"], "embedding_size"),
        (["--quorum", "0"], "quorum=0"),
    ],
)
def test_init_refuses_in_one_line(init: Call, tmp_path: Path, words: list[str], said: str) -> None:
    done = init(*words)
    assert done.code == 2
    assert said in done.err


def test_init_refuses_methods_whose_server_needs_more_than_sums(ownview: Call, tmp_path: Path) -> None:
    done = ownview("deploy", "init", tmp_path / "books", "gpfedrec", "--transport", "tls")
    assert done.code == 2
    assert "gpfedrec cannot be deployed" in done.err
    assert not (tmp_path / "books").exists()


def test_without_flower_another_transport_is_named(init: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ownview.deploy.flower.surroundings.find_spec", lambda name: None)
    done = init("--transport", "flower")
    assert done.code == 2
    assert "--transport tls" in done.err
    assert not (tmp_path / "books").exists()
    carriers.require_carrier("tls")


def test_status_and_stop_of_a_server_and_a_place(init: Call, ownview: Call, tmp_path: Path) -> None:
    init("--places", "east")
    server, place = tmp_path / "books", tmp_path / "books" / "places" / "east"
    told = ownview("deploy", "status", server)
    assert "nobody is at work" in told.out
    assert "0 of 20 rounds are done" in told.out
    assert "east: has not come yet" in told.out
    found = json.loads(ownview("deploy", "status", place, "--json").out)
    assert (found["name"], found["process"], found["round"]) == ("east", None, 0)
    with at_work_on(server):
        assert process_at(server) is not None
        assert "is at work" in ownview("deploy", "status", server).out
    assert process_at(server) is None
    stopped = ownview("deploy", "stop", server)
    assert stopped.code == 2
    assert "nobody is at work there" in stopped.err
    nothing = ownview("deploy", "status", tmp_path)
    assert nothing.code == 2
    assert "neither a server's folder nor a place's" in nothing.err


def test_a_client_without_ratings_says_what_it_expects(init: Call, ownview: Call, tmp_path: Path) -> None:
    init("--places", "east")
    done = ownview("deploy", "client", tmp_path / "books" / "places" / "east")
    assert done.code == 2
    assert "ratings.csv: is not there" in done.err


def test_a_catalogue_without_items_is_refused_by_its_line(init: Call, catalogue: Path) -> None:
    catalogue.write_text("item,title\na,Emma\n,Persuasion\n")
    done = init()
    assert done.code == 2
    assert "line 3: an item without an id" in done.err


@pytest.mark.parametrize("damaged", ["agreement", "rounds/register.json", "places/east/state/members.json"])
def test_a_damaged_file_is_named_in_one_line(init: Call, ownview: Call, tmp_path: Path, damaged: str) -> None:
    init("--places", "east")
    server, file = tmp_path / "books", tmp_path / "books" / damaged
    file.parent.mkdir(exist_ok=True)
    for content in (b"[17]", b'{"users": 3', b"\0\xff"):
        file.write_bytes(content)
        told = ownview("deploy", "status", server / "places" / "east" if "places" in damaged else server)
        assert (told.code, len(told.err.splitlines())) == (2, 1)
        assert f"{file}: " in told.err
        assert "expected" in told.err
    if damaged == "agreement":
        file.unlink()
        assert "cannot be read" in ownview("deploy", "status", server).err


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not here")
def test_the_units_of_the_documentation_are_sound(tmp_path: Path) -> None:
    """Their programs are replaced by one that is there: systemd looks for it."""
    page = (Path(__file__).parents[2] / "docs" / "deploy.md").read_text(encoding="utf-8")
    units = re.findall(r"`/etc/systemd/system/([a-z-]+\.service)`:\n\n```ini\n(.*?)```", page, re.DOTALL)
    assert [name for name, _ in units] == ["ownview-server.service", "ownview-place.service"]
    for name, unit in units:
        (tmp_path / name).write_text(re.sub(r"ExecStart=\S+", "ExecStart=/bin/sh", unit), encoding="utf-8")
    files = [tmp_path / name for name, _ in units]
    checked = subprocess.run(["systemd-analyze", "verify", *files], capture_output=True, text=True, check=False)
    complaints = [line for line in checked.stderr.splitlines() if line.startswith("ownview-")]
    assert not complaints
