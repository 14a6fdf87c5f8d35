"""One enrolled place that answers wrongly costs its own answer, and nothing else.

Before, a HELLO without `users`, with Infinity, or nested 100,000 deep, an upload whose tables have different rows, one
row 200,000 times and values of another type each raised out of `Coordinator.round` and ended the server; 1e30 in a sum
was added up, and the model was gone.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from ownview.deploy.coordinator import Coordinator
from ownview.deploy.envelopes.envelope import Envelope, Kind
from ownview.federation.options import FederationOptions
from ownview.messages import wire
from ownview.messages.limits import LARGEST_VALUE, LONGEST_LINE
from ownview.seam.client import Patch
from tests.deploy.world import ITEMS, write_homes
from tests.security.hostile import EVIL, Change, after_rounds, noted, raw, with_parts

DEEP = b"[" * 100_000
HELLOS: dict[str, tuple[Change, str]] = {
    "without users": (lambda one, of: noted(one, users=None), "users is missing"),
    "infinitely many": (lambda one, of: _hello(b"Infinity", of), "Infinity is no number of JSON"),
    "beyond float": (lambda one, of: _hello(b"1e999", of), "found inf"),
    "not a number": (lambda one, of: _hello(b"NaN", of), "NaN is no number of JSON"),
    "nested": (lambda one, of: _hello(DEEP + b"]" * len(DEEP), of), "65536"),
    "nested within the length of a note": (lambda one, of: _hello(b"[" * 30_000 + b"]" * 30_000, of), ""),
    "endless digits": (lambda one, of: _hello(b"9" * 60_000, of), "digits"),
    "negative": (lambda one, of: noted(one, users=-1), "found -1"),
    "a flag": (lambda one, of: noted(one, users=True), "found true"),
    "text": (lambda one, of: noted(one, users="2"), "found '2'"),
    "a table": (lambda one, of: noted(one, users={"a": 1}), "a table of 1"),
    "no table at all": (lambda one, of: raw(Kind.HELLO, b"[1]"), "damaged"),
    "no JSON": (lambda one, of: raw(Kind.HELLO, b"\xff\xfe{"), "damaged"),
    "more than is meant": (lambda one, of: noted(one, more="x"), "'more' has no meaning here"),
    "an unknown kind": (lambda one, of: raw(200, b"{}"), "200 is not a valid Kind"),
    "another kind": (lambda one, of: raw(Kind.WORK, b'{"of":"%s","users":2,"notes":[]}' % of.encode()), "WORK in"),
    "parts": (lambda one, of: with_parts(one, [b"x"] * 3), "3 parts; expected 0"),
    "4,000,000,000 parts": (
        lambda one, of: struct.pack("<3sBB3x4I8s", b"OVP", 1, 1, 0, 0, 2, 4 * 10**9, b"0" * 8) + b"{}",
        "checksum",
    ),
    "nothing": (lambda one, of: b"", "damaged message of 0 bytes"),
    "a reason of a megabyte": (lambda one, of: raw(Kind.REFUSED, b'{"why":"%s"}' % (b"x" * 10**6)), "65536"),
    "a reason that steers": (lambda one, of: _refused("\x1b[2J\r\n" + "y" * 490, of), "\\x1b[2J"),
}


def _hello(users: bytes, of: str) -> bytes:
    return raw(Kind.HELLO, b'{"agreed":"","known":0,"of":"%s","users":%s}' % (of.encode(), users))


def _refused(why: str, of: str) -> bytes:
    return Envelope(Kind.REFUSED, note={"why": why, "of": of}).pack()


@pytest.mark.parametrize("case", HELLOS)
def test_a_wrong_hello_costs_the_place_alone(case: str, tmp_path: Path) -> None:
    change, why = HELLOS[case]
    alone, _ = after_rounds(tmp_path / "alone", rounds=1)
    beside, said = after_rounds(tmp_path / "beside", {EVIL: (Kind.HELLO, change)}, rounds=1)
    assert_undisturbed(alone, beside)
    assert_said(said, why)


def _upload(table: wire.Table, name: str = "items", samples: int = 12, **more: wire.Table) -> Callable[[Any], bytes]:
    return lambda number: wire.Message(wire.UPLOAD, number, samples, {name: table, **more}).pack()


def _rows(rows: list[int], value: float = 0.1) -> wire.Rows:
    return wire.Rows(torch.tensor(rows), torch.full((len(rows), 4), value, dtype=torch.float64), ITEMS, always=True)


def _one(value: float) -> torch.Tensor:
    table = torch.zeros(ITEMS, 4, dtype=torch.float64)
    table[3, 2] = value
    return table


def _forged(form: int, *numbers: int) -> Callable[[Any], bytes]:
    """A table of items whose form announces these numbers and holds nothing."""

    def made(number: int) -> bytes:
        table = struct.pack("<4B2I", form, 8, 2, 0, ITEMS, 4) + struct.pack(f"<{len(numbers)}I", *numbers)
        return wire.Message(wire.UPLOAD, number, 12).pack()[:-4] + struct.pack("<I", 1) + b"\x05items" + table

    return made


UPLOADS: dict[str, tuple[Callable[[Any], bytes], str]] = {
    "1e30": (_upload(_one(1e30)), f"beyond {LARGEST_VALUE:g}"),
    "-1e30 by row": (_upload(_rows([1, 2], -1e30)), "beyond"),
    "not a number": (_upload(_one(float("nan"))), "not finite"),
    "infinity": (_upload(wire.Whole(_one(float("inf")))), "not finite"),
    "one row 200,000 times": (_upload(_rows([3] * 200_000)), f"200000 rows of a table of {ITEMS}"),
    "one row twice": (_upload(_rows([3, 3])), "a row that is sent twice"),
    "a row that is not there": (_upload(_rows([ITEMS])), f"row {ITEMS} of a table of {ITEMS}"),
    "another shape": (_upload(torch.ones(ITEMS, 5, dtype=torch.float64)), "shape"),
    "nine axes": (_upload(torch.ones([1] * 9, dtype=torch.float64)), "9 axes"),
    "another type": (_upload(torch.ones(ITEMS, 4)), "values of 4 bytes; expected 8"),
    "another table": (_upload(_one(1.0), "users"), "not expected"),
    "one table more": (_upload(_one(1.0), other=_one(1.0)), "not expected"),
    "no table": (lambda number: wire.Message(wire.UPLOAD, number, 12).pack(), "without 'items'"),
    "whole numbers": (_upload(wire.Words(torch.ones(ITEMS, 4, dtype=torch.long))), "modulo"),
    "a download": (lambda number: wire.Message(wire.DOWNLOAD, number, 0, {"items": _one(1.0)}).pack(), "kind 1"),
    "4,294,967,295 samples": (_upload(_one(0.1), samples=2**32 - 1), f"expected {5 * ITEMS} at most"),
    "rows that do not come": (_forged(2, 2**32 - 1), "damaged"),
    "half a matrix of 4 billion rows": (_forged(4, 2**32 - 1), "damaged"),
    "a block of 4 billion rows and columns": (_forged(3, 2**32 - 1, 2**32 - 1), "damaged"),
    "an unknown form": (_forged(9), "unknown form 9"),
    "no message": (lambda number: b"\x80\x04.", "damaged"),
}


@pytest.mark.parametrize("case", UPLOADS)
def test_a_wrong_upload_costs_the_place_alone(case: str, tmp_path: Path) -> None:
    upload, why = UPLOADS[case]

    def change(one: Envelope, of: str) -> bytes:
        return with_parts(one, [upload(one.round)] * len(one.parts))

    alone, _ = after_rounds(tmp_path / "alone")
    beside, said = after_rounds(tmp_path / "beside", {EVIL: (Kind.WORK, change)})
    assert_undisturbed(alone, beside)
    assert_said(said, why)


def test_tables_about_different_rows_cost_the_place_alone(tmp_path: Path) -> None:
    """Where rows count by who touched them: five rows were touched, and three were sent."""
    options = FederationOptions(row_mean="touched")
    touched = wire.Rows(torch.arange(5), torch.ones(5, 0), ITEMS, always=True)

    def change(one: Envelope, of: str) -> bytes:
        wrong = wire.Message(wire.UPLOAD, one.round, 12, {"items": _rows([1, 2, 3]), "@touched": touched}).pack()
        return with_parts(one, [wrong] * len(one.parts))

    alone, _ = after_rounds(tmp_path / "alone", options=options)
    beside, said = after_rounds(tmp_path / "beside", {EVIL: (Kind.WORK, change)}, options=options)
    assert_undisturbed(alone, beside)
    assert_said(said, "about different rows")


def test_a_sum_that_cannot_be_combined_goes_on_without_the_largest_upload(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Minus the ridge for an item that nobody has: the matrix has no inverse. The method declares no bounds here."""
    monkeypatch.setattr("ownview.federation.terms.require_honest", lambda upload, work, opened: None)
    item = torch.tensor([_unrated(tmp_path)])
    ridge = torch.tensor([[-100.0]], dtype=torch.float64)

    def change(one: Envelope, of: str) -> bytes:
        table = wire.Matrix(Patch(item, item, ridge), (ITEMS, ITEMS), symmetric=True)
        wrong = wire.Message(wire.UPLOAD, one.round, 0, {"pairs": table}).pack()
        return with_parts(one, [wrong, *[b""] * (len(one.parts) - 1)])

    alone, _ = after_rounds(tmp_path / "alone", rounds=1, case="fedease")
    beside, said = after_rounds(tmp_path / "beside", {EVIL: (Kind.WORK, change)}, rounds=1, case="fedease")
    assert_undisturbed(alone, beside)
    assert said[0].startswith(f"round 1: goes on without place {EVIL}, which sent what cannot be combined")


