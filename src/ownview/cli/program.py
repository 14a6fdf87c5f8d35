"""A program of the command line: one word a task, errors on one line.

A command's module is imported when it is called: what `--help` and `--version` need is there in a moment.
"""

from __future__ import annotations

import importlib
import inspect
import os
import re
import signal
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from types import FrameType
from typing import Annotated, Any, NamedTuple, get_type_hints

import typer
from typer.core import TyperGroup

from ownview.base.collection import without_collection
from ownview.base.display.shown import one_line
from ownview.base.errors import SettingError, nearest
from ownview.base.failures import Ending, TerminatedError, ending
from ownview.base.trust import afresh
from ownview.base.version import __version__
from ownview.cli.display.patience import loading
from ownview.cli.display.terminal import flush, give_up_output, settle_streams
from ownview.cli.trusting import asking
from ownview.runs.parents import begin_loading

_STYLE: dict[str, Any] = {
    "add_completion": False, "pretty_exceptions_enable": False, "rich_markup_mode": "rich",
}  # fmt: skip

_PANELS = {"models": "From a file to recommendations", "experiments": "Measure", "devices": "Devices of people"}
"""What `--help` calls the commands of a folder."""

_ClickError: type[Exception] = typer.BadParameter.__bases__[0].__bases__[0]
"""click's own, which newer versions of typer bring along under another name."""


class Command(NamedTuple):
    """A word of a program: the module behind it in the program's package, and the first sentence of its help."""

    module: str
    sentence: str


@dataclass(frozen=True)
class Program:
    """Commands under one name.

    Args:
        name: what its lines on stderr begin with.
        sentence: what it is, for `--help`.
        package: of the commands' modules.
        commands: by the word that calls them.
        moved: words of earlier versions, and the sentence each is answered with.
        called: how it is called, where that is not its name.
    """

    name: str
    sentence: str
    package: str
    commands: Mapping[str, Command]
    moved: Mapping[str, str] = field(default_factory=dict)
    called: str = ""

    def run(self) -> None:
        """Run what was typed; what is expected to go wrong is one line on stderr and an exit code."""
        settle_streams()
        code = 0
        try:
            with afresh(asking()), _terminable():
                code = self._called()
                flush()
        except _ClickError as error:
            code = self._misused(error)
        except typer.Abort:
            code = self._printed(Ending("stopped", 128 + signal.SIGINT))
        except BaseException as error:
            how = ending(error)
            if how is None:
                raise
            give_up_output()
            code = self._printed(how)
        sys.exit(code)

    def _called(self) -> int:
        """Typer turns Ctrl-C into a code without a word; what to do then is said here."""
        code = self._app()(prog_name=self.called or self.name, standalone_mode=False)
        if code == 128 + signal.SIGINT:
            raise KeyboardInterrupt
        return code if isinstance(code, int) else 0

    def _app(self) -> typer.Typer:
        app = typer.Typer(
            cls=_loading(self), no_args_is_help=True, help=self.sentence, **{**_STYLE, "add_completion": True}
        )
        for name, command in self.commands.items():
            panel = _PANELS.get(command.module.partition(".")[0], "Other commands")
            app.command(name, help=command.sentence, rich_help_panel=panel)(_stand_in)
        app.callback()(_main)
        return app

    def _printed(self, how: Ending) -> int:
        if how.line:
            try:
                sys.stderr.write(f"{self.name}: {how.line}\n")
                sys.stderr.flush()
            except OSError:  # stderr is full or closed, too; the code has to do
                os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        return how.code

    def _misused(self, error: Any) -> int:
        """An option or argument that does not exist or cannot be: how the command is used, and what is wrong."""
        context = getattr(error, "ctx", None)
        usage = "" if context is None else f"{context.get_usage()}\n"
        message = one_line(error.format_message())
        if not message:  # no arguments at all: the help has been asked for
            return self._printed(Ending("", error.exit_code))
        hint = "" if context is None else f" (see {context.command_path} --help)"
        sys.stderr.write(usage)
        # Of a command that does not exist some versions of the parser name the nearest one twice.
        message = re.sub(r"(Did you mean [^?]*\?) \1", r"\1", message)
        if wrong := re.search(r"'([^']*)' is not one of (.*)\.$", message):
            message = message.removesuffix(".") + nearest(wrong[1], re.findall(r"'([^']*)'", wrong[2]))
        return self._printed(Ending(message + hint, error.exit_code))


def _loading(program: Program) -> type[TyperGroup]:
    """A group that knows the names and sentences of all commands; the one that is called is imported."""

    class LoadedWhenCalled(TyperGroup):
        def resolve_command(self, ctx: Any, args: list[str]) -> Any:
            """The command itself instead of the name that stands for it."""
            if args and args[0] in program.moved:
                raise SettingError(program.moved[args[0]])
            if " ".join(args[:2]) in program.commands:  # two words, of a command that loads less than its group
                args = [" ".join(args[:2]), *args[2:]]
            name, placeholder, rest = super().resolve_command(ctx, args)
            if side_by_side(rest):
                begin_loading()
            return name, None if placeholder is None or name is None else _loaded(program, name), rest

    return LoadedWhenCalled


def _loaded(program: Program, name: str) -> Any:
    called = f"{program.package}.{program.commands[name].module}"
    with loading(program.name), without_collection(called):
        module = importlib.import_module(called)
    group = getattr(module, "app", None)
    if group is None:
        group = typer.Typer(**_STYLE)
        group.command(name)(module.command)
    return _with_words(typer.main.get_command(group))


def _with_words(command: Any) -> Any:
    """The command, with the words of its arguments, which typer before 0.26 loses to click from 8.5 on."""
    for one in getattr(command, "commands", {}).values():
        _with_words(one)
    hints = get_type_hints(inspect.unwrap(command.callback), include_extras=True) if command.callback else {}
    for param in command.params:
        if getattr(param, "help", "") is None:
            param.help = next((one.help for one in getattr(hints.get(param.name), "__metadata__", ())), None)
    return command


def _stand_in() -> None:
    """For the list of commands; a command that is called has been loaded in its place."""


def _version(asked: bool) -> None:
    if asked:
        typer.echo(__version__)
        raise typer.Exit


def _main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


def side_by_side(args: Sequence[str]) -> bool:
    """Whether a command's words ask for several runs at once."""
    asked = [after for word, after in pairwise(args) if word == "--jobs"]
    asked += [word.removeprefix("--jobs=") for word in args if word.startswith("--jobs=")]
    return any(number.isdecimal() and int(number) > 1 for number in asked)


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
