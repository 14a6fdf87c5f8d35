"""The life of a model folder: rows come, people go, settings change, folders move."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import ownview as ov
from ownview.base.errors import OutputError, OwnviewError, SettingError, UnwrittenError
from ownview.data import Interactions
from ownview.registry import build
from ownview.runs.run import Run
from ownview.sums import forgetting
from ownview.sums.additions import update
from ownview.sums.forgetting import fingerprint, forget_user
from ownview.sums.histories import as_ids
from ownview.sums.living import kept, merge_model, solve_model, update_model
from ownview.sums.solving import keep, solved
from tests.outcome import Outcome
from tests.sums.worlds import METHODS, added_up, by_item, rows

try:
    import resource
except ImportError:  # not on Windows
    resource = None  # type: ignore[assignment]

PEOPLE = [f"person-{k}" for k in range(12)]


def halves(seed: int = 5, count: int = 160) -> tuple[Interactions, Interactions, Interactions]:
    """All rows; the first of them; and the last, which bring new people and new items."""
    data = rows(np.random.default_rng(seed), PEOPLE, 25, count).without_repeats()
    late = data.row >= int(0.8 * count)
    return data, data.select(~late), data.select(late)


def fitted(method: str, data: Interactions, out: Path | None = None) -> Run:
    rounds = {"rounds": 10} if method == "fedmf" else {}
    settings = {"embedding_size": 4, "local_epochs": 1} if method == "fedmf" else METHODS.get(method, {})
    return ov.fit(build(method, settings), data, out=out, **rounds)  # type: ignore[arg-type]


def lists(run: Run) -> dict[str, list[tuple[str, float]]]:
    frame = run.recommend_many(None, 5)
    found: dict[str, list[tuple[str, float]]] = {}
    for user, item, score in zip(frame["user"], frame["item"], frame["score"], strict=True):
        found.setdefault(user, []).append((item, round(score, 4)))
    return {user: sorted(listed, key=lambda one: (-one[1], one[0])) for user, listed in found.items()}


@pytest.mark.parametrize("method", METHODS)
def test_updated_and_forgotten_it_is_what_a_fit_of_the_same_rows_is(method: str, tmp_path: Path) -> None:
    data, first, late = halves()
    model = tmp_path / "model"
    fitted(method, first, model)
    came = update_model(model, late, "late.csv")
    assert came.version == "v000001"
    assert lists(ov.open_run(model)) == lists(fitted(method, data))
    again = update_model(model, data, "all.csv")
    assert (again.version, again.how) == ("v000001", "nothing is new")
    who = "person-3"
    forget_user(model, who)
    rest = data.select(data.user != data.position_of_user(who))
    assert lists(ov.open_run(model)) == lists(fitted(method, rest))


def test_after_forgetting_sums_are_bit_for_bit_those_without_the_person(tmp_path: Path) -> None:
    _, first, late = halves()
    fitted("fedease", first, tmp_path / "with")
    update_model(tmp_path / "with", late, "late.csv")
    forget_user(tmp_path / "with", "person-3")
    rest = [one.select(one.users[one.user] != "person-3") for one in (first, late)]
    fitted("fedease", rest[0], tmp_path / "without")
    update_model(tmp_path / "without", rest[1], "late.csv")
    found = []
    for name in ("with", "without"):
        with kept(tmp_path / name) as (_, store):
            assert store is not None
            found.append(fingerprint(store.arrays, store.journal.items()))
    assert found[0] == found[1]


@pytest.mark.parametrize("method", ["fedease", "markov", "fedmf"])
def test_nothing_of_a_forgotten_person_is_in_any_file(method: str, tmp_path: Path) -> None:
    """Searched byte by byte for the id and for an item and a title that nobody else had; their pairs are 0."""
    _, first, late = halves()
    own = Interactions.from_rows(
        "world",
        np.array(["secret-person-77"] * 3 + ["person-0"], dtype=object),
        np.array(["only-hers-81", "i1", "i2", "i1"], dtype=object),
        timestamp=np.array([1, 2, 3, 4]) * 86_400,
        titles={"only-hers-81": "A title that nobody else has"},
    )
    model = tmp_path / "model"
    fitted(method, first, model)
    update_model(model, own, "own.csv")
    update_model(model, late, "late.csv")
    needles = [b"secret-person-77", b"only-hers-81", b"A title that nobody else has"]
    if method != "fedmf":
        with kept(model) as (_, store):
            assert store is not None
            mine = store.history("secret-person-77")
            assert mine is not None
            needles.append(mine.places.astype("<i8").tobytes())  # one of the items is hers alone
    there = b"".join(path.read_bytes() for path in model.rglob("*") if path.is_file())
    assert all(needle in there for needle in needles), "the search must be able to find them"
    _, receipt = forget_user(model, "secret-person-77")
    for path in model.rglob("*"):
        content = path.read_bytes() if path.is_file() else b""
        for needle in needles:
            assert needle not in content, f"{needle!r} in {path}"
            assert needle not in str(path).encode()
    assert "not called back" in receipt.read_text()
    if method != "fedmf":
        with kept(model) as (_, store):
            assert store is not None
            now = store.snapshot()
            ids = [now.items[where][0] for where in now.places.tolist()]
            assert "only-hers-81" not in ids
            held = {where for one in now.people.values() for where in one.places.tolist()}
            empty = sorted(set(range(store.arrays.items)) - held)
            for value in store.arrays.values.values():
                assert not (len(value) == store.arrays.items and value[empty].any()), "their pairs are 0 again"


def test_a_method_that_trains_goes_on_and_trains_anew_to_forget(tmp_path: Path) -> None:
    data, first, late = halves()
    model = tmp_path / "model"
    fitted("fedmf", first, model)
    came = update_model(model, late, "late.csv")
    assert came.how.startswith("trained on for 1 round,")
    assert ov.open_run(model).result["rounds"] == 11
    assert set(lists(ov.open_run(model))) == {str(one) for one in data.users}
    changed, _ = forget_user(model, "person-3")
    assert changed.how.startswith("trained anew for 11 rounds")


def test_the_same_sums_are_solved_with_other_settings_and_stores_are_merged(tmp_path: Path) -> None:
    data, first, late = halves()
    one, other = tmp_path / "one", tmp_path / "other"
    fitted("fedease", first, one)
    fitted("fedease", late, other)
    merge_model(one, other)
    assert lists(ov.open_run(one)) == lists(fitted("fedease", data))
    again = solve_model(one, {"regularization": 7.0})
    expected = ov.fit(build("fedease", {**METHODS["fedease"], "regularization": 7.0}), data)
    assert lists(ov.open_run(one)) == lists(expected)
    assert "whole factorisation" in again.how
    with pytest.raises(SettingError, match="setting nearness: decides what people add"):
        solve_model(one, {"nearness": 9.0})
    fitted("popularity", late, tmp_path / "popular")
    with pytest.raises(OutputError, match="is of another agreement: method is 'fedease' here and 'popularity' there"):
        merge_model(one, tmp_path / "popular")


def test_a_model_that_was_changed_moves_and_goes_on_elsewhere(tmp_path: Path) -> None:
    data, first, late = halves()
    fitted("fedease", first, tmp_path / "here")
    with kept(tmp_path / "here"):
        pass
    shutil.copytree(tmp_path / "here", tmp_path / "there")
    shutil.rmtree(tmp_path / "here")
    update_model(tmp_path / "there", late, "late.csv")
    assert lists(ov.open_run(tmp_path / "there")) == lists(fitted("fedease", data))
    for path in (tmp_path / "there").rglob("*"):
        assert not path.is_file() or str(tmp_path).encode() not in path.read_bytes(), path


@pytest.mark.parametrize("method", ["fedease", "fedmf"])
def test_no_path_is_kept_and_the_run_that_settings_are_of_is_named(
    method: str, ownview: Callable[..., Outcome], own_folder: Path
) -> None:
    _, first, late = halves()
    for name, some in (("first.csv", first), ("late.csv", late)):
        assert some.timestamp is not None
        each = zip(some.users[some.user], some.items[some.item], some.timestamp, strict=True)
        (own_folder / name).write_text("user,item,timestamp\n" + "".join(f"{u},{i},{t}\n" for u, i, t in each))
    rounds = ("--rounds", "3", "--set", "local_epochs=1") if method == "fedmf" else ()
    assert ownview("run", method, "--data", "first.csv", "--out", "measured", "--seed", "0", *rounds).code == 0
    assert ownview("fit", "--like", "measured", "--out", "model").code == 0
    before = ov.open_run(own_folder / "model").result["settings_from"]
    assert ownview("update", "model", "late.csv").code == 0
    after = ov.open_run(own_folder / "model")
    assert after.result["settings_from"]["test"] == before["test"]
    assert (after.folder.path / after.experiment.like).resolve() == (own_folder / "measured").resolve()
    for path in (own_folder / "model").rglob("*"):
        assert not path.is_file() or str(own_folder).encode() not in path.read_bytes(), path


def test_what_cannot_be_done_is_one_line_and_nothing_changes(tmp_path: Path) -> None:
    data, first, late = halves()
    model = tmp_path / "model"
    fitted("fedease", first, model)
    update_model(model, late, "late.csv")
    before = {path: path.read_bytes() for path in model.rglob("*") if path.is_file()}

    def refused(match: str, change: object) -> None:
        with pytest.raises(OwnviewError, match=match) as raised:
            change()  # type: ignore[operator]
        assert "\n" not in str(raised.value)
        assert {path: path.read_bytes() for path in model.rglob("*") if path.is_file()} == before

    refused("unknown user of this model", lambda: forget_user(model, "person-33"))
    untimed = Interactions.from_rows("new", np.array(["p"], dtype=object), np.array(["i1"], dtype=object))
    refused("has no times, and the model's rows have", lambda: update_model(model, untimed, "new.csv"))
    million = Interactions.from_rows(
        "huge",
        np.zeros(10**6, dtype=np.int64),
        np.arange(10**6),
        timestamp=np.arange(10**6, dtype=np.int64),
    )
    refused("a history of 1,000,000 rows would take", lambda: update_model(model, million, "huge.csv"))
    journal = model / "sums" / "journal.sqlite"
    journal.write_bytes(b"no database" * 100)
    with pytest.raises(OutputError, match=r"journal\.sqlite: is damaged: file is not a database"):
        update_model(model, late, "late.csv")
    journal.write_bytes(before[journal].replace(b"person-3", b"person-\xff"))
    with pytest.raises(OutputError, match=r"is damaged: text that is no UTF-8; bring a sound copy back"):
        update_model(model, late, "late.csv")
    journal.unlink()
    with pytest.raises(OutputError, match=r"journal\.sqlite: is not there; bring a sound copy back"):
        forget_user(model, "person-3")
    assert not journal.exists(), "no empty one is made"
    journal.write_bytes(before[journal])
    measured = ov.run("popularity", data, out=tmp_path / "measured").folder.path
    with pytest.raises(SettingError, match="has items held out to be measured"):
        update_model(measured, late, "late.csv")


@pytest.mark.skipif(resource is None, reason="files cannot be limited here")
@pytest.mark.parametrize("method", ["fedease", "fedmf"])
def test_where_nothing_more_can_be_written_it_is_one_line_and_nothing_is_lost(method: str, tmp_path: Path) -> None:
    """The system refuses to let files grow, at another step with every limit; then there is room again."""
    data, first, late = halves()
    model = tmp_path / "model"
    fitted(method, first, model)
    if method == "fedease":
        with kept(model):
            pass
    said: list[str] = []
    for power in range(8, 24):
        try:
            with files_up_to(2**power):
                update_model(model, late, "late.csv")
            break
        except OwnviewError as error:
            said.append(str(error))
        assert lists(ov.open_run(model)), "readers have a whole version"
    assert len(said) >= 3
    assert not any("\n" in line for line in said)
    if method == "fedease":
        assert lists(ov.open_run(model)) == lists(fitted(method, data))
    forget_user(model, "person-3")
    assert "person-3" not in lists(ov.open_run(model))


@pytest.mark.skipif(resource is None, reason="files cannot be limited here")
def test_a_solution_that_cannot_be_kept_is_one_line(tmp_path: Path) -> None:
    fitted("fedease", halves()[0], tmp_path / "model")
    with kept(tmp_path / "model") as (_, store):
        assert store is not None
        now = store.snapshot()
        found = solved(store, now)
        with files_up_to(2**12), pytest.raises(UnwrittenError, match=r"solved\.safetensors: cannot be written"):
            keep(store, now, found)
        assert not list(store.folder.glob("*solved*")), "nothing half-written"


@contextmanager
def files_up_to(size: int) -> Iterator[None]:
    """No file grows beyond so many bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_blend_weights_change_without_anybody(tmp_path: Path) -> None:
    data, _, _ = halves()
    parts = ("fedease nearness=3", "popularity")
    model = tmp_path / "model"
    settings = {"parts": parts, "weights": (0.5, 0.5, 0.5, 0.5)}
    ov.fit(build("blend", settings), data, out=model)
    changed = solve_model(model, {"weights": (1.0, 0.0, 1.0, 0.0)})
    assert "the same parts" in changed.how
    other = ov.fit(build("blend", {**settings, "weights": (1.0, 0.0, 1.0, 0.0)}), data)
    assert lists(ov.open_run(model)) == lists(other)
    with pytest.raises(SettingError, match="setting parts: decides what people add"):
        solve_model(model, {"parts": ("popularity", "markov")})


