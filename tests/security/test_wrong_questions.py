"""Whatever a server sends, a place stays, refuses in one line, and holds what it held.

Before, an agreement of 1 MB could unpack to gigabytes at the place, settings could ask for tables of any size, values
of a download that are no numbers went into training, and a user could be named twice in one round.
"""

from __future__ import annotations

import json
import tracemalloc
import zlib
from pathlib import Path
from typing import Any

import pytest
import torch

from ownview.base.errors import SettingError
from ownview.deploy.agreement import Agreement
from ownview.deploy.coordinator import Coordinator
from ownview.deploy.envelopes.envelope import Envelope, Kind
from ownview.deploy.place import Place
from ownview.messages import wire
from ownview.messages.limits import LONGEST_AGREEMENT, LONGEST_LINE
from tests.deploy.in_process import InProcess
from tests.deploy.places.test_places import Noted
from tests.deploy.world import ITEMS, QUICK, agreement, write_homes
from tests.security.hostile import raw


@pytest.fixture
def worked(tmp_path: Path) -> Noted:
    """A place of two users after two rounds of FedMF."""
    noted = Noted(write_homes(tmp_path, ("north",), users=2)["north"])
    coordinator = Coordinator(agreement(), InProcess({"north": noted}), tmp_path / "server", QUICK)
    coordinator.round(1)
    coordinator.round(2)
    return noted


def _download(value: float, kind: int = wire.DOWNLOAD) -> bytes:
    table = torch.full((ITEMS, 4), value, dtype=torch.float64)
    return wire.Message(kind, 3, 0, {"items": table}).pack()


def _changed(asked: Envelope, **note: Any) -> bytes:
    return raw(asked.kind, json.dumps({**asked.note, **note}).encode(), asked.parts, asked.round, asked.counted)


def _with_download(asked: Envelope, data: bytes) -> bytes:
    return Envelope(asked.kind, 3, 2, asked.note, [data]).pack()


CASES: dict[str, tuple[Any, str]] = {
    "nested 100,000 deep": (lambda one: raw(Kind.HELLO, b"[" * 100_000 + b"]" * 100_000), "nested too deeply"),
    "a list for a note": (lambda one: raw(Kind.HELLO, b"[]"), "damaged"),
    "a moment that is infinite": (lambda one: raw(Kind.HELLO, b'{"greeting":Infinity}'), "Infinity"),
    "no clients": (lambda one: raw(Kind.WORK, b'{"agreed":"x","back":0}'), "clients is missing"),
    "clients that are text": (lambda one: _changed(one, clients="01"), "expected a list"),
    "clients that are lists": (lambda one: _changed(one, clients=[[0], [1]]), "clients[0]"),
    "a client twice": (lambda one: _changed(one, clients=[0, 0]), "twice"),
    "a client of another place": (lambda one: _changed(one, clients=[0, 7]), "no user here has the identity 7"),
    "a moment that is text": (lambda one: _changed(one, back="now"), "WORK.back"),
    "more parts than there are clients": (lambda one: Envelope(one.kind, 3, 2, one.note, [b""] * 9).pack(), "9 parts"),
    "a download of 1e30": (lambda one: _with_download(one, _download(1e30)), "beyond"),
    "a download that is no number": (lambda one: _with_download(one, _download(float("nan"))), "not finite"),
    "an upload for a download": (lambda one: _with_download(one, _download(1.0, wire.UPLOAD)), "kind 2"),
    "no download": (lambda one: _with_download(one, b"\0" * 40), "does not begin with OV"),
    "an agreement that is none": (lambda one: _terms(b"\x78\x9c"), "damaged agreement"),
    "an agreement with words behind it": (lambda one: _terms(agreement().pack() + b"more"), "behind its end"),
    "an agreement that lacks words": (lambda one: _terms(zlib.compress(b'{"method":"fedmf"}')), "is missing"),
    "an agreement nested deeply": (lambda one: _terms(zlib.compress(b"[" * 10**6)), "nested too deeply"),
    "the same item twice": (lambda one: _terms(_agreed(items=["a", "a"])), "twice"),
    "clients without end": (lambda one: _terms(_agreed(clients=10**30)), "agreement.clients"),
    "settings without end": (lambda one: _terms(_agreed(settings={"embedding_size": [[[1]]]})), "agreement.settings"),
    "a setting that is not known": (lambda one: _terms(_agreed(federation={"privat": "x"})), "did you mean 'privacy'"),
}


def _terms(agreed: bytes) -> bytes:
    return Envelope(Kind.TERMS, note={"identities": [0, 1]}, parts=[agreed, b""]).pack()


def _agreed(**changed: Any) -> bytes:
    values = json.loads(zlib.decompress(agreement().pack()))
    return zlib.compress(json.dumps({**values, **changed}).encode())


@pytest.mark.parametrize("case", CASES)
def test_a_wrong_question_is_refused_and_changes_nothing(case: str, worked: Noted) -> None:
    made, why = CASES[case]
    asked, answer = worked.last(Kind.WORK)
    before = {slot: one.serial for slot, one in worked.place.generations.slots.items()}
    refused = Envelope.unpack(worked.place.answer(made(Envelope.unpack(asked))))
    assert refused.kind is Kind.REFUSED
    assert why in refused.note["why"]
    assert len(refused.note["why"]) <= LONGEST_LINE
    assert {slot: one.serial for slot, one in worked.place.generations.slots.items()} == before
    assert worked.place.answer(asked) == answer


def test_an_agreement_unpacks_to_no_more_than_it_may(tmp_path: Path) -> None:
    home = write_homes(tmp_path, ("north",), users=2)["north"]
    packing = zlib.compressobj(1)
    bomb = b"".join([packing.compress(bytes(1 << 24)) for _ in range(24)] + [packing.flush()])
    assert len(bomb) < 1 << 21
    place = Place(home)
    tracemalloc.start()
    try:
        refused = Envelope.unpack(place.answer(_terms(bomb)))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert "unpacks to more than" in refused.note["why"]
    assert peak < 3 * LONGEST_AGREEMENT


@pytest.mark.parametrize("settings", [{"embedding_size": 10**12}, {"embedding_size": 2**40}])
def test_settings_ask_for_no_more_memory_than_a_place_gives(settings: dict[str, Any], tmp_path: Path) -> None:
    home, said = write_homes(tmp_path, ("north",), users=2)["north"], list[str]()
    place = Place(home, said.append)
    greedy = Agreement("fedmf", 30, tuple(f"i{k}" for k in range(ITEMS)), settings=settings)
    refused = Envelope.unpack(place.answer(_terms(greedy.pack())))
    assert "its values take" in refused.note["why"]
    assert place.agreement is None
    assert not (home / "state" / "agreement").exists()


def test_an_agreement_that_no_place_would_read_is_refused_where_it_is_made() -> None:
    long = Agreement("fedmf", 30, ("a", "b"), titles=("x" * 10_001, "y"))
    with pytest.raises(SettingError, match=r"agreement.titles\[0\]: found text of 10001 characters"):
        long.pack()
    many = tuple(f"{k:01000d}" for k in range(LONGEST_AGREEMENT // 1000 + 1))
    with pytest.raises(SettingError, match="items with their titles take"):
        Agreement("fedmf", 30, many).pack()
