"""Options of the federation: participation, privacy and how the server combines uploads; independent of the method."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from ownview.config.participation import participation
from ownview.config.search import Between, OneOf
from ownview.config.settings import Settings, setting
from ownview.config.simulated_devices import devices
from ownview.messages.robust import robust_rule
from ownview.privacy.budget import budget
from ownview.privacy.masks import masked_sums
from ownview.privacy.transforms import transforms

_LATER = ("robust", "devices")


@dataclass(frozen=True)
class FederationOptions(Settings):
    """Settings of rounds."""

    title: ClassVar[str] = "federation"

    clients: str = setting(
        "all", "clients of a round: all, a share such as 0.6, a number such as 100, poisson:0.6, or turns:128",
        search=OneOf(("all", "0.6", "0.3", "0.1")),
    )  # fmt: skip
    receiving: float = setting(
        1.0, "share of a round's clients that receive; the others go on from their own table", above=0, high=1
    )
    weighting: str = setting(
        "method", "weights of the server's mean: the method's own, samples or uniform",
        choices=("method", "samples", "uniform"), search=OneOf(("samples", "uniform")),
    )  # fmt: skip
    row_mean: str = setting(
        "method", "a table's row is averaged over: as the method says, all clients, or those whose samples touched it",
        choices=("method", "all", "touched"), search=OneOf(("all", "touched")),
    )  # fmt: skip
    server_optimizer: str = setting(
        "plain", "how the server applies the mean change", choices=("plain", "momentum", "adam"),
        search=OneOf(("plain", "momentum", "adam")),
    )  # fmt: skip
    server_learning_rate: float = setting(
        1.0, "factor on the mean change", above=0, search=Between(1e-3, 10.0, log=True)
    )
    server_momentum: float = setting(
        0.9, "momentum, or Adam's first decay", low=0, high=0.9999, search=Between(0.0, 0.99)
    )
    privacy: str = setting(
        "none",
        "none; a budget that is accounted for: central:epsilon=E, distributed:epsilon=E or local:epsilon=E, with "
        "delta=D, clip=C or clip=adaptive (noise=seeded: the same in every run, and not private); masks without noise: "
        "masked:clip=C; or noise without an epsilon, from the seed: laplace:SCALE, gaussian:clip=C,noise=Z",
    )

    robust: str = setting(
        "none",
        "how uploads count where clients may lie: none, bounded:F, clipped:F, trimmed:S, median, krum:L, "
        "multi-krum:L, geometric",
    )

    devices: str = setting(
        "none",
        "what clients run on, simulated: none, or tiers=SHARE:SECONDS[:MEMORY]+..., spread=X, dropout=P, deadline=T, "
        "hours=A-B, and for asynchronous rounds buffer=K, staleness=A; several parted by commas",
    )

    def __post_init__(self) -> None:
        given: object = self.clients
        if isinstance(given, int | float):  # TOML and Python write numbers as numbers
            object.__setattr__(self, "clients", str(given))
        super().__post_init__()
        participation(self.clients)
        robust_rule(self.robust)
        devices(self.devices)
        if budget(self.privacy) is None and masked_sums(self.privacy) is None:
            transforms(self.privacy)

    def plain(self) -> dict[str, Any]:
        """As in TOML; newer settings only if they differ from their defaults, so that older runs keep their names."""
        return {name: value for name, value in super().plain().items() if name not in _LATER or value != "none"}

    def for_rounds(self, rounds: int) -> FederationOptions:
        """Options whose budget, if any, is for so many rounds."""
        asked = budget(self.privacy)
        return self if asked is None else replace(self, privacy=str(asked.for_rounds(rounds)))

    def repeating(self) -> FederationOptions:
        """Options whose budget, if any, draws noise from the seed: repeatable, and not private."""
        asked = budget(self.privacy)
        return self if asked is None else replace(self, privacy=str(replace(asked, seeded=True)))
