"""Forty files as shops, libraries and services export them, each with the rows that are meant.

All hold the same purchases, as far as a form can say them, so that what is right is written once.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import polars as pl

from tests.data.reading.workbook import workbook


@dataclass(frozen=True)
class Purchase:
    user: str
    item: str
    title: str
    when: datetime
    rating: float


def _purchase(user: str, item: str, title: str, when: str, rating: float) -> Purchase:
    return Purchase(user, item, title, datetime.fromisoformat(when).replace(tzinfo=UTC), rating)


PURCHASES = (
    _purchase("17850", "85123A", "WHITE HANGING HEART", "2010-12-01 08:26:00", 5),
    _purchase("17850", "71053", "CAFÉ LANTERN £5", "2010-12-01 08:26:00", 4),
    _purchase("13047", "85123A", "WHITE HANGING HEART", "2010-12-14 14:05:00", 3.5),
    _purchase("13047", "22752", "SET OF 7 BOXES", "2011-01-03 09:00:00", 2),
    _purchase("12583", "71053", "CAFÉ LANTERN £5", "2011-02-28 23:59:00", 1),
    _purchase("12583", "22752", "SET OF 7 BOXES", "2011-03-01 00:01:00", 5),
    _purchase("12583", "85123A", "WHITE HANGING HEART", "2011-03-02 12:00:00", 4.5),
)


@dataclass(frozen=True)
class Form:
    """A file, and what is not as in `PURCHASES`.

    Args:
        name: of the file.
        content: its bytes; by name, those of a folder's files.
        options: of the command that was proposed; none for most.
        timed: whether it has times; `days` where they are days alone.
        titled: whether it has titles.
        rated: whether it has ratings.
        rows: the rows that are meant.
        notes: words that the reader must have noted.
        refused: words of the error that proposes `options`; empty where nothing is to be proposed.
        titles: a second file, of titles.
    """

    name: str
    content: bytes | Mapping[str, bytes]
    options: Mapping[str, Any] = field(default_factory=dict)
    timed: str = "seconds"
    titled: bool = True
    rated: bool = False
    rows: Sequence[Purchase] = PURCHASES
    notes: tuple[str, ...] = ()
    refused: str = ""
    titles: bytes | None = None


Write = Callable[[Purchase], Sequence[object]]


def table(
    header: str,
    row: Write,
    *,
    separator: str = ",",
    encoding: str = "utf-8",
    rows: Sequence[Purchase] = PURCHASES,
    more: Sequence[Sequence[object]] = (),
) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, delimiter=separator)
    writer.writerow(header.split(","))
    writer.writerows([*map(row, rows), *more])
    return text.getvalue().encode(encoding)


def american(when: datetime) -> str:
    return f"{when.month}/{when.day}/{when.year} {when.hour}:{when.minute:02d}"


def seconds(one: Purchase) -> int:
    return int(one.when.timestamp())


def retail(one: Purchase) -> Sequence[object]:
    return (536365, one.item, one.title, 6, american(one.when), 2.55, one.user, "United Kingdom")


RETAIL = "InvoiceNo,StockCode,Description,Quantity,InvoiceDate,UnitPrice,CustomerID,Country"
UNSOLD = (
    (536366, "21777", "?", 56, "12/1/2010 11:52", 0, "", "United Kingdom"),
    ("C536379", "71053", "CAFÉ LANTERN £5", -1, "12/1/2010 9:41", 27.5, 17850, "United Kingdom"),
    (536380, "22752", "SET OF 7 BOXES", -3, "12/1/2010 9:42", 27.5, 17850, "United Kingdom"),
)


def lines(*objects: Mapping[str, object]) -> bytes:
    return "\n".join(json.dumps(one) for one in objects).encode() + b"\n"


def as_object(one: Purchase) -> dict[str, object]:
    return {"user_id": one.user, "sku": one.item, "title": one.title, "ts": one.when.isoformat()}


def parquet(columns: Mapping[str, Sequence[object]]) -> bytes:
    content = io.BytesIO()
    pl.DataFrame(columns).write_parquet(content)
    return content.getvalue()


def shop(one: Purchase) -> Sequence[object]:
    return (one.user, one.item, one.title, one.when.strftime("%Y-%m-%d %H:%M:%S"))


def dotted(one: Purchase) -> Sequence[object]:
    return (one.user, one.item, one.title, one.when.strftime("%d.%m.%Y %H:%M"))


def slashed(one: Purchase) -> Sequence[object]:
    return (one.user, one.item, one.title, one.when.strftime("%d/%m/%Y %H:%M"))


def rated(one: Purchase) -> Sequence[object]:
    return (one.user, one.item, one.rating, seconds(one))


AMBIGUOUS = tuple(replace(one, when=one.when.replace(day=one.when.day % 12 + 1)) for one in PURCHASES)
"""No day above 12, and still in time order."""
RATED_WELL = tuple(one for one in PURCHASES if one.rating >= 4)

_OWN = {"22752": "SET OF 7 BOXES"}
"""What goes by its title, because the shop gave it no number."""

SHOPIFY = "Name,Email,Financial Status,Created at,Lineitem quantity,Lineitem name,Lineitem sku"
WOO = "Order ID,Order Date,Order Status,Customer User ID,Email (Billing),Item #,SKU,Item Name,Quantity"


def shopify(one: Purchase) -> Sequence[object]:
    when = one.when.strftime("%Y-%m-%d %H:%M:%S +0000")
    return ("#1001", f"{one.user}@b.org", "paid", when, 1, one.title, "" if one.item in _OWN else one.item)


SHOPIFY_ORDERS = "Name,Email,Financial Status,Cancelled at,Created at,Lineitem quantity,Lineitem name,Lineitem sku"


def of_one_order(number: str, status: str, cancelled: str) -> Sequence[Sequence[object]]:
    """Three products of one order, which says who, in which state and when it was cancelled on its first line alone."""
    first, *others = (("2011-04-01 10:00:00 +0000", 1, p.title, p.item) for p in PURCHASES[:3])
    return ((number, "9@b.org", status, cancelled, *first), *((number, "", "", "", *one) for one in others))


def woo(one: Purchase) -> Sequence[object]:
    return (7, one.when.strftime("%Y-%m-%d %H:%M:%S"), "wc-completed", 0, one.user, 1, one.item, one.title, 1)


PRODUCTS = "sku,product_name\n85123A,WHITE HANGING HEART\n71053,CAFÉ LANTERN £5\n22752,SET OF 7 BOXES\n".encode()

FORMS = (
    Form("online_retail.csv", table(RETAIL, retail, encoding="cp1252", more=UNSOLD),
         notes=("Windows-1252", "month/day/year", "rows without a user: 1,", "cancelled orders (C...): 1,",
                "returns (quantity of 0 or less): 1,")),
    Form("online_retail.csv.gz", gzip.compress(table(RETAIL, retail, more=UNSOLD)), notes=("rows without a user: 1,",)),
    Form("online_retail.xlsx", workbook([RETAIL.split(","), *(
        (536365, p.item, p.title, 6, p.when.replace(tzinfo=None), 2.55, int(p.user), "UK") for p in PURCHASES),
        (536366, "21777", None, 56, datetime(2010, 12, 1), 0, None, "UK")]), notes=("rows without a user: 1,",)),
    Form("utf16.csv", table("user,item,title,date", shop, encoding="utf-16"), notes=("UTF-16",)),
    Form("utf16_unmarked.csv", table("user,item,title,date", shop, encoding="utf-16-le"), notes=("UTF-16",)),
    Form("marked.csv", table("user,item,title,date", shop, encoding="utf-8-sig")),
    Form("excel_semicolon.csv", b"sep=;\r\n" + table("user,item,title,date", shop, separator=";")),
    Form("tabs.txt", table("customer id,SKU,product name,order date", shop, separator="\t")),
    Form("pipes.txt", table("customer_id,sku,product_name,order_date", shop, separator="|")),
    Form("bestellungen.csv", table("Kundennummer,Artikelnummer,Bezeichnung,Bestelldatum", dotted, separator=";",
                                   encoding="cp1252"), notes=("day/month/year", "Windows-1252")),
    Form("commandes.csv", table("Carte client,Référence,Libellé,Date de commande", slashed, separator=";"),
         options={"columns": {"user": "Carte client", "item": "Référence"}}, refused="--columns",
         notes=("day/month/year",)),
    Form("commandes2.csv", table("ID client,Code article,Désignation,Date de commande", slashed, separator=";")),
    Form("pedidos.csv", table("Código cliente,Código artículo,Descripción,Fecha de pedido", slashed, separator=";")),
    Form("ordini.csv", table("Codice cliente,Codice articolo,Descrizione,Data ordine", slashed, separator=";")),
    Form("pedidos_pt.csv", table("Código do cliente,Código do produto,Descrição,Data do pedido", slashed,
                                 separator=";")),
    Form("kunden.csv", table("Kunde,Artikel,Titel,Datum", dotted, separator="\t")),
    Form("month_names.csv", table("user,item,title,date", lambda p: (*shop(p)[:3], p.when.strftime("%d %b %Y %H:%M")))),
    Form("long_months.csv", table("user,item,title,date",
                                  lambda p: (*shop(p)[:3], p.when.strftime("%B %d, %Y %I:%M %p")))),
    Form("two_digit_years.csv", table("user,item,title,date",
                                      lambda p: (*shop(p)[:3], p.when.strftime("%m/%d/%y %H:%M")))),
    Form("compact.csv", table("user,item,title,date", lambda p: (*shop(p)[:3], p.when.strftime("%Y%m%d"))),
         timed="days"),
    Form("compact_seconds.csv", table("user,item,title,date",
                                      lambda p: (*shop(p)[:3], p.when.strftime("%Y%m%d%H%M%S")))),
    Form("zones.csv", table("event_time,event_type,product_id,price,user_id", lambda p: (
        p.when.strftime("%Y-%m-%d %H:%M:%S UTC"), "purchase", p.item, 1.5, p.user)), titled=False),
    Form("events.csv", table("event_time,event_type,product_id,user_id,user_session", lambda p: (
        p.when.strftime("%Y-%m-%d %H:%M:%S UTC"), "purchase", p.item, p.user, "s1"), more=(
        ("2010-12-01 00:00:00 UTC", "remove_from_cart", "9", "17850", "s1"),)), titled=False,
        notes=("rows that take something back: 1,",)),
    Form("bought.csv", table("timestamp,visitorid,event,itemid,transactionid", lambda p: (
        seconds(p) * 1000, p.user, "transaction", p.item, 7), more=((1291191960000, "9", "view", "85123A", ""),)),
        titled=False, options={"events": ("transaction",)}, notes=("rows of other events: 1,",)),
    Form("sessions.csv", table("session_id,sku,created_at", lambda p: (p.user, p.item, p.when.isoformat())),
         titled=False, notes=("a visit, counts as a user",)),
    Form("in_order.csv", table("user,item,title,date", slashed, rows=AMBIGUOUS), rows=AMBIGUOUS,
         notes=("in that reading the rows are in time order",)),
    Form("doubtful.csv", table("user,item,title,date", slashed, rows=AMBIGUOUS[::2] + AMBIGUOUS[1::2]),
         rows=AMBIGUOUS[::2] + AMBIGUOUS[1::2], options={"dates": "day-first"}, refused="--dates day-first"),
    Form("ratings.csv", table("userId,movieId,rating,timestamp", rated), titled=False, rated=True),
    Form("ratings.dat", "\n".join("::".join(map(str, rated(p))) for p in PURCHASES).encode(), titled=False,
         rated=True),
    Form("u.data", "\n".join("\t".join(map(str, rated(p))) for p in PURCHASES).encode(), titled=False, rated=True),
    Form("commas.csv", table("user,item,stars,timestamp", lambda p: (
        p.user, p.item, str(p.rating).replace(".", ","), seconds(p)), separator=";"), titled=False, rated=True),
    Form("liked.csv", table("reviewerID,asin,overall,unixReviewTime", rated), titled=False, rated=True,
         options={"min_rating": 4.0}, rows=RATED_WELL, notes=("rows rated below 4: 3,",)),
    Form("books.csv", table("User-ID,ISBN,Book-Title,Date Read", shop, separator=";")),
    Form("plays.tsv", table("user_id,track_id,track_name,played_at", lambda p: (*shop(p)[:3], p.when.isoformat()),
                            separator="\t")),
    Form("plain_columns.csv", table("client,produit,Nom,Moment", lambda p: (*shop(p)[:3], p.when.isoformat())),
         notes=("'Moment' holds times", "'Nom' names the items")),
    Form("lines.jsonl", lines(*map(as_object, PURCHASES), {"user_id": None, "sku": "x"}),
         notes=("rows without a user: 1,",)),
    Form("list.json", json.dumps([as_object(p) for p in PURCHASES], indent=1).encode()),
    Form("frame.parquet", parquet({
        "customer_id": [p.user for p in PURCHASES], "asin": [p.item for p in PURCHASES],
        "product_title": [p.title for p in PURCHASES],
        "order_date": [p.when.replace(tzinfo=None) for p in PURCHASES]})),
    Form("pandas.parquet", parquet({
        "CustomerID": [*(float(p.user) for p in PURCHASES), float("nan")],
        "StockCode": [*(p.item for p in PURCHASES), "1"],
        "InvoiceDate": [*(p.when.replace(tzinfo=None) for p in PURCHASES), datetime(2011, 1, 1)]}), titled=False,
        notes=("rows without a user: 1,",)),
    Form("months", {"2010.csv": table("user,item,title,date", shop),
                    "more.csv": b"item,date,user,title\r\n85123A,2012-01-01 00:00:00,17850,WHITE HANGING HEART\r\n",
                    "readme.md": b"# orders"}, rows=(
        *PURCHASES, _purchase("17850", "85123A", "WHITE HANGING HEART", "2012-01-01 00:00:00", 0)),
        notes=("2 files of the folder",)),
    Form("orders_and_products", {
        "orders.csv": table("user,item,date", lambda p: (*shop(p)[:2], shop(p)[3])),
        "products.csv": PRODUCTS}),
    Form("zeros.csv", table("user,item,date", lambda p: (p.user, {"71053": "0071053"}.get(p.item, p.item),
                                                         p.when.isoformat())), rows=tuple(
        Purchase(p.user, {"71053": "0071053"}.get(p.item, p.item), p.title, p.when, 0) for p in PURCHASES),
        titles=PRODUCTS,
        notes=("without the zeros in front of ids",)),
    Form("torn.csv", table("user,item,title,date", shop, more=(("17850", "22752"), ("17850", "22752", "x", "soon"))),
         options={"tolerant": True}, refused="--tolerant",
         notes=("rows that have not 4 fields: 1,", "times that are none: 1,")),
    Form("quotes.csv", table("user,item,title,date", lambda p: (
        p.user, p.item, f'{p.title}, "boxed"\nin two lines', shop(p)[3])), rows=tuple(
        Purchase(p.user, p.item, f'{p.title}, "boxed" in two lines', p.when, 0) for p in PURCHASES)),
    Form("shopify.csv", table(SHOPIFY, shopify, more=(("#9", "", "", "2011-04-01 10:00:00 +0000", 1, "x", "85123A"),)),
         rows=tuple(replace(p, user=f"{p.user}@b.org", item=_OWN.get(p.item, p.item)) for p in PURCHASES),
         notes=("2 rows without an item id", "rows without a user: 1,")),
    Form("shopify_refunds.csv", table(SHOPIFY_ORDERS, lambda p: (
        f"#{p.user}", f"{p.user}@b.org", "paid", "", p.when.strftime("%Y-%m-%d %H:%M:%S +0000"), 1, p.title, p.item),
        more=(*of_one_order("#2001", "refunded", ""), *of_one_order("#2002", "paid", "2011-04-02 09:00:00 +0000"),
              *of_one_order("#2003", "voided", ""))),
         rows=tuple(replace(p, user=f"{p.user}@b.org") for p in PURCHASES),
         notes=("6 rows without a customer: that of another row", "6 rows without a status: that of another row",
                "rows that take something back: 6,", "rows of orders with a time of cancellation: 3,")),
    Form("woocommerce.csv", table(WOO, woo, separator=";", encoding="utf-8-sig", more=(
        (9, "2011-04-01 10:00:00", "wc-cancelled", 3, "17850", 1, "71053", "x", 1),)),
         notes=("take something back: 1,",)),
    Form("ausleihen.csv", table("Ausleihdatum,Rückgabedatum,Lesernummer,Mediennummer,Titel,Zweigstelle", lambda p: (
        p.when.strftime("%d.%m.%Y %H:%M"), "01.05.2011", p.user, p.item, p.title, "Mitte"), separator=";",
        encoding="cp1252")),
    Form("titled.csv", b"Umsatz 2010;;;\nFiliale Mitte;;;\n;;;\n" + table(
        "Kunde,Artikel-Nr.,Bezeichnung,Datum", dotted, separator=";", more=(("Summe", "", "", ""),)),
         notes=("3 lines above the header", "rows without an item: 1,")),
    Form("titled.xlsx", workbook([["Sales of 2010"], ["all shops"], ["Customer", "SKU", "Product name", "Sale date"], *(
        (int(p.user), p.item, p.title, p.when.replace(tzinfo=None)) for p in PURCHASES)]),
        notes=("2 rows above the header", "'Sale date' holds times")),
    Form("sold.xlsx", workbook([["Customer", "SKU", "Product name", "Sold"], *(
        (int(p.user), p.item, p.title, p.when.replace(tzinfo=None)) for p in PURCHASES)]),
        notes=("'Sold' holds times",)),
    Form("two_dates.xlsx", workbook([["Kd-Nr", "SKU", "Titel", "verkauft", "geliefert"], *(
        (int(p.user), p.item, p.title, p.when.replace(tzinfo=None), datetime(2011, 6, 1)) for p in PURCHASES)]),
        notes=("'verkauft' holds times",)),
    Form("wines.xlsx", workbook([["Umsatz"], ["Kd-Nr", "Wein", "Flaschen", "Preis", "verkauft", "geliefert"], *(
        (int(p.user), p.title, 2 + place % 3, 9.9, p.when.replace(tzinfo=None), datetime(2011, 6, 1))
        for place, p in enumerate(PURCHASES))]),
        rows=tuple(replace(p, item=p.title) for p in PURCHASES), titled=False,
        options={"columns": {"user": "Kd-Nr", "item": "Wein"}}, refused="--columns user=Kd-Nr,item=Wein",
        notes=("above the header, not read", "'verkauft' holds times")),
    Form("loans.csv", "Stadtbücherei;;;;;;\r\n;;;;;;\r\n".encode("cp1252") + table(
        "Ausweis-Nr.,Mediennr.,Verfasser,Titel,Ausleihdatum,Fällig am,Vorgang", lambda p: (
            p.user, p.item, "Weiß", p.title, p.when.strftime("%d.%m.%Y %H:%M"), "01.05.2011", "Ausleihe"),
        separator=";", encoding="cp1252", more=(("17850", "22752", "Weiß", "x", "02.04.2011 10:00", "", "Rückgabe"),)),
         notes=("lines above the header", "rows that take something back: 1,")),
    Form("plays_unnamed.tsv", table("", lambda p: (
        f"user_{p.user}", p.when.isoformat(), "a1", p.title, p.item), separator="\t").removeprefix(b'""\r\n'),
         rows=tuple(replace(p, user=f"user_{p.user}") for p in PURCHASES),
         options={"columns": {"user": "0", "item": "4"}}, refused="--columns user=0,item=4",
         notes=("'1' holds times", "'3' names the items")),
    Form("times_third.csv", table("", lambda p: (p.user, p.item, p.when.isoformat())).removeprefix(b'""\r\n'),
         titled=False),
    Form("by_title.csv", table("Customer,Product name,Sold on", lambda p: (p.user, p.title, p.when.isoformat())),
         rows=tuple(replace(p, item=p.title) for p in PURCHASES),
         notes=("no column of item ids: column 'Product name'",)),
    Form("streams.json", json.dumps([{"ts": p.when.isoformat(), "username": p.user, "ms_played": 9,
                                      "master_metadata_track_name": p.title, "spotify_track_uri": p.item}
                                     for p in PURCHASES]).encode()),
    Form("ml-1m", {"movies.dat": b"1::Toy Story (1995)::Comedy\n2::Heat (1995)::Action\n",
                   "ratings.dat": "\n".join("::".join(map(str, rated(p))) for p in PURCHASES).encode()},
         titled=False, rated=True, notes=("other columns: movies.dat",)),
    Form("unnamed_titles.csv", table("user,item,date", lambda p: (p.user, p.item, p.when.isoformat())),
         titles="\n".join(f"{p.item}::{p.title}::Lamps" for p in PURCHASES[:4]).encode()),
    Form("old_mac.csv", table("user,item,title,date", shop).replace(b"\r\n", b"\r")),
)  # fmt: skip
