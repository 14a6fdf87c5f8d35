"""From what the command line names to a folder that a server reads: a model's portable form, and who its users are.

An exported folder (`ownview export`) is copied: what happens to it while it is served harms no server, and it knows no
users. Of a run folder a private folder of the same format is made, with all items, and beside it

serving.json         columns about items, ids of users
serving.safetensors  popularity [m]; offsets [n + 1] and known [r]: what every user had, oldest first
"""

from __future__ import annotations

import multiprocessing
import shutil
from multiprocessing.connection import Connection
from pathlib import Path

from ownview.base.errors import DataError, OwnviewError, SettingError, nearest_beside
from ownview.base.trust import Permissions, inherit, permissions
from ownview.runs.files.versions import CURRENT, in_use, model_within

EXPORTED, FINISHED = "model.json", "result.json"
"""A file that is written last: of an exported folder, of a run."""

Stamp = tuple[tuple[int, int, int], ...]


def is_exported(model: Path) -> bool:
    """Whether a folder was exported; refuses what is neither that nor a finished run."""
    if (model / EXPORTED).is_file():
        return True
    if (in_use(model) / FINISHED).is_file():
        return False
    near = model_within(model) or nearest_beside(
        model, lambda entry: (entry / EXPORTED).is_file() or (entry / FINISHED).is_file() or (entry / CURRENT).is_file()
    )
    raise DataError(f"{model}: holds no model; expected the folder of a finished run or of ownview export{near}")


def stamp(model: Path) -> Stamp:
    """What changes when another model takes a folder's place, or another version of it is put in use.

    Inode, time and size of the files that say what it is.
    """
    found = []
    for name in (EXPORTED, FINISHED, "model.safetensors"):
        try:
            about = (in_use(model) / name).stat()
        except (OSError, OwnviewError):
            continue
        found.append((about.st_ino, about.st_mtime_ns, about.st_size))
    return tuple(found)


def prepare(model: Path, out: Path, data_dir: Path | None = None) -> Path:
    """Make the folder to serve a model from: a copy where it was exported, else written by a process of its own.

    torch and the data stay in that process, so that a server holds neither.

    Args:
        model: folder of a finished run or of an export.
        out: a new folder.
        data_dir: where datasets are.

    Raises:
        OwnviewError: the model cannot be read or has no portable form; says why.
    """
    if is_exported(model):
        try:
            out.mkdir(mode=0o700)
            for one in model.iterdir():
                if one.is_file():
                    shutil.copyfile(one, out / one.name)
        except OSError as error:
            raise DataError(f"{model}: cannot be copied to {out.parent}: {error}") from error
        return out
    ours, theirs = multiprocessing.Pipe(duplex=False)
    work = (model, out, data_dir, permissions(), theirs)
    child = multiprocessing.get_context("spawn").Process(target=_in_child, args=work, daemon=True)
    child.start()
    theirs.close()
    try:
        problem = ours.recv()
    except EOFError:
        problem = f"{model}: could not be read: the process that reads it ended without a word"
    child.join()
    if problem:
        raise SettingError(problem)
    return out


def _in_child(model: Path, out: Path, data_dir: Path | None, allowed: Permissions, answer: Connection) -> None:
    from ownview.serve.served_run import write_served  # noqa: PLC0415 - torch is for this process alone

    inherit(allowed)
    try:
        write_served(model, out, data_dir)
    except OwnviewError as error:
        answer.send(str(error))
    else:
        answer.send("")
