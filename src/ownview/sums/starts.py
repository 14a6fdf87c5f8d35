"""Forgetting in the folder of a start, which holds more than a model: the data, runs, lists, a report, a page."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

from ownview.base.errors import SettingError
from ownview.base.files import writing
from ownview.data.datasets.catalog import load
from ownview.data.datasets.storage import store
from ownview.runs.run import open_run
from ownview.sums.living import Changed, forget_user, without

_RECORD, _MODEL, _COMPARED = "start.json", "model", ("comparison", "report.html", "verdict.json", "plan.json")


def forget_everywhere(place: Path, user: str) -> tuple[Changed, Path, list[str]]:
    """Forget a person in a model, or in a start with all that it made; the last is what was removed for good.

    Figures, the report and the runs behind them were measured with the person; `ownview start` measures anew.
    """
    start = place if (place / _RECORD).is_file() else place.parent
    if not (start / _RECORD).is_file():
        return *forget_user(place, user), []
    from ownview.pages.page import page  # noqa: PLC0415 - slow to import, and a model alone does without
    from ownview.runs.summaries.frames import write_frame  # noqa: PLC0415

    changed, receipt = forget_user(start / _MODEL, user)
    removed = [name for name in _COMPARED if (start / name).exists()]
    with writing(start):
        for name in removed:
            path = start / name
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    model = open_run(start / _MODEL)
    for folder in (start / "data").iterdir():
        _rewrite(folder, user)
    if (start / "lists.csv").is_file():
        k = 10
        write_frame(model.recommend_many(None, k), start / "lists.csv")
    if (start / "page.html").is_file():
        try:
            page(model, start / "page.html", force=True)
        except SettingError:  # nothing would be left of it
            (start / "page.html").unlink()
            removed.append("page.html")
    return changed, receipt, removed


def _rewrite(folder: Path, user: str) -> None:
    """The copy of the file without the person."""
    data = load(folder)
    if user not in {str(one) for one in data.users.tolist()}:
        return
    rest = without(data, user)
    about = {"dataset": folder.name, "forgotten": True}
    store(replace(rest, reading=(), unread=()), folder.name, folder.parent, about, overwrite=True)
