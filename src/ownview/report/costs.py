"""What a round costs a client: bytes, and seconds in the field."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean
from typing import Any

from ownview.report.reading import SeenRun


def costs(runs: Sequence[SeenRun]) -> dict[str, Any] | None:
    """Means over seeds; None for models that are not federated.

    Bytes are those on the wire, up and down, mean over rounds and clients. Seconds are the slowest client's local
    training, timed alone, plus the server's part; None where a run does not tell them.
    """
    told = [run.result for run in runs if (run.result.get("cost") or {}).get("seconds")]
    if len(told) != len(runs):
        return None
    return {
        "bytes": mean(one["bytes_down_per_client"] + one["bytes_up_per_client"] for one in told),
        "up": mean(one["bytes_up_per_client"] for one in told),
        "down": mean(one["bytes_down_per_client"] for one in told),
        "seconds": mean(one["cost"]["seconds"]["round"] for one in told),
        "client_bytes": mean(one["cost"]["client_bytes"] for one in told),
        "server_bytes": mean(one["cost"]["server_bytes"] for one in told),
    }
