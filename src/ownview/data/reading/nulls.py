"""Cells in which a database writes that there is no value."""

from __future__ import annotations

from dataclasses import replace

from ownview.data.reading.problems import Problems
from ownview.data.reading.string_table import Table

_NULLS = ["NULL", r"\N"]
"""As exports of MySQL and PostgreSQL write it; in these letters, so that a person called Null stays."""


def without_nulls(table: Table, problems: Problems) -> Table:
    """The table with such cells empty: guests without a number are not one person called NULL."""
    import polars as pl  # noqa: PLC0415 - not everywhere, and slow to import

    marked = [place for place in range(table.frame.width) if bool(table.frame.to_series(place).is_in(_NULLS).any())]
    if not marked:
        return table
    names = [repr(table.name(place)) for place in marked]
    listed = ", ".join([*names[:3], "..."] if len(names) > 3 else names)
    problems.note(f"cells that say NULL or \\N are taken as empty, in {listed}")
    columns = [pl.col(table.frame.columns[place]) for place in marked]
    emptied = [pl.when(column.is_in(_NULLS)).then(pl.lit("")).otherwise(column).name.keep() for column in columns]
    return replace(table, frame=table.frame.with_columns(emptied))
