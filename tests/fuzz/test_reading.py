"""Spoilt exports of forty forms: read, or refused in one line; no traceback, and nothing half-read."""

from __future__ import annotations

import contextlib
import gzip
import random
import traceback
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest

from ownview.base.errors import OwnviewError
from ownview.data.reading.readers import ReadingOptions, read
from tests.data.reading.raw_forms import FORMS
from tests.fuzz.harm import spoilt_bytes

BY_NAME = {form.name: form for form in FORMS}

FOUND = {6261: "excel_semicolon.csv", 9726: "excel_semicolon.csv", 7435: "quotes.csv"}
"""Seeds beyond those of every day that were no one line once, and the form that each spoilt."""


def spoilt(content: bytes, chance: random.Random) -> bytes:
    """Wounds in what stands in a file; of packed ones also in what was packed."""
    if content.startswith(b"\x1f\x8b") and chance.random() < 0.7:
        return gzip.compress(spoilt_bytes(gzip.decompress(content), chance), mtime=0)
    return spoilt_bytes(content, chance)


def options_of(chance: random.Random) -> ReadingOptions:
    """None, or some that people give."""
    some: tuple[ReadingOptions, ...] = (
        {}, {}, {"tolerant": True}, {"tolerant": True}, {"separator": ";"}, {"encoding": "cp1250"},
        {"dates": "day-first"}, {"events": ("purchase",)}, {"min_rating": 3.0}, {"sheet": "Orders"},
        {"columns": {"user": "0", "item": "1"}, "tolerant": True},
    )  # fmt: skip
    return chance.choice(some)


def fault(seed: int, folder: Path) -> str | None:
    """What is wrong with how a spoilt form was read or refused; None where nothing is."""
    chance = random.Random(seed)
    form = BY_NAME[FOUND[seed]] if seed in FOUND else FORMS[seed % len(FORMS)]
    path = folder / form.name
    files = {"": form.content} if isinstance(form.content, bytes) else form.content
    for name, content in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name if name else path).write_bytes(spoilt(content, chance))
    try:
        data = read(path, **options_of(chance))
    except OwnviewError as error:
        message = str(error)
        return None if message.startswith(str(path)) and "\n" not in message else f"{form.name}: {message[:300]!r}"
    except BaseException:
        return f"{form.name}: {traceback.format_exc()}"
    with contextlib.suppress(AssertionError):
        assert len(data) == len(data.item) == int(data.counts.sum()) > 0
        assert data.item.max() < data.num_items
        assert data.timestamp is None or len(data.timestamp) == len(data)
        assert data.rating is None or bool(np.isfinite(data.rating).all())
        assert data.titles is None or len(data.titles) == data.num_items
        return None
    return f"{form.name}: read, and does not hold together"


def faults(seeds: Iterable[int], folder: Path) -> list[str]:
    lines = []
    for seed in seeds:
        place = folder / str(seed)
        place.mkdir()
        if (found := fault(seed, place)) is not None:
            lines.append(f"seed {seed}: {found}")
    return lines


def test_no_traceback(tmp_path: Path) -> None:
    assert faults([*range(400), *FOUND], tmp_path) == []


@pytest.mark.slow
@pytest.mark.parametrize("start", range(400, 10_400, 1_000))
def test_no_traceback_in_ten_thousand(start: int, tmp_path: Path) -> None:
    assert faults(range(start, start + 1_000), tmp_path) == []
