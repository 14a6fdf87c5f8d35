"""`ownview data`: what datasets there are, what they are like, and how to get them here."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from ownview.base.display.amounts import counted
from ownview.base.display.shown import shown_json
from ownview.base.errors import SettingError
from ownview.cli.display.terminal import Console
from ownview.cli.options import AsJson, DataDir
from ownview.cli.reading import Users, read_or_ask, with_reading_options
from ownview.data.datasets.catalog import Entry, catalog, entry_of, how_to_get, load
from ownview.data.datasets.fetch import fetch
from ownview.data.datasets.storage import embedded_dir, find, store, stored_names, write_dir
from ownview.data.dates import in_utc
from ownview.data.describe import CountCheck, Description, Quantiles, Times, describe
from ownview.data.reading.folders import digest_of, source_files
from ownview.data.reading.readers import ReadingOptions, read

KeepIn = Annotated[
    Path | None, typer.Option("--data-dir", help="Folder to keep it in; $OWNVIEW_DATA or the cache if not given.")
]

app = typer.Typer(no_args_is_help=True, help="Datasets: ls, describe, fetch, import.")

_LINE = "{:<21}{:>7} {:>7} {:>10}  {}"
"""One dataset in 80 columns; where it lies goes below, unbroken, so that it can be copied."""


@app.command("ls")
def list_datasets(data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """List the datasets of the catalogue and those imported, and where each is found."""
    imported = sorted(stored_names(data_dir) - set(catalog()))
    if as_json:
        rows = [_listed(name, data_dir) for name in (*catalog(), *imported)]
        typer.echo(json.dumps({"datasets": rows}, indent=2))
        return
    console = Console(soft_wrap=True, highlight=False)
    console.print(_LINE.format("dataset", "users", "items", "rows", "terms"), style="bold")
    for name in (*catalog(), *imported):
        entry = catalog().get(name)
        terms = "yours" if entry is None else entry.terms
        console.print(_LINE.format(name, *_paper_counts(entry), terms), markup=False)
        console.print(f"  {_where(name, entry, data_dir)}", style="dim", markup=False)
    console.print("Users, items and rows are those the papers print, after their filter.")


@app.command("describe")
@with_reading_options
def describe_dataset(
    dataset: Annotated[str, typer.Argument(metavar="NAME|FILE", help="A dataset or a file of interactions.")],
    reading: ReadingOptions,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Say what a dataset is like, and whether its counts are the papers'."""
    data = read_or_ask(
        None if as_json else Console(highlight=False),
        Path(dataset),
        reading,
        lambda options: load(dataset, data_dir=data_dir, columns=options.get("columns"), options=options),
    )
    description = describe(data, catalog().get(data.name))
    if as_json:
        typer.echo(shown_json(json.dumps(description.to_dict(), indent=2, ensure_ascii=False)))
    else:
        _show(description, data.reading)


@app.command("fetch")
def fetch_dataset(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A dataset of the catalogue.")],
    data_dir: KeepIn = None,
) -> None:
    """Download a dataset from its official home, verify it, and keep it for later runs."""
    entry = entry_of(name)
    console = Console()
    if not console.is_terminal:
        typer.echo(fetch(entry, data_dir))
        return
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TimeRemainingColumn(),
        console=console,
    ) as bar:
        task = bar.add_task(name, total=None)
        path = fetch(entry, data_dir, progress=lambda done, total: bar.update(task, completed=done, total=total))
    console.print(f"{name} is in {path.parent}\nTerms: {entry.terms}\nCite: {entry.citation}", markup=False)


