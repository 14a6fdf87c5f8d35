"""The kinds of splits that a protocol may name, each from the protocol's settings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ownview.data.causal_splits import global_time, moment_at, next_sitting
from ownview.data.everything import everything
from ownview.data.interactions import Interactions
from ownview.data.newcomers import held_out_users
from ownview.data.sittings import DAY
from ownview.data.split_files import from_files
from ownview.data.splits import Split, leave_one_out

if TYPE_CHECKING:
    from ownview.evaluation.protocol import Protocol

EVERYTHING = "everything"
"""The split that holds nothing out; what trains on it cannot be measured."""


def _latest_item(protocol: Protocol, data: Interactions) -> Split:
    return leave_one_out(
        data, ties=protocol.split_ties, untimed=protocol.untimed, seed=protocol.split_seed,
        knows_validation=protocol.knows_validation, moment=protocol.moment, hides=protocol.hides,
    )  # fmt: skip


def _global_time(protocol: Protocol, data: Interactions) -> Split:
    first, second = (moment_at(data, share, protocol.name) for share in (protocol.validation_from, protocol.test_from))
    return global_time(
        data, first=first, second=second, ties=protocol.split_ties, seed=protocol.split_seed,
        knows_validation=protocol.knows_validation,
    )  # fmt: skip


def _next_sitting(protocol: Protocol, data: Interactions) -> Split:
    """The split at the later cut, with that at the earlier one to choose by, which sees nothing from its end on."""
    shares = protocol.validation_from, protocol.validation_until or protocol.test_from, protocol.test_from
    first, end, second = (moment_at(data, share, protocol.name) for share in shares)
    assert data.timestamp is not None
    cut = partial(
        next_sitting, pause=round(protocol.pause_days * DAY), fewest=protocol.fewest_before,
        relevant=protocol.relevant, ties=protocol.split_ties, seed=protocol.split_seed,
    )  # fmt: skip
    earlier = cut(data.select(data.timestamp < end), moment=first)
    validation = replace(earlier.test, earlier=True)
    return replace(cut(data, moment=second), validation=validation, earlier=replace(earlier, test=validation))


def _new_users(protocol: Protocol, data: Interactions) -> Split:
    return held_out_users(
        data, share=protocol.newcomers, fold=protocol.fold, ties=protocol.split_ties, untimed=protocol.untimed,
        seed=protocol.split_seed, knows_validation=protocol.knows_validation, moment=protocol.moment,
    )  # fmt: skip


def _files(protocol: Protocol, data: Interactions) -> Split:
    return from_files(Path(protocol.split_folder), data, ties=protocol.split_ties, seed=protocol.split_seed)


def _everything(protocol: Protocol, data: Interactions) -> Split:
    pause = round(protocol.pause_days * DAY) if protocol.moment == "later" else None
    return everything(
        data, ties=protocol.split_ties, untimed=protocol.untimed, seed=protocol.split_seed, pause=pause
    )  # fmt: skip


SPLITS: dict[str, Callable[[Protocol, Interactions], Split]] = {
    "leave-one-out": _latest_item,
    "global-time": _global_time,
    "next-sitting": _next_sitting,
    "new-users": _new_users,
    "files": _files,
    EVERYTHING: _everything,
}
"""By the value of the protocol setting `split`."""

CAUSAL = frozenset({"global-time", "next-sitting"})
"""Splits at a moment in time."""
