"""What the server asks of the link: enrol the keys of places, begin a run, and give a grid to send messages by."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
from flwr.cli.build import build_fab_from_files
from flwr.common.serde import run_from_proto
from flwr.proto.control_pb2 import RegisterNodeRequest, StartRunRequest
from flwr.proto.fab_pb2 import Fab
from flwr.proto.runtime_pb2 import AcquireTaskRequest, PullTaskInputRequest
from flwr.supercore.constant import TaskType
from flwr.supercore.control import ControlHttpClient
from flwr.supercore.interceptors import RuntimeTokenHttpInterceptor, RuntimeVersionHttpInterceptor
from flwr.supercore.runtime import RuntimeHttpClient
from flwr.supercore.task_identity import TaskIdentity
from flwr.superlink.grid import HttpGrid

from ownview.base.version import __version__
from ownview.deploy.flower.gate import HEADER

if TYPE_CHECKING:
    from flwr.supercore.protobuf.client import ProtobufCall, ProtobufRequestContext

_APP = f"""
[project]
name = "ownview"
version = "{__version__}"
description = "Messages between a coordinator and its places; holds no code"
license = "Apache-2.0"
dependencies = []

[tool.flwr.app]
publisher = "ownview"
fab-format-version = 0

[tool.flwr.app.components]
serverapp = "nobody:loads"
clientapp = "nobody:loads"

[tool.flwr.app.config]
"""
"""The link will not begin a run without an application. Nobody ever loads this one."""


@dataclass(frozen=True)
class Access:
    """Whoever has it controls a link.

    Args:
        address: of the link, HOST:PORT.
        authority: file with the certificate of the authority that has signed the link's.
        secret: that opens the link's gate.
    """

    address: str
    authority: Path
    secret: str

    def enrol(self, keys: Iterable[bytes]) -> None:
        """Let the holders of keys (public, PEM) connect; keys that are known already stay."""
        with self._control() as control:
            for key in keys:
                try:
                    control.RegisterNode(RegisterNodeRequest(public_key=key))
                except httpx.HTTPStatusError as error:
                    if error.response.status_code != httpx.codes.PRECONDITION_FAILED:
                        raise

    def begin(self) -> Running:
        """A new run, and the grid that belongs to it."""
        with self._control() as control:
            run = control.StartRun(StartRunRequest(fab=Fab(content=_app()))).run_id
        with self._runtime() as runtime:
            wanted = AcquireTaskRequest(supported_task_types=[TaskType.SERVER_APP])
            while (found := runtime.AcquireTask(wanted)).task.run_id not in (run, 0):
                pass  # of runs whose server was killed before it came here
        runtime = self._runtime(RuntimeTokenHttpInterceptor(found.token))
        grid = HttpGrid(self.address, root_certificates=self.authority.read_bytes(), token=found.token)
        # Its own client would interrupt this process where the link has forgotten the run, and try for ever where it
        # does not answer. The coordinator knows better what to do.
        grid._client = runtime
        begun = runtime.PullTaskInput(PullTaskInputRequest())
        grid.set_run(run_from_proto(begun.run))
        # Messages take their sender from here.
        TaskIdentity.task_id, TaskIdentity.run_id, TaskIdentity.node_id = begun.task_id, run, begun.context.node_id
        return Running(grid, runtime)

    def _control(self) -> ControlHttpClient:
        return ControlHttpClient.from_server_address(self.address, False, self.authority.read_bytes(), self._shown())

    def _runtime(self, *more: RuntimeTokenHttpInterceptor) -> RuntimeHttpClient:
        return RuntimeHttpClient.from_server_address(
            self.address, False, self.authority.read_bytes(), [*self._shown(), *more]
        )

    def _shown(self) -> list[_Secret | RuntimeVersionHttpInterceptor]:
        return [RuntimeVersionHttpInterceptor(component_name="ownview"), _Secret(self.secret)]


@dataclass(frozen=True)
class Running:
    """A run that has begun.

    Args:
        grid: sends and receives its messages.
        runtime: the client behind it.
    """

    grid: HttpGrid
    runtime: RuntimeHttpClient


@cache
def _app() -> bytes:
    return build_fab_from_files({"pyproject.toml": _APP.encode()})[0]


class _Secret:
    """Shows the secret to the gate."""

    def __init__(self, secret: str) -> None:
        self.secret = secret

    def intercept(self, context: ProtobufRequestContext, call_next: ProtobufCall) -> httpx.Response:
        """Flower's hook around a request."""
        context.request.headers[HEADER] = self.secret
        return call_next(context)
