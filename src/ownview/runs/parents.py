"""Start methods of worker processes, and their end with the parent. Imports nothing heavy: waiting is cheap."""

from __future__ import annotations

import multiprocessing
import os
from multiprocessing import forkserver
from multiprocessing.context import BaseContext
from threading import Thread


def runs_forked() -> BaseContext:
    """Processes for runs, forked from one that loads everything, PyTorch takes seconds, and does nothing else.

    That one has no threads and has not touched a GPU, so they can be. Without fork, each process starts anew.
    """
    forked = "forkserver" in multiprocessing.get_all_start_methods()
    context = multiprocessing.get_context("forkserver" if forked else "spawn")
    context.set_forkserver_preload(["ownview.runs.loaded_once"])
    return context


def begin_loading() -> None:
    """Let the process that runs are forked from load while this one does; it ends with this one."""
    if runs_forked().get_start_method() == "forkserver":
        forkserver.ensure_running()


def end_with_parent() -> None:
    """End this process when its parent has: a killed parent cannot do it, and its runs must be free to be taken up."""
    parent = multiprocessing.parent_process()

    def wait_for_it() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    Thread(target=wait_for_it, daemon=True).start()
