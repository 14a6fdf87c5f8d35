"""What fewer, cheaper rounds of FedSASRec cost in accuracy: results/cheaper_rounds.json, its table and its picture.

python -m benchmarks.cheaper_rounds measure ROW ... --data-dir DIR   row by row; rows that are there are kept
python -m benchmarks.cheaper_rounds page                             writes docs/methods/fedsasrec.md and its picture

Every row is `ownview run fedsasrec` in a process of its own; its CPU-seconds are those of the whole process, set-up and
measurements among them. The round is chosen on validation, as everywhere; rows are compared by validation too.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.panels import Curve, Point, picture
from benchmarks.rendering import between

ROOT = Path(__file__).parents[1]
RESULTS, PAGE = ROOT / "results" / "cheaper_rounds.json", ROOT / "docs" / "methods" / "fedsasrec.md"
PICTURE = ROOT / "docs" / "pictures" / "cheaper-rounds.svg"
BEGIN, END = "<!-- begin: benchmarks/cheaper_rounds.py -->\n", "<!-- end: benchmarks/cheaper_rounds.py -->"
SEED = 0
SMALL: dict[str, Any] = {
    "embedding_size": 32, "blocks": 1, "heads": 1, "length": 50, "dropout": 0.2, "horizon": 1.0, "item_dropout": 0.1,
    "label_smoothing": 0.2,
}  # fmt: skip
"""A network that a laptop trains: half as wide as the preset `tuned`, of one block, looking back a quarter as far."""
WORLDS: dict[str, tuple[str, dict[str, Any]]] = {
    "ml-100k": ("honest", SMALL),
    "amazon-beauty": ("sequential", {"embedding_size": 256, "length": 50, "dropout": 0.6, "temperature": 0.07}),
}
"""Protocol and network by data: on amazon-beauty what the suite `cosines` has."""
FIRST = "ml-100k"
"""The data of rows that name none."""
TWO_PASSES = {"data": "amazon-beauty", "embedding_size": 512, "exclude_seen": True, "r_drop": 0.5}
"""What the suite's wider network has besides."""
UNDRAWN = (
    "amazon-beauty, two passes, cohorts of 2,048, rate .003 falling",
    "amazon-beauty, two passes, cohorts of 2,048, rate .0015",
    "amazon-beauty, two passes, cohorts of 4,096, rate .002 falling",
)
"""Rows of the table whose curves the picture has no colours for."""
ROWS: dict[str, dict[str, Any]] = {
    "cohorts of 128": {"clients": "turns:128", "learning_rate": 0.003, "rounds": 240, "every": 8},
    "a filter of weight .5": {
        "clients": "turns:128", "learning_rate": 0.003, "frequency": 0.5, "rounds": 120, "every": 8,
    },
    "cohorts of 472, rate .01": {"clients": "turns:472", "learning_rate": 0.01, "rounds": 30, "every": 2},
    "cohorts of 472, rate .02": {"clients": "turns:472", "learning_rate": 0.02, "rounds": 30, "every": 2},
    "a byte a number": {"clients": "turns:128", "learning_rate": 0.003, "sent_bits": 8, "rounds": 120, "every": 8},
    "largest 256 rows, a byte a number": {
        "clients": "turns:128", "learning_rate": 0.003, "sent_rows": 256, "sent_bits": 8, "rounds": 240, "every": 8,
    },
    "amazon-beauty, cohorts of 128": {"data": "amazon-beauty", "clients": "turns:128", "rounds": 3500, "every": 175},
    "amazon-beauty, cohorts of 2,048, rate .003": {
        "data": "amazon-beauty", "clients": "turns:2048", "learning_rate": 0.003, "rounds": 132, "every": 11,
    },
    "amazon-beauty, two passes, cohorts of 2,048, rate .003 falling": {
        **TWO_PASSES, "clients": "turns:2048", "learning_rate": 0.003, "decay_steps": 132, "rounds": 132, "every": 11,
    },
    "amazon-beauty, two passes, cohorts of 2,048, rate .0015": {
        **TWO_PASSES, "clients": "turns:2048", "learning_rate": 0.0015, "rounds": 140, "every": 10,
    },
    "amazon-beauty, two passes, cohorts of 4,096, rate .002 falling": {
        **TWO_PASSES, "clients": "turns:4096", "learning_rate": 0.002, "decay_steps": 200, "rounds": 140, "every": 10,
    },
    "amazon-beauty, two passes, cohorts of 4,096, rate .003": {
        **TWO_PASSES, "clients": "turns:4096", "learning_rate": 0.003, "rounds": 140, "every": 10,
    },
}  # fmt: skip
"""What is set beside the network; `rounds` and `every` how long it trains and how often validation is asked.

The row of amazon-beauty with larger cohorts was written down before it was run, for some twentieth of the rounds of
cohorts of 128; another one, with rate .01, was broken off. Those of two passes, made on a GPU, are four of seven trials
for a twentieth of the rounds; the page says what the others had.
"""


