"""Steps that are compiled: loss, gradient and optimiser of a stack of clients in few sweeps over memory.

PyTorch's compiler writes C++ for a CPU and Triton for a GPU. A step is one function of everything it reads, so that a
gradient need not be written out before the optimiser takes it. Compiling takes seconds, once for every step of a method
in a process; where it fails, the same function runs operation by operation.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from itertools import count
from types import FunctionType
from typing import Any

import torch
from torch import Tensor

from ownview.base.failures import lacks_memory
from ownview.engine.step_runs import Runs
from ownview.engine.steps import clipped
from ownview.engine.windows import Window, counted
from ownview.seam.client import Client
from ownview.seam.optimizers import soft_thresholded
from ownview.seam.training import Batch, Context, Params, Step

log = logging.getLogger(__name__)

_OPTIONS: dict[str, dict[str, Any]] = {
    "cpu": {"cpp.threads": 1, "cpp_wrapper": True},
    "cuda": {"deterministic": True},
}
"""Of PyTorch's compiler, by kind of device. On a CPU every core has a stack of its own (see `threads`); what is called
from Python keeps its lock, so that one stack at a time would move, while a step that is C++ as a whole lets go of it.
On a GPU the compiler tries several ways to cut a sum and keeps the fastest, which may be another one the next time, and
with it the rounding: so it must choose without a trial.
"""

_NUMBERS = count(1)
"""Of functions that were compiled in this process."""

COMPILES_BESIDE_THREADS = torch.__version__ >= "2.13"
"""Whether other threads may work while PyTorch compiles; 2.11 ends the process there, and 2.12 was not tried."""

_COMPILERS = ("torch._dynamo.exc", "torch._inductor.exc")
"""Modules whose errors are those of PyTorch's compiler."""

_TRACED_ELSEWHERE = "using FX to symbolically trace"
"""What PyTorch says where a compiled function is called while another thread compiles."""

Whole = Callable[..., Tensor]
"""A step as one function; see `_whole`."""

Standing = tuple[list[Tensor], list[list[Tensor]], Tensor, list[Tensor]]
"""What a step takes besides samples and numbers: values, memories, steps taken and factors; see `_whole`."""

Compiling = Callable[[Whole], Whole | None]
"""A plain function -> the same, but fast; None where there is no way."""


def by_pytorch(device: torch.device, plain: Whole) -> Whole | None:
    """By PyTorch's compiler, unless TORCH_COMPILE_DISABLE is set."""
    if torch._dynamo.config.disable:
        return None
    return torch.compile(with_own_name(plain), fullgraph=True, options=options(device.type))


def with_own_name(plain: Whole) -> Whole:
    """The same under a name that no other has.

    PyTorch keeps what it has compiled with a function's code, and what it knows of sizes with its name: steps would
    share both.
    """
    code = plain.__code__.replace(co_name=f"{plain.__name__}{next(_NUMBERS)}")
    return FunctionType(code, plain.__globals__, code.co_name, closure=plain.__closure__)


def options(device: str) -> dict[str, Any]:
    """Options of PyTorch's compiler for a kind of device, as far as this version has them."""
    known = torch._inductor.list_options()
    return {name: value for name, value in _OPTIONS.get(device, {}).items() if name in known}


class Compiler:
    """Compiled functions of one engine, one for every step of every phase.

    Args:
        client: the method's.
        compiling: compiles a function, or returns None.
    """

    def __init__(self, client: Client, compiling: Compiling) -> None:
        self.client, self.compiling = client, compiling
        self.made: dict[tuple[int, int], _Compiled] = {}
        self.suited: dict[int, bool] = {}

    def suits(self, phase: int, rehearse: Callable[[], bool]) -> bool:
        """Whether a phase's work is the same in every round; `rehearse` is called once to find out."""
        if phase not in self.suited:
            self.suited[phase] = rehearse()
        return self.suited[phase]

    def function(
        self, phase: int, index: int, step: Step, names: tuple[str, ...], numbers: tuple[str, ...]
    ) -> _Compiled:
        """The compiled step `index` of a phase, for every stack."""
        key = phase, index
        if key not in self.made:
            self.made[key] = _Compiled(_whole(self.client, step, phase, names, numbers), self.compiling)
        return self.made[key]


