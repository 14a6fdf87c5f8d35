"""Weights of browsers' sums for pages that contribute: a file that never changes, named by its SHA-256."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from ownview.base.errors import SettingError
from ownview.base.files import write_bytes, write_json
from ownview.base.items.item_table import ItemTable
from ownview.one_message.opened_sums import LATEST, OpenedSums
from ownview.one_message.solving import solve
from ownview.pages.encoding import encode


def publish(
    store: OpenedSums, settings: Mapping[str, Any], min_people: int, room: int, about: ItemTable | None = None
) -> dict[str, Any]:
    """Solve what was opened, and put it where server b serves it; what `weights.json` then says.

    Args:
        store: of server b.
        settings: of the method, that its server decides.
        min_people: that an item must have; 1 leaves nothing out.
        room: bytes of text.
        about: what is public of the agreement's items; None for no text beside the sums.
    """
    total, status = store.opened()
    if not status.batches:
        raise SettingError(f"{store.folder}: no batch has been opened yet; expected contributions first")
    solved = solve(store.terms, total, status.batches, status.contributions, settings, min_people, about)
    encoded = encode(solved.form, room)
    published = {
        "format": 1, "agreement": store.terms.name.hex(), "contributions": status.contributions, "ids": solved.ids,
        "form": encoded.plain, "rule": solved.rule,
    }  # fmt: skip
    content = json.dumps(published, ensure_ascii=False, separators=(",", ":")).encode()
    name = hashlib.sha256(content).hexdigest()
    write_bytes(store.folder / f"weights.{name}.json", content)
    latest = {"sha256": name, "contributions": status.contributions, "bytes": len(content)}
    before = [path for path in store.folder.glob("weights.*.json") if name not in path.name]
    write_json(store.folder / LATEST, latest)
    for path in sorted(before, key=lambda one: one.stat().st_mtime)[:-1]:  # a page may be reading the last but one
        path.unlink()
    return latest
