"""Measured speed as tables between the markers of a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Document = Mapping[str, Any]

_MARKS = ("<!-- speed -->\n", "<!-- end of speed -->")
_FIRST = (
    "(1): the first round, because the method has no other or because it took long; else the middle one of up to three "
    "after it.\n"
)
_SHORT = ("fedmf", "pfedrec", "fedrap", "fedem", "fedsasrec", "fedease", "fednext")


def rendered(page: str, documents: Sequence[Document]) -> str:
    """The page with one table a machine between its markers."""
    return between(page, "\n".join(_tables(one) for one in documents))


def in_short(page: str, documents: Sequence[Document]) -> str:
    """The page with some methods of the first machine between its markers."""
    return between(page, "".join(_short(one) for one in documents[:1]))


def between(page: str, text: str, marks: tuple[str, str] = _MARKS) -> str:
    """The page with the text between two lines of it.

    Raises:
        SystemExit: the page lacks one of them.
    """
    before, begin, rest = page.partition(marks[0])
    _, end, after = rest.partition(marks[1])
    if not (begin and end):
        raise SystemExit(f"expected the lines {marks[0].strip()} and {marks[1].strip()} in the page")
    return before + begin + text + end + after


def _tables(document: Document) -> str:
    about = document["about"]
    speed = about["copy_bytes_per_second"]
    return (
        f"\n**{about['machine']}** ({about['processor']}), one of {about['cores']} cores: {about['measured']}; "
        f"{about['world']}, PyTorch {about['torch']}.\nIt copies {speed / 1e9:.1f} GB a second. {_load(document)}. "
        "Seconds a round:\n\n"
        "| method | sample | train | server | all | floor | loop engine | research style | peak memory |\n"
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n"
        + "".join(_row(one, document, speed) for one in _of(document, "vector"))
        + f"\n{_FIRST}"
        + "".join(_sampled(document, engine) for engine in ("loop", "research"))
        + _growth(document)
    )


def _sampled(document: Document, engine: str) -> str:
    """How the seconds of a slow engine were found; nothing where there are none."""
    titles = {"loop": "Loop engine", "research": "Research style"}
    for one in _of(document, engine)[:1]:
        return (
            f"{titles[engine]}: every {one['every']}th client by activity, sampling and training alone, scaled by "
            "samples; in brackets, how many times the vector engine's.\n"
        )
    return ""


def _short(document: Document) -> str:
    about, lines = document["about"], list[str]()
    for one in _of(document, "vector"):
        if one["case"]["method"] in _SHORT:
            slower = " | ".join(_slower(one, document, engine) for engine in ("loop", "research"))
            lines.append(f"| {_name(one)} | {one['total']:.2f} | {slower} | {_memory(one)} |\n")
    return (
        "| method | CPU-seconds a round | one client after the other | research style | peak memory |\n"
        "| --- | --- | --- | --- | --- |\n"
        + "".join(lines)
        + f"\nOne core of {about['machine']}, a generated world of {about['world'].removesuffix('-sized')}'s size. "
        "The two columns in the middle are sampling and training alone; in brackets, how many times as long as these "
        f"take here. {_load(document)}.\n{_FIRST}" + _growth(document)
    )


def _load(document: Document) -> str:
    """CPU-seconds are dearer where others are at work, so it is said how many were."""
    loads = [one["load"] for one in document["cases"]]
    return f"Load of its {document['about']['cores']} cores meanwhile {min(loads)} to {max(loads)}"


def _of(document: Document, engine: str) -> list[Mapping[str, Any]]:
    """The cases of an engine on the world of the table, by method."""
    found = [one for one in document["cases"] if one["case"]["engine"] == engine]
    return sorted((one for one in found if _at_home(one, document)), key=lambda one: str(one["case"]["method"]))


def _at_home(one: Mapping[str, Any], document: Document) -> bool:
    return bool(one["case"]["world"] == document["about"]["world"])


def _row(one: Mapping[str, Any], document: Document, speed: float) -> str:
    parts = " | ".join(f"{one['seconds'].get(part, 0.0):.2f}" for part in ("sample", "train", "server"))
    floor = "" if one["floor_bytes"] is None else f"{one['floor_bytes'] / speed:.2f}"
    slower = " | ".join(_slower(one, document, engine) for engine in ("loop", "research"))
    return f"| {_name(one)} | {parts} | {one['total']:.2f} | {floor} | {slower} | {_memory(one)} |\n"


def _name(one: Mapping[str, Any]) -> str:
    return f"{one['case']['method']}{' (1)' if one['first'] else ''}"


def _memory(one: Mapping[str, Any]) -> str:
    return f"{one['peak_memory_bytes'] / 1e6:,.0f} MB"


def _slower(one: Mapping[str, Any], document: Document, engine: str) -> str:
    """Seconds of another engine, and how many times those of this one they are; nothing where it was not measured."""
    at_home = one["seconds"].get("sample", 0.0) + one["seconds"]["train"]
    for other in _of(document, engine):
        if other["case"]["method"] == one["case"]["method"]:
            return f"{other['total']:.1f} ({other['total'] / at_home:.1f} x)"
    return ""


def _growth(document: Document) -> str:
    grown = sorted(
        (one for one in document["cases"] if not _at_home(one, document)), key=lambda one: int(one["clients"])
    )
    each = "; ".join(f"{one['clients']:,} clients {1e3 * one['total'] / one['clients']:.2f} ms" for one in grown)
    return (
        f"\nFedMF by number of clients, a client and round (40 interactions each, 2,000 items): {each}.\n"
        if grown
        else ""
    )
