"""What is published of a model that was made under a budget: nothing but what the budget covers.

A seed, the exact number of interactions, a hash of the data, figures on held-out interactions and how far a page agrees
with its run are all made of exact data, and no epsilon holds for them. They stay in the run's folder.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ownview.base.errors import SettingError
from ownview.data.interactions import Interactions
from ownview.privacy.budget import Budget, budget
from ownview.round.federation import Federation
from ownview.runs.charging import charge_publication
from ownview.runs.run import Run

_NOT_COVERED = "figures on held-out interactions are not covered by the budget, and stay in the run's folder"
_AGREEMENT = "how far it recommends what the run's model does is measured on people's histories, and stays with the run"
_KEPT_NOTES = ("private:",)


def budget_of(run: Run) -> Budget | None:
    """That a run was made under."""
    return budget(run.experiment.federation.privacy)


def require_publishable(run: Run) -> None:
    """Refuse a private model whose noise is known, or of which something was chosen by what no budget covers."""
    asked, where = budget_of(run), run.folder.path
    if asked is None:
        return
    if asked.seeded:
        raise SettingError(
            f"{where}: not private: noise from a seed, which knowledge of the seed takes off; expected a model "
            "without noise=seeded"
        )
    if run.measured and run.experiment.protocol.selection != "last" and run.result["rounds"] > 1:
        raise SettingError(
            f"{where}: its round was chosen by held-out interactions, which epsilon {asked.epsilon:g} does not cover; "
            f"expected a model that looked at nothing: ownview fit {run.experiment.method} --privacy ..."
        )
    if run.experiment.like:
        raise SettingError(
            f"{where}: its settings and rounds come from a run that was measured on people's interactions, which "
            f"epsilon {asked.epsilon:g} does not cover; expected them by name: ownview fit {run.experiment.method} "
            "--privacy ..."
        )


def charge(run: Run, federation: Federation | None, data: Interactions) -> None:
    """Write a model under a budget into the ledger of releases, before anything of it is published."""
    charge_publication(run.experiment, federation, run.folder, data)


def covered(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Facts about a model under a budget, without those that the budget does not cover."""
    data = {name: value for name, value in facts["data"].items() if name not in ("interactions", "fingerprint")}
    notes = [note for note in facts["notes"] if note.startswith(_KEPT_NOTES)]
    kept = {name: value for name, value in facts.items() if name != "seed"}
    return kept | {"data": data, "notes": notes, "figures": _NOT_COVERED}


def agreement_covered() -> dict[str, Any]:
    """What is said of the agreement with the run's own model."""
    return {"sentence": _AGREEMENT}
