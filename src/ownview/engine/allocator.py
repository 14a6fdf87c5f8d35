"""Memory of the C library: large blocks that were freed are kept for the next step instead of given back.

Training allocates and frees the same few megabytes thousands of times. By default glibc hands such blocks back to the
operating system, which must clear every page again at the next step: 10 to 20 % of a round on the CPU.
"""

from __future__ import annotations

import ctypes
import functools
import platform

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # names of malloc.h
_LARGEST = 2**30


@functools.cache
def keep_freed_memory() -> bool:
    """Tell glibc, once a process, to reuse blocks of up to a gigabyte; False where it is another C library."""
    if platform.libc_ver()[0] != "glibc":
        return False
    library = ctypes.CDLL(None)
    return bool(library.mallopt(_MMAP_THRESHOLD, _LARGEST) and library.mallopt(_TRIM_THRESHOLD, _LARGEST))
