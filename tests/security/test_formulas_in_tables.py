"""Titles and ids from data are no formulas in a spreadsheet.

Before, a title such as `=cmd|...` stood as it was in lists.csv, users.csv and items.csv: in a spreadsheet it was one
question away from running.
"""

from __future__ import annotations

import csv
import runpy
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ownview.base.display.cells import as_cell, from_cell
from ownview.runs.files.folder import RunFolder
from tests.outcome import Outcome

FORMULAS = ("=cmd|' /C calc'!A0", "+1+1", "-1+1", "@SUM(A1)", "\t=1", "'=quoted", "''Round Midnight", "plain")
BEGINNINGS = ("=", "+", "-", "@", "\t", "\r")


@given(st.text(alphabet="'=+-@\t\ra1", max_size=6))
def test_no_cell_begins_as_a_formula_and_the_way_back_is_exact(text: str) -> None:
    assert not as_cell(text).startswith(BEGINNINGS)
    assert from_cell(as_cell(text)) == text


def _write_world(path: Path) -> None:
    """Items, users and titles of which some are formulas; everybody has eight of twelve items."""
    items = [*FORMULAS, *(f"i{k}" for k in range(4))]
    with path.open("w", encoding="utf-8", newline="") as out:
        table = csv.writer(out)
        table.writerow(("user", "item", "timestamp", "title"))
        for user in range(12):
            name = f"={user}" if user % 2 else f"u{user}"
            for place in range(8):
                item = items[(user + place) % len(items)]
                table.writerow((name, item.strip(), place, f"={item.strip()}"))


def _cells(path: Path) -> list[str]:
    with path.open(encoding="utf-8", newline="") as lines:
        return [cell for row in csv.reader(lines) for cell in row]


def _number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def test_files_for_people_hold_no_formulas_and_are_read_back_as_they_were(
    tmp_path: Path, ownview: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    _write_world(Path("world.csv"))
    assert ownview("run", "fedease", "--data", "world.csv", "--out", "run").code == 0
    assert ownview("recommend", "run", "--all", "-k", "3", "-o", "lists.csv").code == 0
    exported = ownview("export", "run", "-o", "model")
    assert exported.code == 0, exported
    for file in ("lists.csv", "run/users.csv", "model/items.csv"):
        cells = _cells(Path(file))
        assert any(cell.startswith("'=") for cell in cells), f"{file}: the data has formulas, they must be in it"
        assert not [cell for cell in cells if cell.startswith(BEGINNINGS) and not _number(cell)], file
    users = RunFolder(Path("run")).read_users()["user"]
    assert set(users) == {f"={user}" if user % 2 else f"u{user}" for user in range(12)}
    model = runpy.run_path("model/scorer.py")["Model"](Path("model"))
    assert {item for item, _ in model.items} <= {*(one.strip() for one in FORMULAS), "i0", "i1", "i2", "i3"}
    assert any(title.startswith("=") for _, title in model.items)
