"""The command line: one word a task, errors on one line.

A command's module is imported when it is called: what `--help` and `--version` need is there in a moment.
"""

from __future__ import annotations

import importlib
import os
import re
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from types import FrameType
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperGroup

from ownview.base.expected import Ending, TerminatedError, ending
from ownview.base.shown import one_line
from ownview.base.trust import afresh
from ownview.base.version import __version__
from ownview.cli.terminal import flush, give_up_output, settle_streams
from ownview.cli.trusting import asking
from ownview.runs.parents import begin_loading


class Command(NamedTuple):
    """A word of the command line: the module of `ownview.cli` behind it, and the first sentence of its help."""

    module: str
    sentence: str


COMMANDS = {
    "start": Command(
        "start",
        "Go from a file of interactions to recommendations: look at it, compare, fit the best, write lists and pages.",
    ),
    "run": Command("run", "Train a method and measure it; everything goes into a run folder."),
    "watch": Command("watch", "Follow runs: validation and loss round by round, until all have finished or stopped."),
    "compare": Command("compare", "Train several methods on the same data and put them side by side."),
    "blend": Command(
        "blend",
        "Blend finished runs at home: standardised scores added up, weights by validation wins summed over clients.",
    ),
    "tune": Command(
        "tune",
        "Find a method's best settings on validation; test is not looked at. The same command goes on where it "
        "stopped.",
    ),
    "reproduce": Command(
        "reproduce", "Run what a published table needs and put its figures beside those reached here."
    ),
    "bench": Command(
        "bench", "Run a suite of methods, datasets, protocols and seeds, and put everything into one table."
    ),
    "render-results": Command(
        "render", "Put recorded results into a page of their own, and between the markers of other files."
    ),
    "audit": Command(
        "audit",
        "Probe a protocol on some data: leaks, repeated pairs, time, selection, and whether its ranking is sane.",
    ),
    "attack": Command(
        "attack",
        "Attack a method as its server could: read users' items from uploads and sums, and audit what noise promises.",
    ),
    "report": Command("report", "Make one self-contained HTML page of finished runs: tables, curves, lists, pictures."),
    "fit": Command("fit", "Train a method on everything, nothing held out: for recommending, without a test figure."),
    "recommend": Command(
        "recommend", "Recommend items to one user, to everybody, or to somebody new, with titles where there are any."
    ),
    "page": Command(
        "page",
        "Make one offline HTML page in which people pick titles and get recommendations, computed in the page itself.",
    ),
    "export": Command(
        "export",
        "Write a finished model into a folder for a device: arrays, titles, a scorer that needs numpy only, a card.",
    ),
    "deploy": Command(
        "deploy", "Federations of real devices, each with its own data: init, server, client, status, stop."
    ),
    "client": Command(
        "client", "The life of a device: run (train when asked), recommend (offline), sent (what has left)."
    ),
    "ls": Command("listing", "List methods, plug-ins, presets, datasets or runs."),
    "doctor": Command("doctor", "Show versions, devices, memory and the datasets found."),
    "data": Command("data", "Datasets: ls, describe, fetch, import."),
}
_STYLE: dict[str, Any] = {
    "add_completion": False, "pretty_exceptions_enable": False, "rich_markup_mode": "rich",
}  # fmt: skip

_ClickError: type[Exception] = typer.BadParameter.__bases__[0].__bases__[0]
"""click's own, which newer versions of typer bring along under another name."""


class _LoadedWhenCalled(TyperGroup):
    """Knows the names and sentences of all commands; the one that is called is imported."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command itself instead of the name that stands for it."""
        name, placeholder, rest = super().resolve_command(ctx, args)
        if side_by_side(rest):
            begin_loading()
        return name, None if placeholder is None or name is None else _loaded(name), rest


app = typer.Typer(
    cls=_LoadedWhenCalled,
    no_args_is_help=True,
    help="Personalised federated recommendation: one user is one client, measured honestly.",
    **{**_STYLE, "add_completion": True},
)


def side_by_side(args: Sequence[str]) -> bool:
    """Whether a command's words ask for several runs at once."""
    asked = [after for word, after in pairwise(args) if word == "--jobs"]
    asked += [word.removeprefix("--jobs=") for word in args if word.startswith("--jobs=")]
    return any(number.isdecimal() and int(number) > 1 for number in asked)


def _loaded(name: str) -> Any:
    module = importlib.import_module(f"ownview.cli.{COMMANDS[name].module}")
    group = getattr(module, "app", None)
    if group is None:
        group = typer.Typer(**_STYLE)
        group.command(name)(module.command)
    return typer.main.get_command(group)


def _stand_in() -> None:
    """For the list of commands; `_LoadedWhenCalled` never calls it."""


for _name, _command in COMMANDS.items():
    app.command(_name, help=_command.sentence)(_stand_in)


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
    """Run the command line; what is expected to go wrong is one line on stderr and an exit code."""
    settle_streams()
    code = 0
    try:
        with afresh(asking()), _terminable():
            code = _called()
            flush()
    except _ClickError as error:
        code = _misused(error)
    except typer.Abort:
        code = _told(Ending("stopped", 128 + signal.SIGINT))
    except BaseException as error:
        told = ending(error)
        if told is None:
            raise
        give_up_output()
        code = _told(told)
    sys.exit(code)


def _called() -> int:
    """Typer turns Ctrl-C into a code without a word; what to do then is said here."""
    code = app(prog_name="ownview", standalone_mode=False)
    if code == 128 + signal.SIGINT:
        raise KeyboardInterrupt
    return code if isinstance(code, int) else 0


def _told(how: Ending) -> int:
    if how.line:
        try:
            sys.stderr.write(f"ownview: {how.line}\n")
            sys.stderr.flush()
        except OSError:  # stderr is full or closed, too; the code has to do
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    return how.code


def _misused(error: Any) -> int:
    """An option or argument that does not exist or cannot be: how the command is used, and what is wrong."""
    context = getattr(error, "ctx", None)
    usage = "" if context is None else f"{context.get_usage()}\n"
    message = one_line(error.format_message())
    if not message:  # no arguments at all: the help has been asked for
        return _told(Ending("", error.exit_code))
    hint = "" if context is None else f" (see {context.command_path} --help)"
    sys.stderr.write(usage)
    # Of a command that does not exist some versions of the parser name the nearest one twice.
    message = re.sub(r"(Did you mean [^?]*\?) \1", r"\1", message)
    return _told(Ending(message + hint, error.exit_code))


@contextmanager
def _terminable() -> Iterator[None]:
    """SIGTERM ends a command as Ctrl-C does: files whole, one line. Training listens by itself while it lasts."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, _terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _terminate(_: int, __: FrameType | None) -> None:
    raise TerminatedError
