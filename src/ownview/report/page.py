"""The model as one HTML page with everything inside: no request leaves it."""

from __future__ import annotations

import importlib.resources
import json
from collections.abc import Mapping
from html import escape
from typing import Any

SCRIPTS = (
    "dom.js", "scale.js", "frame.js", "tooltip.js", "lines.js", "scatter.js", "intervals.js", "bars.js", "heat.js",
    "state.js", "findings.js", "results.js", "figures.js", "lists.js", "pictures.js", "app.js",
)  # fmt: skip
"""In the order in which they are put together; each only uses what comes before it."""


def render(model: Mapping[str, Any]) -> str:
    """The page as text."""
    scripts = "\n".join(_asset(name) for name in SCRIPTS)
    parts = {
        "title": escape(f"Ownview: {model['title']}"),
        "style": _asset("style.css"),
        "model": as_script(model),
        "script": f'"use strict";\n(() => {{\n{scripts}\n}})();',
    }
    page = _asset("page.html")
    for name, value in parts.items():  # by hand, because CSS and scripts are full of $ and braces
        before, mark, after = page.partition(f"<!--{name}-->")
        assert mark, name
        page = before + value + after
    return page


def as_script(model: Mapping[str, Any]) -> str:
    """JSON that may stand inside a script element: nothing in it can end the element or open a comment."""
    text = json.dumps(model, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e").replace("\u2028", "\\u2028")


def _asset(name: str) -> str:
    return (importlib.resources.files("ownview.report") / "assets" / name).read_text(encoding="utf-8")
