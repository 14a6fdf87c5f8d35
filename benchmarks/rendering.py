"""Measured speed as tables between the markers of a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

BEGIN, END = "<!-- speed -->\n", "<!-- end of speed -->"


def rendered(page: str, documents: Sequence[Mapping[str, Any]]) -> str:
    """The page with one table a machine between its markers."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise SystemExit(f"expected the lines {BEGIN.strip()} and {END} in the page")
    return before + begin + "\n".join(_tables(one) for one in documents) + end + after


def _tables(document: Mapping[str, Any]) -> str:
    about = document["about"]
    speed = about["copy_bytes_per_second"]
    lines = [
        f"\n**{about['machine']}**, one core of {about['cores']}, CPU-seconds a round, {about['world']}; it copies "
        f"{speed / 1e9:.1f} GB a second. Load before and after {about['load_before']} and {about['load_after']}.\n",
        "| method | sample | train | server | all | floor | peak memory |",
        "| --- | --- | --- | --- | --- | --- | --- |",
        *(_row(one, speed) for one in document["methods"]),
        "",
        *_engines(document["engines"]),
        *_growth(document["growth"]),
    ]
    return "\n".join(lines) + "\n"


def _row(one: Mapping[str, Any], speed: float) -> str:
    parts = " | ".join(f"{one['seconds'].get(part, 0.0):.2f}" for part in ("sample", "train", "server"))
    floor = "" if one["floor_bytes"] is None else f"{one['floor_bytes'] / speed:.2f}"
    return f"| {one['method']} | {parts} | {one['total']:.2f} | {floor} | {one['peak_memory_bytes'] / 1e6:,.0f} MB |"


def _engines(engines: Sequence[Mapping[str, Any]]) -> list[str]:
    lines = []
    for method in dict.fromkeys(one["method"] for one in engines):
        took = {one["engine"]: one["seconds"] for one in engines if one["method"] == method}
        times = {name: took[name] / took["vector"] for name in ("loop", "research")}
        lines.append(
            f"{method}: {took['vector']:.2f} s by the vector engine, {times['loop']:.1f} times as long by the loop "
            f"engine, {times['research']:.0f} times in research style, in the same run.\n"
        )
    return lines


def _growth(grown: Sequence[Mapping[str, Any]]) -> list[str]:
    each = (f"{one['clients']:,}: {1e3 * one['total'] / one['clients']:.2f} ms" for one in grown)
    return [f"FedMF by number of clients, a client and round: {'; '.join(each)}.\n"] if grown else []
