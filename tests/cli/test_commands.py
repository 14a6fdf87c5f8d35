"""The commands as a person types them, and as a program reads them."""

from __future__ import annotations

import gzip
import json
import random
import re
import signal
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ownview.base.version import __version__
from ownview.cli.program import side_by_side
from ownview.registry import MODELS
from ownview.runs import batch
from ownview.runs.files.folder import RunFolder
from tests.apart import PATIENCE
from tests.outcome import Outcome, signalled

OWN_METHOD = """
from dataclasses import dataclass
from typing import ClassVar

import ownview
from ownview.methods.fedmf import FedMF
from ownview.config.settings import setting


@dataclass(frozen=True)
class Scaled(FedMF):
    name: ClassVar[str] = "scaled"
    factor: float = setting(2.0, "factor on every score", above=0)

    def scores(self, p):
        return self.factor * super().scores(p)
"""


@pytest.fixture(autouse=True)
def world(own_folder: Path) -> Path:
    path = own_folder / "world.csv"
    path.write_text(rows(1))
    return path


def rows(seed: int) -> str:
    chance = random.Random(seed)
    text = "user,item,rating,timestamp\n"
    for user in range(20):
        for item in {(7 * user + k) % 130 for k in range(7)} | set(chance.sample(range(130), 6)):
            text += f"u{user},i{item},3,{chance.randint(0, 5000)}\n"
    return text


def object_of(outcome: Outcome) -> Any:
    """The one JSON object a command printed, and nothing besides."""
    assert (outcome.code, outcome.err) == (0, "")
    found, end = json.JSONDecoder().raw_decode(outcome.out)
    assert outcome.out[end:] == "\n"
    assert isinstance(found, dict)
    return found


QUICK = ("--rounds", "3", "--set", "embedding_size=4", "--set", "local_epochs=1")


def test_run_tells_a_person_what_was_measured_and_how(world: Path, ownview: Callable[..., Outcome]) -> None:
    outcome = ownview("run", "fedmf", "--data", world, *QUICK)
    assert (outcome.code, outcome.err) == (0, "")
    assert re.match(
        r"fedmf \(local_epochs=1, embedding_size=4\) on world, protocol honest, seed 0: "
        r"test at round [123] of 3 \(chosen on validation\), "
        r"20 users ranked among all items",
        outcome.words,
    )
    assert "HR@10's 95 % interval over users" in outcome.words
    assert outcome.out.endswith("everything in runs/fedmf-world-honest-seed0\n")
    again = ownview("run", "fedmf", "--data", world, *QUICK)
    assert again.out.endswith("everything in runs/fedmf-world-honest-seed0-2\n")


def test_run_as_json_is_one_object_equal_to_the_result_file(world: Path, ownview: Callable[..., Outcome]) -> None:
    found = object_of(ownview("run", "fedmf", "--data", world, *QUICK, "--out", "run", "--json"))
    assert found == {**json.loads(Path("run/result.json").read_text()), "folder": "run"}


def test_json_from_a_process_of_its_own_is_alone_on_stdout(world: Path) -> None:
    command = [sys.executable, "-m", "ownview", "run", "popularity", "--data", str(world), "--out", "run", "--json"]
    ended = subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENCE)
    assert json.loads(ended.stdout)["folder"] == "run"
    assert ended.stderr == ""


def test_run_says_what_the_data_lost(world: Path, ownview: Callable[..., Outcome]) -> None:
    world.write_text(rows(1) + "x,i1,3,5\nx,i2,3,6\nu0,i0,3,9000\n")
    outcome = ownview("run", "popularity", "--data", world)
    assert "note: 1 of 21 users with fewer than 3 interactions dropped" in outcome.words
    assert "note: 1 repeated (user, item) rows collapsed to their first occurrence" in outcome.words


def test_config_gives_settings_and_options_override_it(world: Path, ownview: Callable[..., Outcome]) -> None:
    Path("mine.toml").write_text(
        f"method = 'pfedrec'\ndata = '{world}'\nrounds = 50\nseed = 4\n"
        "[settings]\nembedding_size = 4\nlearning_rate = 0.05\n[federation]\nclients = '0.5'\n"
        "[[plugins]]\nname = 'dual-personalisation'\nsettings = {personal = true, alternate = true}\n"
    )
    overriding = ("--rounds", "2", "--set", "learning_rate=0.2", "--set", "dual-personalisation.alternate=false")
    found = object_of(ownview("run", "--config", "mine.toml", *overriding, "--out", "run", "--json"))
    assert (found["rounds"], found["seed"]) == (2, 4)
    assert found["method"] == "pfedrec + dual-personalisation"
    assert found["settings"] | {"embedding_size": 4, "learning_rate": 0.2} == found["settings"]
    written = tomllib.loads(Path("run/experiment.toml").read_text())
    assert written["federation"]["clients"] == "0.5"
    assert written["plugins"][0]["settings"] == {"personal": True, "alternate": False}
    assert json.loads(Path("run/rounds.jsonl").read_text().splitlines()[0])["clients"] == 10


