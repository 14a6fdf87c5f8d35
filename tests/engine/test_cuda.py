"""The same on a GPU: equal to the loop engine on the CPU, the same on every run, and resumed bit for bit."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

from ownview.engine.recordings import Pool, Recorder, Repeated, queue
from ownview.federation.options import FederationOptions
from ownview.parts.row_sums import weighted_row_sums
from ownview.round.federation import Federation
from ownview.runs.batch import run_each
from ownview.runs.experiment import Experiment
from ownview.seam import adam_kernel
from ownview.seam.optimizers import Adam
from ownview.testing import CHECKS
from ownview.testing.worlds import federation, small_world
from tests.engine.test_compiled import TRAINED, equal, functions
from tests.engine.test_lasting import METHODS
from tests.testing.test_conformance import COMBINATIONS, OPTIONS

EVERYTHING = {**COMBINATIONS, **OPTIONS}
ON_A_DEVICE = (
    "loop equals vector", "touched equals dense", "blocks change nothing", "resumes exactly", "repeats exactly"
)  # fmt: skip
ROUNDS = 4
"""Enough for work of one epoch to be recorded, which it is in its second round, and replayed in two more."""

ENGINES = pytest.mark.parametrize("engine", ["vector", "compiled"])

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")]


@pytest.mark.parametrize("check", ON_A_DEVICE)
@pytest.mark.parametrize("name", EVERYTHING)
def test_conforms_on_cuda(name: str, check: str) -> None:
    run: Any = CHECKS[check]
    run(EVERYTHING[name], device="cuda")


def _after(one: Federation, first: int, last: int) -> dict[str, torch.Tensor]:
    for number in range(first, last + 1):
        one.round(number)
    return {name: value.cpu() for name, value in one.pack().items()}


@pytest.mark.parametrize("name", TRAINED)
def test_compiled_equals_one_client_at_a_time_on_cuda(name: str) -> None:
    assert all(function.fast is not None for function in functions(equal(TRAINED[name], device="cuda")))


@ENGINES
@pytest.mark.parametrize("name", METHODS)
def test_replayed_rounds_equal_those_of_one_client_at_a_time(name: str, engine: str) -> None:
    many = federation(METHODS[name], small_world(), engine=engine, device="cuda", block_clients=9)
    work: Any = many.work
    found = _after(many, 1, ROUNDS)
    assert work.engine.held, "stacks must wait for the next round"
    assert all(phase.once_more.graph for fit in work.engine.held.values() for phase in fit.held.values())
    expected = _after(federation(METHODS[name], small_world(), engine="loop"), 1, ROUNDS)
    for part, value in expected.items():
        assert torch.allclose(value.double(), found[part].double(), atol=1e-8, rtol=1e-6), part


@ENGINES
@pytest.mark.parametrize("name", METHODS)
def test_a_run_resumed_among_replayed_rounds_goes_on_bit_for_bit(name: str, engine: str) -> None:
    whole, half, other = (
        federation(METHODS[name], small_world(), engine=engine, device="cuda", dtype=torch.float32) for _ in range(3)
    )
    expected = _after(whole, 1, ROUNDS + 1)
    other.unpack(_after(half, 1, 3))
    for part, value in _after(other, 4, ROUNDS + 1).items():
        assert torch.equal(value, expected[part]), part


def test_samples_drawn_while_the_round_before_trains_are_those_that_would_be_drawn_in_time() -> None:
    one = federation(METHODS["Adam"], small_world(), device="cuda", dtype=torch.float32)
    work: Any = one.work
    clients = one.participants(1)
    _after(one, 1, 3)
    assert work.ahead.repeated.graph is not None, "drawing must be recorded"
    assert work.ahead.begun[0] == 4
    (wave,) = work.waves(work.blocks(clients))
    drawn = work.draw(4, wave)
    assert work.ahead.begun is None, "they must be taken"
    work.ahead.begin(5, work._key(5), work._attempt)  # must not be written where these stand
    for found, block in zip(drawn, wave, strict=True):
        late = work.samples(4, block)
        for name in ("clients", "identities", "num_rows", "rows", "labels", "sizes", "partners"):
            assert torch.equal(getattr(found, name), getattr(late, name)), name
        assert torch.equal(found.items[:, : late.items.shape[1]], late.items)
        assert found.host_sizes == late.host_sizes


def test_samples_drawn_for_another_round_are_thrown_away() -> None:
    one = federation(METHODS["Adam"], small_world(), device="cuda", dtype=torch.float32)
    work: Any = one.work
    _after(one, 1, 3)
    (wave,) = work.waves(work.blocks(one.participants(1)))
    drawn = work.draw(9, wave)
    assert work.ahead.begun is None
    assert torch.equal(drawn[0].rows, work.samples(9, wave[0]).rows)


def test_nothing_is_drawn_ahead_where_other_clients_train_in_every_round() -> None:
    some = FederationOptions(clients="7")
    one = federation(METHODS["Adam"], small_world(), options=some, device="cuda", dtype=torch.float32)
    work: Any = one.work
    _after(one, 1, 3)
    assert work.ahead is None


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_every_client_has_its_own_number_of_steps(dtype: torch.dtype) -> None:
    """Three clients of which the last is through first, against PyTorch's Adam of each alone."""
    device = torch.device("cuda")
    assert adam_kernel.works(device, dtype), "Triton must be there, or nothing is compared"
    random = torch.Generator().manual_seed(0)
    start = torch.randn(3, 70, 30, dtype=dtype, generator=random).to(device)
    stack, alone = start.clone(), [one.clone() for one in start]
    together = Adam(0.01).start([stack], [slice(0, 2), slice(2, 3)], 1)
    each = [Adam(0.01).start([one], [...], 1) for one in alone]
    for step in range(6):
        active, count = (2, 3) if step < 2 else (1, 2)
        grads = torch.randn(count, 70, 30, dtype=dtype, generator=random).to(device)
        together.step([grads], active)
        for mover, grad in zip(each, grads, strict=False):
            mover.step([grad], 1)
    wide = 1e-5 if dtype == torch.float32 else 1e-12  # of steps of 0.01
    assert torch.allclose(stack, torch.stack(alone), atol=wide, rtol=0)
    assert not torch.allclose(stack, start, atol=0.01)


