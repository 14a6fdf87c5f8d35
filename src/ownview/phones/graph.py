"""A computation in ONNX, written operation by operation: names in, the name of the result out."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import ModelProto, TensorProto, ValueInfoProto, checker, helper, numpy_helper

OPSET, IR = 17, 8
"""What the file asks of a runtime: ONNX 1.12 of 2022, with layer normalisation and sums where places repeat."""

FLOAT, DOUBLE, INT, BOOL = TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.INT64, TensorProto.BOOL
FIRST, LAST = -(2**63) + 1, 2**63 - 1
"""As ends of a slice: everything down to the first value, and up to the last."""


class Graph:
    """Operations, and the constants that they read. Names are numbers; inputs and outputs have names of their own."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self._named: dict[tuple[str, tuple[int, ...], bytes], str] = {}
        self._count = 0

    def name(self) -> str:
        """A new one."""
        self._count += 1
        return f"n{self._count}"

    def op(self, kind: str, *inputs: str, name: str = "", **attributes: Any) -> str:
        """The result of an operation, which has its result's name: older runtimes mix up operations without one."""
        made = name or self.name()
        self.nodes.append(helper.make_node(kind, list(inputs), [made], name=made, **attributes))
        return made

    def best(self, scores: str, k: str, name: str) -> None:
        """Give the k [1] places with the highest scores a name, the highest first; of equal ones the first place."""
        self.nodes.append(helper.make_node("TopK", [scores, k], [self.name(), name], name=name, axis=0))

    def constant(self, values: npt.ArrayLike, kind: type = np.float32) -> str:
        """An array; the same one is kept once."""
        array: npt.NDArray[Any] = np.ascontiguousarray(np.asarray(values, dtype=kind)).reshape(np.shape(values))
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self._named:
            self._named[key] = self.name()
            self.constants.append(numpy_helper.from_array(array, self._named[key]))
        return self._named[key]

    def ints(self, *values: int) -> str:
        """[n] whole numbers."""
        return self.constant(values, np.int64)

    def size(self, values: str) -> str:
        """[] how many values there are."""
        return self.op("Size", values)

    def column(self, values: str) -> str:
        """[n] as [n, 1]."""
        return self.op("Unsqueeze", values, self.ints(1))

    def row(self, values: str) -> str:
        """[n] as [1, n]."""
        return self.op("Unsqueeze", values, self.ints(0))

    def flat(self, values: str) -> str:
        """Any shape as [n]."""
        return self.op("Reshape", values, self.ints(-1))

    def product(self, vector: str, matrix: str) -> str:
        """[b] of [a] and [a, b]."""
        return self.flat(self.op("MatMul", self.row(vector), matrix))

    def across(self, left: str, right: str) -> str:
        """[a, b] left^T right of [n, a] and [n, b]; a transposed MatMul in double precision fails in older runtimes."""
        return self.op("Gemm", left, right, transA=1)

    def upto(self, count: str) -> str:
        """[n] 0, 1, ..., n - 1."""
        return self.op("Range", self.constant(0, np.int64), count, self.constant(1, np.int64))

    def cast(self, values: str, kind: int) -> str:
        """In another kind of number."""
        return self.op("Cast", values, to=kind)


def value(name: str, kind: int, shape: list[int | str]) -> ValueInfoProto:
    """An input or an output; a dimension that is a word can have any size."""
    return helper.make_tensor_value_info(name, kind, shape)


def made(
    graph: Graph, inputs: list[ValueInfoProto], outputs: list[ValueInfoProto], facts: dict[str, str], version: str
) -> ModelProto:
    """The file's content, checked by ONNX's own rules."""
    whole = helper.make_graph(graph.nodes, "recommend", inputs, outputs, graph.constants)
    model = helper.make_model(
        whole, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR, producer_name="ownview",
        producer_version=version,
    )  # fmt: skip
    helper.set_model_props(model, facts)
    checker.check_model(model, full_check=True)
    return model
