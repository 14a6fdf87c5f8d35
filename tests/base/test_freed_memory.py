"""What is asked of the C library about memory that was freed."""

from __future__ import annotations

import ctypes
import platform
from collections.abc import Callable, Iterator

import pytest

from ownview.base.memory import freed
from ownview.base.memory.freed import give_freed_memory_back, keep_freed_memory

ASKED = (keep_freed_memory, give_freed_memory_back)


@pytest.fixture
def asked_anew() -> Iterator[None]:
    """The C library is looked for again, before and after."""
    for forgets in (freed._glibc, keep_freed_memory):
        forgets.cache_clear()
    yield
    for forgets in (freed._glibc, keep_freed_memory):
        forgets.cache_clear()


@pytest.mark.usefixtures("asked_anew")
@pytest.mark.parametrize("ask", ASKED)
def test_another_c_library_is_left_alone(ask: Callable[[], bool], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "libc_ver", lambda: ("", ""))
    monkeypatch.setattr(ctypes, "CDLL", lambda name: pytest.fail("no library is opened"))
    assert not ask()


@pytest.mark.usefixtures("asked_anew")
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="glibc's own words")
def test_glibc_does_what_it_is_asked() -> None:
    assert keep_freed_memory()
    blocks = [bytearray(1000) for _ in range(100_000)]
    del blocks[: len(blocks) // 2]
    assert give_freed_memory_back()