def _add(total: torch.Tensor, more: torch.Tensor | float, alpha: float = 1) -> None:
    """Work to be recorded."""
    total.add_(more, alpha=alpha)


def test_what_the_round_changes_is_recorded_anew_and_what_comes_once_then_runs_plainly() -> None:
    """Recordings share memory, of which one must be left when the next is made."""
    device = torch.device("cuda")
    recorder = Recorder(device)
    pool, total = Pool(device), torch.zeros(3, device=device)
    often, once = Repeated(recorder, 2, pool), Repeated(recorder, 1, pool)
    for number in range(1, 5):
        often.forget()
        once.forget()
        add = partial(_add, total, torch.ones_like(total), alpha=number)
        once(add)
        often(add)
        often(add)
        assert once.graph is None
    assert often.graph is not None
    assert total.tolist() == [30.0] * 3


def test_the_collector_destroys_no_recording_while_another_is_made() -> None:
    device = torch.device("cuda")
    recorder, total = Recorder(device), torch.zeros(3, device=device)
    recorder.warm = True

    def cyclic() -> None:
        """A recording that only the collector can let go."""
        one: Any = Repeated(recorder, 2, Pool(device))
        one(partial(total.add_, 1))
        one.own = one

    def busy() -> None:
        garbage: list[list[object]] = [[] for _ in range(20_000)]  # far more than the collector's first threshold
        total.add_(len(garbage) / 20_000)

    for _ in range(3):
        cyclic()
        again = Repeated(recorder, 2, Pool(device))
        again(busy)
        again(busy)
    assert total.tolist() == [9.0] * 3


def _recorded_on(count: int, recorder: Recorder) -> list[Repeated]:
    """Work that is recorded on so many queues, and replayed once."""
    recorded = [Repeated(recorder, 2, Pool(recorder.device)) for _ in range(count)]
    numbers = [torch.zeros((), device=recorder.device) for _ in recorded]
    for place, (one, number) in enumerate(zip(recorded, numbers, strict=True)):
        with torch.cuda.stream(queue(recorder.device, place)):
            one(partial(_add, number, 1))
    return recorded


def test_recordings_on_several_queues_leave_memory_alone_that_work_has_yet_to_read() -> None:
    """PyTorch takes memory for random numbers with its first recording, and all others write there, unasked."""
    recorder = Recorder(torch.device("cuda"))
    recorder.warm = True
    _recorded_on(2, recorder)  # what is loaded when it is first used would be waited for
    torch.cuda.synchronize()
    with torch.cuda.stream(queue(recorder.device, 0)):
        given_back = [torch.full((2,), 5.0, device=recorder.device) for _ in range(100)]
        torch.stack(given_back)
        # About a second, in which they have yet to be read.
        torch.cuda._sleep(2_000_000_000)  # type: ignore[no-untyped-call]
        found = torch.stack(given_back)
        del given_back
    recorded = _recorded_on(2, recorder)
    torch.cuda.synchronize()
    assert all(one.graph is not None for one in recorded)
    assert bool((found == 5.0).all())


@pytest.mark.parametrize(("rows", "width"), [(1, 16), (255, 16), (256, 16), (700, 16), (33, 128), (100, 20), (9, 1)])
def test_weighted_sums_of_rows_and_their_slopes_on_cuda(rows: int, width: int) -> None:
    """By the kernel, for a stack of clients; rows that fill a program's share, and rows that do not."""
    table = torch.randn(3, rows, width, dtype=torch.float64, device="cuda")
    weights = torch.randn(3, rows, dtype=torch.float64, device="cuda")
    slopes = torch.randn(width, dtype=torch.float64, device="cuda")

    def one(table: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        return weighted_row_sums(table, weights) @ slopes

    sums = torch.vmap(weighted_row_sums)(table, weights)
    torch.testing.assert_close(sums, (table * weights[..., None]).sum(1), rtol=1e-12, atol=1e-12)
    of_table, of_weights = torch.vmap(torch.func.grad(one, argnums=(0, 1)))(table, weights)
    torch.testing.assert_close(of_table, weights[..., None] * slopes, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(of_weights, table @ slopes, rtol=1e-12, atol=1e-12)


def test_a_run_gives_its_memory_back_before_the_next_begins(tmp_path: Path) -> None:
    """Several processes share a GPU; what lies idle in one of them is lacking in the others."""
    experiment = Experiment("pfedclr", rounds=1, device="cuda")
    lay_idle: list[int] = []

    def note_idle(*_: object) -> None:
        lay_idle.append(torch.cuda.memory_reserved() - torch.cuda.memory_allocated())

    run_each([(experiment, tmp_path / "one")], jobs=1, memory="4GB", data_dir=None, on_round=note_idle)
    note_idle()
    during, afterwards = lay_idle
    assert afterwards < during / 2
