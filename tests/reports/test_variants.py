"""What variants of one method are called."""

from __future__ import annotations

from ownview.reports.reading import _labels


def test_as_few_settings_as_tell_variants_apart() -> None:
    published = {"federation.row_mean": "method", "rounds": 100, "scale": 1.0}
    tuned = {"federation.row_mean": "touched", "rounds": 80, "scale": 0.1}
    other = {"rounds": 100}
    labels = _labels(["fedmf", "fedmf", "pfedrec"], [published, tuned, other])
    assert labels == ["fedmf (row_mean=method, …)", "fedmf (row_mean=touched, …)", "pfedrec"]


def test_the_most_telling_setting_comes_first() -> None:
    grid = [{"a": a, "b": b} for a in (1, 2) for b in (1, 2, 3)]
    assert _labels(["m"] * 6, grid)[0] == "m (b=1, a=1)"
    assert len(set(_labels(["m"] * 6, grid))) == 6


def test_one_difference_is_told_whole() -> None:
    assert _labels(["m", "m"], [{"layers": [8, 4]}, {"layers": [4]}]) == ["m (layers=8-4)", "m (layers=4)"]


def test_a_setting_that_only_another_version_has() -> None:
    assert _labels(["m", "m"], [{"a": 1}, {"a": 1, "new": 0.5}]) == ["m (new=unset)", "m (new=0.5)"]
