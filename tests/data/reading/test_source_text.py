"""The bytes of a text file as they are read: blank lines, newlines at the end, and no copy of what is clean."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ownview.base.errors import DataError
from ownview.data.reading.problems import Problems
from ownview.data.reading.source_text import SourceText, text_of


def _source(content: bytes) -> SourceText:
    path = Path("a.csv")
    return text_of(path, content, Problems(path))


def test_a_clean_file_is_not_copied() -> None:
    content = b"user,item\n1,2\n"
    source = _source(content)
    assert source.content is content
    assert source.original is content


@pytest.mark.parametrize(
    "content",
    [b"user,item\n1,2", b"user,item\n1,2\n\n\n", b"\n  \nuser,item\n \n1,2\n   ", b"user,item\r\n1,2\r\n\r\n"],
)
def test_blank_lines_and_newlines_at_the_end_do_not_count(content: bytes) -> None:
    source = _source(content)
    assert source.content == b"user,item\n1,2\n"
    lines = content.replace(b"\r\n", b"\n").split(b"\n")
    assert source.line_number(1) == lines.index(b"1,2") + 1


@pytest.mark.parametrize("content", [b"\n", b"\n\n", b"  \n \n"])
def test_nothing_but_blank_lines_is_empty(content: bytes) -> None:
    with pytest.raises(DataError, match="is empty"):
        _source(content)


@given(st.lists(st.sampled_from(["", " ", "  ", "a,b", " a", "a "]), max_size=8), st.integers(0, 3))
def test_lines_that_are_not_blank_are_all_that_stay(lines: list[str], ends: int) -> None:
    content = ("\n".join([*lines, "1,2"]) + "\n" * ends).encode()
    assert _source(content).content == "".join(f"{line}\n" for line in [*lines, "1,2"] if line.strip()).encode()
    turned = ("\n".join(["1,2", *lines]) + "\n" * ends).encode()
    assert _source(turned).content == "".join(f"{line}\n" for line in ["1,2", *lines] if line.strip()).encode()
