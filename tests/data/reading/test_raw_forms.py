"""Raw exports are read without an option, or with the command that was proposed; the values are right row by row."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from ownview.base.errors import DataError
from ownview.data.interactions import Interactions
from ownview.data.reading.readers import ReadingOptions, read
from tests.data.reading.raw_forms import FORMS, Form, Purchase
from tests.outcome import Outcome

DAY = 86_400


def written(form: Form, folder: Path) -> Path:
    path = folder / form.name
    if isinstance(form.content, bytes):
        path.write_bytes(form.content)
    else:
        path.mkdir()
        for name, content in form.content.items():
            (path / name).write_bytes(content)
    return path


def rows_of(data: Interactions) -> list[tuple[str, str, str, int | None, float | None]]:
    order = np.argsort(data.row)
    return [
        (
            str(data.users[data.user[row]]),
            str(data.items[data.item[row]]),
            data.title(int(data.item[row])),
            None if data.timestamp is None else int(data.timestamp[row]),
            None if data.rating is None else float(data.rating[row]),
        )
        for row in order.tolist()
    ]


def meant(form: Form, one: Purchase) -> tuple[str, str, str, int | None, float | None]:
    moment = int(one.when.timestamp())
    return (
        one.user,
        one.item,
        one.title if form.titled else one.item,
        moment // DAY * DAY if form.timed == "days" else moment,
        one.rating if form.rated else None,
    )


@pytest.mark.parametrize("form", FORMS, ids=[form.name for form in FORMS])
def test_a_raw_form_is_read_row_by_row(form: Form, tmp_path: Path) -> None:
    path = written(form, tmp_path)
    titles = None
    if form.titles is not None:
        titles = tmp_path / "titles.csv"
        titles.write_bytes(form.titles)
    if form.refused:
        with pytest.raises(DataError) as refused:
            read(path, titles=titles)
        if form.refused != "--tolerant":  # which a command proposes, see below
            assert form.refused in str(refused.value)
    options: ReadingOptions = {**form.options}  # type: ignore[typeddict-item]
    data = read(path, titles=titles, **options)
    assert rows_of(data) == [meant(form, one) for one in form.rows]
    notes = "; ".join(data.reading)
    for words in form.notes:
        assert words in notes


REFUSED = [form for form in FORMS if form.refused]


@pytest.mark.parametrize("form", REFUSED, ids=[form.name for form in REFUSED])
def test_the_command_that_is_proposed_reads_the_file(
    form: Form, tmp_path: Path, ownview: Callable[..., Outcome]
) -> None:
    line = ("data", "describe", str(written(form, tmp_path)), "--json")
    refused = ownview(*line)
    assert (refused.code, refused.out) == (2, "")
    words = shlex.split(re.split("as it is: |perhaps ", refused.err)[1].partition(" (values")[0])
    assert form.refused in " ".join(words)
    outcome = ownview(*(words[1:] if words[0] == "ownview" else (*line, *words)))
    assert outcome.code == 0, outcome.err
    found = json.loads(outcome.out)
    assert (found["users"], found["items"], found["rows"]) == (3, 3, len(form.rows))


def test_there_are_forty_forms() -> None:
    assert len(FORMS) >= 40
    assert sum(not form.options for form in FORMS) >= 35, "most are read without an option"
