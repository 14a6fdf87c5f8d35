"""The compiled engine: the same values as one client at a time, whatever of it is compiled."""

from __future__ import annotations

import logging
import shutil
from typing import Any

import pytest
import torch
from torch import Tensor
from torch._dynamo.testing import CompileCounter

from ownview import PLGC, FedMF, FedNCF, FedRAP, PerFedRec
from ownview.base.errors import TrainingError
from ownview.engine import compiled, engines
from ownview.engine.compiled import Compiling, Whole, with_own_name
from ownview.round.federation import Federation
from ownview.seam.client import Training
from ownview.seam.method import Federated
from ownview.seam.training import Batch, Context, Params, World
from ownview.testing.federated import Conditions, assert_close
from ownview.testing.worlds import federation, small_world
from tests.testing.test_conformance import COMBINATIONS

TRAINED = {
    name: method for name, method in COMBINATIONS.items()
    if isinstance(method.client(World(num_clients=9, num_items=12, order="times")).work, Training)
}  # fmt: skip
ROUNDS = 2
NO_COMPILER = shutil.which("g++") is None and shutil.which("clang++") is None


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_the_compiler_knows_what_is_asked_of_it(device: str) -> None:
    assert compiled.options(device) == compiled._OPTIONS[device]
    assert torch.compile(lambda x: x, options=compiled.options(device)) is not None


def after(one: Federation, rounds: int = ROUNDS) -> Params:
    for number in range(1, rounds + 1):
        one.round(number)
    return {name: value.cpu() for name, value in one.pack().items() if value.is_floating_point()}


def functions(one: Federation) -> list[Any]:
    work: Any = one.work
    return list(work.engine.compiler.made.values())


def equal(method: Federated, compiling: Compiling | None = None, device: str = "cpu") -> Federation:
    """Trained by the compiled engine, and found equal to the loop engine."""
    split = small_world(9)
    with Conditions() as solved:
        expected = after(federation(method, split, engine="loop"))
    one = federation(method, split, engine="compiled", device=device)
    work: Any = one.work
    work.engine.compiler.compiling = compiling or work.engine.compiler.compiling
    assert_close(expected, after(one), 1e-10 * solved.worst)
    return one


@pytest.mark.parametrize("name", TRAINED)
def test_a_step_as_one_function_equals_one_client_at_a_time(name: str) -> None:
    """The function that is compiled otherwise, as it is, for everything that trains."""
    equal(TRAINED[name], compiling=lambda plain: plain)


@pytest.mark.skipif(NO_COMPILER, reason="no C++ compiler is installed")
def test_compiled_with_shrinking_clipping_and_a_curriculum() -> None:
    one = equal(FedRAP(embedding_size=4, local_epochs=2, update="proximal", clip_gradient=0.02))
    assert functions(one)
    assert all(function.fast is not None for function in functions(one))


@pytest.mark.slow
@pytest.mark.skipif(NO_COMPILER, reason="no C++ compiler is installed")
@pytest.mark.parametrize("name", TRAINED)
def test_compiled_equals_one_client_at_a_time(name: str) -> None:
    assert all(function.fast is not None for function in functions(equal(TRAINED[name])))


@pytest.mark.slow
@pytest.mark.skipif(NO_COMPILER, reason="no C++ compiler is installed")
def test_a_compiled_run_that_is_resumed_goes_on_bit_for_bit() -> None:
    whole, half, other = (
        federation(FedMF(), small_world(), engine="compiled", dtype=torch.float32) for _ in range(3)
    )  # fmt: skip
    after(half, 2)
    other.unpack(half.pack())
    for number in (3, 4):
        other.round(number)
    found = other.pack()
    assert all(torch.equal(value, found[name]) for name, value in after(whole, 4).items())


@pytest.mark.slow
@pytest.mark.skipif(NO_COMPILER, reason="no C++ compiler is installed")
def test_what_was_compiled_before_does_not_matter() -> None:
    """PyTorch remembers sizes by a function's name: another one would be made to work for vectors of all lengths."""
    for size in (4, 6):
        one = equal(PLGC(inner=FedMF(embedding_size=size, batch_size=64, local_epochs=1)))
        assert all(function.fast is not None for function in functions(one))


