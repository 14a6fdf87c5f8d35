"""What is searched: settings of a method, its plug-ins and the federation, by the names `--set` gives them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ownview.base.errors import SettingError, suggestion
from ownview.config.search import parse_space
from ownview.registry import find_model
from ownview.runs.named_settings import FEDERATION, NamedSetting, named_settings


def knobs(method: str, plugins: Sequence[str]) -> dict[str, NamedSetting]:
    """Every setting of a method, of plug-ins around it and, if it is federated, of the federation."""
    federated = find_model(method).federated
    every = named_settings(method, plugins)
    return {name: one for name, one in every.items() if federated or one.owner != FEDERATION}


def searched(
    method: str, plugins: Sequence[str], pinned: Iterable[str], asked: Sequence[str]
) -> dict[str, NamedSetting]:
    """What a tuning varies: the declared spaces of method and plug-ins, and whatever was asked for besides.

    Args:
        method: its name or file.
        plugins: around it, the first one innermost.
        pinned: settings with a fixed value.
        asked: NAME for the declared space of a setting (the federation's are searched only so), or NAME=SPACE.
    """
    every = knobs(method, plugins)
    fixed = set(pinned)
    chosen = {
        name: knob
        for name, knob in every.items()
        if knob.space is not None and knob.owner != FEDERATION and name not in fixed
    }
    for text in asked:
        name, equals, space = text.partition("=")
        if name not in every:
            raise SettingError(
                f"--search {text}: neither {method} nor the federation has a setting {name!r}{suggestion(name, every)}"
            )
        if name in fixed:
            raise SettingError(f"--search {text}: {name} is also pinned by --set; give one of the two")
        chosen[name] = _asked(every[name], text, space if equals else None)
    if not chosen:
        raise SettingError(f"{method} has no setting left to search; name one with --search NAME=LOW:HIGH")
    return chosen


def _asked(knob: NamedSetting, text: str, space: str | None) -> NamedSetting:
    if space is None and knob.space is None:
        raise SettingError(
            f"--search {text}: no space is declared for it; expected {text}=LOW:HIGH[:log] or {text}=a,b"
        )
    if space is None:
        return knob
    try:
        return knob.within(parse_space(space, knob.kind, knob.read))
    except SettingError as error:
        raise SettingError(f"--search {text}: {error}") from None
