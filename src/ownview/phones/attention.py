"""The transformer of `parts.sequences.transformer` in ONNX, without what only training does."""

from __future__ import annotations

import math

import numpy as np

from ownview.phones.graph import FLOAT, LAST, Graph
from ownview.seam.portable import Attention

_ALMOST_NOTHING = 1e-8
"""Added to a variance before it divides, as in training."""


def attended(graph: Graph, form: Attention, history: str) -> str:
    """[m] scores after a history [L]."""
    values = {name: graph.constant(one.detach().float().numpy()) for name, one in form.values.items()}
    d = form.values["items"].shape[1]
    latest = graph.op("Slice", history, graph.ints(-form.network.length), graph.ints(LAST), graph.ints(0))
    real = graph.size(latest)
    width = graph.op("Max", real, graph.constant(1, np.int64))  # of an empty history one place, without an item
    items = graph.op("Slice", graph.op("Concat", latest, graph.ints(0), axis=0), graph.ints(0), graph.flat(width))
    t = graph.upto(width)
    ends = graph.op("Sub", width, graph.constant(1, np.int64))
    vectors = graph.op("Mul", graph.op("Gather", values["items"], items, axis=0), graph.constant(math.sqrt(d)))
    vectors = graph.op("Mul", vectors, graph.column(graph.cast(graph.op("Less", t, real), FLOAT)))
    x = graph.op("Add", vectors, graph.op("Gather", values["places"], graph.op("Sub", ends, t), axis=0))
    ahead = graph.op("Greater", graph.row(t), graph.column(t))
    apart = graph.op("Max", graph.op("Sub", graph.column(t), graph.row(t)), graph.constant(0, np.int64))
    kernel = ""
    if form.network.frequency > 0:
        whole = graph.constant(form.network.low_pass(form.values["items"]).float().numpy())
        corner = graph.flat(width)
        for axis in (0, 1):
            whole = graph.op("Slice", whole, graph.ints(0), corner, graph.ints(axis))
        kernel = whole
    for k in range(form.network.blocks):
        normed = _normed(graph, values, f"block{k}.attention", x)
        seen = _attention(graph, values, f"block{k}.attention", normed, (ahead, apart), form.network.heads, d)
        if kernel:
            passed = _filtered(graph, values[f"block{k}.filter.root"], normed, kernel)
            seen = _mixed(graph, seen, passed, form.network.frequency)
        x = graph.op("Add", x, seen)
        x = graph.op("Add", x, _forward(graph, values, f"block{k}.forward", x))
    last = graph.op("Gather", _normed(graph, values, "last", x), graph.flat(ends), axis=0)
    table = values["items"]
    if form.network.temperature > 0:
        last = graph.op("LpNormalization", last, axis=-1, p=2)
        table = graph.constant(form.network.table(form.values).detach().float().numpy())
    return graph.flat(graph.op("MatMul", table, graph.op("Transpose", last, perm=[1, 0])))


def _normed(graph: Graph, values: dict[str, str], name: str, x: str) -> str:
    scale, shift = values[f"{name}.scale"], values[f"{name}.shift"]
    return graph.op("LayerNormalization", x, scale, shift, axis=-1, epsilon=_ALMOST_NOTHING)


def _filtered(graph: Graph, root: str, normed: str, kernel: str) -> str:
    low = graph.op("MatMul", kernel, normed)
    fast = graph.op("Mul", graph.op("Sub", normed, low), graph.op("Mul", root, root))
    return graph.op("Add", low, fast)


def _mixed(graph: Graph, left: str, right: str, share: float) -> str:
    kept = graph.op("Mul", left, graph.constant(1 - share))
    return graph.op("Add", kept, graph.op("Mul", right, graph.constant(share)))


def _attention(
    graph: Graph, values: dict[str, str], name: str, normed: str, places: tuple[str, str], heads: int, d: int
) -> str:
    """[W, d]; `places` are [W, W] whether the one of a column is ahead, and how far it is behind."""
    ahead, apart = places
    wide = graph.op("MatMul", normed, values[f"{name}.inward"])
    parts = graph.op("Reshape", wide, graph.ints(-1, 3, heads, d // heads))
    query, key, value = (
        graph.op("Gather", graph.op("Transpose", parts, perm=[1, 2, 0, 3]), graph.constant(k, np.int64), axis=0)
        for k in range(3)
    )
    near = graph.op("MatMul", query, graph.op("Transpose", key, perm=[0, 2, 1]))
    near = graph.op("Div", near, graph.constant(math.sqrt(d // heads)))
    if f"{name}.apart" in values:
        near = graph.op("Add", near, graph.op("Gather", values[f"{name}.apart"], apart, axis=1))
    weights = graph.op("Softmax", graph.op("Where", ahead, graph.constant(-np.inf), near), axis=-1)
    mean = graph.op("Transpose", graph.op("MatMul", weights, value), perm=[1, 0, 2])
    return graph.op("MatMul", graph.op("Reshape", mean, graph.ints(-1, d)), values[f"{name}.outward"])


def _forward(graph: Graph, values: dict[str, str], name: str, x: str) -> str:
    inner = graph.op("MatMul", _normed(graph, values, name, x), values[f"{name}.inward"])
    inner = graph.op("Relu", graph.op("Add", inner, values[f"{name}.inward.bias"]))
    outer = graph.op("MatMul", inner, values[f"{name}.outward"])
    return graph.op("Add", outer, values[f"{name}.outward.bias"])
