"""Whatever is wrong with what a person gives: one line that says what, where, and what to do instead."""

from __future__ import annotations

import gzip
import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from tests.outcome import Outcome

HEADER = "user,item,rating,timestamp\n"
FEW_ITEMS = "".join(f"u{user},i{(user + k) % 20},3,{100 + k}\n" for user in range(8) for k in range(6))


@pytest.fixture(autouse=True)
def _world(own_folder: Path) -> None:
    chance = random.Random(1)
    rows = [f"u{u},i{i},3,{chance.randint(0, 900)}\n" for u in range(12) for i in chance.sample(range(140), 8)]
    Path("world.csv").write_text(HEADER + "".join(rows))


def assert_refused(outcome: Outcome, *facts: str) -> None:
    """One line on stderr, exit code 2, nothing on stdout, and every fact in the line."""
    assert outcome.code == 2, outcome
    assert outcome.out == ""
    assert re.fullmatch(r"ownview: \S[^\n]*\S\n", outcome.err), outcome.err
    for fact in facts:
        assert fact in outcome.err


def rows_with(**changed: str) -> str:
    """A sound file of 12 rows, but for the values given for line 5."""
    values = {"user": "u0", "item": "i9", "rating": "3", "timestamp": "7", **changed}
    rows = [f"u{k // 4},i{k},3,{k}\n" for k in range(12)]
    rows[3] = ",".join(values.values()) + "\n"
    return HEADER + "".join(rows)


@pytest.mark.parametrize(
    ("content", "facts"),
    [
        ("who,item\na,b\nc,d\n", ["bad.csv: line 1", "no user column", "found who, item", "user=COLUMN"]),
        ("user,thing\na,b\nc,d\n", ["bad.csv: line 1", "no item column", "found user, thing", "item=COLUMN"]),
        ("", ["bad.csv", "is empty", "rows of user and item"]),
        ("\n\n  \n", ["bad.csv", "is empty"]),
        (HEADER, ["bad.csv", "line 1", "only a header", "expected rows below"]),
        ("user\na\nb\n", ["bad.csv", "line 1", "one column"]),
        (rows_with(rating="good"), ["bad.csv: line 5, column 'rating'", "'good'", "finite number"]),
        (rows_with(rating="nan"), ["bad.csv: line 5, column 'rating'", "'nan'", "finite number"]),
        (rows_with(rating=""), ["bad.csv: line 5, column 'rating'", "no rating", "other rows have one"]),
        (rows_with(timestamp="-5"), ["bad.csv: line 5, column 'timestamp'", "'-5'", "0 or more"]),
        (rows_with(timestamp=""), ["bad.csv: line 5, column 'timestamp'", "no timestamp", "other rows have one"]),
        (rows_with(timestamp="2009-04-01"), ["bad.csv: line 5, column 'timestamp'", "'2009-04-01'", "as in the rows"]),
        (rows_with(timestamp="soon"), ["bad.csv: line 5, column 'timestamp'", "'soon'", "seconds"]),
        (rows_with(item="a,b"), ["bad.csv: line 5", "5 fields", "expected 4"]),
        (HEADER + "a,b,3,1\na,c,3,2\nb,b,3,1\n", ["bad", "no user has 3 interactions or more"]),
        (gzip.compress((HEADER + FEW_ITEMS).encode())[:60], ["bad.csv", "truncated gzip", "60 bytes"]),
        (b"PK\x03\x04rest", ["bad.csv", "zip archive", "unpack"]),
        ('[{"user": 1}]', ["bad.csv", "no item column", "found user"]),
    ],
    ids=lambda value: value[1] if isinstance(value, list) else "",
)
def test_unsound_data(content: str | bytes, facts: list[str], ownview: Callable[..., Outcome]) -> None:
    Path("bad.csv").write_bytes(content.encode() if isinstance(content, str) else content)
    assert_refused(ownview("run", "fedmf", "--data", "bad.csv", "--out", "run"), *facts)
    assert not Path("run").exists()


