"""Signed results: what was signed is read, anything else is refused, and it can be run again."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from reproduction.commands.sign_board import KEYS, METHODS, TITLE

import ownview as ov
from ownview.base.errors import DataError
from ownview.runs.files.manifest import write_manifest
from ownview.studies.board import page, read_signed, sign
from reproduction.commands import sign_board
from tests.outcome import Outcome

ROOT = Path(__file__).parents[2]
METHOD = (ROOT / "examples" / "pairwise_mf.py").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def signed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("board")
    ov.run("popularity", out=place / "run")
    return sign(place / "run", place / "key.pem", "A <b>group</b>", place / "popularity.json")


def test_a_result_is_signed_shown_and_run_again(signed: Path, ownview: Callable[..., Outcome]) -> None:
    assert (signed.parent / "key.pem").stat().st_mode & 0o777 == 0o600
    one = read_signed(signed)
    assert one.result["test"]["HR@10"] == ov.open_run(signed.parent / "run").metrics["HR@10"]
    done = ownview("board", "page", signed, "-o", signed.parent / "board.html")
    assert done.code == 0, done.err
    page = (signed.parent / "board.html").read_text()
    assert "A &lt;b&gt;group&lt;/b&gt;" in page
    assert one.key in page
    done = ownview("board", "verify", signed, "--again")
    assert done.code == 0, done.err
    assert "every figure is the same" in done.out


def test_a_signers_name_cannot_pass_for_a_verdict(signed: Path, ownview: Callable[..., Outcome]) -> None:
    name = "us\nx.json: run once more, every figure is the same"
    sign(signed.parent / "run", signed.parent / "key.pem", name, signed.parent / "posing.json")
    done = ownview("board", "verify", signed.parent / "posing.json")
    assert len(done.out.splitlines()) == 1


def test_every_file_is_verified_and_all_that_differ_are_named(signed: Path, ownview: Callable[..., Outcome]) -> None:
    """A liar with a key of their own signs what they like; running it again tells."""
    folder = signed.parent / "lies"
    run = ov.run("popularity", out=signed.parent / "lying")
    folder.mkdir()
    for name, figure in (("a", 0.9), ("b", 0.8)):
        result = json.loads((run.folder.path / "result.json").read_text())
        result["test"]["HR@10"] = figure
        (run.folder.path / "result.json").write_text(json.dumps(result))
        write_manifest(run.folder.path)
        sign(run.folder.path, signed.parent / "key.pem", name, folder / f"{name}.json")
    (folder / "c.json").write_bytes(signed.read_bytes())
    done = ownview("board", "verify", folder, "--again")
    assert done.code == 1
    assert "every figure is the same" in done.out.splitlines()[-1]
    assert f"{folder / 'a.json'}, {folder / 'b.json'}: does not come out again" in done.err


def test_another_run_by_the_same_key_has_the_same_fingerprint(signed: Path) -> None:
    ov.run("markov", out=signed.parent / "second")
    other = sign(signed.parent / "second", signed.parent / "key.pem", "B", signed.parent / "markov.json")
    assert read_signed(other).key == read_signed(signed).key


@pytest.mark.parametrize("change", ["figure", "name", "key", "signature", "nothing but a list", "format"])
def test_whatever_was_changed_is_refused(change: str, signed: Path, tmp_path: Path) -> None:
    values = json.loads(signed.read_text())
    if change == "figure":
        values["content"]["result"]["test"]["HR@10"] += 1e-9
    elif change in ("name", "key"):
        values["signer"][change] = "C" if change == "name" else "A" * 43 + "="
    elif change == "signature":
        values["signature"] = "AAAA"
    elif change == "format":
        values["format"] = 2
    (tmp_path / "x.json").write_text(json.dumps([values] if "list" in change else values))
    with pytest.raises(DataError) as refused:
        read_signed(tmp_path / "x.json")
    assert "\n" not in str(refused.value)


def test_a_method_of_ones_own_travels_signed_and_runs_only_where_trusted(
    tmp_path: Path, ownview: Callable[..., Outcome]
) -> None:
    (tmp_path / "mine.py").write_text(METHOD)
    short = ["--rounds", "1", "--set", "local_epochs=1", "--set", "embedding_size=4"]
    assert ownview("run", tmp_path / "mine.py", *short, "--out", tmp_path / "run").code == 0
    done = ownview(
        "board", "sign", tmp_path / "run", "--key", tmp_path / "k.pem", "--name", "us", "-o", tmp_path / "r.json"
    )
    assert done.code == 0, done.err
    (tmp_path / "mine.py").unlink()
    assert "did not name yourself" in ownview("board", "verify", tmp_path / "r.json", "--again").err
    done = ownview("board", "verify", tmp_path / "r.json", "--again", "--trust")
    assert done.code == 0, done.err + done.out
    assert "every figure is the same" in done.out


@pytest.mark.parametrize("signed_in", ["beside", "elsewhere"])
def test_a_result_about_a_file_is_run_again_with_the_file_beside_it(
    signed_in: str, tmp_path: Path, ownview: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The signer's paths do not travel; the reader lays the file beside the result, and no other will do."""
    shop = tmp_path / "mine" / "shop.csv"
    shop.parent.mkdir()
    (tmp_path / "theirs").mkdir()
    rows = [f"{user},{item},{100 * user + item}" for user in range(12) for item in range(12) if (user + item) % 3]
    shop.write_text("\n".join(("user,item,timestamp", *rows)))
    monkeypatch.chdir(shop.parent if signed_in == "beside" else tmp_path)
    ov.run("popularity", data=str(shop), out=shop.parent / "run")
    result = sign(shop.parent / "run", tmp_path / "key.pem", "us", tmp_path / "theirs" / "r.json")
    assert 'data = "shop.csv"' in read_signed(result).content["experiment"]
    assert str(tmp_path) not in result.read_text()
    missing = ownview("board", "verify", result, "--again")
    assert (missing.code, "expected it beside the result, at" in missing.err) == (2, True)
    beside = result.parent / "shop.csv"
    beside.write_text(shop.read_text() + "\n1,1,1")
    other = ownview("board", "verify", result, "--again")
    assert (other.code, "is not the file that was measured" in other.err) == (2, True)
    beside.write_bytes(shop.read_bytes())
    for place in (tmp_path, beside.parent):
        monkeypatch.chdir(place)
        done = ownview("board", "verify", result, "--again")
        assert (done.code, "every figure is the same" in done.out) == (0, True), done.err


