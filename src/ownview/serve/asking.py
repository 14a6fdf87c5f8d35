"""Requests, described once: the same description checks what arrives and is the server's OpenAPI document.

A description is the part of JSON Schema that is needed: type, items, minimum, maximum, maxItems, maxLength, properties.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from ownview.base.errors import nearest

Schema = Mapping[str, Any]

MOST_HISTORY = 10_000
"""Items of a history; a request with more is refused."""
MOST_ITEMS = 1000
"""Items of an answer."""
LONGEST_BODY = 1 << 20
"""Bytes of a request's body."""
LONGEST_TEXT = 256
"""Characters of an id or of what is searched for."""

ID: Schema = {"type": ["string", "integer"], "maxLength": LONGEST_TEXT}
_COUNT: Schema = {
    "type": "integer", "minimum": 1, "maximum": MOST_ITEMS, "default": 10, "description": "Items of the list.",
}  # fmt: skip
_EXPLAIN: Schema = {
    "type": "boolean", "default": False, "description": "Whether each item comes with the items that speak for it.",
}  # fmt: skip

RECOMMEND: dict[str, Schema] = {
    "history": {
        "type": "array", "items": ID, "maxItems": MOST_HISTORY,
        "description": "Ids of items, oldest first; neither stored nor logged. Unknown ids are skipped and named.",
    },
    "user": {**ID, "description": "A user whom the model knows, instead of a history."},
    "k": _COUNT,
    "exclude": {"type": "array", "items": ID, "description": "Items that the list must not have."},
    "only": {"type": "array", "items": ID, "description": "Items that the list may have; all without it."},
    "where": {
        "type": "object", "additionalProperties": {"type": "array", "items": {"type": "string"}},
        "description": "By column about items (category, maker), values of which an item must have one.",
    },
    "in_stock": {"type": "boolean", "default": True, "description": "Whether only items in stock are listed."},
    "again": {"type": "boolean", "default": False, "description": "Whether items of the history may be listed."},
    "diversity": {
        "type": "number", "minimum": 0, "maximum": 1, "default": 0.0,
        "description": "Weight of maximal marginal relevance; 0 leaves the order of scores.",
    },
    "popularity": {
        "type": "number", "minimum": 0, "maximum": 1, "default": 0.0,
        "description": "Weight of calibration: the list spreads over popular and rare items as the history does.",
    },
    "explain": _EXPLAIN,
    "unit": {
        "type": "string", "maxLength": LONGEST_TEXT,
        "description": "What an A/B test keeps to one model: a session, an account. It is hashed with a key, not kept.",
    },
}  # fmt: skip
SIMILAR: dict[str, Schema] = {"item": {**ID, "description": "The id of an item."}, "k": _COUNT}
ITEMS: dict[str, Schema] = {
    "prefix": {"type": "string", "maxLength": LONGEST_TEXT, "description": "What a person types of a title."},
    "k": _COUNT,
}
CHOSEN: dict[str, Schema] = {
    "impression": {"type": "string", "maxLength": 64, "description": "As the list came with."},
}


class RefusedError(Exception):
    """A request that is answered with a status and one line."""

    def __init__(self, why: str, status: HTTPStatus = HTTPStatus.BAD_REQUEST) -> None:
        super().__init__(why)
        self.status = status


def from_body(body: bytes, fields: Mapping[str, Schema]) -> dict[str, Any]:
    """What a JSON body asks for, with defaults filled in.

    Raises:
        RefusedError: names everything that is wrong with it.
    """
    try:
        given = json.loads(body)
    except (ValueError, RecursionError) as error:
        line = f"the body is no JSON: {error}" if isinstance(error, json.JSONDecodeError) else "the body is no JSON"
        raise RefusedError(f'{line}; expected an object such as {{"history": ["1", "2"]}}') from error
    if not isinstance(given, dict):
        raise RefusedError(f"the body is {_kind(given)}; expected an object with {', '.join(fields)}")
    return _checked(given, fields)


def from_query(given: Mapping[str, str], fields: Mapping[str, Schema]) -> dict[str, Any]:
    """The same of a query's text."""
    read: dict[str, Any] = {}
    for name, text in given.items():
        whole = fields.get(name, {}).get("type") == "integer"
        read[name] = int(text) if whole and text.isdecimal() and len(text) < 10 else text
    return _checked(read, fields)


def _checked(given: Mapping[str, Any], fields: Mapping[str, Schema]) -> dict[str, Any]:
    wrong = []
    for name, value in given.items():
        if name not in fields:
            near = nearest(name, fields) or f"; expected {', '.join(fields)}"
            wrong.append(f"{_short(name)}: no such field{near}")
        elif problem := _problem(value, fields[name]):
            wrong.append(f"{name}: {problem}")
    if wrong:
        raise RefusedError("; ".join(wrong[:5]))
    defaults = {name: one["default"] for name, one in fields.items() if "default" in one}
    return {**defaults, **given}


def _problem(value: Any, schema: Schema) -> str:
    """What is wrong with a value; empty where nothing is."""
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    if not any(_is(value, kind) for kind in kinds):
        return f"found {_kind(value)}; expected {' or '.join(kinds)}"
    if isinstance(value, str):
        most = schema.get("maxLength", math.inf)
        return f"{len(value):,} characters; expected {most} at most" if len(value) > most else ""
    if isinstance(value, bool):
        return ""
    if isinstance(value, int | float):
        low, high = schema.get("minimum", -math.inf), schema.get("maximum", math.inf)
        return "" if low <= value <= high else f"found {_short(value)}; expected {low} to {high}"
    if isinstance(value, list):
        return _problem_in(value, schema)
    inner = schema["additionalProperties"]
    return next((f"{_short(name)}: {why}" for name, one in value.items() if (why := _problem(one, inner))), "")


def _problem_in(values: list[Any], schema: Schema) -> str:
    most, inner = schema.get("maxItems", math.inf), schema["items"]
    if len(values) > most:
        return f"{len(values):,} items; expected {most:,} at most"
    if set(map(type, values)) <= {str} and max(map(len, values), default=0) <= LONGEST_TEXT:
        return ""  # the usual case, without a call an item
    return next((f"item {place}: {why}" for place, one in enumerate(values) if (why := _problem(one, inner))), "")


def _is(value: Any, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    kinds: dict[str, type | tuple[type, ...]] = {
        "string": str, "integer": int, "number": (int, float), "array": list, "object": dict, "boolean": bool,
    }  # fmt: skip
    return isinstance(value, kinds[kind])


def _kind(value: Any) -> str:
    names = {str: "text", bool: "a boolean", int: "a number", float: "a number", list: "an array", dict: "an object"}
    return "null" if value is None else names.get(type(value), "something else")


def _short(value: object) -> str:
    text = str(value)
    return repr(text if len(text) <= 40 else f"{text[:40]}...") if isinstance(value, str) else text[:40]