def test_renamed_columns_are_accepted_once_named(ownview: Callable[..., Outcome]) -> None:
    Path("mine.csv").write_text(Path("world.csv").read_text().replace(HEADER, "who,what,stars,when\n"))
    assert_refused(ownview("run", "popularity", "--data", "mine.csv"), "no user column")
    named = ("--columns", "user=who,item=what,timestamp=when")
    assert ownview("run", "popularity", "--data", "mine.csv", *named, "--out", "run").code == 0
    assert ownview("run", "popularity", "--config", "run/experiment.toml", "--out", "again").code == 0
    assert_refused(ownview("run", "popularity", "--data", "mine.csv", "--columns", "user=whom,item=what"), "'who'")
    assert_refused(ownview("run", "popularity", "--data", "mine.csv", "--columns", "who"), "expected name=column")


def test_users_with_too_few_rows_are_dropped_and_counted(ownview: Callable[..., Outcome]) -> None:
    Path("some.csv").write_text(HEADER + FEW_ITEMS + "lone,i1,3,1\npair,i1,3,1\npair,i2,3,2\n")
    outcome = ownview("run", "popularity", "--data", "some.csv", "--out", "run")
    assert (outcome.code, outcome.err) == (0, "")
    assert "note: 2 of 10 users with fewer than 3 interactions dropped" in outcome.out
    assert len(Path("run/users.csv").read_text().splitlines()) == 1 + 8


def test_too_few_items_for_the_papers_candidates(ownview: Callable[..., Outcome]) -> None:
    Path("small.csv").write_text(HEADER + FEW_ITEMS)
    facts = ("small: user u", "of 13 items as candidates", "expected at least 99", "protocol with fewer candidates")
    assert_refused(ownview("run", "fedmf", "--data", "small.csv", "--protocol", "paper"), *facts)


