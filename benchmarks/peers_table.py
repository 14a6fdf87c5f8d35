"""The record of `benchmarks.peers` as tables of docs/speed.md."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

PLACE = Path(__file__).resolve().parents[1]
MARKS = ("<!-- peers -->\n", "<!-- end of peers -->")


def table(document: Mapping[str, Any]) -> str:
    """Both tables of one machine."""
    here = document["machine"]
    return (
        f"\nOne of {here['cores']} cores ({here['processor']}); load is that of the machine when a row was done:\n\n"
        "| FedMF | world | CPU-s a round | first | MB | versions | loss after a round | apart | load |\n"
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n"
        + "".join(map(_framework, document["fedmf"]))
        + "\n| closed form | data | CPU-s to fit | MB, at most | before fitting | load |\n"
        + "| --- | --- | --- | --- | --- | --- |\n"
        + "".join(map(_form, document["closed"]))
    )


def _framework(line: Mapping[str, Any]) -> str:
    start = f"| {line['framework']} | {line['world']} |"
    if "why not" in line:
        return f"{start} did not run: {line['why not'].splitlines()[-1][:120]} | | | | | | {line['load']:g} |\n"
    versions = ", ".join(f"{name} {version}" for name, version in line["versions"].items())
    return (
        f"{start} {line['second']:.2f} | {line['seconds'][0]:.2f} | {line['megabytes']} | {versions} | "
        f"{line['loss after a round']:.4f} | {line['apart']:.0e} | {line['load']:g} |\n"
    )


def _form(line: Mapping[str, Any]) -> str:
    start = f"| {line['form']} | {line['data']} |"
    if "why not" in line:
        return f"{start} did not run: {line['why not'].splitlines()[-1][:120]} | | | {line['load']:g} |\n"
    return f"{start} {line['fit']:.2f} | {line['megabytes']} | {line['before']} | {line['load']:g} |\n"


def rendered(page: str) -> str:
    """The page with what is recorded between its markers."""
    before, begin, rest = page.partition(MARKS[0])
    _, end, after = rest.partition(MARKS[1])
    if not (begin and end):
        raise SystemExit(f"expected the lines {MARKS[0].strip()} and {MARKS[1]} in the page")
    records = sorted((PLACE / "results" / "speed" / "peers").glob("*.json"))
    return before + begin + "".join(table(json.loads(one.read_text())) for one in records) + end + after


def render() -> None:
    """Write them into the page."""
    page = PLACE / "docs" / "speed.md"
    page.write_text(rendered(page.read_text(encoding="utf-8")), encoding="utf-8")
