"""Side information on items, users and interactions, as parameters of a method.

Features of items are public: every client and the server make the same values of the same table, nothing of them is
sent, and no budget is spent by it. Those of users, and ratings, stay at home. A method that asks for what the data
lacks is refused in one line before anything is trained.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from ownview.base.errors import suggestion
from ownview.base.items.item_table import ItemTable
from ownview.base.items.item_text import feature_matrix, term_vectors
from ownview.seam.initial import Given
from ownview.seam.roles import ITEM_FEATURES, RATINGS, USER_FEATURES, Param, held
from ownview.seam.training import World


def item_features(world: World, *columns: str, most: int = 256) -> Param:
    """A table [m, d] of features of the items, d at most `most`; rows are aligned by id and never move.

    Words, pairs of words, entries of lists and decades are features of their own, weighed as in `base.items.item_text`;
    numbers are standardised. Of more than `most` those that most items have are taken.

    Args:
        world: of the data.
        columns: of the item table; all of them where none is named.
        most: features at most.
    """
    table = world.items
    lacking = _lacking(table, columns)
    if table is None or lacking:
        return Param((1,), ITEM_FEATURES, rows=True, initial=Given(_nothing, lacking))
    chosen = table if not columns else ItemTable({name: table.columns[name] for name in columns})
    width = _matrix(chosen, most).shape[1]
    return Param((width,), ITEM_FEATURES, rows=True, initial=Given(lambda: _matrix(chosen, most)))


def item_likeness(world: World) -> Param:
    """A table [m, m] with the cosine of two items' text; 0 between an item and itself."""
    table = world.items
    lacking = _lacking(table, ())
    initial = Given(_nothing, lacking) if table is None or lacking else Given(lambda: _kernel(table))
    return Param((world.num_items,), ITEM_FEATURES, rows=True, initial=initial)


def user_features(world: World, *columns: str, size: int = 32) -> Param:
    """[size] features of the client's user: one place an entry or number, by a hash (`federation.facts`).

    Args:
        world: of the data.
        columns: of the user table; all of them where none is named.
        size: places; entries that fall into one add up.
    """
    known = world.user_columns
    unknown = next((name for name in columns if name not in known), "")
    lacking = (
        ""
        if known
        else "nothing is known of the users but their ids; expected data.with_tables(users=TABLE) or --users FILE"
    )
    if known and unknown:
        lacking = f"the user table has no column {unknown!r}; expected one of {', '.join(known)}"
        lacking += suggestion(unknown, known)
    initial = Given(lambda: torch.zeros(size), lacking)
    return Param((size,), USER_FEATURES, initial=initial, columns=columns or known)


def ratings(world: World) -> Param:
    """A table [m] of the client's own data: its rating of every item that it knows, 0 for all others."""
    lacking = "" if world.ratings else "the data has no ratings; expected a column rating"
    return Param((), RATINGS, rows=True, initial=Given(lambda: torch.zeros(world.num_items), lacking))


def number_of_terms(world: World) -> int:
    """Columns of `terms_of`; 1 where nothing is known of the items."""
    return 1 if _lacking(world.items, ()) or world.items is None else int(term_vectors(world.items).shape[1])


def items_known(world: World) -> Param:
    """A value without numbers, held by the server: a method that has it is refused where nothing is known of items."""
    return held(0, initial=Given(_nothing, _lacking(world.items, ())))


def terms_of(world: World, like: Tensor) -> Tensor:
    """[k, terms] the text vectors of the first k items, sparse, in the precision and place of `like` [k, ...]."""
    if world.items is None:
        return torch.zeros(len(like), 1).to(like).to_sparse()
    rows = term_vectors(world.items)[: len(like)].tocoo()
    places = torch.from_numpy(np.stack([rows.row, rows.col]).astype(np.int64))
    made = torch.sparse_coo_tensor(places, torch.from_numpy(rows.data), rows.shape, check_invariants=False)
    return made.to(like.device, like.dtype).coalesce()


def _lacking(table: ItemTable | None, columns: tuple[str, ...]) -> str:
    """What the data lacks, half a sentence; empty if nothing."""
    if table is None or not table.known:
        expected = "expected a file with columns item and title (data import --items FILE)"
        return f"nothing is known of the items but their ids; {expected}"
    for name in columns:
        if name not in table.columns:
            known = ", ".join(table.columns)
            return f"the item table has no column {name!r}; expected one of {known}{suggestion(name, table.columns)}"
    return ""


def _nothing() -> Tensor:
    return torch.zeros(0)


@lru_cache(maxsize=4)
def _matrix(table: ItemTable, most: int) -> Tensor:
    return torch.from_numpy(feature_matrix(table, most))


@lru_cache(maxsize=2)
def _kernel(table: ItemTable) -> Tensor:
    vectors = term_vectors(table)
    return torch.from_numpy((vectors @ vectors.T).toarray()).float().fill_diagonal_(0.0)
