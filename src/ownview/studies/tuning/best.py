"""The best trial, and its settings as a file that says where they come from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ownview.base.errors import TrainingError
from ownview.runs.experiment import Experiment
from ownview.studies.tuning.record import COMPLETE, FAILED, PRUNED, Trial


def ranked(trials: Sequence[Trial]) -> list[Trial]:
    """The best first: whole trials by value, then pruned ones, then failed ones; equals in the order they came."""
    order = {COMPLETE: 0, PRUNED: 1, FAILED: 2}
    return sorted(trials, key=lambda trial: (order[trial.state], -(trial.value or 0.0), trial.number))


def best_of(trials: Sequence[Trial]) -> Trial:
    """The whole trial with the highest value, the earliest among equals.

    A pruned trial does not count: its rounds were cut short, so a run with its settings is another one.
    """
    first = ranked(trials)[0]
    if first.state != COMPLETE:
        reasons = dict.fromkeys(trial.reason for trial in trials if trial.reason)
        raise TrainingError(f"none of {len(trials)} trials came to an end: {'; '.join(reasons)}")
    return first


def best_toml(
    experiment: Experiment, best: Trial, trials: Sequence[Trial], metric: str, about: Mapping[str, Any]
) -> str:
    """An experiment for `ownview run --config`, with comments on where it comes from."""
    pruned = sum(trial.state == PRUNED for trial in trials)
    failed = sum(trial.state == FAILED for trial in trials)
    lines = [
        f"Found by ownview tune: trial {best.number} of {len(trials)} ({pruned} pruned, {failed} failed).",
        f"Validation {metric} {best.value:.6f} at round {best.round} of {experiment.rounds_needed}, "
        f"protocol {experiment.protocol.name}, seed {experiment.seed}.",
        f"Data {about['data']['name']}: {about['data']['users']} users, {about['data']['items']} items, "
        f"{about['data']['interactions']} interactions, fingerprint {about['data']['fingerprint']}.",
        f"Searched: {', '.join(best.settings)}.",
        f"Ownview {about['ownview']}, revision {about['revision'] or 'unknown'}, "
        f"torch {about['packages']['torch']}, on {about['machine']['device']}.",
        "Test was not looked at.",
    ]
    return "".join(f"# {line}\n" for line in lines) + "\n" + experiment.to_toml()
