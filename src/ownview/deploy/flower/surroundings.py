"""What Flower finds around it: it tells nobody what it does, asks nobody for updates, and may not be there at all."""

from __future__ import annotations

import os
from importlib.util import find_spec

from ownview.base.errors import SettingError

QUIET = {
    "FLWR_TELEMETRY_ENABLED": "0",
    "FLWR_DISABLE_UPDATE_CHECK": "1",
    "FLWR_TRACING_ENABLED": "0",
    "FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION": "1",
}
"""Of the environment; set before Flower is imported, which reads some of it once."""


def require_flower() -> None:
    """Refuse in one line where Flower is not installed; where it is, keep it quiet."""
    if find_spec("flwr") is None:
        raise SettingError(
            "transport 'flower': the package flwr is not installed; expected pip install 'ownview[deploy]', or choose "
            "--transport tls"
        )
    os.environ.update(QUIET)
