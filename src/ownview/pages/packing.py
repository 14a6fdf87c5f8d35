"""A portable form as plain data: a description that JSON can hold, and arrays by name."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from torch import Tensor

from ownview.seam.portable import Factors, Linear, LowRank, Ridge, SparseRows, Term

Arrays = dict[str, npt.NDArray[Any]]


class Packed(NamedTuple):
    """form: what the arrays are, in plain values; arrays: float32, and int64 for places."""

    form: dict[str, Any]
    arrays: Arrays


def pack(form: Linear | Factors) -> Packed:
    """Everything that a scorer needs.

    linear:  term0.weights [m, m]; or term0.offsets, .columns, .values; or term0.left, .right; and bias [m]
    factors: items [m, d] and bias [m]
    """
    arrays: Arrays = {} if form.bias is None else {"bias": _floats(form.bias)}
    if isinstance(form, Factors):
        arrays["items"] = _floats(form.items)
    else:
        for place, term in enumerate(form.terms):
            arrays |= {f"term{place}.{name}": value for name, value in _weights(term).items()}
    return Packed(described(form), arrays)


def described(form: Linear | Factors) -> dict[str, Any]:
    """What the arrays of a form are; what is infinite is None."""
    common = {"bias": form.bias is not None}
    if isinstance(form, Factors):
        kind = "ridge" if isinstance(form.fold_in, Ridge) else "logistic"
        return {"kind": "factors", **common, "fold_in": {"kind": kind, **asdict(form.fold_in)}}
    terms = [
        {"weights": _kind(term), "fades": None if math.isinf(term.fades) else term.fades, "most": term.most}
        for term in form.terms
    ]
    return {"kind": "linear", **common, "terms": terms}


def _kind(term: Term) -> str:
    return {LowRank: "product", SparseRows: "rows"}.get(type(term.weights), "whole")


def _weights(term: Term) -> Arrays:
    match term.weights:
        case LowRank(left, right):
            return {"left": _floats(left), "right": _floats(right)}
        case SparseRows(offsets, columns, values):
            return {"offsets": offsets.numpy(), "columns": columns.numpy(), "values": _floats(values)}
        case whole:
            return {"weights": _floats(whole)}


def _floats(values: Tensor) -> npt.NDArray[np.float32]:
    return np.ascontiguousarray(values.detach().float().numpy())