@app.command("import")
@with_reading_options
def import_dataset(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Interactions, in any format Ownview reads.")],
    name: Annotated[str, typer.Option("--name", help="Name to load it by.")],
    reading: ReadingOptions,
    titles: Annotated[
        Path | None, typer.Option("--items", "--titles", help="File with columns item,title, and others about items.")
    ] = None,
    users: Users = None,
    data_dir: KeepIn = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a dataset of that name.")] = False,
) -> None:
    """Check a file of interactions and keep it under a name."""
    entry = catalog().get(name)
    if entry is not None and (entry.embedded or entry.urls):
        known = "that comes with Ownview" if entry.embedded else f"of the catalogue ({how_to_get(entry)})"
        raise SettingError(f"--name {name}: is the name of a dataset {known}; choose another")
    negative = entry is not None and entry.allow_negative_times
    data = read_or_ask(
        Console(highlight=False),
        file,
        reading,
        lambda options: read(file, name=name, titles=titles, users=users, allow_negative_times=negative, **options),
    )
    provenance = {
        "dataset": name,
        "file": file.name,
        "sha256": digest_of(file),
        "bytes": sum(one.stat().st_size for one in source_files(file)),
        "imported": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    path = store(data, name, write_dir(data_dir), provenance, overwrite=overwrite)
    counts = ", ".join((counted(data.num_users, "user"), counted(data.num_items, "item"), counted(len(data), "row")))
    for sentence in data.reading:
        typer.echo(f"note: {sentence}")
    typer.echo(f"{name}: {counts} in {path}")


def _paper_counts(entry: Entry | None) -> tuple[str, str, str]:
    if entry is None or not entry.counts:
        return "", "", ""
    first = entry.counts[0]
    return f"{first.users:,}", f"{first.items:,}", f"{first.rows:,}"


def _where(name: str, entry: Entry | None, data_dir: Path | None) -> str:
    found = find(name, data_dir)
    if found is not None:
        return "comes with Ownview" if found.is_relative_to(embedded_dir()) else str(found.parent)
    if entry is not None and not entry.urls:
        return f"not here: see {entry.homepage}"
    return f"not here: ownview data fetch {name}"


def _listed(name: str, data_dir: Path | None) -> dict[str, object]:
    entry, found = catalog().get(name), find(name, data_dir)
    first = entry.counts[0] if entry is not None and entry.counts else None
    return {
        "name": name,
        "title": name if entry is None else entry.title,
        "users": None if first is None else first.users,
        "items": None if first is None else first.items,
        "rows": None if first is None else first.rows,
        "path": None if found is None else str(found),
        "terms": None if entry is None else entry.terms,
        "homepage": None if entry is None else entry.homepage,
    }


def _show(description: Description, reading: Sequence[str]) -> None:
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("what", no_wrap=True)
    table.add_column("found", overflow="fold")
    table.add_row("users, items, rows", f"{description.users:,}, {description.items:,}, {description.rows:,}")
    table.add_row("sparsity", f"{description.sparsity:.2%}")
    table.add_row("rows per user", _spread(description.per_user))
    table.add_row("rows per item", _spread(description.per_item))
    table.add_row("users with under 3", f"{description.users_under_3:,}")
    table.add_row("repeated pairs", f"{description.repeated_rows:,} rows ({description.repeated_share:.1%})")
    rating = description.rating_range
    table.add_row("ratings", "none" if rating is None else f"{rating[0]:g} to {rating[1]:g}")
    table.add_row("timestamps", _time_quality(description.times))
    table.add_row("titles", "yes" if description.titles else "none")
    for check in description.papers:
        table.add_row(f"papers, at least {check.min_interactions}", _checked(check))
    for sentence in reading:
        table.add_row("reading", escape(sentence))
    if description.notes:
        table.add_row("note", escape(description.notes))
    console = Console()
    console.print(description.name, style="bold", markup=False)
    console.print(table)


def _spread(quantiles: Quantiles) -> str:
    return (
        f"{quantiles.min:g} least, {quantiles.q25:g} / {quantiles.median:g} / {quantiles.q75:g} quartiles, "
        f"{quantiles.max:g} most"
    )


def _time_quality(times: Times) -> str:
    if times.first is None or times.last is None:
        return "none: row order is the only order"
    return (
        f"{times.distinct:,} distinct, {in_utc(times.first)} to {in_utc(times.last)}; "
        f"{times.tied_rows:.1%} of rows share theirs with another row of the same user"
    )


def _checked(check: CountCheck) -> str:
    printed = ", ".join(f"{number:,}" for number in check.expected)
    papers = ", ".join(check.papers)
    if check.equal:
        return f"{printed} ({papers}): equal"
    return f"{printed} ({papers}): not equal, found " + ", ".join(f"{number:,}" for number in check.found)
