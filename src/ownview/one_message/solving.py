"""From what was opened to weights that pages score with.

Without a budget items that fewer than `min_people` had are left out before anything is solved, and pairs that may be
one person's (together at most what one person can add) are spread evenly over all such pairs, as in a published page.
Under a budget nothing is left out by exact counts: there are none.

Text at home (`parts.text.text_beside`) stands beside what the sums say where a table of the items is given: it is
public, so no message is needed for it, and no budget is spent.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ownview.base.errors import SettingError
from ownview.base.items.item_table import ItemTable
from ownview.baselines.markov import Markov
from ownview.baselines.parts.counting import cells_of
from ownview.methods.fednext.rank import RankForm
from ownview.one_message.next import vectors_of
from ownview.one_message.tables import STEP
from ownview.one_message.terms import Terms
from ownview.parts.pairs.private_pairs import weights_above
from ownview.parts.pairs.takers import require_counted
from ownview.parts.text.text_beside import UNDER_A_BUDGET, loudness, loudness_through
from ownview.registry import find_model
from ownview.seam.portable import Linear, Term
from ownview.seam.roles import HELD, RECEIVED
from ownview.seam.server import Arrived, Sums
from ownview.seam.training import Params, World

_MARGIN = 1.1
"""Eigenvalues must be above the edge of the noise by so much, as in `parts.private_pairs`."""


class Solved(NamedTuple):
    """form: for the items `ids`, some of the agreement's; rule: what was left out."""

    form: Linear
    ids: list[str]
    rule: str


def solve(
    terms: Terms,
    total: Any,
    batches: int,
    people: int,
    settings: Mapping[str, Any],
    min_people: int,
    about: ItemTable | None = None,
) -> Solved:
    """Weights of a sum [n] of whole numbers over so many people; with the text of the agreement's items, `about`."""
    settings = _with_text(terms, settings, about)
    if terms.method == "fedease":
        return _pairs(terms, total, batches, people, settings, min_people, about)
    if terms.method == "counts":
        return _counts(terms, total, min_people)
    if terms.budget is None and min_people > 1:
        raise SettingError(
            f"setting min_people={min_people}: FedNext's sums do not say how many had an item; expected 1, which "
            "leaves nothing out, or an agreement under a budget"
        )
    return Solved(_next(terms, total, people, settings, about), list(terms.items), "nothing is left out")


def _with_text(terms: Terms, settings: Mapping[str, Any], about: ItemTable | None) -> Mapping[str, Any]:
    """Settings with the weight of text: that of private forms under a budget, where none was set."""
    if about is None:
        if settings.get("text"):
            raise SettingError(f"setting text={settings['text']}: expected --items FILE too, which has the items' text")
        return settings
    if terms.method == "counts":
        raise SettingError("--items: counts have no place for text; expected an agreement of fedease or fednext")
    if "text" not in settings and terms.budget is None:
        raise SettingError("--items: expected --set text=W too, its weight beside the sums; 10 is a beginning")
    return {"text": UNDER_A_BUDGET, **settings}


def _pairs(
    terms: Terms,
    total: Any,
    batches: int,
    people: int,
    settings: Mapping[str, Any],
    min_people: int,
    about: ItemTable | None,
) -> Solved:
    m = len(terms.items)
    gram = np.zeros((m, m), dtype=np.int64)
    gram[np.triu_indices(m)] = total
    gram += np.triu(gram, 1).T
    model: Any = find_model("fedease")(**{**_settings(terms), **settings})
    if terms.budget is not None:
        require_counted(model.title, model.takers, "under a budget few people are as good as none in the noise")
        budget = terms.budget
        drawn = 2 * batches * terms.groups  # by each server, for each group of a batch
        edge = _MARGIN * 2 * math.sqrt(drawn) * budget.noise * math.sqrt(m)
        weights = weights_above(torch.from_numpy(gram / budget.clip), model.regularization, edge)
        form = Linear((Term(weights.float(), model.recency),))
        world = World(people, m, order="rows", items=about)
        form = model.portable_with_text(form, {"loud": loudness(weights.float())}, world)
        return Solved(form, list(terms.items), "the budget covers all items")
    kept = np.flatnonzero(gram.diagonal() >= min_people * terms.table[0])
    if len(kept) < 2:
        raise SettingError(f"setting min_people={min_people}: fewer than two items were had by so many")
    gram = gram[kept[:, None], kept]
    values, single = gram / STEP, (gram <= max(terms.table)) & ~np.eye(len(kept), dtype=bool)
    if min_people > 1 and single.any():
        values[single] = values[single].mean()
    known = about and about.select(kept.tolist())
    world = World(people, len(kept), order="rows", items=known)
    form = _combined(model, {"pairs": torch.from_numpy(values)}, world, 1)
    rule = f"left out: {m - len(kept):,} items that fewer than {min_people} had" if min_people > 1 else "nothing"
    return Solved(form, [terms.items[item] for item in kept.tolist()], rule)


