"""Lists: scores as the portable form has them, filters, re-ranking by its formula, explanations that add up."""

from __future__ import annotations

import json
from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from ownview.serve.asking import MOST_HISTORY, RECOMMEND, RefusedError, from_body
from ownview.serve.listing import best_items, recommended, similar
from ownview.serve.model import ServedModel, once_each, popularity_groups
from ownview.serve.reranking import reranked, spread
from ownview.serve.titles import TitleSearch
from tests.pages.worlds import KINDS, histories
from tests.serve.worlds import fitted


def _asked(**fields: Any) -> dict[str, Any]:
    return from_body(json.dumps(fields).encode(), RECOMMEND)


def _ids(answer: dict[str, Any]) -> list[str]:
    return [one["item"] for one in answer["recommendations"]]


def _of(model: ServedModel, history: list[int]) -> list[str]:
    return [model.items[i][0] for i in history]


@pytest.mark.parametrize("kind", KINDS)
def test_scores_and_lists_are_those_of_the_portable_form(kind: str, served_folder: Callable[[str], Path]) -> None:
    folder = served_folder(kind)
    form: Any = fitted(folder.parent, kind).loaded().trainer.portable()
    model = ServedModel(folder)
    for history in histories(20):
        expected = form.scores(torch.tensor(history)).numpy()
        np.testing.assert_allclose(model.scores(history), expected, rtol=1e-5, atol=1e-6)
        answer = recommended(model, _asked(history=_of(model, history), k=5), None)
        order = [i for i in np.argsort(-model.scores(history), kind="stable").tolist() if i not in history]
        assert _ids(answer) == _of(model, order[:5])


@pytest.mark.parametrize("kind", ["whole", "rows", "product"])
def test_what_speaks_for_an_item_adds_up_to_its_score(kind: str, served_folder: Callable[[str], Path]) -> None:
    model = ServedModel(served_folder(kind))
    bias = model.arrays["bias"] if model.form["bias"] else np.zeros(model.size)
    for history in histories(10):
        once = once_each(history)
        added = model.reasons(once, range(model.size)).sum(1)
        np.testing.assert_allclose(added + bias, model.scores(once), rtol=1e-9, atol=1e-9)


def test_explanations_name_items_of_the_history_alone_and_at_most_three(model: ServedModel) -> None:
    history = _of(model, histories(1)[0])
    for one in recommended(model, _asked(history=history, explain=True), None)["recommendations"]:
        assert len(one["because"]) <= 3
        assert {why["item"] for why in one["because"]} <= set(history)
        assert sum(why["share"] for why in one["because"]) <= 1.001


def test_a_known_user_is_answered_as_with_the_history(model: ServedModel) -> None:
    known = model.history_of("u3")
    assert known
    by_user, by_history = (
        recommended(model, _asked(**one), None) for one in ({"user": "u3"}, {"history": _of(model, known)})
    )
    assert by_user == by_history


def test_filters(model: ServedModel) -> None:
    history = _of(model, [0, 7, 12])
    plain = _ids(recommended(model, _asked(history=history, k=70), None))
    assert not {*plain} & {*history}
    assert _ids(recommended(model, _asked(history=history, k=70, exclude=plain[:3]), None)) == plain[3:]
    assert _ids(recommended(model, _asked(history=history, k=70, only=[plain[5], plain[2]]), None)) == [
        plain[2],
        plain[5],
    ]
    assert {*history} <= {*_ids(recommended(model, _asked(history=history, k=70, again=True), None))}
    stock = np.zeros(model.size, dtype=bool)
    stock[model.place[plain[4]]] = True
    assert _ids(recommended(model, _asked(history=history), stock)) == [plain[4]]
    assert _ids(recommended(model, _asked(history=history, k=70, in_stock=False), stock)) == plain


def test_items_of_a_category(model: ServedModel) -> None:
    columns = model.columns
    cells = [frozenset({"a|b", "a", "b"}) if i % 7 == 0 else frozenset({"c"}) for i in range(model.size)]
    model.columns = {"category": cells}
    try:
        found = recommended(model, _asked(history=[], k=70, where={"category": ["B", "nothing"]}), None)
        assert {model.place[one] for one in _ids(found)} == set(range(0, model.size, 7))
        with pytest.raises(RefusedError, match="did you mean 'category'"):
            recommended(model, _asked(history=[], where={"categry": ["a"]}), None)
    finally:
        model.columns = columns


def test_unknown_ids_are_skipped_and_named(model: ServedModel) -> None:
    history = _of(model, [3, 9])
    plain = recommended(model, _asked(history=history), None)
    mixed = recommended(model, _asked(history=["no-such", history[0], "nor-this", history[1]]), None)
    assert mixed.pop("unknown") == {"count": 2, "ids": ["no-such", "nor-this"]}
    assert mixed == plain


