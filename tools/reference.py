"""The reference as text: docs/api from what `import ownview as ov` gives, signatures and docstrings.

python -m tools.reference          writes the pages; a test holds them to the code
"""

from __future__ import annotations

import importlib
import inspect
import re
import textwrap
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

from ownview import public, testing
from ownview.registry import BASELINES, METHODS, PLUGINS

PAGES = Path(__file__).resolve().parents[1] / "docs" / "api"
_ROOMS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "run.md": (
        "Run, compare and study",
        "What the command line does, from Python.",
        ("runs", "studies", "reports", "pages", "federation", "base.errors", "base.trust", "registry"),
    ),
    "data.md": ("Data and protocols", "Interactions, and how results are measured.", ("data", "evaluation")),
    "method.md": (
        "Parts of a method",
        "What a method is made of ([how to write one](../write-a-method.md)).",
        ("seam", "config", "baselines", "base.randomness"),
    ),
}
"""By page: title, a sentence, and the rooms whose public names it has."""


def pages() -> dict[str, str]:
    """By file, the text of every page."""
    named = {name: one for name, one in vars(public).items() if not name.startswith("_")}
    models = {cls.__name__ for cls in (*METHODS.values(), *BASELINES.values(), *PLUGINS.values())}
    rooms: dict[str, list[str]] = {file: [] for file in _ROOMS}
    for name in sorted(named, key=str.lower):
        if name in models:
            continue
        room = _imported_from()[name].removeprefix("ownview.")
        file = next(file for file, (_, _, there) in _ROOMS.items() if room.startswith(there))
        rooms[file].append(_entry(name, named[name]))
    listed = ", ".join(f"`{name}`" for name in sorted(models, key=str.lower))
    rooms["method.md"].append(f"## Models\n\nRegistered models, each with [its page](../methods/index.md): {listed}.\n")
    kit = [_entry(name, getattr(testing, name)) for name in ("conform", "conform_central", "CHECKS", "CENTRAL_CHECKS")]
    rooms["method.md"] += ["## The conformance kit\n\n`from ownview.testing import conform`\n", *kit]
    return {
        file: "\n".join([f"# {title}\n", f"{about}\n", *rooms[file]])
        for file, (title, about, _) in _ROOMS.items()
    }  # fmt: skip


def _imported_from() -> dict[str, str]:
    source = inspect.getsource(public)
    return {name: module for module, name in re.findall(r"from (\S+) import \w+ as (\w+)", source)}


def _entry(name: str, one: Any) -> str:
    about = inspect.getdoc(one) if callable(one) or inspect.isclass(one) else None
    about = about if inspect.isclass(one) or inspect.isfunction(one) else _beside(name)
    shown = f"```python\n{_signature(name, one)}\n```\n\n" if callable(one) and hasattr(one, "__module__") else ""
    parts = "".join(_members(one)) if inspect.isclass(one) else ""
    return f"## {name}\n\n{shown}{_as_markdown(about or '')}\n" + (f"\nHas:\n\n{parts}" if parts else "")


def _members(cls: type) -> list[str]:
    """Public methods and properties of a class and of ours that it derives from, each with its first sentence."""
    found: dict[str, Any] = {}
    for one in reversed([one for one in cls.__mro__ if one.__module__.startswith("ownview")]):
        found |= {name: value for name, value in vars(one).items() if not name.startswith("_")}
    lines = []
    for name, value in found.items():
        plain = getattr(value, "__func__", value)  # of class methods and static ones
        about = inspect.getdoc(plain)
        if inspect.isfunction(plain) and about:
            lines.append(f"- `{_call(name, plain)}`: {_first_sentence(about)}\n")
        elif isinstance(value, property | cached_property) and about:
            lines.append(f"- `{name}`: {_first_sentence(about)}\n")
    return lines