def variants(method: Federated) -> list[int]:
    """How often each step of a method is compiled, as stacks of several sizes come along; no code is made of it."""
    counters: list[CompileCounter] = []

    def traced(plain: Whole) -> Whole:
        counters.append(CompileCounter())
        return torch.compile(with_own_name(plain), fullgraph=True, backend=counters[-1])

    one = federation(method, small_world(), engine="compiled", block_clients=9)
    work: Any = one.work
    work.engine.compiler.compiling = traced
    after(one)
    return [counter.frame_count for counter in counters]


MOST_VARIANTS = 3
"""For one client, for several whose batch is all that they have, and for several."""


def test_halves_of_a_layer_leave_the_number_of_clients_open() -> None:
    """Slopes of slices fix it: a step was compiled anew for every stack, and after eight of them ran plainly."""
    assert max(variants(FedNCF(embedding_size=4, hidden_layers=(3,), local_epochs=1))) <= MOST_VARIANTS


@pytest.mark.slow
@pytest.mark.parametrize("name", TRAINED)
def test_steps_are_compiled_for_any_number_of_clients(name: str) -> None:
    assert all(count <= MOST_VARIANTS for count in variants(TRAINED[name]))


class Untraceable(FedMF):
    """Whose loss cannot be traced, as one with an operation of another library."""

    def loss(self, p: Params, batch: Batch, context: Context) -> Tensor:
        if torch._guards.TracingContext.try_get() is not None:
            raise RuntimeError("the compiler knows nothing of this")
        return super().loss(p, batch, context)


def test_what_cannot_be_compiled_runs_plainly_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "ownview.engine.compiled"):
        one = equal(Untraceable())
    assert [function.fast for function in functions(one)] == [None]
    assert len([line for line in caplog.messages if "runs plainly" in line]) == 1


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("CUDA driver error: out of memory", RuntimeError),
        ("CUDA error: an illegal memory access was encountered", TrainingError),
    ],
)
def test_a_step_that_broke_off_is_not_taken_again(words: str, expected: type[Exception]) -> None:
    """It may have moved some values; lack of memory is told as such, all else by the name of the method."""

    def breaking_off(plain: Any) -> Any:
        def fast(*given: Any) -> Tensor:
            plain(*given)
            raise RuntimeError(words)

        return fast

    with pytest.raises(expected, match=words):
        equal(FedMF(embedding_size=4, local_epochs=1), compiling=breaking_off)


@pytest.mark.skipif(NO_COMPILER, reason="no C++ compiler is installed")
def test_slopes_that_a_function_gives_itself_are_compiled() -> None:
    """The compiler knows no such function among the clients of a stack, unless it sees its result alone."""

    class OwnSlopes(FedMF):
        def loss(self, p: Params, batch: Batch, context: Context) -> Tensor:
            doubled: Tensor = Doubled.apply(p["user"])  # type: ignore[no-untyped-call]
            return super().loss({**p, "user": doubled}, batch, context)

    one = equal(OwnSlopes(embedding_size=4, local_epochs=1))
    assert all(function.fast is not None for function in functions(one))


class Doubled(torch.autograd.Function):
    """Twice a tensor, with slopes that point the wrong way, so that nobody else can have made them."""

    generate_vmap_rule = True

    @staticmethod
    def forward(given: Tensor) -> Tensor:
        return 2 * given

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor], output: Tensor) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, slopes: Tensor) -> Tensor:
        return -2 * slopes


@pytest.mark.parametrize("beside", [True, False])
def test_nothing_else_is_at_work_where_the_compiler_cannot_bear_it(
    beside: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[int] = []

    def in_threads(work: list[Any]) -> list[Any]:
        threads.append(len(work))
        return [piece() for piece in work]

    monkeypatch.setattr(engines, "in_threads", in_threads)
    monkeypatch.setattr(compiled, "COMPILES_BESIDE_THREADS", beside)
    equal(FedMF(embedding_size=4, local_epochs=1), compiling=lambda plain: plain)
    assert bool(threads) == beside


def test_a_loss_that_asks_for_the_round_is_not_compiled() -> None:
    """A compiled function would go on with the round it was compiled in."""
    assert not functions(equal(PerFedRec()))