def _counts(terms: Terms, total: Any, min_people: int) -> Solved:
    m = len(terms.items)
    if terms.budget is None and min_people > 1:
        raise SettingError(
            f"setting min_people={min_people}: counts are of rows, and do not say how many people had an item; "
            "expected 1, which leaves nothing out, or an agreement under a budget"
        )
    counts = np.maximum(total, 0)
    learned = Markov().learned_from({"rows": cells_of(counts[:m]), "steps": cells_of(counts[m:])}, m)
    form = Markov().portable(learned)
    assert isinstance(form, Linear)
    return Solved(form, list(terms.items), "nothing is left out")


def _next(terms: Terms, total: Any, people: int, settings: Mapping[str, Any], about: ItemTable | None) -> Linear:
    assert terms.next is not None
    tables, m = terms.next, len(terms.items)
    rank, scales = tables.get("rank", 0), len(tables["past"])
    wide = scales * (rank or m)
    begin = wide * (wide + 1) // 2
    pasts = np.zeros((wide, wide))
    pasts[np.triu_indices(wide)] = total[:begin]
    pasts += np.triu(pasts, 1).T
    follows = total[begin:].astype(np.float64)
    model: Any = find_model("fednext")(**{**_settings(terms), **settings, "rank": rank})
    world = World(people, m, order="rows", items=about)
    if not rank:
        sums = {"pasts": torch.from_numpy(pasts / STEP), "follows": torch.from_numpy(follows / STEP).reshape(wide, m)}
        return _combined(model, sums, world, 1)
    require_counted(model.title, model.takers, "in the rank form it is not counted who has taken an item")
    unit = float(tables["unit"])
    vectors = torch.from_numpy(vectors_of(tables) / unit)
    scale = 2.0 ** tables["down"]
    sums = {
        "pasts": torch.from_numpy(pasts * scale / unit**2),
        "follows": torch.from_numpy(follows / unit).reshape(m, wide),
    }
    form = RankForm(world, model)
    empty = {name: torch.zeros_like(value) for name, value in sums.items()}
    new = form.combine(sums, empty, Arrived(model.iterations + 1, people))
    received = {"vectors": vectors.float(), "next": new["next"].float()}
    linear = model.portable({**received, "loud": loudness_through(*received.values())}, world)
    assert isinstance(linear, Linear)
    return linear


def _combined(model: Any, sums: Params, world: World, number: int) -> Linear:
    """The method's own server at work on the sums of round `number`, and its portable form."""
    combine = model.server(world).combine
    assert isinstance(combine, Sums)
    values: dict[str, Tensor] = {
        name: one.drawn(name, world.num_items, 0).double()
        for name, one in model.client(world).params.items()
        if one.role in (HELD, RECEIVED)
    }
    new = combine.combine(sums, values, Arrived(number, world.num_clients))
    received = {name: value.float() for name, value in {**values, **new}.items()}
    form = model.portable(received, world)
    assert isinstance(form, Linear)
    return form


def _settings(terms: Terms) -> dict[str, Any]:
    """As the method takes them."""

    def read(value: Any) -> Any:
        return tuple(map(read, value)) if isinstance(value, list) else math.inf if value == "inf" else value

    return {name: read(value) for name, value in terms.settings.items()}
