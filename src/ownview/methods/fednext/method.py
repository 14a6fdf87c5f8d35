"""FedNext: ridge regression from a client's past items to its next ones, solved from sums over clients.

Histories are used in time order at home; what leaves is a sum over the client's own positions. Inside a sitting the
last items say nearly everything; after a pause the whole history does, with what returning clients take and what is
new. A client that is asked knows which of the two it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from ownview.base.display.amounts import readable
from ownview.base.errors import SettingError
from ownview.config.settings import Value
from ownview.methods.fednext.form import NextForm
from ownview.methods.fednext.full import FullForm
from ownview.methods.fednext.memory import full_memory
from ownview.methods.fednext.private import RELEASES, PrivateNext
from ownview.methods.fednext.rank import RankForm
from ownview.methods.fednext.settings import NextSettings
from ownview.parts.pairs.takers import require_counted
from ownview.parts.text.text_beside import loudness, loudness_through
from ownview.seam.client import Client
from ownview.seam.method import Federated
from ownview.seam.portable import Portable
from ownview.seam.server import Server
from ownview.seam.training import Params, World

_LARGE = 4e9
"""Bytes beyond which it is said what the full form would hold."""

_LARGEST_RANK, _SMALLEST_RANK = 512, 64
"""Of the forms that take the full form's place where it does not fit."""


@dataclass(frozen=True)
class FedNext(NextSettings, Federated):
    """score = sum_k x_k B_k within a sitting, x_k the past at scale k; see `FullForm` and `RankForm`."""

    name: ClassVar[str] = "fednext"
    title: ClassVar[str] = "FedNext"
    summary: ClassVar[str] = "what comes next from decayed pasts, within sittings and across: a closed form of sums"
    paper: ClassVar[str] = "this project; after SLIST (Choi et al., WWW 2021)"
    releases: ClassVar[tuple[float, ...]] = RELEASES

    @property
    def enough(self) -> int:  # type: ignore[override]  # how many depends on a setting here
        """One round of sums; in the rank form one more than item vectors take."""
        return self.iterations + 1 if self.rank else 1

    def client(self, world: World) -> Client:
        """The client's half."""
        return self.client_with_text(self._form(world).client(), world)

    def server(self, world: World) -> Server:
        """Sums, and what follows from them."""
        through = bool(self.rank)

        def loud(values: Params) -> Tensor:
            return loudness_through(values["vectors"], values["next"]) if through else loudness(values["next"])

        return self.server_with_text(self._form(world).server(), loud, "next")

    def portable(self, received: Params, world: World) -> Portable:
        """A client's scores within a sitting."""
        return self.portable_with_text(self._form(world).portable(received), received, world)

    def notes(self, world: World) -> tuple[str, ...]:
        """Sittings are left out where the data has no times, and under a budget."""
        if world.protection is not None:
            return ("fednext under a budget: the most popular items count, and sittings are not told apart",)
        notes = []
        if self.rank:
            held = 4 * full_memory(FullForm(world, self)).server
            notes += [f"fednext: item vectors of rank={self.rank} stand for items; the full form of "
                      f"{world.num_items:,} items would hold {readable(held)}"] * (held > _LARGE)  # fmt: skip
        if world.order == "rows":
            notes.append("fednext: the data has an order and no times; nothing is known of sittings, all is one")
        return tuple(notes)

    def smaller(self) -> Mapping[str, Value]:
        """The rank form, and half of its rank; none where takers are counted, which the full form alone can do."""
        if self.takers:
            return {}
        if self.rank == 0:
            return {"rank": _LARGEST_RANK}
        return {"rank": self.rank // 2} if self.rank > _SMALLEST_RANK else {}

    def _form(self, world: World) -> NextForm:
        if world.order == "none":
            raise SettingError(
                "fednext needs items in time order, and this data has no times and no declared order; expected either, "
                "or fedease"
            )
        if not self.scales:
            raise SettingError("FedNext setting scales=(): expected at least one number above 0")
        if self.rank > world.num_items:
            raise SettingError(f"FedNext setting rank={self.rank}: expected at most {world.num_items}, one an item")
        counted = not self.rank and world.order == "times" and world.protection is None
        why = "" if counted else "who has taken an item is counted in the full form, with times and without a budget"
        require_counted(self.title, self.takers, why)
        if world.protection is None:
            return RankForm(world, self) if self.rank else FullForm(world, self)
        if not self.rank:
            raise SettingError("FedNext setting rank=0: under a budget it has a rank form alone; expected rank=64, say")
        return PrivateNext(world, self, world.protection)
