"""FedNext: a ridge regression from what a client had to what it took next, from sums over clients.

Histories are used in time order at home; what leaves is a sum over the client's own positions. Inside a sitting the
last items say nearly everything; after a pause the whole history does, with what people take who come back and what is
new. A client that is asked knows which of the two it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ownview.base.errors import SettingError
from ownview.config.search import Between, OneOf
from ownview.config.settings import setting
from ownview.parts.next_full import FullForm
from ownview.parts.next_rank import RankForm
from ownview.parts.next_settings import NextSettings
from ownview.parts.private_next import RELEASES, PrivateNext
from ownview.seam.client import Client
from ownview.seam.method import Federated
from ownview.seam.portable import Portable
from ownview.seam.server import Server
from ownview.seam.training import Params, World

_DAY = 86_400.0


@dataclass(frozen=True)
class FedNext(Federated):
    """score = sum_k x_k B_k within a sitting, x_k the past at scale k; see `FullForm` and `RankForm`."""

    name: ClassVar[str] = "fednext"
    title: ClassVar[str] = "FedNext"
    summary: ClassVar[str] = "what comes next from decayed pasts, within sittings and across: a closed form of sums"
    paper: ClassVar[str] = "this project; after SLIST (Choi et al., WWW 2021)"
    releases: ClassVar[tuple[float, ...]] = RELEASES

    scales: tuple[float, ...] = setting(
        (1.0, 8.0, 64.0), "places after which a past item counts 1/e, one past a scale",
        above=0, infinite=True, search=OneOf(((3.0,), (0.5, 3.0, 20.0), (1.0, 8.0, 64.0), (1.0, 4.0, 20.0))),
    )  # fmt: skip
    horizon: float = setting(
        1.0, "places after which a later item counts 1/e", above=0, search=OneOf((0.5, 1.0, 2.0, 4.0))
    )
    regularization: float = setting(
        0.0, "lambda in mean diagonals of each scale; 0 takes 2 in the full form, 0.1 in the rank form",
        low=0, search=Between(0.05, 20.0, log=True),
    )  # fmt: skip
    weighting: float = setting(0.5, "a client with L items counts (L - 1)^-weighting a position", low=0, high=1)
    length: int = setting(200, "latest items of a history that are looked at", low=2)
    rank: int = setting(0, "item vectors instead of items in the past, this many numbers each; 0: none", low=0)
    iterations: int = setting(5, "rank form: rounds in which item vectors are found", low=1)
    nearness: float = setting(16.0, "rank form: as FedEASE's, in what item vectors are found from", above=0)
    pause_days: float = setting(1.0, "days without an item after which a sitting is over", above=0)
    sittings: float = setting(4.0, "sittings after which a past one counts 1/e", above=0)
    across_regularization: float = setting(
        100.0, "lambda of the sum across sittings, in mean diagonals", above=0, search=Between(1.0, 300.0, log=True)
    )
    ease_regularization: float = setting(200.0, "lambda of EASE^R beside it after a pause", above=0)
    recent_days: float = setting(30.0, "days after which an item counts 1/e in recent popularity", above=0)
    recent_weight: float = setting(0.5, "of recent popularity after a pause", low=0, search=Between(0.0, 2.0))

    @property
    def enough(self) -> int:  # type: ignore[override]  # how many depends on a setting here
        """One round of sums; in the rank form one more than item vectors take."""
        return self.iterations + 1 if self.rank else 1

    def notes(self, world: World) -> tuple[str, ...]:
        """Sittings are left out where nobody knows when they were, and under a budget."""
        if world.protection is not None:
            return ("fednext under a budget: the most popular items count, and sittings are not told apart",)
        if world.order != "rows":
            return ()
        return ("fednext: the data has an order and no times; nothing is known of sittings, all is one",)

    def client(self, world: World) -> Client:
        """The client's half."""
        return self._form(world).client()

    def server(self, world: World) -> Server:
        """Sums, and what follows from them."""
        return self._form(world).server()

    def portable(self, received: Params, world: World) -> Portable:
        """What a client scores by within a sitting."""
        return self._form(world).portable(received)

    def _form(self, world: World) -> FullForm | RankForm | PrivateNext:
        if world.order == "none":
            raise SettingError(
                "fednext needs items in time order, and this data has no times and no declared order; expected either, "
                "or fedease"
            )
        if not self.scales:
            raise SettingError("FedNext setting scales=(): expected at least one number above 0")
        if self.rank > world.num_items:
            raise SettingError(f"FedNext setting rank={self.rank}: expected at most {world.num_items}, one an item")
        given = NextSettings(
            self.scales, self.horizon, self.regularization or (0.1 if self.rank else 2.0), self.weighting, self.length,
            self.rank, self.iterations, self.nearness, self.pause_days * _DAY, self.sittings,
            self.across_regularization, self.ease_regularization, self.recent_days * _DAY, self.recent_weight,
        )  # fmt: skip
        if world.protection is not None and not self.rank:
            raise SettingError("FedNext setting rank=0: under a budget it has a rank form alone; expected rank=64, say")
        if world.protection is not None:
            return PrivateNext(given, world, world.protection)
        return RankForm(given, world) if self.rank else FullForm(given, world)
