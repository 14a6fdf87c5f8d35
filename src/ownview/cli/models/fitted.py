"""A model that was trained on everything, in a few lines for a person."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.markup import escape

from ownview.cli.display.terminal import Console
from ownview.runs.summaries.summary import in_words, origin


def show_fitted(result: Mapping[str, Any]) -> None:
    """Print what was made, that it has no figure, where its settings come from, and how to use it.

    Args:
        result: of a model without a test figure, and `folder`.
    """
    console = Console(highlight=False)
    console.print(f"[bold]{escape(in_words(result))}[/]", soft_wrap=True)
    for line in (origin(result), *(f"note: {note}" for note in result["notes"])):
        if line:
            console.print(f"  {line}", soft_wrap=True, markup=False)
    console.print(f"  {result['seconds']:.1f} s, everything in {result['folder']}", soft_wrap=True, markup=False)
    console.print(f"  use it: ownview recommend {result['folder']} --user ID", soft_wrap=True, markup=False)
