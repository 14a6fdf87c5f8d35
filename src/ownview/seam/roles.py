"""Roles of a client's parameters: the value that a round begins with, that it predicts with, and that it sends.

    role       begins a round with   predicts with   sends
    private    its own value         its own         nothing
    fresh      the initial value     the initial     nothing
    item features  public values     public values   nothing
    history    its data              its data        nothing
    ratings    its data              its data        nothing
    quantities its data              its data        nothing
    user features  its data          its data        nothing
    timeline   its data              its data        nothing
    chance     a new draw            a new draw      nothing
    reported   its own value         its own         the value
    shared     what it received      what it received  the change
    kept       what it received      its own         the change
    personal   its own table         its own         the whole table
    received   what it received      what it received  nothing
    held       -                     -               nothing: the server keeps it to itself

What a client holds leaves it by its role and in no other way. With it go, in clear: the number of its training samples
where the server weighs by it, and which rows it touched, where rows are sent alone or averaged over those who touched
them. `table(...)` makes one row for every item of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from torch import Tensor

from ownview.base.randomness import generator
from ownview.seam.initial import Constant, Initial, Normal


@dataclass(frozen=True)
class Role:
    """What a parameter is to a client.

    Args:
        name: of the role.
        begins: what a round begins with: "own", "received", "initial", "data", "drawn", or "nothing" where clients have
            none.
        predicts: what the client predicts with, in the same words.
        sends: "nothing", the "change" since the round began, or the "whole" value.
    """

    name: str
    begins: str
    predicts: str
    sends: str

    @property
    def constant(self) -> bool:
        """Whether the value is always the initial one, which clients compute and never receive."""
        return self.begins == "initial"

    @property
    def given(self) -> bool:
        """Whether it is no parameter but given: the client's data, or a draw."""
        return self.begins in ("data", "drawn")


PRIVATE = Role("private", "own", "own", "nothing")
FRESH = Role("fresh", "initial", "initial", "nothing")
ITEM_FEATURES = Role("item features", "initial", "initial", "nothing")
HISTORY = Role("history", "data", "data", "nothing")
RATINGS = Role("ratings", "data", "data", "nothing")
QUANTITIES = Role("quantities", "data", "data", "nothing")
USER_FEATURES = Role("user features", "data", "data", "nothing")
TIMELINE = Role("timeline", "data", "data", "nothing")
CHANCE = Role("chance", "drawn", "drawn", "nothing")
REPORTED = Role("reported", "own", "own", "whole")
SHARED = Role("shared", "received", "received", "change")
KEPT = Role("kept", "received", "own", "change")
PERSONAL = Role("personal", "own", "own", "whole")
RECEIVED = Role("received", "received", "received", "nothing")
HELD = Role("held", "nothing", "nothing", "nothing")

_NEVER_TABLES = (REPORTED, TIMELINE, CHANCE, USER_FEATURES)
OWN_DATA = (HISTORY, RATINGS, QUANTITIES)
"""Tables that a client makes of its own data."""
_ALWAYS_TABLES = (*OWN_DATA, ITEM_FEATURES)


@dataclass(frozen=True)
class Param:
    """One parameter; write it with `private`, `shared`, `table(...)` and the other functions of this module.

    Args:
        shape: of one value; of one item's row where `rows` is set.
        role: what it is to a client.
        rows: one value for every item: a table. The method sees only the rows at hand.
        initial: the values that every client and the server start from.
        received_as: (personal) the name under which the table that the server has for the client stands beside its own.
        everybodys_mean: (personal, mixed) the name under which the plain mean of all mixtures stands beside it.
        squares_outside: (tables) the client also sees NAME.outside [], the sum of squares of the rows that are not at
            hand; of received tables likewise. Padding rows are zero in training then, so that the sum of squares of
            NAME plus NAME.outside is that of the whole table.
        columns: (user features) of the user table that they are made of.
    """

    shape: tuple[int, ...]
    role: Role = PRIVATE
    rows: bool = False
    initial: Initial = Normal(1.0)
    received_as: str = ""
    everybodys_mean: str = ""
    squares_outside: bool = False
    columns: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.rows and self.role in _NEVER_TABLES:
            raise ValueError(f"a {self.role.name} parameter is no table: it has no rows")
        if not self.rows and self.role in _ALWAYS_TABLES:
            raise ValueError(f"a {self.role.name} parameter is a table: write table({self.role.name}(...))")
        if bool(self.received_as) != (self.role is PERSONAL):
            raise ValueError("received_as belongs to personal values, and every personal value needs one")
        if self.everybodys_mean and self.role is not PERSONAL:
            raise ValueError("everybodys_mean belongs to personal values, which the server mixes")
        if self.squares_outside and not self.rows:
            raise ValueError("squares_outside belongs to tables: of other parameters everything is at hand")

    @property
    def own(self) -> bool:
        """Whether the client keeps a value of its own between rounds."""
        return self.role.predicts == "own"

    @property
    def sends(self) -> bool:
        """Whether anything of it may leave the client."""
        return self.role.sends != "nothing"

    @property
    def from_server(self) -> bool:
        """Whether the server has a value of it for clients."""
        return self.role in (SHARED, KEPT, PERSONAL, RECEIVED)

    def whole_shape(self, num_items: int) -> tuple[int, ...]:
        """Shape of the whole value; of a table with all its rows."""
        return (num_items, *self.shape) if self.rows else self.shape

    def drawn(self, name: str, num_items: int, seed: int, *numbers: int) -> Tensor:
        """The whole initial value, float32 on the CPU; the same for everybody who knows the run's seed.

        Args:
            name: of the parameter.
            num_items: m.
            seed: of the run.
            numbers: that tell later draws from the first, such as a round.
        """
        return self.initial.draw(self.whole_shape(num_items), generator(seed, "initial:" + name, *numbers))

    @property
    def tables_beside(self) -> tuple[str, ...]:
        """Names of the received tables that stand beside the client's own."""
        return tuple(name for name in (self.received_as, self.everybodys_mean) if name)


