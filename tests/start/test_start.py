"""`ownview start`: from a file to lists, report and page; stopped anywhere it goes on and ends the same."""

from __future__ import annotations

import shlex
import signal
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from torch import Tensor

from ownview.base.display.amounts import readable
from ownview.base.errors import OwnviewError
from ownview.base.failures import TerminatedError
from ownview.data.interactions import Interactions
from ownview.evaluation.named_protocols import HONEST
from ownview.runs.files.folder import RunFolder
from ownview.runs.training.training_rounds import InterruptedRunError
from ownview.start.interruption import same_command_goes_on
from ownview.start.suited import suited
from tests.apart import Apart, files_up_to
from tests.outcome import Outcome, signalled
from tests.start.worlds import bytes_of, write_shop

PLACE = Path("runs/start-shop")
QUICK = ("start", "shop.csv", "--method", "popularity", "--method", "fedease", "-k", "3")


@pytest.fixture(autouse=True)
def _shop(own_folder: Path) -> None:
    """Two tastes, titles in the file itself, one title with a quotation mark."""
    write_shop(own_folder / "shop.csv", lambda item: f'The "{item}" <b>')


def files(folder: Path) -> dict[str, bytes]:
    """What a person takes away; times of day and durations stand elsewhere."""
    wanted = [folder / "lists.csv", *folder.glob("comparison/*/users.csv"), *folder.glob("data/*/*.gz")]
    return {str(path.relative_to(folder)): path.read_bytes() for path in wanted}


