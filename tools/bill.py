"""The bill of materials: what is installed, as CycloneDX 1.6 in JSON, with the licence of each package checked.

`python -m tools.bill build/sbom.json` ends with code 1 where a pinned package has a licence that is not allowed. What
is installed and not pinned (pip itself, the accelerator's libraries of torch's wheel) is listed and not judged.
"""

from __future__ import annotations

import json
import sys
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import distribution, distributions
from pathlib import Path
from typing import Any

from tools.licences import allowed, licence
from tools.lock import ROOT, normal, pins

PROJECT = "ownview"


@dataclass(frozen=True, order=True)
class Component:
    """An installed package; `licence` is "" where its metadata name none."""

    name: str
    version: str
    licence: str

    @property
    def purl(self) -> str:
        """Its package URL: the name of the release that the index knows, without a build's local label (`+cpu`)."""
        return f"pkg:pypi/{self.name}@{self.version.partition('+')[0]}"


def installed() -> list[Component]:
    """Every package of this environment but the project, by name."""
    found = {Component(normal(it.metadata["Name"]), it.version, licence(it)) for it in distributions()}
    return sorted(it for it in found if it.name != PROJECT)


def bill(components: Iterable[Component]) -> dict[str, Any]:
    """The document. Its serial number is made of what it lists: the same packages are the same bill."""
    listed = [
        {
            "type": "library",
            "bom-ref": it.purl,
            "name": it.name,
            "version": it.version,
            "purl": it.purl,
            "licenses": [{"license": {"name": it.licence or "unknown"}}],
        }
        for it in components
    ]
    serial = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(listed))
    project = {"type": "application", "name": PROJECT, "version": distribution(PROJECT).version}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{serial}",
        "version": 1,
        "metadata": {"component": project},
        "components": listed,
    }


def refused(components: Iterable[Component], pinned: Iterable[str]) -> list[Component]:
    """Pinned packages whose licence is not allowed."""
    names = set(pinned)
    return [it for it in components if it.name in names and not allowed(it.name, it.licence)]


def main(out: Path) -> int:
    """Write the bill to `out`, print what is not pinned and what is refused; 1 where something is refused."""
    components = installed()
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(bill(components), indent=1) + "\n", encoding="utf-8")
    pinned = pins((ROOT / "constraints.txt").read_text(encoding="utf-8"))
    wrong = refused(components, pinned)
    print(f"{out}: {len(components)} packages, {len(wrong)} with a licence that is not allowed")
    for it in components:
        if it.name not in pinned:
            print(f"not pinned: {it.name}=={it.version}, licence: {it.licence or 'unknown'}")
    for it in wrong:
        print(f"not allowed: {it.name}=={it.version}, licence: {it.licence or 'unknown'}; see tools/licences.py")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
