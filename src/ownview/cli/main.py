"""The command line: one word a task, errors on one line."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from ownview.base.errors import OwnviewError
from ownview.base.version import __version__
from ownview.cli import (
    audit,
    bench,
    compare,
    data,
    doctor,
    listing,
    recommend,
    render,
    report,
    reproduce,
    run,
    tune,
    watch,
)

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    help="Personalised federated recommendation: one user is one client, measured honestly.",
)
app.command("run")(run.command)
app.command("watch")(watch.command)
app.command("compare")(compare.command)
app.command("tune")(tune.command)
app.command("reproduce")(reproduce.command)
app.command("bench")(bench.command)
app.command("render-results")(render.command)
app.command("audit")(audit.command)
app.command("report")(report.command)
app.command("recommend")(recommend.command)
app.command("ls")(listing.command)
app.command("doctor")(doctor.command)
app.add_typer(data.app, name="data")


def _version(asked: bool) -> None:
    if asked:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


def entry() -> None:
    """Run the command line; errors a user can act on are one line on stderr and the error's exit code."""
    try:
        app(prog_name="ownview")
    except OwnviewError as error:
        message = " ".join(line.strip() for line in str(error).splitlines())
        sys.stderr.write(f"ownview: {message}\n")
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.stderr.write("ownview: stopped\n")
        sys.exit(130)