@pytest.mark.parametrize(
    ("cells", "why"),
    [
        ([[1.0, 1.0], [1.0, 1.0]], "no history has"),
        ([[1.0, 0.5], [0.5, 1.0]], "no history has"),
        ([[0.0, 1.0], [1.0, 0.0]], "no history has"),
        ([[1e6, 0.0], [0.0, 1.0]], "expected numbers from 0 to 1"),
        ([[1.0, -1.0], [-1.0, 1.0]], "expected numbers from 0 to 1"),
    ],
)
def test_a_summand_that_is_no_history_s_costs_the_place_alone(
    cells: list[list[float]], why: str, tmp_path: Path
) -> None:
    """It was added whatever it was: a column towards one item stood in 99 % of all lists afterwards."""
    items = torch.tensor([2, 5])

    def change(one: Envelope, of: str) -> bytes:
        table = wire.Matrix(Patch(items, items, torch.tensor(cells, dtype=torch.float64)), (ITEMS, ITEMS), True)
        wrong = wire.Message(wire.UPLOAD, one.round, 0, {"pairs": table}).pack()
        return with_parts(one, [wrong, *one.parts[1:]])

    alone, _ = after_rounds(tmp_path / "alone", rounds=1, case="fedease")
    beside, said = after_rounds(tmp_path / "beside", {EVIL: (Kind.WORK, change)}, rounds=1, case="fedease")
    assert_undisturbed(alone, beside)
    assert_said(said, why)


