"""Settings refuse what they should, in words a person can act on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import settings as rules
from hypothesis import strategies as st

from ownview.base.errors import OwnviewError, SettingError
from ownview.config.settings import Settings, declared, setting


@dataclass(frozen=True)
class Oven(Settings):
    title: ClassVar[str] = "oven"

    degrees: int = setting(180, "how hot", low=50, high=300)
    minutes: float = setting(45.0, "how long", above=0)
    fan: bool = setting(False, "whether air moves")
    rack: str = setting("middle", "where it stands", choices=("top", "middle", "bottom"))
    turns: tuple[int, ...] = setting((10, 20), "minutes to turn at", low=1)
    label: str = setting("", "what it is called")


def test_defaults_are_the_declared_ones() -> None:
    assert Oven().values() == {
        "degrees": 180,
        "minutes": 45.0,
        "fan": False,
        "rack": "middle",
        "turns": (10, 20),
        "label": "",
    }
    assert [one.name for one in declared(Oven)] == ["degrees", "minutes", "fan", "rack", "turns", "label"]


def test_an_unknown_name_suggests_the_nearest() -> None:
    with pytest.raises(SettingError, match=r"^oven has no setting 'degree'; did you mean 'degrees'\?$"):
        Oven.of({"degree": 200})


def test_an_unknown_name_far_from_all_lists_the_choices() -> None:
    with pytest.raises(SettingError, match="choose from degrees, fan, label, minutes, rack, turns"):
        Oven.of({"zzzzzz": 1})


def test_an_unknown_choice_suggests_the_nearest() -> None:
    with pytest.raises(SettingError, match=r"rack='botom': expected one of top, middle, bottom; did you mean 'bottom'"):
        Oven(rack="botom")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"degrees": 180.0}, r"oven setting degrees=180.0: expected a whole number at least 50 and at most 300"),
        ({"degrees": True}, r"degrees=True: expected a whole number"),
        ({"degrees": None}, r"degrees=None: expected a whole number"),
        ({"minutes": False}, r"minutes=False: expected a number above 0"),
        ({"minutes": [1.0]}, r"minutes=\[1.0\]: expected a number"),
        ({"fan": 1}, r"fan=1: expected true or false"),
        ({"rack": 3}, r"rack=3: expected one of"),
        ({"label": 3}, r"label=3: expected text"),
        ({"turns": 10}, r"turns=10: expected whole numbers separated by commas"),
        ({"turns": (1, 2.5)}, r"turns=\(1, 2.5\)"),
        ({"turns": (1, True)}, r"turns=\(1, True\)"),
        ({"turns": ["1"]}, r"turns=\('1',\)"),
    ],
)
def test_a_wrong_type_is_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingError, match=message):
        Oven.of(values)


@pytest.mark.parametrize(
    "values",
    [
        {"degrees": 49},
        {"degrees": 301},
        {"minutes": 0.0},
        {"minutes": -1.0},
        {"minutes": float("nan")},
        {"minutes": float("inf")},
        {"turns": (5, 0)},
        {"rack": "Top"},
    ],
)
def test_a_value_out_of_range_is_refused(values: dict[str, Any]) -> None:
    name = next(iter(values))
    with pytest.raises(SettingError, match=f"oven setting {name}=.*: expected"):
        Oven(**values)


@pytest.mark.parametrize("degrees", [50, 300])
def test_bounds_belong_to_the_range(degrees: int) -> None:
    assert Oven(degrees=degrees).degrees == degrees


def test_a_whole_number_is_taken_for_a_number_and_a_list_for_a_tuple() -> None:
    oven = Oven.of({"minutes": 30, "turns": [3, 4]})
    assert type(oven.minutes) is float
    assert oven.minutes == 30
    assert oven.turns == (3, 4)


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("degrees", "200", 200),
        ("minutes", "1e1", 10.0),
        ("minutes", "12", 12.0),
        ("fan", "Yes", True),
        ("fan", "on", True),
        ("fan", "1", True),
        ("fan", "FALSE", False),
        ("fan", "0", False),
        ("rack", "top", "top"),
        ("label", "42", "42"),
        ("turns", "5, 10,20", (5, 10, 20)),
        ("turns", "7", (7,)),
        ("turns", "7,", (7,)),
        ("turns", "", ()),
    ],
)
def test_text_is_read_as_the_settings_type(name: str, text: str, value: object) -> None:
    read = getattr(Oven.of({name: text}), name)
    assert read == value
    assert type(read) is type(value)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("degrees", "hot"),
        ("degrees", "180.5"),
        ("degrees", "49"),
        ("minutes", "nan"),
        ("minutes", ""),
        ("fan", "maybe"),
        ("turns", "5;10"),
        ("turns", "5,x"),
    ],
)
def test_text_that_cannot_be_read_names_setting_and_value(name: str, text: str) -> None:
    with pytest.raises(SettingError, match=f"oven setting {name}=.*: expected"):
        Oven.of({name: text})


@rules(max_examples=50)
@given(
    st.integers(50, 300),
    st.floats(0, exclude_min=True, allow_infinity=False),
    st.booleans(),
    st.sampled_from(["top", "middle", "bottom"]),
    st.lists(st.integers(1, 99), max_size=5),
)
def test_values_survive_the_round_trip_also_as_text(
    degrees: int, minutes: float, fan: bool, rack: str, turns: list[int]
) -> None:
    oven = Oven(degrees=degrees, minutes=minutes, fan=fan, rack=rack, turns=tuple(turns))
    assert Oven.of(oven.values()) == oven
    text = {name: ",".join(map(str, v)) if isinstance(v, tuple) else str(v) for name, v in oven.values().items()}
    assert Oven.of(text) == oven


@rules(max_examples=50)
@given(st.text(max_size=12))
def test_any_text_gives_a_whole_number_in_range_or_an_error_a_person_can_act_on(text: str) -> None:
    try:
        degrees = Oven.of({"degrees": text}).degrees
    except OwnviewError:
        return
    assert 50 <= degrees <= 300
