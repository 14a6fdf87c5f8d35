"""JSON that may be damaged or made to harm: every way in which it can be bad is a ValueError."""

from __future__ import annotations

import json
from typing import Any


def parse_json(text: str | bytes) -> Any:
    """Plain values; numbers that JSON does not have (NaN, Infinity), endless digits and endless nesting are refused."""
    try:
        return json.loads(text, parse_constant=_refuse)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is no number of JSON")