def test_written_experiment_repeats_the_run(world: Path, ownview: Callable[..., Outcome]) -> None:
    assert ownview("run", "fedmf", "--data", world, *QUICK, "--out", "one").code == 0
    assert ownview("run", "--config", "one/experiment.toml", "--out", "two").code == 0
    assert Path("one/model.safetensors").read_bytes() == Path("two/model.safetensors").read_bytes()


def test_method_in_a_file_of_ones_own(world: Path, ownview: Callable[..., Outcome]) -> None:
    Path("my_method.py").write_text(OWN_METHOD)
    arguments = ("run", "my_method.py", "--data", world, *QUICK)
    found = object_of(ownview(*arguments, "--set", "factor=3", "--out", "run", "--json"))
    assert found["method"] == "my_method"
    assert found["settings"]["factor"] == 3.0
    assert ownview(*arguments, "--set", "factor=1", "--out", "plain").code == 0
    assert Path("plain/model.safetensors").read_bytes() != Path("run/model.safetensors").read_bytes()
    asked = ("recommend", "run", "--user", "u3", "--json")
    assert "give --trust" in ownview(*asked).err, "the folder names the file, which anybody may have written"
    assert object_of(ownview(*asked, "--trust"))["recommendations"]


def test_plugin_and_its_setting(world: Path, ownview: Callable[..., Outcome]) -> None:
    arguments = ("run", "fedmf", "--data", world, *QUICK, "--plugin", "dual-personalisation")
    both = object_of(ownview(*arguments, "--out", "both", "--json"))
    assert both["method"] == "fedmf + dual-personalisation"
    assert ownview(*arguments, "--set", "dual-personalisation.alternate=false", "--out", "one").code == 0
    written = tomllib.loads(Path("one/experiment.toml").read_text())
    assert written["plugins"] == [{"name": "dual-personalisation", "settings": {"personal": True, "alternate": False}}]
    assert Path("one/model.safetensors").read_bytes() != Path("both/model.safetensors").read_bytes()


def test_compare_methods_protocols_and_seeds_side_by_side(world: Path, ownview: Callable[..., Outcome]) -> None:
    methods = ("compare", "pfedrec", "popularity", "--data", world, "--rounds", "2", "--seeds", "2", "--out", "all")
    arguments = (*methods, "--protocol", "honest", "--protocol", "paper")
    found = object_of(ownview(*arguments, "--json"))
    cells = {(one["method"], one["protocol"], one["metric"]): one for one in found["results"]}
    assert set(cells) == {
        (method, protocol, metric)
        for method in ("pfedrec", "popularity")
        for protocol in ("honest", "paper")
        for metric in ("HR@10", "NDCG@10")
    }
    assert all(one["seeds"] == 2 for one in cells.values())
    assert cells["pfedrec", "paper", "HR@10"]["ranked_among"] == "100 items"
    results = [json.loads(Path(f"all/pfedrec-honest-seed{seed}/result.json").read_text()) for seed in (0, 1)]
    mean = sum(result["test"]["HR@10"] for result in results) / 2
    assert cells["pfedrec", "honest", "HR@10"]["mean"] == pytest.approx(mean)

    before = {path: path.stat().st_mtime_ns for path in Path("all").glob("*/*")}
    assert object_of(ownview(*arguments, "--resume", "all", "--json")) == found
    assert {path: path.stat().st_mtime_ns for path in Path("all").glob("*/*")} == before
    table = ownview(*arguments, "--resume", "all")
    assert "standard deviation over seeds" in table.words
    assert ": test, up to 2 rounds, 2 seeds" in table.words
    assert "! paper, leak: under protocol paper a model that learns nothing scores HR@10" in table.words
    for words in ("pfedrec", "popularity", "honest", "paper", "of 100 items", "of all items"):
        assert words in table.out
    assert ownview(*arguments).err == (
        "ownview: all: already exists; choose another --out, or go on with it by adding --resume all\n"
    )
    other = ownview("compare", "pfedrec", "--data", world, "--rounds", "3", "--resume", "all")
    assert other.code == 2
    assert "this run has rounds=2, not 3" in other.err


