"""Whether the runtime recommends what Python does: onnxruntime runs the file, on people's histories."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnxruntime
import torch

from ownview.seam.portable import Attention, Blended, Factors, Linear

_CLOSE = 1e-4
"""Of the widest gap between two scores: the file counts in single precision, Python in double."""


class Equal(NamedTuple):
    """What a runtime's scores were beside Python's.

    runtime:    its name and version
    histories:  that were asked
    difference: the greatest, as a share of the widest gap between two scores of the same history
    lists:      share of lists of ten that have the same items in the same order
    """

    runtime: str
    histories: int
    difference: float
    lists: float

    @property
    def close(self) -> bool:
        """Whether the difference is one of rounding."""
        return self.difference <= _CLOSE

    def sentence(self) -> str:
        """For people."""
        return (
            f"{self.runtime} and Python: scores of {self.histories:,} histories differ by {self.difference:.1g} of "
            f"their range at most, {100 * self.lists:.1f} % of lists of ten are the same"
        )


class Runtime:
    """A file at work in onnxruntime."""

    def __init__(self, file: Path | bytes) -> None:
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        source = file if isinstance(file, bytes) else str(file)
        self.session: Any = onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
        self.inputs = {one.name for one in self.session.get_inputs()}

    def asked(self, history: Sequence[int], k: int = 10, *, after_pause: bool = False) -> tuple[Any, list[int]]:
        """[m] scores and the k best items that are not in the history."""
        given = {"history": np.array(history, dtype=np.int64), "k": np.array([k], dtype=np.int64)}
        if "after_pause" in self.inputs:
            given["after_pause"] = np.array([after_pause], dtype=np.int64)
        scores, best = self.session.run(["scores", "best"], given)
        return scores, best.tolist()


def compared(
    form: Linear | Factors | Attention | Blended, file: Path | bytes, histories: Sequence[Sequence[int]]
) -> Equal:
    """The file beside the form that it was made of."""
    runtime, worst, same = Runtime(file), 0.0, 0
    for history in histories:
        found, best = runtime.asked(history)
        expected = form.scores(torch.tensor(history, dtype=torch.long)).double().expand(len(found)).numpy()
        gap = float(np.ptp(expected)) or 1.0
        worst = max(worst, float(np.abs(found - expected).max()) / gap)
        left = expected.copy()
        left[list(history)] = -np.inf
        top = np.argsort(-left, kind="stable")[: min(10, len(left) - len({*history}))]
        same += best == top.tolist()
    name = f"onnxruntime {onnxruntime.__version__}"
    return Equal(name, len(histories), worst, same / max(len(histories), 1))
