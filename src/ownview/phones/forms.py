"""Portable forms in ONNX: sums over a history, a vector folded in, a network, and several together.

Each function takes the history as it was given, [L] positions of items, oldest first, and gives scores [m]. What a form
takes every item once for takes it latest first: [n] then stands for the different items, and behind them stands item 0
with weight 0, so that no sum is over nothing.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from torch import Tensor

from ownview.phones.attention import attended
from ownview.phones.graph import BOOL, DOUBLE, FIRST, FLOAT, Graph
from ownview.phones.solving import solved
from ownview.seam.portable import Attention, Blended, Factors, Linear, LowRank, Ridge, SparseRows, Term


def scored(graph: Graph, form: Linear | Factors | Attention | Blended, history: str, m: int, after_pause: str) -> str:
    """[m] in single precision.

    Args:
        graph: gets the operations.
        form: for m items.
        history: [L].
        m: items.
        after_pause: [1] 1 where the latest item is from before a pause, else 0.
    """
    if isinstance(form, Attention):
        return attended(graph, form, history)
    if isinstance(form, Blended):
        return _blended(graph, form, history, m, after_pause)
    latest = different(graph, history)
    if isinstance(form, Linear):
        return _linear(graph, form, latest, m)
    return _factors(graph, form, latest, m)


def different(graph: Graph, history: str) -> str:
    """[n] the different items of a history, the latest first."""
    backwards = graph.op("Slice", history, graph.ints(-1), graph.ints(FIRST), graph.ints(0), graph.ints(-1))
    return graph.op("Unique", backwards, sorted=0)


def _floats(values: Tensor) -> npt.NDArray[np.float32]:
    return np.asarray(values.detach().float().numpy())


def _linear(graph: Graph, form: Linear, latest: str, m: int) -> str:
    total = graph.constant(np.zeros(m) if form.bias is None else _floats(form.bias))
    for term in form.terms:
        total = graph.op("Add", total, _term(graph, term, latest, m))
    return total


def _term(graph: Graph, term: Term, latest: str, m: int) -> str:
    if term.most is not None:
        latest = graph.op("Slice", latest, graph.ints(0), graph.ints(term.most), graph.ints(0))
    places = graph.cast(graph.upto(graph.size(latest)), FLOAT)
    faded = graph.op("Exp", graph.op("Mul", places, graph.constant(-1 / term.fades)))  # of -0 where nothing fades
    counts = graph.op("Concat", faded, graph.constant([0.0]), axis=0)
    items = graph.op("Concat", latest, graph.ints(0), axis=0)
    match term.weights:
        case LowRank(left, right):
            mine = graph.op("Gather", graph.constant(_floats(left)), items, axis=0)
            return graph.product(graph.product(counts, mine), graph.constant(_floats(right)))
        case SparseRows(offsets, columns, values):
            nothing = graph.constant(np.zeros(m))
            by_item = graph.op("ScatterElements", nothing, items, counts, axis=0, reduction="add")
            owners = np.repeat(np.arange(m), np.diff(offsets.numpy()))
            count = graph.op("Gather", by_item, graph.constant(owners, np.int32), axis=0)
            weighed = graph.op("Mul", graph.constant(_floats(values)), count)
            where = graph.constant(columns.numpy(), np.int32)
            return graph.op("ScatterElements", nothing, where, weighed, axis=0, reduction="add")
        case whole:
            return graph.product(counts, graph.op("Gather", graph.constant(_floats(whole)), items, axis=0))


def _factors(graph: Graph, form: Factors, latest: str, m: int) -> str:
    """The vector is found in double precision: elimination loses digits where vectors are nearly alike."""
    d, single = form.items.shape[1], graph.constant(_floats(form.items))
    bias = graph.constant(np.zeros(m) if form.bias is None else _floats(form.bias))
    number = graph.cast(graph.size(latest), DOUBLE)
    if isinstance(form.fold_in, Ridge):
        vector = _ridge(graph, form, form.fold_in, latest, number)
    else:
        vector = _logistic(graph, form, latest, number, graph.cast(single, DOUBLE), graph.cast(bias, DOUBLE))
    some = graph.op("Greater", number, graph.constant(0.0, np.float64))
    vector = graph.op("Where", some, graph.cast(vector, FLOAT), graph.constant(np.zeros((d, 1))))
    return graph.op("Add", graph.flat(graph.op("MatMul", single, vector)), bias)


def _ridge(graph: Graph, form: Factors, how: Ridge, latest: str, number: str) -> str:
    """[d, 1]."""
    d, every = form.items.shape[1], form.items.double().numpy()
    items = graph.op("Concat", latest, graph.ints(0), axis=0)
    real = graph.op("Less", graph.upto(graph.size(items)), graph.size(latest))
    mine = graph.cast(graph.op("Gather", graph.constant(_floats(form.items)), items, axis=0), DOUBLE)
    mine = graph.op("Mul", mine, graph.column(graph.cast(real, DOUBLE)))
    squares = graph.across(mine, mine)
    weight = graph.op("Pow", graph.op("Add", number, _double(graph, how.count)), _double(graph, how.exponent))
    diagonal = graph.op("Mul", graph.op("Mul", weight, _double(graph, how.ridge)), _double(graph, np.eye(d)))
    left = graph.op("Add", graph.op("Mul", squares, _double(graph, how.seen)), diagonal)
    left = graph.op("Add", left, _double(graph, how.every * every.T @ every))
    total = graph.column(graph.op("ReduceSum", mine, graph.ints(0), keepdims=0))
    return solved(graph, left, graph.op("Mul", total, _double(graph, how.target)), d)


def _logistic(graph: Graph, form: Factors, latest: str, number: str, items: str, bias: str) -> str:
    """[d, 1]."""
    how, (m, d) = form.fold_in, form.items.shape
    assert not isinstance(how, Ridge)
    one = _double(graph, 1.0)
    ones = graph.op("Expand", one, graph.op("Shape", latest))
    seen = graph.op("ScatterElements", _double(graph, np.zeros(m)), latest, ones, axis=0)
    others = graph.op("Max", graph.op("Sub", _double(graph, m), number), one)  # with no others, no item has this weight
    share = graph.op("Div", graph.op("Mul", number, _double(graph, how.negatives)), others)
    weight = graph.op("Where", graph.cast(seen, BOOL), one, share)
    bound = graph.across(graph.op("Mul", items, graph.column(weight)), items)
    bound = graph.op("Add", graph.op("Div", bound, _double(graph, 4.0)), _double(graph, how.ridge * np.eye(d)))
    inverse = solved(graph, bound, _double(graph, np.eye(d)), d)
    vector = _double(graph, np.zeros((d, 1)))
    for _ in range(how.steps):
        chance = graph.op("Sigmoid", graph.op("Add", graph.flat(graph.op("MatMul", items, vector)), bias))
        error = graph.op("Mul", weight, graph.op("Sub", chance, seen))
        slope = graph.across(items, graph.column(error))
        slope = graph.op("Add", slope, graph.op("Mul", vector, _double(graph, how.ridge)))
        vector = graph.op("Sub", vector, graph.op("MatMul", inverse, slope))
    return vector


def _blended(graph: Graph, form: Blended, history: str, m: int, after_pause: str) -> str:
    now, late = (graph.constant(weights, np.float64) for weights in form.weights)
    weights = graph.op("Where", graph.cast(after_pause, BOOL), late, now)
    total = _double(graph, np.zeros(m))
    for place, part in enumerate(form.parts):
        scores = graph.cast(scored(graph, part, history, m, after_pause), DOUBLE)
        centred = graph.op("Sub", scores, graph.op("ReduceMean", scores, axes=[0], keepdims=1))
        wide = graph.op("Sqrt", graph.op("ReduceMean", graph.op("Mul", centred, centred), axes=[0], keepdims=1))
        alike = graph.op("Div", centred, graph.op("Max", wide, _double(graph, 1e-12)))
        weight = graph.op("Gather", weights, graph.ints(place), axis=0)
        total = graph.op("Add", total, graph.op("Mul", weight, alike))
    return graph.cast(total, FLOAT)


def _double(graph: Graph, values: npt.ArrayLike) -> str:
    return graph.constant(values, np.float64)
