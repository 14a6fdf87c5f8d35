"""What a line says of its whole order, and what of itself alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from ownview.data.interactions import Interactions
from ownview.data.reading.readers import read


def rows(folder: Path, header: str, *lines: str) -> Interactions:
    path = folder / "orders.csv"
    path.write_text("\n".join((header, *lines)), encoding="utf-8")
    return read(path)


@pytest.mark.parametrize("never", ["NULL", "0000-00-00 00:00:00", "false", "0", "1970-01-01 00:00:00", "9999-12-31"])
def test_only_a_moment_says_that_an_order_was_cancelled(never: str, tmp_path: Path) -> None:
    header, lines = "order_id,customer,product,cancelled_at,date", []
    for number, (customer, product) in enumerate((("a", "n"), ("b", "p"), ("a", "p"), ("b", "n")), 1):
        lines.append(f"{number},{customer},{product},{never},2024-01-0{number}")
    data = rows(tmp_path, header, *lines)
    assert len(data) == 4
    assert f"column 'cancelled_at' is not looked at: it holds no moment, but 4 values such as {never!r}" in data.reading


@pytest.mark.parametrize("moment", ["2024-02-01 10:00:00", "01/02/2024", "1706781600", "1706781600000"])
def test_a_moment_among_values_that_are_none_still_cancels(moment: str, tmp_path: Path) -> None:
    header = "order_id,customer,product,cancelled_at,date"
    lines = ["1,a,n,NULL,2024-01-01", "2,b,p,NULL,2024-01-02", f"3,a,p,{moment},2024-01-03", "4,b,n,,2024-01-04"]
    data = rows(tmp_path, header, *lines)
    assert len(data) == 3
    assert "column 'cancelled_at': 2 values such as 'NULL' count as empty, being no moments" in data.reading
    assert any(one.startswith("rows of orders with a time of cancellation: 1,") for one in data.reading)


@pytest.mark.parametrize(
    ("column", "value"), [("order_status", "returned"), ("cancelled_at", "2024-02-01 10:00:00")], ids=["event", "time"]
)
@pytest.mark.parametrize("line", [0, 1, 2])
def test_a_return_on_another_line_than_the_first_is_that_lines_alone(
    column: str, value: str, line: int, tmp_path: Path
) -> None:
    said = ["", "", ""]
    said[line] = value
    lines = [f"1,a,{item},{status},2024-01-01" for item, status in zip("npq", said, strict=True)]
    others = ["2,b,n,,2024-01-02", "2,b,p,,2024-01-02", "3,c,n,,2024-01-03", "3,c,q,,2024-01-03"]
    data = rows(tmp_path, f"order_id,customer,product,{column},date", *lines, *others)
    assert len(data) == (4 if line == 0 else 6)


def test_a_status_of_the_first_line_holds_where_a_line_has_none_of_its_own(tmp_path: Path) -> None:
    lines = ["1,a,n,refunded,2024-01-01", "1,a,p,paid,2024-01-01", "1,a,q,,2024-01-01", "2,b,n,paid,2024-01-02"]
    data = rows(tmp_path, "order_id,customer,product,order_status,date", *lines)
    assert sorted(zip(data.users[data.user].tolist(), data.items[data.item].tolist(), strict=True)) == [
        ("a", "p"),
        ("b", "n"),
    ]
