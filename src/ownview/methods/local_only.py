"""LocalOnly: every client alone with FedMF's model. Nothing is sent, so it shows what federation adds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from ownview.methods.fedmf import FedMF
from ownview.seam.training import Param, World


@dataclass(frozen=True)
class LocalOnly(FedMF):
    """FedMF whose item table stays at home too."""

    name: ClassVar[str] = "local-only"
    title: ClassVar[str] = "LocalOnly"
    summary: ClassVar[str] = "FedMF's model without any federation: each client alone"
    paper: ClassVar[str] = "none: a control"

    def params(self, world: World) -> dict[str, Param]:
        """FedMF's, none of them shared."""
        return {name: replace(param, shared=False) for name, param in super().params(world).items()}
