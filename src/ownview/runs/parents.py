"""Processes that end with their parent. Apart from everything else, so that a process which waits loads nothing."""

from __future__ import annotations

import multiprocessing
import os
from threading import Thread


def end_with_parent() -> None:
    """End this process when its parent has: a killed parent cannot tell, and its runs must be free to be taken up."""
    parent = multiprocessing.parent_process()

    def wait_for_it() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    Thread(target=wait_for_it, daemon=True).start()
