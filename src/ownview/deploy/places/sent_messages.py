"""What a place has sent so far: every message, its bytes, and what it cost its users of their budget."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ownview.deploy.places.home import Home
from ownview.deploy.places.releases import Releases


class SentMessages(NamedTuple):
    """Messages that have left a place.

    messages: by time: when, kind, round, bytes, how many users' uploads, and what they are of
    budget:   epsilon and delta that were agreed on; None where nothing is accounted for
    spent:    by user, epsilon so far; empty where nothing is accounted for
    """

    messages: Sequence[dict[str, Any]]
    budget: tuple[float, float] | None
    spent: dict[str, float]

    @property
    def number(self) -> int:
        """All messages, also those that are added up in one line."""
        return sum(int(one.get("messages", 1)) for one in self.messages)

    @property
    def total(self) -> int:
        """Bytes of all messages."""
        return sum(int(one["bytes"]) for one in self.messages)


def sent_messages(folder: Path) -> SentMessages:
    """By the folder of a place; a resident may be at work on it."""
    home = Home(folder)
    agreement = home.agreement()
    plan = None if agreement is None else agreement.terms().world.protection
    if agreement is None or plan is None:
        return SentMessages(home.sent(), None, {})
    releases = Releases(home, agreement, agreement.terms())
    spent = {user: releases.epsilon(user) or 0.0 for user in home.members().users}
    return SentMessages(home.sent(), (plan.epsilon, plan.delta), spent)
