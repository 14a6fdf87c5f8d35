"""Links and pictures of items in a page: addresses that a click opens, and small pictures that stand in the file.

A page asks no host for anything before a click: a host that serves pictures would learn what a person picks. So an
address of a picture is a link, and only pictures that are written out in the data (`data:`) are shown at once.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Sequence
from typing import NamedTuple
from urllib.parse import urlsplit

from ownview.base.display.amounts import counted
from ownview.base.items.item_table import ItemTable
from ownview.data.reading.columns import locate_known

LONGEST = 2_000
"""Characters of an address."""

LARGEST = 8_192
"""Bytes of a picture that stands in the file."""

SHARE = 0.4
"""Of the page, that pictures may take together."""

_PICTURE = re.compile(r"data:image/(?:png|jpeg|gif|webp);base64,([A-Za-z0-9+/]+={0,2})")
_MAGIC = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF8", b"RIFF")


class Links(NamedTuple):
    """links: [k] addresses, empty where there is none; pictures: likewise, or data; notes: what was left out."""

    links: list[str]
    pictures: list[str]
    notes: tuple[str, ...]

    def plain(self) -> dict[str, list[str]]:
        """For JSON: columns with something in them."""
        return {name: every for name, every in (("links", self.links), ("pictures", self.pictures)) if any(every)}


def links_of(about: ItemTable | None, items: Sequence[int], room: int) -> Links:
    """Columns `url` and `image` of some items.

    Args:
        about: what is known of all items.
        items: [k] positions of those in the page, the best known first: where room lacks, these keep their pictures.
        room: bytes of the whole page.
    """
    columns = {} if about is None else dict(about.columns)
    where = locate_known(list(columns), ("url", "image"))
    texts = {key: list(columns.values())[place] for key, place in where.items()}
    given = {key: [texts[key][item].strip() if key in texts else "" for item in items] for key in ("url", "image")}
    links = [one if _address(one) else "" for one in given["url"]]
    pictures, left = [], int(SHARE * room)
    for one in given["image"]:
        fits = _address(one) or (_small_picture(one) and len(one) <= left)
        pictures.append(one if fits else "")
        left -= len(pictures[-1])
    notes = []
    for key, every, expected in (
        ("url", links, "an address with http:// or https://"),
        ("image", pictures, f"such an address, or a PNG, JPEG, GIF or WebP as data: of {LARGEST:,} bytes at most"),
    ):
        lost = sum(bool(had) and not kept for had, kept in zip(given[key], every, strict=True))
        if lost:
            notes.append(f"{key} of {counted(lost, 'item')} is left out of the page: expected {expected}")
    return Links(links, pictures, tuple(notes))


def _address(text: str) -> bool:
    """Whether a browser would open it at a host and nowhere else: no script, no file, no password in front."""
    if not text or len(text) > LONGEST or not text.isprintable() or any(one in text for one in ' "<>\\^`{|}'):
        return False
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.username is None and parts.port != 0
    except ValueError:  # no port, no address in brackets
        return False


def _small_picture(text: str) -> bool:
    """Whether it is a picture of a kind that holds no script, written out, and small."""
    found = _PICTURE.fullmatch(text) if len(text) <= 2 * LARGEST else None
    if found is None:
        return False
    try:
        content = base64.b64decode(found[1], validate=True)
    except (binascii.Error, ValueError):
        return False
    return len(content) <= LARGEST and content.startswith(_MAGIC)