def test_diversity_and_popularity_follow_their_formula(model: ServedModel) -> None:
    chance = np.random.default_rng(5)
    scores = np.sort(chance.normal(size=30))[::-1].copy()
    likeness = chance.random((30, 30))
    likeness = np.maximum(likeness, likeness.T)
    group = chance.integers(0, 3, 30)
    taste = spread([0, 0, 1], 3)
    value = (scores - scores[-1]) / (scores[0] - scores[-1])
    for d, c in ((0.0, 0.0), (0.4, 0.0), (0.0, 0.5), (0.3, 0.3)):
        chosen: list[int] = []
        while len(chosen) < 8:

            def gain(i: int, chosen: list[int] = chosen, d: float = d, c: float = c) -> float:
                shares = np.bincount(group[[*chosen, i]], minlength=3) / (len(chosen) + 1)
                mixed = 0.99 * shares + 0.01 * taste
                divergence = sum(p * np.log(p / q) for p, q in zip(taste, mixed, strict=True) if p > 0)
                near = max((likeness[i, j] for j in chosen), default=0.0)
                return float((1 - d - c) * value[i] - d * near - c * divergence)

            chosen.append(max((i for i in range(30) if i not in chosen), key=gain))
        assert reranked(scores, likeness, d, group, taste, c, 8) == chosen
    assert chosen != list(range(8))


def test_likeness_lies_between_0_and_1_and_is_the_same_both_ways(served_folder: Callable[[str], Path]) -> None:
    for kind in KINDS:
        found = ServedModel(served_folder(kind)).likeness(range(30))
        np.testing.assert_allclose(found, found.T, atol=1e-12)
        assert found.min() >= 0
        assert found.max() == pytest.approx(1.0)


def test_groups_of_popularity_have_a_third_of_the_interactions_each() -> None:
    group = popularity_groups(np.array([1, 30, 1, 15, 15, 10, 10, 8]))
    assert group.tolist() == [2, 0, 2, 1, 1, 2, 2, 2]


def test_of_equal_items_the_first_comes_first() -> None:
    scores = np.array([1.0, 3.0, 1.0, 1.0, -np.inf, 2.0])
    assert best_items(scores, np.ones(6, dtype=bool), 4) == [1, 5, 0, 2]
    assert best_items(scores, np.ones(6, dtype=bool), 40) == [1, 5, 0, 2, 3]


def test_similar_items_are_not_the_item_itself(served_folder: Callable[[str], Path]) -> None:
    for kind in KINDS:
        model = ServedModel(served_folder(kind))
        found = similar(model, model.items[8][0], 5, None)["similar"]
        assert len(found) == 5
        assert model.items[8][0] not in {one["item"] for one in found}
        with pytest.raises(RefusedError, match="no such item") as refused:
            similar(model, "none", 5, None)
        assert refused.value.status == HTTPStatus.NOT_FOUND


def test_titles_by_what_is_typed() -> None:
    titles = [
        "Harry Potter and the Half-Blood Prince — J.K. Rowling",
        "The Prince (Penguin)",
        "Prince",
        "Écoute, petit prince",
    ]
    search = TitleSearch(titles, [3, 0, 1, 2])
    assert search.find("prince", 9) == [2, 3, 0, 1]
    assert search.find("ECOUTE pri", 9) == [3]
    assert search.find("the prince", 9) == [1, 0]
    assert search.find("row har", 9) == [0]
    assert search.find("  --", 9) == []
    assert search.find("rincex", 9) == []


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({}, "neither history nor user"),
        ({"history": [], "user": "u1"}, "both history and user"),
        ({"user": "nobody-of-that-name"}, "no such user"),
        ({"history": [], "diversity": 0.7, "popularity": 0.7}, "add up to 1"),
    ],
)
def test_what_cannot_be_is_one_line(fields: dict[str, Any], said: str, model: ServedModel) -> None:
    with pytest.raises(RefusedError, match=said):
        recommended(model, _asked(**fields), None)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"{", "no JSON"),
        (b"[1]", "an array; expected an object"),
        (b"\xff", "no JSON"),
        (b"[" * 100_000, "no JSON"),
        (b'{"history": "1"}', "history: found text; expected array"),
        (b'{"history": [["1"]]}', "item 0: found an array"),
        (b'{"history": [], "k": true}', "k: found a boolean; expected integer"),
        (b'{"history": [], "k": 1e400}', "k: found a number; expected integer"),
        (b'{"history": [], "diversity": NaN}', "diversity: found nan; expected 0 to 1"),
        (b'{"histroy": []}', "did you mean 'history'"),
        (b'{"k": 0, "agian": 1}', "k: found 0; expected 1 to 1000; 'agian': no such field; did you mean 'again'"),
        (json.dumps({"history": ["x" * 300]}).encode(), "300 characters; expected 256 at most"),
        (json.dumps({"history": ["1"] * (MOST_HISTORY + 1)}).encode(), "10,001 items; expected 10,000 at most"),
    ],
)  # fmt: skip
def test_a_body_is_checked_against_its_description(body: bytes, said: str) -> None:
    with pytest.raises(RefusedError) as refused:
        from_body(body, RECOMMEND)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)
