"""A method's functions called on drawn values: exceptions become errors of the method, with file and line."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from traceback import extract_tb
from typing import Any

import torch

from ownview.base.errors import SettingError, suggestion
from ownview.base.failures import lacks_memory
from ownview.seam.training import Batch

_IN_OTHER_WORDS = {
    "data-dependent control flow": "values steer Python (if, float() or int()); write torch.where for if",
    ".item() on a Tensor": "values steer Python (if, float() or .item()); write torch.where for if, and leave numbers "
    "tensors",
    "called random operation": "random numbers are not drawn by torch here, but from a parameter ov.chance(), by "
    "ov.bits(key, p[NAME], counters)",
    "doesn't have storage": "numpy cannot look into these values; write it with torch",
    "dynamic shape": "a shape depends on values (indexing by a condition, say); multiply by batch.mask, or write "
    "torch.where",
    "leaf Variable that requires grad": "values are changed in place; write x = x + 1 instead of x += 1 or x.add_(1)",
}
"""What PyTorch says of code that it cannot run for many clients at once, and what its writer needs to know."""


def tried(what: str, function: Callable[..., Any], *given: Any) -> Any:
    """The function's result.

    Args:
        what: that is tried, as the beginning of a sentence.
        function: of a method.
        given: to it; the client's values first, where it gets any.

    Raises:
        SettingError: for any other exception but lack of memory.
    """
    try:
        return function(*given)
    except SettingError:
        raise
    except Exception as error:
        if lacks_memory(error):
            raise
        fault = f"{type(error).__name__} in {_place(error, function)}: {_in_words(error, given)}"
        raise SettingError(f"{what}: {fault}") from error


def _place(error: Exception, function: Callable[..., Any]) -> str:
    """File and line of the innermost call in the method's own file, or else in Ownview; of the function if none is."""
    others = (str(Path(torch.__file__).parent), __file__, "<")
    calls = [call for call in extract_tb(error.__traceback__) if not call.filename.startswith(others)]
    own = [call for call in calls if not call.filename.startswith(str(Path(__file__).parents[2]))]
    if calls:
        innermost = (own or calls)[-1]
        return f"{innermost.filename}, line {innermost.lineno}"
    code = getattr(function, "__code__", None)
    return f"{code.co_filename}, line {code.co_firstlineno}" if code else "a call of it"


def _in_words(error: Exception, given: tuple[Any, ...]) -> str:
    said = str(error)
    if isinstance(error, KeyError) and given and isinstance(given[0], Mapping):
        name = error.args[0]
        return f"no value {name!r}{suggestion(name, given[0])}" if isinstance(name, str) else "values go by name"
    if isinstance(error, AttributeError) and said.startswith("'Batch'"):
        return f"{said}; it has {', '.join(Batch._fields)}"
    return next((plain for raw, plain in _IN_OTHER_WORDS.items() if raw in said), said)
