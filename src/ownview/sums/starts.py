"""Forgetting in the folder of a start, which holds more than a model: the data, runs, lists, a report, a page."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

from ownview.base.errors import SettingError, UnknownNameError
from ownview.base.files import drop_unfinished, write_text, writing
from ownview.data.datasets.catalog import load
from ownview.data.datasets.storage import INTERACTIONS, ITEMS, PROVENANCE, USERS, store
from ownview.runs.run import open_run
from ownview.sums.forgetting import forget_user, forgotten_before, people_of, without
from ownview.sums.living import Changed

_RECORD, _MODEL, _COMPARED = "start.json", "model", ("comparison", "report.html", "verdict.json", "plan.json")
_LISTS, _PAGE = "lists.csv", "page.html"
FORGETTING = "forgetting"
"""A file that is there from right before the model changes until nothing is left to be done; it names no one."""

_LONG = 10
"""Items of a list."""


def forget_everywhere(place: Path, user: str) -> tuple[Changed, Path, list[str]]:
    """Forget a person in a model, or in a start with all that it made; the last is what was removed for good.

    The model comes first: where it cannot forget the person nothing is removed. After a kill the same command goes on,
    though the model knows no such person any more. Figures, the report and the runs behind them were measured with the
    person; `ownview start` measures anew.
    """
    start = place if (place / _RECORD).is_file() else place.parent
    if not (start / _RECORD).is_file():
        return *forget_user(place, user), []
    model, mark = start / _MODEL, start / FORGETTING
    try:
        changed, receipt = forget_user(model, user, begun=lambda: write_text(mark, "ownview forget goes on here\n"))
    except UnknownNameError:
        copied = {name for folder in _copies(start) for name in map(str, load(folder).users.tolist())}
        if user not in copied and (not mark.exists() or copied - people_of(model)):  # it was begun for another person
            raise
        changed, receipt = forgotten_before(model)
    removed = _made_anew(start, user)
    with writing(mark):
        mark.unlink(missing_ok=True)
    return changed, receipt, removed


def _made_anew(start: Path, user: str) -> list[str]:
    """Copy, lists and page without a person, and nothing that was measured with them; what was removed for good."""
    from ownview.pages.page import page  # noqa: PLC0415 - slow to import, and a model alone does without
    from ownview.runs.summaries.frames import write_frame  # noqa: PLC0415

    removed = [name for name in _COMPARED if (start / name).exists()]
    with writing(start):
        for name in removed:
            path = start / name
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    for name in (*_COMPARED, _LISTS, _PAGE):
        drop_unfinished(start / name)
    for folder in _copies(start):
        _rewrite(folder, user)
    model = open_run(start / _MODEL)
    write_frame(model.recommend_many(None, _LONG), start / _LISTS)
    try:
        page(model, start / _PAGE, force=True)
    except SettingError:  # nothing would be left of it
        with writing(start / _PAGE):
            (start / _PAGE).unlink(missing_ok=True)
        removed.append(_PAGE)
    return removed


def _copies(start: Path) -> list[Path]:
    """The copies of data; other things may lie beside them, or nothing at all."""
    return sorted(one.parent for one in (start / "data").glob(f"*/{INTERACTIONS}"))


def _rewrite(folder: Path, user: str) -> None:
    """The copy of the file without the person."""
    for name in (INTERACTIONS, ITEMS, USERS, PROVENANCE):
        drop_unfinished(folder / name)
    data = load(folder)
    if user in {str(one) for one in data.users.tolist()}:
        rest = without(data, user)
        about = {"dataset": folder.name, "forgotten": True}
        store(replace(rest, reading=(), unread=()), folder.name, folder.parent, about, overwrite=True)
