"""What a run's first line says of settings, and how comparisons tell two settings of one method apart."""

from __future__ import annotations

from pathlib import Path

import ownview as ov
from ownview.config.presets.loading import preset
from ownview.federation.options import FederationOptions
from ownview.registry import Model
from ownview.runs.experiment import Experiment
from ownview.runs.summaries.differing_settings import differing_settings
from tests.shop import shop


def test_defaults_say_nothing_and_what_differs_is_named() -> None:
    assert differing_settings(Experiment("fedease")) == []
    assert differing_settings(Experiment("fedease", settings={"nearness": 4.0})) == ["nearness=4.0"]
    wrapped = Experiment(
        "fedmf", plugins=(("dual-personalisation", {}),), federation=FederationOptions(privacy="laplace:0.5")
    )
    assert differing_settings(wrapped) == ["plug-in dual-personalisation", "privacy=laplace:0.5"]


def test_a_preset_is_named_and_what_differs_from_it() -> None:
    found = preset("fedmf", "tuned", "ml-100k").experiment()
    mine = Experiment.from_dict({**found, "data": "ml-100k"})
    assert differing_settings(mine.resolved(mine.model())) == ["preset tuned"]
    settings = {**found["settings"], "embedding_size": 7}
    other = Experiment.from_dict({**found, "data": "ml-100k", "settings": settings})
    assert differing_settings(other.resolved(other.model())) == ["preset tuned", "embedding_size=7"]


def test_two_settings_of_one_method_are_two_rows(tmp_path: Path) -> None:
    methods: list[Model | str] = [ov.FedEASE(nearness=4.0), ov.FedEASE(nearness=8.0), "popularity"]
    runs = ov.compare(methods, shop(), rounds=1, out=tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "fedease-1-honest-seed0", "fedease-2-honest-seed0", "popularity-honest-seed0",
    ]  # fmt: skip
    assert runs.methods == ("fedease (nearness=4)", "fedease (nearness=8)", "popularity")
