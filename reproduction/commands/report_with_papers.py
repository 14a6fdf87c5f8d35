"""`python -m reproduction report`: the library's report with published figures beside the runs."""

from __future__ import annotations

from pathlib import Path

from ownview.cli.experiments.report import Force, Out, Runs, Title, write_report
from ownview.reports.gather import Publications
from reproduction.against_papers import against_papers
from reproduction.papers import CITATIONS


def command(runs: Runs, out: Out = Path("report.html"), title: Title = "", force: Force = False) -> None:
    """Make the page of `ownview report` with published figures beside the runs."""
    write_report(runs, out, title, force, Publications(against_papers, CITATIONS))
