"""From recorded runs to a line a figure: means over seeds, twins, verdicts, and why there is none."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from reproduction.ledger.lines import Line, Verdict, lines, names, unseen_lines, verdict_of
from reproduction.ledger.page import page
from reproduction.ledger.picture import here_against_honest, published_against_here
from reproduction.ledger.record import Record, as_called_now, read_record, together
from reproduction.ledger.rows import Asked, LedgerRow, rows, unseen

from ownview.base.errors import OutputError
from ownview.studies.bench.results import read_all, write_document

ROOT = Path(__file__).resolve().parents[3]


def row_of(paper: str, table: str, data: str, method: str) -> LedgerRow:
    (found,) = [row for row in rows() if (row.one.paper, row.one.number, row.one.data) == (paper, table, data)
                and row.one.method == method]  # fmt: skip
    return found


PFEDREC = row_of("PFedRec", "1", "ml-100k", "PFedRec")
INACTIVE = row_of("PFedRec", "10", "ml-100k", "PFedRec inactive users")
SPACE = row_of("PFedCLR", "6", "ml-100k", "FedMF")


def entry(asked: Asked | None, seed: int, value: float, **more: Any) -> dict[str, Any]:
    assert asked is not None
    run, made = asked.seed(seed)
    values = made.resolved(made.model()).to_dict()
    return {
        "run": run, "row": asked.name, "method": made.label(), "data": made.data_label(),
        "protocol": made.protocol.name, "seed": seed, "rounds": made.rounds,
        "test": {"HR@10": value, "NDCG@10": value / 2}, "seconds": 1.0,
        "experiment": {name: values[name] for name in ("method", "settings", "plugins", "federation", "measure_every")},
        "provenance": {"revision": "abc", "machine": {"cores": 2, "cpu": "one", "device": "cpu"}}, **more,
    }  # fmt: skip


def record(*entries: dict[str, Any], left: tuple[dict[str, Any], ...] = (), not_found: tuple[str, ...] = ()) -> Record:
    protocols = {row.here.experiment.protocol.name: row.here.experiment.protocol.plain() for row in rows() if row.here}
    protocols["honest"] = PFEDREC.honest.experiment.protocol.plain() if PFEDREC.honest else {}
    return Record(
        {one["run"]: one for one in entries},
        {one["run"]: one for one in left},
        protocols,
        dict.fromkeys(not_found, "so"),
    )


def line_of(found: list[Line], row: LedgerRow, metric: str) -> Line:
    (only,) = [line for line in found if line.row is row and line.figure.metric == metric]
    return only


@pytest.mark.parametrize(
    ("value", "verdict"),
    [(0.53, "within .03"), (0.47, "within .03"), (0.5301, "within .05"), (0.45, "within .05"), (0.4499, "lower"),
     (0.56, "higher")],
)  # fmt: skip
def test_verdicts_go_by_the_difference(value: float, verdict: str) -> None:
    share = replace(PFEDREC.one, value=0.5)
    assert verdict_of(share, value) == verdict


def test_verdicts_of_bytes_and_seconds_go_by_the_share() -> None:
    space = replace(SPACE.one, value=20.0)
    found = [verdict_of(space, value) for value in (20.6, 19.1, 18.9, 21.1)]
    assert found == [Verdict.NEAR, Verdict.FAIR, Verdict.LOWER, Verdict.HIGHER]


def test_a_line_is_the_mean_over_all_seeds_beside_its_twin() -> None:
    group = {"groups": {"20:30": {"HR@10": 0.6, "NDCG@10": 0.4}}}
    seeds = [entry(PFEDREC.here, 0, 0.7, **group), entry(PFEDREC.here, 1, 0.74), entry(PFEDREC.here, 11, 0.72)]
    found = lines(record(*seeds, entry(PFEDREC.honest, 0, 0.1)))
    assert len(found) == 1083
    line = line_of(found, PFEDREC, "HR@10")
    assert line.here is not None
    assert line.honest is not None
    assert line.here.plain() == {"mean": pytest.approx(0.72), "spread": pytest.approx(0.02), "seeds": [0, 1, 11]}
    assert line.honest.plain() == {"mean": 0.1, "spread": None, "seeds": [0]}
    assert line.difference == pytest.approx(0.72 - 0.7162)
    assert line.plain()["verdict"] == "within .03"
    assert line_of(found, row_of("PFedRec", "2", "ml-100k", "FedMF+DualPer"), "HR@10").here == line.here
    inactive = line_of(found, INACTIVE, "HR@10")
    assert inactive.here is not None
    assert inactive.here.plain()["mean"] == 0.6, "only the seed that tells of the group"
    assert sum(line.verdict.ran for line in found) == 8, "Tables 1, 2 and 10"


def test_costs_are_told_by_the_run() -> None:
    found = lines(record(entry(SPACE.here, 0, 0.4, cost={"client MB": 0.1027})))
    assert line_of(found, SPACE, "client MB").verdict is Verdict.NEAR
    assert line_of(found, SPACE, "server MB").verdict is Verdict.NOT_RUN


def test_figures_that_are_not_there_say_why() -> None:
    def left(row: LedgerRow, kind: str, reason: str) -> dict[str, Any]:
        assert row.here is not None
        return {"run": row.here.name, "row": row.here.name, "kind": kind, "reason": reason, "data": row.one.data,
                "protocol": "paper", "seed": 0}  # fmt: skip

    large = left(PFEDREC, "too large", "pfedrec's standing values need 9 GB and the setting memory allows 1 GB; raise")
    broke = left(SPACE, "failed", "values are not finite in round 55")
    found = lines(record(left=(large, broke), not_found=("hetrec2011",)))
    line = line_of(found, PFEDREC, "HR@10")
    assert (line.verdict, line.why) == (Verdict.TOO_LARGE, "pfedrec's standing values need 9 GB")
    line = line_of(found, SPACE, "client MB")
    assert (line.verdict, line.why) == (Verdict.FAILED, "values are not finite in round 55")
    absent = [line for line in found if line.figure.data == "hetrec2011"]
    assert {line.verdict for line in absent} == {Verdict.NO_DATA}
    text = page(found, unseen_lines(Record()), record(not_found=("hetrec2011",)))
    assert "| PFedRec, HR@10 | 0.7162 | - | - | too large: pfedrec's standing values need 9 GB |" in text
    assert "- failed: FedMF on ml-100k: values are not finite in round 55" in text
    assert "**0 of the 1022 figures whose data is at hand have been run (0 %)**" in text


def test_runs_of_suites_count_where_a_row_asks_for_them() -> None:
    papers = read_all(ROOT / "results")["papers"]
    found = lines(Record(), [papers])
    line = line_of(found, PFEDREC, "HR@10")
    assert line.here is not None
    assert line.here.plain()["seeds"] == [0, 1, 2]
    own = lines(record(entry(PFEDREC.here, 0, 0.5)), [papers])
    again = line_of(own, PFEDREC, "HR@10").here
    assert again is not None
    assert (again.by_seed[0], again.by_seed[1]) == (0.5, line.here.by_seed[1]), "the ledger's own before a suite's"


def test_records_are_put_together_and_later_ones_count(tmp_path: Path) -> None:
    first = record(
        entry(PFEDREC.here, 0, 0.7), entry(PFEDREC.here, 1, 0.7), not_found=("hetrec2011", "ml-100k", "tafeng")
    )
    assert PFEDREC.here is not None
    failed = {"run": PFEDREC.here.name, "row": PFEDREC.here.name, "seed": 0, "kind": "failed", "reason": "it broke"}
    second = record(entry(PFEDREC.here, 1, 0.8), left=(failed,), not_found=("hetrec2011", "ml-100k"))
    both = together([first, second], names())
    assert [one["test"]["HR@10"] for one in both.runs.values()] == [0.7, 0.8]
    assert both.left == {}, "a run that finished elsewhere has not failed"
    assert set(both.not_found) == {"hetrec2011"}, "absent everywhere, and nothing was run on it"
    assert set(both.protocols) == {"paper"}
    strange = {**entry(PFEDREC.here, 0, 0.7), "run": "other", "row": "other", "rounds": 7}
    assert set(together([first, record(strange)], names()).runs) == set(first.runs)
    write_document(tmp_path / "ledger.json", both.plain([one.plain() for one in lines(both)]))
    assert read_record(tmp_path / "ledger.json") == both
    (tmp_path / "ledger.json").write_text('{"format": 2}')
    with pytest.raises(OutputError, match=r"format 2, expected 1: what `python -m reproduction run --all` wrote"):
        read_record(tmp_path / "ledger.json")


def test_a_setting_that_came_later_has_its_default_in_older_runs() -> None:
    made = entry(PFEDREC.here, 2, 0.7)
    before = {**made, "run": "as-it-was", "row": "as-it-was-too"}
    before["experiment"] = {**made["experiment"], "settings": dict(made["experiment"]["settings"])}
    del before["experiment"]["settings"]["embedding_size"]  # as if it had not been there yet
    protocol = record().protocols["paper"]
    assert {name: as_called_now(before, protocol)[name] for name in ("run", "row")} == {
        name: made[name] for name in ("run", "row")
    }
    assert set(together([record(before)], names()).runs) == {made["run"]}


def test_new_data_has_a_line_for_every_row_of_its_suite() -> None:
    ((row, asked),) = [one for one in unseen() if one[0] == "fedem" and one[1].experiment.protocol.name == "honest"]
    found = unseen_lines(record(entry(asked, 0, 0.25)))
    assert len(found) == len(unseen())
    (mine,) = [line for line in found if line.found]
    assert (mine.row, mine.protocol, mine.found["HR@10"].by_seed) == (row, "honest", {0: 0.25})
    assert "| fedem | - | - | 0.250 (1) | 0.125 (1) |" in page(lines(Record()), found, Record())


def test_pictures_have_a_point_for_every_share_that_was_run() -> None:
    found = lines(record(entry(PFEDREC.here, 0, 0.7), entry(SPACE.here, 0, 0.4, cost={"client MB": 0.1})))
    here, honest = published_against_here(found), here_against_honest(found)
    assert here.count("<title>PFedRec, Table ") == 6, "HR@10 and NDCG@10 of Tables 1, 2 and all users of 10"
    assert "client MB" not in here
    assert "nothing has been run yet" in honest
    x, y = 50 + 0.7162 * 272, 34 + (1 - 0.7) * 272
    assert f"translate({x:.1f} {y:.1f})" in here
    assert here.count('<path class="p0"') == 7, "and one in the legend"
