"""What can be published: a finished run, or the server's folder of a deployment."""

from __future__ import annotations

from pathlib import Path

from ownview.base.errors import SettingError
from ownview.deploy.folders import ServerFolder
from ownview.pages.deployed_model import DeployedModel
from ownview.pages.run_model import RunModel
from ownview.runs.run import Run, open_run


def opened(
    run: Run | str | Path, data_dir: Path | None = None, new_items: Path | None = None
) -> RunModel | DeployedModel:
    """The model of a run or of a deployment, whose server may be at work.

    Raises:
        SettingError: it has no form that a device could score with, or new items are asked of a deployment.
    """
    if isinstance(run, Run):
        return RunModel.of(run, data_dir, new_items)
    folder = ServerFolder(Path(run))
    if not folder.exists:
        return RunModel.of(open_run(Path(run)), data_dir, new_items)
    if new_items is not None:
        raise SettingError(f"{run}: --new-items: a deployment's items are those of its agreement; leave it out")
    return DeployedModel.of(folder)
