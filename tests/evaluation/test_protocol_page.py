"""The page of protocol files names every setting, its default, its choices and what it is."""

from __future__ import annotations

from pathlib import Path

from ownview.config.settings import declared
from ownview.evaluation.protocol import Protocol

PAGE = Path(__file__).parents[2] / "docs" / "protocols.md"


def test_every_setting_of_a_protocol_is_on_its_page() -> None:
    rows = {line.split("`")[1]: line for line in PAGE.read_text().splitlines() if line.startswith("| `")}
    assert list(rows) == [one.name for one in declared(Protocol)]
    for one in declared(Protocol):
        rule = one.metadata["rule"]
        assert rule.help in rows[one.name]
        assert all(f"`{choice}`" in rows[one.name] for choice in rule.choices)
