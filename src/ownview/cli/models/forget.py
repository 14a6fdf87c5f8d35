"""`ownview forget`: take a person out of a model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ownview.cli.display.terminal import Console
from ownview.cli.options import AsJson, print_json
from ownview.cli.trusting import Trust


def command(
    model: Annotated[Path, typer.Argument(help="Folder of a model, or of a start.")],
    user: Annotated[str, typer.Argument(help="The person's id, as the data has it.")],
    trust: Trust = False,
    as_json: AsJson = False,
) -> None:
    """Take a person out of a model: sums, histories, lists, reports; a receipt says what was done and what cannot be.

    Where the method is a sum the model is, bit for bit, one that the person never entered; others are trained anew.

    As in: [bold]ownview forget model 4711[/]
    """
    from ownview.sums.forgetting import NOT_CALLED_BACK  # noqa: PLC0415 - slow to import, and help does without
    from ownview.sums.starts import forget_everywhere  # noqa: PLC0415

    changed, receipt, removed = forget_everywhere(model, user)
    if as_json:
        print_json({**changed.plain(), "receipt": str(receipt), "removed": removed})
        return
    console = Console(highlight=False)
    console.print(f"{changed.version}: {changed.what}", soft_wrap=True, markup=False)
    console.print(f"  {changed.how}; {changed.seconds:.2f} s in all", soft_wrap=True, markup=False)
    for name in removed:
        console.print(f"  removed: {name}", soft_wrap=True, markup=False)
    for sentence in NOT_CALLED_BACK:
        console.print(f"  note: {sentence}", soft_wrap=True, markup=False)
    console.print(f"  receipt: {receipt}", soft_wrap=True, markup=False)