def test_a_kill_between_sums_and_version_is_made_up_for_by_the_next_command(tmp_path: Path) -> None:
    """The sums have the rows, and no version has: whatever comes next writes it first."""
    data, first, late = halves()
    model = tmp_path / "model"
    fitted("fedease", first, model)
    with kept(model) as (_, store):
        assert store is not None
        update(store, late, "late.csv")
    again = update_model(model, late, "late.csv")
    assert (again.version, again.how) == ("v000001", "nothing is new")
    assert lists(ov.open_run(model)) == lists(fitted("fedease", data))


@pytest.mark.parametrize(
    ("method", "settings"),
    [("fednext", {"rank": 4, "iterations": 2, "scales": (1.0, 4.0)}), ("fedials", {"embedding_size": 4})],
)
def test_sums_over_agreed_vectors_are_updated_and_made_anew_to_forget(
    method: str, settings: dict[str, object], tmp_path: Path
) -> None:
    """Item vectors are agreed when the store is made, so new rows are a difference; those who leave were in it."""
    data, first, late = halves()
    rounds = {"rounds": 3} if method == "fedials" else {}
    model = tmp_path / "model"
    ov.fit(build(method, settings), first, out=model, **rounds)  # type: ignore[arg-type]
    update_model(model, late, "late.csv")
    assert set(lists(ov.open_run(model))) == {str(one) for one in data.users}
    with kept(model) as (_, store):
        assert store is not None
        now = store.snapshot()
        assert by_item(now) == added_up(store, now)
        assert any(value.any() for value in now.sums.values())
    changed, _ = forget_user(model, "person-3")
    assert changed.how.startswith("trained anew")
    rest = data.select(data.users[data.user] != "person-3")
    assert lists(ov.open_run(model)) == lists(ov.fit(build(method, settings), rest, **rounds))  # type: ignore[arg-type]
    assert not (model / "sums").exists()


def test_a_kill_while_a_model_is_made_anew_brings_no_forgotten_person_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store of sums has the person: whoever is forgotten before it goes would be solved from it again."""
    data, first, late = halves()
    model = tmp_path / "model"
    ov.fit(build("fednext", {"rank": 4, "iterations": 2, "scales": (1.0, 4.0)}), first, out=model)
    update_model(model, late, "late.csv")

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(forgetting, "drop_sums", killed)
    with pytest.raises(KeyboardInterrupt):
        forget_user(model, "person-3")
    monkeypatch.undo()
    known = set(lists(ov.open_run(model)))
    assert update_model(model, late, "late.csv").how == "nothing is new"
    assert set(lists(ov.open_run(model))) == known
    forget_user(model, "person-3")
    assert set(lists(ov.open_run(model))) == {str(one) for one in data.users} - {"person-3"}


def test_names_that_look_like_numbers_and_are_none_stay_text() -> None:
    for names in (["--5"], ["-"], ["-0"], ["007"], ["5", "--5"], ["9" * 30], ["9" * 5000]):
        assert as_ids(names).tolist() == names
    assert as_ids(["0", "-7", "12"]).tolist() == [0, -7, 12]
