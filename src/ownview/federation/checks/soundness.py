"""A look at a method before it is trained: mistakes are cheaper to name here than in the middle of a round."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor

from ownview.base.arguments import kind_of
from ownview.base.errors import SettingError, suggestion
from ownview.base.randomness import generator
from ownview.federation.checks import faults
from ownview.federation.checks.declared import require_declared, require_settings
from ownview.federation.checks.trial_calls import tried
from ownview.seam.client import Client, Reporting, Training
from ownview.seam.method import Federated
from ownview.seam.roles import CHANCE, HELD, ITEM_FEATURES, PERSONAL, RECEIVED, TIMELINE, Param, visible
from ownview.seam.server import COORDINATES, EACH, Arrived, Rule, Server, Sums
from ownview.seam.training import Batch, Context, Params, Phase, World

_ROWS = 3


def require_sound(method: Federated, world: World) -> tuple[Client, Server]:
    """Both halves of a method, looked at: `SettingError` where something is missing or would be lost on the way."""
    name = getattr(type(method), "name", None)
    if not isinstance(name, str):
        raise SettingError(f"method {type(method).__name__} has no name; expected name: ClassVar[str] = 'my-method'")
    require_settings(method, name)
    client = tried(f"method {name} cannot say what its clients have and do", method.client, world)
    server = tried(f"method {name} cannot say what its server does", method.server, world)
    require_declared(client, name)
    _require_work(client, name)
    _require_scores(client, name)
    _require_loss(client, name)
    for phase in client.phases:
        _require_opening(phase, name, client.params)
        _require_before_epoch(phase, name, client.params)
    _require_preparation(client.before_predicting, name, client.params)
    _require_server(client, server, name)
    faults.require_received_in_time(
        client, name, _drawn(client.params), Batch(*(one[0] for one in _drawn_batch(False)))
    )
    return client, server


def _require_work(client: Client, name: str) -> None:
    """There must be something to do, and it must be about what the client has."""
    params = client.params
    if not isinstance(client.work, Training):
        if not client.work.sends:
            raise SettingError(f"method {name} reports nothing; expected at least one summand")
        unfit = [one for one, param in params.items() if param.sends]
        if unfit:
            raise SettingError(f"method {name}: {unfit[0]!r} is sent by clients that train; a reporter sends summands")
        return
    if not any(phase.steps for phase in client.phases):
        raise SettingError(f"method {name} has no phase with a step; nothing would be trained")
    for moved in _moved_in(client.phases):
        if moved not in params:
            raise SettingError(f"method {name} moves a parameter {moved!r} it does not have{suggestion(moved, params)}")
        role = params[moved].role
        if role.given or role is ITEM_FEATURES:
            what = {CHANCE: "a draw", ITEM_FEATURES: "features of items"}.get(role, "the client's history")
            raise SettingError(f"method {name} moves {moved!r}, {what}, which is data and no parameter")
        if params[moved].role in (RECEIVED, HELD):
            raise SettingError(f"method {name} moves {moved!r}, which only the server changes; expected shared or kept")
    if any(param.role is TIMELINE for param in params.values()) and not client.whole_rows:
        raise SettingError(f"method {name} has a timeline, whose rows must be at hand; expected whole_rows=True")


def names_moved(client: Client) -> frozenset[str]:
    """The names of the parameters that a step moves or an opening rewrites: the others end a round as they began it."""
    every = (one for phase in client.phases for one in (phase.opening, phase.before_epoch))
    openings = [one for one in every if one is not None]
    return frozenset(_moved_in(client.phases)).union(
        *(opening(_drawn(client.params), Context(1)) for opening in openings)
    )


def names_read(client: Client) -> frozenset[str]:
    """The names of the values that `scores` looks at."""
    return faults.names_read(client.scores, _drawn(client.params))


def _drawn(params: Mapping[str, Param]) -> Params:
    """Values of a client with `_ROWS` rows, to try a method's functions on."""
    random = generator(0, "soundness")
    return {
        name: torch.zeros(1, dtype=torch.long if not name.endswith(".mask") else torch.float32)
        if param.role is TIMELINE
        else torch.zeros((), dtype=torch.long)
        if param.role is CHANCE
        else param.initial.draw(param.whole_shape(_ROWS), random)
        for name, param in visible(params).items()
    }


def _moved_in(phases: Iterable[Phase]) -> list[str]:
    """Names of what the steps of some phases move."""
    return [name for phase in phases for step in phase.steps for part in step.parts for name in part.names]


