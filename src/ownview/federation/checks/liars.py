"""Clients that lie: what a server does about them by default, and what is said where nothing bounds what one can do."""

from __future__ import annotations

from ownview.federation.terms import Terms
from ownview.messages.robust import NONE
from ownview.seam.client import Reporting

BOUND = "bounded:4"
"""The rule for methods whose uploads have no structure to check; the factor was chosen on validation."""
_SEE = "see docs/dishonest.md"
TOGETHER = f"one in twenty that lie together can still move lists ({_SEE})"
"""What a bound on single clients leaves open."""


def defence(terms: Terms) -> str:
    """The setting `robust` that a deployment has unless it says otherwise: none where it helps nothing or cannot be.

    Also none where the server mixes tables that clients send whole: honest ones differ by more than any bound allows
    that stops a liar, and HR@10 falls by 9 to 79 % (docs/dishonest.md).
    """
    if terms.transform is not None or checked_whole(terms) or terms.mixed or not _leaves(terms):
        return NONE
    return BOUND


def checked_whole(terms: Terms) -> bool:
    """Whether an upload in clear is checked to be one that some history makes."""
    work = terms.client.work
    if not isinstance(work, Reporting):
        return False
    return work.together is not None or all(one.honest.structure is not None for one in work.sends.values())


def warning(terms: Terms) -> str:
    """One sentence on what lying clients can do; empty where the server counts histories alone, or under a budget."""
    if terms.masked is not None:
        spoilt = f"a client that lies spoils masked sums, and the server cannot see which; groups=G helps: {_SEE}"
        if terms.masked.groups > 1:
            spoilt = f"a client that lies spoils its group, which is left out; liars in half of them win: {_SEE}"
        trusted = "; a server that lies reads uploads in spite of masks: masks=signed refuses it"
        return spoilt if terms.masked.masks.signed else spoilt + trusted
    if terms.world.protection is not None or not _leaves(terms):
        return ""
    if terms.options.robust != NONE:
        return f"clients are bounded one by one: {TOGETHER}"
    if terms.transform is not None:
        return f"one client that lies can move everybody's lists: noise hides its upload and bounds nothing ({_SEE})"
    if checked_whole(terms):
        return ""
    return (
        f"one client that lies can move everybody's lists: nothing bounds its upload; --set robust={BOUND} bounds its "
        f"samples, its rows and its norm by four times what is usual ({_SEE})"
    )


def _leaves(terms: Terms) -> bool:
    """Whether anything leaves a client that the server combines."""
    return isinstance(terms.client.work, Reporting) or bool(terms.averaged or terms.mixed)
