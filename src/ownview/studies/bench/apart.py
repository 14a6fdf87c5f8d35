"""What a suite's rows can be told apart by: the paired tests of `ownview compare`, dataset by dataset."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ownview.evaluation.comparison import UserValues, compare_columns
from ownview.evaluation.metrics import HEADLINE
from ownview.runs.per_user import user_values
from ownview.runs.run import Run, open_run
from ownview.studies.bench.plan import Planned


def compared(finished: Sequence[Planned]) -> list[dict[str, Any]]:
    """One entry for every dataset, protocol, metric and row: interval, mark against the best, p and effect sizes.

    p is corrected over all comparisons of the dataset's table (Holm). Rows whose seeds ranked different users have no
    entry.
    """
    return [entry for data in dict.fromkeys(one.data for one in finished) for entry in _on(data, finished)]


def _on(data: str, finished: Sequence[Planned]) -> list[dict[str, Any]]:
    seeds: dict[tuple[str, str], list[Run]] = {}
    for one in finished:
        if one.data == data:
            seeds.setdefault((one.row, one.protocol), []).append(open_run(one.folder))
    columns: dict[tuple[str, str], dict[str, UserValues]] = {}
    for (row, protocol), runs in seeds.items():
        for metric, values in (user_values(runs, HEADLINE) or {}).items():
            columns.setdefault((protocol, metric), {})[row] = values
    return [
        {
            "data": data,
            "protocol": protocol,
            "metric": metric,
            "method": row.label,
            **{name: row.to_dict()[name] for name in ("low", "high", "mark", "p_holm", "against_best")},
        }
        for (protocol, metric), rows in compare_columns(columns).items()
        for row in rows
    ]