class CompiledStep:
    """A step of a phase on the tensors of a stack, moved by a compiled function.

    Args:
        function: of the step, from `Compiler.function` with the same `step` and the names of `params`.
        step: what moves, and how.
        params: values with the client axis in front.
        tables: names of parameters with rows.
        runs: which clients work at which batch.
        context: of the phase.
        count: steps that a client takes in a round, at most.
    """

    def __init__(
        self, function: _Compiled, step: Step, params: Params, tables: frozenset[str], runs: Runs, context: Context,
        count: int,
    ) -> None:  # fmt: skip
        self.function, self.step, self.params, self.runs, self.context = function, step, params, runs, context
        self.tables, self.count = tables, count
        self.memories = [
            [torch.zeros_like(params[name]) for _ in range(part.optimizer.memories)]
            for part in step.parts for name in part.names
        ]  # fmt: skip
        like = params[step.names[0]]
        self.taken = torch.zeros(len(like), dtype=torch.long, device=like.device)
        self.factors = [self._factors(part, context.round).to(like) for part in step.parts]
        self.numbers = list(context.numbers.values())
        self.standing: dict[int, Standing] = {}

    def _factors(self, part: Step, number: int) -> Tensor:
        return torch.tensor(part.optimizer.factors(self.count, number), dtype=torch.float64)

    def restart(self, number: int) -> None:
        """Reset moments and step counts; take the round's rates."""
        self.taken.zero_()
        for memory in (one for several in self.memories for one in several):
            memory.zero_()
        for part, factors in zip(self.step.parts, self.factors, strict=True):
            factors.copy_(self._factors(part, number))

    def _axes(self, name: str) -> tuple[int, ...]:
        """Dynamic axes: clients, and rows where there are any."""
        return (0, 1) if name in self.tables else (0,)

    def take(self, window: Window, active: int) -> Tensor:
        """Move in place."""
        if active not in self.standing:
            self.standing[active] = self._standing(active)
        samples = [_sized(one, (0, 1)) for one in window.tensors]
        return self.function(*self.standing[active], samples, self.numbers)

    def _standing(self, active: int) -> Standing:
        """Values of the first `active` runs: the same tensors in every epoch."""
        here = self.runs.clients(active)
        values = [_sized(value[here], self._axes(name)) for name, value in self.params.items()]
        moving = [name for part in self.step.parts for name in part.names]
        memories = [
            [_sized(one[here], self._axes(name)) for one in several]
            for name, several in zip(moving, self.memories, strict=True)
        ]
        factors = [_sized(one, axes=(1,)) for one in self.factors]
        return values, memories, _sized(self.taken[here]), factors


class _Compiled:
    """A function compiled at its first call, for all sizes.

    Other variants of it are for one client, one row or one sample. PyTorch gives up after eight: it hangs on some size
    then, and would be compiled again and again.
    """

    def __init__(self, plain: Whole, compiling: Compiling) -> None:
        self.plain, self.fast = plain, compiling(plain)

    def __call__(self, *given: Any) -> Tensor:
        if self.fast is None:
            return self.plain(*given)
        try:
            return self.fast(*given)
        except Exception as error:
            if not _of_compiling(error) or lacks_memory(error):
                raise  # a step that broke off may have moved some values: taken once more, it would move them twice
            log.warning("a step cannot be compiled and runs plainly: %s", str(error).strip().splitlines()[0])
            log.debug("the compiler's own words", exc_info=True)
            self.fast = None
            return self.plain(*given)


