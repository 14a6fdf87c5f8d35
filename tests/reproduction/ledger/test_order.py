"""All runs of the ledger: each once, main tables first, in parts that machines agree on."""

from __future__ import annotations

from pathlib import Path

import pytest
from reproduction.ledger.order import MANY_SEEDS, Stage, Wanted, Wishes, part_of, wanted
from reproduction.ledger.reckoning import Reckoning, work
from reproduction.ledger.record import Entry, Record
from reproduction.ledger.rows import Asked, chosen, rows, unseen, without_noise
from reproduction.papers import figures

from ownview.base.errors import SettingError
from ownview.studies.grid import folder_name
from tests.reproduction.worlds import store_world


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("store")
    for name in ("ml-100k", "filmtrust"):
        store_world(place, name)
    return place


@pytest.fixture(autouse=True)
def _nothing_but_the_store(monkeypatch: pytest.MonkeyPatch) -> None:
    """Data that a person has elsewhere is planned for too."""
    monkeypatch.delenv("OWNVIEW_DATA", raising=False)


def planned(store: Path, **changes: object) -> list[Wanted]:
    return wanted(rows(), Wishes(store / "runs", data_dir=store, **changes), new=unseen())  # type: ignore[arg-type]


def test_every_published_figure_stands_in_one_row() -> None:
    assert sorted(map(id, (one for row in rows() for one in row.figures))) == sorted(map(id, figures()))
    assert len(figures()) == 1083
    assert all(row.here is not None for row in rows()), "all have settings"
    own = {(row.one.paper, row.one.method) for row in rows() if row.own}
    assert {one for one in own if one[0] != "PLGC"} == {
        (name, name) for name in ("PFedRec", "FedRAP", "PFedCLR", "FedEM")
    }
    around = {method for paper, method in own if paper == "PLGC"}
    assert {"FedMF+PLGC", "FedRAP+PLGC"} < around
    assert all(method.endswith("+PLGC") for method in around)


def test_rows_of_several_tables_and_papers_share_a_run() -> None:
    by_row = {(row.one.paper, row.one.table, row.one.data, row.one.method): row for row in rows()}
    one, ten = (
        by_row["PFedRec", table, "ml-100k", method]
        for table, method in (("1", "PFedRec"), ("10 user groups", "PFedRec inactive users"))
    )
    assert one.here is not None
    assert one.here == ten.here
    assert (one.group, ten.group) == ("", "20:30")
    assert one.here.seed(0) == (one.here.name, one.here.experiment)
    assert one.here.seed(2)[0] == folder_name(one.here.seed(2)[1])
    clr, em = by_row["PFedCLR", "1", "ml-100k", "GPFedRec"], by_row["FedEM", "1", "ml-100k", "GPFedRec"]
    assert clr.here != em.here, "one paper chooses its rounds on test"
    assert clr.honest == em.honest


def test_each_run_once_main_tables_first_then_twins_then_seeds(store: Path) -> None:
    every = planned(store)
    assert len({one.run for one in every}) == len(every)
    assert all(one.run == folder_name(one.planned.experiment) for one in every[::40])
    stages = list(dict.fromkeys(one.stage for one in every))
    assert stages == [
        Stage.MAIN, Stage.TWINS, Stage.SEEDS, Stage.REST, Stage.UNSEEN, Stage.REST_SEEDS,
    ]  # fmt: skip
    main = [one for one in every if one.stage is Stage.MAIN]
    assert [one.work for one in main] == sorted(one.work for one in main)
    assert {one.planned.seed for one in main} == {0}
    assert {one.planned.data for one in every} == {"ml-100k", "filmtrust", "goodbooks"}, "what is here"
    asked = {row.here.name for row in rows() if row.main and row.here and row.one.data in ("ml-100k", "filmtrust")}
    assert {one.run for one in main} == asked
    assert {one.planned.protocol for one in every if one.stage is Stage.TWINS} == {"honest"}
    alone = planned(store, honest=False, seeds=1, stages=[Stage.MAIN, Stage.UNSEEN])
    assert {one.planned.protocol for one in alone if one.stage is Stage.UNSEEN} == {"paper"}
    assert [one.run for one in alone if one.stage is Stage.MAIN] == [one.run for one in main]


def test_rows_with_noise_are_those_of_the_papers_own_tables() -> None:
    noisy = chosen([], [], noise=True)
    assert {(row.one.paper, row.one.number) for row in noisy} == {
        ("PFedRec", "7"), ("PFedCLR", "8"), ("PFedCLR", "9"), ("FedEM", "7"), ("FedRAP", "1"), ("FedRAP", "5-6"),
    }  # fmt: skip
    assert all("+laplace" in row.one.method or "+gaussian" in row.one.method for row in noisy)
    assert chosen(["PFedRec"], [], ["7"]) == [row for row in noisy if row.one.paper == "PFedRec"]
    bare = {one.name for one in without_noise().values()}
    assert bare <= {row.here.name for row in rows() if row.here and row.main}, "the figure without noise is known"
    with pytest.raises(SettingError, match="unknown table of PFedRec: '77'"):
        chosen(["PFedRec"], [], ["77"])


