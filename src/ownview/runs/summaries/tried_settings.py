"""How many settings were tried before an experiment's were taken: the more, the better the best of them looks.

A preset says its number, and so does the experiment file that `ownview tune` writes. Defaults count as one, but for
data on which a search ended with them: its preset says how many were tried. For settings typed by hand the number is
unknown, unless the experiment states it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ownview.base.errors import OwnviewError
from ownview.config.presets.loading import presets_of
from ownview.federation.options import FederationOptions
from ownview.registry import build
from ownview.runs.experiment import Experiment, describe_model

NOT_RECORDED = "settings tried: not recorded"
"""Label of rows without a recorded number of tried settings."""


@dataclass(frozen=True)
class Tried:
    """Settings that were tried.

    Args:
        settings: how many, those that were taken included.
        data: on whose validation.
    """

    settings: int
    data: str


def tried(experiment: Experiment) -> Tried | None:
    """What the experiment says, or its being made of a preset or of defaults tells; None where nothing does."""
    data = experiment.data_label()
    if experiment.settings_tried:
        return Tried(experiment.settings_tried, experiment.tried_on or data)
    try:
        mine = describe_model(experiment.model())
        bare = build(experiment.method, {}, [(name, {}) for name, _ in experiment.plugins])
        is_default = (mine, experiment.federation) == (describe_model(bare), FederationOptions())
        for one in presets_of(experiment.method, data):
            found = describe_model(build(one.method, one.settings)), FederationOptions.of(one.federation)
            if (mine, experiment.federation) == found and (one.data == data or not is_default):
                return Tried(one.tried, one.tried_on or data)
        if is_default:
            return Tried(1, data)
    except OwnviewError:  # a method made in Python, or settings of another version
        pass
    return None


def tried_of(result: Mapping[str, Any], experiment: Experiment) -> Tried | None:
    """What a result says; one of earlier versions says nothing, and its experiment is asked.

    A method in a file of its own is not loaded for that: it need not be there any more.
    """
    if "settings_tried" in result:
        number = result["settings_tried"]
        return None if number is None else Tried(int(number), str(result["tried_on"]))
    return None if experiment.method.endswith(".py") else tried(experiment)


def as_result(found: Tried | None) -> dict[str, Any]:
    """As result.json has it: the number and the data, null where they are not known."""
    return {
        "settings_tried": None if found is None else found.settings,
        "tried_on": None if found is None else found.data,
    }


def tried_sentence(rows: Mapping[str, Tried | None], data: str) -> str:
    """In one sentence, for a table of rows on some data."""
    tuned = [
        f"{one.settings} for {label}" + (f" (on {one.data})" if one.data != data else "")
        for label, one in rows.items()
        if one is not None and one.settings > 1
    ]
    unknown = [label for label, one in rows.items() if one is None]
    parts = tuned + ([f"not recorded for {', '.join(unknown)}"] if unknown else [])
    if len(tuned) + len(unknown) < len(rows):
        parts.append("1 for all others" if parts else "1 for every row")
    return f"settings tried on validation: {'; '.join(parts)}"