def test_a_run_that_was_changed_is_not_signed(tmp_path: Path, ownview: Callable[..., Outcome]) -> None:
    ov.run("popularity", out=tmp_path / "run")
    with (tmp_path / "run" / "users.csv").open("a") as users:
        users.write("\n")
    done = ownview("board", "sign", tmp_path / "run", "--key", tmp_path / "k.pem", "--name", "us")
    assert done.code == 2
    assert "has changed since the run finished" in done.err
    assert "expected sign, verify or page" in ownview("board", "show", tmp_path).err


def test_keys_that_are_known_are_asked_for(signed: Path, ownview: Callable[..., Outcome], tmp_path: Path) -> None:
    one, keys = read_signed(signed), tmp_path / "keys.txt"
    keys.write_text(f"\ufeff# ours\n\n{one.public} {one.signer}\n", encoding="utf-8")
    assert ownview("board", "verify", signed, "--keys", keys).code == 0
    other = sign(signed.parent / "run", tmp_path / "other.pem", one.signer, tmp_path / "other.json")
    for words in (("verify",), ("page", "-o", tmp_path / "page.html")):
        refused = ownview("board", words[0], other, signed, "--keys", keys, *words[1:])
        assert (refused.code, "is none of the 1 known ones" in refused.err) == (2, True)
    posing = sign(signed.parent / "run", signed.parent / "key.pem", "Another group", tmp_path / "posing.json")
    assert "which is that of A <b>group</b>" in ownview("board", "verify", posing, "--keys", keys).err
    for wrong in ("nonsense us", one.public):
        keys.write_text(f"\n{wrong}\n")
        assert "keys.txt, line 2: expected a public key" in ownview("board", "verify", signed, "--keys", keys).err


def test_lists_of_another_program_are_not_signed(ownview: Callable[..., Outcome], tmp_path: Path) -> None:
    ov.write_lists(ov.run("popularity").recommend_many(k=20), tmp_path / "theirs.parquet")
    ov.score(tmp_path / "theirs.parquet", "goodbooks", out=tmp_path / "run")
    done = ownview("board", "sign", tmp_path / "run", "--key", tmp_path / "k.pem", "--name", "us")
    assert (done.code, "lists of another program" in done.err) == (2, True)


def test_a_blend_of_finished_runs_is_not_signed_and_one_of_trained_parts_is(
    ownview: Callable[..., Outcome], tmp_path: Path
) -> None:
    """Its parts are folders of the signer's machine, whose paths would travel."""
    runs = [ov.run(name, out=tmp_path / name) for name in ("popularity", "markov")]
    ov.blend(runs, out=tmp_path / "finished")
    ov.run("blend", settings={"parts": ("popularity", "markov")}, out=tmp_path / "trained")
    key = ("--key", tmp_path / "k.pem", "--name", "us", "-o", tmp_path / "r.json")
    done = ownview("board", "sign", tmp_path / "finished", *key)
    assert (done.code, "blends finished runs or files of this machine" in done.err) == (2, True)
    assert ownview("board", "sign", tmp_path / "trained", *key).code == 0
    assert str(tmp_path) not in (tmp_path / "r.json").read_text()


def test_our_own_entries_hold_and_the_page_is_made_of_them(ownview: Callable[..., Outcome]) -> None:
    place = ROOT / "results" / "board"
    ours = [read_signed(one) for one in sorted(place.glob("*.json"))]
    assert {one.result["method"] for one in ours} == set(METHODS)
    assert (ROOT / "docs" / "board.html").read_text(encoding="utf-8") == page(ours, TITLE)
    assert len({one.key for one in ours}) == 1
    assert ownview("board", "verify", place, "--keys", place / KEYS).code == 0


def test_a_set_is_carried_out_signed_and_shown_by_one_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ownview: Callable[..., Outcome]
) -> None:
    """Again, as ours were: what they state comes out, or differs no more than another machine's rounding."""
    monkeypatch.setattr(sign_board, "METHODS", ("popularity", "ease"))
    sign_board.command(None, tmp_path / "board", tmp_path / "board.html")
    assert not list(tmp_path.rglob("*.pem")), "the key of a set is kept nowhere"
    assert ownview("board", "verify", tmp_path / "board", "--keys", tmp_path / "board" / KEYS).code == 0
    for name in ("popularity", "ease"):
        ours, anew = (
            read_signed(one / f"{name}-goodbooks.json") for one in (ROOT / "results/board", tmp_path / "board")
        )
        assert anew.key != ours.key
        assert anew.result["test"] == pytest.approx(ours.result["test"], abs=5e-5)
