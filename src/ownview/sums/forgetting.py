"""A person leaves a model folder: sums, histories, versions; and the receipt of it."""

from __future__ import annotations

import hashlib
import json
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import numpy as np

from ownview.base.errors import OutputError
from ownview.base.files import make_folder, write_json
from ownview.base.lock import sole_worker
from ownview.data.interactions import IntArray, Interactions
from ownview.engine.threads import in_threads
from ownview.runs.files.manifest import read_manifest
from ownview.runs.files.versions import in_use, publish, version
from ownview.sums.agreement import why_no_sum
from ownview.sums.arrays import Arrays
from ownview.sums.living import SUMS, Changed, at_hand, data_of, drop_sums, kept, publish_sums
from ownview.sums.retraining import write_trained
from ownview.sums.store import Items

_RECEIPTS = "receipts"
_ROWS = 512
"""Of a sum that are ordered and hashed together."""

NOT_CALLED_BACK = (
    "pages, exports, lists and copies that were given away before are not called back",
    "what was released under a privacy budget stays spent",
    "the file that the rows came from is not changed: take them out of it too, or the next update adds them again",
    "backups, and blocks that a file system or a disk keeps of removed files, are beyond this program",
)


def forget_user(
    model: Path, user: str, url: str | None = None, begun: Callable[[], object] = lambda: None
) -> tuple[Changed, Path]:
    """Take a person out of everything in the folder; the new version, and the receipt's file.

    Where the model is a sum, exactly and at once: sums and histories are, bit for bit, those of a model that the person
    never entered, and weights and lists are solved from them alone. Where it trains, it is trained anew without them.

    Args:
        model: the folder.
        user: the person.
        url: of a PostgreSQL that keeps the journal.
        begun: called once it is known that the person can be taken out, before anything changes.
    """
    clock, hashes = time.perf_counter(), dict[str, str]()
    with kept(model, url) as (run, store):
        exact = store is not None and not store.agreed
        if exact and store is not None:
            hashes["sums before"] = fingerprint(store.arrays, store.journal.items())
            if store.names() == [user]:
                raise _no_person_left(model)
            cells = store.forget(user, begun)
            with ThreadPoolExecutor(1) as beside:
                after = beside.submit(fingerprint, store.arrays, store.journal.items())
                how = f"{publish_sums(model, run, store, anew=True)}; {cells:,} cells of the sums changed"
                hashes["sums after"] = after.result()
            left = () if store.journal.overwrites else ("PostgreSQL's own log and backups keep what they kept",)
        else:
            data_of(run).position_of_user(user)  # unknown is said before anything changes
    if not exact:
        how, left = _trained_without(model, user, url, begun), ()
    receipt = _receipt(model, how, hashes, left, exact=exact or store is None)
    return Changed(version(model), "one person was taken out", how, time.perf_counter() - clock), receipt


def forgotten_before(model: Path) -> tuple[Changed, Path]:
    """The version in use, and a receipt, of a forgetting that took a person out of the model and was cut off later."""
    how = "the model had been made without them by a command that was cut off"
    exact = (model / SUMS).is_dir() or why_no_sum(at_hand(model).experiment) is not None
    receipt = _receipt(model, how, {}, (), exact=exact)
    what = "what was begun before is finished: the model knows no such person"
    return Changed(version(model), what, how, 0.0), receipt


def _receipt(model: Path, how: str, hashes: Mapping[str, str], left: Sequence[str], *, exact: bool) -> Path:
    receipt = model / _RECEIPTS / f"forgotten-{secrets.token_hex(8)}.json"
    make_folder(receipt.parent)
    content = {
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "taken out": "one person: rows, contribution, lists, and items that nobody else had",
        "how": how,
        "exact": exact,
        "version": version(model),
        "sha256": {**hashes, "model after": (read_manifest(in_use(model)) or {})["model.safetensors"]},
        "not called back": [*NOT_CALLED_BACK, *left],
    }
    write_json(receipt, content)
    return receipt


def _trained_without(model: Path, user: str, url: str | None, begun: Callable[[], object]) -> str:
    """Train a model anew without a person; how, in words.

    Its sums go before the new version is there: after a kill between the two the next update would solve a model from
    sums that the person is still in.
    """
    with sole_worker(model):
        run = at_hand(model)
        data, found = data_of(run), list[str]()
        rest = without(data, user)
        begun()
        if (model / SUMS).is_dir():
            drop_sums(model / SUMS, url)
        publish(model, lambda place: found.append(write_trained(place, replace(run, data=data), rest, None)))
    return found[0]


def people_of(model: Path) -> set[str]:
    """Names of everybody in the version in use."""
    return set(map(str, data_of(at_hand(model)).users.tolist()))


def without(data: Interactions, user: str) -> Interactions:
    """Everybody's rows but one person's; items of that person alone are gone."""
    keep = np.ones(len(data), dtype=bool)
    keep[data.of(data.position_of_user(user))] = False
    if not keep.any():
        raise _no_person_left(data.name)
    return data.select(keep)


def _no_person_left(where: object) -> OutputError:
    return OutputError(f"{where}: no person would be left; remove the folder instead")


def fingerprint(arrays: Arrays, items: Items) -> str:
    """SHA-256 of the sums by item id, for their only writer: equal for equal sums, whatever places items have.

    Over the SHA-256 of every so many rows, which are worked out side by side.
    """
    found, by_id = hashlib.sha256(), sorted((item, where) for where, (item, _) in items.items())
    places = np.array([where for _, where in by_id], dtype=np.int64)

    def of_rows(name: str, rows: IntArray, columns: IntArray) -> bytes:
        return hashlib.sha256(arrays.values[name].take(rows, 0).take(columns, 1).data).digest()

    for name in sorted(arrays.axes):
        rows, columns = (axis.of(places, arrays.items) for axis in arrays.axes[name])
        found.update(json.dumps([name, len(rows), len(columns)]).encode())
        each = np.split(rows, range(_ROWS, len(rows), _ROWS))
        for one in in_threads([partial(of_rows, name, some, columns) for some in each]):
            found.update(one)
    return found.hexdigest()
