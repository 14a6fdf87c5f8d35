"""Python is as complete as the command line, and says what is wrong in one line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import ownview as ov
from ownview.base.errors import OwnviewError

pd = pytest.importorskip("pandas")
ROUNDS = {"rounds": 1, "settings": {"local_epochs": 1, "embedding_size": 4}}


def test_a_named_method_takes_settings_and_a_comparison_shows_itself(tmp_path: Path) -> None:
    run = ov.run("fedmf", **ROUNDS)  # type: ignore[arg-type]
    assert run.experiment.settings["embedding_size"] == 4
    found = ov.compare(
        ["popularity", "ease", ov.FedMF(local_epochs=1)], rounds=1, seeds=2, federation={"clients": "0.3"},
        device="cpu", jobs=2, out=tmp_path / "all",
    )  # fmt: skip
    assert len(found) == 6
    assert found[0].experiment.method == "popularity"
    assert {run.experiment.federation.clients for run in found if run.experiment.method == "fedmf"} == {"0.3"}
    frame = found.to_frame()
    assert isinstance(frame, pl.DataFrame)
    assert frame.height == 3 * 2
    assert set(frame["seeds"]) == {2}
    assert repr(found).startswith("Comparison(goodbooks, honest HR@10, honest NDCG@10: popularity 0.0")
    assert "<td>ease" in found._repr_html_()
    page = ov.report([tmp_path / "all"], tmp_path / "page.html")
    assert page.stat().st_size > 10_000
    blended = ov.blend([one for one in found if one.experiment.seed == 0 and one.experiment.method != "popularity"])
    assert blended.metrics["HR@10"] > 0


def test_a_tuning_writes_a_suite_that_bench_runs(tmp_path: Path) -> None:
    tuned = ov.tune(
        "fedmf", trials=2, rounds=1, settings={"local_epochs": 1, "negatives": 2, "embedding_size": 4},
        search={"learning_rate": "0.01:0.1"}, out=tmp_path / "tuned",
    )  # fmt: skip
    assert len(tuned.trials) == 2
    assert tuned.settings["negatives"] == 2
    assert repr(tuned).startswith("Tuned(fedmf: validation NDCG@10 0.")
    (table,) = ov.bench(tmp_path / "tuned" / "suite.toml", seeds=1, jobs=1, out=tmp_path / "suite")
    assert table.methods == ("fedmf, untuned", "fedmf, tuned")
    page = ov.report([tmp_path / "suite"], tmp_path / "suite.html")
    assert "fedmf" in page.read_text(encoding="utf-8")


def test_an_audit_tells_its_findings() -> None:
    found = ov.audit("goodbooks", "honest", rounds=5)
    assert all(isinstance(one, ov.Finding) for one in found)
    assert not any(one.fires for one in found if one.probe == "leak")


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (lambda: ov.run(ov.FedMF), r"the class FedMF; expected FedMF\(\)"),  # type: ignore[arg-type]
        (lambda: ov.run(3), "method is an int"),  # type: ignore[arg-type]
        (lambda: ov.run("fedmf", [1, 2]), "data is a list"),  # type: ignore[arg-type]
        (lambda: ov.run("fedmf", settings={"learning_rat": 1}), "did you mean 'learning_rate'"),
        (lambda: ov.run(ov.FedMF(), settings={}), r"expected FedMF\(...\) with them inside"),
        (lambda: ov.run("fedmf", federation=3), "federation is an int"),  # type: ignore[arg-type]
        (lambda: ov.run("ease", protocol=3), "protocol is an int; expected a name"),  # type: ignore[arg-type]
        (lambda: ov.audit(protocol=ov.Protocol), "protocol is the class Protocol; expected a name"),  # type: ignore[arg-type]
        (lambda: ov.run("ease", rounds=1.5), "rounds=1.5: expected a whole number"),  # type: ignore[arg-type]
        (lambda: ov.fit(like="runs/a", settings={"strength": 1.0}), "those of the run with like=RUN"),
        (lambda: ov.run("fedmf", settings=[1]), "run: settings is a list; expected names with values"),  # type: ignore[arg-type]
        (lambda: ov.run("ease", engine=3), "run: engine is an int; expected text"),  # type: ignore[arg-type]
        (lambda: ov.run("ease", watch=58), "run: watch is an int; expected several"),  # type: ignore[arg-type]
        (lambda: ov.run("ease", watch="58"), "run: watch is a str; expected several"),
        (lambda: ov.run("ease", out=3), "run: out is an int; expected text or a path or nothing"),  # type: ignore[arg-type]
        (lambda: ov.run("ease", on_round=3), "run: on_round is an int; expected a function"),  # type: ignore[arg-type]
        (lambda: ov.run("ease", loggers=ov.TensorBoard), "the class TensorBoard; expected several"),  # type: ignore[arg-type]
        (lambda: ov.tune("fedmf", trials="x"), "tune: trials is a str; expected a whole number"),  # type: ignore[arg-type]
        (lambda: ov.tune("fedmf", search=["learning_rate"]), "search is a list; expected names"),  # type: ignore[arg-type]
        (lambda: ov.bench(3), "bench: suite is an int; expected text or a path"),  # type: ignore[arg-type]
        (lambda: ov.blend(3), "runs is an int; expected a list"),  # type: ignore[arg-type]
        (lambda: ov.report("runs/a"), "runs is a str; expected a list"),
        (lambda: ov.score(3, "goodbooks"), "score: lists is an int; expected text or a path"),  # type: ignore[arg-type]
        (lambda: ov.verify(3), "verify: path is an int; expected text or a path"),  # type: ignore[arg-type]
        (lambda: ov.open_run(3), "open_run: path is an int"),  # type: ignore[arg-type]
        (lambda: ov.resume(3), "resume: path is an int"),  # type: ignore[arg-type]
        (lambda: ov.attack(3), "attack: target is an int; expected"),  # type: ignore[arg-type]
        (lambda: ov.load(3), "load: name_or_path is an int; expected text or a path"),  # type: ignore[arg-type]
        (lambda: ov.read(3), "read: path is an int; expected text or a path"),  # type: ignore[arg-type]
        (lambda: ov.run("popularity").recommend("58", k=0), "k=0: expected a number of items"),
        (lambda: ov.run("popularity").recommend("58", k="x"), "recommend: k is a str"),  # type: ignore[arg-type]
        (lambda: ov.run("popularity").recommend_many(3), "recommend_many: users is an int"),  # type: ignore[arg-type]
        (lambda: ov.compare("fedmf"), "methods is a str; expected several"),
        (lambda: ov.compare(["ease"], protocols="honest"), "protocols is a str; expected several"),
        (lambda: ov.compare([]), "methods is empty"),
        (lambda: ov.compare(["ease"], seeds="2"), "seeds='2': expected a whole number"),  # type: ignore[arg-type]
        (lambda: ov.compare(["ease"], ov.load("goodbooks"), jobs=2), "data by name"),
        (lambda: ov.tune(ov.FedMF()), "expected a name or a .py file"),  # type: ignore[arg-type]
        (lambda: ov.blend([]), "runs is empty; expected a list"),
        (lambda: ov.blend("runs/a"), "runs is a str; expected a list"),
        (lambda: ov.blend([3]), "expected a run or its folder"),  # type: ignore[list-item]
        (lambda: ov.bench("nosuchsuite"), "nosuchsuite"),
        (lambda: ov.Interactions.from_rows("x", ["a"], [1, 2]), "columns of 1, 2 rows"),
        (lambda: ov.Interactions.from_rows("x", ["a", None], ["b", "c"]), "users has no value in row 2"),
        (lambda: ov.Interactions.from_rows("x", pd.DataFrame({"a": [1]}), [1]), "one value a row"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(wrong: Callable[[], Any], reason: str) -> None:
    with pytest.raises(OwnviewError, match=reason) as refused:
        wrong()
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("kind", [pd.Series, pl.Series, np.array, list])
def test_columns_may_be_series(kind: Callable[[Any], Any]) -> None:
    users, items = ["a", "b", "a", "c"], [3, 1, 1, 3]
    days = pd.to_datetime(["2024-01-01", "2024-01-02", "2024-01-03", "2024-01-04"])
    found = ov.Interactions.from_rows("x", kind(users), kind(items), rating=kind([1.0, 2.0, 3.0, 4.0]), timestamp=days)
    assert found.users.tolist() == ["a", "b", "c"]
    assert found.timestamp is not None
    assert np.diff(found.timestamp[:2]).tolist() == [2 * 86400]
    assert found.users.dtype == object


def test_lists_are_asked_for_by_a_series() -> None:
    run = ov.run("popularity")
    users = ov.load("goodbooks").users[:3].tolist()
    assert run.recommend_many(pd.Series(users), k=2).equals(run.recommend_many(users, k=2))