def _unrated(folder: Path) -> int:
    homes = write_homes(folder / "look", ("east", "north"), users=2)
    rated = {line.split(",")[1] for home in homes.values() for line in (home / "ratings.csv").read_text().splitlines()}
    return next(k for k in range(ITEMS) if f"i{k}" not in rated)


def test_metrics_beyond_what_they_can_be_are_left_out(tmp_path: Path) -> None:
    def change(one: Envelope, of: str) -> bytes:
        return noted(one, sums={"users": 1, "HR@10": 10**6, "NDCG@10": 0.5})

    alone, _ = after_rounds(tmp_path / "alone", hold_out=True)
    expected = alone.measure()
    beside, said = after_rounds(tmp_path / "beside", {EVIL: (Kind.MEASURE, change)}, hold_out=True)
    assert set(beside.measure()) == set(expected)
    assert all(value <= 1 for value in beside.measure().values())
    assert_said(said, "add up to more")


def test_a_server_whose_only_place_answers_wrongly_waits_for_others(tmp_path: Path) -> None:
    """It ended: "too few places answered"."""
    answers = 0

    def change(one: Envelope, of: str) -> bytes:
        nonlocal answers
        answers += 1
        return noted(one, users=None) if answers < 4 else one.pack()

    coordinator, said = after_rounds(tmp_path, {EVIL: (Kind.WORK, change)}, rounds=1, clients="1")
    assert coordinator.done == 1
    assert all(len(line) < LONGEST_LINE + 60 for line in said)


def assert_undisturbed(alone: Coordinator, beside: Coordinator) -> None:
    """Bit for bit the same rounds, of the honest places."""
    expected, found = alone.server.pack(), beside.server.pack()
    assert all(torch.equal(found[name], expected[name]) for name in expected)
    assert beside.register.places["east"] == alone.register.places["east"]
    assert set(beside.standing.counted) == {"east", "north"}


def assert_said(said: list[str], why: str) -> None:
    """One bounded line for each wrong answer, with the place's name and the reason."""
    wrong = [line for line in said if line.startswith(f"place {EVIL}: ")]
    assert wrong
    assert why in wrong[0]
    assert all(len(line) <= LONGEST_LINE + 20 for line in wrong)
    assert all("\n" not in line and "\x1b" not in line for line in wrong)
