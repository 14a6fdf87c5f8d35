"""Search spaces: how they are written, and that every declared one lies within what its setting allows."""

from __future__ import annotations

import typing

import pytest

from ownview import LaterSittings, Markov, Popularity, RandomOrder, SittingStarts
from ownview.base.errors import SettingError
from ownview.config.search import Between, OneOf, parse_space, text_of
from ownview.registry import BASELINES, METHODS, PLUGINS
from ownview.runs.experiment import NamedSetting
from ownview.studies.tuning.tune import knobs, searched

EVERY = {
    (method, name): knob
    for method in (*METHODS, *BASELINES)
    for name, knob in knobs(method, list(PLUGINS) if method in METHODS else []).items()
    if knob.space is not None
}


def test_every_declared_space_is_allowed() -> None:
    assert len(EVERY) > 300
    for where, knob in EVERY.items():
        assert knob.space is not None
        assert knob.within(knob.space) == knob, where
        kinds = {type(value) for value in knob.space.ends()}
        assert kinds == {typing.get_origin(knob.kind) or knob.kind}, f"{where}: a value of another type"


def test_every_model_with_settings_can_be_tuned() -> None:
    for method in (*METHODS, *BASELINES):
        if BASELINES.get(method) in (LaterSittings, Markov, Popularity, RandomOrder, SittingStarts):
            with pytest.raises(SettingError, match=f"{method} has no setting left to search"):
                searched(method, [], {}, [])
        else:
            assert searched(method, [], {}, [])


def test_the_federation_is_searched_only_where_asked() -> None:
    assert "server_learning_rate" not in searched("fedmf", [], {}, [])
    assert searched("fedmf", [], {}, ["server_learning_rate"])["server_learning_rate"].space == Between(
        1e-3, 10.0, log=True
    )
    assert "server_learning_rate" not in knobs("centrap", [])


def test_a_space_that_reaches_out_of_a_settings_range_is_refused() -> None:
    knob = knobs("fedmf", [])["learning_rate"]
    with pytest.raises(SettingError, match=r"learning_rate=-1\.0: expected a number above 0"):
        knob.within(Between(-1.0, 1.0))
    optimizer = knobs("fedmf", [])["optimizer"]
    with pytest.raises(SettingError, match=r"optimizer='adm'.*did you mean 'adam'"):
        optimizer.within(OneOf(("sgd", "adm")))
    size = knobs("fedmf", [])["embedding_size"]
    with pytest.raises(SettingError, match="embedding_size=0: expected a whole number at least 1"):
        size.within(Between(0, 8))


@pytest.mark.parametrize(
    ("name", "text", "space"),
    [
        ("learning_rate", "0.001:0.1:log", Between(0.001, 0.1, log=True)),
        ("learning_rate", "0.001:0.1", Between(0.001, 0.1)),
        ("learning_rate", "0.1,0.2", OneOf((0.1, 0.2))),
        ("embedding_size", "2:8", Between(2, 8)),
        ("embedding_size", "2, 8", OneOf((2, 8))),
        ("optimizer", "adam", OneOf(("adam",))),
        ("clients", "all,poisson:0.6", OneOf(("all", "poisson:0.6"))),
    ],
)
def test_spaces_are_read_as_the_settings_type(name: str, text: str, space: Between | OneOf) -> None:
    knob = knobs("fedmf", [])[name]
    found = parse_space(text, knob.kind, knob.read)
    assert found == space
    assert [type(value) for value in found.ends()] == [type(value) for value in space.ends()]
    assert parse_space(str(found), knob.kind, knob.read) == space


def test_lists_are_separated_by_slashes() -> None:
    knob: NamedSetting = knobs("pfedrec", [])["hidden_layers"]
    found = parse_space("8,4/16", knob.kind, knob.read)
    assert found == OneOf(((8, 4), (16,)))
    assert str(found) == "8,4/16"
    assert text_of((8, 4)) == "8,4"
    assert found.to_dict() == {"choices": [[8, 4], [16]]}


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ("learning_rat=0:1", "has a setting 'learning_rat'; did you mean 'learning_rate'"),
        ("learning_rate=1:0.1", "expected the low end below the high end"),
        ("learning_rate=0.1:0.1", "expected the low end below the high end"),
        ("learning_rate=0:1:log", "expected a low end above 0"),
        ("learning_rate=0.1:1:exp", "expected LOW:HIGH or LOW:HIGH:log"),
        ("learning_rate=0.1:1:log:log", "expected LOW:HIGH or LOW:HIGH:log"),
        ("learning_rate=a:b", "learning_rate='a': expected a number above 0"),
        ("learning_rate=", "expected different values, at least one"),
        ("embedding_size=8,8", "expected different values, at least one"),
        ("embedding_size=1.5:3", "embedding_size='1.5': expected a whole number"),
        ("batch_size", "no space is declared for it; expected batch_size=LOW:HIGH"),
        ("negatives=1:10", "negatives is also pinned by --set"),
    ],
)
def test_what_is_wrong_with_a_space_is_said(asked: str, reason: str) -> None:
    with pytest.raises(SettingError, match=f"^--search {asked}.*({reason})"):
        searched("fedmf", [], {"negatives": "4"}, [asked])


def test_what_a_pinned_setting_excludes_is_not_searched() -> None:
    """A trial of both would be refused; a default excludes nothing, what was asked for excludes others."""
    left_out = {"horizon", "label_smoothing", "prefixes"}
    every = set(searched("sasrec", [], {}, []))
    assert left_out < every
    assert set(searched("sasrec", [], {"exclude_seen": "true"}, [])) == every - left_out
    assert set(searched("sasrec", [], {"exclude_seen": "false"}, [])) == every
    assert set(searched("sasrec", [], {"negatives": "7"}, [])) == every - {"horizon", "label_smoothing"}
    assert set(searched("sasrec", [], {}, ["r_drop=0,0.5"])) == (every - {"prefixes"}) | {"r_drop"}
