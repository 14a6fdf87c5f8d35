"""Ownview: personalised federated recommendation, measured honestly.

import ownview as ov

data = ov.load("goodbooks")
run = ov.run(ov.PFedRec(), data, rounds=50)
run.metrics["HR@10"]
run.recommend(user=data.users[0], k=10)

The names are those of `ownview.public`, which is imported when the first of them is asked for: PyTorch takes seconds
to load, and `ownview --help` does without it.
"""

import importlib
import os
import sys
from typing import TYPE_CHECKING

from ownview.base.moved_modules import MovedModules
from ownview.base.version import __version__ as __version__

if TYPE_CHECKING:
    from ownview.public import *  # noqa: F403

# PyTorch's builds for ARM bring an allocator of their own, mimalloc, which gives memory back to the operating system
# ten milliseconds after it was freed and asks for it again in the next step: 5 to 15 % of a round. Ten seconds are
# better. It looks once, when PyTorch is loaded; what glibc does with memory is settled in `engine.machine`.
os.environ.setdefault("MIMALLOC_PURGE_DELAY", "10000")

# A thread of PyTorch (OpenMP) that waits for the others stays awake for milliseconds, on a core that those may need:
# with anything else at work on the machine, small pieces of linear algebra take three to fifteen times as long. Asleep
# it makes room at once, and figures are the same. OpenMP looks once, too; where GOMP_SPINCOUNT is set, that decides.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

# Polars brings jemalloc, which keeps freed pages for ten seconds: of ml-1m's file these are 60 MB that nothing uses.
os.environ.setdefault("_RJEM_MALLOC_CONF", "dirty_decay_ms:0,muzzy_decay_ms:0")

sys.meta_path.append(MovedModules())

_MOVED = {
    "Gathering": "ReportingMethod, whose `params` say by role what clients and server have",
    "History": "history(), a role: the client sees its items as a table of 0 and 1",
    "OwnHistory": "history(), a role",
    "Value": "received(...) for what clients get and held(...) for what stays on the server",
}


def __getattr__(name: str) -> object:
    """Public names and modules, found at their first use; names of earlier versions say what has taken their place.

    Raises:
        ImportError: of an earlier version; `from ownview import NAME` would swallow the sentence of another error.
    """
    if name in _MOVED:
        raise ImportError(f"ownview.{name} is now ownview.{_MOVED[name]}; see CHANGELOG.md", name="ownview")
    if name.startswith("__") and name != "__all__":  # asked for by the import system and by doctest, say
        raise AttributeError(f"module 'ownview' has no attribute {name!r}")
    public = importlib.import_module("ownview.public")
    named = {one: value for one, value in vars(public).items() if not one.startswith("_")}
    globals().update(named | {"__all__": ["__version__", *named]})
    if name not in globals():
        raise AttributeError(f"module 'ownview' has no attribute {name!r}")
    return globals()[name]


def __dir__() -> list[str]:
    """Public names, for completion, and those that every module has; nothing that this file merely imports."""
    return sorted({*(one for one in globals() if one.startswith("__")), *__getattr__("__all__")})  # type: ignore[misc]
