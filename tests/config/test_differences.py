"""Where two tables of settings differ: by full name, and only in what was asked for."""

from __future__ import annotations

from ownview.config.differences import differences

HAVE = {"rounds": 3, "data": "books", "settings": {"rate": 0.1, "layers": [4, 8]}, "watch": []}


def test_what_is_asked_for_and_the_same_makes_no_difference() -> None:
    assert list(differences(HAVE, {})) == []
    assert list(differences(HAVE, HAVE)) == []
    assert list(differences(HAVE, {"settings": {"layers": [4, 8]}})) == []


def test_names_inside_tables_are_written_with_the_table() -> None:
    asked = {"settings": {"rate": 0.2, "layers": [4, 8]}, "rounds": 4}
    assert list(differences(HAVE, asked)) == [("settings.rate", 0.1, 0.2), ("rounds", 3, 4)]


def test_what_is_not_there_at_all_differs_from_anything_but_nothing() -> None:
    asked = {"seed": 1, "federation": {"clients": "all"}, "inactive": None}
    assert list(differences(HAVE, asked)) == [("seed", None, 1), ("federation.clients", None, "all")]
