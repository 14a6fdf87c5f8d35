"""Independent pieces of work on a CPU, as many at once as PyTorch has threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

import torch

Result = TypeVar("Result")


def in_threads(work: Sequence[Callable[[], Result]]) -> list[Result]:
    """Results of all pieces of work, in order; the last piece, which should be the longest, starts first.

    Each has one thread of PyTorch, so that results do not depend on the number of threads. A single piece runs
    here, with all of them. Where one fails, those that have not begun are left out, and its error is raised.
    """
    threads = min(torch.get_num_threads(), len(work))
    if threads < 2:
        return [piece() for piece in work]
    with ThreadPoolExecutor(threads, "ownview", initializer=torch.set_num_threads, initargs=(1,)) as pool:
        begun = [pool.submit(piece) for piece in reversed(work)]
        try:
            return [one.result() for one in reversed(begun)]
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit PyTorch to one thread, so that results do not depend on the number of threads."""
    number = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(number)
