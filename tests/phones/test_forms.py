"""What a runtime makes of a file is what Python makes of the form: random numbers, histories of every shape."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest
import torch

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from ownview.parts.sequences.transformer import Transformer
from ownview.phones.checking import Runtime, compared
from ownview.phones.export import as_onnx
from ownview.phones.graph import IR, OPSET
from ownview.seam.portable import (
    Attention,
    Blended,
    Factors,
    Linear,
    Logistic,
    LowRank,
    Ridge,
    SparseRows,
    Term,
)  # fmt: skip
from ownview.seam.roles import RECEIVED

ITEMS, SIZE = 40, 6


def _drawn(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def _rows() -> SparseRows:
    some = _drawn(ITEMS, ITEMS, seed=3)
    some[some.abs() < 1.2] = 0
    some[7] = 0  # a row without any value
    there = some != 0
    offsets = torch.cat([torch.zeros(1, dtype=torch.long), there.sum(1).cumsum(0)])
    return SparseRows(offsets, there.nonzero()[:, 1], some[there])


def _network(blocks: int = 2, length: int = 5, **more: Any) -> Attention:
    network = Transformer(SIZE, blocks, 2, length, 0.3, **more)
    shapes = network.params(ITEMS, RECEIVED)
    return Attention(network, {name: _drawn(*one.shape, seed=k) for k, (name, one) in enumerate(shapes.items())})


WHOLE, BIAS = Term(_drawn(ITEMS, ITEMS), 3.0), _drawn(ITEMS, seed=5)
FORMS: dict[str, Any] = {
    "nothing but a bias": Linear((), BIAS),
    "whole": Linear((WHOLE,)),
    "whole, the latest three": Linear((Term(_drawn(ITEMS, ITEMS), math.inf, 3),), BIAS),
    "rows": Linear((Term(_rows(), 2.0),)),
    "product": Linear((Term(LowRank(_drawn(ITEMS, SIZE), _drawn(SIZE, ITEMS, seed=1))),)),
    "three terms": Linear((WHOLE, Term(_rows()), Term(LowRank(_drawn(ITEMS, 2), _drawn(2, ITEMS)), 1.0, 2)), BIAS),
    "ridge": Factors(_drawn(ITEMS, SIZE), Ridge(1.0, 0.05, 2.0, 0.3, 1.0, 0.5), BIAS),
    "ridge of the length alone": Factors(_drawn(ITEMS, SIZE), Ridge(1.0, 0.0, 1.0, 0.5, 0.0, 1.0)),
    "logistic": Factors(_drawn(ITEMS, SIZE), Logistic(4.0), BIAS),
    "network": _network(),
    "network of one block": _network(1, 50),
    "network with a filter": _network(2, 6, frequency=0.6, waves=2, widening=2),
    "network with a filter that sees all places": _network(2, 7, frequency=0.4, looks_back=False),
}
FORMS["blend"] = Blended(tuple(FORMS[one] for one in ("rows", "ridge", "network")), ((0.5, 0.2, 0.3), (0.1, 0.0, 0.9)))


def _histories() -> list[list[int]]:
    chance = random.Random(2)
    several = [chance.choices(range(ITEMS), k=chance.randint(1, 30)) for _ in range(30)]
    return [[], [0], [7], [3, 3, 3], [5, 9, 5, 1], list(range(ITEMS)), *several]


@pytest.mark.parametrize("name", FORMS)
def test_scores_and_lists_are_pythons(name: str) -> None:
    equal = compared(FORMS[name], as_onnx(FORMS[name], ITEMS, name), _histories())
    assert equal.histories == len(_histories())
    assert equal.difference < 1e-5
    assert equal.lists == 1
    assert equal.close


def test_another_model_is_not_close() -> None:
    file = as_onnx(FORMS["whole"], ITEMS, "whole")
    other = compared(Linear((Term(_drawn(ITEMS, ITEMS, seed=9), 3.0),)), file, _histories())
    assert not other.close
    assert other.lists < 0.5


def test_a_blend_has_other_weights_after_a_pause() -> None:
    form, runtime = FORMS["blend"], Runtime(as_onnx(FORMS["blend"], ITEMS, "blend"))
    history = [4, 8, 15]
    for late in (False, True):
        expected = form.scores(torch.tensor(history), after_pause=late).numpy()
        np.testing.assert_allclose(runtime.asked(history, after_pause=late)[0], expected, rtol=1e-4, atol=1e-5)
    now, later = (runtime.asked(history, after_pause=late)[0] for late in (False, True))
    assert np.abs(now - later).max() > 0.1


def test_no_more_is_listed_than_there_is() -> None:
    runtime = Runtime(as_onnx(FORMS["whole"], ITEMS, "whole"))
    assert len(runtime.asked([1, 2, 2], k=100)[1]) == ITEMS - 2
    assert len(runtime.asked([1, 2, 2], k=3)[1]) == 3
    assert runtime.asked(list(range(ITEMS)))[1] == []


def test_a_vector_that_hardly_can_be_found_is_found() -> None:
    """Nearly the same vectors: elimination in single precision would lose all digits."""
    items = _drawn(1, SIZE) + 1e-3 * _drawn(ITEMS, SIZE, seed=1)
    form = Factors(items, Ridge(1.0, 0.01, 1.0, 1e-6))
    assert compared(form, as_onnx(form, ITEMS, "ridge"), _histories()[1:]).difference < 1e-3


def test_the_file_says_what_it_asks_of_a_runtime() -> None:
    import onnx

    model = onnx.load_from_string(as_onnx(FORMS["blend"], ITEMS, "blend"))
    assert (model.ir_version, [(one.domain, one.version) for one in model.opset_import]) == (IR, [("", OPSET)])
    assert [one.name for one in model.graph.input] == ["history", "k", "after_pause"]
    assert [one.name for one in model.graph.output] == ["scores", "best"]
    assert {one.domain for one in model.graph.node} == {""}
