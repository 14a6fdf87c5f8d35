"""Which attack of the literature is meant by which means."""

from __future__ import annotations

from ownview.attacks.dishonest.crew import (
    FEDRECATTACK,
    PIECK_IPE,
    PIECK_UEA,
    PIPATTACK,
    SPATTACK_LD,
    SPATTACK_LS,
    SPATTACK_OD,
    SPATTACK_OS,
    Crew,
)
from ownview.attacks.dishonest.published.fedrecattack import FedRecAttack
from ownview.attacks.dishonest.published.pieck import Pieck
from ownview.attacks.dishonest.published.pipattack import PipAttack
from ownview.attacks.dishonest.published.spattack import Limited, Omniscient
from ownview.attacks.dishonest.published.table_attack import TableAttack

PUBLISHED: dict[str, type[TableAttack]] = {
    PIECK_IPE: Pieck,
    PIECK_UEA: Pieck,
    FEDRECATTACK: FedRecAttack,
    PIPATTACK: PipAttack,
    SPATTACK_OD: Omniscient,
    SPATTACK_OS: Omniscient,
    SPATTACK_LD: Limited,
    SPATTACK_LS: Limited,
}


def published_attack(crew: Crew) -> TableAttack | None:
    """The attack that is a crew's means; None for means that are not of the literature."""
    made = PUBLISHED.get(crew.means)
    return None if made is None else made(crew)
