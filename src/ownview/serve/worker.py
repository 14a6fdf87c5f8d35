"""One process that answers requests; its supervisor holds the socket and says which models it answers with."""

from __future__ import annotations

import asyncio
import gc
import logging
import socket
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

import uvicorn

from ownview.base.errors import OwnviewError
from ownview.base.http.bounded_head import BoundedHead
from ownview.deploy.https.bounded_log import BoundedLog, LogHandler
from ownview.serve.accepting import FairServer
from ownview.serve.app import Service
from ownview.serve.arms import Arm, ImpressionLog, Split
from ownview.serve.counters import Counters
from ownview.serve.model import ServedModel
from ownview.serve.stock import Stock

READY, SWAPPED, FAILED, SAID = "ready", "swapped", "failed", "said"
"""What a worker tells its supervisor: with an arm and a version, with an arm and why, with a line."""

_LINES = 30
"""A minute, about requests and connections."""
_LOOK = 1.0
"""Seconds from one look at the stock file to the next."""
_KEEP_ALIVE, _GRACE = 75, 20


@dataclass(frozen=True)
class Duties:
    """What a worker needs to begin.

    Args:
        folders: by arm, what `serve.prepared` made.
        metrics: the file of counters.
        workers: rows of it.
        row: of this worker.
        stock: a file of ids; None where everything is in stock.
        split: of units between two models.
        log: of impressions.
        origins: of web pages that may ask.
        connections: at most; further requests get 503.
    """

    folders: Mapping[Arm, Path]
    metrics: Path
    workers: int
    row: int
    stock: Path | None
    split: Split | None
    log: Path | None
    origins: tuple[str, ...]
    connections: int


def work(duties: Duties, listening: socket.socket, control: Connection) -> None:
    """Answer requests until told to stop, or until the supervisor is gone."""
    say = BoundedLog(lambda line: _tell(control, (SAID, line)), _LINES)
    logging.getLogger("uvicorn").handlers = [LogHandler(say)]
    try:
        models = {arm: ServedModel(folder) for arm, folder in duties.folders.items()}
        stock = None if duties.stock is None else Stock(duties.stock)
        if stock is not None:
            stock.refresh()
        log = None if duties.log is None else ImpressionLog(duties.log)
    except OwnviewError as error:
        _tell(control, (FAILED, "", str(error)))
        return
    metrics = Counters(duties.metrics, duties.workers, duties.row)
    metrics.add("starts")
    service = Service(models, metrics, stock, duties.split, log)
    gc.freeze()  # what is there now stays, and need not be looked at again
    server = FairServer(
        uvicorn.Config(
            service.app(duties.origins),
            http=BoundedHead,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            limit_concurrency=duties.connections,
            timeout_keep_alive=_KEEP_ALIVE,
            timeout_graceful_shutdown=_GRACE,
        ),
        listening,
        metrics,
    )
    with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:  # Windows' own cannot wait for a socket
        runner.run(_serve(server, service, control, say))


async def _serve(server: FairServer, service: Service, control: Connection, say: BoundedLog) -> None:
    loop = asyncio.get_running_loop()
    threading.Thread(target=_obey, args=(server, service, loop, control), daemon=True).start()
    watching = loop.create_task(_watch(service.stock, say)) if service.stock is not None else None
    _tell(control, (READY, "", ""))
    await server.serve()
    if watching is not None:
        watching.cancel()


def _obey(server: uvicorn.Server, service: Service, loop: asyncio.AbstractEventLoop, control: Connection) -> None:
    """Take orders: an arm and the folder of its next model. No supervisor, no work."""
    while True:
        try:
            arm, folder = control.recv()
        except (EOFError, OSError):
            server.should_exit = True
            return
        try:
            model = ServedModel(folder)
        except Exception as error:  # whatever it is, the model after this one must be heard of
            why = str(error) if isinstance(error, OwnviewError) else f"{folder}: cannot be served: {error!r}"
            loop.call_soon_threadsafe(service.metrics.add, "failed_swaps")
            _tell(control, (FAILED, arm, why))
            continue
        loop.call_soon_threadsafe(service.swap, arm, model)
        _tell(control, (SWAPPED, arm, model.version))


async def _watch(stock: Stock, say: BoundedLog) -> None:
    while True:
        await asyncio.sleep(_LOOK)
        try:
            stock.refresh()
        except OwnviewError as error:
            say(f"{error}; what was in stock before stays")


def _tell(control: Connection, message: tuple[str, ...]) -> None:
    try:
        control.send(message)
    except (BrokenPipeError, OSError):
        return
