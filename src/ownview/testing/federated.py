"""Checks of federated methods. Each takes a method (or a plug-in around one), runs it for real, and complains."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from ownview.federation.options import FederationOptions
from ownview.round.alone import ProcessFederation
from ownview.round.federation import Federation
from ownview.round.scorers import scorer_of
from ownview.seam.client import Reporting
from ownview.seam.method import Federated
from ownview.seam.plugin import Plugin
from ownview.seam.training import ANY_WORLD
from ownview.testing import checks
from ownview.testing.worlds import federation, small_world

_SOLVES = (torch.linalg.solve, torch.linalg.inv, torch.linalg.cholesky_ex)


class Conditions(TorchFunctionMode):
    """A context that notes the largest condition number of any system solved inside it; 1 where none is."""

    def __init__(self) -> None:
        super().__init__()
        self.worst = 1.0

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Look at what is solved, and let it pass. Inside a map over clients no single number can be read."""
        if func in _SOLVES and not torch._C._functorch.is_batchedtensor(args[0]):
            self.worst = max(self.worst, float(torch.linalg.cond(args[0].detach().double()).max()))
        return func(*args, **(kwargs or {}))


Check = Callable[[Federated], None]

_ROUNDS = 3
_FEW = 9
"""Clients where one at a time is asked for: some have a batch and some have several, and three blocks hold them."""
_EXACT = 1e-10
"""Of the largest value: what two ways of the same sums may differ by in double precision."""


def conform(method: Federated, say: checks.Say = print) -> None:
    """Run every check, saying what is checked as it goes."""
    checks.run_checks(method, CHECKS, say)


def loop_equals_vector(method: Federated, device: str = "cpu") -> None:
    """One client at a time and all at once give the same values.

    In float64 every value agrees to 1e-10, times the condition of what is solved. In float32 values agree to 1e-5 of
    their scale in root mean square after a round: where a gradient cancels to nearly zero, Adam turns the rounding that
    is left into a step, and single values differ more.
    """
    every, split = checks.options_for(method), small_world(_FEW)
    for options, rounds in ((every[0], 2), (every[-1], _ROUNDS)):
        with Conditions() as solved:
            loop = _trained(federation(method, split, options=options, engine="loop"), rounds)
        vector = _trained(federation(method, split, options=options, device=device), rounds)
        assert_close(loop, vector, _EXACT * solved.worst)
    alone = federation(method, split, options=every[-1], dtype=torch.float32, engine="loop")
    stacked = federation(method, split, options=every[-1], dtype=torch.float32, device=device)
    assert_close(_trained(alone, 1), _trained(stacked, 1), 1e-5, in_mean=True)


def alone_equals_vector(
    method: Federated,
    options: FederationOptions | None = None,
    dtype: torch.dtype = torch.float64,
    *,
    together: bool = False,
) -> None:
    """Every client alone in a process of its own, with its values in a file of its own, gives the same values.

    Clients and server exchange nothing but bytes, and the bytes are as many as a simulation says. Processes end after
    the first round, and others go on from the files. Float64: three rounds, or as many as a budget is for, to 1e-10
    times the condition of what is solved; float32: one round, to 1e-5 in root mean square. With `together` clients
    are in one process, with their files and bytes alone, which takes half the time.
    """
    split, options = small_world(num_users=5), (options or FederationOptions()).repeating()
    one = federation(method, split, options=options, dtype=dtype)
    plan = one.world.protection
    rounds = min(_ROUNDS if dtype == torch.float64 else 1, _ROUNDS if plan is None else plan.rounds)
    with tempfile.TemporaryDirectory() as folder, Conditions() as solved:
        agreed = method, one.world, options, one.seed, one.machine
        apart = ProcessFederation(agreed, split, split.training_items(), Path(folder), together=together)
        with apart:
            for number in range(1, rounds + 1):
                report, real = one.round(number), apart.round(number)
                assert report.bytes_down == real.bytes_down, "other bytes down"
                assert report.bytes_up == real.bytes_up, "other bytes up"
                if number == 1:
                    apart.restart()
            scores, own = apart.look(rounds)
    simulated, alone = _predictions(one), {"scores": scores}
    alone |= {f"server {name}": value for name, value in apart.server.pack().items() if value.is_floating_point()}
    alone |= {f"own {name}": torch.stack([mine[name] for mine in own]) for name in own[0]}
    simulated = {name: simulated[name] for name in alone}
    single = dtype == torch.float32
    assert_close(simulated, alone, 1e-5 if single else _EXACT * solved.worst, in_mean=single)


