"""Counters that all workers of a server share: a file in memory with one row a worker, which only that worker writes.

A worker that is started again goes on with its row, so that counters never fall. Whichever worker is asked for metrics
adds the rows up.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from ownview.base.version import __version__

ROUTES = ("recommend", "similar", "items", "chosen", "other")
_OUTCOMES = ("2xx", "4xx", "5xx")
EDGES = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
"""Seconds; upper edges of the histogram of durations."""

_COUNTED = len(ROUTES) * len(_OUTCOMES)
_TIMED = len(EDGES) + 2
_PLAIN = ("swaps", "failed_swaps", "unknown_ids", "shown_a", "shown_b", "chosen", "starts", "unlogged")
_CONNECTED = _COUNTED + len(ROUTES) * _TIMED + len(_PLAIN)
WIDTH = _CONNECTED + 1


def make(path: Path, workers: int) -> None:
    """A file of zeros."""
    path.write_bytes(bytes(8 * WIDTH * workers))


class Counters:
    """Counts of one worker, and their sum over all.

    Args:
        path: that `make` has made.
        workers: rows of it.
        row: of this worker.
    """

    def __init__(self, path: Path, workers: int, row: int) -> None:
        self.all = np.memmap(path, dtype=np.float64, mode="r+", shape=(workers, WIDTH))
        self.mine = self.all[row]

    def answered(self, route: str, status: int, seconds: float) -> None:
        """Count a request."""
        place = ROUTES.index(route) if route in ROUTES else len(ROUTES) - 1
        self.mine[place * len(_OUTCOMES) + min(max(status // 100, 3), 5) - 3] += 1
        begin = _COUNTED + place * _TIMED
        self.mine[begin + int(np.searchsorted(EDGES, seconds))] += 1
        self.mine[begin + _TIMED - 1] += seconds

    def add(self, name: str, amount: int = 1) -> None:
        """Count something else, by its name in `_PLAIN`."""
        self.mine[_CONNECTED - len(_PLAIN) + _PLAIN.index(name)] += amount

    def connected(self, connections: int) -> None:
        """Note how many connections this worker has."""
        self.mine[_CONNECTED] = connections

    @property
    def most_connected(self) -> bool:
        """Whether another worker has fewer connections."""
        return bool(self.all[:, _CONNECTED].min() < self.mine[_CONNECTED])

    def text(self, gauges: Iterable[tuple[str, str, float]]) -> str:
        """All of it in the format of Prometheus.

        Args:
            gauges: name, labels and value of what this worker knows now.
        """
        total = np.asarray(self.all).sum(0)
        lines = ["# TYPE ownview_requests_total counter"]
        for place, route in enumerate(ROUTES):
            for which, outcome in enumerate(_OUTCOMES):
                value = total[place * len(_OUTCOMES) + which]
                lines.append(f'ownview_requests_total{{route="{route}",status="{outcome}"}} {value:.0f}')
        lines.append("# TYPE ownview_request_seconds histogram")
        for place, route in enumerate(ROUTES):
            begin = _COUNTED + place * _TIMED
            below = np.cumsum(total[begin : begin + _TIMED - 1])
            for edge, value in zip((*map(str, EDGES), "+Inf"), below, strict=True):
                lines.append(f'ownview_request_seconds_bucket{{route="{route}",le="{edge}"}} {value:.0f}')
            lines.append(f'ownview_request_seconds_sum{{route="{route}"}} {total[begin + _TIMED - 1]:.6f}')
            lines.append(f'ownview_request_seconds_count{{route="{route}"}} {below[-1]:.0f}')
        for place, name in enumerate(_PLAIN):
            lines.append(f"# TYPE ownview_{name}_total counter")
            lines.append(f"ownview_{name}_total {total[_CONNECTED - len(_PLAIN) + place]:.0f}")
        lines += ["# TYPE ownview_connections gauge", f"ownview_connections {total[_CONNECTED]:.0f}"]
        lines += ["# TYPE ownview_info gauge", f'ownview_info{{version="{__version__}"}} 1']
        for name, labels, amount in gauges:
            lines += [f"# TYPE ownview_{name} gauge", f"ownview_{name}{labels} {amount:g}"]
        return "\n".join(lines) + "\n"