PASSES = (5, 10, 15, 30)
"""Over all clients, after which rows are held against each other."""


def measured(title: str, data_dir: Path | None) -> dict[str, Any]:
    """One row, run in a process of its own."""
    data, protocol, settings, rounds, every = _asked(title)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        words = [f"--set={name}={value}" for name, value in settings.items()]
        words += [] if data_dir is None else ["--data-dir", str(data_dir)]
        line = [sys.executable, "-m", "ownview", "run", "fedsasrec", "--data", data, "--protocol", protocol]
        line += ["--device", "cpu"]
        line += ["--rounds", str(rounds), "--measure-every", str(every), "--seed", str(SEED), "--out", str(out), *words]
        alone = os.environ | {"OMP_NUM_THREADS": "1", "OWNVIEW_PROGRESS": "off"}
        process = subprocess.Popen(line, env=alone, stdout=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        if status:
            raise SystemExit(f"{title}: the run ended with {os.waitstatus_to_exitcode(status)}")
        return read(title, out, used.ru_utime + used.ru_stime)


def _asked(title: str) -> tuple[str, str, dict[str, Any], int, int]:
    """Data, protocol, settings, rounds and after how many rounds validation is asked."""
    asked = dict(ROWS[title])
    rounds, every, data = asked.pop("rounds"), asked.pop("every"), asked.pop("data", FIRST)
    protocol, network = WORLDS[data]
    return data, protocol, network | asked, rounds, every


def read(title: str, out: Path, cpu_seconds: float | None = None) -> dict[str, Any]:
    """A row from its run: its curve on validation, bytes, seconds and test at the chosen round.

    Args:
        title: of the row.
        out: folder of the finished run.
        cpu_seconds: of its process; the seconds of its rounds where None, for a run that had one thread. None is
            recorded of a run on another device.
    """
    data, protocol, settings, rounds, _ = _asked(title)
    lines = [json.loads(one) for one in (out / "rounds.jsonl").read_text(encoding="utf-8").splitlines()]
    result = json.loads((out / "result.json").read_text(encoding="utf-8"))
    made = json.loads((out / "provenance.json").read_text(encoding="utf-8"))
    elsewhere = made["machine"]["device"] != "cpu"
    if cpu_seconds is None:
        cpu_seconds = sum(sum(one["seconds"].values()) for one in lines)
    curve = [
        {"round": one["round"], **{name: one["validation"][name] for name in ("HR@10", "NDCG@10")}}
        for one in lines
        if one.get("validation")
    ]
    return {
        "row": title, "data": data, "protocol": protocol, "seed": SEED, "settings": settings, "rounds": rounds,
        "chosen_round": result["chosen_round"], "test": {name: result["test"][name] for name in ("HR@10", "NDCG@10")},
        "bytes_down_a_round": lines[-1]["bytes_down_per_client"], "bytes_up_a_round": lines[-1]["bytes_up_per_client"],
        "clients_a_round": sum(one["clients"] for one in lines) / rounds,
        "cpu_seconds": None if elsewhere else round(cpu_seconds, 1),
        "curve": curve, "provenance": made,
    }  # fmt: skip


def recorded() -> list[dict[str, Any]]:
    """The rows that are there."""
    found: list[dict[str, Any]] = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else []
    return found


def measure(titles: list[str], data_dir: Path | None, finished: Path | None) -> None:
    """Measure the rows that are not there yet, and keep each at once."""
    for title in titles or [one for one, asked in ROWS.items() if "data" not in asked]:
        if any(one["row"] == title for one in recorded()):
            continue
        new = measured(title, data_dir) if finished is None else read(title, finished)
        found = [*recorded(), new]  # read anew: others may have been measured meanwhile
        found.sort(key=lambda one: list(ROWS).index(one["row"]))
        RESULTS.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def table(found: list[dict[str, Any]]) -> str:
    """The rows, by how far they are after as many passes over all clients, and what a round costs."""
    after = " | ".join(f"after {count} passes" for count in PASSES)
    text = (
        f"| | rounds a pass | validation NDCG@10 {after} | chosen round | test HR@10 / NDCG@10 | kB up | kB down | "
        "CPU-seconds a round |\n" + "| --- " * (7 + len(PASSES)) + "|\n"
    )
    for one in found:
        a_pass = round(one["provenance"]["data"]["users"] / one["clients_a_round"])
        reached = {point["round"]: point["NDCG@10"] for point in one["curve"]}
        curve = [decimals(reached[n * a_pass]) if n * a_pass in reached else "-" for n in PASSES]
        text += (
            f"| {one['row']} | {a_pass} | {' | '.join(curve)} | {one['chosen_round']} of {one['rounds']} | "
            f"{decimals(one['test']['HR@10'])} / {decimals(one['test']['NDCG@10'])} | "
            f"{one['bytes_up_a_round'] / 1e3:.0f} | {one['bytes_down_a_round'] / 1e3:.0f} | "
            f"{'-' if one['cpu_seconds'] is None else format(one['cpu_seconds'] / one['rounds'], '.2f')} |\n"
        )
    about = (
        "kB are of one client in one round it takes part in. In a pass everybody has one turn. CPU-seconds of a GPU: -."
    )
    return f"{text}\n{about}\n"


def decimals(value: float, digits: int = 3) -> str:
    """A share without its leading nought."""
    return f"{value:.{digits}f}".removeprefix("0")


def drawn(found: list[dict[str, Any]]) -> str:
    """SVG: validation NDCG@10 over rounds, a panel a dataset."""
    curves = []
    for one in (one for one in found if one["row"] not in UNDRAWN):
        name = one["row"].removeprefix(f"{one['data']}, ")
        points = [
            Point(point["round"], point["NDCG@10"], f"{name}, round {point['round']}: {decimals(point['NDCG@10'])}")
            for point in one["curve"]
        ]
        curves.append(Curve(one["data"], name, points))
    return picture(curves, "rounds")


def page() -> None:
    """Put the table between its markers, and draw the picture."""
    found = recorded()
    text = between(PAGE.read_text(encoding="utf-8"), "\n" + table(found) + "\n", (BEGIN, END))
    PAGE.write_text(text, encoding="utf-8")
    PICTURE.write_text(drawn(found), encoding="utf-8")


def main() -> None:
    """Measure, or write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("do", choices=("measure", "page"))
    parser.add_argument("rows", nargs="*", metavar="ROW")
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--finished", type=Path, help="folder of a run with the one ROW's settings, to be read instead")
    asked = parser.parse_args()
    unknown = [one for one in asked.rows if one not in ROWS]
    if unknown:
        raise SystemExit(f"no row {unknown[0]!r}; expected some of: {', '.join(ROWS)}")
    if asked.finished and len(asked.rows) != 1:
        raise SystemExit(f"--finished with {len(asked.rows)} rows; expected the one that the run is of")
    if asked.do == "page":
        page()
    else:
        measure(asked.rows, asked.data_dir, asked.finished)


if __name__ == "__main__":
    main()
