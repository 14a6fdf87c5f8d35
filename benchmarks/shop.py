"""A shop's orders, generated: the size at which a start must still end in a quarter of an hour.

    python -m benchmarks.shop orders.csv                     # 35,598 customers, 18,357 products, 296,337 rows
    python -m benchmarks.shop orders.csv --customers 2000 --products 900 --rows 15000

Customers come in visits, most of them once or twice, a few a hundred times; a visit is a basket with one time. Products
belong to departments and are launched over two years; a department's sales fall off by rank, so that most products are
seldom sold. What lies in a basket has much to do with itself: half of a basket's later products are among the few that
go with the one before. A customer has two or three departments.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]

_BEGIN = 1_577_836_800
"""1 January 2020, UTC."""

_SECONDS = 2 * 365 * 86_400
_DEPARTMENT = 60
"""Products of a department, on average."""

_PARTNERS = 4
"""Products that go with a product."""

_TOGETHER = 0.5
"""Share of a basket's products, after the first, that go with the one before."""

_VISITED = (0.7, 0.2, 0.1)
"""Shares of a customer's products by department, the favourite first."""


@dataclass(frozen=True)
class Orders:
    """Rows in the order of customers and times.

    Args:
        customer: [r] numbers from 0.
        product: [r] numbers from 0.
        time: [r] seconds since 1970; one for all of a basket.
    """

    customer: Integers
    product: Integers
    time: Integers


def orders(customers: int, products: int, rows: int, seed: int = 0) -> Orders:
    """So many rows exactly; every customer and every product occurs, and a basket may hold a product twice.

    Args:
        customers: at most `rows`.
        products: at most `rows`.
        rows: of the file.
        seed: equal seeds give equal rows.
    """
    draw = np.random.default_rng(seed)
    activity = draw.lognormal(0.0, 1.2, customers)
    counts = 1 + draw.multinomial(rows - customers, activity / activity.sum())
    customer = np.repeat(np.arange(customers), counts)
    basket, opens = _baskets(customer, draw)
    # More baskets towards the end than at the beginning: the shop grows.
    when = _BEGIN + np.floor(_SECONDS * draw.beta(1.6, 1.0, len(opens))).astype(np.int64)
    time = when[basket]
    product = _bought(customer, opens, _departments(products, draw), draw)
    first, missing = np.unique(product, return_index=True)[1], np.setdiff1d(np.arange(products), product)
    repeated = np.setdiff1d(np.arange(rows), first)
    product[draw.choice(repeated, len(missing), replace=False)] = missing
    order = np.lexsort((time, customer))
    return Orders(customer[order], product[order], time[order])


def _baskets(customer: Integers, draw: np.random.Generator) -> tuple[Integers, Integers]:
    """[r] a basket's number a row, and [b] the first row of each; a row begins a basket with chance 0.3."""
    begins = draw.random(len(customer)) < 0.3
    begins |= np.diff(customer, prepend=-1) != 0
    return np.cumsum(begins) - 1, np.flatnonzero(begins)


@dataclass(frozen=True)
class _Departments:
    """of: [m] every product's department; sizes, starts: [d] of its run in `ranked`, [m], best-selling first."""

    of: Integers
    sizes: Integers
    starts: Integers
    ranked: Integers

    def drawn(self, department: Integers, draw: np.random.Generator) -> Integers:
        """A product for every entry, with chances of 1 / rank: exp of a uniform number is such a rank."""
        size = self.sizes[department]
        rank = np.floor(size ** draw.random(size.shape)).astype(np.int64) - 1
        return self.ranked[self.starts[department] + np.minimum(rank, size - 1)]


def _departments(products: int, draw: np.random.Generator) -> _Departments:
    number = max(products // _DEPARTMENT, 1)
    of = draw.choice(number, products, p=draw.dirichlet(np.full(number, 2.0)))
    of[draw.permutation(products)[:number]] = np.arange(number)
    sizes = np.bincount(of, minlength=number)
    return _Departments(of, sizes, np.cumsum(sizes) - sizes, np.lexsort((draw.random(products), of)))


def _bought(customer: Integers, opens: Integers, shop: _Departments, draw: np.random.Generator) -> Integers:
    """[r] a product a row: by a department's sales, or one that goes with the product before."""
    favourite = shop.sizes * draw.lognormal(0.0, 0.7, len(shop.sizes))
    liked = (int(customer[-1]) + 1, len(_VISITED))
    taste = draw.choice(len(shop.sizes), liked, p=favourite / favourite.sum())
    product = shop.drawn(taste[customer, draw.choice(len(_VISITED), len(customer), p=_VISITED)], draw)
    partners = shop.drawn(np.repeat(shop.of[:, None], _PARTNERS, axis=1), draw)
    follows = draw.random(len(customer)) < _TOGETHER
    follows[opens] = False
    which = draw.integers(_PARTNERS, size=len(customer))
    for row in np.flatnonzero(follows):  # each by the row before, which may itself have followed
        product[row] = partners[product[row - 1], which[row]]
    return product


def write(made: Orders, path: Path) -> None:
    """As a shop exports it: customer_id, product_id, product_name, order_date."""
    import polars as pl  # noqa: PLC0415 - slow to import

    number = int(made.product.max()) + 1
    names = np.array([f"Product {one}" for one in range(number)])
    pl.DataFrame(
        {
            "customer_id": made.customer + 10_000,
            "product_id": made.product + 500,
            "product_name": names[made.product],
            "order_date": made.time.astype("datetime64[s]").astype("datetime64[ms]"),
        }
    ).write_csv(path, datetime_format="%Y-%m-%d %H:%M:%S")


def main() -> None:
    """Write a file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--customers", type=int, default=35_598)
    parser.add_argument("--products", type=int, default=18_357)
    parser.add_argument("--rows", type=int, default=296_337)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    write(orders(given.customers, given.products, given.rows, given.seed), given.file)


if __name__ == "__main__":
    main()
