"""Workbooks with several sheets: the one that is meant is read, or all are named."""

from __future__ import annotations

from pathlib import Path

import pytest

from ownview.base.errors import DataError
from ownview.data.reading.readers import read
from tests.data.reading.workbook import workbook

ORDERS = [["CustomerID", "StockCode"], ["ann", "a"], ["ann", "b"], ["bea", "a"]]
RETURNS = [["CustomerID", "StockCode"], ["cid", "a"]]
NOTES = [["Exported on Monday"], ["by the till"]]


@pytest.fixture
def book(tmp_path: Path) -> Path:
    return tmp_path / "orders.xlsx"


def test_the_only_sheet_with_people_and_items_is_read_and_named(book: Path) -> None:
    book.write_bytes(workbook(NOTES, Sales=ORDERS))
    data = read(book)
    assert data.users.tolist() == ["ann", "bea"]
    assert "sheet 'Sales' is read, of 'Orders', 'Sales'" in data.reading


def test_of_several_that_could_be_meant_one_must_be_named(book: Path) -> None:
    book.write_bytes(workbook(ORDERS, Returns=RETURNS))
    with pytest.raises(DataError, match=r"has 2 sheets with rows \('Orders', 'Returns'\); expected --sheet"):
        read(book)
    assert read(book, sheet="Returns").users.tolist() == ["cid"]
    with pytest.raises(DataError, match=r"has no sheet 'Return'; did you mean 'Returns'\?; it has 'Orders', 'Returns'"):
        read(book, sheet="Return")


def test_empty_sheets_beside_it_do_not_count(book: Path) -> None:
    book.write_bytes(workbook(ORDERS, Empty=[]))
    assert len(read(book)) == 3
    book.write_bytes(workbook([], Empty=[]))
    with pytest.raises(DataError, match="no rows; expected at least one row of user and item"):
        read(book)
