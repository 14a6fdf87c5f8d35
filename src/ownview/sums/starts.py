"""Forgetting in the folder of a start, which holds more than a model: the data, runs, lists, a report, a page."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

from ownview.base.errors import SettingError, UnknownNameError
from ownview.base.files import writing
from ownview.data.datasets.catalog import load
from ownview.data.datasets.storage import store
from ownview.runs.run import open_run
from ownview.sums.living import Changed, forget_user, require_member, without

_RECORD, _MODEL, _COMPARED = "start.json", "model", ("comparison", "report.html", "verdict.json", "plan.json")
_LISTS, _PAGE = "lists.csv", "page.html"
_LONG = 10
"""Items of a list."""


def forget_everywhere(place: Path, user: str) -> tuple[Changed, Path, list[str]]:
    """Forget a person in a model, or in a start with all that it made; the last is what was removed for good.

    The copy of the data comes after the model, which may be read from it: after a kill the same command goes on.
    Figures, the report and the runs behind them were measured with the person; `ownview start` measures anew.
    """
    start = place if (place / _RECORD).is_file() else place.parent
    if not (start / _RECORD).is_file():
        return *forget_user(place, user), []
    from ownview.pages.page import page  # noqa: PLC0415 - slow to import, and a model alone does without
    from ownview.runs.summaries.frames import write_frame  # noqa: PLC0415

    try:
        require_member(start / _MODEL, user)
        removed = _remove(start)
        changed, receipt = forget_user(start / _MODEL, user)
    except UnknownNameError:  # perhaps because a kill came after the model
        _rewrite(start, user)
        raise
    _rewrite(start, user)
    model = open_run(start / _MODEL)
    write_frame(model.recommend_many(None, _LONG), start / _LISTS)
    try:
        page(model, start / _PAGE, force=True)
    except SettingError:  # nothing would be left of it
        removed.append(_PAGE)
    return changed, receipt, removed


def _remove(start: Path) -> list[str]:
    """Remove what was measured or written with a person; what is not written anew."""
    removed = [name for name in _COMPARED if (start / name).exists()]
    with writing(start):
        for name in (*removed, _LISTS, _PAGE):
            path = start / name
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    return removed


def _rewrite(start: Path, user: str) -> None:
    """The copy of the file without the person."""
    for folder in (start / "data").iterdir():
        data = load(folder)
        if user in {str(one) for one in data.users.tolist()}:
            rest = without(data, user)
            about = {"dataset": folder.name, "forgotten": True}
            store(replace(rest, reading=(), unread=()), folder.name, folder.parent, about, overwrite=True)