def test_runs_with_other_rounds_are_other_runs(store: Path) -> None:
    short, whole = ({one.name for one in planned(store, stages=[Stage.MAIN], rounds=number)} for number in (2, None))
    at_once = {name for name in short & whole if not name.startswith("centrap")}
    assert not at_once, "only what needs one round is the same"


def test_parts_are_everything_once_and_alike(store: Path) -> None:
    every = planned(store)
    parts = [part_of(every, f"{number}/3") for number in (1, 2, 3)]
    assert sorted(one.run for part in parts for one in part) == sorted(one.run for one in every)
    amounts = [sum(one.work for one in part) for part in parts]
    assert max(amounts) < 1.1 * min(amounts)
    for wrong in ("0/3", "4/3", "1", "1/", "a/b", "-1/3"):
        with pytest.raises(SettingError, match=r"expected K/N with 1 <= K <= N, such as 2/5"):
            part_of(every, wrong)


def test_rows_whose_seeds_scatter_get_ten(store: Path) -> None:
    row = next(row for row in rows() if row.own and row.one.data == "ml-100k" and row.one.paper == "PFedRec")
    assert row.here is not None

    def recorded(*values: float) -> list[dict[str, object]]:
        assert row.here is not None
        return [{"row": row.here.name, "seed": k, "test": {"HR@10": value}} for k, value in enumerate(values)]

    for values, number in (((0.9, 0.9, 0.8), MANY_SEEDS - 3), ((0.9, 0.9, 0.89), 0), ((0.9, 0.5), 0)):
        asked = Wishes(store / "runs", data_dir=store, stages=[Stage.MAIN, Stage.SEEDS, Stage.SCATTERED])
        plan = wanted(rows(), asked, recorded(*values))
        more = [one for one in plan if one.stage is Stage.SCATTERED]
        assert [one.planned.seed for one in more] == sorted(one.planned.seed for one in more)
        assert len(more) == number


def test_papers_and_data_can_be_chosen() -> None:
    found = chosen(["FedEM"], ["filmtrust"])
    assert {(row.one.paper, row.one.data) for row in found} == {("FedEM", "filmtrust")}
    assert len(chosen([], [])) == len(rows())


def test_work_is_samples_and_scores() -> None:
    row = next(row for row in rows() if row.one.data == "ml-100k" and row.one.method == "PFedRec" and row.main)
    assert row.here is not None
    assert row.honest is not None
    samples = 100_000 * (1 + 4)
    assert work(row.here.experiment) == 100 * (samples + 943 * 100 / 1000)
    assert work(row.honest.experiment) == pytest.approx(100 * (samples + 943 * 1682 / 1000))
    ((_, books),) = [one for one in unseen() if one[0] == "pfedrec" and one[1].experiment.protocol.name == "paper"]
    assert work(books.experiment) > 0, "embedded data is counted"


def test_like_runs_tell_how_long_a_run_takes() -> None:
    mine, elsewhere, other = (_main("PFedRec", "ml-100k"), _main("PFedRec", "ml-1m"), _main("FedRAP", "ml-1m"))

    def reckoned(*known: tuple[Asked, float], device: str = "cpu") -> float | None:
        """Of 50 units of work, by runs and the seconds that each took for a unit."""
        entries = [_entry(number, one, pace * work(one.experiment), device) for number, (one, pace) in enumerate(known)]
        protocols = {one.experiment.protocol.name: one.experiment.protocol.plain() for one, _ in known}
        record = Record({one["run"]: one for one in entries}, protocols=protocols)
        return Reckoning(record, "cpu").seconds(mine.experiment, 50)

    assert reckoned() is None
    assert reckoned((mine, 0.04), device="a GPU") is None
    assert reckoned((other, 4.0)) == pytest.approx(200)
    assert reckoned((other, 4.0), (elsewhere, 0.4)) == pytest.approx(20)
    same = [(mine, pace) for pace in (0.04, 0.06, 1.0)]
    assert reckoned((other, 4.0), (elsewhere, 0.4), *same) == pytest.approx(3), "the median"


def _main(method: str, data: str) -> Asked:
    row = next(row for row in rows() if row.main and row.one.method == method and row.one.data == data)
    assert row.here is not None
    return row.here


def _entry(number: int, asked: Asked, seconds: float, device: str) -> Entry:
    made = asked.experiment
    values = made.resolved(made.model()).to_dict()
    return {
        "run": f"run {number}", "method": made.label(), "data": made.data_label(), "protocol": made.protocol.name,
        "seed": 0, "rounds": made.rounds_needed, "seconds": seconds,
        "experiment": {name: values[name] for name in ("method", "settings", "plugins", "federation")},
        "provenance": {"machine": {"device": device}},
    }  # fmt: skip
