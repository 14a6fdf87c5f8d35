"""`ownview sums serve`: one of the two servers that add up messages of browsers.

A module of its own, with a word of its own in the program: a server that runs for months need not hold torch.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from ownview.base.display.shown import one_line
from ownview.base.errors import DataError, SettingError
from ownview.base.extras import how_to_install
from ownview.base.files import make_folder
from ownview.base.lock import sole_worker
from ownview.one_message.terms import SHARES, Share, Terms

AgreementFile = Annotated[Path, typer.Argument(help="The agreement (ownview sums agree).")]


def command(
    agreement: AgreementFile,
    share: Annotated[str, typer.Option("--share", help="a or b.")],
    folder: Annotated[Path, typer.Option("--folder", help="Of this server's shares; made where it is not there.")],
    private_key: Annotated[Path, typer.Option("--key", help="This server's private key (ownview sums key).")],
    peer_key: Annotated[Path, typer.Option("--peer-key", help="32 bytes that both servers have.")],
    host: Annotated[str, typer.Option("--host", help="Address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", help="0 takes any that is free.", min=0, max=65535)] = 8081,
    origin: Annotated[
        list[str] | None, typer.Option("--origin", help="Of pages that may send; may be repeated.")
    ] = None,
    per_minute: Annotated[int, typer.Option("--per-minute", help="Messages of one address at most.", min=1)] = 30,
    total: Annotated[
        float | None,
        typer.Option("--total", help="Epsilon of all agreements about these items together, from now on.", min=0),
    ] = None,
    behind_proxy: Annotated[
        bool, typer.Option("--behind-proxy", help="Addresses stand last in X-Forwarded-For, written by a proxy.")
    ] = False,
) -> None:
    """Run one of two servers that add up messages of browsers; neither can read one."""
    with extra():
        from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey  # noqa: PLC0415 - an extra

        from ownview.one_message.app import ShareServer  # noqa: PLC0415
        from ownview.one_message.charging import charge_agreement  # noqa: PLC0415
        from ownview.one_message.senders import Senders  # noqa: PLC0415
        from ownview.one_message.serving import read_secret, run_server  # noqa: PLC0415
        from ownview.one_message.store import ShareStore  # noqa: PLC0415
    if share not in SHARES:
        raise SettingError(f"--share {share}: expected a or b")
    side: Share = "a" if share == "a" else "b"
    terms = read_terms(agreement)
    mine = X25519PrivateKey.from_private_bytes(read_secret(private_key))
    if mine.public_key().public_bytes_raw() != terms.keys[side]:
        raise SettingError(f"{private_key}: is not the key that {agreement} names for server {side}")
    if terms.budget is not None:
        terms.budget.require_covered(terms.size)
    shared = read_secret(peer_key)
    make_folder(folder, private=True)
    with sole_worker(folder):
        store = ShareStore(folder, terms, side, shared)
        charge_agreement(terms, agreement, folder, total)
        senders = Senders(per_minute, behind_proxy=behind_proxy)
        server = ShareServer(terms, side, store, mine, shared, senders, _say)
        run_server(server, host, port, tuple(origin or ()), _say)


@contextmanager
def extra() -> Iterator[None]:
    """Say how to install what is not there."""
    try:
        yield
    except ImportError as error:
        raise SettingError(f"this command needs {error.name}: {how_to_install('shares')}") from error


def read_terms(path: Path) -> Terms:
    """Of a file."""
    try:
        return Terms.read(path.read_bytes(), str(path))
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}; expected an agreement") from error


def _say(line: str) -> None:
    sys.stderr.write(f"ownview sums: {one_line(line)}\n")
    sys.stderr.flush()
