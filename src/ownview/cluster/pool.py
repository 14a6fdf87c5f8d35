"""Workers as Ray actors: started within what the machines have, and replaced when they die."""

from __future__ import annotations

import logging
import os
import socket
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch

from ownview.base.display.amounts import readable
from ownview.base.errors import DeviceError, OwnviewError
from ownview.base.extras import how_to_install
from ownview.cluster.host import Host
from ownview.engine.machine import Workers, free_memory

_QUIET = ("RAY_USAGE_STATS_ENABLED", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO")
"""Off: reports of its use to its makers, and a change of GPUs that others see, of which it warns."""

_REACHABLE = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
"""Despite its name: on every system, whether Ray takes the machine's address for its own, or the loopback's."""

_LOOPBACK = "127.0.0.1"

_PATIENCE = 10.0
"""Seconds until a machine that does not answer counts as not there."""

_STORE_AT_LEAST = 256 * 10**6
"""Bytes of the memory that workers of a machine hand values over in."""


class Pool:
    """Workers that all federations of this process share.

    Args:
        ray: the package, at work.
        count: how many.
        on_gpu: whether each has a GPU of its own.
    """

    def __init__(self, ray: Any, count: int, *, on_gpu: bool) -> None:
        self.count, self.on_gpu, self.ray = count, on_gpu, ray
        kind = self.ray.remote(Host)
        needs: dict[str, Any] = {"num_cpus": 1, "num_gpus": 1 if on_gpu else 0, "max_restarts": 0}
        self.new: Callable[[], Any] = kind.options(**needs, scheduling_strategy="SPREAD").remote
        self.workers = [self.new() for _ in range(count)]
        self.lives = [0] * count

    def ask(self, worker: int, what: str, *given: Any, answers: int = 1) -> Any:
        """Have a worker do something; returns a promise, or several."""
        if not self.workers:
            raise DeviceError("the workers of this federation were ended when more were asked for; make it anew")
        return getattr(self.workers[worker], what).options(num_returns=answers).remote(*given)

    def put(self, value: Any) -> Any:
        """Lay a value where all workers find it; returns a promise."""
        return self.ray.put(value)

    def get(self, promise: Any) -> Any:
        """The result of a call.

        Raises:
            WorkerDiedError: the worker is no more.
            DeviceError: a whole machine is no more, with what workers had worked out on it.
            OwnviewError: that was raised there.
        """
        known = self.ray.exceptions
        try:
            return self.ray.get(promise)
        except known.RayActorError as error:
            raise WorkerDiedError(str(error)) from error
        except known.ObjectLostError as error:
            raise _machine_gone(error) from error
        except known.RayTaskError as error:
            if isinstance(error.cause, OwnviewError):
                raise error.cause from None
            if isinstance(error.cause, known.ObjectLostError):
                raise _machine_gone(error.cause) from error
            raise

    def replace(self, worker: int) -> None:
        """Start another in the place of one that died."""
        self.workers[worker] = self.new()
        self.lives[worker] += 1

    def close(self) -> None:
        """End all workers, and Ray where it was started here."""
        self.workers = []
        self.ray.shutdown()


class WorkerDiedError(Exception):
    """A worker is gone, with all that it held."""


def _machine_gone(error: Exception) -> DeviceError:
    reason = type(error).__name__
    return DeviceError(
        f"a machine of the cluster has gone with what its workers had worked out ({reason}); expected all of them to "
        "stay for a round: go on with ownview run --resume"
    )


_POOLS: dict[tuple[str, bool], Pool] = {}


def pool_of(asked: Workers, *, on_gpu: bool, handed_over: int) -> Pool:
    """At least as many workers as were asked for; those that are there already, where they are enough.

    Args:
        asked: how many, and where.
        on_gpu: whether each has a GPU of its own.
        handed_over: bytes that all workers together have on their way at once.

    Raises:
        DeviceError: there is no Ray, or not room for so many.
    """
    there = _POOLS.get((asked.address, on_gpu))
    if there is None or asked.count > there.count:
        there = _joined(asked, on_gpu=on_gpu) if asked.address else _started(asked, handed_over, on_gpu=on_gpu)
        _POOLS[asked.address, on_gpu] = there
    _take_along_methods_of_files()
    return there


def close_pools() -> None:
    """End all workers of this process."""
    while _POOLS:
        _POOLS.popitem()[1].close()


def _started(asked: Workers, handed_over: int, *, on_gpu: bool) -> Pool:
    """Workers on this machine, unreachable from others."""
    have = torch.cuda.device_count() if on_gpu else _cpus()
    count = _within(asked.count, have, "this machine", on_gpu=on_gpu)
    store, room = max(_STORE_AT_LEAST, handed_over), free_memory() // 2
    if store > room:
        raise DeviceError(
            f"--workers {count}: {readable(store)} are handed over at once, and half of the free memory is "
            f"{readable(room)}; expected fewer workers"
        )
    close_pools()
    ray = _ray(reachable=False)
    ray.init(
        "local",  # else Ray would join a cluster that runs here, or one that has left its address behind
        num_cpus=count, num_gpus=have if on_gpu else 0, include_dashboard=False, log_to_driver=False,
        logging_level=logging.ERROR, object_store_memory=store, _node_ip_address=_LOOPBACK,
    )  # fmt: skip
    address = ray.nodes()[0]["NodeManagerAddress"]
    if address != _LOOPBACK:
        ray.shutdown()
        raise DeviceError(f"--workers {count}: Ray listens on {address}; expected nothing but {_LOOPBACK}")
    return Pool(ray, count, on_gpu=on_gpu)


def _joined(asked: Workers, *, on_gpu: bool) -> Pool:
    """Workers of a cluster that runs already."""
    _require_answer(asked.address)
    close_pools()
    # Given the loopback address, Ray would look for the cluster at the machine's own address instead.
    loopback = asked.address.rpartition(":")[0] in (_LOOPBACK, "localhost")
    ray = _ray(reachable=None if asked.address == "auto" else not loopback)
    try:
        ray.init(address=asked.address, log_to_driver=False, logging_level=logging.ERROR)
    except (ConnectionError, ValueError, RuntimeError, TimeoutError) as error:
        raise _no_cluster(asked.address, str(error).strip().splitlines()[0]) from None
    try:
        have = int(ray.available_resources().get("GPU" if on_gpu else "CPU", 0))
        count = _within(asked.count, have, f"the cluster at {asked.address}", on_gpu=on_gpu)
        return Pool(ray, count, on_gpu=on_gpu)
    except DeviceError:
        ray.shutdown()
        raise


def _require_answer(address: str) -> None:
    """Refuse an address without a listener: Ray would retry for minutes."""
    if address == "auto":
        return
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 2**16:
        raise _no_cluster(address, "no such form of an address")
    try:
        socket.create_connection((host, int(port)), timeout=_PATIENCE).close()
    except OSError as error:
        raise _no_cluster(address, error.strerror or str(error)) from None


def _no_cluster(address: str, why: str) -> DeviceError:
    return DeviceError(f"--ray {address}: no cluster answers ({why}); expected HOST:PORT of one, or auto")


def _within(wanted: int, have: int, where: str, *, on_gpu: bool) -> int:
    """Number of workers; more than fit would wait for ever in silence."""
    what = "GPUs" if on_gpu else "CPUs"
    if have < 1 or wanted > have:
        expected = f"expected at most {have}" if have else "expected a machine with one, or --device cpu"
        raise DeviceError(f"--workers {wanted or 'all'}: {where} has {have} free {what}; {expected}")
    return wanted or have


def _cpus() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _ray(*, reachable: bool | None) -> Any:
    """Ray, set to accept other machines or not: it and its workers read that when they are imported.

    Where None, it is left as the environment has it.
    """
    os.environ.update(dict.fromkeys(_QUIET, "0"))
    if reachable is not None:
        os.environ[_REACHABLE] = "1" if reachable else "0"
    try:
        import ray  # noqa: PLC0415
        from ray._private import ray_constants, worker  # noqa: PLC0415
    except ImportError:
        raise DeviceError(f"--workers needs Ray; install it with: {how_to_install('ray')}") from None
    if reachable is not None:
        ray_constants.ENABLE_RAY_CLUSTER = reachable  # it may have been imported before
    worker.listen_error_messages = _hears_nothing
    return ray


def _hears_nothing(worker: Any, stopped: Any) -> None:
    """Ray would print to standard output that a worker died, amid what a program reads there; we say what is needed."""


def _take_along_methods_of_files() -> None:
    """Methods from files are pickled whole: no worker could import them."""
    from ray import cloudpickle  # noqa: PLC0415

    for name, module in list(sys.modules.items()):
        if name.startswith("ownview_user_method") and isinstance(module, ModuleType):
            cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call, unused-ignore]
