"""An agreement under a budget in the ledger of releases: what people spend under several agreements adds up.

Servers of shares know no names: a contribution has a random one. So an agreement is charged to all who may contribute,
as one person: under another agreement about some of the same items the same people may be at work. The agreement's
epsilon is of sending and taking back together, and is charged once, before its server starts.
"""

from __future__ import annotations

from pathlib import Path

from ownview.base.errors import SettingError
from ownview.one_message.terms import Terms
from ownview.privacy.accountant import Sampling
from ownview.releases.entries import Mechanism
from ownview.releases.people import OWN
from ownview.releases.release_ledger import Asked, Ledger

ALL_CONTRIBUTORS = "who contributes from a browser"


def charge_agreement(terms: Terms, file: Path, folder: Path, total: float | None = None) -> None:
    """Write an agreement down; one that stands there already costs nothing, and one without a budget is not written.

    Args:
        terms: of the agreement.
        file: it is in.
        folder: of a server of shares.
        total: for all who contribute to these items, from now on.

    Raises:
        SettingError: the total would be exceeded, or is given and there is no budget.
    """
    budget = terms.budget
    if budget is None:
        if total is not None:
            raise SettingError(f"--total {total:g}: {file} has no budget; expected one of sums agree --epsilon")
        return
    noise = (budget.noise,) * budget.releases
    mechanism = Mechanism("two servers", budget.epsilon, budget.delta, noise, Sampling())
    name, place = str(file.resolve()), str(folder.resolve())
    asked = Asked(
        terms.name.hex(), name, OWN, f"{terms.method} of browsers", place, mechanism, terms.items, is_file=False
    )
    Ledger().charge(asked, [ALL_CONTRIBUTORS], total)
