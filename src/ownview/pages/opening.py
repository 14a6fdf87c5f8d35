"""What can be published: a finished run, or the server's folder of a deployment."""

from __future__ import annotations

from pathlib import Path

from ownview.base.errors import SettingError
from ownview.deploy.folders import ServerFolder
from ownview.pages.deployed import Deployed
from ownview.pages.taken import Taken
from ownview.runs.run import Run, open_run


def opened(run: Run | str | Path, data_dir: Path | None = None, new_items: Path | None = None) -> Taken | Deployed:
    """The model of a run or of a deployment, whose server may be at work.

    Raises:
        SettingError: it has no form that a device could score with, or new items are asked of a deployment.
    """
    if isinstance(run, Run):
        return Taken.of(run, data_dir, new_items)
    folder = ServerFolder(Path(run))
    if not folder.exists:
        return Taken.of(open_run(Path(run)), data_dir, new_items)
    if new_items is not None:
        raise SettingError(f"{run}: --new-items: a deployment's items are those of its agreement; leave it out")
    return Deployed.of(folder)
