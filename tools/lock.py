"""Writes `lock/`: for every package that `constraints.txt` pins, the SHA-256 of every file of that version.

`make lock` runs it after a change of `pyproject.toml` or `constraints.txt`. The resolver is uv's, for every platform
and Python at once; the index is uv's default, or `UV_DEFAULT_INDEX`. One file a layer of the Makefile's set-up, each
with what it adds to the layer below; pip reads them with `--require-hashes`.

torch is left out, and with it the accelerator's libraries that only its wheel asks for: builds for CPUs, CUDA and ROCm
share a version and are different files, so that a hash would decide for everybody which of them to take.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
UNHASHED = "torch"
# Some packages of the site want a later patch release than the project's `requires-python` names.
OLDEST_PYTHON = "3.11.5"
# hatchling asks for it when a checkout is installed in place.
BUILT_IN_PLACE = "editables"
# uv resolves for this platform too, for which torch has no wheels.
ELSEWHERE = "emscripten"
HEADER = "# Made by `make lock` from pyproject.toml and constraints.txt. Do not edit.\n"


@dataclass(frozen=True)
class Layer:
    """One step of the set-up: the extra it installs, and the layer that is there already."""

    name: str
    below: str | None
    extra: str | None


LAYERS = (
    Layer("core", None, None),
    Layer("deploy", "core", "deploy"),
    Layer("test", "deploy", "test"),
    Layer("dev", "test", "dev"),
    Layer("docs", "core", "docs"),
)


@dataclass(frozen=True)
class Locked:
    """One package of a resolution: its lines for pip, and the packages that ask for it."""

    name: str
    version: str
    lines: tuple[str, ...]
    asked_by: frozenset[str]


def normal(name: str) -> str:
    """A package's name as indexes compare it: lower case, runs of `-`, `_` and `.` as one `-`."""
    return re.sub(r"[-_.]+", "-", name).lower()


def pins(text: str) -> dict[str, str]:
    """Names and versions of a file of `name==version` lines; comments and empty lines are skipped."""
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return {normal(name): version for name, version in (line.split("==") for line in lines)}


def parsed(text: str) -> dict[str, Locked]:
    """The packages of a file that uv wrote: a line with the pin, lines with hashes, comments with who asks.

    Packages for WebAssembly alone are skipped.
    """
    packages: dict[str, Locked] = {}
    for block in re.split(r"\n(?=[a-z0-9])", "\n" + text):
        head = re.match(r"\n?([a-z0-9][a-z0-9.-]*)==(\S+)(.*)", block)
        if head is None or f"sys_platform == '{ELSEWHERE}'" in head[3]:
            continue
        lines = [line for line in block.strip().splitlines() if not line.lstrip().startswith("#")]
        comments = [line.strip(" #") for line in block.splitlines() if line.lstrip().startswith("#")]
        asked = [line.removeprefix("via").strip() for line in comments]
        who = frozenset(re.sub(r"[\[ (].*", "", line) for line in asked if line)
        packages[head[1]] = Locked(head[1], head[2], tuple(lines), who)
    return packages


def hashed(packages: dict[str, Locked], pinned: Iterable[str]) -> dict[str, Locked]:
    """`packages` without torch and without what nobody but torch asks for; the rest must be pinned.

    Raises:
        SystemExit: a package that does not come with torch is missing in `constraints.txt`.
    """
    known, left = set(pinned), dict(packages)
    left.pop(UNHASHED, None)
    while gone := [name for name, it in left.items() if name not in known and not it.asked_by & left.keys()]:
        for name in gone:
            if packages[name].asked_by.isdisjoint(packages):
                raise SystemExit(f"constraints.txt: {name}=={packages[name].version} is not pinned")
            del left[name]
    if missing := sorted(left.keys() - known):
        raise SystemExit("constraints.txt: not pinned: " + ", ".join(f"{it}=={left[it].version}" for it in missing))
    return left


def resolved(layer: Layer) -> dict[str, Locked]:
    """What uv makes of the layer's extra and of the build's requirements, under `constraints.txt`."""
    build = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["build-system"]["requires"]
    with tempfile.TemporaryDirectory() as folder:
        wanted, out = Path(folder) / "build.in", Path(folder) / "out.txt"
        wanted.write_text("\n".join([*build, BUILT_IN_PLACE, ""]), encoding="utf-8")
        command = [sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--universal", "--generate-hashes"]
        command += ["--python-version", OLDEST_PYTHON, "--constraint", "constraints.txt", "--output-file", str(out)]
        command += ["pyproject.toml", str(wanted)] + (["--extra", layer.extra] if layer.extra else [])
        subprocess.run(command, cwd=ROOT, check=True)
        return parsed(out.read_text(encoding="utf-8"))


def main() -> None:
    """Resolve every layer and write its file."""
    pinned = pins((ROOT / "constraints.txt").read_text(encoding="utf-8"))
    layers: dict[str, dict[str, Locked]] = {}
    (ROOT / "lock").mkdir(exist_ok=True)
    for layer in LAYERS:
        layers[layer.name] = here = hashed(resolved(layer), pinned)
        there = layers[layer.below] if layer.below else {}
        lines = [f"-r {layer.below}.txt"] if layer.below else []
        # A package that the layer below wants on some platforms alone is named again.
        added = [name for name in sorted(here) if name not in there or there[name].lines != here[name].lines]
        lines += [line for name in added for line in here[name].lines]
        (ROOT / "lock" / f"{layer.name}.txt").write_text(HEADER + "\n".join(lines) + "\n", encoding="utf-8")
        print(f"lock/{layer.name}.txt: {len(added)} packages")


if __name__ == "__main__":
    main()
