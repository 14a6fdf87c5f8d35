"""What `--memory auto` counts as free: the file cache of a machine that has run for a while is not in the way."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ownview.engine.machine import UNKNOWN, free_memory, parse_bytes, share

MEMINFO = """MemTotal:       24682496 kB
MemFree:          200000 kB
MemAvailable:   19000000 kB
Cached:         18000000 kB
"""
AVAILABLE = 19_000_000 * 1024


@pytest.fixture
def meminfo(tmp_path: Path) -> Path:
    path = tmp_path / "meminfo"
    path.write_text(MEMINFO)
    return path


def container(folder: Path, limit: str, taken: int = 0, cached: int = 0) -> Path:
    folder.mkdir()
    (folder / "memory.max").write_text(f"{limit}\n")
    (folder / "memory.current").write_text(f"{taken}\n")
    (folder / "memory.stat").write_text(f"anon {taken - cached}\ninactive_file {cached}\nactive_file 7\n")
    return folder


def test_what_gives_way_counts_as_free(meminfo: Path, tmp_path: Path) -> None:
    assert free_memory(meminfo, tmp_path / "no container") == AVAILABLE


def test_a_container_s_limit_counts_where_it_is_lower(meminfo: Path, tmp_path: Path) -> None:
    limited = container(tmp_path / "limited", str(4 * 10**9), taken=3 * 10**9, cached=2 * 10**9)
    assert free_memory(meminfo, limited) == 3 * 10**9
    assert free_memory(meminfo, container(tmp_path / "large", str(10**12))) == AVAILABLE
    assert free_memory(meminfo, container(tmp_path / "free", "max", taken=10**9)) == AVAILABLE


def test_a_full_container_has_nothing_left(meminfo: Path, tmp_path: Path) -> None:
    assert free_memory(meminfo, container(tmp_path / "full", "1000", taken=2000)) == 0


@pytest.mark.parametrize("text", [None, "", "MemTotal: 24682496 kB\n"])
def test_a_system_that_does_not_say_counts_as_a_modest_one(text: str | None, tmp_path: Path) -> None:
    path = tmp_path / "meminfo"
    if text is not None:
        path.write_text(text)
    assert free_memory(path, tmp_path / "no container") == UNKNOWN


def test_this_machine_has_some() -> None:
    assert free_memory() > 10**8


def test_runs_side_by_side_share_what_one_alone_would_have(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ownview.engine.machine.free_memory", lambda: 24_000)
    assert share("cpu", "auto", 3) == "4000b", "a third of half"
    assert parse_bytes(share("cpu", "auto", 3)) == 4000
    assert share("cpu", "auto", 1) == "auto"
    assert share("cpu", "2GB", 3) == "2GB"


@pytest.mark.parametrize(
    ("variable", "wish", "found"),
    [
        ("MIMALLOC_PURGE_DELAY", None, "10000"),
        ("MIMALLOC_PURGE_DELAY", "0", "0"),
        ("OMP_WAIT_POLICY", None, "passive"),
        ("OMP_WAIT_POLICY", "active", "active"),
    ],
)
def test_how_long_memory_stays_and_threads_wait_awake_is_settled_before_pytorch_looks(
    variable: str, wish: str | None, found: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(variable, raising=False)
    if wish is not None:
        monkeypatch.setenv(variable, wish)
    code = f"import os, sys, ownview; print(os.environ['{variable}'], 'torch' in sys.modules)"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert output.split() == [found, "False"], "the caller's setting decides"
