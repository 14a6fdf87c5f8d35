"""Links and pictures of a page: a click opens them, nothing is asked for before, and nothing runs."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from ownview.base.items.item_table import ItemTable
from ownview.data.reading.readers import read
from ownview.pages.links import LARGEST, links_of
from ownview.pages.page import page
from ownview.runs.experiment import Experiment
from ownview.runs.run import run
from tests.pages.test_page import model_of

PNG = b"\x89PNG\r\n\x1a\n"
SMALL = f"data:image/png;base64,{base64.b64encode(PNG + b'x' * 90).decode()}"
HUGE = f"data:image/png;base64,{base64.b64encode(PNG + b'x' * LARGEST).decode()}"
SCRIPT = f"data:image/svg+xml;base64,{base64.b64encode(b'<svg onload=alert(1)>').decode()}"
DISGUISED = f"data:image/png;base64,{base64.b64encode(b'<svg onload=alert(1)>').decode()}"


def kept(column: str, value: str, room: int = 10**6) -> str:
    made = links_of(ItemTable({column: (value,)}), [0], room)
    return (made.links if column == "url" else made.pictures)[0]


@pytest.mark.parametrize(
    "address", ["https://shop.example/a?b=1&c=2#d", "http://shop.example:8080/x", "https://[::1]/"]
)
def test_an_address_is_a_link(address: str) -> None:
    assert kept("url", address) == address
    assert kept("image", address) == address


@pytest.mark.parametrize(
    "address",
    [
        "javascript:alert(1)", "JavaScript:alert(1)", "data:text/html,x", "file:///etc/passwd", "//shop.example/a",
        "https://", "https://me:secret@shop.example/", "https://shop.example/\nx", 'https://shop.example/"onclick=',
        "https://shop.example:99999/", "https://shop.example/" + "a" * 2_000, "ftp://shop.example/", "shop.example",
    ],
)  # fmt: skip
def test_what_is_no_address_is_left_out(address: str) -> None:
    assert kept("url", address) == ""
    assert kept("image", address) == ""


def test_small_pictures_stand_in_the_page_and_nothing_that_could_run() -> None:
    assert kept("image", SMALL) == SMALL
    assert kept("url", SMALL) == ""
    for picture in (HUGE, SCRIPT, DISGUISED, SMALL + "!", "data:image/png;base64,"):
        assert kept("image", picture) == ""


def test_the_best_known_items_keep_their_pictures_where_room_lacks() -> None:
    made = links_of(ItemTable({"cover": (SMALL, SMALL, SMALL)}), [2, 0, 1], 4 * len(SMALL))
    assert made.pictures == [SMALL, "", ""]
    assert made.notes[0].startswith("image of 2 items is left out of the page: expected")


def test_a_page_has_them_by_item_and_a_policy_that_loads_nothing(tmp_path: Path) -> None:
    rows = ["user,item,title,url,image"]
    for user in range(12):
        for item in range(5):
            address = "javascript:alert(1)" if item == 4 else f"https://shop.example/{item}"
            rows.append(f'{user},{item},Title {item},{address},"{SMALL if item == 1 else ""}"')
    (tmp_path / "orders.csv").write_text("\n".join(rows))
    data = read(tmp_path / "orders.csv")
    made = page(run(Experiment("popularity"), data=data), tmp_path / "page.html")
    text = made.path.read_text()
    model = model_of(text)
    by_title = dict(zip(model["titles"], zip(model["links"], model["pictures"], strict=True), strict=True))
    assert by_title["Title 1"] == ("https://shop.example/1", SMALL)
    assert by_title["Title 3"] == ("https://shop.example/3", "")
    assert by_title["Title 4"] == ("", "")
    assert "javascript:" not in text
    assert "img-src data:;" in text
    assert any(one.startswith("url of 1 item is left out of the page") for one in made.warnings())
