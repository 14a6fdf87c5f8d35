"""What a line says of its whole order, and what of itself alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from ownview.base.errors import DataError
from ownview.data.interactions import Interactions
from ownview.data.reading.readers import read


def rows(folder: Path, header: str, *lines: str) -> Interactions:
    path = folder / "orders.csv"
    path.write_text("\n".join((header, *lines)), encoding="utf-8")
    return read(path)


@pytest.mark.parametrize("never", ["0000-00-00 00:00:00", "false", "NaT", "0", "1970-01-01 00:00:00", "9999-12-31"])
def test_only_a_moment_says_that_an_order_was_cancelled(never: str, tmp_path: Path) -> None:
    header, lines = "order_id,customer,product,cancelled_at,date", []
    for number, (customer, product) in enumerate((("a", "n"), ("b", "p"), ("a", "p"), ("b", "n")), 1):
        lines.append(f"{number},{customer},{product},{never},2024-01-0{number}")
    data = rows(tmp_path, header, *lines)
    assert len(data) == 4
    assert f"column 'cancelled_at' is not looked at: it holds no moment, but 4 values such as {never!r}" in data.reading


@pytest.mark.parametrize(
    "moment", ["2024-02-01 10:00:00", "01/02/2024", "1706781600", "1706781600000", "1700010100000"]
)
def test_a_moment_among_values_that_are_none_still_cancels(moment: str, tmp_path: Path) -> None:
    header = "order_id,customer,product,cancelled_at,date"
    lines = ["1,a,n,never,2024-01-01", "2,b,p,never,2024-01-02", f"3,a,p,{moment},2024-01-03", "4,b,n,,2024-01-04"]
    data = rows(tmp_path, header, *lines)
    assert len(data) == 3
    assert "column 'cancelled_at': 2 values such as 'never' count as empty, being no moments" in data.reading
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


def test_nobody_is_called_null(tmp_path: Path) -> None:
    lines = [
        "NULL,n,1,NULL,2024-01-01",
        "NULL,p,1,NULL,2024-01-02",
        "a,n,NULL,NULL,2024-01-03",
        "a,\\N,1,NULL,2024-01-04",
    ]
    more = ["b,p,-1,NULL,2024-01-05", "Null,p,2,2024-02-01,2024-01-06", "Null,n,2,NULL,2024-01-07"]
    data = rows(tmp_path, "customer,product,quantity,cancelled_at,date", *lines, *more)
    assert data.users[data.user].tolist() == ["a", "Null"]
    assert data.quantity is not None
    assert data.quantity.tolist() == [1, 2]
    assert "cells that say NULL or \\N are taken as empty, in 'customer', 'product', 'quantity', ..." in data.reading


def test_what_is_unknown_of_items_and_users_is_not_called_null(tmp_path: Path) -> None:
    for name, text in {
        "rows.csv": "user,item\na,n\na,p\nb,n\n",
        "items.csv": "item,title,year\nn,Tea,1999\np,NULL,NULL\n",
        "users.csv": "user,age\na,31\nb,\\N\n",
    }.items():
        (tmp_path / name).write_text(text)
    data = read(tmp_path / "rows.csv", titles=tmp_path / "items.csv", users=tmp_path / "users.csv")
    assert data.titles == ("Tea", "p")
    assert data.about is not None
    assert data.about.columns["year"] == ("1999", "")
    assert data.about_users is not None
    assert data.about_users.columns["age"] == ("31", "")


@pytest.mark.parametrize(
    ("quantity", "number"),
    [
        ("1.200,00", 1200),
        ("1,200.00", 1200),
        ("1.200.000", 1200000),
        ("1 200,5", 1200.5),
        ("1\u202f200", 1200),
        ("4,5", 4.5),
    ],
)
def test_returns_are_seen_beside_a_number_with_groups(quantity: str, number: float, tmp_path: Path) -> None:
    data = rows(tmp_path, "customer;product;quantity", f"a;n;{quantity}", "a;p;-1", "b;n;1", "b;p;2")
    assert data.quantity is not None
    assert data.quantity.tolist() == [number, 1, 2]


@pytest.mark.parametrize("status", ["Status", "Statut", "Estado", "Stato ordine", "Situação"])
def test_a_status_by_which_orders_are_cancelled_is_looked_at(status: str, tmp_path: Path) -> None:
    lines = ["a;n;storniert", "a;p;bezahlt", "b;n;annulée", "b;p;offen", "c;n;Cancelado", "c;p;bezahlt"]
    data = rows(tmp_path, f"customer;product;{status}", *lines)
    assert len(data) == 3
    assert "--events bezahlt counts those alone" in str(data.reading)
    other = rows(tmp_path, f"customer;product;{status}", "a;n;Bayern", "a;p;Bayern", "b;n;Hessen")
    assert (len(other), other.unread) == (3, (status,))
    asked = read(tmp_path / "orders.csv", events=["Bayern"])
    assert len(asked) == 2


@pytest.mark.parametrize(("kinds", "left"), [(("check-in", "check-in"), 4), (("Check Out", "Check In"), 2)])
def test_checking_in_at_a_place_returns_no_book(kinds: tuple[str, str], left: int, tmp_path: Path) -> None:
    lines = [f"{user},{item},{kind}" for user, item, kind in zip("aabb", "npnp", kinds * 2, strict=True)]
    assert len(rows(tmp_path, "user,item,event", *lines)) == left


def test_the_events_that_are_proposed_can_be_typed(tmp_path: Path) -> None:
    data = rows(tmp_path, "user,item,event", "a,n,View", "a,p,View", "b,n,Add to cart", "b,p,")
    assert "--events 'Add to cart' counts those alone" in str(data.reading)
    data = rows(tmp_path, "user,item,event", "a,n,view", "a,p,view", "b,n,view", "b,p,")
    assert "(view 3, none 1); --events view counts those alone" in str(data.reading)


def test_a_number_of_an_order_is_known_as_it_is_abbreviated(tmp_path: Path) -> None:
    lines = ["7;a;n;annulée", "7;a;p;", "8;b;n;payée", "8;b;p;"]
    assert len(rows(tmp_path, "N° de commande;N° client;Article;Statut", *lines)) == 2
    assert len(rows(tmp_path, "Nº pedido;Nº cliente;Artículo;Estado", *lines)) == 2


def test_a_till_writes_date_and_time_apart(tmp_path: Path) -> None:
    lines = ["01/02/2023,10:05:00,a,n", "01/13/2023,9:00 PM,a,p", "01/14/2023,11:00:30,b,n"]
    data = rows(tmp_path, "Date,Time,Customer ID,Item", *lines)
    assert data.timestamp is not None
    assert data.timestamp.tolist() == [1672653900, 1673643600, 1673694030]
    alone = rows(tmp_path, "Date,Customer ID,Item", "2023-01-02,a,n", "2023-01-13,a,p")
    assert alone.timestamp is not None
    assert alone.timestamp.tolist() == [1672617600, 1673568000]
    named = rows(tmp_path, "Day,Hour,Customer ID,Item", "2023-01-02,10:05,a,n", "2023-01-13,11:05,a,p")
    assert named.timestamp is not None
    assert named.timestamp.tolist() == [1672617600, 1673568000]
    both = read(tmp_path / "orders.csv", columns={"timestamp": "Day+Hour"})
    assert both.timestamp is not None
    assert both.timestamp.tolist() == [1672653900, 1673607900]


def test_what_was_brought_back_is_told_by_the_type_of_a_row(tmp_path: Path) -> None:
    lines = ["a,n,issue", "a,n,return", "a,p,issue", "b,n,issue", "b,n,renew"]
    data = rows(tmp_path, "borrowernumber,itemnumber,type", *lines)
    assert len(data) == 4
    assert "--events issue counts those alone" in str(data.reading)
    media = rows(tmp_path, "borrowernumber,itemnumber,type", "a,n,BOOK", "a,p,DVD", "b,n,BOOK")
    assert (len(media), media.unread) == (3, ("type",))


def test_rows_whose_second_column_is_a_time_are_refused_without_a_header(tmp_path: Path) -> None:
    """Sessions of YOOCHOOSE: session, time, item, category; every time would be an item of its own."""
    lines = ["1,2014-04-07T10:51:09.277Z,214536502,0", "1,2014-04-07T10:54:09.868Z,214536500,0"]
    (tmp_path / "clicks.dat").write_text("\n".join([*lines, "2,2014-04-07T13:56:37.614Z,214536502,0"]))
    with pytest.raises(DataError, match=r"second column holds times.*user=0,timestamp=1,item=2"):
        read(tmp_path / "clicks.dat")
    data = read(tmp_path / "clicks.dat", columns={"user": "0", "timestamp": "1", "item": "2"})
    assert (data.num_items, len(data)) == (2, 3)


def test_the_title_is_proposed_for_an_item_that_has_no_number(tmp_path: Path) -> None:
    lines = [
        f"prof{user},00:4{user}:10,{title}" for user in range(4) for title in ("Green Tea", "Tea Pot", "Sugar Jar")
    ]
    with pytest.raises(DataError, match="--columns 'user=Profile Name,item=Title'"):
        rows(tmp_path, "Profile Name,Duration,Title", *lines)


@pytest.mark.parametrize(
    ("took", "brought"),
    [("Ausgeliehen am", "Zurückgegeben am"), ("Loaned on", "Due on"), ("Sale Date", "Date Shipped")],
)
def test_of_two_moments_the_one_counts_at_which_something_was_taken(took: str, brought: str, tmp_path: Path) -> None:
    data = rows(tmp_path, f"Kunde,Film,{brought},{took}", "a,n,2024-01-09,2024-01-02", "a,p,2024-01-09,2024-01-03")
    assert data.timestamp is not None
    assert data.timestamp.tolist() == [1704153600, 1704240000]
    assert f"column {took!r} holds times and is taken for the time" in data.reading


def test_guests_who_are_all_called_0_are_noted(tmp_path: Path) -> None:
    known = [f"{customer},{product}" for customer in range(1, 11) for product in "np"]
    plain = rows(tmp_path, "customer_id,product", *known, "0,n", "0,p")
    assert not plain.reading
    shop = rows(tmp_path, "customer_id,product", *known, *(f"0,{product}" for product in "npqrs" * 4))
    assert "user '0' has 20 of 40 rows" in str(shop.reading)