def test_a_file_becomes_lists_report_and_page(ownview: Callable[..., Outcome]) -> None:
    outcome = ownview(*QUICK)
    assert outcome.code == 0, outcome.err
    for step in range(1, 8):
        assert f"{step}/7 " in outcome.out
    lists = pl.read_csv(PLACE / "lists.csv")
    assert lists.columns == ["user", "rank", "item", "title", "score"]
    assert lists["user"].n_unique() == 40
    own = lists.with_columns(pl.col("user").str.slice(1).cast(pl.Int64) % 2 == pl.col("item") // 12)["user"]
    share = own.mean()
    assert isinstance(share, float)
    assert share > 0.8, "a list is of its user's taste"
    assert "The \\u0022" in (page := (PLACE / "page.html").read_text()) or "The &quot;" in page or 'The \\"' in page
    assert "<b>" not in page.partition("<body")[2].replace("<body", ""), "titles are not markup"
    assert "fedease" in (PLACE / "report.html").read_text()
    assert f"page.html: {readable((PLACE / 'page.html').stat().st_size)}\n" in outcome.out
    proposed = [shlex.split(line)[1:] for line in outcome.out.splitlines()[-2:]]
    assert [words[2] for words in proposed] == ["--user", "--history"]
    for words in proposed:
        assert ownview(*words).code == 0, words


def test_a_model_that_was_fitted_just_now_is_not_read_and_a_later_command_checks_it(
    ownview: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    names, read = list[str](), RunFolder.read_tensors

    def seen(folder: RunFolder, name: str) -> tuple[dict[str, Tensor], dict[str, Any]]:
        names.append(name)
        return read(folder, name)

    monkeypatch.setattr(RunFolder, "read_tensors", seen)
    assert ownview(*QUICK).code == 0
    assert "model" not in names
    file = PLACE / "model" / "model.safetensors"
    content = bytearray(file.read_bytes())
    content[-5] ^= 1
    file.write_bytes(content)
    for words in (QUICK, ("recommend", str(PLACE / "model"), "--user", "u1")):
        refused = ownview(*words)
        assert refused.code != 0
        assert "is damaged: its SHA-256 is not the one that was written with it" in " ".join(refused.err.split())


def test_how_many_items_have_titles_is_told(ownview: Callable[..., Outcome]) -> None:
    plain = pl.read_csv("shop.csv").drop("title")
    plain.write_csv("plain.csv")
    Path("titles.csv").write_text("item,title\n3,Three\n4,Four\n77,Nowhere\n")
    assert "titles: none, ids are shown" in ownview("start", "plain.csv", *QUICK[2:], "--out", "one").out
    some = ownview("start", "plain.csv", "--titles", "titles.csv", *QUICK[2:], "--out", "two")
    assert "titles: 2 of 24\n" in some.out


def test_columns_that_are_not_looked_at_are_named(ownview: Callable[..., Outcome]) -> None:
    frame = pl.read_csv("shop.csv").rename({"title": "label", "timestamp": "moment"})
    frame.with_columns(price=pl.lit(1.5)).write_csv("other.csv")
    found = " ".join(ownview("start", "other.csv", "--method", "popularity").out.split())
    assert "columns moment, price; --columns timestamp=COLUMN takes a column for the time" in found
    assert "column 'label' names the items and is taken for their titles" in found
    taking = ("--columns", "timestamp=moment")
    timed = " ".join(ownview("start", "other.csv", *taking, "--method", "popularity", "--out", "two").out.split())
    assert "note: not looked at: column price " in timed
    assert "with times" in timed


def test_a_file_that_is_not_sound_is_listed_and_the_proposed_command_reads_it(ownview: Callable[..., Outcome]) -> None:
    with Path("shop.csv").open("a") as file:
        file.write("u0,3\nu1,4,x,soon\n,5,y,1700000000\n")
    refused = ownview(*QUICK)
    assert (refused.code, refused.err.count("\n")) == (2, 1)
    for note in ("rows that have not 4 fields: 1,", "times that are no number: 1,", "rows without a user: 1,"):
        assert note in refused.out
    assert not Path("runs").exists()
    proposed = shlex.split(refused.err.rpartition("as it is: ")[2])
    assert proposed == ["ownview", *QUICK, "--tolerant"], "nothing that was typed is lost"
    outcome = ownview(*proposed[1:])
    assert outcome.code == 0, outcome.err
    assert "rows that have not 4 fields: 1, left out" in outcome.words
    again = ownview(*proposed[1:])
    assert "rows that have not 4 fields: 1, left out" in again.words, "told again of the copy"


def test_a_folder_of_files_is_one_source(ownview: Callable[..., Outcome]) -> None:
    frame = pl.read_csv("shop.csv")
    Path("exports").mkdir()
    frame[:100].write_csv("exports/january.csv")
    frame[100:].write_csv("exports/june.csv")
    assert ownview(*QUICK).code == 0
    outcome = ownview("start", "exports", *QUICK[2:], "--out", "both")
    assert outcome.code == 0, outcome.err
    assert "2 files of the folder: january.csv to june.csv" in outcome.words
    assert Path("both/lists.csv").read_bytes() == (PLACE / "lists.csv").read_bytes()
    frame[:5].write_csv("exports/more.csv")
    assert "0 new rows" in ownview("start", "exports", *QUICK[2:], "--out", "both").words, "they were known"


def test_that_nothing_can_be_missed_is_told(ownview: Callable[..., Outcome]) -> None:
    """Of nine items and five of one's own, a list of ten misses none."""
    rows = [
        f"u{user},{(user + 2 * place) % 9},{1_700_000_000 + 90_000 * place}" for user in range(9) for place in range(5)
    ]
    Path("tiny.csv").write_text("user,item,timestamp\n" + "\n".join(rows) + "\n")
    note = "left to rank: HR@10 is 1 for every model"
    assert note in " ".join(ownview("start", "tiny.csv", "--method", "popularity").out.split())
    assert note not in " ".join(ownview("start", "shop.csv", "--method", "popularity").out.split())


def test_a_method_of_ones_own_is_compared_and_fitted_in_one_command(ownview: Callable[..., Outcome]) -> None:
    """A file that is named on the command line is meant, also where a run folder names it later."""
    Path("mine.py").write_text(
        "from ownview import FedMF\n\n\nclass Mine(FedMF):\n    name, summary, paper = 'mine', 'as FedMF', 'none'\n"
    )
    outcome = ownview("start", "shop.csv", "--method", "mine.py", "--out", "runs/mine")
    assert outcome.code == 0, outcome.err
    assert Path("runs/mine/lists.csv").exists()


def test_ratings_are_said_to_count_for_nothing(ownview: Callable[..., Outcome]) -> None:
    note = "note: ratings are not looked at: every row counts as an item that was taken"
    header, *rows = Path("shop.csv").read_text().splitlines()
    rated = [f"{header},rating", *(f"{row},1" for row in rows)]
    Path("rated.csv").write_text("\n".join(rated) + "\n")
    without, with_ratings = (ownview("start", name, *QUICK[2:]) for name in ("shop.csv", "rated.csv"))
    assert (without.code, with_ratings.code) == (0, 0)
    assert note not in without.out
    assert note in with_ratings.out
    assert "titles: yes" in without.out
    lists = [Path(f"runs/start-{name}/lists.csv").read_bytes() for name in ("shop", "rated")]
    assert lists[0] == lists[1]


def test_the_same_command_goes_on_and_ends_the_same(ownview: Callable[..., Outcome]) -> None:
    assert ownview(*QUICK).code == 0
    whole = files(PLACE)
    for times in (1, 2):
        with signalled(signal.SIGINT, RunFolder, "append_round", times=times):
            stopped = ownview(*QUICK, "--out", f"again{times}")
        assert stopped.code != 0
        assert stopped.err.count("\n") == 1
        assert ownview(*QUICK, "--out", f"again{times}").code == 0
        assert files(Path(f"again{times}")) == whole


@pytest.mark.parametrize(("limit", "file"), [(6000, "comparison/fedease/model.safetensors"), (50_000, "report.html")])
def test_a_full_disk_is_one_line_and_the_same_command_goes_on(
    ownview: Callable[..., Outcome], limit: int, file: str
) -> None:
    stopped = Apart(*QUICK, within=partial(files_up_to, limit))
    assert stopped.wait() == 2
    assert stopped.said().startswith(f"ownview: {PLACE / file}: cannot be written: ")
    assert stopped.said().endswith("; make room or choose another place; then the same command goes on\n")
    again = ownview(*QUICK)
    assert again.code == 0, again.err


@pytest.mark.parametrize(
    ("early", "message", "code"),
    [
        (InterruptedRunError(RunFolder(PLACE / "model"), "after round 2", signal.SIGINT), "stopped after round 2", 130),
        (KeyboardInterrupt(), "stopped", 130),
        (TerminatedError(), "stopped", 143),
    ],
)
def test_a_start_that_is_told_to_stop_names_its_own_way_on(early: BaseException, message: str, code: int) -> None:
    with pytest.raises(OwnviewError) as ended, same_command_goes_on():
        raise early
    assert str(ended.value) == f"{message}; the same command goes on"
    assert ended.value.exit_code == code


def test_a_model_of_which_there_is_a_folder_and_nothing_in_it_is_fitted(ownview: Callable[..., Outcome]) -> None:
    """A process may be killed right after it made the folder."""
    assert ownview(*QUICK).code == 0
    whole = files(PLACE)
    for path in (PLACE / "lists.csv", *(PLACE / "model").iterdir()):
        path.unlink()
    outcome = ownview(*QUICK)
    assert outcome.code == 0, outcome.err
    assert files(PLACE) == whole


def test_another_best_method_replaces_the_model_of_an_earlier_start(ownview: Callable[..., Outcome]) -> None:
    first = ownview("start", "shop.csv", "--method", "popularity", "-k", "3")
    assert "it is central" in first.out
    assert "one upload" not in first.out
    outcome = ownview(*QUICK)
    kind = "it is federated, simulated: all rows lay in one file, and no device sent anything"
    assert f"{kind}\n  ! the server reads a user's items from one upload: precision 1.000" in outcome.out
    assert outcome.code == 0, outcome.err
    assert "the model of an earlier start, popularity, gives way to it" in outcome.out
    assert 'method = "fedease"' in (PLACE / "model" / "experiment.toml").read_text()
    later = files(PLACE)
    assert ownview(*QUICK, "--out", "at-once").code == 0
    assert later == files(Path("at-once"))
    assert "gives way" not in ownview(*QUICK).out


def test_a_record_that_was_never_finished_is_no_other_thing(ownview: Callable[..., Outcome]) -> None:
    (PLACE / ".start.json.0123abcd").mkdir(parents=True)
    outcome = ownview(*QUICK)
    assert outcome.code == 0, outcome.err
    assert not list(PLACE.glob(".*"))


def test_a_file_that_grew_goes_on_and_one_that_lost_rows_is_refused(ownview: Callable[..., Outcome]) -> None:
    assert ownview(*QUICK).code == 0
    with Path("shop.csv").open("a") as file:
        file.write("u0,23,late,1800000000\nzyx-person,23,late,1800000000\nzyx-person,99,brand new,1800000001\n")
    Path("runs").rename("moved")
    place = Path("moved/start-shop")
    outcome = ownview(*QUICK, "--out", str(place))
    assert outcome.code == 0, outcome.err
    assert "shop.csv has grown: 3 new rows of 2 people (1 of them new) with 1 new items" in outcome.words
    assert "comparison and report are of the file as it was" in outcome.words
    lists = pl.read_csv(place / "lists.csv")
    assert lists["user"].n_unique() == 41
    again = ownview(*QUICK, "--out", str(place))
    assert again.code == 0, again.err
    assert "41 users" in again.words
    taken = ownview("forget", str(place), "zyx-person")
    assert taken.code == 0, taken.err
    assert "removed: comparison" in taken.words
    assert not [path for path in place.rglob("*") if b"zyx-person" in bytes_of(path) or b"brand new" in bytes_of(path)]
    with Path("shop.csv").open("a") as file:
        file.write("u0,24,later,1800000002\n")
    assert "comparison and report went when a person was forgotten" in ownview(*QUICK, "--out", str(place)).words
    rows = Path("shop.csv").read_text().splitlines()
    Path("shop.csv").write_text("\n".join([*rows[:1], *rows[2:]]) + "\n")
    refused = ownview(*QUICK, "--out", str(place))
    assert (refused.code, refused.err.count("\n")) == (2, 1)
    assert "that it was begun with are not in shop.csv any more" in refused.err
    Path("shop.csv").rename("other.csv")
    other = ownview(QUICK[0], "other.csv", *QUICK[2:], "--out", str(place))
    assert "was begun with another file than other.csv is now; choose another --out" in other.err


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("user,item\nu1,a\n", "no user has 3 interactions"),
        ("user;item;timestamp\nu1;a;never\n", "timestamp"),
        ("", "empty"),
    ],
)
def test_data_that_cannot_be_asked_leaves_nothing(ownview: Callable[..., Outcome], text: str, fact: str) -> None:
    Path("bad.csv").write_text(text)
    outcome = ownview("start", "bad.csv")
    assert (outcome.code, outcome.err.count("\n")) == (2, 1)
    assert fact in outcome.err
    assert not Path("runs").exists()