def test_compare_measures_as_often_as_it_is_asked_to(world: Path, ownview: Callable[..., Outcome]) -> None:
    arguments = ("compare", "fedmf", "--data", world, "--rounds", "3", "--measure-every", "2", "--out", "all")
    assert ownview(*arguments).code == 0
    lines = Path("all/fedmf-honest-seed0/rounds.jsonl").read_text().splitlines()
    assert ["validation" in json.loads(line) for line in lines] == [False, True, True]


@pytest.mark.parametrize(
    ("words", "several"),
    [
        (["fedmf", "--jobs", "2"], True),
        (["--jobs=12", "fedmf"], True),
        (["fedmf", "--jobs", "1"], False),
        (["fedmf", "--jobs"], False),
        (["--jobs", "many"], False),
        (["fedmf", "--rounds", "2"], False),
    ],
)
def test_runs_side_by_side_are_seen_before_anything_is_loaded(words: list[str], several: bool) -> None:
    assert side_by_side(words) is several


def test_error_in_one_of_several_processes_is_one_line(world: Path, ownview: Callable[..., Outcome]) -> None:
    outcome = ownview("compare", "fedmf", "pfedrec", "--data", "worlt.csv", "--rounds", "2", "--jobs", "2")
    assert outcome == Outcome(2, "", "ownview: worlt.csv: no such file; did you mean 'world.csv'?\n")


def test_stopped_comparison_names_the_way_on_and_goes_on(world: Path, ownview: Callable[..., Outcome]) -> None:
    arguments = ("compare", "pfedrec", "local-only", "--data", world, "--rounds", "3", "--out", "all")
    with signalled(signal.SIGINT, RunFolder, "append_round", times=5):
        stopped = ownview(*arguments)
    message = "ownview: stopped with 1 of 2 runs finished; go on by the same command with --resume all\n"
    assert stopped == Outcome(130, "", message)
    assert ownview(*arguments, "--resume", "all").code == 0
    assert len(list(Path("all").glob("*/result.json"))) == 2