def _of_compiling(error: Exception) -> bool:
    """Whether an error is the compiler's, raised before any value was changed."""
    return type(error).__module__ in _COMPILERS or _TRACED_ELSEWHERE in str(error)


def _sized(tensor: Tensor, axes: tuple[int, ...] = (0,)) -> Tensor:
    """Mark axes of a tensor (clients, and rows or samples) as dynamic for the compiler."""
    for axis in axes:
        torch._dynamo.maybe_mark_dynamic(tensor, axis)
    return tensor


def _whole(client: Client, step: Step, phase: int, names: tuple[str, ...], numbers: tuple[str, ...]) -> Whole:
    """A step of a stack of clients as one function.

    It moves values and memories in place and returns losses of all samples [B]. It takes values [B, ...] in the order
    of `names`; memories of every value that moves, in the order of the step; steps that each client has taken [B];
    factors of each part's optimiser [k, count]; the tensors of a window; numbers of the round.
    """
    moving = [name for part in step.parts for name in part.names]
    still = [name for name in names if name not in moving]

    def context(given: list[Tensor]) -> Context:
        return Context(_NO_ROUND, phase, dict(zip(numbers, given, strict=True)))

    def one(moved: list[Tensor], others: list[Tensor], samples: list[Tensor], given: list[Tensor]) -> Tensor:
        p = dict(zip([*moving, *still], [*moved, *others], strict=True))
        return client.loss(p, Batch(*samples), context(given))

    each = torch.vmap(torch.func.grad_and_value(one), in_dims=(0, 0, 0, None))
    # The compiler sees operations alone, not the Python that asks for them: it knows no slopes of a function's own.
    slopes = torch.compiler.allow_in_graph(each)  # type: ignore[no-untyped-call]

    def whole(
        values: list[Tensor], memories: list[list[Tensor]], taken: Tensor, factors: list[Tensor],
        drawn: list[Tensor], given: list[Tensor],
    ) -> Tensor:  # fmt: skip
        batch = counted(*drawn)
        samples = list(batch)
        p = dict(zip(names, values, strict=True))
        moved = [p[name] for name in moving]
        grads, losses = slopes(moved, [p[name] for name in still], samples, given)
        written: list[tuple[Tensor, Tensor]] = []
        place = 0
        for part, table in zip(step.parts, factors, strict=True):
            here = slice(place, place + len(part.names))
            place = here.stop
            weights = _weights(part, samples, context(given))
            written.extend(_moved(part, moved[here], grads[here], memories[here], table[:, taken], weights))
        for old, new in written:  # when everything has been read
            old.copy_(new)
        taken.add_(1)
        found: Tensor = losses * batch.mask.sum(-1)
        return found

    return whole


def _weights(part: Step, samples: list[Tensor], context: Context) -> Tensor | None:
    """[B, R] of |x|, where the part shrinks."""
    shrink = part.shrink
    if shrink is None:
        return None
    weights: Tensor = torch.vmap(lambda *tensors: shrink(Batch(*tensors), context))(*samples)
    return weights


def _moved(
    part: Step, values: Sequence[Tensor], grads: Sequence[Tensor], memories: Sequence[Sequence[Tensor]],
    factors: Tensor, weights: Tensor | None,
) -> list[tuple[Tensor, Tensor]]:  # fmt: skip
    """New values and memories of a part: pairs of a tensor and its new content."""
    bounded = clipped(tuple(grads), part.clip, alone=False) if part.clip else grads
    written: list[tuple[Tensor, Tensor]] = []
    for x, grad, memory in zip(values, bounded, memories, strict=True):
        new, *remembered = part.optimizer.moved(x, grad, memory, factors)
        if weights is not None:
            new = soft_thresholded(new, weights * factors[0].reshape(-1, *[1] * (weights.dim() - 1)))
        written.extend(zip([x, *memory], [new, *remembered], strict=True))
    return written


_NO_ROUND = 0
"""What a loss would see that asks for the round: none does that is compiled."""
