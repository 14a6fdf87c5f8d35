"""Holds the socket, keeps workers alive, and hands them a new model when one takes the old one's place.

Connections wait in the socket's queue while a worker is started again, so that no request is refused. A model is
watched by its path: a folder that is replaced, or a link that is set to another folder, is read beside the old one, and
workers change over between two requests. A model that cannot be read changes nothing and is one line. Until a worker
has taken a new model over, workers that begin read the old one, whose folder stays until none needs it.
"""

from __future__ import annotations

import multiprocessing
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import FrameType

from ownview.base.errors import OwnviewError
from ownview.base.http.listening import listening
from ownview.serve.arms import Arm, ImpressionLog, Split
from ownview.serve.counters import make
from ownview.serve.prepared import Stamp, prepare, stamp
from ownview.serve.stock import Stock
from ownview.serve.worker import FAILED, READY, SAID, SWAPPED, Duties, work

_LOOK = 1.0
"""Seconds from one look at the models to the next; one that changed is read when two looks agree."""
_BREATH = 1.0
"""Seconds between two starts of a worker that ends at once."""
_GRACE = 30.0


@dataclass(frozen=True)
class Offer:
    """What is served, and where.

    Args:
        models: by arm: folders of runs or exports.
        host: to listen at.
        port: 0 takes any that is free.
        workers: processes.
        data_dir: where datasets are.
        stock: file of ids that are in stock; None where everything is.
        split: between two models.
        log: of impressions.
        origins: of web pages that may ask.
        connections: of a worker at most.
    """

    models: Mapping[Arm, Path]
    host: str = "127.0.0.1"
    port: int = 8080
    workers: int = 2
    data_dir: Path | None = None
    stock: Path | None = None
    split: Split | None = None
    log: Path | None = None
    origins: tuple[str, ...] = ()
    connections: int = 512


@dataclass(eq=False)
class _Worker:
    process: BaseProcess
    control: Connection
    started: float
    given: dict[Arm, Path]
    """What it began with, or was told last to take over."""
    orders: list[tuple[Arm, Path]] = field(default_factory=list)
    """To take a folder over, that it has not answered; it answers one after the other."""
    spared: set[Path] = field(default_factory=set)
    """Folders that the worker before it may have died of: another one has to take them over first."""
    ready: bool = False

    def needs(self) -> set[Path]:
        """Folders that it may still be reading."""
        return {*(set() if self.ready else self.given.values()), *(folder for _, folder in self.orders)}


