"""What the C library does with memory that was freed: keeps it for the next that asks, or gives it back."""

from __future__ import annotations

import ctypes
import functools
import platform

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # names of malloc.h
_LARGEST = 2**30


@functools.cache
def _glibc() -> ctypes.CDLL | None:
    return ctypes.CDLL(None) if platform.libc_ver()[0] == "glibc" else None


@functools.cache
def keep_freed_memory() -> bool:
    """Tell glibc, once a process, to reuse blocks of up to a gigabyte; False where it is another C library.

    Training allocates and frees the same few megabytes thousands of times. By default glibc hands such blocks back to
    the operating system, which must clear every page again at the next step: 10 to 20 % of a round on the CPU.
    """
    library = _glibc()
    if library is None:
        return False
    return bool(library.mallopt(_MMAP_THRESHOLD, _LARGEST) and library.mallopt(_TRIM_THRESHOLD, _LARGEST))


def give_freed_memory_back() -> bool:
    """Have glibc return what it keeps to the operating system; False where it is another C library, or keeps nothing.

    Reading, splitting and counting leave holes that the one large matrix after them does not fit into.
    """
    library = _glibc()
    return library is not None and bool(library.malloc_trim(0))
