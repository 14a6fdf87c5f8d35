"""What a start asks of the data: everybody's latest item, or what people take next time where that is in one basket."""

from __future__ import annotations

from dataclasses import dataclass

from ownview.base.errors import DataError
from ownview.data.interactions import Interactions
from ownview.data.splitting.splits import Split
from ownview.evaluation.last_splits import split_of
from ownview.evaluation.named_protocols import HONEST, NEXT_SITTING
from ownview.evaluation.protocol import Protocol
from ownview.evaluation.time_probes import sitting_probe

SAME_BASKET = 0.5
"""Share of held-out items that came at the very same time as the last known one, above which `honest` asks little more
than what else lies in a basket."""

FEWEST = 30
"""People who must be asked, so that their answers say anything about others."""


@dataclass(frozen=True)
class Question:
    """What is held out, and why that.

    Args:
        protocol: that asks it.
        split: of the data.
        why: in a sentence, where it is not the usual question, or the usual one is doubtful; else empty.
        same_basket: share of everybody's latest items that came at the very same time as the one before; None where
            there are no times.
    """

    protocol: Protocol
    split: Split
    why: str = ""
    same_basket: float | None = None


def choose_question(data: Interactions, wanted: Protocol | None = None) -> Question:
    """`honest`, unless most of its answers lie in the basket that is known already, and enough people came back.

    Args:
        data: of the file.
        wanted: asked for by the user; overrides what the data suggests.

    Raises:
        DataError: no user can be asked.
    """
    if wanted is not None:
        return Question(wanted, split_of(wanted, data))
    honest = split_of(HONEST, data)
    if honest.order != "times" or not data.clock:
        return Question(HONEST, honest)
    same = float(sitting_probe(honest).values["same_time"])
    if same <= SAME_BASKET:
        return Question(HONEST, honest, same_basket=same)
    fact = f"{same:.0%} of everybody's latest items came at the very same time as the one before, in the same basket"
    try:
        later = split_of(NEXT_SITTING, data)
    except DataError:
        later = None
    if later is None or min(len(later.validation.users), len(later.test.users)) < FEWEST:
        why = f"{fact}, and too few people came back to ask what they took then: figures tell what goes into a basket"
        return Question(HONEST, honest, why, same)
    why = f"{fact}; so people who came back after a day or more are asked what they took then (next-sitting)"
    return Question(NEXT_SITTING, later, why, same)