class Supervisor:
    """Serves until it is asked to stop.

    Args:
        offer: what is served.
        say: takes lines for a person.

    Raises:
        OwnviewError: a model, the stock, the log or the address cannot be used.
    """

    def __init__(self, offer: Offer, say: Callable[[str], None]) -> None:
        self.offer, self.say = offer, say
        if offer.stock is not None:
            Stock(offer.stock).refresh()
        if offer.log is not None and offer.split is not None:
            log = ImpressionLog(offer.log)
            log.begun(offer.split.share)
            log.close()
        self.stamps: dict[Arm, Stamp] = {arm: stamp(path) for arm, path in offer.models.items()}
        self.pending: dict[Arm, Stamp] = {}
        self.own = Path(tempfile.mkdtemp(prefix="ownview-serve-"))
        self.made = 0
        try:
            self.listening = listening(offer.host, offer.port)
            self.folders: dict[Arm, Path] = {arm: self._prepared(arm) for arm in offer.models}
        except BaseException:
            shutil.rmtree(self.own, ignore_errors=True)
            raise
        self.address: tuple[str, int] = self.listening.getsockname()[:2]
        make(self.own / "metrics", offer.workers)
        self.workers: list[_Worker] = []
        self.offered: dict[Arm, Path] = {}
        """Models that workers were told to take over, and none has yet."""
        self.stopping = False
        self.reading: dict[Arm, Future[Path]] = {}

    def run(self) -> None:
        """Until SIGTERM or SIGINT; SIGHUP reads the models again."""
        before = {number: signal.signal(number, self._stop) for number in (signal.SIGTERM, signal.SIGINT)}
        if hasattr(signal, "SIGHUP"):  # Windows has none
            before[signal.SIGHUP] = signal.signal(signal.SIGHUP, self._again)
        try:
            self.workers = [self._start(row) for row in range(self.offer.workers)]
            with ThreadPoolExecutor(1) as reader:
                while not self.stopping:
                    self._listen(_LOOK)
                    self._revive()
                    self._look(reader)
                    self._sweep()
                for future in self.reading.values():
                    future.cancel()
        finally:
            self._end()
            for number, handler in before.items():
                signal.signal(number, handler)

    def _start(self, row: int) -> _Worker:
        ours, theirs = multiprocessing.Pipe()
        one = self.offer
        duties = Duties(
            dict(self.folders), self.own / "metrics", one.workers, row, one.stock, one.split, one.log, one.origins,
            one.connections,
        )  # fmt: skip
        context = multiprocessing.get_context("spawn")
        process = context.Process(target=work, args=(duties, self.listening, theirs), daemon=True)
        process.start()
        theirs.close()
        return _Worker(process, ours, time.monotonic(), dict(self.folders))

    def _listen(self, seconds: float) -> None:
        """What workers say, for so long; ends early where one ends."""
        until = time.monotonic() + seconds
        while not self.stopping and (left := until - time.monotonic()) > 0:
            by_pipe = {worker.control: worker for worker in self.workers if not worker.control.closed}
            ends = [worker.process.sentinel for worker in self.workers]
            for heard in wait([*by_pipe, *ends], left):
                if not isinstance(heard, Connection):
                    return
                try:
                    self._hear(by_pipe[heard], heard.recv())
                except (EOFError, OSError):
                    heard.close()

    def _hear(self, worker: _Worker, message: tuple[str, ...]) -> None:
        if message[0] == READY:
            worker.ready = True
            self._bring_up(worker)
            if all(one.ready for one in self.workers):
                host, port = self.address
                self.say(f"ready at http://{host}:{port}, {len(self.workers)} workers")
        elif message[0] == SWAPPED:
            self._taken_over(*worker.orders.pop(0))
            self.say(f"worker {worker.process.pid}: model {message[1]} is now {message[2]}")
        elif message[0] in (FAILED, SAID):
            self.say(self._named(message[-1]))
            if message[0] == FAILED and message[1]:
                self._refused(*worker.orders.pop(0))
            elif message[0] == FAILED and not any(one.ready for one in self.workers):
                self.stopping = True

    def _bring_up(self, worker: _Worker) -> None:
        """Tell a worker which models to take over that it was not told yet."""
        for arm, folder in {**self.folders, **self.offered}.items():
            untried = folder in worker.spared and folder != self.folders[arm]
            if worker.given[arm] == folder or untried or worker.control.closed:
                continue
            worker.given[arm] = folder
            try:
                worker.control.send((arm, folder))
                worker.orders.append((arm, folder))
            except OSError:
                worker.control.close()

    def _taken_over(self, arm: Arm, folder: Path) -> None:
        """A worker can serve from a folder: so can all that begin from now on."""
        if _number(folder) > _number(self.folders[arm]):
            self.folders[arm] = folder
            if self.offered.get(arm) == folder:
                del self.offered[arm]
            for worker in self.workers:
                self._bring_up(worker)

    def _refused(self, arm: Arm, folder: Path) -> None:
        """A worker cannot serve from a folder; where no other is still to try, the one before stays."""
        if self.offered.get(arm) == folder and not any((arm, folder) in one.orders for one in self.workers):
            del self.offered[arm]
            self.say(f"{self.offer.models[arm]}: no worker could take it over; the model that was there stays")

    def _named(self, line: str) -> str:
        """With the folders that a person knows."""
        for arm, folder in [*self.folders.items(), *self.offered.items()]:
            line = line.replace(str(folder), str(self.offer.models[arm]))
        return line

    def _sweep(self) -> None:
        """Remove the folders of models that no worker reads and none will begin with."""
        used = {*self.folders.values(), *self.offered.values()}.union(*(one.needs() for one in self.workers))
        for one in () if self.reading else self.own.iterdir():
            if one.is_dir() and one not in used:
                shutil.rmtree(one, ignore_errors=True)

    def _revive(self) -> None:
        for row, worker in enumerate(self.workers):
            if worker.process.is_alive() or self.stopping:
                continue
            if time.monotonic() - worker.started < _BREATH:
                time.sleep(_BREATH)
            self.say(f"worker {worker.process.pid} ended with code {worker.process.exitcode}; started again")
            worker.control.close()
            new = self.workers[row] = self._start(row)
            for arm, folder in worker.orders:
                new.spared.add(folder)
                self._refused(arm, folder)

    def _look(self, reader: ThreadPoolExecutor) -> None:
        """Read models that changed, and hand over those that have been read."""
        for arm, path in self.offer.models.items():
            now = stamp(path)
            if arm in self.reading or now == self.stamps[arm] or not now:
                continue
            if self.pending.get(arm) == now:
                self.stamps[arm] = now
                self.reading[arm] = reader.submit(self._prepared, arm)
            self.pending[arm] = now
        for arm, future in list(self.reading.items()):
            if future.done():
                del self.reading[arm]
                self._hand_over(arm, future)

    def _hand_over(self, arm: Arm, future: Future[Path]) -> None:
        try:
            self.offered[arm] = future.result()
        except (OwnviewError, OSError) as error:
            self.say(f"{error}; the model that was there stays")
            return
        for worker in self.workers:
            self._bring_up(worker)

    def _prepared(self, arm: Arm) -> Path:
        self.made += 1
        return prepare(self.offer.models[arm], self.own / f"{arm}{self.made}", self.offer.data_dir)

    def _stop(self, _: int, __: FrameType | None) -> None:
        self.stopping = True

    def _again(self, _: int, __: FrameType | None) -> None:
        self.stamps = dict.fromkeys(self.stamps, ())

    def _end(self) -> None:
        """Workers finish what they are at."""
        for worker in self.workers:
            worker.process.terminate()
        until = time.monotonic() + _GRACE
        for worker in self.workers:
            worker.process.join(max(0.1, until - time.monotonic()))
            if worker.process.is_alive():
                worker.process.kill()
                worker.process.join()
            worker.control.close()
        self.listening.close()
        shutil.rmtree(self.own, ignore_errors=True)


def _number(folder: Path) -> int:
    """The later one was made, the higher."""
    return int(folder.name[1:])