def test_all_of_several_processes_stop_after_their_round(
    world: Path, ownview: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With more rounds than anybody waits for; the first news of a round brings the signal."""
    real, heard = batch._tell, list[object]()

    def tell(news: Any, on_round: Callable[..., None]) -> None:
        def signalling(*one: Any) -> None:
            on_round(*one)
            if not heard:
                heard.append(one)
                signal.raise_signal(signal.SIGTERM)

        real(news, signalling)

    monkeypatch.setattr(batch, "_tell", tell)
    arguments = ("compare", "pfedrec", "local-only", "--data", world, "--rounds", "1000000", "--out", "all")
    stopped = ownview(*arguments, "--jobs", "2")
    assert (stopped.code, stopped.out) == (143, "")
    assert stopped.err.startswith("ownview: stopped with 0 of 2 runs finished; go on by the same command")
    begun = [path.parent for path in Path("all").glob("*/rounds.jsonl")]
    assert begun
    assert all((folder / "checkpoint.safetensors").is_file() for folder in begun)


def test_recommend_shows_titles(ownview: Callable[..., Outcome]) -> None:
    assert ownview("run", "popularity", "--out", "run").code == 0
    found = object_of(ownview("recommend", "run", "--user", "58", "-k", "5", "--json"))
    assert (found["protocol"], found["user"], len(found["recommendations"])) == ("honest", "58", 5)
    titles = [one["title"] for one in found["recommendations"]]
    assert len(set(titles)) == 5
    scores = [one["score"] for one in found["recommendations"]]
    assert scores == sorted(scores, reverse=True)
    table = ownview("recommend", "run", "--user", "58", "-k", "5")
    assert table.out.startswith("popularity for user 58 of goodbooks (protocol honest)")
    assert all(title.split(" (")[0] in table.out for title in titles)


def test_recommend_to_an_unknown_user_suggests_a_known_one(world: Path, ownview: Callable[..., Outcome]) -> None:
    assert ownview("run", "popularity", "--data", world, "--out", "run").code == 0
    outcome = ownview("recommend", "run", "--user", "u99")
    assert outcome.code == 2
    assert re.fullmatch(r"ownview: unknown user of world 'u99'; did you mean 'u\d+'\?\n", outcome.err)


def test_recommend_prints_titles_with_brackets_whole_and_finds_imported_data(
    world: Path, ownview: Callable[..., Outcome]
) -> None:
    titles = "item,title\n" + "".join(f"i{item},Tome {item} [box set]\n" for item in range(130))
    Path("titles.csv.gz").write_bytes(gzip.compress(titles.encode()))
    place = ("--data-dir", "store")
    assert ownview("data", "import", world, "--name", "shop", "--titles", "titles.csv.gz", *place).code == 0
    assert ownview("run", "popularity", "--data", "shop", "--out", "run", *place).code == 0
    outcome = ownview("recommend", "run", "--user", "u3", "-k", "3", *place)
    assert outcome.out.count("[box set]") == 3
    assert ownview("recommend", "run", "--user", "u3").code == 2


def test_ls_methods_says_what_leaves_the_device(ownview: Callable[..., Outcome]) -> None:
    found = {one["name"]: one for one in object_of(ownview("ls", "methods", "--json"))["methods"]}
    assert set(found) == set(MODELS)
    assert "what its parts send" in found["blend"]["leaves_the_device"]
    assert found["local-only"]["leaves_the_device"] == "nothing"
    assert found["fedmf"]["leaves_the_device"] == "items"
    assert found["fedfast"]["leaves_the_device"] == "items, user (seen by the server)"
    assert found["colr"]["leaves_the_device"] == "update", "what no step moves stays where it is"
    assert found["popularity"]["leaves_the_device"] == "all data (not federated)"
    assert found["text"]["leaves_the_device"] == "nothing"
    table = ownview("ls").out
    assert all(name in table for name in found)


def test_ls_plugins_and_datasets(ownview: Callable[..., Outcome]) -> None:
    assert "dual-personalisation" in ownview("ls", "plugins").out
    assert "dual-personalisation" in [one["name"] for one in object_of(ownview("ls", "plugins", "--json"))["plugins"]]
    listed = object_of(ownview("ls", "datasets", "--json"))
    assert listed == object_of(ownview("data", "ls", "--json"))
    assert "goodbooks" in [one["name"] for one in listed["datasets"]]
    assert "goodbooks" in ownview("ls", "datasets").out
    assert ownview("ls", "datasets").out == ownview("data", "ls").out


def test_ls_runs_lists_finished_unfinished_and_unreadable_ones(world: Path, ownview: Callable[..., Outcome]) -> None:
    assert ownview("ls", "runs").out == "no runs here (looked in runs)\n"
    assert object_of(ownview("ls", "runs", "--json")) == {"runs": []}
    assert ownview("run", "popularity", "--data", world, "--out", "runs/b").code == 0
    assert ownview("run", "fedmf", "--data", world, *QUICK, "--out", "runs/deep/c").code == 0
    Path("runs/deep/c/result.json").unlink()
    Path("runs/a").mkdir()
    Path("runs/a/experiment.toml").write_text("method = [")
    found = {one["name"]: one for one in object_of(ownview("ls", "runs", "--json"))["runs"]}
    assert list(found) == ["a", "b", "deep/c"]
    assert found["a"]["method"].startswith("unreadable: runs/a/experiment.toml: not TOML")
    assert found["b"]["HR@10"] == round(json.loads(Path("runs/b/result.json").read_text())["test"]["HR@10"], 4)
    assert (found["deep/c"]["rounds"], found["deep/c"]["HR@10"]) == ("3 of 3", None)
    table = ownview("ls", "runs").out.splitlines()
    assert table[0].split() == ["began", "protocol", "rounds", "HR@10", "run"]
    assert table[2].endswith("  b")
    assert table[3].endswith("  deep/c  local_epochs=1 embedding_size=4"), "the path is whole, and what is no default"
    assert found["deep/c"]["settings"] == "local_epochs=1 embedding_size=4"
    assert all(re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d  honest", line) for line in table[2:])


def test_settings_of_a_run_are_listed_as_one_types_them(world: Path, ownview: Callable[..., Outcome]) -> None:
    given = ("--rounds", "1", "--set", "local_epochs=1", "--set", "adapter_layers=8,4", "--set", "clients=0.6")
    assert ownview("run", "fedem", "--data", world, *given, "--out", "runs/a").code == 0
    (listed,) = object_of(ownview("ls", "runs", "--json"))["runs"]
    assert listed["settings"] == "local_epochs=1 adapter_layers=8,4 clients=0.6"


def test_doctor_reports_versions_devices_and_data(ownview: Callable[..., Outcome]) -> None:
    found = object_of(ownview("doctor", "--json"))
    assert found["ownview"] == __version__
    assert set(found["packages"]) >= {"torch", "numpy", "polars", "safetensors"}
    assert "goodbooks" in found["datasets here"]
    assert "ml-100k" in found["datasets absent"]
    words = ownview("doctor")
    assert words.code == 0
    assert all(name in words.out for name in found)


def test_version_is_the_packages(ownview: Callable[..., Outcome]) -> None:
    assert ownview("--version") == Outcome(0, f"{__version__}\n", "")


def test_a_command_that_moved_names_its_place(ownview: Callable[..., Outcome]) -> None:
    for words in (["reproduce"], ["reproduce", "pfedrec", "--table", "1"], ["reproduce", "--help"]):
        outcome = ownview(*words)
        assert (outcome.code, outcome.out) == (2, "")
        assert outcome.err == (
            "ownview: reproduce is now: python -m reproduction run, in a clone of the repository; "
            "see docs/reproduce.md\n"
        )


COMMANDS = ["", "run", "compare", "attack", "recommend", "ls", "doctor"]
COMMANDS += ["data", "data ls", "data describe", "data fetch", "data import"]


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_every_command_describes_every_option(command: str, ownview: Callable[..., Outcome]) -> None:
    outcome = ownview(*command.split(), "--help")
    assert (outcome.code, outcome.err) == (0, "")
    assert f"Usage: ownview {command}".strip() in outcome.out
    options = re.findall(r"^│\s+(?:\*\s+)?(--[a-z-]+)(.*)│$", outcome.out, re.MULTILINE)
    assert {"--help"} <= {name for name, _ in options}
    assert all(re.search(r"[A-Za-z]{3} .*[a-z]", text) for _, text in options), options


OUT = ["start", "run", "compare", "blend", "tune", "bench", "attack", "score", "paper", "board", "report", "fit", "new"]


@pytest.mark.parametrize("command", [*OUT, "recommend", "page", "export", "sums agree", "sums total"])
def test_where_something_is_written_is_said_by_the_same_words(command: str, ownview: Callable[..., Outcome]) -> None:
    assert re.search(r"--out(,--resume)?\s+-o\s", ownview(*command.split(), "--help").out)


@pytest.mark.parametrize("command", ["start", "run", "compare", "recommend", "fit", "report", "data import"])
def test_help_describes_what_is_given_without_a_name(command: str, ownview: Callable[..., Outcome]) -> None:
    """typer loses these words where a newer click has words of its own for them."""
    panel = ownview(*command.split(), "--help").out.partition("─ Arguments ─")[2].partition("╰")[0]
    words = re.sub(r"\[[^]]*\]|[^A-Za-z ]", " ", panel)
    assert len(words.split()) > 5, panel


def test_ownview_alone_shows_its_commands(ownview: Callable[..., Outcome]) -> None:
    outcome = ownview()
    shown = outcome.out + outcome.err
    assert all(f" {name} " in shown for name in ("run", "compare", "recommend", "ls", "doctor", "data"))


def test_compare_takes_settings_and_plugins(world: Path, ownview: Callable[..., Outcome]) -> None:
    arguments = ["popularity", "fedmf", "fedmf+dual-personalisation", "--data", str(world), "--rounds", "1", "--json"]
    found = ownview("compare", *arguments, "--set", "embedding_size=3", "--set", "clients=0.5", "--out", "both")
    assert found.code == 0, found.err
    assert {row["method"] for row in json.loads(found.out)["results"]} == {
        "popularity", "fedmf", "fedmf + dual-personalisation",
    }  # fmt: skip
    plain = tomllib.loads(Path("both/fedmf-honest-seed0/experiment.toml").read_text(encoding="utf-8"))
    wrapped = tomllib.loads(
        Path("both/fedmf+dual-personalisation-honest-seed0/experiment.toml").read_text(encoding="utf-8")
    )
    for written in (plain, wrapped):
        assert written["settings"]["embedding_size"] == 3
        assert written["federation"]["clients"] == "0.5"
    assert [one["name"] for one in wrapped["plugins"]] == ["dual-personalisation"]
    other = ownview("compare", *arguments, "--set", "clients=0.5", "--resume", "both")
    assert other.code == 2, "a run with embedding_size=3 does not stand for one with the default"
    assert "settings.embedding_size=3, not 16" in other.err
    refused = ownview("compare", *arguments, "--set", "rnak=3", "--out", "other")
    assert refused.code == 2
    assert "--set rnak=3: no method of this comparison has that setting" in refused.err


def test_ls_as_json_tells_the_settings(ownview: Callable[..., Outcome]) -> None:
    methods = {row["name"]: row for row in json.loads(ownview("ls", "methods", "--json").out)["methods"]}
    assert methods["pfedrec"]["settings"]["embedding_size"] == {
        "default": 32, "help": "length of item vectors", "search": {"choices": [8, 16, 32, 64]},
    }  # fmt: skip
    plugins = json.loads(ownview("ls", "plugins", "--json").out)["plugins"]
    assert set(plugins[0]["settings"]) == {"personal", "alternate"}
