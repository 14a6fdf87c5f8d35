"""From tables to runs, and from runs to figures."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import pytest
from reproduction.papers import select, settings_of
from reproduction.plan import Line, Options, Status, plan, results, tasks

from ownview.base.errors import OutputError
from ownview.evaluation.groups import ActivityRange
from ownview.runs.batch import run_all
from ownview.studies.grid import folder_name
from tests.reproduction.worlds import store_world


@pytest.fixture
def store(own_folder: Path) -> Path:
    store_world(own_folder / "store", "ml-100k")
    return own_folder / "store"


def lines_of(paper: str, table: str, options: Options, data: str = "ml-100k") -> dict[str, Line]:
    return {line.one.method: line for line in plan(select(paper, [table], [data]), settings_of(paper), options)}


def carried_out(lines: dict[str, Line], store: Path) -> dict[str, Line]:
    run_all(tasks(list(lines.values())), jobs=1, memory="auto", data_dir=store)
    return {line.one.method: line for line in results(list(lines.values()), {})}


def options(store: Path, **changes: Any) -> Options:
    return replace(Options(store.parent / "runs", seeds=1, rounds=2, data_dir=store), **changes)


def test_a_run_that_two_tables_need_is_one_task(store: Path) -> None:
    asked = options(store)
    one, two, ten = (lines_of("PFedRec", table, asked) for table in ("1", "2", "10"))
    assert one["PFedRec"].here == two["FedMF+DualPer"].here == ten["PFedRec inactive users"].here
    every = [*one.values(), *two.values(), *ten.values()]
    assert len(tasks(every)) == 16, "six methods of Table 1 and DualPer around two of them, under paper and honest"
    assert lines_of("PFedRec", "8", asked)["PFedRec"].here != one["PFedRec"].here


def test_folders_are_named_by_words_and_by_everything_that_decides_the_result(store: Path) -> None:
    ((made, folder),) = lines_of("PFedRec", "1", options(store))["PFedRec"].here
    assert folder.name == folder_name(made)
    assert folder.name.startswith("pfedrec-ml-100k-paper-seed0-")
    assert folder_name(replace(made, device="cuda")) == folder_name(made)
    assert folder_name(replace(made, settings={"embedding_size": 32})) == folder_name(made), "the default, written out"
    changes = ({"rounds": 3}, {"seed": 1}, {"settings": {"embedding_size": 8}}, {"engine": "loop"})
    assert len({folder_name(replace(made, **change)) for change in changes} | {folder_name(made)}) == 5


def test_rows_without_settings_methods_or_data_say_why(store: Path) -> None:
    settings = settings_of("FedRAP")
    without = replace(settings, rows={name: row for name, row in settings.rows.items() if "FedNCF" not in name})
    lines = plan(select("FedRAP"), without, options(store))
    by_row = {(line.one.data, line.one.method): line for line in lines}
    absent = by_row["ml-100k", "FedNCF"]
    assert (absent.status, absent.reason, absent.here) == (Status.NOT_AVAILABLE, "no settings yet", ())
    unknown = by_row["ml-1m", "FedRAP"]
    assert unknown.status is Status.NO_DATA
    assert unknown.reason == "ml-1m: get it with: ownview data fetch ml-1m"
    assert "then: ownview data import FILE --name tafeng" in by_row["tafeng", "FedRAP"].reason
    assert by_row["ml-100k", "FedRAP"].status is Status.PLANNED


def test_a_name_this_version_does_not_have_is_not_available_yet(store: Path) -> None:
    settings = settings_of("PFedRec")
    row = settings.rows["PFedRec"]
    asked = select("PFedRec", ["1"], ["ml-100k"])
    for experiment, lacking in (
        ({"method": "soon"}, "method soon"),
        ({"method": "pfedrec", "plugins": [{"name": "soon"}]}, "plug-in soon"),
        ({"method": "pfedrec", "federation": {"soon": 1}}, "federation setting soon"),
    ):
        changed = replace(settings, rows={"PFedRec": replace(row, experiment=experiment)})
        line = next(line for line in plan(asked, changed, options(store)) if line.one.method == "PFedRec")
        assert (line.status, line.reason) == (Status.NOT_AVAILABLE, f"needs {lacking}")


def test_figures_are_means_over_seeds_beside_the_published_ones(store: Path) -> None:
    lines = {"PFedRec": lines_of("PFedRec", "1", options(store, seeds=3))["PFedRec"]}
    result = carried_out(lines, store)["PFedRec"]
    assert result.status is Status.MEASURED
    for kind, folders in (("here", lines["PFedRec"].here), ("honest", lines["PFedRec"].honest)):
        found = [json.loads((folder / "result.json").read_text())["test"] for _, folder in folders]
        assert len(found) == 3
        for one, metric in zip(result.reached, ("HR@10", "NDCG@10"), strict=True):
            measure = getattr(one, kind)
            assert measure.values == tuple(values[metric] for values in found)
            assert measure.mean == pytest.approx(mean(measure.values))
            assert measure.spread == pytest.approx(stdev(measure.values))
    first = result.reached[0]
    assert first.here is not None
    assert first.figure.value == 0.7162
    assert first.difference == pytest.approx(first.here.mean - 0.7162)


def test_a_group_of_users_is_those_with_so_many_interactions(store: Path) -> None:
    line = lines_of("PFedRec", "10", options(store, honest=False))["PFedRec inactive users"]
    assert line.setup is not None
    small = replace(line, setup=replace(line.setup, inactive=ActivityRange(12, 15)))
    result = carried_out({"PFedRec": small}, store)["PFedRec inactive users"]
    with (line.here[0][1] / "users.csv").open() as users:
        group = [user for user in csv.DictReader(users) if user["training_interactions"] in {"10", "11", "12"}]
    assert len(group) == 6
    measure = result.reached[0].here
    assert measure is not None
    assert measure.values == pytest.approx((mean(float(user["HR@10"]) for user in group),))
    unmet = replace(line, setup=replace(line.setup, inactive=ActivityRange(90, 91)))
    (empty,) = results([unmet], {})
    assert (empty.status, empty.reason) == (Status.NOT_MEASURED, "no user is in the group")


def test_costs_come_from_the_run_or_are_not_measured(store: Path) -> None:
    asked = options(store)
    space, seconds = (lines_of("PFedCLR", table, asked)["FedMF"] for table in ("6", "7"))
    assert space.here == seconds.here
    assert space.honest == ()
    carried_out({"FedMF": space}, store)
    folder = space.here[0][1]
    written = json.loads((folder / "result.json").read_text())
    written.pop("cost", None)
    (folder / "result.json").write_text(json.dumps(written))
    (folder / "cost.json").unlink(missing_ok=True)
    absent = results([space, seconds], {})
    assert [(one.status, one.reason) for one in absent] == [(Status.NOT_MEASURED, "the runs tell no cost")] * 2

    def means() -> list[float]:
        measured = results([space, seconds], {})
        return [one.here.mean for result in measured for one in result.reached if one.here is not None]

    of_result = {"client_bytes": 2**21, "server_bytes": 2**20, "round_seconds": 0.25}
    (folder / "result.json").write_text(json.dumps({**written, "cost": of_result}))
    assert means() == [2.0, 1.0, 0.25]
    declared = {"client_bytes": 2**19, "server_bytes": 2**20, "server_bytes_with_uploads": 17 * 2**20}
    of_file = {"declared": declared, "measured": {"client_bytes": 1, "seconds": {"round": 0.5}}}
    (folder / "cost.json").write_text(json.dumps(of_file))
    assert means() == [0.5, 17.0, 0.5]
    (folder / "cost.json").write_text("{")
    with pytest.raises(OutputError, match=r"cost\.json: is damaged"):
        means()


def test_a_failed_run_fails_its_line_and_no_other(store: Path) -> None:
    lines = lines_of("PFedRec", "1", options(store))
    failing = lines["FedMF"].here[0][1]
    del lines["FedMF"]
    carried_out(lines, store)
    every = lines_of("PFedRec", "1", options(store, honest=False))
    found = {line.one.method: line for line in results(list(every.values()), {failing: "went wrong"})}
    assert (found["FedMF"].status, found["FedMF"].reason) == (Status.FAILED, "ml-100k: went wrong")
    assert found["FedMF"].reached[0].here is None
    assert found["PFedRec"].status is Status.MEASURED
