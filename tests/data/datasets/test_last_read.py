"""What was read last is taken again as long as its files are what they were."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ownview.data.datasets import last_read
from ownview.data.datasets.catalog import load
from ownview.data.datasets.last_read import LastRead
from ownview.data.interactions import Interactions

A, B = Interactions.from_rows("a", [1, 1], [2, 3]), Interactions.from_rows("b", [1], [2])


class Counted:
    """Reads what it is given and counts how often."""

    def __init__(self, data: Interactions) -> None:
        self.data, self.times = data, 0

    def __call__(self) -> Interactions:
        self.times += 1
        return self.data


def test_one_dataset_is_read_once_until_another_is(tmp_path: Path) -> None:
    file, other = tmp_path / "one.csv", tmp_path / "other.csv"
    file.write_text("x")
    cache, read = LastRead(), Counted(A)
    assert cache.of("a", [file, other], read) is A
    assert cache.of("a", [file, other], read) is A
    assert read.times == 1
    assert cache.of("b", [file, other], Counted(B)) is B  # asked for otherwise: other columns, say
    assert cache.of("a", [file, other], read) is A
    assert read.times == 2, "one is kept, not two"


def test_files_that_change_come_or_go_are_read_again(tmp_path: Path) -> None:
    file, titles = tmp_path / "one.csv", tmp_path / "titles.csv"
    file.write_text("x")
    cache, read = LastRead(), Counted(A)
    cache.of("a", [file, titles], read)
    titles.write_text("y")
    cache.of("a", [file, titles], read)
    assert read.times == 2
    titles.unlink()
    cache.of("a", [file, titles], read)
    assert read.times == 3
    before = file.stat()
    replacement = tmp_path / "new.csv"
    replacement.write_text("z")
    os.utime(replacement, ns=(before.st_atime_ns, before.st_mtime_ns))
    replacement.replace(file)  # of the same length and time, yet another file
    cache.of("a", [file, titles], read)
    assert read.times == 4


def test_what_is_large_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(last_read, "MOST_ROWS", 1)
    cache, read = LastRead(), Counted(A)
    for _ in range(2):
        cache.of("a", [tmp_path / "one.csv"], read)
    assert read.times == 2


def test_a_reading_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    cache, read = LastRead(), Counted(A)
    cache.of("a", [tmp_path], read)

    def broken() -> Interactions:
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        cache.of("b", [tmp_path], broken)
    cache.of("a", [tmp_path], read)
    assert read.times == 2


def test_datasets_are_loaded_once() -> None:
    assert load("goodbooks") is load("goodbooks")
