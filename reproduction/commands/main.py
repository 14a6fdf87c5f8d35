"""The program `python -m reproduction`: published tables, run again, and the pages that show what came of it."""

from __future__ import annotations

from ownview.cli.program import Command, Program

COMMANDS = {
    "run": Command("reproduce", "Run what a published table needs and put its figures beside those reached here."),
    "results": Command(
        "render_results", "Put recorded results into a page of their own, and between the markers of other files."
    ),
    "render": Command("render_ledger", "Put the ledger and the attacks on uploads into their pages and pictures."),
    "board": Command("sign_board", "Carry out the results that the board begins with, sign them, and make its page."),
    "report": Command(
        "report_with_papers", "Make the page of `ownview report` with published figures beside the runs."
    ),
}

_PROGRAM = Program(
    "reproduction",
    "Published tables of federated recommendation, run again: from a clone of the repository.",
    "reproduction.commands",
    COMMANDS,
    called="python -m reproduction",
)


def entry() -> None:
    """Run the command line."""
    _PROGRAM.run()
