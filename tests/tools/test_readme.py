"""The README outside of the repository: no link leads nowhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest.importorskip("hatchling", reason="hatchling, which builds the package, is not installed here")

from tools.readme import outside

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def _links(text: str) -> list[str]:
    return re.findall(r"\]\(([^)]+)\)", text)


def test_without_an_address_nothing_is_left_that_leads_nowhere() -> None:
    shown = outside(README)
    assert all(one.startswith(("https://", "#")) for one in _links(shown))
    assert "![" not in shown
    assert "[What leaves a device]" in README
    assert "What leaves a device" in shown


def test_with_an_address_every_link_leads_to_a_file_of_the_repository() -> None:
    address = "https://example.org/owner/ownview/blob/v0"
    relative = [one for one in _links(README) if not one.startswith(("http", "#"))]
    led = [one for one in _links(outside(README, address)) if "example.org" in one]
    assert len(led) == len(relative) > 10
    for one in led:
        place = one.split("/v0/", 1)[1].partition("#")[0]
        assert (ROOT / place).exists(), one
        assert ("/raw/" in one) == one.endswith(".png")
