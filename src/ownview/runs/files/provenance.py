"""Where a result comes from: versions, revision, data, machine class."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

import torch

from ownview.base.platforms import peak_resident
from ownview.base.version import __version__
from ownview.data.splitting.splits import Split
from ownview.engine.machine import Machine
from ownview.runs.experiment import Experiment
from ownview.runs.files.sources import METHOD, sources

_PACKAGES = ("torch", "numpy", "polars", "safetensors")


def provenance(split: Split, place: Machine, experiment: Experiment) -> dict[str, Any]:
    """Everything a reader needs to judge whether two results are comparable.

    Args:
        split: the data as used.
        place: where training took place; its engine is named because a fault of one engine says nothing of the others.
        experiment: whose own files, of the method and of the data, are fingerprinted.
    """
    return {
        METHOD: None,
        **sources(experiment),
        "ownview": __version__,
        "revision": revision(),
        "python": platform.python_version(),
        "packages": package_versions(),
        "machine": {  # what kind of machine, and never which one
            "system": platform.system(),
            "processor": platform.machine(),
            "cpu": _cpu_kind(),
            "cores": os.cpu_count(),
            "device": torch.cuda.get_device_name(place.device) if place.device.type == "cuda" else "cpu",
            "engine": place.engine,
        },
        "data": {
            "name": split.data.name,
            "fingerprint": split.data.fingerprint(),
            "users": split.num_users,
            "items": split.num_items,
            "interactions": len(split.data),
        },
    }


def package_versions() -> dict[str, str | None]:
    """Versions of the packages a result may depend on; None for one that is absent."""
    return {name: _version(name) for name in _PACKAGES}


def peak_memory(device: torch.device) -> int:
    """Most bytes this process has held so far: on the GPU, or resident in main memory."""
    if device.type == "cuda":
        return int(torch.cuda.max_memory_allocated(device))
    return peak_resident()


def _cpu_kind() -> str | None:
    """The processor as its maker calls it; None where the system does not say."""
    source = Path("/proc/cpuinfo")
    lines = source.read_text(encoding="utf-8", errors="replace").splitlines() if source.is_file() else []
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), None)


def revision() -> str | None:
    """Git revision of the source tree, with '+' where files were changed; None outside a checkout."""
    here = Path(__file__).parent
    try:
        found = subprocess.run(
            ["git", "-C", str(here), "describe", "--always", "--dirty=+", "--abbrev=12", "--exclude=*"],
            capture_output=True, text=True, timeout=10, check=True,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return None
    return found.stdout.strip()


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