def _require_scores(client: Client, name: str) -> None:
    """Refuse scores of a wrong shape, of a client that trains; those of a reporting client depend on the download."""
    if not isinstance(client.work, Training):
        return
    scores = tried(f"method {name} cannot score {_ROWS} rows", client.scores, _drawn(client.params))
    if not isinstance(scores, torch.Tensor) or scores.shape != (_ROWS,):
        found = tuple(scores.shape) if isinstance(scores, torch.Tensor) else kind_of(scores)
        raise SettingError(f"method {name}: scores of {_ROWS} rows came as {found}; expected shape ({_ROWS},)")
    tried(f"method {name} cannot score two clients at once", torch.vmap(client.scores), _twice(client.params))


@torch.enable_grad()
def _require_loss(client: Client, name: str) -> None:
    """One number for every client, in every phase, of two clients at once, with a slope."""
    if not isinstance(client.work, Training):
        return
    batch, numbers = _drawn_batch(client.work.pairs), tried(f"method {name}: by_round fails", client.work.by_round, 1)
    if not isinstance(numbers, Mapping):
        raise SettingError(f"method {name}: by_round returned {kind_of(numbers)}; expected numbers: {{'weight': 0.1}}")
    size = f"{batch.rows.shape[1]} samples of {_ROWS} rows"
    what = f"method {name} cannot work out its loss of two clients at once, {size}"
    for phase in range(len(client.phases)):
        values = {one: value.requires_grad_(value.is_floating_point()) for one, value in _twice(client.params).items()}
        losses = tried(what, _losses(client, name), values, batch, Context(1, phase, numbers))
        if losses.shape != (2,):
            found = tuple(losses.shape[1:])
            raise SettingError(
                f"method {name}: the loss of a batch came as shape {found}; expected one number, shape ()"
            )
        if not losses.requires_grad:
            raise SettingError(f"method {name}: the loss depends on no value of the client's; nothing would be learnt")
        again = tried(what, _losses(client, name), values, batch, Context(1, phase, numbers))
        faults.require_one_value(f"method {name}: the loss of a batch", losses, again)
    with torch.no_grad():
        alone = Batch(*(part[0] for part in batch))
        for look in (faults.require_masked, faults.require_other_draws):
            tried(what, look, client, name, _drawn(client.params), alone, numbers)


def _losses(client: Client, name: str) -> Callable[[Params, Batch, Context], Tensor]:
    """[2] the losses of two clients."""

    def loss(p: Params, batch: Batch, context: Context) -> Tensor:
        found: Any = client.loss(p, batch, context)
        if not isinstance(found, Tensor):
            raise SettingError(f"method {name}: loss returned {kind_of(found)}; expected a tensor of one number")
        return found

    return torch.vmap(loss, in_dims=(0, 0, None))


def _twice(params: Mapping[str, Param]) -> Params:
    """Values of two clients, an axis of clients in front."""
    return {name: torch.stack([value, value]) for name, value in _drawn(params).items()}


def _drawn_batch(pairs: bool) -> Batch:
    """A batch of each of two clients: a positive, two negatives that were drawn for it, and a place of padding."""
    rows, labels, mask = torch.tensor([0, 1, 2, 0]), torch.tensor([1.0, 0.0, 0.0, 0.0]), torch.tensor([1.0, 1, 1, 0])
    partners = torch.zeros_like(rows if pairs else rows[:0])
    one = Batch(rows, labels, mask, positives=labels[:_ROWS], counts=mask[:_ROWS], partners=partners)
    return Batch(*(torch.stack([tensor, tensor]) for tensor in one))


def _require_opening(phase: Phase, name: str, params: Mapping[str, Param]) -> None:
    """Rows that are not at hand follow an opening only where the client has a whole table of its own to send."""
    if phase.opening is None:
        return
    rewritten = tried(f"method {name} cannot open a phase", phase.opening, _drawn(params), Context(1))
    for table in rewritten:
        if table not in params:
            raise SettingError(f"method {name}: an opening rewrites {table!r}, no parameter{suggestion(table, params)}")
        param = params[table]
        if phase.everywhere and param.rows and param.sends and param.role is not PERSONAL:
            raise SettingError(
                f"method {name}: an opening rewrites every row of the shared table {table!r}, and only trained rows "
                "would be uploaded; expected everywhere=False, or a personal table"
            )
        if phase.everywhere and param.squares_outside:
            raise SettingError(
                f"method {name}: an opening rewrites every row of {table!r}, and {table}.outside would still be of the "
                "rows as they were; expected everywhere=False, or no squares_outside"
            )


def _require_before_epoch(phase: Phase, name: str, params: Mapping[str, Param]) -> None:
    """Nothing but the client's own small values may be worked out anew in the middle of a phase."""
    if phase.before_epoch is None:
        return
    what = f"method {name} cannot work out what it needs before an epoch"
    for one in tried(what, phase.before_epoch, _drawn(params), Context(1)):
        if one not in params or params[one].rows or params[one].sends or params[one].from_server:
            raise SettingError(
                f"method {name}: {one!r} is worked out before every epoch; expected a private parameter without rows"
            )