@pytest.mark.parametrize(
    ("arguments", "facts"),
    [
        ("pfedrek", ["unknown method 'pfedrek'", "did you mean 'pfedrec'?"]),
        ("zzz", ["unknown method 'zzz'", "choose from", "fedmf", "a .py file"]),
        ("fedmf --data goodboks", ["unknown dataset 'goodboks'", "did you mean 'goodbooks'?"]),
        ("fedmf --data ml-100k", ["dataset 'ml-100k' is not here", "ownview data fetch ml-100k"]),
        ("fedmf --data wurld.csv", ["wurld.csv: no such file", "did you mean 'world.csv'?"]),
        ("fedmf --protocol honst", ["unknown protocol 'honst'", "did you mean 'honest'?"]),
        ("fedmf --protocol none.toml", ["none.toml: no such protocol file"]),
        ("fedmf --set embeding_size=4", ["'embeding_size'", "did you mean 'embedding_size'?"]),
        ("fedmf --set embedding_size=big", ["embedding_size='big'", "a whole number at least 1"]),
        ("fedmf --set embedding_size=2.5", ["embedding_size='2.5'", "a whole number at least 1"]),
        ("fedmf --set embedding_size=", ["embedding_size=''", "a whole number at least 1"]),
        ("fedmf --set embedding_size=0", ["embedding_size=0", "at least 1"]),
        ("fedmf --set learning_rate=0", ["learning_rate=0.0", "a number above 0"]),
        ("fedmf --set learning_rate=nan", ["learning_rate=nan", "a number above 0"]),
        ("fedmf --set negatives=1000", ["negatives=1000", "at least 1 and at most 100"]),
        ("fedmf --set embedding_size", ["--set embedding_size", "expected NAME=VALUE"]),
        ("fedmf --set clients=2.0", ["clients='2.0'", "a share in (0, 1]"]),
        ("fedmf --set clients=abc", ["clients='abc'", "all, a share"]),
        ("fedmf --set clients=0", ["clients='0'", "a number of clients"]),
        ("fedmf --set clients=poisson:2", ["clients='poisson:2'", "poisson:P"]),
        ("fedmf --set clients=turns:0", ["clients='turns:0'", "turns:N"]),
        ("fedmf --measure-every 0", ["measure_every=0", "a whole number at least 1"]),
        ("fedmf --set weighting=samples2", ["weighting='samples2'", "did you mean 'samples'?"]),
        ("fedmf --set server_optimizer=sgd", ["server_optimizer='sgd'", "one of plain, momentum, adam"]),
        ("fedmf --plugin dualper", ["unknown plug-in 'dualper'", "dual-personalisation"]),
        ("fedmf --plugin dual-personalisation --set dual-personalisation.alternat=no", ["did you mean", "alternate'"]),
        (
            "fedmf --plugin dual-personalisation --set dual-personalisation.alternate=maybe",
            ["'maybe'", "true or false"],
        ),
        ("fedmf --set dual-personalisation.alternate=no", ["is not in use", "add --plugin dual-personalisation"]),
        ("popularity --plugin dual-personalisation", ["needs a federated method", "popularity is not federated"]),
        ("popularity --set privacy=laplace:0.1", ["popularity is not federated", "nothing would be protected"]),
        ("ease --privacy central:epsilon=8", ["ease is not federated", "nothing would be protected"]),
        ("local-only --plugin dual-personalisation", ["shares an item table", "local-only shares none"]),
        ("fedmf --engine vektor", ["unknown engine 'vektor'", "did you mean 'vector'?"]),
        ("fedmf --device gpu", ["unknown device 'gpu'"]),
        ("fedmf --rounds 0", ["rounds=0", "at least 1"]),
        ("fedmf --seed -1", ["seed=-1", "at least 0"]),
        ("fedmf --inactive 20", ["inactive='20'", "FEWEST:BELOW", "such as 20:30"]),
        ("fedmf --inactive 20-30", ["inactive='20-30'", "FEWEST:BELOW"]),
        ("fedmf --inactive 9:9", ["inactive='9:9'", "at least FEWEST and fewer than BELOW"]),
        ("fedmf --inactive 30:20", ["inactive='30:20'", "did you mean '20:30'?"]),
        ("fedmf --inactive 20:30", ["inactive='20:30'", "no ranked user", "meets 8 to 8", "such as 8:9"]),
        ("fedmf --memory much", ["memory 'much'", "4GB"]),
        ("fedmf --memory 0GB", ["memory '0GB'", "4GB"]),
        ("fedmf --memory -4GB", ["memory '-4GB'", "4GB"]),
        ("local-only --memory 1kB", ["local-only's standing values need", "raise --memory"]),
        ("", ["name a method", "--config FILE", "--resume DIR"]),
        ("none.py", ["none.py: no such method file"]),
        ("--config none.toml", ["none.toml: no such experiment file"]),
        ("--config .", ["cannot be read: Is a directory"]),
        ("--resume .", ["not a run folder", "experiment.toml"]),
        ("--resume nowhere", ["nowhere: no such run folder"]),
        ("--resume world.csv", ["world.csv: not a run folder"]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_bad_option(arguments: str, facts: list[str], ownview: Callable[..., Outcome]) -> None:
    words = arguments.split()
    data = [] if {"--data", "--resume", "--config"} & set(words) else ["--data", "world.csv"]
    out = [] if "--resume" in words else ["--out", "run"]
    assert_refused(ownview("run", *words, *data, *out), *facts)
    assert not Path("run").exists()


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
@pytest.mark.parametrize("device", ["cuda", "cuda:1"])
def test_cuda_asked_for_and_absent(device: str, ownview: Callable[..., Outcome]) -> None:
    outcome = ownview("run", "fedmf", "--data", "world.csv", "--device", device)
    assert_refused(outcome, f"device {device!r} asked for", "no CUDA device", "--device cpu")


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("method = ", ["bad.toml: not TOML", "Invalid value"]),
        (b"method = '\xff'", ["bad.toml: not TOML", "UTF-8"]),
        ("rounds = 3", ["bad.toml", "expected a setting method"]),
        ("method = 'fedmf'\nround = 3", ["bad.toml has no setting 'round'", "did you mean 'rounds'?"]),
        ("method = 'fedmf'\nrounds = 'ten'", ["rounds='ten'", "a whole number"]),
        ("method = 'fedmf'\nrounds = true", ["rounds=True", "a whole number"]),
        ("method = 5", ["method=5", "expected text"]),
        ("method = 'fedmf'\ndata = 5", ["data=5", "expected text"]),
        ("method = 'fedmf'\nsettings = 'x'", ["settings='x'", "expected a table"]),
        ("method = 'fedmf'\ncolumns = 'x'", ["columns='x'", "expected a table"]),
        ("method = 'fedmf'\ncolumns = {usr = 'who'}", ["'usr'", "user"]),
        ("method = 'fedmf'\nplugins = 'x'", ["plugins='x'", "expected a list of tables"]),
        ("method = 'fedmf'\nplugins = ['x']", ["plug-in 'x'", "a table with a name"]),
        ("method = 'fedmf'\nplugins = [{settings = {}}]", ["plug-in", "a table with a name"]),
        ("method = 'fedmf'\nprotocol = 3", ["protocol=3", "a name, a .toml file or a table"]),
        ("method = 'fedmf'\n[protocol]\ntie = 'last'", ["protocol has no setting 'tie'", "did you mean 'ties'?"]),
        ("method = 'fedmf'\n[settings]\nembedding_size = 'x'", ["embedding_size='x'", "a whole number"]),
        ("method = 'fedmf'\n[federation]\nclients = 3.5", ["clients='3.5'", "a share in (0, 1]"]),
    ],
    ids=lambda value: repr(value[-40:]) if isinstance(value, str | bytes) else "",
)
def test_bad_config(text: str | bytes, facts: list[str], ownview: Callable[..., Outcome]) -> None:
    Path("bad.toml").write_bytes(text if isinstance(text, bytes) else text.encode())
    assert_refused(ownview("run", "--config", "bad.toml", "--out", "run"), *facts)


def test_experiment_file_that_turned_bad_is_refused_on_resume(ownview: Callable[..., Outcome]) -> None:
    Path("run").mkdir()
    Path("run/experiment.toml").write_text("method = [")
    assert_refused(ownview("run", "--resume", "run"), "run/experiment.toml", "not TOML")
    Path("run/experiment.toml").write_bytes(b"\xff\xfe")
    assert_refused(ownview("run", "--resume", "run"), "run/experiment.toml: is damaged")


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("import nosuchmodule", ["cannot be imported", "ModuleNotFoundError", "nosuchmodule"]),
        ("def f(:", ["cannot be imported", "SyntaxError"]),
        ("raise ValueError('one\\ntwo')", ["cannot be imported", "ValueError: one two"]),
        ("x = 1", ["expected exactly one subclass of ownview.Method, ReportingMethod, OneShot or InEpochs, found 0"]),
        ("import ownview\nclass A(ownview.Method): pass\nclass B(ownview.Method): pass", ["found 2"]),
    ],
    ids=["absent import", "syntax", "raises", "no method", "two methods"],
)
def test_bad_method_file(text: str, facts: list[str], ownview: Callable[..., Outcome]) -> None:
    Path("mine.py").write_text(text)
    assert_refused(ownview("run", "mine.py", "--data", "world.csv"), "mine.py", *facts)


