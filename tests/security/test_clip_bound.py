"""The server counts no upload that is longer than was agreed on, where it can see how long it is.

Before, a clip was the client's word: 1e6 sent under clip=0.1 was added to the sum, by a coordinator and by a server of
clients in processes of their own, and the noise that hid a norm of 0.1 hid nothing of the model's ruin.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import Tensor

from ownview import FedMF
from ownview.deploy.envelopes.envelope import Kind
from ownview.federation.options import FederationOptions
from ownview.messages import wire
from ownview.messages.upload import Upload
from ownview.privacy.protected import Protected
from ownview.privacy.transforms import Sending, Transform, transforms
from ownview.privacy.whole_steps import BOUND
from ownview.round.alone import ProcessFederation
from ownview.seam.client import Patch, Product, Sent
from ownview.seam.protection import CENTRAL, LOCAL, Protection
from ownview.testing.worlds import federation, small_world
from tests.security.hostile import EVIL, Change, after_rounds, with_parts

CLIP = 0.1


def _times(factor: float) -> Change:
    """All tables of every upload of a place times a factor."""

    def longer(part: bytes) -> bytes:
        message = wire.Message.unpack(part)
        return replace(message, tables={name: _longer(one, factor) for name, one in message.tables.items()}).pack()

    return lambda answer, of: with_parts(answer, [longer(part) if part else part for part in answer.parts])


def _longer(table: wire.Table, factor: float) -> wire.Table:
    if isinstance(table, Tensor):
        return wire.Whole(table * factor)
    assert isinstance(table, wire.Whole | wire.Rows)
    return replace(table, values=table.values * factor)


@pytest.mark.parametrize(
    ("privacy", "factor"),
    [
        (f"central:epsilon=8,clip={CLIP}", 1e6), (f"central:epsilon=8,clip={CLIP}", 1.001),
        (f"local:epsilon=8,clip={CLIP}", 100), (f"gaussian:clip={CLIP},noise=1", 100), ("central:epsilon=8", 1e3),
    ],
)  # fmt: skip
def test_a_coordinator_counts_nothing_above_the_clip(privacy: str, factor: float, tmp_path: Path) -> None:
    options = FederationOptions(privacy=privacy)
    if not privacy.startswith("gaussian"):
        options = options.for_rounds(2)
    evil = {EVIL: (Kind.WORK, _times(factor))}
    coordinator, said = after_rounds(tmp_path, evil, room=6, options=options)
    assert coordinator.done == 2
    assert set(coordinator.standing.counted) == {"east", "north"}
    assert any(
        f"place {EVIL}: answered wrongly: client " in line and "times as long as privacy=" in line for line in said
    ), said
    assert float(coordinator.server.shared["items"].abs().max()) < 1e3


@pytest.mark.parametrize("privacy", ["central:epsilon=8", "local:epsilon=8", f"central:epsilon=8,clip={CLIP}"])
def test_a_coordinator_counts_everybody_who_is_honest(privacy: str, tmp_path: Path) -> None:
    options = FederationOptions(privacy=privacy).for_rounds(2)
    coordinator, said = after_rounds(tmp_path, {EVIL: (Kind.WORK, _times(1))}, room=6, options=options)
    assert set(coordinator.standing.counted) == {"east", "north", EVIL}
    assert said == []


def test_a_server_of_clients_in_processes_refuses_the_client_and_goes_on(tmp_path: Path) -> None:
    options = FederationOptions(privacy=f"central:epsilon=8,clip={CLIP}").for_rounds(1)
    split = small_world(num_users=6)
    one = federation(FedMF(embedding_size=2), split, options=options)
    agreed = (one.method, one.world, one.options, one.seed, one.machine)
    with ProcessFederation(agreed, split, split.training_items(), tmp_path, together=True) as apart:
        device = apart.processes[4].device  # type: ignore[union-attr]
        honest = device.alone.terms.sent

        def lying(upload: Upload, *given: object, **more: object) -> Upload:
            return honest(upload, *given, **more).scaled(torch.tensor([1e7]))  # type: ignore[arg-type]

        object.__setattr__(device.alone.terms, "sent", lying)
        left_out = apart.round(1).left_out
    assert list(left_out) == [4]
    assert left_out[4].startswith("client 4: an upload that is ")
    moved = apart.server.shared["items"] - apart.terms.drawn("items")
    assert float(moved.abs().max()) < 10 * CLIP * 8


# --- no honest client is ever refused ---


def _upload(scale: float, seed: int, dtype: torch.dtype) -> Upload:
    """Of three clients, with everything that an upload may hold; "c" is symmetric."""
    random = torch.Generator().manual_seed(seed)

    def drawn(*shape: int) -> Tensor:
        return (scale * torch.randn(3, *shape, generator=random, dtype=torch.float64)).to(dtype)

    items = torch.stack([torch.randperm(9, generator=random)[:4] for _ in range(3)])
    touched = torch.tensor([[True] * 4, [True, True, False, False], [False] * 4])
    half, left = drawn(4, 4), drawn(2, 4)
    # Of "p" the parts are a thousand times as long as their product: rounding them moves it.
    right = torch.stack([left[:, 1], -left[:, 0]], dim=1) + drawn(2, 4) / 1e3
    sums: dict[str, Sent] = {"p": Product(left, right), "c": Patch(items, items, half + half.mT)}
    shapes = {"p": (4, 4), "c": (9, 9)}
    samples = torch.randint(1, 1000, (3,), generator=random)
    return Upload(torch.arange(3), samples, items, touched, {"rows": drawn(4, 2)}, {"whole": drawn(500)}, sums, shapes)


def _transforms() -> list[Transform]:
    plan = Protection(CENTRAL, 8.0, 1e-5, CLIP, False, (0.7,), 3.0, "", "")
    budgets = [
        Protected(replace(plan, mode=m, adaptive=a), frozenset("c")) for m in (CENTRAL, LOCAL) for a in (True, False)
    ]
    noisy = transforms(f"gaussian:clip={CLIP},noise=0.5")
    assert noisy is not None
    return [*budgets, noisy]


@settings(max_examples=40, deadline=None)
@given(
    scale=st.floats(1e-9, 1e9), seed=st.integers(0, 2**31), dtype=st.sampled_from([torch.float32, torch.float64]),
    which=st.integers(0, 4),
)  # fmt: skip
@example(scale=1.0, seed=0, dtype=torch.float32, which=1)
def test_no_honest_client_is_refused(scale: float, seed: int, dtype: torch.dtype, which: int) -> None:
    transform, upload = _transforms()[which], _upload(scale, seed, dtype)
    weights = upload.samples if which == 4 else torch.ones(3)
    sending = Sending(seed, weights, 9, 1, torch.tensor(CLIP, dtype=dtype) if which in (0, 2) else None)
    sent = transform.on_client(upload, sending)
    assert float(transform.excess(sent, sending).max()) <= 1
    # What is said of C is a number of its own, which no scale is on the way to.
    alone = replace(sent, whole={name: value for name, value in sent.whole.items() if name != BOUND})
    longer = replace(alone.scaled(torch.full((3,), 1e5)), whole={**alone.scaled(torch.full((3,), 1e5)).whole})
    if scale > 1:
        assert bool((transform.excess(longer, sending)[:2] > 1).all())


def test_what_is_no_number_is_refused_and_what_says_too_much_of_the_clip() -> None:
    adaptive = _transforms()[0]
    sending = Sending(1, torch.ones(3), 9, 1, torch.tensor(CLIP))
    sent = adaptive.on_client(_upload(1.0, 0, torch.float64), sending)
    for said in (torch.tensor([100.0, -0.6, 0.5]), torch.tensor([float("nan"), float("inf"), -0.5])):
        found = adaptive.excess(replace(sent, whole={**sent.whole, BOUND: said}), sending)
        assert [not one <= 1 for one in found.tolist()] == [True, True, False]
    spoilt = sent.scaled(torch.tensor([float("inf"), float("nan"), 1.0], dtype=torch.float64))
    assert [not one <= 1 for one in adaptive.excess(spoilt, sending).tolist()] == [True, True, False]


def test_under_masks_nothing_can_be_seen() -> None:
    """Said on the page of masks: an upload is random numbers, whatever is under them."""
    terms = federation(FedMF(), small_world(), options=FederationOptions(privacy="masked:clip=0.1")).terms
    nothing = torch.zeros(1, 0, dtype=torch.long)
    words = torch.full((1, terms.codec.words), 2**31)
    masked = Upload(torch.tensor([3]), torch.zeros(1), nothing, nothing.bool(), words=words)
    assert not terms.refusals(masked, number=1, opened={})
