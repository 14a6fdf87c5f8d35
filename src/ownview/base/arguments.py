"""Arguments of public functions, held against their annotations: what is of another kind is refused in one line.

Only kinds are looked at, not what lies inside: a list for `Sequence[str]` is enough, any mapping for a `TypedDict`.
Text becomes a path where a path is expected. What a function refuses with a better sentence of its own it names in
`but`.
"""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, wraps
from numbers import Integral, Real
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from ownview.base.errors import SettingError

CALLABLE: Any = typing.get_origin(Callable[..., Any])
P = ParamSpec("P")
R = TypeVar("R")

_WORDS: Mapping[Any, str] = {
    str: "text", int: "a whole number", float: "a number", bool: "True or False", Path: "a path",
    types.NoneType: "nothing", Mapping: "names with values", Sequence: "several", CALLABLE: "a function",
}  # fmt: skip


_NUMBERS: Mapping[Any, type] = {int: Integral, float: Real}


def kinds_checked(*but: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A function that first refuses arguments of a kind that its annotations do not have.

    Args:
        but: names of arguments that the function looks at itself.
    """

    def around(function: Callable[P, R]) -> Callable[P, R]:
        signature = inspect.signature(function)

        @wraps(function)
        def checked(*given: P.args, **named: P.kwargs) -> R:
            bound = signature.bind(*given, **named)
            for name, value in bound.arguments.items():
                parameter = signature.parameters[name]
                if name in but or name == "self" or value is parameter.default:
                    continue
                kinds = _kinds(parameter.annotation, function)
                if isinstance(value, str) and Path in kinds and str not in kinds:
                    bound.arguments[name] = Path(value)
                elif not any(_fits(value, kind) for kind in kinds):
                    words = " or ".join(dict.fromkeys(_WORDS.get(one, getattr(one, "__name__", "")) for one in kinds))
                    raise SettingError(f"{function.__name__}: {name} is {kind_of(value)}; expected {words}")
            return function(*bound.args, **bound.kwargs)

        return checked

    return around


def kind_of(value: Any) -> str:
    """`a str`, `an int`, `nothing` for None, `the class X` for a class."""
    if value is None:
        return "nothing"
    if isinstance(value, type):
        return f"the class {value.__name__}"
    kind = type(value).__name__
    return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"


@cache
def _kinds(annotation: str, function: Callable[..., Any]) -> tuple[Any, ...]:
    """Of an annotation, as its module understands it: the alternatives, without what they hold."""
    meant = eval(annotation, function.__globals__)
    parts = typing.get_args(meant) if isinstance(meant, types.UnionType) or _is_union(meant) else (meant,)
    plain = (typing.get_origin(one) or one for one in parts)
    return tuple(Mapping if typing.is_typeddict(one) else one for one in plain)


def _is_union(meant: Any) -> bool:
    return typing.get_origin(meant) is typing.Union


def _fits(value: Any, kind: Any) -> bool:
    if kind is Sequence:  # arrays and Series, too
        return isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping)
    if kind in _NUMBERS:  # NumPy's, too
        return isinstance(value, _NUMBERS[kind]) and not isinstance(value, bool)
    if kind is CALLABLE:
        return callable(value)
    plain = kind is not Any and isinstance(kind, type) and not getattr(kind, "_is_protocol", False)
    return not plain or isinstance(value, kind)
