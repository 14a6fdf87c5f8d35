"""LocalOnly: every client alone with FedMF's model. Nothing is sent, so it shows what federation adds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from ownview.methods.fedmf import FedMF
from ownview.seam.portable import Portable, Refusal
from ownview.seam.roles import PRIVATE, Param
from ownview.seam.training import Params, World


@dataclass(frozen=True)
class LocalOnly(FedMF):
    """FedMF whose item table stays at home too."""

    name: ClassVar[str] = "local-only"
    title: ClassVar[str] = "LocalOnly"
    summary: ClassVar[str] = "FedMF's model without any federation: each client alone"
    paper: ClassVar[str] = "none: a control"

    def params(self, world: World) -> dict[str, Param]:
        """FedMF's, all of them private."""
        return {name: replace(param, role=PRIVATE) for name, param in super().params(world).items()}

    def portable(self, received: Params, world: World) -> Portable:
        """Refused: nothing is shared that could be exported."""
        return Refusal("shares nothing: every client has an item table of its own, which no other client can use")
