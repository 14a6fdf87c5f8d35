"""A start whose file has grown: the model goes on with what is new; what was measured stays as it was."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from ownview.base.display.amounts import counted
from ownview.base.errors import OutputError, SettingError
from ownview.data.interactions import Interactions
from ownview.pages.page import page
from ownview.runs.files.folder import RunFolder
from ownview.runs.files.versions import in_use
from ownview.runs.run import open_run
from ownview.runs.summaries.frames import write_frame
from ownview.start.folder import StartFolder
from ownview.sums.living import Changed, update_model


class Grown(NamedTuple):
    """What new rows came to; `left_out` is why there is no page, where there is none."""

    changed: Changed
    users: int
    left_out: str


def grown(folder: StartFolder) -> Interactions | None:
    """All rows of a file that has grown since the start was finished; None where it is the same, or none was.

    Raises:
        OutputError: rows are gone, so that it is another file; or the start has not finished with the one before.
    """
    before = folder.outgrown()
    if before is None:
        return None
    if not RunFolder(in_use(folder.model)).finished:
        raise OutputError(
            f"{folder.path}: was begun with another file than {folder.file} is now, and has no model yet that could go "
            "on; choose another --out, or remove it"
        )
    data = folder.read_file()
    gone = _rows(before) - _rows(data)
    if gone:
        lost = counted(sum(gone.values()), "row")
        raise OutputError(
            f"{folder.path}: {lost} that it was begun with are not in {folder.file} any more; expected a file that "
            "grew: choose another --out (orders cancelled since are gone, too), or take people out with ownview forget"
        )
    return data


def _rows(data: Interactions) -> Counter[tuple[str, str, int]]:
    users, items = data.users[data.user].tolist(), data.items[data.item].tolist()
    times = [0] * len(data) if data.timestamp is None else data.timestamp.tolist()
    return Counter(zip(map(str, users), map(str, items), times, strict=True))


def go_on(folder: StartFolder, data: Interactions, k: int) -> Grown:
    """Update the model, lists and page; the copy of the file comes last, so that a kill leaves the same to do."""
    changed = update_model(folder.model, data, str(folder.file))
    model = open_run(folder.model)
    frame = model.recommend_many(None, k)
    write_frame(frame, folder.lists)
    left_out = ""
    try:
        page(model, folder.page, force=True)
    except SettingError as error:
        left_out = str(error)
    folder.keep(data, again=True)
    return Grown(changed, int(frame["user"].n_unique()), left_out)
