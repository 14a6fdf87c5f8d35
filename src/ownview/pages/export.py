"""A folder for a device: the model, what items are called, what it is, a scorer and a card.

model.safetensors  arrays, named by `pages.packing`
items.csv          id and title of every item, by position
text.json          words of the items, for titles that are none of them; where anything is known of the items
words.py           scores such titles
model.json         form, method, settings, data, protocol, figures, privacy, versions, SHA-256 of what is read besides
scorer.py          recommends with them; needs numpy
MODEL_CARD.md      the same for people
"""

from __future__ import annotations

import csv
import hashlib
import importlib.resources
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from safetensors.numpy import save

from ownview.base.arguments import kinds_checked
from ownview.base.display.cells import as_cell
from ownview.base.files import require_new, write_folder
from ownview.pages.card import card
from ownview.pages.fidelity import Fidelity
from ownview.pages.leaving_out import MIN_PEOPLE
from ownview.pages.opening import opened
from ownview.pages.packing import pack
from ownview.pages.published import Exposure, Published
from ownview.pages.typed_titles import vocabulary
from ownview.runs.run import Run
from ownview.seam.portable import Factors, Linear

FORMAT = 1
"""Of the folder; goes up when an older scorer could not read it."""


class Exported(NamedTuple):
    """A folder that was made.

    path:      of the folder
    bytes:     of all its files
    agreement: with the run's own model
    exposure:  what was left out, and what the weights give away all the same
    left_out:  what the model does besides, in sentences
    runtime:   how near a runtime that executes the file came to Python, in a sentence; nothing where none does
    """

    path: Path
    bytes: int
    fidelity: Fidelity
    exposure: Exposure
    left_out: tuple[str, ...]
    runtime: str = ""


@kinds_checked()
def export(
    run: Run | str | Path, out: str | Path, *, min_people: int = MIN_PEOPLE, data_dir: Path | None = None,
    new_items: Path | None = None,
) -> Exported:  # fmt: skip
    """Write a finished model into a new folder, whole or not at all.

    Args:
        run: a run, its folder, or the server's folder of a deployment.
        out: the folder; it must not exist.
        min_people: items that fewer people had are left out; 1 leaves nothing out.
        data_dir: where datasets are.
        new_items: a file of items; those without interactions are offered too, marked as new.

    Raises:
        SettingError: the model has no form that a device could score with, or nothing would be left; says why.
    """
    path = Path(out)
    require_new(path)
    model = opened(run, data_dir, new_items)
    published = Published(model, min_people)
    agreed, exposed = published.fidelity(published.form), published.exposure(published.form)
    model.charge()
    write_folder(path, lambda folder: _fill(folder, published, agreed, exposed))
    return Exported(path, sum(file.stat().st_size for file in path.iterdir()), agreed, exposed, model.form.left_out)


def _fill(folder: Path, published: Published, agreed: Fidelity, exposed: Exposure) -> None:
    facts = published.model.facts() | {"agreement": published.agreement_of(agreed), "exposure": exposed.plain()}
    text = vocabulary(published.model.about, published.left.kept.tolist())
    about = write_portable(folder, published.offered, published.ids, published.titles, facts, text)
    (folder / "scorer.py").write_text(_program("scorer.py"), encoding="utf-8")
    (folder / "MODEL_CARD.md").write_text(card(about), encoding="utf-8")


def write_portable(
    folder: Path, form: Linear | Factors, ids: Sequence[Any], titles: Sequence[str], facts: Mapping[str, Any],
    text: Mapping[str, Any] | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Write what a scorer reads into a folder: arrays, items, and last model.json, whose content is returned.

    Args:
        folder: that exists.
        form: for m items.
        ids: [m] of the items.
        titles: [m] of the items.
        facts: about the model, in plain values.
        text: the words of the items (`pages.typed_titles`); None without.
    """
    described, arrays = pack(form)
    (folder / "model.safetensors").write_bytes(save(arrays))
    write_items(folder, ids, titles)
    if text is not None:
        (folder / "text.json").write_text(json.dumps(text, ensure_ascii=False), encoding="utf-8")
        (folder / "words.py").write_text(_program("words.py"), encoding="utf-8")
    names = ("model.safetensors", "items.csv", *(("text.json", "words.py") if text is not None else ()))
    return write_about(folder, described, facts, names)


def write_items(folder: Path, ids: Sequence[Any], titles: Sequence[str]) -> None:
    """Write items.csv: id and title of every item, by position."""
    with (folder / "items.csv").open("w", encoding="utf-8", newline="") as out:
        table = csv.writer(out, lineterminator="\n")
        table.writerow(("item", "title"))
        table.writerows(zip(map(as_cell, map(str, ids)), map(as_cell, titles), strict=True))


def write_about(
    folder: Path, form: Mapping[str, Any], facts: Mapping[str, Any], names: Sequence[str]
) -> dict[str, Any]:
    """Write model.json, whose content is returned: its form, facts, and the SHA-256 of the files of these names."""
    checked = {name: _sha256(folder / name) for name in names}
    about = {"format": FORMAT, "form": form, **facts, "sha256": checked}
    written = json.dumps(about, indent=2, ensure_ascii=False, allow_nan=False)
    (folder / "model.json").write_text(f"{written}\n", encoding="utf-8")
    return about


def _program(name: str) -> str:
    return (importlib.resources.files("ownview.pages") / name).read_text(encoding="utf-8")


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