def test_a_folder_of_other_things_is_left_alone(ownview: Callable[..., Outcome]) -> None:
    Path("mine").mkdir()
    Path("mine/letter.txt").write_text("hello")
    outcome = ownview(*QUICK, "--out", "mine")
    assert outcome.code == 2
    assert "mine: holds other things" in outcome.err
    assert [path.name for path in Path("mine").iterdir()] == ["letter.txt"]


def world(items: int, *, times: bool) -> Interactions:
    draw = np.random.default_rng(0)
    users = np.repeat(np.arange(items // 2), 4)
    item = np.concatenate([np.arange(items), draw.integers(0, items, len(users) - items)])
    stamp = np.arange(len(users)) * 1000 if times else None
    return Interactions.from_rows("made", users, item, timestamp=stamp)


def test_what_suits_depends_on_times_and_on_the_number_of_items() -> None:
    def chosen(data: Interactions) -> dict[str, object]:
        return {one.method: one.settings.get("rank", 0) for one in suited(HONEST.prepare(data, None)).methods}

    few = world(40, times=True)
    assert chosen(few) == {"popularity": 0, "markov": 0, "ease": 0, "fedease": 0, "fednext": 0, "pfedrec": 0}
    assert chosen(world(5000, times=True))["fednext"] == 512
    untimed = suited(HONEST.prepare(replace(few, timestamp=None), None))
    assert [one.method for one in untimed.methods] == ["popularity", "fedease", "ease", "pfedrec"]
    assert any("no times" in line for line in untimed.left_out)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("shop.csv", "--method", "fedeas"), "unknown method 'fedeas'; did you mean 'fedease'?"),
        (("folder",), "folder: is a folder; expected a file of interactions, or files of them in it"),
        (("shpo.csv",), "shpo.csv: no such file; did you mean 'shop.csv'?"),
        (("shop.csv", "--titles", "shpo.csv"), "shpo.csv: no such file; did you mean 'shop.csv'?"),
    ],
)
def test_a_slip_of_the_keyboard_leaves_nothing(
    ownview: Callable[..., Outcome], arguments: tuple[str, ...], message: str
) -> None:
    Path("folder").mkdir()
    assert ownview("start", *arguments) == Outcome(2, "", f"ownview: {message}\n")
    assert not Path("runs").exists()
