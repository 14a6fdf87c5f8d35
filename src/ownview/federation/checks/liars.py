"""What is said of clients that lie, before a federation begins: where nothing bounds what one of them can do."""

from __future__ import annotations

from ownview.federation.terms import Terms
from ownview.seam.client import Reporting

_SEE = "see docs/dishonest.md"


def warning(terms: Terms) -> str:
    """One sentence where one lying client can move everybody's lists; empty where the server bounds what it counts."""
    work = terms.client.work
    if terms.masked is not None:
        return f"a client that lies spoils masked sums, and the server cannot see which: {_SEE}"
    if terms.transform is not None or terms.options.robust != "none":
        return ""
    if isinstance(work, Reporting):
        structured = all(one.honest.structure is not None for one in work.sends.values())
        if work.together is not None or structured:
            return ""
    elif not (terms.averaged or terms.mixed):
        return ""
    return (
        "one client that lies can move everybody's lists: nothing bounds its upload; --set robust=clipped:2 counts "
        f"none beyond twice the median norm ({_SEE})"
    )
