"""`ownview sums key, agree, serve, total, weights`: two servers add up browsers' messages; neither can read one."""

from __future__ import annotations

import base64
import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from ownview.base.display.cells import from_cell
from ownview.base.errors import DataError
from ownview.base.files import require_new, write_bytes
from ownview.base.items.item_table import ItemTable
from ownview.cli.devices.share_server import AgreementFile, extra, read_terms
from ownview.cli.options import MinPeople
from ownview.one_message.budget import ShareBudget
from ownview.one_message.terms import FEWEST, SHARES, Share, agreed


def key(out: Annotated[Path, typer.Argument(help="File of the private key; must not exist.")]) -> None:
    """Make a server's key; prints the public half, which the agreement names."""
    with extra():
        from ownview.one_message.serving import new_key  # noqa: PLC0415 - an extra
    require_new(out)
    typer.echo(base64.b64encode(new_key(out)).decode("ascii"))


def agree(
    items: Annotated[
        Path, typer.Option("--items", help="A CSV file with a column item, such as an export's items.csv.")
    ],
    a: Annotated[tuple[str, str], typer.Option("--a", help="URL and public key of server a.")],
    b: Annotated[tuple[str, str], typer.Option("--b", help="URL and public key of server b.")],
    out: Annotated[Path, typer.Option("-o", "--out", help="File of the agreement; must not exist.")],
    method: Annotated[str, typer.Option("--method", help="fedease, fednext or counts.")] = "fedease",
    sets: Annotated[
        list[str] | None, typer.Option("--set", help="NAME=VALUE of the method: what decides what is sent.")
    ] = None,
    fewest: Annotated[int, typer.Option("--fewest", help="Contributions that are opened together.", min=1)] = FEWEST,
    epsilon: Annotated[
        float | None, typer.Option("--epsilon", help="Budget of a contribution; each server adds noise for all of it.")
    ] = None,
    delta: Annotated[float, typer.Option("--delta", help="Of the budget.")] = 1e-5,
    work: Annotated[int, typer.Option("--work", help="Zero bits of a proof of work; 0: none.", min=0, max=30)] = 0,
    groups: Annotated[
        int, typer.Option("--groups", help="Groups that are opened one by one, one that stands out is left out.", min=1)
    ] = 1,
) -> None:
    """Write the agreement of a federation of browsers."""
    require_new(out)
    budget = None if epsilon is None else ShareBudget.planned(epsilon, delta)
    try:
        with items.open(encoding="utf-8", newline="") as lines:
            ids = [from_cell(row["item"]) for row in csv.DictReader(lines)]
    except (OSError, KeyError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{items}: cannot be read ({error}); expected a CSV file with a column item") from error
    keys = {share: base64.b64decode(one[1]) for share, one in zip(SHARES, (a, b), strict=True)}
    urls: dict[Share, str] = {"a": a[0], "b": b[0]}
    made = agreed(
        method, ids, urls, keys, fewest=fewest, budget=budget, work=work, groups=groups, **_settings(method, sets or [])
    )
    write_bytes(out, made.content)
    typer.echo(f"{out}: {made.method}, {len(ids):,} items, {made.size:,} numbers; agreement {made.name.hex()[:16]}")


def total(
    agreement: AgreementFile,
    folder: Annotated[Path, typer.Option("--folder", help="Of server b.")],
    out: Annotated[Path, typer.Option("-o", "--out", help="File of the sum: int64, lowest byte first.")],
) -> None:
    """Write what was opened so far; prints how many contributions it is of."""
    with extra():
        from ownview.one_message.opened_sums import OpenedSums  # noqa: PLC0415 - an extra
    store = OpenedSums(folder, read_terms(agreement), "b")
    opened, status = store.opened()
    write_bytes(out, opened.astype("<i8").tobytes())
    typer.echo(json.dumps(status._asdict()))


def weights(
    agreement: AgreementFile,
    folder: Annotated[Path, typer.Option("--folder", help="Of server b, which then serves the weights.")],
    sets: Annotated[
        list[str] | None, typer.Option("--set", help="NAME=VALUE of the method: what its server decides.")
    ] = None,
    items: Annotated[
        Path | None, typer.Option("--items", help="What is public of the items (item, title, any columns): text.")
    ] = None,
    min_people: MinPeople = 5,
    megabytes: Annotated[float, typer.Option("--megabytes", help="The file has at most.")] = 5.0,
) -> None:
    """Solve what was opened, for the pages of people: a static file with a name of its own for every version."""
    with extra():
        from ownview.one_message.opened_sums import OpenedSums  # noqa: PLC0415 - an extra
        from ownview.pages.weights_file import publish  # noqa: PLC0415 - slow to import
    terms = read_terms(agreement)
    about = None if items is None else _about(items, terms.items)
    store, settings = OpenedSums(folder, terms, "b"), _settings(terms.method, sets or [])
    typer.echo(json.dumps(publish(store, settings, min_people, round(megabytes * 1e6), about)))


def _about(path: Path, ids: Sequence[str]) -> ItemTable:
    """What a file says of the items of an agreement."""
    import numpy as np  # noqa: PLC0415 - slow to import

    from ownview.data.reading.titles import read_items  # noqa: PLC0415

    return ItemTable.aligned(read_items(path, np.array(ids, dtype=object)).columns, ids)


def _settings(method: str, sets: list[str]) -> dict[str, Any]:
    """What NAME=VALUE pairs say, as the method takes it."""
    if not sets:
        return {}
    from ownview.cli.settings import with_settings  # noqa: PLC0415 - slow to import
    from ownview.runs.experiment import Experiment  # noqa: PLC0415

    names = [pair.partition("=")[0] for pair in sets]
    chosen = with_settings(Experiment(method=method, data=""), method, (), sets).model()
    return {name: getattr(chosen, name) for name in names}