def _call(name: str, function: Callable[..., Any]) -> str:
    """A method as it is called, in names alone; a default of one word with them."""
    signature = inspect.signature(function)
    shown = []
    for one in list(signature.parameters.values()):
        if one.name in ("self", "cls"):
            continue
        default = "" if one.default is inspect.Parameter.empty else repr(one.default)
        shown.append(
            f"{one.name}={default}" if default and len(default) < 12 else f"{one.name}=..." if default else one.name
        )
    named = [
        one.kind is inspect.Parameter.KEYWORD_ONLY
        for one in signature.parameters.values()
        if one.name not in ("self", "cls")
    ]
    if True in named:
        shown.insert(named.index(True), "*")
    return f"{name}({', '.join(shown)})"


def _first_sentence(doc: str) -> str:
    """What stands above the first empty line, on one line."""
    return " ".join(doc.partition("\n\n")[0].split())


def _beside(name: str) -> str:
    """The text under an assignment in the module that a value comes from."""
    module = _imported_from().get(name, "ownview.testing.federated")
    found = re.search(rf'^{name}\b[^\n]*=.*?\n"""(.*?)"""', _source(module), re.MULTILINE | re.DOTALL)
    return textwrap.dedent(found[1]) if found else "A value."


def _source(module: str) -> str:
    return inspect.getsource(importlib.import_module(module))


def _signature(name: str, one: Callable[..., Any]) -> str:
    if not (inspect.isclass(one) or inspect.isfunction(one)):
        return name
    try:
        signature = inspect.signature(one)
    except (TypeError, ValueError):
        return name
    if getattr(one, "_is_protocol", False):  # to be derived from: there is nothing to make one of
        return f"class {name}"
    given = [parameter for parameter in signature.parameters.values() if not parameter.name.startswith("_")]
    signature = signature.replace(parameters=given)
    parts = _marked([_parameter(parameter) for parameter in given], signature)
    returned = signature.return_annotation
    back = "" if inspect.isclass(one) or returned is inspect.Signature.empty else f" -> {_kind(returned)}"
    line = f"{name}({', '.join(parts)}){back}"
    return line if len(line) <= 110 else f"{name}(\n    " + ",\n    ".join(parts) + f",\n){back}"


def _marked(parts: list[str], signature: inspect.Signature) -> list[str]:
    """With the star behind which arguments go by name."""
    named = [one.kind is inspect.Parameter.KEYWORD_ONLY for one in signature.parameters.values()]
    starred = any(one.kind is inspect.Parameter.VAR_POSITIONAL for one in signature.parameters.values())
    return [*parts[: named.index(True)], "*", *parts[named.index(True) :]] if True in named and not starred else parts


def _parameter(one: inspect.Parameter) -> str:
    star = "*" if one.kind is inspect.Parameter.VAR_POSITIONAL else ""
    kind = "" if one.annotation is inspect.Parameter.empty else f": {_kind(one.annotation)}"
    if one.default is inspect.Parameter.empty:
        return f"{star}{one.name}{kind}"
    shown = one.default.name.upper() if isinstance(one.default, public.Protocol) else repr(one.default)
    shown = "..." if "<" in shown or len(shown) > 40 else shown
    return f"{star}{one.name}{kind} = {shown}"


def _kind(annotation: Any) -> str:
    annotation = getattr(annotation, "__forward_arg__", annotation)
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))
    return re.sub(r"\b(?:ownview|collections|typing|torch|pathlib)\.(?:\w+\.)*", "", text)


def _as_markdown(doc: str) -> str:
    """A docstring; what it says of arguments is a list."""
    lines = []
    for line in doc.splitlines():
        found = re.match(r"    (\w+): (.*)", line)
        lines.append(f"- `{found[1]}`: {found[2]}" if found else re.sub(r"^ {4,8}", "  ", line))
    return re.sub(r"^(Args|Returns|Raises):$", r"\1:\n", "\n".join(lines), flags=re.MULTILINE)


if __name__ == "__main__":
    for file, text in pages().items():
        (PAGES / file).write_text(text, encoding="utf-8")
    print(f"{PAGES}: {len(pages())} pages")
