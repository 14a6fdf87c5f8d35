"""What a coordinator and its places agree on before the first round, as bytes: everything but the users' data."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import blake2b
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ownview.base.errors import DataError, MessageError, OwnviewError, SettingError
from ownview.base.items.item_table import MOST_COLUMNS, ItemTable
from ownview.base.json_text import parse_json
from ownview.config.settings import plain
from ownview.data.interactions import IdArray
from ownview.deploy.envelopes.schema import AnyOf, Flag, Listed, Named, Pair, Real, Record, Text, Whole
from ownview.engine.machine import Machine
from ownview.federation.options import FederationOptions
from ownview.federation.terms import Terms
from ownview.messages.limits import (
    LARGEST_COUNT,
    LARGEST_MODEL,
    LARGEST_NUMBER,
    LONGEST_AGREEMENT,
    LONGEST_TEXT,
    MOST_ITEMS,
    MOST_SETTINGS,
)
from ownview.privacy.planning import planned
from ownview.registry import build
from ownview.runs.experiment import Experiment
from ownview.seam.initial import Given
from ownview.seam.method import Federated
from ownview.seam.protection import Protection
from ownview.seam.roles import HELD, RATINGS, REPORTED, TIMELINE, USER_FEATURES
from ownview.seam.training import World

ORDERS = ("times", "rows", "none")
PRECISIONS = {"float32": torch.float32, "float64": torch.float64}
_AT_HOME = (RATINGS, USER_FEATURES)

_NUMBER = AnyOf((Flag(), Whole(-LARGEST_NUMBER, LARGEST_NUMBER), Real(-1e300, 1e300), Text(LONGEST_TEXT)), "a setting")
_SETTINGS = Named(AnyOf((_NUMBER, Listed(_NUMBER, MOST_SETTINGS)), "a setting or a list of them"), MOST_SETTINGS)
_SCHEMA = Record({
    "method": Text(LONGEST_TEXT),
    "clients": Whole(1, LARGEST_COUNT),
    "items": Listed(Text(LONGEST_TEXT), MOST_ITEMS, distinct=True),
    "titles": Listed(Text(LONGEST_TEXT), MOST_ITEMS),
    "settings": _SETTINGS,
    "plugins": Listed(Pair(Text(LONGEST_TEXT), _SETTINGS), MOST_SETTINGS),
    "federation": _SETTINGS,
    "seed": Whole(-LARGEST_NUMBER, LARGEST_NUMBER),
    "precision": Text(LONGEST_TEXT, tuple(PRECISIONS)),
    "order": Text(LONGEST_TEXT, ORDERS),
    "hold_out": Flag(),
    "about": Named(Listed(Text(LONGEST_TEXT), MOST_ITEMS), MOST_COLUMNS),
    "user_columns": Listed(Text(LONGEST_TEXT), MOST_COLUMNS, distinct=True),
    "ratings": Flag(),
})  # fmt: skip


@dataclass(frozen=True)
class Agreement:
    """A method with its settings, the items that are recommended, and how many users may take part.

    Args:
        method: a registered name: every place has the same program, and no code is sent.
        clients: users that may take part at most; methods may look at this number, so it stays what it is.
        items: [m] their ids as text; an item's position is its number in all messages.
        titles: [m] what a person calls them; empty where there are none.
        settings: of the method.
        plugins: (name, settings), the first one innermost.
        federation: who takes part and how the server combines.
        seed: of the run.
        precision: "float32" or "float64".
        order: what is known of the order of a user's ratings; see `seam.training.World`.
        hold_out: whether every user with enough ratings keeps its latest out of training, so that recommendations can
            be measured by it.
        about: by column [m], what is publicly known of the items, where the method asks for it; else empty.
        user_columns: names of what every place knows of its users, where the method asks for it; values stay there.
        ratings: whether the method asks for ratings, which every place has then and keeps.
    """

    method: str
    clients: int
    items: tuple[str, ...]
    titles: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    plugins: Sequence[tuple[str, Mapping[str, Any]]] = ()
    federation: FederationOptions = FederationOptions()
    seed: int = 0
    precision: str = "float32"
    order: str = "times"
    hold_out: bool = False
    about: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    user_columns: tuple[str, ...] = ()
    ratings: bool = False

    def __post_init__(self) -> None:
        if self.method.endswith(".py"):
            raise SettingError(f"method {self.method}: places run no code that is sent; expected a registered name")
        if self.order not in ORDERS:
            raise SettingError(f"order {self.order!r}: expected {', '.join(ORDERS)}")
        if self.precision not in PRECISIONS:
            raise SettingError(f"precision {self.precision!r}: expected {' or '.join(PRECISIONS)}")
        if self.clients < 1 or not self.items or len(self.titles) not in (0, len(self.items)):
            found = f"{self.clients} clients, {len(self.items)} items and {len(self.titles)} titles"
            raise SettingError(f"agreement: found {found}; expected at least one of each, and a title an item or none")
        for name, values in self.about.items():
            if len(values) != len(self.items):
                raise SettingError(f"agreement: column {name!r} has {len(values)} values; expected one an item")

    @classmethod
    def of(
        cls,
        experiment: Experiment,
        items: IdArray,
        titles: Sequence[str] | None,
        clients: int,
        *,
        hold_out: bool,
        order: str = "times",
        about: ItemTable | None = None,
        user_columns: Sequence[str] = (),
        ratings: bool = False,
    ) -> Agreement:
        """From an experiment; of its data it holds ids, titles and columns of the items alone.

        What places know of users and whether they have ratings is stated as far as the method asks for it.
        """
        options = experiment.federation.for_rounds(experiment.rounds_needed)
        made = cls(
            experiment.method, clients, tuple(str(one) for one in items.tolist()), tuple(titles or ()),
            experiment.settings, experiment.plugins, options, experiment.seed, order=order, hold_out=hold_out,
            about={} if about is None else dict(about.columns), user_columns=tuple(user_columns), ratings=ratings,
        )  # fmt: skip
        params = made.model.client(made.world()).params.values()
        looks_at = {name for one in params for name in one.columns}
        return replace(
            made,
            about=made.about
            if any(isinstance(one.initial, Given) for one in params if one.role not in _AT_HOME)
            else {},
            user_columns=tuple(name for name in made.user_columns if name in looks_at),
            ratings=ratings and any(one.role is RATINGS for one in params),
        )

    def world(self, plan: Protection | None = None) -> World:
        """The world as methods see it."""
        items = ItemTable(self.about) if self.about else None
        known = items, 0, self.user_columns, self.ratings
        return World(self.clients, len(self.items), self.order, plan, *known, grows=True)

    @property
    def label(self) -> str:
        """Label of the model."""
        return " + ".join([self.method, *(name for name, _ in self.plugins)])

    def title(self, item: int) -> str:
        """Title of the item at a position; its id without titles."""
        return self.titles[item] if self.titles else self.items[item]

    @cached_property
    def model(self) -> Federated:
        """The method with its settings and plug-ins."""
        model = build(self.method, self.settings, self.plugins)
        if not isinstance(model, Federated):
            raise SettingError(f"method {self.method}: is not federated; expected a method whose users keep their data")
        return model

    @cached_property
    def needs_times(self) -> bool:
        """Whether clients look at the times of ratings."""
        looks = any(param.role is TIMELINE for param in self.model.client(self.world()).params.values())
        return looks and self.order == "times"

    def terms(self) -> Terms:
        """What follows for clients and server; refused where a server needs more than sums."""
        plan = planned(self.federation, self.clients, self.model.releases)
        world = self.world(plan)
        self._require_room(world)
        machine = Machine(torch.device("cpu"), PRECISIONS[self.precision])
        terms = Terms.of(self.model, world, self.federation, self.seed, machine)
        require_sums(terms)
        return terms

    def _require_room(self, world: World) -> None:
        """Refuse values that no place could hold, before any is made: settings may be hostile."""
        params = self.model.client(world).params.values()
        numbers = sum(prod(one.whole_shape(world.num_items)) for one in params if one.role is not HELD)
        needed = numbers * PRECISIONS[self.precision].itemsize
        if needed > LARGEST_MODEL:
            raise SettingError(
                f"method {self.method}: its values take {needed:.3g} bytes with these settings and {world.num_items} "
                f"items; expected {LARGEST_MODEL:.3g} at most"
            )

    def pack(self) -> bytes:
        """Serialise; equal agreements give equal bytes. Refuses what `unpack` would refuse."""
        values = {name: plain(getattr(self, name)) for name in self.__dataclass_fields__ if name != "federation"}
        values["federation"] = self.federation.plain()
        values["plugins"] = [[name, plain(dict(settings))] for name, settings in self.plugins]
        text = json.dumps(values, sort_keys=True, ensure_ascii=False).encode()
        try:
            _SCHEMA.require(values, "agreement")
        except MessageError as error:
            raise SettingError(str(error)) from error
        if len(text) > LONGEST_AGREEMENT:
            found = f"{len(self.items)} items with their titles take {len(text)} bytes"
            raise SettingError(f"agreement: {found}; expected {LONGEST_AGREEMENT} at most")
        return zlib.compress(text, 9)

    @classmethod
    def unpack(cls, data: bytes) -> Agreement:
        """From bytes; raises `MessageError` where they are no agreement, or one that no place can keep."""
        try:
            values = parse_json(_decompressed(data))
            _SCHEMA.require(values, "agreement")
            values["federation"] = FederationOptions.of(values["federation"])
            lists: dict[str, Any] = {name: tuple(values[name]) for name in ("items", "titles", "user_columns")}
            lists["about"] = {name: tuple(column) for name, column in values["about"].items()}
            return cls(**{**values, **lists, "plugins": tuple((name, own) for name, own in values["plugins"])})
        except (OwnviewError, zlib.error, ValueError) as error:
            raise MessageError(f"a damaged agreement of {len(data)} bytes: {error}") from error

    @cached_property
    def digest(self) -> str:
        """Tells agreements apart."""
        return blake2b(self.pack(), digest_size=8).hexdigest()

    @cached_property
    def positions(self) -> dict[str, int]:
        """Positions of items, by id."""
        return {one: place for place, one in enumerate(self.items)}

    @property
    def item_ids(self) -> IdArray:
        """[m] as an array."""
        return np.array(self.items, dtype=object)


def _decompressed(data: bytes) -> bytes:
    """Decompress up to a limit: a small input may expand to a huge one."""
    unpacking = zlib.decompressobj()
    content = unpacking.decompress(data, LONGEST_AGREEMENT)
    if unpacking.unconsumed_tail:
        raise ValueError(f"it unpacks to more than {LONGEST_AGREEMENT} bytes")
    if not unpacking.eof or unpacking.unused_data:
        raise ValueError("it breaks off, or something stands behind its end")
    return content


def read_agreement(file: Path) -> Agreement:
    """From a file; raises `DataError`, which names it, where it is not there or no agreement."""
    try:
        return Agreement.unpack(file.read_bytes())
    except OSError as error:
        raise DataError(f"{file}: cannot be read: {error.strerror}; expected an agreement") from error
    except MessageError as error:
        raise DataError(f"{file}: {error}; expected an agreement, as ownview deploy init writes it") from error


def require_sums(terms: Terms) -> None:
    """Refuse methods whose server looks at single clients: between devices only sums are worth their bytes.

    Raises:
        SettingError: names what the server would need.
    """
    reported = [name for name, param in terms.client.params.items() if param.role is REPORTED]
    needed = [f"every client's table {name!r}" for name in sorted(terms.mixed)]
    needed += [f"every client's value {name!r}" for name in reported]
    if terms.server.cohort is not None and not reported:
        needed.append("a choice of clients by what they sent")
    if needed:
        raise SettingError(
            f"method {terms.name} cannot be deployed: its server needs {needed[0]}; expected a method whose server "
            "needs sums alone, such as fedmf, pfedrec or fedease"
        )
    if terms.masked is not None and not terms.masked.masks.real:
        raise SettingError(
            f"federation setting privacy={terms.options.privacy!r}: only a simulation can leave masks out; expected no "
            "masks=skipped"
        )
    if terms.world.protection is not None and terms.world.protection.seeded:
        raise SettingError(
            f"federation setting privacy={terms.options.privacy!r}: only a simulation can draw noise from a seed, "
            "which everybody here knows; expected no noise=seeded"
        )
    if terms.options.devices != "none":
        raise SettingError(
            f"federation setting devices={terms.options.devices!r}: only a simulation has such devices; expected none"
        )
    if terms.options.receiving < 1:
        raise SettingError(
            f"federation setting receiving={terms.options.receiving}: every device that takes part receives; "
            "expected 1.0"
        )