def _require_preparation(phases: tuple[Phase, ...], name: str, params: Mapping[str, Param]) -> None:
    """Values trained before predicting are discarded afterwards, so they must be small and private."""
    for phase in phases:
        unfit = [n for n in _moved_in([phase]) if n not in params or params[n].sends or params[n].rows]
        opened = phase.opening is not None or phase.before_epoch is not None
        if unfit or opened or phase.part != "all":
            found = f"moves {unfit[0]!r}" if unfit else "has an opening" if opened else f"is on {phase.part}"
            raise SettingError(
                f"method {name}: a phase before predicting {found}; expected private parameters without rows, trained "
                "on all samples without an opening"
            )


def _of_server(params: Mapping[str, Param]) -> Params:
    """Values of a server, shared and held, to try its functions on."""
    shared = {n: value for n, value in _drawn(params).items() if n in params and params[n].from_server}
    held = {n: one for n, one in params.items() if one.role is HELD}
    return shared | {n: one.initial.draw(one.whole_shape(_ROWS), generator(0, n)) for n, one in held.items()}


def _require_rule(client: Client, rule: Rule, name: str) -> None:
    """A rule of the server's own makes changes of what clients send, in the shape of the values."""
    sent = {n for n in names_moved(client) if n in client.params and client.params[n].role.sends == "change"}
    if own := sorted(n for n, param in client.params.items() if param.role is PERSONAL):
        raise SettingError(f"method {name}: {own[0]!r} is sent whole, and a rule is about changes; expected shared")
    values, what = _of_server(client.params), f"method {name}: the server's rule fails on uploads of two clients"
    twice = {one: torch.stack([values[one], values[one] / 2]) for one in sorted(sent)}
    if rule.needs == COORDINATES:
        shaped = {one: value if client.params[one].rows else value[:, None] for one, value in twice.items()}
        made = {one: tried(what, rule.function, v, torch.ones(v.shape[:2])) for one, v in shaped.items()}
        values = {one: value if client.params[one].rows else value[None] for one, value in values.items()}
    else:
        halves = torch.tensor([0.5, 0.5])
        arrived = Arrived(1, 2, *((halves, torch.tensor([0, 1])) if rule.needs == EACH else ()))
        changes = twice if rule.needs == EACH else {one: value.mean(0) for one, value in twice.items()}
        made = tried(what, rule.function, changes, dict(values), arrived)
    if not isinstance(made, Mapping):
        raise SettingError(f"method {name}: the server's rule returned {kind_of(made)}; expected changes by name")
    for one, value in made.items():
        if one not in values or (one not in sent and client.params[one].role is not HELD):
            near = suggestion(one, sent)
            raise SettingError(f"method {name}: the server's rule changes {one!r}, which no client sends{near}")
        if not isinstance(value, Tensor) or value.shape != values[one].shape:
            found = tuple(value.shape) if isinstance(value, Tensor) else kind_of(value)
            raise SettingError(
                f"method {name}: the server's rule makes {one!r} as {found}; expected shape {tuple(values[one].shape)}"
            )


def _require_server(client: Client, server: Server, name: str) -> None:
    """The two halves must fit each other, and what the server rewrites must be its to rewrite."""
    params = client.params
    if isinstance(server.combine, Sums) != isinstance(client.work, Reporting):
        raise SettingError(f"method {name}: a server adds up sums exactly where its clients report them")
    for table in (one for one, param in params.items() if param.everybodys_mean and server.mixing is None):
        raise SettingError(f"method {name}: {table!r} wants a mean of mixtures, and no mixing of the server makes any")
    if isinstance(server.combine, Rule):
        _require_rule(client, server.combine, name)
    if server.after is None:
        return
    if isinstance(server.combine, Sums):
        raise SettingError(
            f"method {name}: the server's step `after` follows a mean, and this server adds up sums; expected the step "
            "at the end of `combine`"
        )
    drawn, shared = _drawn(params), _of_server(params)
    what = f"method {name}: the server's step fails"
    rewritten = tried(what, server.after, shared, lambda wanted: drawn[wanted].clone())
    for one, value in rewritten.items():
        if one not in shared:
            raise SettingError(
                f"method {name}: the server rewrites {one!r}, no value of the server's{suggestion(one, shared)}"
            )
        if value.shape != shared[one].shape:
            raise SettingError(
                f"method {name}: the server rewrites {one!r} as {tuple(value.shape)}; "
                f"expected shape {tuple(shared[one].shape)}"
            )
