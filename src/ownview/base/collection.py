"""Loading modules without the garbage collector, which finds next to nothing in them."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_collection(module: str) -> Iterator[None]:
    """While a module is loaded nothing is collected, and what it brought is not looked at again afterwards.

    PyTorch makes some hundred thousand objects that stay: looking through all of them again and again takes a part of
    loading that shows and frees next to nothing. Does nothing where the module is there already.
    """
    if module in sys.modules or not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
