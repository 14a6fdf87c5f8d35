"""The server's OpenAPI document, made of the descriptions that requests are checked with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ownview.base.version import __version__
from ownview.serve.asking import CHOSEN, ITEMS, RECOMMEND, SIMILAR, Schema

_TEXT = {"type": "string"}


def _item(**besides: Schema) -> dict[str, Any]:
    return {"type": "object", "properties": {"item": _TEXT, "title": _TEXT, **besides}, "required": ["item", "title"]}


_UNKNOWN = {"type": "object", "properties": {"count": {"type": "integer"}, "ids": {"type": "array", "items": _TEXT}}}
_REASON = _item(share={"type": "number"})
_SCORED = {"score": {"type": "number"}}
_ARM = {"type": "string", "enum": ["a", "b"]}


def document() -> dict[str, Any]:
    """OpenAPI 3.1."""
    listed = {
        "model": _TEXT,
        "recommendations": _many(_item(**_SCORED, because=_many(_REASON))),
        "unknown": _UNKNOWN,
        "arm": _ARM,
        "impression": _TEXT,
    }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Ownview",
            "version": __version__,
            "description": "Lists of items. What a request holds is neither stored nor logged. Errors are one line.",
        },
        "paths": {
            "/v1/recommend": _post("Items for a history, or for a known user.", RECOMMEND, listed),
            "/v1/similar": _get("Items like an item.", SIMILAR, {"model": _TEXT, "similar": _many(_item(**_SCORED))}),
            "/v1/items": _get("Items by title.", ITEMS, {"model": _TEXT, "items": _many(_item())}),
            "/v1/chosen": _post("Something of a list was chosen (A/B).", CHOSEN, {"logged": {"type": "boolean"}}),
            "/health": _get("Whether a model is there.", {}, {"status": _TEXT}),
            "/version": _get("Versions of the program and of its models.", {}, {"ownview": _TEXT, "models": {}}),
            "/metrics": {"get": {"summary": "Counters for Prometheus.", "responses": {"200": _said("text/plain", {})}}},
            "/openapi.json": _get("This document.", {}, {}),
        },
    }


def _many(schema: Schema) -> dict[str, Any]:
    return {"type": "array", "items": schema}


def _said(kind: str, schema: Schema, what: str = "answer") -> dict[str, Any]:
    return {"description": what, "content": {kind: {"schema": schema}}}


def _responses(answer: Mapping[str, Any]) -> dict[str, Any]:
    wrong = {"type": "object", "properties": {"error": _TEXT}}
    return {
        "200": _said("application/json", {"type": "object", "properties": answer}),
        "default": _said("application/json", wrong, "one line that says what was found and what was expected"),
    }


def _post(summary: str, fields: Mapping[str, Schema], answer: Mapping[str, Any]) -> dict[str, Any]:
    schema = {"type": "object", "properties": fields, "additionalProperties": False}
    body = {"required": True, "content": {"application/json": {"schema": schema}}}
    return {"post": {"summary": summary, "requestBody": body, "responses": _responses(answer)}}


def _get(summary: str, fields: Mapping[str, Schema], answer: Mapping[str, Any]) -> dict[str, Any]:
    parameters = [
        {"name": name, "in": "query", "required": "default" not in one, "schema": one} for name, one in fields.items()
    ]
    return {"get": {"summary": summary, "parameters": parameters, "responses": _responses(answer)}}
