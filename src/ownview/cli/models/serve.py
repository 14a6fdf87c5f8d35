"""`ownview serve`: a model behind HTTP."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from ownview.base.display.shown import one_line
from ownview.base.errors import SettingError
from ownview.base.extras import how_to_install
from ownview.cli.options import DataDir
from ownview.cli.trusting import Trust


def command(
    model: Annotated[Path, typer.Argument(help="Folder of a finished run, or of ownview export.")],
    host: Annotated[str, typer.Option("--host", help="Address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", help="0 takes any that is free.", min=0, max=65535)] = 8080,
    workers: Annotated[int, typer.Option("--workers", help="Processes that answer.", min=1, max=64)] = 2,
    in_stock: Annotated[
        Path | None, typer.Option("--in-stock", help="File of ids, one a line; read again when it changes.")
    ] = None,
    against: Annotated[
        Path | None, typer.Option("--against", help="A second model: an A/B test (docs/serve.md).")
    ] = None,
    share: Annotated[float, typer.Option("--share", help="Of units that see the second model.", min=0, max=1)] = 0.5,
    key: Annotated[Path | None, typer.Option("--key", help="Secret of the split; made where it is not there.")] = None,
    log: Annotated[Path | None, typer.Option("--log", help="Log of impressions, for compare --online.")] = None,
    origin: Annotated[
        list[str] | None, typer.Option("--origin", help="A web page's origin that may ask; may be repeated.")
    ] = None,
    connections: Annotated[int, typer.Option("--connections", help="Of a worker at most.", min=8)] = 512,
    data_dir: DataDir = None,
    trust: Trust = False,
) -> None:
    """Serve a model over HTTP: lists for a history or a known user, similar items, items by title, metrics."""
    try:
        from ownview.serve.arms import Arm, Split, read_key  # noqa: PLC0415 - an extra
        from ownview.serve.supervisor import Offer, Supervisor  # noqa: PLC0415
    except ImportError as error:
        raise SettingError(f"serve needs {error.name}: {how_to_install('serve')}") from error
    models: dict[Arm, Path] = {"a": model}
    split = None
    if against is not None:
        models["b"] = against
        if key is None:
            raise SettingError(
                "--against: needs --key FILE, which keeps every unit with its model; it is made if need be"
            )
        split = Split(read_key(key), share)
    elif key is not None or log is not None:
        raise SettingError("--key and --log: go with --against MODEL")
    offer = Offer(models, host, port, workers, data_dir, in_stock, split, log, tuple(origin or ()), connections)
    Supervisor(offer, _say).run()


def _say(line: str) -> None:
    sys.stderr.write(f"ownview serve: {one_line(line)}\n")
    sys.stderr.flush()
