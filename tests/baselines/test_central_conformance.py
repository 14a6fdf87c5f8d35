"""Every registered model that is not federated, through every check that fits it."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from torch import Tensor

from ownview import (
    BPR,
    EASE,
    IALS,
    MF,
    NCF,
    SLIM,
    SLIST,
    CentRAP,
    ItemKNN,
    LaterSittings,
    LightGCN,
    Markov,
    Popularity,
    RandomOrder,
    RecentPopularity,
    RP3Beta,
    SASRec,
    SittingStarts,
    Text,
)
from ownview.baselines.parts.central import Central, Lessons
from ownview.registry import BASELINES
from ownview.seam.training import Params
from ownview.testing.checks import CENTRAL_CHECKS, conform_central

# As quick as may be: small worlds need few dimensions, small batches and high rates.
MODELS: dict[str, Central] = {
    "bpr": BPR(embedding_size=8, epochs=60, learning_rate=0.05),
    "centrap": CentRAP(epochs=30, batch_size=512),
    "ease": EASE(),
    "ials": IALS(embedding_size=8),
    "itemknn": ItemKNN(),
    "later-sittings": LaterSittings(),
    "lightgcn": LightGCN(embedding_size=8, batch_size=256, learning_rate=0.01),
    "markov": Markov(),
    "mf": MF(embedding_size=8, batch_size=256, learning_rate=0.01),
    "ncf": NCF(embedding_size=16, batch_size=256, learning_rate=0.01),
    "popularity": Popularity(),
    "random-order": RandomOrder(),
    "recent-popularity": RecentPopularity(),
    "rp3beta": RP3Beta(),
    "sasrec": SASRec(embedding_size=8, learning_rate=0.01, dropout=0.1, length=12, batch_size=8),
    "sitting-starts": SittingStarts(),
    "slim": SLIM(),
    "slist": SLIST(strength=5.0),
    "text": Text(),
}

CASES = [
    (name, check) for name in MODELS for check in CENTRAL_CHECKS if not (check == "learns" and MODELS[name].yardstick)
]
"""The same list for everybody cannot know anybody's group; nor does a yardstick that looks at the last item alone."""


def test_nothing_is_left_out() -> None:
    assert set(MODELS) == set(BASELINES)


@pytest.mark.parametrize(("name", "check"), CASES)
def test_conforms(name: str, check: str) -> None:
    CENTRAL_CHECKS[check](MODELS[name])


def test_a_model_that_forgets_its_optimizer_is_caught() -> None:
    """The kit itself must be able to fail: here Adam's memory is not among the values."""

    @dataclass(frozen=True)
    class Forgetful(MF):
        def epoch(self, values: Params, lessons: Lessons, number: int) -> float:
            for name in ("users", "items"):
                values[f"adam.first.{name}"].add_(_MEMORY.setdefault(name, values[name].new_zeros(())))
                _MEMORY[name] = _MEMORY[name] + 1
            return super().epoch(values, lessons, number)

    with pytest.raises(AssertionError):
        conform_central(Forgetful(embedding_size=4, batch_size=64))


_MEMORY: dict[str, Tensor] = {}
