"""Exports that people have, read by the client's module in Node: which service, in which order, and what matched."""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import Any

import pytest

from tests.one_message.federations import PACKAGE

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
TITLES = [
    "Emma \u2014 Jane Austen", "Emma \u2014 Alexander McCall Smith",
    "The Hobbit: or There and Back Again \u2014 J. R. R. Tolkien",
    "Les Misérables \u2014 Victor Hugo", "Heat (1995)", "Heat (1986)", "Stranger Things", "Dark", "Alien (1979)",
]  # fmt: skip
SCRIPT = """
const { matched, readExport } = await import(process.argv[1] + "/index.js");
const { readFileSync } = await import("node:fs");
const { text, titles } = JSON.parse(readFileSync(0, "utf8"));
try {
  const { service, rows } = matched(readExport(text), titles);
  console.log(JSON.stringify({ service, rows: rows.map((row) => [row.title, row.place]) }));
} catch (error) { console.log(JSON.stringify({ error: error.message })); }
"""
CASES: dict[str, tuple[str, str, list[Any]]] = {
    "goodreads": (
        "Book Id,Title,Author,My Rating,Date Read,Date Added,Exclusive Shelf\r\n"
        '1,Emma,"McCall Smith, Alexander",4,2020/02/03,2019/01/01,read\r\n'
        '2,"The Hobbit (Middle-earth, #0)",J.R.R. Tolkien,5,2018/05/06,2018/01/01,read\r\n'
        '3,Les Miserables,Victor Hugo,5,,2017/01/01,read\r\n4,Emma,Jane Austen,0,,2021/01/01,to-read\r\n'
        "5,Emma,Someone Else,3,2021/01/01,2021/01/01,read\r\n",
        "Goodreads",
        [["Les Miserables", 3], ["The Hobbit (Middle-earth, #0)", 2], ["Emma", 1], ["Emma", -1]],
    ),
    "letterboxd": (
        "Date,Name,Year,Letterboxd URI\n2024-03-01,Heat,1995,https://b/1\n2023-01-01,Alien,1979,https://b/2\n",
        "Letterboxd",
        [["Alien", 8], ["Heat", 4]],
    ),
    "netflix": (
        'Title,Date\n"Stranger Things: Season 1: ""Chapter One""","3/4/21"\n"Dark: Season 2: Ghosts","12/31/20"\n',
        "Netflix",
        [["Dark", 7], ["Stranger Things", 6]],
    ),
    "trakt": (
        json.dumps([
            {"watched_at": "2022-05-01T10:00:00.000Z", "type": "movie", "movie": {"title": "Heat", "year": 1986}},
            {"watched_at": "2021-05-01T10:00:00.000Z", "type": "episode", "show": {"title": "Dark", "year": 2017}},
        ]),
        "Trakt",
        [["Dark", 7], ["Heat", 5]],
    ),
    "plain": ("title;timestamp\nAlien;1600000000\nUnknown;1500000000\n", "a table", [["Unknown", -1], ["Alien", 8]]),
    "without dates": ("\ufefftitle\ndark\nALIEN (1979)\n", "a table", [["dark", 7], ["ALIEN (1979)", 8]]),
}  # fmt: skip


def _read(text: str) -> dict[str, Any]:
    line = ["node", "--input-type=module", "-e", SCRIPT, str(PACKAGE)]
    question = json.dumps({"text": text, "titles": TITLES})
    done = subprocess.run(line, input=question, capture_output=True, text=True, check=True, timeout=60)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("name", CASES)
def test_an_export_is_known_ordered_and_matched(name: str) -> None:
    text, service, rows = CASES[name]
    assert _read(text) == {"service": service, "rows": rows}


@pytest.mark.parametrize("text", ["", "a,b\n1,2\n", '[1, "x"]', "\x00\x01"])
def test_what_is_no_export_is_one_line(text: str) -> None:
    assert "expected" in _read(text)["error"]
