"""What was measured of models in use, as tables between the markers of docs/living-sums.md and docs/serve.md.

    python -m benchmarks.lived results/living.json              # the tables, from the record
    python -m benchmarks.lived results/living.json --measure    # all of the record anew, in one sitting

One sitting takes about six minutes of two cores. It ends where a measurement fails, before the record is replaced.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from ownview.runs.files.provenance import revision

PAGES = {"sums": "docs/living-sums.md", "serve": "docs/serve.md"}
SERVED = {
    "32 connections for 60 s": (),
    "20 swaps and 5 kills of workers in 60 s": ("--swaps", "20", "--kills", "5"),
    "100,000 requests": ("--requests", "100000"),
}
"""What is measured of a server, with the words of `benchmarks.serving`."""
_ROOT = Path(__file__).parents[1]
Record = dict[str, Any]


def add_record(path: Path, part: str, found: Record, case: str = "") -> None:
    """Put a measurement into the record, in the place of the one before; `case` where a part has several."""
    known: Record = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    known["machine"] = {"processor": _processor(), "cores": len(os.sched_getaffinity(0))}
    known["revision"] = revision()
    if case:
        known.setdefault(part, {})[case] = found
    else:
        known[part] = found
    path.write_text(json.dumps(known, indent=2) + "\n", encoding="utf-8")


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else os.environ.get("PROCESSOR", platform.machine())


def rendered(page: str, part: str, record: Record) -> str:
    """A page with its table between the markers."""
    begin, end = f"<!-- {part} -->\n", f"<!-- end of {part} -->"
    before, found, rest = page.partition(begin)
    _, closed, after = rest.partition(end)
    if not (found and closed):
        raise SystemExit(f"expected the lines {begin.strip()} and {end} in the page")
    table = _sums(record) if part == "sums" else _serve(record)
    return before + begin + table + end + after


def _sums(record: Record) -> str:
    found = record["sums"]
    data, fit = found["data"], found["lines"][0]
    rows = []
    for line in found["lines"]:
        small = "slowest" in line
        clock = f"{1000 * line['seconds']:.0f} ms" if small else f"{line['seconds']:.1f}"
        work = f"{1000 * line['processor']:.0f} ms" if small else f"{line['processor']:.1f}"
        how = f"{line['people']} people, the slowest {1000 * line['slowest']:.0f} ms" if small else line.get("how", "")
        inside = f"{line['inside']:.1f}" if "inside" in line else ""
        share = f"{line['processor'] / fit['processor']:.2g}"
        rows.append(f"| {line['what']} | {clock} | {inside} | {line['load']} | {work} | {share} | {how} |\n")
    return (
        f"\n{found['method']} on {data['name']}: {data['people']:,} people, {data['items']:,} items, {data['rows']:,} "
        f"rows. {_where(record)}.\n\n"
        "| what | seconds | without the start of Python | load of the machine | CPU-seconds | of a fit's | how |\n"
        "| --- | --- | --- | --- | --- | --- | --- |\n" + "".join(rows) + "\n" + _note(record, "sums")
    )


def _note(record: Record, part: str) -> str:
    """What a reader of a record has to know that was not made in one sitting on idle cores."""
    said = record.get("notes", {}).get(part)
    return f"{said}\n\n" if said else ""


def _where(record: Record) -> str:
    machine = record["machine"]
    return f"{machine['cores']} cores of {machine['processor']}, revision {record.get('revision', 'not noted')}"


def _serve(record: Record) -> str:
    rows = []
    for case, one in record["serve"].items():
        times, memory = one["milliseconds"], one["memory_mb"]
        held = "" if memory is None else f"{memory['before']} to {memory['after']} MB"
        swaps, starts = one["swaps_and_starts_of_workers"]
        lost = f"{one['errors']} / {one['refused']} / {one['asked_again']}"
        spread = " / ".join(str(times[name]) for name in ("p50", "p95", "p99", "p99.9"))
        rows.append(
            f"| {case} | {one['requests']:,} in {one['seconds']:.0f} s | {one['requests_a_second']:.0f} | "
            f"{spread} | {lost} | {swaps} / {starts} | {held} |\n"
        )
    loads = ", ".join(str(one["load_before"]) for one in record["serve"].values())
    return (
        f"\n{_where(record)}, load before: {loads}.\n\n"
        "| what | requests | a second | ms: p50 / p95 / p99 / p99.9 | errors / refused / asked again | "
        "swaps / starts of workers | own memory of the workers |\n"
        "| --- | --- | --- | --- | --- | --- | --- |\n" + "".join(rows) + "\n" + _note(record, "serve")
    )


def measure(record: Path) -> None:
    """Make the whole record, in the place of the one before."""
    with tempfile.TemporaryDirectory() as folder:
        fresh, model = Path(folder) / "record.json", Path(folder) / "goodbooks"
        _run("benchmarks.living_sums", "ml-1m", "--record", str(fresh))
        _run("ownview", "fit", "fedease", "--data", "goodbooks", "--out", str(model))
        for case, words in SERVED.items():
            _run("benchmarks.serving", str(model), "--record", str(fresh), "--case", case, *words)
        record.write_text(fresh.read_text(encoding="utf-8"), encoding="utf-8")


def _run(*words: str) -> None:
    subprocess.run([sys.executable, "-m", *words], cwd=_ROOT, check=True)


def main() -> None:
    """Write the tables of both pages."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("record", type=Path)
    parser.add_argument("--measure", action="store_true", help="Make the record anew, first.")
    asked = parser.parse_args()
    if asked.measure:
        measure(asked.record.resolve())
    record = json.loads(asked.record.read_text(encoding="utf-8"))
    for part, name in PAGES.items():
        page = _ROOT / name
        page.write_text(rendered(page.read_text(encoding="utf-8"), part, record), encoding="utf-8")


if __name__ == "__main__":
    main()
