"""A deployment that lives long: its logs stay short, nothing is held on to, and nothing personal is in them."""

from __future__ import annotations

import gc
import json
import stat
import threading
import tracemalloc
from pathlib import Path

import pytest
from benchmarks.soak import BEGIN, END, PAGE, RESULTS, soak, table

from ownview.base.errors import DataError
from ownview.base.files import append_bounded
from ownview.deploy.coordination import participants
from ownview.deploy.coordination.participants import read_log
from ownview.deploy.coordinator import Coordinator
from ownview.deploy.place import Place
from ownview.deploy.places import home as homes_of_places
from ownview.deploy.places.home import SENT, Home, added_up
from ownview.deploy.places.sent_messages import sent_messages
from tests.deploy.in_process import InProcess
from tests.deploy.world import QUICK, agreement, assert_equal, replayed, write_homes

SHORT = 4000
"""Bytes of the logs, in the place of millions."""


def test_logs_stay_short_and_totals_stay_true(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (participants, homes_of_places):
        monkeypatch.setattr(module, "MOST_OF_LOG", SHORT)
    agreed, homes = agreement(), write_homes(tmp_path, users=2)
    bytes_of_east, answers = 0, 0

    class Counted(Place):
        def answer(self, message: bytes) -> bytes:
            nonlocal bytes_of_east, answers
            found = super().answer(message)
            bytes_of_east, answers = bytes_of_east + len(found), answers + 1
            return found

    places = {name: (Counted if name == "east" else Place)(home) for name, home in homes.items()}
    server, objects = tmp_path / "server", list[int]()
    coordinator = Coordinator(agreed, InProcess(places), server, QUICK)
    for number in range(1, 61):
        coordinator.round(number)
        if number in (20, 60):
            gc.collect()
            objects.append(len(gc.get_objects()))
        longest = 600  # bytes of a line
        assert (server / "participants.jsonl").stat().st_size <= SHORT + longest
        assert (homes["east"] / "state" / "sent.jsonl").stat().st_size <= SHORT + longest
    assert objects[1] - objects[0] < 200, "objects of rounds that are over are held on to"
    sent = sent_messages(homes["east"])
    assert (sent.number, sent.total) == (answers, bytes_of_east)
    assert len(sent.messages) < answers
    log = read_log(server / "participants.jsonl")
    assert [one.round for one in log] == list(range(log[0].round, 61))
    assert log[0].round > 1
    with pytest.raises(DataError, match=f"begins with round {log[0].round}; expected one from round 1 on"):
        replayed(agreed, homes, server)
    again = Coordinator(agreed, InProcess(places), server, QUICK)
    assert again.done == 60
    assert again.round(61).round == 61


def test_what_a_kill_cut_short_is_not_added_up() -> None:
    said = json.dumps({"at": "now", "kind": "upload", "round": 3, "bytes": 7})
    assert added_up([b"{\n", "{é".encode()[:-1]]) == ""
    assert json.loads(added_up([f"{said}\n".encode(), b"{\n"]))["messages"] == 1


def test_a_log_is_cut_at_the_end_of_a_line_and_its_newest_line_stays(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_bytes(b"aaaa\nbbbb\ncccc\ndd")  # the last cut short
    append_bounded(log, "e" * 100, 16, lambda older: b"+".join(one.strip() for one in older).decode())
    assert log.read_text() == "aaaa+bbbb\ncccc\ndd\n" + "e" * 100 + "\n"
    append_bounded(log, "f", 16)
    assert log.read_text() == "f\n", "of a line longer than all others nothing newer is left"
    assert [one.name for one in tmp_path.iterdir()] == ["log.jsonl"]
    assert stat.S_IMODE(log.stat().st_mode) == 0o600


def test_a_log_is_cut_without_being_held_in_memory(tmp_path: Path) -> None:
    home = Home(tmp_path)
    line = json.dumps({"at": "2026-01-01T00:00:00+00:00", "kind": "upload", "round": 1, "bytes": 5})
    number = 2**22 // len(line)
    (tmp_path / "state" / SENT).write_text(f"{line}\n" * number)
    assert (tmp_path / "state" / SENT).stat().st_size > 2**22
    tracemalloc.start()
    try:
        append_bounded(home.state / SENT, line, 2**22, added_up)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most < 2**20
    assert sum(one.get("messages", 1) for one in home.sent()) == number + 1


def test_a_log_that_is_short_is_what_it_was(tmp_path: Path) -> None:
    agreed, homes = agreement(), write_homes(tmp_path, users=2)
    places = {name: Place(home) for name, home in homes.items()}
    coordinator = Coordinator(agreed, InProcess(places), tmp_path / "server", QUICK)
    coordinator.run(3)
    assert all("messages" not in one for one in Home(homes["east"]).sent())
    assert_equal(agreed, coordinator, places, replayed(agreed, homes, tmp_path / "server"))


def test_rounds_over_https_leave_no_thread_file_or_name_behind(tmp_path: Path) -> None:
    """The benchmark of docs/deploy.md at a size of seconds."""
    threads = threading.active_count()
    found = soak(12, 4, tmp_path)
    assert found["rounds with all users"] == 12
    assert found["names found"] == 0
    measured = found["measured"]
    assert [one["round"] for one in measured] == [1, 4, 8, 12]
    assert measured[-1]["open_files"] <= measured[1]["open_files"] + 1
    assert measured[-1]["threads"] == measured[1]["threads"]
    assert threading.active_count() <= threads + 1
    assert "item-" in (tmp_path / "east" / "ratings.csv").read_text(), "there are names to be looked for"


def test_the_page_shows_the_record() -> None:
    found = json.loads(RESULTS.read_text(encoding="utf-8"))
    assert PAGE.read_text(encoding="utf-8").split(BEGIN)[1].split(END)[0] == table(found)
    assert found["rounds with all users"] == found["rounds"]
    assert found["names found"] == 0
