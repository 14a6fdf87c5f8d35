"""From a request that was checked to the list it is answered with. No word of HTTP here."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import numpy as np

from ownview.base.errors import suggestion
from ownview.serve.asking import RefusedError
from ownview.serve.model import Floats, Mask, ServedModel, once_each
from ownview.serve.reranking import candidates, reranked, spread

_SAID, _GOOD_PART = 3, 0.2
"""An item is explained by at most three others, each but the first with this share of what speaks for it."""
_UNKNOWN_SHOWN = 20


def recommended(model: ServedModel, asked: Mapping[str, Any], in_stock: Mask | None) -> dict[str, Any]:
    """The list for a history, or for a known user.

    Args:
        model: that recommends.
        asked: the fields of `asking.RECOMMEND`.
        in_stock: [m]; None where no stock is kept.

    Raises:
        RefusedError: the request names a user, a column or a wish that the model does not have.
    """
    history, unknown = _history(model, asked)
    once = once_each(history)
    scores = model.scores(once)
    skipped = list(unknown)
    allowed = _allowed(model, asked, in_stock, skipped)
    if not asked["again"]:
        allowed[once] = False
    d, c, k = asked["diversity"], asked["popularity"], asked["k"]
    if d + c > 1:
        raise RefusedError(f"diversity {d:g} and popularity {c:g}: expected numbers that add up to 1 at most")
    if c and model.group is None:
        raise RefusedError(
            "popularity: this model does not say how popular items are; expected one that was trained here"
        )
    best = best_items(scores, allowed, candidates(k) if d or c else k)
    if (d or c) and best:
        best = _spread_out(model, once, scores, best, asked)
    items = [{"item": model.items[i][0], "title": model.items[i][1], "score": float(scores[i])} for i in best]
    if asked["explain"]:
        for one, because in zip(items, explained(model, once, best), strict=True):
            one["because"] = because
    answer: dict[str, Any] = {"model": model.version, "recommendations": items}
    if skipped:
        answer["unknown"] = {"count": len(skipped), "ids": list(dict.fromkeys(skipped))[:_UNKNOWN_SHOWN]}
    return answer


def similar(model: ServedModel, item: str, k: int, in_stock: Mask | None) -> dict[str, Any]:
    """Items like one item: what a history of that item alone is recommended; between vectors, the nearest by cosine."""
    place = model.place.get(item)
    if place is None:
        raise RefusedError(f"item {item!r}: no such item", HTTPStatus.NOT_FOUND)
    if model.form["kind"] == "factors":
        scores = model.reasons([place], range(model.size))[:, 0]
    else:
        scores = model.scores([place]) - (model.arrays["bias"] if model.form["bias"] else 0.0)
    allowed = np.ones(model.size, dtype=bool) if in_stock is None else in_stock.copy()
    allowed[place] = False
    best = best_items(scores, allowed, k)
    items = [{"item": model.items[i][0], "title": model.items[i][1], "score": float(scores[i])} for i in best]
    return {"model": model.version, "similar": items}


def titled(model: ServedModel, prefix: str, k: int) -> dict[str, Any]:
    """Items by what a person types of a title."""
    items = [{"item": model.items[i][0], "title": model.items[i][1]} for i in model.titles.find(prefix, k)]
    return {"model": model.version, "items": items}


def best_items(scores: Floats, allowed: Mask, k: int) -> list[int]:
    """The k best allowed items; of equal ones the first."""
    kept = np.where(allowed & np.isfinite(scores), scores, -np.inf)
    if k < len(kept):
        least = np.partition(kept, len(kept) - k)[len(kept) - k]
        places = np.flatnonzero(kept >= least)
    else:
        places = np.arange(len(kept))
    order = places[np.argsort(-kept[places], kind="stable")][:k]
    found: list[int] = order[kept[order] > -np.inf].tolist()
    return found


def explained(model: ServedModel, once: list[int], best: list[int]) -> list[list[dict[str, Any]]]:
    """For every listed item what speaks most for it, with its share of all that does."""
    found = []
    for row in model.reasons(once, best) if once else np.zeros((len(best), 0)):
        order = [place for place in np.argsort(-row, kind="stable").tolist() if row[place] > 0]
        total = float(row[order].sum())
        said = [place for rank, place in enumerate(order[:_SAID]) if rank == 0 or row[place] > _GOOD_PART * total]
        found.append(
            [{"item": model.items[i][0], "title": model.items[i][1], "share": round(float(row[place]) / total, 4)}
             for place in said for i in (once[place],)]
        )  # fmt: skip
    return found


def _history(model: ServedModel, asked: Mapping[str, Any]) -> tuple[list[int], list[str]]:
    if ("history" in asked) == ("user" in asked):
        both = "both history and user" if "user" in asked else "neither history nor user"
        raise RefusedError(f"found {both}; expected one of them")
    if "history" in asked:
        return model.found(list(map(str, asked["history"])))
    history = model.history_of(str(asked["user"]))
    if history is None:
        why = "no such user" if model.users else "this model knows no users; expected a history"
        raise RefusedError(f"user: {why}", HTTPStatus.NOT_FOUND)
    return history, []


def _allowed(model: ServedModel, asked: Mapping[str, Any], in_stock: Mask | None, skipped: list[str]) -> Mask:
    """[m] what may be listed; ids that are unknown are added to `skipped`."""
    allowed = in_stock.copy() if in_stock is not None and asked["in_stock"] else np.ones(model.size, dtype=bool)
    if "only" in asked:
        places, unknown = model.found([str(one) for one in asked["only"]])
        only = np.zeros(model.size, dtype=bool)
        only[places] = True
        allowed &= only
        skipped += unknown
    if "exclude" in asked:
        places, unknown = model.found([str(one) for one in asked["exclude"]])
        allowed[places] = False
        skipped += unknown
    for column, values in asked.get("where", {}).items():
        if column not in model.columns:
            near = suggestion(column, model.columns) or "; this model has no columns about items"
            raise RefusedError(f"where: no column {column[:40]!r}{near}")
        allowed &= model.having(column, values)
    return allowed


def _spread_out(
    model: ServedModel, once: list[int], scores: Floats, best: list[int], asked: Mapping[str, Any]
) -> list[int]:
    group, taste = None, None
    if asked["popularity"]:
        assert model.group is not None
        group = model.group[best]
        taste = spread(model.group[once].tolist(), int(model.group.max()) + 1)
    likeness = model.likeness(best) if asked["diversity"] else np.zeros((len(best), len(best)))
    chosen = reranked(
        scores[best], likeness, asked["diversity"], group, taste, asked["popularity"], asked["k"]
    )  # fmt: skip
    return [best[place] for place in chosen]
