"""The reference is text, current, and names everything public."""

from __future__ import annotations

import re

from tools.reference import PAGES, pages

import ownview


def test_pages_are_what_the_code_says() -> None:
    for file, text in pages().items():
        assert (PAGES / file).read_text(encoding="utf-8") == text, f"{file}: run python -m tools.reference"
        assert not re.search("0x[0-9a-f]{6}", text)


def test_every_public_name_is_there() -> None:
    text = "".join(pages().values())
    missing = [name for name in ownview.__all__ if not re.search(rf"^## {name}$|`{name}`", text, re.MULTILINE)]  # type: ignore[attr-defined]
    assert missing == ["__version__"]


def test_what_a_class_has_is_listed() -> None:
    text = "".join(pages().values())
    for call in (
        "weights(known)",
        "choose(seen, wanted)",
        "params(world)",
        "recommend(user, k=10",
        "to_frame()",
        "fit(",
    ):
        assert f"- `{call}" in text, call
    for leftover in ("ForwardRef", "*args, kwargs", " _kept"):
        assert leftover not in text
