"""Tables of recorded results between markers in files written by hand.

<!-- results:papers/ml-100k -->
(the table of ml-100k in results/papers.json; without the dataset, all of them)
<!-- end of results -->
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ownview.base.errors import OutputError, suggestion
from ownview.runs.table import Comparison, pooling
from ownview.studies.bench.results import Document, tables
from ownview.studies.bench.results_page import markdown_table, rounds_of, seeds_of, warnings_of

_BLOCK = re.compile(
    r"(<!-- results:(?P<suite>[\w.-]+)(?:/(?P<data>[\w.-]+))? -->\n).*?(<!-- end of results -->)", re.DOTALL
)


def with_tables(text: str, documents: Mapping[str, Document], source: str) -> str:
    """The text with the tables of the suites that its markers name; `source` names it in errors."""

    def block(found: re.Match[str]) -> str:
        name = found["suite"]
        if name not in documents:
            raise OutputError(f"{source}: results:{name}: no such results{suggestion(name, documents)}")
        chosen = [table for table in tables(documents[name]) if found["data"] in (None, table.data)]
        if not chosen:
            known = [table.data for table in tables(documents[name])]
            raise OutputError(
                f"{source}: results:{name}/{found['data']}: no such data in it{suggestion(found['data'], known)}"
            )
        return f"{found[1]}{_short(documents[name], chosen)}\n{found[4]}"

    made, number = _BLOCK.subn(block, text)
    if not number:
        raise OutputError(
            f"{source}: expected lines <!-- results:SUITE --> (or results:SUITE/DATA) and <!-- end of results -->"
        )
    return made


def _short(values: Document, chosen: Sequence[Comparison]) -> str:
    lines: list[str] = []
    for table in chosen:
        runs = [one for one in values["runs"] if one["data"] == table.data]
        lines += [f"{table.data}: test, {rounds_of(runs)}, {seeds_of(runs)}, 95 % interval over users:", ""]
        notes = (*pooling(table.cells), table.settings, table.legend)
        lines += [*markdown_table(table), "", *warnings_of(table), *(f"- {one}" for one in notes), ""]
    return "\n".join(["", *lines])