def touched_equals_dense(method: Federated, device: str = "cpu") -> None:
    """Giving clients only the rows they touch changes nothing. Clients that report have whole tables anyway."""
    if isinstance(method.client(ANY_WORLD).work, Reporting):
        return
    split = small_world(_FEW)
    touched = _trained(federation(method, split, device=device), 2)
    dense = _trained(federation(method, split, dense=True, device=device), 2)
    assert_close(touched, dense, _EXACT)


def blocks_change_nothing(method: Federated, device: str = "cpu") -> None:
    """Neither the size of blocks nor the order of clients in them matters."""
    split = small_world(_FEW)
    with Conditions() as solved:
        whole = _trained(federation(method, split, device=device), 2)
        parts = _trained(federation(method, split, block_clients=4, device=device), 2)
    assert_close(whole, parts, _EXACT * solved.worst)


def only_declared_leaves(method: Federated) -> None:
    """An upload holds what the roles say, and nothing else; where nothing is sent, nothing at the server changes."""
    one = federation(method, small_world())
    params, work = one.client.params, one.client.work
    block = one.work.blocks(one.participants(1))[0]
    one.clients.begin(one.newest(block), block)
    upload = one.work.do(one.work.samples(1, block), one.server.download(1, block))
    sent = {*upload.rows, *upload.whole, *upload.sums}
    allowed = {name for name, param in params.items() if param.sends}
    if isinstance(work, Reporting):
        allowed = set(work.sends)
        assert all(summand.what for summand in work.sends.values()), "a summand does not say what it is"
    assert sent <= allowed, f"a client sends {sorted(sent - allowed)}, which no role or summand declares"
    quiet = federation(method, small_world(), options=FederationOptions(clients="poisson:1e-12"))
    before = {name: value.clone() for name, value in quiet.server.shared.items()}
    quiet.round(1)
    if one.terms.server.after is None:
        for name, value in quiet.server.shared.items():
            assert torch.equal(value, before[name]), f"the server's {name} changed without an upload"


def neutral_changes_nothing(method: Federated) -> None:
    """A plug-in with neutral settings equals its inner method. Nothing to check for a plain method."""
    if not isinstance(method, Plugin):
        return
    inner = method.wrapped
    plain = _trained(federation(inner, small_world()), 2)
    assert_close(plain, _trained(federation(type(method).neutral(inner), small_world()), 2), 1e-12)


def enough_is_enough(method: Federated) -> None:
    """Where a method says how many rounds are enough, one more changes nothing."""
    if method.enough is None:
        return
    one = federation(method, small_world())
    before = _trained(one, method.enough)
    one.round(method.enough + 1)
    assert_close(before, _predictions(one), 1e-12)


CHECKS: Mapping[str, Check] = {
    "loop equals vector": loop_equals_vector,
    "alone equals vector": alone_equals_vector,
    "touched equals dense": touched_equals_dense,
    "blocks change nothing": blocks_change_nothing,
    "only declared leaves": only_declared_leaves,
    "resumes exactly": checks.resumes_exactly,
    "repeats exactly": checks.repeats_exactly,
    "experiment round-trips": checks.experiment_round_trips,
    "neutral changes nothing": neutral_changes_nothing,
    "enough is enough": enough_is_enough,
    "learns": checks.learns,
}


def _trained(one: Federation, rounds: int = _ROUNDS) -> dict[str, Tensor]:
    return _predictions(checks.trained(one, 1, rounds))


def _predictions(one: Federation) -> dict[str, Tensor]:
    """Everything that may be compared: scores of all items for all clients, the server's and the clients' values."""
    clients = torch.arange(one.world.num_clients, device=one.machine.device)
    found = {"scores": scorer_of(one).scores(clients, None)}
    found |= {f"server {name}": value for name, value in one.server.pack().items() if value.is_floating_point()}
    found |= {f"own {name}": value for name, value in one.clients.own.items()}
    tables = (name for name in one.clients.tables if one.client.params[name].own)
    found |= {f"own {name}": one.clients.whole(name, clients) for name in tables}
    return {name: value.cpu().clone() for name, value in found.items()}


def assert_close(
    left: Mapping[str, Tensor], right: Mapping[str, Tensor], tolerance: float, *, in_mean: bool = False
) -> None:
    """Every value agrees to a tolerance of the largest; with `in_mean`, values do so in root mean square."""
    assert set(left) == set(right)
    for name, value in left.items():
        apart = (value - right[name]).abs() if value.numel() else torch.zeros(1)
        scale = max(1.0, float(value.abs().max())) if value.numel() else 1.0
        difference = float(apart.square().mean().sqrt() if in_mean else apart.max()) / scale
        hint = "a loss must weigh rows by batch.counts: rows with count 0 may be padding"
        assert difference <= tolerance, f"{name} differs by {difference:.2e}, more than {tolerance:.0e} ({hint})"
