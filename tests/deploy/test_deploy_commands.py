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

from ownview.deploy.folders import Membership, PlaceFolder, ServerFolder
from ownview.deploy.https.limits import Limits
from ownview.deploy.identities.invitations import Invitation
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
    """`ownview deploy init FOLDER fedmf`, with what else is said."""

    def call(*words: str) -> Outcome:
        return ownview("deploy", "init", tmp_path / "books", "fedmf", "--items", catalogue, *words)

    return call


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """The folder of a place that has joined."""
    folder = PlaceFolder(tmp_path / "east")
    folder.path.mkdir()
    folder.keep(Membership(name="east"))
    return folder.path


def test_init_writes_folders_and_says_what_goes_where(init: Call, tmp_path: Path) -> None:
    done = init("--places", "east,west", "--host", "books.example", "--port", "9001", "--rounds", "7", "--users", "9")
    assert done.code == 0
    for words in ("carry", "ownview deploy join east.json east", "ownview deploy server", "ca.key stays here"):
        assert words in done.out
    server = ServerFolder(tmp_path / "books")
    plan, conduct = server.plan()
    assert (plan.address, plan.listen, plan.rounds, conduct.quorum) == (("books.example", 9001), "0.0.0.0", 7, 1.0)
    assert server.limits() == Limits()
    agreed = server.agreement()
    assert (agreed.items, agreed.titles, agreed.clients) == (("a", "b", "c"), ("Emma", "Persuasion", "c"), 9)
    assert server.keys.names() == {}, "no place has joined yet"
    for name in ("east", "west"):
        file = server.invitations / f"{name}.json"
        invitation = Invitation.read(file)
        assert (invitation.name, invitation.host, invitation.port) == (name, "books.example", 9001)
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert not (server.certificates / f"{name}.key").exists(), "the server never has a place's key"


@pytest.mark.parametrize(
    ("words", "rule", "said"),
    [
        ((), "bounded:4", "robust=bounded:4: no client moves more than usual"),
        (("--set", "robust=none"), "none", "one client that lies can move everybody's lists"),
        (("--set", "robust=clipped:2"), "clipped:2", ""),
    ],
)
def test_a_deployment_bounds_liars_unless_it_says_otherwise(
    init: Call, tmp_path: Path, words: tuple[str, ...], rule: str, said: str
) -> None:
    done = init(*words)
    assert done.code == 0
    assert said in done.words
    assert ServerFolder(tmp_path / "books").agreement().terms().options.robust == rule
    assert ("can move everybody's lists" in done.words) == (rule == "none")


def test_places_are_invited_later_and_names_are_taken_once(init: Call, ownview: Call, tmp_path: Path) -> None:
    assert init().code == 0
    books = tmp_path / "books"
    assert "ownview deploy join north.json north" in ownview("deploy", "invite", books, "north").out
    ServerFolder(books).keys.enrol("east", "ab" * 32)
    again = ownview("deploy", "invite", books, "south", "east")
    assert again.code == 2
    assert "place east: is a place already" in again.err
    assert not (books / "invitations" / "south.json").exists()
    unknown = ownview("deploy", "revoke", books, "eats")
    assert unknown.code == 2
    assert "did you mean 'east'" in unknown.err
    assert "counts no more" in ownview("deploy", "revoke", books, "east").out
    assert ServerFolder(books).keys.names() == {}
    assert ownview("deploy", "invite", books, "east").code == 0
    assert init().code == 2, "a folder that is there is not made anew"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--transport", "pigeon"], "transport='pigeon'"),
        (["--places", "ca"], "neither 'ca' nor 'server'"),
        (["--places", "a/b"], "letters, digits"),
        (["--set", "embedding=3"], "embedding_size"),
        (["--quorum", "0"], "quorum=0"),
    ],
)
def test_init_refuses_in_one_line(init: Call, tmp_path: Path, words: list[str], said: str) -> None:
    done = init(*words)
    assert done.code == 2
    assert said in done.err


def test_init_refuses_methods_whose_server_needs_more_than_sums(ownview: Call, tmp_path: Path) -> None:
    done = ownview("deploy", "init", tmp_path / "books", "gpfedrec")
    assert done.code == 2
    assert "gpfedrec cannot be deployed" in done.err
    assert not (tmp_path / "books").exists()


@pytest.mark.parametrize(
    ("transport", "why"),
    [("flower", "Flower's private interfaces"), ("tls", "half-open connections")],
)
def test_carriers_that_are_gone_say_why(init: Call, ownview: Call, tmp_path: Path, transport: str, why: str) -> None:
    done = init("--transport", transport)
    assert (done.code, len(done.err.splitlines())) == (2, 1)
    assert why in done.err
    assert "expected 'https'" in done.err
    assert not (tmp_path / "books").exists()
    init()
    file = tmp_path / "books" / "deployment.toml"
    file.write_text(file.read_text().replace('"https"', f'"{transport}"'))
    assert why in ownview("deploy", "server", tmp_path / "books").err


def test_without_its_packages_the_extra_is_named(init: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ownview.deploy.carriers.find_spec", lambda name: None if name == "uvicorn" else name)
    done = init()
    assert done.code == 2
    assert 'uvicorn is not installed; expected pip install -e ".[deploy]"' in done.err


def test_status_and_stop_of_a_server_and_a_place(init: Call, ownview: Call, tmp_path: Path, place: Path) -> None:
    init()
    server = tmp_path / "books"
    ServerFolder(server).keys.enrol("east", "ab" * 32)
    outcome = ownview("deploy", "status", server)
    assert "no process is at work" in outcome.out
    assert "0 of 20 rounds are done" in outcome.out
    assert "east: has not come yet" in outcome.out
    found = json.loads(ownview("deploy", "status", place, "--json").out)
    assert (found["name"], found["process"], found["round"]) == ("east", None, 0)
    with at_work_on(server):
        assert process_at(server) is not None
        assert "is at work" in ownview("deploy", "status", server).out
    assert process_at(server) is None
    stopped = ownview("deploy", "stop", server)
    assert stopped.code == 2
    assert "no process is at work there" in stopped.err
    nothing = ownview("deploy", "status", tmp_path)
    assert nothing.code == 2
    assert "neither a server's folder nor a place's" in nothing.err


def test_a_client_without_ratings_says_what_it_expects(ownview: Call, place: Path) -> None:
    done = ownview("deploy", "client", place)
    assert done.code == 2
    assert "ratings.csv: is not there" in done.err


def test_a_catalogue_without_items_is_refused_by_its_line(init: Call, catalogue: Path) -> None:
    catalogue.write_text("item,title\na,Emma\n,Persuasion\n")
    done = init()
    assert done.code == 2
    assert "line 3: an item without an id" in done.err


@pytest.mark.parametrize(
    "damaged", ["agreement", "rounds/register.json", "certificates/keys.json", "state/members.json"]
)
def test_a_damaged_file_is_named_in_one_line(
    init: Call, ownview: Call, tmp_path: Path, place: Path, damaged: str
) -> None:
    init()
    server = tmp_path / "books"
    folder = place if damaged.startswith("state") else server
    file = folder / damaged
    file.parent.mkdir(exist_ok=True)
    for content in (b"[17]", b'{"users": 3', b"\0\xff"):
        file.write_bytes(content)
        outcome = ownview("deploy", "status", folder)
        assert (outcome.code, len(outcome.err.splitlines())) == (2, 1)
        assert f"{file}: " in outcome.err
        assert "expected" in outcome.err
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
