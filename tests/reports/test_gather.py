"""From run folders to the page's model: what is in it, and what happens where something is missing."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
import pytest

from ownview.base.errors import OutputError
from ownview.data.interactions import FloatArray
from ownview.evaluation.comparison import Mark
from ownview.evaluation.statistics import mean_interval
from ownview.reports.gather import gather
from ownview.reports.reading import find_runs
from ownview.runs.run import open_run
from ownview.runs.table import Comparison
from tests.reports.worlds import ITEMS, USERS, WATCHED


@pytest.fixture
def data(model: dict[str, Any]) -> dict[str, Any]:
    return dict(model["datasets"][0])


def place_of(data: Mapping[str, Any], label: str) -> str:
    return str([variant["label"] for variant in data["variants"]].index(label))


def result_of(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "result.json").read_text()))


def per_user(folder: Path, metric: str) -> FloatArray:
    with (folder / "users.csv").open(newline="") as lines:
        return np.array([float(row[metric]) for row in csv.DictReader(lines)])


FEDMF = "fedmf (learning_rate=0.01)"


class TestTheModel:
    def test_it_is_plain_values_that_json_takes(self, model: dict[str, Any]) -> None:
        assert json.loads(json.dumps(model, allow_nan=False)) == model

    def test_datasets_protocols_and_variants_are_named_apart(self, model: dict[str, Any], data: dict[str, Any]) -> None:
        assert [one["name"] for one in model["datasets"]] == ["world.csv"]
        assert [one["name"] for one in data["protocols"]] == ["honest", "paper", "on-test"]
        labels = {one["label"] for one in data["variants"]}
        faster = "fedmf (learning_rate=0.1)"
        assert labels == {FEDMF, faster, "popularity", "fedrap", "fedem", "fedmf + plgc", "fedmf + late-aggregation"}
        assert model["about"]["runs"] == len(data["results"]["honest"]) + 1 + len(data["results"]["paper"]) + 1 + 1

    def test_seeds_are_pooled_and_nothing_else(self, data: dict[str, Any], runs: Path) -> None:
        result = data["results"]["honest"][place_of(data, FEDMF)]
        folders = [runs / f"fedmf-honest-{seed}" for seed in (0, 1)]
        assert result["seeds"] == [0, 1]
        assert result["folders"] == ["runs/fedmf-honest-0", "runs/fedmf-honest-1"]
        for metric in ("HR@10", "NDCG@10", "MRR", "coverage@10"):
            values = [result_of(folder)["test"][metric] for folder in folders]
            assert result["cells"][metric]["mean"] == pytest.approx(mean(values), abs=1e-12)
            assert result["cells"][metric]["spread"] == pytest.approx(np.std(values, ddof=1), abs=1e-12)

    def test_the_interval_is_over_users_of_their_means_over_seeds(self, data: dict[str, Any], runs: Path) -> None:
        values = np.mean([per_user(runs / f"fedmf-honest-{seed}", "NDCG@10") for seed in (0, 1)], axis=0)
        cell = data["results"]["honest"][place_of(data, FEDMF)]["cells"]["NDCG@10"]
        assert (cell["low"], cell["high"]) == mean_interval(values)
        assert cell["low"] < cell["mean"] < cell["high"]

    def test_settings_tried_are_told(self, data: dict[str, Any]) -> None:
        numbers = {one["label"]: one["tried"] for one in data["variants"]}
        assert numbers["popularity"] == 1
        assert numbers["fedmf (learning_rate=0.1)"] is None
        assert data["tried"].startswith("settings tried on validation: not recorded for ")

    def test_one_seed_has_no_spread(self, data: dict[str, Any]) -> None:
        assert data["results"]["honest"][place_of(data, "fedrap")]["cells"]["HR@10"]["spread"] is None

    def test_curves_are_means_of_what_was_noted_each_round(self, data: dict[str, Any], runs: Path) -> None:
        curve = data["results"]["paper"][place_of(data, FEDMF)]["curve"]
        lines = [
            [json.loads(line) for line in (runs / f"fedmf-paper-{seed}" / "rounds.jsonl").read_text().splitlines()]
            for seed in (0, 1)
        ]
        assert curve["rounds"] == [1, 2, 3, 4]
        assert curve["stage"] == "validation"
        for k in range(4):
            both = [one[k]["validation"]["HR@10"] for one in lines]
            assert curve["HR@10"][k] == pytest.approx(mean(both), abs=1e-6)
        assert data["results"]["paper"][place_of(data, "popularity")]["curve"] is None

    def test_the_distribution_counts_users(self, data: dict[str, Any], runs: Path) -> None:
        distribution = data["results"]["paper"][place_of(data, "fedrap")]["distribution"]
        values = per_user(runs / "fedrap-paper", "NDCG@10")
        assert distribution["share"][0] == pytest.approx((values > 0).mean(), abs=1e-5)
        assert distribution["share"][20] == pytest.approx((values >= 0.5).mean(), abs=1e-5)
        assert distribution["share"][40] == pytest.approx((values >= 1).mean(), abs=1e-5)
        assert distribution["share"] == sorted(distribution["share"], reverse=True)

    def test_groups_cover_everybody(self, data: dict[str, Any]) -> None:
        groups = data["results"]["honest"][place_of(data, FEDMF)]["groups"]
        assert sum(group["users"] for group in groups) == USERS
        whole = sum(group["users"] * group["cells"]["HR@10"]["mean"] for group in groups) / USERS
        cell = data["results"]["honest"][place_of(data, FEDMF)]["cells"]["HR@10"]
        assert whole == pytest.approx(cell["mean"], abs=1e-9)
        for group in groups:
            assert group["cells"]["HR@10"]["low"] <= group["cells"]["HR@10"]["mean"] <= group["cells"]["HR@10"]["high"]
        busiest = [group["interactions"][1] for group in groups]
        assert busiest == sorted(busiest)

    def test_chance_is_what_a_random_order_reaches(self, data: dict[str, Any], runs: Path) -> None:
        chance = {one["name"]: one["chance"] for one in data["protocols"]}
        assert chance["paper"]["HR@10"] == pytest.approx(10 / 100)
        with (runs / "popularity-honest" / "users.csv").open(newline="") as lines:
            candidates = [int(row["candidates"]) for row in csv.DictReader(lines)]
        assert chance["honest"]["HR@10"] == pytest.approx(mean(10 / number for number in candidates))
        gains = sum(1 / np.log2(rank + 1) for rank in range(1, 11))
        assert chance["honest"]["NDCG@10"] == pytest.approx(mean(gains / number for number in candidates))

    def test_costs_are_told_for_federated_methods(self, data: dict[str, Any], runs: Path) -> None:
        cost = data["results"]["honest"][place_of(data, "fedrap")]["cost"]
        result = result_of(runs / "fedrap-honest")
        assert cost["bytes"] == result["bytes_up_per_client"] + result["bytes_down_per_client"] > 0
        assert cost["seconds"] == result["cost"]["seconds"]["round"]
        assert data["results"]["honest"][place_of(data, "popularity")]["cost"] is None

    def test_no_path_of_this_machine_is_told(self, model: dict[str, Any], runs: Path) -> None:
        assert str(runs.parent) not in json.dumps(model)


class TestWhatIsRecommended:
    def test_bands_add_up_and_popularity_takes_the_top(self, data: dict[str, Any]) -> None:
        by_place = data["results"]["honest"]
        for result in by_place.values():
            assert sum(result["taste"]["bands"]) == pytest.approx(1, abs=1e-4)
        popular = by_place[place_of(data, "popularity")]["taste"]
        chosen = next(one["chosen"] for one in data["protocols"] if one["name"] == "honest")
        assert sum(popular["bands"][:3]) > sum(chosen[:3])
        assert popular["often"][0][1] <= 1

    def test_people_have_their_list_under_every_method(self, data: dict[str, Any]) -> None:
        people = data["people"]["honest"]
        assert len(people) >= 24
        for person in people:
            assert set(person["lists"]) == set(data["results"]["honest"])
            titles = [data["titles"][place] for place in person["history"]]
            assert len(set(titles)) == len(titles) == person["known"]
            for recommended in person["lists"].values():
                assert len(recommended) == 10
                assert not {place for place, _ in recommended} & set(person["history"])
                assert [place for place, hit in recommended if hit] in ([], person["test"])
                assert len(person["test"]) == 1


class TestPictures:
    def test_tables_of_a_watched_client_and_what_items_are_to_it(self, data: dict[str, Any]) -> None:
        fedem = [one for one in data["pictures"]["layouts"] if data["variants"][one["variant"]]["label"] == "fedem"]
        assert [table["role"] for table in fedem[0]["tables"]] == ["global", "local", "merged"]
        assert fedem[0]["user"] == WATCHED[0]
        assert fedem[0]["by"] == "t-SNE"
        assert len(fedem[0]["marks"]) == len(fedem[0]["tables"][0]["points"]) == ITEMS + 1
        assert fedem[0]["marks"].count(2) == 2
        known = next(one["known"] for one in data["people"]["paper"] if one["user"] == WATCHED[0])
        assert fedem[0]["marks"].count(1) == known
        places = np.array([table["points"] for table in fedem[0]["tables"]])
        assert places.min() >= -1e-9
        assert places.max() <= 1 + 1e-9

    def test_without_scikit_learn_there_are_main_directions(self, runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        for module in ("gather", "pictures"):
            monkeypatch.setattr(f"ownview.reports.{module}.has_tsne", lambda: False)
        found = gather([runs / "fedem-paper"])
        assert {one["by"] for one in found["datasets"][0]["pictures"]["layouts"]} == {"PCA"}
        assert found["about"]["tsne"] is False

    def test_weights_and_rho_of_fedem(self, data: dict[str, Any]) -> None:
        (weights,) = data["pictures"]["weights"]
        assert weights["users"] == list(WATCHED)
        assert weights["clients"] == USERS
        assert all(0 <= value <= 1 for row in weights["matrix"] for value in row)
        (rho,) = data["pictures"]["merging"]
        assert len(rho["matrix"]) == 2
        assert all(0 <= value <= 1 for row in rho["matrix"] for value in row)

    def test_spectra_are_singular_values(self, data: dict[str, Any]) -> None:
        for one in data["pictures"]["spectra"]:
            for table in one["tables"]:
                assert table["values"] == sorted(table["values"], reverse=True)
                expected = sum(table["values"]) / table["values"][0]
                assert table["abundance"] == pytest.approx(expected, rel=1e-3)

    def test_abundance_by_round_is_told_where_the_method_reads_it(self, data: dict[str, Any]) -> None:
        of_plgc = [one for one in data["pictures"]["spectra"] if one["rounds"]]
        assert {data["variants"][one["variant"]]["label"] for one in of_plgc} == {"fedmf + plgc"}
        assert [one["user"] for one in of_plgc] == list(WATCHED)
        for one in of_plgc:
            assert {name: len(values) for name, values in one["rounds"].items()} == dict.fromkeys(
                ("own", "received", "mixed"), 4
            )
            assert all(1 <= value <= 4 for values in one["rounds"].values() for value in values)

    def test_paths_with_and_without_aggregation_begin_together(self, data: dict[str, Any]) -> None:
        found = data["pictures"]["trajectories"]
        assert [one["user"] for one in found] == list(WATCHED)
        assert {data["variants"][one["variant"]]["label"] for one in found} == {FEDMF}
        for one in found:
            assert [len(path) for path in one["paths"]] == [4, 4]
            assert one["paths"][0][0] == pytest.approx(one["paths"][1][0], abs=1e-6)
            assert one["paths"][0][-1] != pytest.approx(one["paths"][1][-1], abs=1e-6)
            assert len(one["skew"]) == 3

    def test_sparsity_of_shared_tables(self, data: dict[str, Any]) -> None:
        sparsity = data["results"]["paper"][place_of(data, "fedrap")]["sparsity"]
        assert sparsity["rounds"] == [1, 2, 3, 4]
        assert all(0 <= value <= 1 for value in sparsity["tables"]["common"]["zero"])


class TestAlike:
    def test_marks_are_those_of_a_comparison(self, runs: Path) -> None:
        names = [f"{method}-{protocol}" for method in ("popularity", "fedrap") for protocol in ("honest", "paper")]
        compared = Comparison.of([open_run(runs / name) for name in names])
        found = gather([runs / name for name in names])["datasets"][0]
        marked = 0
        for (method, protocol, metric), row in compared.cells.items():
            alike = found["results"][protocol][place_of(found, method)]["cells"][metric]["alike"]
            other = {"popularity": "fedrap", "fedrap": "popularity"}[method]
            level = Mark.LEVEL in (row.mark, compared.cells[other, protocol, metric].mark)
            assert alike == ([other] if level else []), (method, protocol, metric)
            cell = found["results"][protocol][place_of(found, method)]["cells"][metric]
            assert (cell["mark"], cell["not_above"]) == (str(row.mark), row.not_above)
            marked += level
        assert marked


class TestCuts:
    """Of next-sitting: one column; a person asked at several counts at each."""

    def test_they_are_pooled_as_in_a_comparison(self, sittings: Path) -> None:
        data = gather(find_runs([sittings]))["datasets"][0]
        compared = Comparison.of([open_run(path) for path in find_runs([sittings])])
        (protocol,) = data["protocols"]
        assert protocol["name"] == "next-sitting"
        assert protocol["cuts"] == ["next-sitting", "next-sitting@0.6"]
        assert protocol["settings"]["test_from"] == [0.8, 0.6]
        for method in ("popularity", "fedmf"):
            result = data["results"]["next-sitting"][place_of(data, method)]
            assert (result["seeds"], result["cuts"]) == ([0], 2)
            for metric in ("HR@10", "NDCG@10"):
                cell = compared.cells[method, "next-sitting", metric]
                shown = result["cells"][metric]
                assert (shown["mean"], shown["low"], shown["high"]) == (cell.mean, cell.low, cell.high)
                assert (shown["users"], shown["not_above"]) == (cell.users, cell.not_above)
            assert sum(group["users"] for group in result["groups"]) == cell.users == result["users"]

    def test_versions_of_the_data_are_counted_within_a_cut(self, sittings: Path) -> None:
        (protocol,) = gather(find_runs([sittings]))["datasets"][0]["protocols"]
        assert "data" not in {one["probe"] for one in protocol["findings"]}

    def test_the_protocols_own_cut_shows_the_lists(self, sittings: Path) -> None:
        data = gather(find_runs([sittings]))["datasets"][0]
        own = gather([sittings / "popularity", sittings / "fedmf"])["datasets"][0]
        assert [one["user"] for one in data["people"]["next-sitting"]] == [
            one["user"] for one in own["people"]["next-sitting"]
        ]


class TestFoldersThatLackSomething:
    def test_an_older_folder_is_shown_and_what_it_lacks_is_said(self, runs: Path, tmp_path: Path) -> None:
        old = shutil.copytree(runs / "fedem-paper", tmp_path / "old" / "fedem")
        for name in ("recommended.safetensors", "users.csv"):
            (old / name).unlink()
        found = gather([old])
        data = found["datasets"][0]
        assert data["protocols"][0]["chance"] is None
        assert data["results"]["paper"]["0"]["groups"] is None
        assert data["results"]["paper"]["0"]["cells"]["HR@10"] == {
            "mean": result_of(old)["test"]["HR@10"],
            "spread": None,
            "low": result_of(old)["interval_95"]["HR@10"][0],
            "high": result_of(old)["interval_95"]["HR@10"][1],
            "users": USERS,
            "mark": "not paired",
            "alike": [],
            "not_above": "",
        }
        assert data["results"]["paper"]["0"]["taste"] is None
        assert data["people"] == {"paper": []}
        assert data["pictures"]["layouts"] == []
        said = " ".join(found["about"]["missing"])
        assert "1 of 1 runs hold no recommended items" in said
        assert "1 of 1 runs have no users.csv" in said
        assert "1 of 1 runs hold no audit.json" in said

    def test_an_unfinished_run_is_named_and_left_out(self, runs: Path, tmp_path: Path) -> None:
        half = shutil.copytree(runs / "fedmf-honest-0", tmp_path / "half")
        (half / "result.json").unlink()
        found = gather([half, runs / "popularity-honest"])
        assert found["about"]["runs"] == 1
        assert found["about"]["unfinished"] == [f"{tmp_path.name}/half"]
        with pytest.raises(OutputError, match=f"half: no run has finished; go on with: ownview run --resume {half}"):
            gather([half])

    def test_what_is_no_run_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "empty").mkdir()
        with pytest.raises(OutputError, match="empty: not a run folder, and none lies in it"):
            find_runs([tmp_path / "empty"])
        with pytest.raises(OutputError, match="nowhere: no such run folder"):
            find_runs([tmp_path / "nowhere"])

    def test_a_folder_of_runs_stands_for_its_runs_and_doubles_count_once(self, runs: Path) -> None:
        assert len(find_runs([runs, runs / "fedem-paper"])) == len(list(runs.iterdir()))

    def test_damaged_files_are_named(self, runs: Path, tmp_path: Path) -> None:
        copy = shutil.copytree(runs / "popularity-honest", tmp_path / "copy")
        (copy / "result.json").write_text("{")
        with pytest.raises(OutputError, match=r"copy/result\.json: is damaged"):
            gather([copy])

    def test_runs_on_different_data_under_one_name_are_marked(self, runs: Path, tmp_path: Path) -> None:
        copy = shutil.copytree(runs / "popularity-honest", tmp_path / "copy")
        known = json.loads((copy / "provenance.json").read_text())
        known["data"]["fingerprint"] = "another"
        (copy / "provenance.json").write_text(json.dumps(known))
        found = gather([copy, runs / "popularity-honest"])["datasets"][0]["protocols"][0]["findings"]
        assert "2 different versions of the data" in found[0]["sentence"]
        assert found[0]["fires"]
