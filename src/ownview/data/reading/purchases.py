"""Which rows are purchases: no returns, no cancelled orders, no events that were not asked for."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ownview.base.errors import DataError, suggestion
from ownview.base.items.column_names import bare_name
from ownview.data.interactions import FloatArray
from ownview.data.reading.orders import cancelled
from ownview.data.reading.problems import Problems
from ownview.data.reading.string_table import Table
from ownview.data.reading.values import note_rows, numbers

if TYPE_CHECKING:
    import polars as pl

_UNDONE = frozenset(
    {
        *("removefromcart", "remove", "return", "returned", "refund", "refunded", "cancel", "cancelled", "canceled"),
        *("voided", "dislike", "unlike", "unfavorite", "unfollow", "delete", "skip", "failed", "retoure", "storno"),
        "declined",
        *("ruckgabe", "rueckgabe", "storniert", "retourniert", "erstattet"),
        *("retour", "retourne", "retournee", "rembourse", "remboursee", "annule", "annulee"),
        *("devolucion", "devuelto", "devuelta", "cancelado", "cancelada", "anulado", "anulada", "reembolsado"),
        *("reso", "annullato", "annullata", "rimborsato", "devolucao", "devolvido"),
    }
)
"""Events that take something back."""

_BACK_BESIDE = {"checkin": "checkout"}
"""Events that take something back where there is the other one: elsewhere people check in at places."""

_STATUS = frozenset(
    {
        *("type", "typ", "tipo", "status", "statut", "estado", "stato", "situacao", "auftragsstatus", "statutcommande"),
        *("statutdelacommande", "estadopedido", "estadodelpedido", "statoordine", "statodellordine", "statusdopedido"),
    }
)
"""Columns that may tell whether an order was cancelled, or an item brought back; their values decide."""

_BOUGHT = frozenset(
    {
        *("purchase", "purchased", "buy", "bought", "order", "transaction", "checkout", "kauf", "achat"),
        *("paid", "completed", "wccompleted", "loan", "ausleihe", "pret", "prestito", "prestamo"),
        *(
            "issue",
            "issued",
            "sale",
            "shipped",
            "delivered",
            "bezahlt",
            "versandt",
            "geliefert",
            "paye",
            "payee",
            "expediee",
            "livree",
        ),
        *("pagado", "entregado", "pagato", "consegnato", "evaso", "pago", "entregue"),
    }
)
"""Events that are surely meant, where others may be looks."""

_CANCELLED = r"^[Cc]\d{4,}$"
"""A cancelled invoice among invoices that are numbers."""

_MOST_KINDS = 50
"""Kinds of events; a column with more of them is none of events."""


def status_of_orders(table: Table, where: Mapping[str, Sequence[int]], events: Sequence[str]) -> dict[str, list[int]]:
    """The column of events where none is called so: a status by which some orders were cancelled, or that is asked for.

    Args:
        table: the rows.
        where: positions of the columns that are known.
        events: kinds that count, as they were asked for; may be empty.
    """
    if "event" in where or table.header is None:
        return {}
    read = {place for places in where.values() for place in places}
    for place, name in enumerate(map(bare_name, table.header)):
        if name in _STATUS and place not in read:
            kinds = table.column(place).unique()
            if len(kinds) <= _MOST_KINDS and (events or _undone(kinds.to_list())):
                return {"event": [place]}
    return {}


def _undone(kinds: Sequence[str]) -> list[str]:
    """Of kinds of events, those that take something back."""
    bare = {one: bare_name(one).removeprefix("wc") for one in kinds}
    there = set(bare.values())
    return [one for one, name in bare.items() if name in _UNDONE or _BACK_BESIDE.get(name) in there]


def taken(table: Table, where: Mapping[str, Sequence[int]], events: Sequence[str], problems: Problems) -> pl.Series:
    """[r] True for purchases; the other rows are noted.

    Args:
        table: the rows.
        where: positions of the columns; quantity, order and event are looked at where there are such.
        events: kinds of events that count, as the source writes them; all that take nothing back where empty.
        problems: takes note.
    """
    kept = table.column(where["item"][0]) != ""
    kept = kept & ~cancelled(table, where, problems)
    if "order" in where:
        kept = kept & ~_cancelled(table, where["order"][0], problems)
    if "quantity" in where:
        kept = kept & ~_returned(table, where["quantity"][0], kept, problems)
    if "event" in where:
        kept = kept & _wanted(table, where["event"][0], kept, events, problems)
    elif events:
        raise DataError(f"{table.path}: has no column of events; expected one called event or event_type for --events")
    return kept


def _cancelled(table: Table, position: int, problems: Problems) -> pl.Series:
    """Invoices with a C in front of their number, where the others are numbers."""
    column = table.column(position)
    marked = column.str.contains(_CANCELLED)
    plain = column.str.contains(r"^\d{4,}$")
    if not bool(marked.any()) or int((marked | plain).sum()) < 0.9 * len(column):
        return marked & False
    advice = "the order was cancelled"
    note_rows(problems, table, position, marked, "rows of cancelled orders (C...)", "order", advice, refused=False)
    return marked


def _returned(table: Table, position: int, kept: pl.Series, problems: Problems) -> pl.Series:
    """Quantities below one, where all that are given are numbers."""
    column = table.column(position)
    quantity = numbers(column)
    if bool((quantity.is_null() & (column != "")).any()):
        problems.note(f"column {table.name(position)!r} is not looked at: not all of its values are numbers")
        return kept & False
    back = (quantity <= 0).fill_null(False) & kept
    advice = "expected a quantity above 0 of what was taken"
    note_rows(problems, table, position, back, "returns (quantity of 0 or less)", "quantity", advice, refused=False)
    return back


def kept_quantities(table: Table, position: int, kept: pl.Series) -> FloatArray | None:
    """[r'] quantities of the rows that stay, 1 where none is given; None where not all that are given are numbers."""
    column = table.column(position)
    quantity = numbers(column)
    if bool((quantity.is_null() & (column != "")).any()) or bool((column == "").all()):
        return None
    return quantity.fill_null(1.0).filter(kept).to_numpy().astype(np.float64)


def _wanted(table: Table, position: int, kept: pl.Series, events: Sequence[str], problems: Problems) -> pl.Series:
    column = table.column(position)
    counts = dict(column.filter(kept).value_counts(sort=True).iter_rows())
    if events:
        for one in events:
            if one not in counts:
                near = suggestion(one, counts)
                raise DataError(f"{table.path}: column {table.name(position)!r}: no event is called {one!r}{near}")
        wanted = column.is_in(list(events))
        advice = f"expected {' or '.join(events)}"
        note_rows(problems, table, position, ~wanted & kept, "rows of other events", "event", advice, refused=False)
        return wanted
    if len(counts) > _MOST_KINDS:
        return kept
    undone = _undone(list(counts))
    back = column.is_in(undone)
    advice = "expected an event that takes something"
    note_rows(problems, table, position, back & kept, "rows that take something back", "event", advice, refused=False)
    left = {one: number for one, number in counts.items() if one not in undone}
    if len(left) > 1:
        listed = ", ".join(f"{one or 'none'} {number:,}" for one, number in list(left.items())[:6])
        named = [one for one in left if one]
        bought = shlex.quote(next((one for one in named if bare_name(one) in _BOUGHT), named[-1]))
        problems.note(f"all kinds of events count as taken ({listed}); --events {bought} counts those alone")
    return ~back
