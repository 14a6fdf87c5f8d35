"""`ownview update`: new rows for a model that is in use."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ownview.base.errors import SettingError
from ownview.cli.display.terminal import Console
from ownview.cli.options import AsJson, print_json
from ownview.cli.reading import Users, read_or_ask, with_reading_options
from ownview.cli.trusting import Trust
from ownview.data.reading.readers import ReadingOptions, read


@with_reading_options
def command(
    model: Annotated[Path, typer.Argument(help="Folder of a model (`ownview fit`).")],
    reading: ReadingOptions,
    file: Annotated[Path | None, typer.Argument(help="New rows, or all rows: those that are known count once.")] = None,
    items: Annotated[
        Path | None,
        typer.Option("--items", help="File with item,title and others about items; without rows, items to offer."),
    ] = None,
    users: Users = None,
    rounds: Annotated[
        int | None, typer.Option("--rounds", help="Of a method that trains; a tenth of the model's by default.", min=1)
    ] = None,
    trust: Trust = False,
    as_json: AsJson = False,
) -> None:
    """Add new rows to a model in use, with new people and new items; readers see the old version until all is done.

    Where the method is a sum, what is new is added and solved; others train on from where they were. With --items and
    no rows, items without interactions are offered by their text: no client is asked and nothing is trained.

    Every day: [bold]ownview update model orders-today.csv[/], [bold]ownview update model --items arrivals.csv[/]
    """
    from ownview.sums.living import offer_items, update_model  # noqa: PLC0415 - slow to import, and help does without

    console = None if as_json else Console(highlight=False)
    if file is not None:
        data = read_or_ask(console, file, reading, lambda options: read(file, titles=items, users=users, **options))
        changed = update_model(model, data, str(file), rounds=rounds)
    elif items is not None and users is None:
        changed = offer_items(model, items)
    else:
        raise SettingError("found no file; expected one of new rows, or --items FILE alone with items to offer")
    if console is None:
        print_json(changed.plain())
        return
    console.print(f"{changed.version}: {changed.what}", soft_wrap=True, markup=False)
    console.print(f"  {changed.how}; {changed.seconds:.2f} s in all", soft_wrap=True, markup=False)
