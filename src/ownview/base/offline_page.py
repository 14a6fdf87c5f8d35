"""One HTML file that opens offline: a frame, a style, scripts and data, put together from a package's assets."""

from __future__ import annotations

import importlib.resources
import json
import re
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, NamedTuple

_COMMON = ("elements.js",)
"""Scripts of every page, which come before its own."""


def offline_page(
    package: str, scripts: Sequence[str], title: str, model: Mapping[str, Any], reach: Reach | None = None
) -> str:
    """The page as text.

    Args:
        package: whose folder `assets` has page.html, the body with the marks <!--model--> and <!--script-->, style.css
            and the scripts. The head is the same for all pages: its policy allows no request.
        scripts: in the order in which they are put together; each only uses what comes before it.
        title: of the page, plain text.
        model: what the scripts read.
        reach: which addresses the page may reach with its reader's leave; None for none, ever.
    """
    every = [_script(__package__ or "", name) for name in _COMMON] + [_script(package, name) for name in scripts]
    together = "\n".join(every)
    parts = {
        "policy": "" if reach is None else reach.policy(),
        "guard": "" if reach is None else reach.guard(),
        "title": escape(title),
        "style": _asset(package, "style.css"),
        "model": as_script(model),
        "script": f'"use strict";\n(() => {{\n{together}\n}})();',
    }
    page = _asset(__package__ or "", "head.html") + _asset(package, "page.html")
    for name, value in parts.items():  # by hand, because CSS and scripts are full of $ and braces
        before, mark, after = page.partition(f"<!--{name}-->")
        assert mark, name
        page = before + value + after
    return page


class Reach(NamedTuple):
    """Addresses that a page may reach, once its reader has allowed it in this tab.

    addresses: origins, such as https://a.example
    leave:     under which name the tab remembers that it may
    """

    addresses: tuple[str, ...]
    leave: str

    def policy(self) -> str:
        """What the page's policy allows at most: these addresses, and workers of its own."""
        return escape(f"; worker-src blob:; connect-src {' '.join(self.addresses)}")

    def guard(self) -> str:
        """Comes before everything else: without leave a second policy forbids every request; both must allow one."""
        return f"""<script>
(() => {{
  let may = false;
  const leave = {json.dumps(self.leave)};
  try {{ may = history.state?.[leave] === "may" || sessionStorage.getItem(leave) === "may"; }} catch {{ may = false; }}
  if (may) return;
  const policy = document.createElement("meta");
  policy.httpEquiv = "Content-Security-Policy";
  policy.content = "connect-src 'none'";
  document.head.append(policy);
}})();
</script>"""


def as_script(model: Mapping[str, Any]) -> str:
    """JSON that may stand inside a script element: nothing in it can end the element or open a comment."""
    text = json.dumps(model, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e").replace("\u2028", "\\u2028")


def _script(package: str, name: str) -> str:
    """A script as part of a greater one: what a module exports is simply there."""
    return re.sub(r"^export (?=(?:async |function|const|class))", "", _asset(package, name), flags=re.MULTILINE)


def _asset(package: str, name: str) -> str:
    return (importlib.resources.files(package) / "assets" / name).read_text(encoding="utf-8")
