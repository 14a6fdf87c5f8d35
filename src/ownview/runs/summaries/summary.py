"""A result in a line, and as a small table for notebooks."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

from ownview.base.display.amounts import counted
from ownview.base.display.shown import one_line
from ownview.evaluation.metrics import HEADLINE

SIMULATED = "simulated: all rows lay in one file, and no device sent anything"
"""What is said of a federated model that a run made: only a deployment has devices."""


def in_words(result: Mapping[str, Any]) -> str:
    """What was trained on what, and the figures under their protocol and seed, or that there are none."""
    about = f"{result['method']} on {result['data']}"
    if "no_test_figure" in result:
        return one_line(
            f"{about}, seed {result['seed']}, {counted(result['rounds'], 'round')}: {result['no_test_figure']}"
        )
    figures = ", ".join(f"{name} {result['test'][name]:.4f}" for name in HEADLINE)
    return one_line(f"{about}, protocol {result['protocol']}, seed {result['seed']}: {figures}")


def origin(result: Mapping[str, Any]) -> str:
    """Where the settings of a model come from that was trained on everything; empty if not recorded."""
    like = result.get("settings_from")
    if like is None:
        return ""
    words = f"settings and rounds as in {like['run']}"
    if like.get("test"):
        words += (
            f", where round {like['chosen_round']} was chosen on {like['chosen_on']} and test HR@10 was "
            f"{like['test']['HR@10']:.4f} (protocol {like['protocol']})"
        )
    return words


def as_html(result: Mapping[str, Any], folder: str) -> str:
    """The line, all figures and the folder."""
    figures = result.get("test", {})
    names = "".join(f"<th>{escape(name)}</th>" for name in figures)
    values = "".join(f"<td>{value:.4f}</td>" for value in figures.values())
    table = f"<table><tr>{names}</tr><tr>{values}</tr></table>" if figures else ""
    more = f"<div>{escape(one_line(origin(result)))}</div>" if origin(result) else ""
    return f"<div>{escape(in_words(result))}</div>{table}{more}<div><code>{escape(one_line(folder))}</code></div>"
