"""The page as text, and the command that writes it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from ownview.base.offline_page import as_script
from ownview.reports.gather import SCRIPTS, gather, render
from ownview.reports.reading import find_runs
from tests.outcome import Outcome
from tests.reports.worlds import HOSTILE

OwnviewCommand = Callable[..., Outcome]
ASSETS = Path(__file__).resolve().parents[2] / "src" / "ownview" / "reports" / "assets"


class Parts(HTMLParser):
    """Scripts and their kinds, and every address an element names."""

    def __init__(self) -> None:
        super().__init__()
        self.scripts: list[tuple[str | None, str]] = []
        self.addresses: list[str] = []
        self._inside: str | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._inside = tag
        given = dict(attrs)
        self.addresses += [value for name in ("src", "href") if (value := given.get(name))]
        if tag == "script":
            self.scripts.append((given.get("type"), ""))

    def handle_endtag(self, tag: str) -> None:
        self._inside = None

    def handle_data(self, data: str) -> None:
        if self._inside == "script":
            kind, text = self.scripts[-1]
            self.scripts[-1] = (kind, text + data)


def parsed(page: str) -> Parts:
    parts = Parts()
    parts.feed(page)
    return parts


def test_the_model_comes_back_out_of_the_page(model: dict[str, Any]) -> None:
    scripts = parsed(render(model)).scripts
    assert [kind for kind, _ in scripts] == ["application/json", None]
    assert json.loads(scripts[0][1]) == model


def test_names_cannot_break_out_of_the_page(model: dict[str, Any]) -> None:
    page = render(model)
    assert HOSTILE in model["datasets"][0]["titles"]
    assert "document.title='broken'</script>" not in page
    assert "<title>Ownview: &lt;/script&gt;&lt;script&gt;document.title=" in page
    assert json.loads(as_script({"x": "<!--\u2028</script>&"})) == {"x": "<!--\u2028</script>&"}
    assert not set(as_script({"x": "<!--</script>&\u2028"})) & set("<>&\u2028")


def test_nothing_outside_the_page_is_named(model: dict[str, Any]) -> None:
    page = render(model)
    assert set(parsed(page).addresses) == {"#results", "data:,"}
    assert not re.search(r"url\(|@import|fetch\(|XMLHttpRequest|WebSocket|innerHTML|document\.write|eval\(", page)
    assert set(re.findall(r"https?://[^\s\"'\\]+", page)) == {"http://www.w3.org/2000/svg"}
    assert "default-src 'none'" in page


def test_every_script_is_in_the_page_and_small() -> None:
    assert {path.name for path in ASSETS.glob("*.js")} == set(SCRIPTS)
    for path in ASSETS.iterdir():
        assert len(path.read_text(encoding="utf-8").splitlines()) <= 400, path


def test_the_command_writes_the_page_and_says_so(ownview: OwnviewCommand, runs: Path, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    done = ownview("report", runs / "fedem-paper", runs / "popularity-honest", "-o", page, "--title", "Mine")
    assert done.code == 0
    assert f"{page}: 2 runs" in done.words
    assert "<title>Ownview: Mine</title>" in page.read_text(encoding="utf-8")
    assert page.stat().st_size < 8e6
    again = ownview("report", runs / "fedem-paper", "-o", page)
    assert again.code == 2
    assert "already exists; choose another --out, or overwrite it with --force" in again.err
    assert ownview("report", runs / "popularity-honest", "-o", page, "--force").code == 0


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("nowhere", "nowhere: no such run folder"),
        (".", "not a run folder, and none lies in it: expected experiment.toml there"),
    ],
)
def test_what_is_no_run_is_refused_on_one_line(given: str, said: str, ownview: OwnviewCommand, tmp_path: Path) -> None:
    done = ownview("report", tmp_path / given, "-o", tmp_path / "x.html")
    assert done.code == 2
    assert said in done.err
    assert done.err.count("\n") == 1
    assert not (tmp_path / "x.html").exists()


def test_a_folder_as_output_is_refused(ownview: OwnviewCommand, runs: Path, tmp_path: Path) -> None:
    done = ownview("report", runs / "fedem-paper", "-o", tmp_path)
    assert done.code == 2
    assert "is a folder; expected a file such as" in done.err


@pytest.mark.slow
def test_sixty_runs_make_a_small_page(runs: Path, tmp_path: Path) -> None:
    import shutil

    for k in range(60):
        copy = shutil.copytree(runs / "fedem-paper", tmp_path / f"run{k}")
        text = (copy / "experiment.toml").read_text()
        (copy / "experiment.toml").write_text(text.replace("learning_rate = 0.1", f"learning_rate = 0.{10 + k // 3}"))
    page = render(gather(find_runs([tmp_path])))
    assert len(page.encode()) < 8e6


def _palette(selector: str) -> dict[str, str]:
    style = (ASSETS / "style.css").read_text(encoding="utf-8")
    block = re.search(re.escape(selector) + r" \{(.*?)\}", style, re.DOTALL)
    assert block is not None
    return dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", block[1]))


def _luminance(colour: str) -> float:
    """As WCAG 2 defines it."""
    parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    red, green, blue = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _contrast(one: str, other: str) -> float:
    bright, dim = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (bright + 0.05) / (dim + 0.05)


@pytest.mark.parametrize("selector", [":root", ':root[data-theme="dark"]'])
def test_texts_and_marks_stand_out_from_what_is_behind_them(selector: str) -> None:
    colours = _palette(selector)
    written = ["ink", "muted", "accent", "warn", "good", *(f"c{k}" for k in range(8))]
    for behind in ("panel", "paper"):
        for name in written:
            assert _contrast(colours[name], colours[behind]) >= 4.5, (selector, name, behind)
    assert _contrast(colours["warn"], colours["warn-soft"]) >= 4.5
    assert _contrast(colours["muted"], colours["faint"]) >= 4.5
