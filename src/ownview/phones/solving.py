"""Linear equations in ONNX, which has no operation for them: Gauss-Jordan elimination, a step a turn of a loop."""

from __future__ import annotations

import numpy as np
from onnx import helper

from ownview.phones.graph import BOOL, DOUBLE, INT, LAST, Graph, value


def solved(graph: Graph, left: str, right: str, size: int) -> str:
    """[d, b] x of left x = right, in double precision.

    Args:
        graph: gets the operations.
        left: [d, d] symmetric and positive definite: no pivot is 0, and rows need not be exchanged.
        right: [d, b].
        size: d.
    """
    beside = graph.op("Concat", left, right, axis=1)
    true = graph.constant(True, np.bool_)
    body = _step(graph, graph.constant(np.eye(size), np.float64))
    done = graph.op("Loop", graph.constant(size, np.int64), true, beside, body=body)
    return graph.op("Slice", done, graph.ints(size), graph.ints(LAST), graph.ints(1))


def _step(outer: Graph, unit: str) -> object:
    """A <- A - (a_k - e_k) (A_k / A_kk), a_k the k-th column and A_k the k-th row: the k-th column becomes e_k."""
    step = Graph()
    step.name = outer.name  # type: ignore[method-assign] # names inside a loop are seen together with those outside
    turn, goes_on, before = outer.name(), outer.name(), outer.name()
    row = step.op("Gather", before, turn, axis=0)
    scaled = step.op("Div", row, step.op("Gather", row, turn, axis=0))
    column = step.op("Sub", step.op("Gather", before, turn, axis=1), step.op("Gather", unit, turn, axis=0))
    ones, zeros = step.constant([1], np.int64), step.constant([0], np.int64)
    outside = step.op("MatMul", step.op("Unsqueeze", column, ones), step.op("Unsqueeze", scaled, zeros))
    after, still = step.op("Sub", before, outside), step.op("Identity", goes_on)
    return helper.make_graph(
        step.nodes, "eliminate",
        [value(turn, INT, []), value(goes_on, BOOL, []), value(before, DOUBLE, ["d", "w"])],
        [value(still, BOOL, []), value(after, DOUBLE, ["d", "w"])], step.constants,
    )  # fmt: skip
