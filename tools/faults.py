"""Asks the OSV database for known faults of what a bill of materials lists.

`python -m tools.faults build/sbom.json` sends names and versions in one request. It ends with code 1 where a fault is
known, and with 0 and a line that says why where the database gives no usable answer: a build without a network goes on.
"""

from __future__ import annotations

import json
import os
import sys
import urllib.request
from http.client import HTTPException
from pathlib import Path

ADDRESS = "https://api.osv.dev/v1/querybatch"
SECONDS = 10
LARGEST_ANSWER = 10_000_000
# Faults that do not touch us, each with the reason: {"GHSA-...": "we never call ..."}.
ACCEPTED: dict[str, str] = {}


def known(purls: list[str], address: str) -> dict[str, list[str]]:
    """The ids of known faults by package URL; packages without any are left out.

    Raises:
        OSError, HTTPException: the database cannot be reached, or refuses.
        ValueError, KeyError, TypeError, AttributeError: its answer is not what the database answers.
    """
    question = json.dumps({"queries": [{"package": {"purl": it}} for it in purls]}).encode()
    request = urllib.request.Request(address, question, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=SECONDS) as answer:
        results = json.loads(answer.read(LARGEST_ANSWER))["results"]
    if len(results) != len(purls):
        raise ValueError(f"{len(results)} answers to {len(purls)} questions")
    faults = {purl: [fault["id"] for fault in it.get("vulns", [])] for purl, it in zip(purls, results, strict=True)}
    left = {purl: [it for it in ids if it not in ACCEPTED] for purl, ids in faults.items()}
    return {purl: ids for purl, ids in left.items() if ids}


def main(bill: Path, address: str) -> int:
    """Print the known faults of the bill's packages; 1 where there are any."""
    purls = [it["purl"] for it in json.loads(bill.read_text(encoding="utf-8"))["components"]]
    try:
        faults = known(purls, address)
    except (OSError, HTTPException, ValueError, KeyError, TypeError, AttributeError) as error:
        print(f"known faults: not checked, the database gave no answer ({type(error).__name__}: {error})")
        return 0
    for purl, ids in faults.items():
        print(f"known faults: {purl}: {', '.join(ids)}")
    if not faults:
        print(f"known faults: none in {len(purls)} packages")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), os.environ.get("OSV_ADDRESS", ADDRESS)))
