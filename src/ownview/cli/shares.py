"""`ownview sums key, agree, serve, total`: two servers that add up messages of browsers; neither can read one."""

from __future__ import annotations

import base64
import csv
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from ownview.base.cells import from_cell
from ownview.base.errors import DataError, SettingError
from ownview.base.extras import how_to_install
from ownview.base.files import require_new, write_bytes
from ownview.base.shown import one_line

from ownview.one_message.terms import FEWEST, SHARES, Share, Terms, agreed

AgreementFile = Annotated[Path, typer.Argument(help="The agreement (ownview sums agree).")]


def key(out: Annotated[Path, typer.Argument(help="File of the private key; must not exist.")]) -> None:
    """Make a server's key; prints the public half, which the agreement names."""
    with _extra():
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


def serve(
    agreement: AgreementFile,
    share: Annotated[str, typer.Option("--share", help="a or b.")],
    folder: Annotated[Path, typer.Option("--folder", help="Of this server's shares; made where it is not there.")],
    private_key: Annotated[Path, typer.Option("--key", help="This server's private key (ownview sums key).")],
    peer_key: Annotated[Path, typer.Option("--peer-key", help="32 bytes that both servers have.")],
    host: Annotated[str, typer.Option("--host")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535)] = 8081,
    origin: Annotated[
        list[str] | None, typer.Option("--origin", help="Of pages that may send; may be repeated.")
    ] = None,
    per_minute: Annotated[int, typer.Option("--per-minute", help="Messages of one address at most.", min=1)] = 30,
) -> None:
    """Run one of the two servers."""
    with _extra():
        from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey  # noqa: PLC0415 - an extra

        from ownview.one_message.app import ShareServer  # noqa: PLC0415
        from ownview.one_message.serving import read_secret, run_server  # noqa: PLC0415
        from ownview.one_message.store import ShareStore  # noqa: PLC0415
    if share not in SHARES:
        raise SettingError(f"--share {share}: expected a or b")
    side: Share = "a" if share == "a" else "b"
    terms = _terms(agreement)
    mine = X25519PrivateKey.from_private_bytes(read_secret(private_key))
    if mine.public_key().public_bytes_raw() != terms.keys[side]:
        raise SettingError(f"{private_key}: is not the key that {agreement} names for server {side}")
    store = ShareStore(folder, terms, side)
    server = ShareServer(terms, side, store, mine, read_secret(peer_key), per_minute, _say)
    run_server(server, host, port, tuple(origin or ()), _say)


def total(
    agreement: AgreementFile,
    folder: Annotated[Path, typer.Option("--folder", help="Of server b.")],
    out: Annotated[Path, typer.Option("-o", "--out", help="File of the sum: int64, lowest byte first.")],
) -> None:
    """Write what was opened so far; prints how many contributions it is of."""
    with _extra():
        from ownview.one_message.store import ShareStore  # noqa: PLC0415 - an extra
    store = ShareStore(folder, _terms(agreement), "b")
    write_bytes(out, store.total().astype("<i8").tobytes())
    typer.echo(json.dumps(store.status()._asdict()))


@contextmanager
def _extra() -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        raise SettingError(f"this command needs {error.name}: {how_to_install('shares')}") from error


def _terms(path: Path) -> Terms:
    try:
        return Terms.read(path.read_bytes(), str(path))
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}; expected an agreement") from error


def _say(line: str) -> None:
    sys.stderr.write(f"ownview sums: {one_line(line)}\n")
    sys.stderr.flush()
