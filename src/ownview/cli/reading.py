"""Options that say how a file is read, and what is printed of one that cannot be read as it is."""

from __future__ import annotations

import inspect
import shlex
import sys
from collections.abc import Callable
from functools import partial, wraps
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from ownview.base.display.amounts import counted
from ownview.base.errors import DataError
from ownview.cli.display.terminal import Console
from ownview.cli.options import Columns
from ownview.data.reading.columns import parse_columns
from ownview.data.reading.date_forms import DAY_FIRST, MONTH_FIRST
from ownview.data.reading.problems import Problem, UnsoundFileError
from ownview.data.reading.readers import ReadingOptions

Read = TypeVar("Read")

Users = Annotated[
    Path | None, typer.Option("--users", help="File with a column user and others about users; stays at home.")
]
_option = partial(typer.Option, rich_help_panel="How the file is read, where it is not understood by itself")
_Tolerant = Annotated[
    bool, _option("--tolerant", help="Leave out rows that are not sound instead of refusing the file.")
]
_Separator = Annotated[
    str | None, _option("--separator", help="Between columns: one character, '::' or tab; detected if not given.")
]
_Encoding = Annotated[
    str | None, _option("--encoding", help="Of the text, such as cp1250; told by the file if not given.")
]
_Sheet = Annotated[str | None, _option("--sheet", help="Of a workbook of Excel, where several could be meant.")]
_Dates = Annotated[
    str | None,
    _option("--dates", help=f"{DAY_FIRST} or {MONTH_FIRST}, for 3/4/2010; told by the file if not given."),
]
_Events = Annotated[
    list[str] | None,
    _option("--events", help="Count this kind of event alone, such as purchase; may be repeated."),
]
_MinRating = Annotated[float | None, _option("--min-rating", help="Leave out rows that are rated below it.")]

_OPTIONS: dict[str, tuple[Any, Any]] = {
    "columns": (Columns, None),
    "tolerant": (_Tolerant, False),
    "separator": (_Separator, None),
    "encoding": (_Encoding, None),
    "sheet": (_Sheet, None),
    "dates": (_Dates, None),
    "events": (_Events, None),
    "min_rating": (_MinRating, None),
}
"""By name, as Typer wants them: an annotation and a default."""


def with_reading_options(command: Callable[..., None]) -> Callable[..., None]:
    """A command whose parameter `reading` is made of the options that say how a file is read.

    Typer reads options from a signature, so the new one has them in the place of that parameter.
    """
    signature = inspect.signature(command, eval_str=True)
    keyword = inspect.Parameter.KEYWORD_ONLY
    options = [inspect.Parameter(name, keyword, default=default, annotation=kind)
               for name, (kind, default) in _OPTIONS.items()]  # fmt: skip
    listed: list[inspect.Parameter] = []
    for name, one in signature.parameters.items():
        listed += options if name == "reading" else [one.replace(kind=keyword)]

    @wraps(command)
    def wrapped(**values: Any) -> None:
        reading = _given({name: values.pop(name) for name in _OPTIONS})
        command(**values, reading=reading)

    wrapped.__signature__ = signature.replace(parameters=listed)  # type: ignore[attr-defined]
    wrapped.__annotations__ = {one.name: one.annotation for one in listed}
    return wrapped


def _given(values: dict[str, Any]) -> ReadingOptions:
    """Options given on the command line alone."""
    options: Any = {name: value for name, value in values.items() if value not in (None, False, [])}
    if "columns" in options:
        options["columns"] = parse_columns(options["columns"])
    if "events" in options:
        options["events"] = tuple(options["events"])
    given: ReadingOptions = options
    return given


def read_or_ask(
    console: Console | None, file: Path, options: ReadingOptions, read: Callable[[ReadingOptions], Read]
) -> Read:
    """Read a file; list everything that is wrong with it, and go on all the same where a person at a terminal says so.

    Args:
        console: for the list; None where output is for a program: then only the first problem is reported.
        file: that is read.
        options: that were given.
        read: with such options.

    Raises:
        DataError: one line with the command that reads the file as it is.
    """
    try:
        return read(options)
    except UnsoundFileError as error:
        refused = [one for one in error.problems if one.refused]
        kinds = counted(len(refused), "problem")
        if console is not None:
            console.print(f"{file}: what is wrong with it", markup=False, soft_wrap=True)
            for problem in error.problems:
                console.print(f"  {_sentence(problem)}", markup=False, soft_wrap=True)
            if console.is_terminal and sys.stdin.isatty() and typer.confirm("Read it that way?", default=False):
                return read({**options, "tolerant": True})
            kinds += ", listed above"
        raise DataError(f"{error}; {kinds}; this reads the file as it is: {_proposed(refused)}") from None


def _sentence(problem: Problem) -> str:
    mark = "would be " if problem.refused else ""
    where = "; ".join(problem.examples)
    more = "; ..." if problem.count > len(problem.examples) else ""
    return f"{problem.kind}: {problem.count:,}, {mark}{problem.remedy} ({where}{more})"


def _proposed(refused: list[Problem]) -> str:
    """The command as it was typed, and what was missing."""
    only_dates = all("day and month" in one.kind for one in refused)
    return shlex.join(["ownview", *sys.argv[1:], *(["--dates", DAY_FIRST] if only_dates else ["--tolerant"])])
