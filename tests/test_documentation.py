"""The pages hang together: links lead somewhere, the site lists what is there, the README begins at the start."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ownview.studies.bench.suite import asked_of, suites

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
_CODE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)


def test_links_lead_somewhere() -> None:
    links = [
        (page, address)
        for page in PAGES
        for address in re.findall(r"\]\(([^)\s]+)\)", _CODE.sub("", page.read_text(encoding="utf-8")))
        if not address.startswith(("http://", "https://", "#"))
    ]
    assert len(links) > 200
    for page, address in links:
        found = page.parent / address.partition("#")[0]
        assert found.exists(), f"{page.name}: {address}"
        assert page.parent == ROOT or found.resolve().is_relative_to(ROOT / "docs"), f"{address} is not in the site"


def test_files_that_are_named_are_there() -> None:
    path = re.compile(r"`((?:src/ownview|examples|tests|benchmarks|reproduction)/[\w/.-]+\.(?:py|toml))`")
    named = [(page, name) for page in PAGES for name in path.findall(page.read_text(encoding="utf-8"))]
    assert len(named) > 50
    absent = [f"{page.name}: {name}" for page, name in named if not (ROOT / name).is_file()]
    assert [one for one in absent if not re.search("[A-Z]{4}", one.partition(": ")[2])] == []  # METHOD: any name


def test_extras_are_installed_from_a_clone_and_exist() -> None:
    """`pip install "ownview[...]"` asks a package index for a name that is not ours there."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    sources = [*(ROOT / "src").rglob("*.py"), *(ROOT / "examples").rglob("*.py")]
    named = set()
    for file in [*PAGES, *sources]:
        text = file.read_text(encoding="utf-8")
        if file.name == "what-we-got-wrong.md":  # which quotes what we printed
            continue
        assert not re.search(r"""pip install\s+["']?ownview\[\w""", text), file
        named |= set(re.findall(r"""pip install -e\s["']\.\[(\w+)\]""", text))
        named |= set(re.findall(r"""how_to_install\(["'](\w+)["']\)""", text))
    assert named, "nothing was found: the patterns are out of date"
    assert named <= set(declared)


def test_suites_have_as_many_runs_as_their_page_says() -> None:
    rows = re.findall(r"^\| `(\w+)` \|.*\| (\d+) \|$", (ROOT / "docs" / "bench.md").read_text(encoding="utf-8"), re.M)
    assert dict(rows) == {suite.name: str(len(asked_of(suite))) for suite in suites()}


def _listed(entries: list[Any]) -> Iterator[str]:
    for entry in entries:
        for where in entry.values():
            yield from [where] if isinstance(where, str) else _listed(where)


def test_the_site_lists_pages_that_are_there_and_every_method() -> None:
    nav = tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))["project"]["nav"]
    listed = list(_listed(nav))
    assert len(listed) == len(set(listed))
    assert all((ROOT / "docs" / name).is_file() for name in listed)
    methods = {f"methods/{path.name}" for path in (ROOT / "docs" / "methods").glob("*.md")}
    assert methods <= set(listed), "a new page of a method is one line of nav in zensical.toml"


def test_the_readme_says_what_for_whom_and_how_to_start_on_its_first_screen() -> None:
    first = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()[:30]
    text = "\n".join(first)
    assert "Python library" in text
    for words in ("You have a file", "ownview start", "You do research", "You have an idea", "pip install"):
        assert words in text
    titles = [line for line in (ROOT / "README.md").read_text(encoding="utf-8").splitlines() if line.startswith("## ")]
    order = ("## For whom", "## What it reaches", "## Start without data", "## Use it", "## How it is measured")
    assert [title for title in titles if title in order] == list(order), "research comes after what it is for"


def test_every_row_of_the_page_on_security_names_a_test_that_is_there() -> None:
    text = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith("| ") and not line.startswith(("| what", "| ---"))]
    assert len(rows) > 15
    named = set()
    for row in rows:
        found = re.findall(r"`(tests/[\w/]+\.py)`", row.rsplit(" | ", 1)[-1])
        assert found, f"no test is named: {row}"
        named |= set(found)
    for name in named:
        assert re.search(r"^(?:async )?def test_", (ROOT / name).read_text(encoding="utf-8"), re.M), name
    attacks = {f"tests/security/{path.name}" for path in (ROOT / "tests" / "security").glob("test_*.py")}
    assert attacks <= named, "an attack is one row of docs/security.md"


def test_every_file_states_one_version() -> None:
    from ownview.base.version import __version__

    packages = [json.loads(one.read_text(encoding="utf-8")) for one in ROOT.glob("packages/*/package.json")]
    assert {one["version"] for one in packages} == {__version__}
    assert f"\nversion: {__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)[0] == __version__
