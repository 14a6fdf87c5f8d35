"""The lock holds what pyproject.toml and constraints.txt ask for, with hashes: neither changes without the other."""

from __future__ import annotations

import re
import tomllib
from typing import Any

import pytest
from tools.lock import LAYERS, ROOT, UNHASHED, Layer, hashed, normal, parsed, pins

PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PINNED = pins((ROOT / "constraints.txt").read_text(encoding="utf-8"))
BY_NAME = {layer.name: layer for layer in LAYERS}

WRITTEN = """\
# made by a resolver
asked==1.0 \\
    --hash=sha256:aa \\
    --hash=sha256:bb
    # via project (pyproject.toml)
below==2.0 ; python_version < '3.12' \\
    --hash=sha256:cc
    # via
    #   asked
    #   torch
driver==3.0 ; sys_platform == 'linux' \\
    --hash=sha256:dd
    # via torch
in-browsers==4.0 ; sys_platform == 'emscripten' \\
    --hash=sha256:ee
    # via asked
of-driver==5.0 \\
    --hash=sha256:ff
    # via driver
torch==2.13.0 \\
    --hash=sha256:00
    # via project (pyproject.toml)
"""


def _text(layer: Layer) -> str:
    return (ROOT / "lock" / f"{layer.name}.txt").read_text(encoding="utf-8")


def _locked(layer: Layer) -> dict[str, str]:
    below = _locked(BY_NAME[layer.below]) if layer.below else {}
    return below | {name: it.version for name, it in parsed(_text(layer)).items()}


def _wanted(extra: str | None) -> set[str]:
    """Names of the packages that an extra asks for, those of the extras it includes among them."""
    requirements = PROJECT["project"]["optional-dependencies"][extra] if extra else PROJECT["project"]["dependencies"]
    names: set[str] = set()
    for requirement in requirements:
        if inner := re.fullmatch(r"ownview\[(.+)\]", requirement):
            names |= {name for one in inner[1].split(",") for name in _wanted(one)}
        elif head := re.match(r"[\w.-]+", requirement):
            names.add(normal(head[0]))
    return names


def test_the_lock_holds_every_pin_but_torch_at_its_version() -> None:
    locked = {name: version for layer in LAYERS for name, version in _locked(layer).items()}
    expected = {name: version for name, version in PINNED.items() if name != UNHASHED}
    assert locked == expected, "run `make lock`"


@pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: layer.name)
def test_a_layer_has_what_its_extra_asks_for_and_a_hash_of_everything(layer: Layer) -> None:
    assert _wanted(layer.extra) - {UNHASHED} <= _locked(layer).keys(), "run `make lock`"
    for name, it in parsed(_text(layer)).items():
        assert re.findall(r"--hash=sha256:[0-9a-f]{64}\b", "\n".join(it.lines)), name
    first = _text(layer).splitlines()[1]
    assert not layer.below or first == f"-r {layer.below}.txt"


def test_the_core_can_build_the_project_in_place_without_asking_the_index() -> None:
    build = {normal(it) for it in PROJECT["build-system"]["requires"]}
    assert build | {"editables"} <= _locked(BY_NAME["core"]).keys()


def test_torch_and_what_only_torch_asks_for_are_left_out() -> None:
    left = hashed(parsed(WRITTEN), ["asked", "below", "torch"])
    assert set(left) == {"asked", "below"}
    assert left["below"].lines == ("below==2.0 ; python_version < '3.12' \\", "    --hash=sha256:cc")


@pytest.mark.parametrize("pinned", [["asked", "torch"], ["below", "torch"]])
def test_a_package_that_nobody_pinned_ends_in_one_line_with_its_name(pinned: list[str]) -> None:
    missing = ({"asked", "below"} - set(pinned)).pop()
    with pytest.raises(SystemExit, match=f"constraints.txt: .*{missing}=="):
        hashed(parsed(WRITTEN), pinned)
