"""`ownview doctor`: is everything here that Ownview needs?"""

from __future__ import annotations

import os
import platform
import shutil
from pathlib import Path
from typing import Any

import torch
from rich.table import Column, Table

from ownview.base.version import __version__
from ownview.cli.display.terminal import Console
from ownview.cli.options import AsJson, DataDir, print_json
from ownview.data.datasets.catalog import catalog
from ownview.data.datasets.storage import find, places
from ownview.engine.machine import machine
from ownview.runs.files.provenance import package_versions


def command(data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Show versions, devices, memory and the datasets found."""
    report = _report(data_dir)
    if as_json:
        print_json(report)
        return
    columns = Column("what", no_wrap=True, style="bold"), Column("found", overflow="fold")
    table = Table(*columns, box=None, show_header=False, pad_edge=False)
    for name, value in report.items():
        table.add_row(name, _text(value))
    Console(highlight=False).print(table)


def _report(data_dir: Path | None) -> dict[str, Any]:
    return {
        "ownview": __version__,
        "python": platform.python_version(),
        "packages": package_versions(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "cuda devices": [torch.cuda.get_device_name(k) for k in range(torch.cuda.device_count())] or "none",
        "memory for training": f"{machine('cpu').memory / 1e9:.1f} GB (half of what is free; set with --memory)",
        "disk free here": f"{shutil.disk_usage('.').free / 1e9:.1f} GB",
        "data looked for in": [str(place) for place in places(data_dir)],
        "datasets here": [name for name in catalog() if find(name, data_dir) is not None],
        "datasets absent": [name for name in catalog() if find(name, data_dir) is None],
    }


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {version or 'absent'}" for name, version in value.items())
    return ", ".join(value) if isinstance(value, list) else str(value)
