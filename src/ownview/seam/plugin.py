"""A plug-in: a function from a client to a client, with settings of its own."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from ownview.base.errors import SettingError, suggestion
from ownview.config.settings import own_settings
from ownview.seam.client import Client, Training
from ownview.seam.method import Federated
from ownview.seam.portable import Portable, Refusal
from ownview.seam.server import Server
from ownview.seam.training import ANY_WORLD, Params, World


@dataclass(frozen=True)
class Plugin(Federated):
    """A method around a method. A neutral setting must reproduce the inner method; the conformance kit checks it."""

    inner: Federated | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.inner is None:
            return
        if not isinstance(self.inner.client(ANY_WORLD).work, Training):
            raise SettingError(
                f"plug-in {self.name} changes tables that clients train and share; clients of {self.inner.name} send "
                "statistics that the server sums, and share no table"
            )
        self.check(self.inner)

    @property
    def speaks_of_new(self) -> bool:  # type: ignore[override]  # as the method does that it is around
        """Whether clients score items without interactions by themselves."""
        return self.wrapped.speaks_of_new

    @classmethod
    def around(cls, inner: Federated, values: Mapping[str, Any]) -> Self:
        """The plug-in around `inner`, with settings of its own by name."""
        known = own_settings(cls)
        for name in values:
            if name not in known:
                raise SettingError(f"plug-in {cls.name} has no setting {name!r}{suggestion(name, known)}")
        return replace(cls.of(values), inner=inner)

    @classmethod
    def neutral(cls, inner: Federated) -> Plugin:
        """The plug-in around `inner` with settings that change nothing."""
        raise ValueError(f"plug-in {cls.name} has no neutral setting")

    @property
    def wrapped(self) -> Federated:
        """The inner method; a plug-in without one is only a set of settings."""
        if self.inner is None:
            raise ValueError(f"plug-in {self.name} wraps no method")
        return self.inner

    def check(self, inner: Federated) -> None:
        """Raise `SettingError` with the reason where the combination makes no sense."""

    @abstractmethod
    def changed(self, client: Client, world: World) -> Client:
        """The inner method's client, changed: `dataclasses.replace(client, ...)`."""

    def client(self, world: World) -> Client:
        """The inner method's, changed."""
        return self.changed(self.wrapped.client(world), world)

    def notes(self, world: World) -> tuple[str, ...]:
        """Those of the inner method."""
        return self.wrapped.notes(world)

    def server(self, world: World) -> Server:
        """The inner method's."""
        return self.wrapped.server(world)

    def portable(self, received: Params, world: World) -> Portable:
        """None: a plug-in may change what clients predict with."""
        return Refusal(f"runs inside the plug-in {self.name}, which changes what a client predicts with")
