"""The sanity set is silent on sound rankings and fires on broken ones."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch
from torch import Tensor

from ownview.data import Interactions
from ownview.evaluation.metrics import Standing
from ownview.evaluation.named_protocols import HONEST, PAPER, custom
from ownview.evaluation.protocol import Protocol
from ownview.evaluation.ranking import Ranker, Scorer, rankers
from ownview.evaluation.sanity import constant_probe, random_probe, sanity_probes, shuffle_probe


def _ranker(protocol: Protocol = PAPER, users: int = 200) -> Ranker:
    random = np.random.default_rng(0)
    user = np.repeat(np.arange(users), 12)
    item = np.concatenate([random.choice(150, size=12, replace=False) for _ in range(users)])
    data = Interactions.from_rows("sane", user, item, timestamp=random.permutation(len(user)))
    return rankers(protocol, protocol.prepare(data), 0, torch.device("cpu"), 10**6)[1]


@pytest.mark.parametrize("protocol", [HONEST, PAPER, custom({"candidates": 5}, "few")], ids=lambda p: p.name)
def test_silent_on_sound_rankings(protocol: Protocol) -> None:
    found = sanity_probes(_ranker(protocol), 0)
    assert [finding.probe for finding in found] == ["sanity-random", "sanity-constant", "sanity-shuffle"]
    assert [finding for finding in found if finding.fires] == []


def test_a_constant_model_by_hand() -> None:
    """100 candidates: 0 where ties are lost; 10 / 100 and 4.5436 / 100 where they are expected."""
    lost = constant_probe(_ranker()).values
    assert (lost["HR@10"], lost["NDCG@10"]) == (0.0, 0.0)
    expected = constant_probe(_ranker(custom({"base": "paper", "ties": "expected"}, "expected"))).values
    assert expected["HR@10"] == pytest.approx(0.1)
    assert expected["NDCG@10"] == pytest.approx(0.045436, abs=1e-6)
    assert expected["expected_NDCG"] == pytest.approx(expected["NDCG@10"])


def test_random_scores_by_hand() -> None:
    """Six candidates: everybody is among the first ten, and nothing can vary."""
    values = random_probe(_ranker(custom({"candidates": 5}, "few")), 0).values
    assert (values["HR@10"], values["chance"], values["standard_errors_HR"]) == (1.0, 1.0, 0.0)


def test_candidates_that_repeat_are_found_by_random_scores() -> None:
    ranker = _ranker()
    assert ranker.sampled is not None
    broken = random_probe(replace(ranker, sampled=ranker.sampled[:, :1].expand(-1, 99)), 0)
    assert broken.fires
    assert "not to be trusted" in broken.sentence
    assert abs(float(broken.values["standard_errors_HR"])) > 4


@dataclass(frozen=True, eq=False)
class _WinsTies(Ranker):
    """Promises one tie rule and applies another."""

    def rank(self, scorer: Scorer) -> Standing:
        return replace(super().rank(scorer), tied=np.zeros(len(self.users), dtype=np.int64))


@dataclass(frozen=True, eq=False)
class _MindsTheBlock(Ranker):
    """The first user of every block is served better."""

    def _rank_sampled(self, scorer: Scorer, part: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        better, tied, total = super()._rank_sampled(scorer, part)
        better[0] = 0
        return better, tied, total


def _turned_into(kind: type[Ranker], ranker: Ranker) -> Ranker:
    return kind(**{name: getattr(ranker, name) for name in ranker.__dataclass_fields__})


def test_a_wrong_tie_rule_is_found_by_a_constant_model() -> None:
    broken = constant_probe(_turned_into(_WinsTies, _ranker()))
    assert broken.fires
    assert broken.values["largest_difference"] == 1.0


def test_an_order_that_matters_is_found_by_shuffling() -> None:
    broken = shuffle_probe(_turned_into(_MindsTheBlock, replace(_ranker(), block=16)), 0)
    assert broken.fires
    assert "another order changes" in broken.sentence
