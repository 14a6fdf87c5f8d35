"""`ownview sums key, agree, serve, total`: two servers that add up messages of browsers; neither can read one."""

from __future__ import annotations

import base64
import csv
import json
from pathlib import Path
from typing import Annotated

import typer

from ownview.base.display.cells import from_cell
from ownview.base.errors import DataError
from ownview.base.files import require_new, write_bytes
from ownview.cli.devices.share_server import AgreementFile, extra, read_terms
from ownview.one_message.terms import FEWEST, SHARES, agreed


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
    method: Annotated[str, typer.Option("--method", help="fedease or counts.")] = "fedease",
    nearness: Annotated[float, typer.Option("--nearness", help="As FedEASE's.")] = 16.0,
    fewest: Annotated[int, typer.Option("--fewest", help="Contributions that are opened together.", min=1)] = FEWEST,
) -> None:
    """Write the agreement of a federation of browsers."""
    require_new(out)
    try:
        with items.open(encoding="utf-8", newline="") as lines:
            ids = [from_cell(row["item"]) for row in csv.DictReader(lines)]
    except (OSError, KeyError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{items}: cannot be read ({error}); expected a CSV file with a column item") from error
    keys = {share: base64.b64decode(one[1]) for share, one in zip(SHARES, (a, b), strict=True)}
    made = agreed(method, ids, {"a": a[0], "b": b[0]}, keys, nearness=nearness, fewest=fewest)
    write_bytes(out, made.content)
    typer.echo(f"{out}: {made.method}, {len(ids):,} items, {made.size:,} numbers; agreement {made.name.hex()[:16]}")


def total(
    agreement: AgreementFile,
    folder: Annotated[Path, typer.Option("--folder", help="Of server b.")],
    out: Annotated[Path, typer.Option("-o", "--out", help="File of the sum: int64, lowest byte first.")],
) -> None:
    """Write what was opened so far; prints how many contributions it is of."""
    with extra():
        from ownview.one_message.store import ShareStore  # noqa: PLC0415 - an extra
    store = ShareStore(folder, read_terms(agreement), "b")
    write_bytes(out, store.total().astype("<i8").tobytes())
    typer.echo(json.dumps(store.status()._asdict()))
