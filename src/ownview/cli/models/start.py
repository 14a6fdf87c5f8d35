"""`ownview start`: one command from a file of interactions to lists, a report and a page."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from ownview.base.display.amounts import counted, in_people, readable
from ownview.base.errors import SettingError
from ownview.baselines.parts.central import Central
from ownview.cli.display.figures import figures
from ownview.cli.display.patience import loading
from ownview.cli.display.progress import clock_words
from ownview.cli.display.terminal import Console
from ownview.cli.display.work import Work, working
from ownview.cli.models.private_ways import say_who, show_ways
from ownview.cli.options import RUNS, Memory
from ownview.cli.reading import Users, read_or_ask, with_reading_options
from ownview.cli.trusting import Trust, names_files
from ownview.data.matching import ItemNames
from ownview.data.reading.columns import named
from ownview.data.reading.folders import source_files
from ownview.data.reading.readers import ReadingOptions, name_of
from ownview.evaluation.named_protocols import protocol as protocol_named
from ownview.runs.summaries.summary import SIMULATED
from ownview.start.folder import ATTACK, AUDIT, FIT, LISTS, PAGE, REPORT, StartFolder

if TYPE_CHECKING:
    from ownview.data.interactions import Interactions
    from ownview.data.splitting.splits import Split
    from ownview.runs.run import Run
    from ownview.start.steps import Steps

_STEPS = 7
_PLACES = 10
"""Of the lists that methods are compared by."""

_READING, _BYTES = 3.0, 5e6
"""Seconds until a small file is read and planned for, and bytes of a large one a second."""

_ROWS = 1e4
"""Rows a second by which a model goes on with a file that has grown."""


@with_reading_options
def command(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="Interactions: CSV, Excel, JSON Lines, Parquet, or a folder of such.")
    ],
    reading: ReadingOptions,
    titles: Annotated[
        Path | None,
        typer.Option(
            "--items",
            "--titles",
            help="File with columns item,title and others about items, where FILE has no title column.",
        ),
    ] = None,
    users: Users = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--out",
            "--resume",
            help="Folder for everything; one that exists goes on. runs/start-FILE if not given.",
        ),
    ] = None,
    method: Annotated[
        list[str] | None,
        typer.Option(
            "--method", help="Compare these instead of what suits the data; may be repeated.", callback=names_files
        ),
    ] = None,
    protocol: Annotated[
        str | None, typer.Option("--protocol", help="What is asked, such as honest; chosen by the data if not given.")
    ] = None,
    table: Annotated[bool, typer.Option("--table", help="Show the table of figures and its marks.")] = False,
    k: Annotated[int, typer.Option("-k", help="Items in everybody's list.", min=1)] = 10,
    jobs: Annotated[int, typer.Option("--jobs", help="Runs side by side.", min=1)] = 1,
    memory: Memory = "auto",
    minutes: Annotated[
        float, typer.Option("--minutes", help="For everything; what does not fit is made smaller or left out.", min=0.1)
    ] = 15.0,
    private: Annotated[
        bool, typer.Option("--private", help="Compare ways to keep what people have from others, and recommend one.")
    ] = False,
    trust: Trust = False,
) -> None:
    """Go from a file of interactions to recommendations: look at it, compare, fit the best, write lists and pages.

    The same command goes on where it was stopped or killed, and adds what is new where the file has grown.
    """
    with loading("ownview"):
        from ownview.start.growing import grown  # noqa: PLC0415
        from ownview.start.interruption import same_command_goes_on  # noqa: PLC0415 - slow to import, help does without
        from ownview.start.steps import Steps  # noqa: PLC0415

    console = Console(highlight=False)
    if private:
        if method:
            raise SettingError("--private: chooses the methods by itself; leave --method out")
        say_who(console)
    place = out or RUNS / f"start-{name_of(file)}"
    wanted = None if protocol is None else protocol_named(protocol)

    def opened(options: ReadingOptions) -> Steps | None:
        folder = StartFolder(place, file, options, titles, users, protocol)
        if (data := grown(folder)) is not None:
            _go_on(console, folder, data, k)
            return None
        size = sum(one.stat().st_size for one in source_files(file)) if file.exists() else 0
        with working("reading", {str(file): _READING + size / _BYTES}) as work:
            work.begin(str(file))
            return Steps.of(folder, method or (), memory, wanted, minutes, private=private)

    steps = read_or_ask(console, file, reading, opened)
    if steps is None:
        return
    work = Work(steps.expected())
    with same_command_goes_on():
        _describe(console, steps)
        _audit(console, steps, work)
        _compare(console, steps, work, jobs, table)
        _use(console, steps, work, k)


def _go_on(console: Console, folder: StartFolder, data: Interactions, k: int) -> None:
    """The file has grown: what is new goes into the model; what was measured is not measured again."""
    from ownview.start.growing import go_on  # noqa: PLC0415

    with working("updating", {folder.file.name: _READING + len(data) / _ROWS}) as work:
        work.begin(folder.file.name)
        found = go_on(folder, data, k)
    console.print(f"{folder.file.name} has grown: {found.changed.what}", soft_wrap=True, markup=False)
    console.print(f"  model {found.changed.version}: {found.changed.how}", soft_wrap=True, markup=False)
    console.print(f"  {folder.lists}: lists of {counted(found.users, 'user')}", soft_wrap=True, markup=False)
    written = f"left out: {found.left_out}" if found.left_out else str(folder.page)
    console.print(f"  {written}", soft_wrap=True, markup=False)
    before = "comparison and report are of the file as it was"
    remark = before if folder.report.is_file() else "comparison and report went when a person was forgotten"
    console.print(f"  {remark}; another --out compares anew", markup=False)


def _describe(console: Console, steps: Steps) -> None:
    data, split = steps.data, steps.split
    _step(console, 1, f"Read {steps.folder.file.name}")
    counts = ", ".join(
        (counted(data.num_users, "user"), counted(data.num_items, "item"), counted(len(data), "interaction"))
    )
    order = {"times": "with times", "rows": "in order, without times", "none": "without times"}[split.order]
    console.print(f"  {counts}, {order}; titles: {_titles(data)}", markup=False)
    for note in (*data.reading, *_unread(data), *_ratings(steps), *_few_left(split), *split.notes):
        console.print(f"  note: {note}", markup=False)


def _unread(data: Interactions) -> list[str]:
    """Which columns are not looked at, and how one of them would be the time where none is."""
    if not data.unread:
        return []
    sentence = f"not looked at: {'column' if len(data.unread) == 1 else 'columns'} {named(data.unread)}"
    if data.timestamp is not None:
        return [sentence]
    likely = [name for name in data.unread if "date" in name.lower() or "time" in name.lower()]
    taking = shlex.quote(f"timestamp={likely[0] if likely else 'COLUMN'}")
    return [f"{sentence}; --columns {taking} takes {'that' if likely else 'a'} column for the time"]


def _ratings(steps: Steps) -> list[str]:
    """That ratings count for nothing, where there are some and none was asked for."""
    if steps.data.rating is None or steps.folder.options.get("min_rating") is not None:
        return []
    sentence = "ratings are not looked at: every row counts as an item that was taken"
    return [f"{sentence}; --min-rating leaves out rows that are rated lower"]


def _few_left(split: Split) -> list[str]:
    """That figures say nothing, where no person has more items left to rank than a list has places."""
    left = split.num_items - int(split.train.lengths.min())
    if left > _PLACES:
        return []
    return [f"no person has more than {counted(left, 'item')} left to rank: HR@{_PLACES} is 1 for every model"]


def _titles(data: Interactions) -> str:
    """How many items have one; the others are called by their ids."""
    if data.titles is None:
        return "items go by theirs" if data.titled else "none, ids are shown"
    # A thing without a number goes by its title, and has blanks in it.
    called = sum(one != str(item) or " " in one for one, item in zip(data.titles, data.items.tolist(), strict=True))
    if called == data.num_items:
        return "yes"
    return f"{called} of {data.num_items}"


def _audit(console: Console, steps: Steps, work: Work) -> None:
    _step(console, 2, f"Audit the question ({_asked(steps)})")
    if steps.question.why:
        console.print(f"  {steps.question.why}", markup=False)
    with working("auditing", work):
        work.begin(AUDIT)
        findings = steps.audit(lambda name: None)
    for finding in findings:
        if finding.fires:
            console.print(f"  [red]![/] {finding.probe}: {escape(finding.sentence)}")
    sound = sum(not finding.fires for finding in findings)
    console.print(f"  {sound} of {len(findings)} probes found nothing to warn of (ownview audit)", markup=False)


def _asked(steps: Steps) -> str:
    """The question, in words."""
    name, split = steps.question.protocol.name, steps.question.protocol.split
    if split != "leave-one-out":
        return f"protocol {name}"
    held_out = "an item of everybody's, drawn at random," if steps.split.order == "none" else "everybody's latest item"
    return f"protocol {name}: {held_out} is held out, all items are ranked"


def _compare(console: Console, steps: Steps, work: Work, jobs: int, table: bool) -> None:
    tasks = steps.tasks()
    names = ", ".join(one.way or one.method for one in steps.selection.methods)
    things = "method" if steps.people is None else "way"
    _step(console, 3, f"Compare {counted(len(tasks), things)}: {names}")
    console.print(f"  {_forecast(steps)}", markup=False)
    for line in steps.selection.left_out:
        console.print(f"  left out: {line}", markup=False, soft_wrap=True)
    with working("comparing", work):
        found = steps.compare(tasks, jobs, lambda run, number, metrics: None, work.begin)
    if steps.people is not None:
        show_ways(console, steps)
    if table:
        console.print(figures(found, f"{steps.data.name}: test, seed 0"))
        console.print(found.legend, markup=False)
    else:
        asked = max(cell.users for cell in found.cells.values())
        console.print(
            f"  {in_people(asked)} {'was' if asked == 1 else 'were'} asked; --table shows the figures, the report has "
            "them too",
            markup=False,
        )
    for name, reason in steps.failures.items():
        console.print(f"  left out: {name}: {reason}", markup=False)


def _forecast(steps: Steps) -> str:
    """What is expected of the comparison before it begins."""
    seconds = sum(one.seconds for one in steps.selection.methods)
    return (
        f"about {clock_words(seconds)} where this machine does nothing else; at most {steps.minutes:g} min for all "
        "(--minutes)"
    )


def _use(console: Console, steps: Steps, work: Work, k: int) -> None:
    folder, tasks = steps.folder, steps.tasks()
    best = steps.best(tasks)
    value = best.result["validation"]["NDCG@10"]
    label = best.experiment.label()
    choice = steps.recommended()
    why = f"it has the highest NDCG@10 on validation, {value:.3f}" if choice is None else f"{choice.way} is recommended"
    _step(console, 4, f"Fit {label} on everything: {why}")
    console.print(f"  it is {_kind(best)}", soft_wrap=True, markup=False)
    work.expect(FIT, float(best.result["seconds"]))
    with working("attacking", work):
        work.begin(ATTACK)
        exposed = steps.exposure(best) if choice is None else []
    for one in exposed:
        mark, more = ("[red]![/] ", "; --private compares what hides it") if one.fires else ("", "")
        console.print(f"  {mark}{escape(one.sentence)} (ownview attack){more}", soft_wrap=True)
    if earlier := steps.earlier_model(best):
        console.print(f"  the model of an earlier start, {earlier}, gives way to it", soft_wrap=True, markup=False)
    with working("fitting", work):
        work.begin(FIT)
        model = steps.fit(best, lambda number, metrics: None)
    _step(console, 5, f"Write {counted(k, 'item')} for everybody")
    with working("listing", work):
        work.begin(LISTS)
        users = steps.lists(model, k)
    console.print(f"  {folder.lists}: lists of {counted(users, 'user')}", soft_wrap=True, markup=False)
    _step(console, 6, "Write the report of the comparison")
    with working("reporting", work):
        work.begin(REPORT)
        verdict = steps.verdict(best, model)
        steps.report(verdict)
    console.print(f"  {folder.report}", soft_wrap=True, markup=False)
    _step(console, 7, "Write the page for people, which computes recommendations by itself")
    with working("packing the page", work):
        work.begin(PAGE)
        made = steps.page(model)
    written = f"left out: {made}" if isinstance(made, str) else f"{made.path}: {readable(made.bytes)}"
    console.print(f"  {written}", soft_wrap=True, markup=False)
    for sentence in [] if isinstance(made, str) else [*made.warnings(), *made.exposure.sentences(every=False)]:
        console.print(f"  note: {sentence}", soft_wrap=True, markup=False)
    console.print()
    for sentence in verdict.sentences:
        console.print(sentence, style="bold" if sentence is verdict.sentences[0] else None, markup=False)
    place, user = map(shlex.quote, (str(folder.model), str(steps.data.users[0])))
    console.print(f"\nEverything is in {folder.path}. Next:", soft_wrap=True, markup=False)
    if not isinstance(made, str):
        console.print(f"  open {made.path} in a browser: people pick, it recommends", soft_wrap=True, markup=False)
    console.print(f"  ownview recommend {place} --user {user}", soft_wrap=True, markup=False)
    if (name := ItemNames(steps.data).name_of(0)) is not None:
        console.print(f"  ownview recommend {place} --history {shlex.quote(name)}", soft_wrap=True, markup=False)


def _kind(best: Run) -> str:
    """Central or federated, in words."""
    model = best.experiment.model()
    if isinstance(model, Central):
        at_home = "made of what is public about items: nothing is sent"
        return at_home if model.sends_nothing else "central: it learns from all rows in one place"
    return f"federated, {SIMULATED}"


def _step(console: Console, number: int, what: str) -> None:
    console.print(f"[bold]{number}/{_STEPS}[/] {escape(what)}", soft_wrap=True)
