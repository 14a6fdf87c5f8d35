"""What a table calls its rows: the method, and whatever tells it from others of the same method."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ownview.runs.experiment import Experiment


def row_labels(experiments: Sequence[Experiment]) -> list[str]:
    """What tables call each: the method, and the settings that tell it from others of the same method."""
    by_label: dict[str, list[Experiment]] = {}
    for one in experiments:
        by_label.setdefault(one.label(), []).append(one)
    found = []
    for one in experiments:
        alike = [_decided(other) for other in by_label[one.label()]]
        differs = [name for name, value in _decided(one).items() if any(other.get(name) != value for other in alike)]
        settings = ", ".join(f"{name}={_short(_decided(one)[name], alike, name)}" for name in differs)
        found.append(f"{one.label()} ({settings})" if settings else one.label())
    return found


def _decided(experiment: Experiment) -> dict[str, Any]:
    return {**experiment.settings, **experiment.federation.values(), "rounds": experiment.rounds}


def _short(value: Any, alike: list[dict[str, Any]], name: str) -> str:
    """A number in four digits, where these tell it from the others."""
    if not isinstance(value, float):
        return str(value)
    others = {other.get(name) for other in alike} - {value}
    short = f"{value:.4g}"
    return repr(value) if any(isinstance(one, float) and f"{one:.4g}" == short for one in others) else short