@pytest.mark.parametrize(
    ("arguments", "facts"),
    [
        ("compare fedmf nope --data world.csv", ["unknown method 'nope'"]),
        ("compare fedmf --data world.csv --protocol papr", ["unknown protocol 'papr'", "did you mean 'paper'?"]),
        (
            "compare fedmf ease --data world.csv --set embeding=3",
            ["--set embeding=3", "did you mean 'embedding_size'?"],
        ),
        ("compare ease --data world.csv --set zzz=3", ["--set zzz=3: no method", "choose from"]),
        ("compare fedmf --data world.csv --resume a --out b", ["--resume a: goes on there and not in --out b"]),
        ("compare fedmf --data world.csv --out world.csv", ["world.csv: already exists"]),
        ("recommend nowhere --user u1", ["nowhere: no such run folder"]),
        ("data describe none.csv", ["none.csv: no such file"]),
        ("data fetch nosuch", ["unknown dataset 'nosuch'"]),
        ("start world.csv --memory lots", ["memory 'lots': expected a size such as 4GB"]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_bad_input_of_other_commands(arguments: str, facts: list[str], ownview: Callable[..., Outcome]) -> None:
    assert_refused(ownview(*arguments.split()), *facts)


def test_recommend_from_an_unfinished_run_tells_how_to_finish_it(ownview: Callable[..., Outcome]) -> None:
    assert ownview("run", "popularity", "--data", "world.csv", "--out", "run").code == 0
    Path("run/result.json").unlink()
    assert_refused(
        ownview("recommend", "run", "--user", "u1"),
        "run: the run has not finished; go on with: ownview run --resume run\n",
    )


@pytest.mark.parametrize("resume", [(), ("--resume", "run")])
def test_a_comparison_does_not_go_into_the_folder_of_a_run(
    resume: tuple[str, ...], ownview: Callable[..., Outcome]
) -> None:
    assert ownview("run", "popularity", "--data", "world.csv", "--out", "run").code == 0
    before = sorted(Path("run").rglob("*"))
    outcome = ownview("compare", "popularity", "--data", "world.csv", "--out", "run", *resume)
    assert_refused(outcome, "run: is the folder of one run; expected one for several: choose another --out")
    assert sorted(Path("run").rglob("*")) == before


def test_a_comparison_does_not_go_on_in_a_folder_of_other_things(ownview: Callable[..., Outcome]) -> None:
    Path("thesis").mkdir()
    Path("thesis/chapter.txt").write_text("one")
    asked = ("compare", "popularity", "markov", "--data", "world.csv", "--resume")
    assert_refused(
        ownview(*asked, "thesis"),
        "thesis: holds no run of this comparison, so there is nothing to go on with; expected popularity-honest-seed0, "
        "markov-honest-seed0 or the like there: choose another --out, or leave --resume out for a new folder",
    )
    assert [one.name for one in Path("thesis").iterdir()] == ["chapter.txt"]
    Path("empty").mkdir()
    assert ownview(*asked, "empty").code == 0, "a comparison that was stopped before its first run"


def test_a_blend_into_an_unfinished_one_names_the_command_that_ends_it(ownview: Callable[..., Outcome]) -> None:
    for method in ("popularity", "markov"):
        assert ownview("run", method, "--data", "world.csv", "--out", method).code == 0
    blend = ("blend", "popularity", "markov", "--out", "both")
    assert ownview(*blend).code == 0
    whole = Path("both/users.csv").read_text()
    Path("both/result.json").unlink()
    assert_refused(ownview(*blend), "both: already exists; choose another --out, or", "ownview run --resume both\n")
    assert ownview("run", "--resume", "both").code == 0
    assert Path("both/users.csv").read_text() == whole


@pytest.mark.parametrize(
    "arguments",
    ["run fedmf --bogus", "bogus", "run fedmf --rounds many", "ls metods", "recommend", "recommend x --user 1 -k 0"],
)
def test_usage_errors_exit_with_2_and_say_usage(arguments: str, ownview: Callable[..., Outcome]) -> None:
    outcome = ownview(*arguments.split())
    assert outcome.code == 2
    assert outcome.out == ""
    assert "Usage: ownview" in outcome.err
    assert ("did you mean 'methods'?" in outcome.err) == ("metods" in arguments)
    assert "Traceback" not in outcome.err
