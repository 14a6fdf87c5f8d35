"""What `start --private` shows: who is protected from whom, and what every way to be private costs on this data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Column, Table

from ownview.base.display.amounts import readable
from ownview.cli.display.terminal import Console

if TYPE_CHECKING:
    from ownview.runs.run import Run
    from ownview.start.steps import Steps

_SIMULATED = "rows with an epsilon simulate a budget: nothing is released by a comparison, and its noise is drawn anew"


def say_who(console: Console) -> None:
    """On the first screen: who protects whom from what."""
    from ownview.start.private import WHO  # noqa: PLC0415 - slow to import, and help does without

    for sentence in WHO:
        console.print(f"- {sentence}", markup=False)


def show_ways(console: Console, steps: Steps) -> None:
    """A row a way: its figures, what a person sends, and how long it took; then what is recommended and why."""
    recommended = steps.recommended()
    assert recommended is not None
    table = Table(
        "way", Column("NDCG@10\nvalidation", justify="right"), Column("\ntest", justify="right"),
        Column("a person\nsends", justify="right"), Column("\nseconds", justify="right"), Column("who learns what"),
        box=None,
    )  # fmt: skip
    for way, run in steps.ways().items():
        mark = "[bold]" if way == recommended.way else ""
        figures = (f"{run.result[part]['NDCG@10']:.3f}" for part in ("validation", "test"))
        table.add_row(
            f"{mark}{way}", *figures, readable(_sent(run)) if _sent(run) else "nothing",
            f"{float(run.result['seconds']):.1f}", _LEARNS.get(way, _LEARNS["epsilon"]),
        )  # fmt: skip
    console.print(table)
    if any(way not in _LEARNS for way in steps.ways()):
        console.print(f"  {_SIMULATED}", markup=False)
    console.print(f"  recommended: {recommended.way}", markup=False)
    for reason in recommended.reasons:
        console.print(f"  - {reason}", markup=False)


def _sent(run: Run) -> int:
    """Bytes that one person sends in all."""
    return sum(int(line.get("bytes_up_per_client", 0)) for line in run.rounds)


_LEARNS = {
    "nothing sent": "no one: nothing leaves",
    "sums hidden": "the server: sums",
    "epsilon": "who adds up: uploads; all others: noisy sums",
}
