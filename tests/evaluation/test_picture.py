"""The picture of a protocol says what its split does."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree as Xml

import pytest

from ownview.evaluation.named_protocols import HONEST, HONEST_TIME, NEXT_SITTING, PROTOCOLS, SEQUENTIAL
from ownview.evaluation.picture import example, kinds_of_rows, picture


@pytest.mark.parametrize("name", list(PROTOCOLS))
def test_every_named_protocol_has_one(name: str) -> None:
    drawn = Xml.fromstring(picture(PROTOCOLS[name]))
    marks = [one.get("class") for one in drawn.iter() if one.get("class") in ("trains", "test", "validation", "known")]
    rows = len(example())
    assert marks.count("test") > 1  # one more in the legend
    assert marks.count("trains") > rows / 3
    assert name in (drawn[0].text or "")


def test_a_protocol_that_reads_files_has_none() -> None:
    assert picture(replace(HONEST, name="mine", split="files", split_folder="nowhere")) == ""


def test_kinds_are_those_of_the_split() -> None:
    data = example()
    kinds = kinds_of_rows(HONEST.prepare(data), data)
    assert sorted(kinds.values()).count("test") == data.num_users
    assert sorted(kinds.values()).count("validation") == data.num_users
    causal = kinds_of_rows(NEXT_SITTING.prepare(data), data)
    assert "test" in causal.values()
    assert "unused" in kinds_of_rows(HONEST_TIME.prepare(data), data).values()


def test_what_a_client_knows_stands_in_the_picture() -> None:
    assert "its training and its validation items" in picture(SEQUENTIAL)
    assert "a client knows its training items<" in picture(HONEST)