_NORMAL, _ZERO = Normal(1.0), Constant(0.0)


def private(*shape: int, initial: Initial = _NORMAL) -> Param:
    """The client's own value, which never leaves it."""
    return Param(shape, PRIVATE, initial=initial)


def fresh(*shape: int, initial: Initial = _NORMAL) -> Param:
    """A value that is reset to its initial one before every round and before prediction; it is never stored.

    With a phase's `opening` it holds what the round began with: {"anchor": p["items"]}, a table here, for a penalty on
    how far training has moved (`examples/fedprox.py`).
    """
    return Param(shape, FRESH, initial=initial)


def reported(*shape: int, initial: Initial = _NORMAL) -> Param:
    """The client's own value, which the server alone sees after every round of the client's."""
    return Param(shape, REPORTED, initial=initial)


def shared(*shape: int, initial: Initial = _NORMAL) -> Param:
    """A value that clients receive, train and send back; they predict with what the server made of it."""
    return Param(shape, SHARED, initial=initial)


def kept(*shape: int, initial: Initial = _NORMAL) -> Param:
    """As `shared`, but the client predicts with the copy that it trained when it last took part.

    A client that never took part predicts with the initial values.
    """
    return Param(shape, KEPT, initial=initial)


def personal(
    *shape: int, received_as: str, everybodys_mean: str = "", initial: Initial = _NORMAL, rows: bool = True
) -> Param:
    """A table that the client keeps and trains on; the received one stands beside it under another name and is fixed.

    With rows=False it is no table: a layer of a network, say, which the server mixes for every client like a table.
    Such a value begins with the initial one; `BeginWith` as a phase's opening begins rounds with what was received.

    A client that takes part for the first time begins with a copy of what it receives. The whole table is sent. In
    `scores` and `readings` the received table is the newest that the server has for the client. A client that does not
    receive in a round (federation setting `receiving`) has its own table there.
    """
    return Param(shape, PERSONAL, rows, initial, received_as, everybodys_mean)


def received(*shape: int, initial: Initial = _ZERO) -> Param:
    """A value that only the server changes and every client gets."""
    return Param(shape, RECEIVED, initial=initial)


def held(*shape: int, initial: Initial = _ZERO) -> Param:
    """A value that the server keeps between rounds and never sends."""
    return Param(shape, HELD, initial=initial)


def history() -> Param:
    """A table [m] of the client's own data: 1 for items that it has in training, else 0."""
    return Param((), HISTORY, rows=True, initial=_ZERO)


def quantities() -> Param:
    """A table [m] of the client's own data: how much it took of every item, added up over its rows in training.

    A row counts its quantity, or 1 where the data has no column quantity: then the table says how often. A protocol
    that collapses repeated rows (`repeats`) leaves the first of them.
    """
    return Param((), QUANTITIES, rows=True, initial=_ZERO)


def timeline() -> Param:
    """The client's training items, oldest first; a repeated item stands as often as it occurred.

    The client sees NAME.rows [L], the row of each in the tables at hand; NAME.times [L], the data's timestamps, or
    0, 1, 2, ... where the data has none; NAME.mask [L], 1 for an item and 0 for padding behind the last; and NAME.now
    [], what the client's clock says, or the number of its items where the data has no times. While it works that is the
    latest time in all training items, the moment of the round; when it is asked, what the protocol lets it know:
    its last item's time or the moment it is asked.
    """
    return Param((), TIMELINE, initial=_ZERO)


def chance() -> Param:
    """[] 63 random bits as int64, others in every round and at every client, the same in every run of a seed.

    What a client draws by itself (dropout, say) it draws from them: `ov.bits(key, p[NAME], counters)`. They are the
    same in all batches of a round, so counters say which epoch and batch it is.
    """
    return Param((), CHANCE, initial=_ZERO)


def table(one: Param) -> Param:
    """The same with one value for every item."""
    return replace(one, rows=True)


def visible(params: Mapping[str, Param]) -> dict[str, Param]:
    """Everything a client sees by name: parameters, received tables beside them, and what belongs to them."""
    seen: dict[str, Param] = {}
    for name, param in params.items():
        if param.role is TIMELINE:
            seen |= dict.fromkeys((f"{name}.rows", f"{name}.times", f"{name}.mask", f"{name}.now"), param)
        elif param.role is not HELD:
            tables = (name, *param.tables_beside)
            seen |= dict.fromkeys(tables, param)
            seen |= {f"{one}.outside": private() for one in tables if param.squares_outside}
    return seen
