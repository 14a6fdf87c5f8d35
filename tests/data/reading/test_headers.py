"""A header is found below a report's title, and a row of data is never taken for one."""

from __future__ import annotations

from pathlib import Path

import pytest

from ownview.data.reading.readers import read

TITLED = "1,10,Alien\n2,11,Brazil\n3,12,The book of love\n1,11,Brazil\n2,12,The book of love\n3,10,Alien\n"
UNTITLED = "1,The book of love\n2,The song of hope\n1,The film of fate\n2,The book of love\n"


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        (f"user,item,title\n{TITLED}", 6),
        (f"user,item,title\n{TITLED.replace('of love', 'for user and item')}", 6),
        (f"user,title\n{UNTITLED}", 4),
        (f"1,Brazil\n{UNTITLED}", 5),
        (f'user,item,title\n3,9,"Tea, milk"\n{TITLED}', 7),
        (f"Sales by month\n\nuser,item,title\n{TITLED}", 6),
        (f"Sales by month,,\n,,\nuser,item,title\n{TITLED}", 6),
    ],
    ids=["a title", "both words", "two columns", "no header", "quotes", "a report", "a padded report"],
)
def test_words_of_titles_are_no_names_of_columns(text: str, rows: int, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text(text)
    assert len(read(tmp_path / "rows.csv")) == rows
