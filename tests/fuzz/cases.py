"""One command for every seed, and the files it is given; a case depends on its seed alone."""

from __future__ import annotations

import gzip
import random
import shutil
from collections.abc import Callable
from pathlib import Path

from ownview.runs.files.tensor_files import read_tensors, write_tensors
from tests.fuzz.harm import WORDS, spoil_value, spoilt_bytes, spoilt_json, spoilt_tensors, spoilt_toml
from tests.studies.suites import two_methods

Arguments = list[str]

_COLUMNS = ("user=0,item=1", "user=user,item=item", "user=who,item=what", "item=user,user=item", "user=0", "rating=-")
_SETTINGS = {
    "popularity": (),
    "fedmf": (
        "embedding_size",
        "learning_rate",
        "negatives",
        "batch_size",
        "clients",
        "weighting",
        "privacy",
        "row_mean",
    ),
    "pfedrec": ("embedding_size", "learning_rate", "clients", "server_optimizer", "server_learning_rate"),
    "fedease": ("strength", "clients"),
    "mf": ("embedding_size", "learning_rate", "strength"),
}
_OPTIONS = (
    "--data", "--columns", "--protocol", "--seed", "--inactive", "--watch", "--privacy", "--set", "--plugin",
    "--config", "--preset", "--resume", "--engine", "--device", "--memory", "--data-dir", "--rounds",
)  # fmt: skip
SUITE = two_methods("goodbooks", rounds=1, seeds=1) + "[rows.data.goodbooks]\nsettings = { learning_rate = 0.1 }\n"
PROTOCOL = """base = "honest"
name = "mine"
candidates = 20
cutoffs = [5, 10]
split = "leave-one-out"
selection = "last"
ties = "last"
"""


def case(seed: int, sound: Path) -> Arguments:
    """Prepare this folder for one command, and its arguments. `sound` holds world.csv, done/ and begun/."""
    chance = random.Random(seed)
    kinds: tuple[Callable[[random.Random, Path], Arguments], ...] = (_data, _data, _words, _folder, _folder, _toml)
    return chance.choice(kinds)(chance, sound)


def _data(chance: random.Random, sound: Path) -> Arguments:
    """A file of interactions, or of titles."""
    text = (sound / "world.csv").read_bytes()
    form = chance.choice(("csv", "tsv", "gz", "parquet", "inter", "dat", "titles"))
    if form == "titles":
        titles = b"item,title\n" + b"".join(b"i%d,Title %d\n" % (k, k) for k in range(60))
        Path("titles.csv").write_bytes(spoilt_bytes(titles, chance))
        return [
            "data",
            "import",
            str(sound / "world.csv"),
            "--name",
            "w",
            "--titles",
            "titles.csv",
            "--data-dir",
            "kept",
        ]
    name = f"world.{'csv.gz' if form == 'gz' else form}"
    makers: dict[str, Callable[[], bytes]] = {
        "gz": lambda: gzip.compress(text, mtime=0),
        "parquet": (sound / "world.parquet").read_bytes,
        "tsv": lambda: text.replace(b",", b"\t"),
        "inter": lambda: text.replace(b",", b"\t").replace(b"user\titem", b"user_id:token\titem_id:token"),
        "dat": lambda: text.replace(b",", b"::").partition(b"\n")[2],
    }
    made = makers.get(form, lambda: text)()
    # Spoilt before it is packed, it reaches what reads the text.
    inner = form == "gz" and chance.random() < 0.5
    Path(name).write_bytes(gzip.compress(spoilt_bytes(text, chance), mtime=0) if inner else spoilt_bytes(made, chance))
    columns = ["--columns", chance.choice((*_COLUMNS, *WORDS))] if chance.random() < 0.3 else []
    if chance.random() < 0.15:
        return ["run", "popularity", "--data", name, "--out", "r", *columns]
    return ["data", "describe", name, *columns, *chance.choice(([], ["--json"]))]


def _words(chance: random.Random, sound: Path) -> Arguments:
    """A run, or another command, with odd words for its options."""
    if chance.random() < 0.3:
        word, other = chance.choice(WORDS), chance.choice(WORDS)
        return chance.choice(
            (
                ["recommend", str(sound / "done"), "--user", word, "-k", other],
                ["recommend", word, "--user", other],
                ["audit", word, "--protocol", other],
                ["data", "describe", word],
                ["data", "import", str(sound / "world.csv"), "--name", word, "--data-dir", "kept"],
                ["data", "fetch", word],
                ["report", word, "-o", "page.html"],
                ["report", str(sound / "done"), "-o", "page.html", "--title", word],
                ["bench", word, "--list"],
                ["bench", "quick", "--list", "--data", word],
                ["reproduce", word, "--list"],
                ["watch", word, "--once"],
                ["ls", word],
                ["ls", "runs", "--folder", word],
                ["tune", word, "--search", other],
                ["compare", word, "--set", other],
                [word, other],
            )
        )
    method = chance.choice(tuple(_SETTINGS))
    given = ["run", method, "--data", str(sound / "world.csv"), "--out", "r", "--rounds", "1", "--memory", "50MB"]
    for name in _SETTINGS[method]:
        if chance.random() < 0.4:
            given += ["--set", f"{name}={chance.choice(WORDS)}"]
    if chance.random() < 0.7:
        option = chance.choice(_OPTIONS)
        given += [option, chance.choice(("2", "0", "x")) if option == "--rounds" else chance.choice(WORDS)]
    return given


def _folder(chance: random.Random, sound: Path) -> Arguments:
    """A run folder with one file spoilt, taken away, or turned into a folder."""
    source = chance.choice(("done", "done", "begun"))
    shutil.copytree(sound / source, "run")
    path = chance.choice(sorted(one for one in Path("run").iterdir() if one.is_file()))
    match chance.randrange(8):
        case 0:
            path.unlink()
        case 1:
            path.unlink()
            path.mkdir()
        case _ if path.suffix == ".toml":
            path.write_text(spoilt_toml(path.read_text(), chance))
        case 2 | 3 | 4 if path.suffix == ".json":
            path.write_text(spoilt_json(path.read_text(), chance))
        case 2 | 3 | 4 if path.suffix == ".jsonl":
            lines = path.read_text().splitlines()
            place = chance.randrange(len(lines))
            path.write_text("\n".join([*lines[:place], spoilt_json(lines[place], chance), *lines[place + 1 :]]) + "\n")
        case 2 | 3 | 4 if path.suffix == ".safetensors":  # with a checksum that fits, as an attacker makes it
            tensors, about, experiment = read_tensors(path)
            if tensors and chance.random() < 0.5:
                tensors = spoilt_tensors(tensors, chance)
            else:
                spoil_value(about, chance)
            write_tensors(path, tensors, about, experiment or {})
        case _:
            path.write_bytes(spoilt_bytes(path.read_bytes(), chance))
    if source == "begun":
        return ["run", "--resume", "run"]
    return chance.choice(
        (
            ["recommend", "run", "--user", "u1"],
            ["report", "run", "-o", "page.html"],
            ["ls", "runs", "--folder", "."],
            ["watch", "run", "--once"],
            ["run", "--resume", "run"],
        )
    )


def _toml(chance: random.Random, sound: Path) -> Arguments:
    """An experiment, a protocol or a suite."""
    kind = chance.randrange(3)
    text = ((sound / "done" / "experiment.toml").read_text().replace("rounds = 2", "rounds = 1"), PROTOCOL, SUITE)[kind]
    Path("x.toml").write_text(spoilt_toml(text, chance), encoding="utf-8")
    if kind == 0:
        return ["run", "--config", "x.toml", "--out", "r", "--memory", "50MB", "--rounds", "1"]
    if kind == 1:
        return ["run", "popularity", "--data", str(sound / "world.csv"), "--protocol", "x.toml", "--out", "r"]
    return ["bench", "x.toml", "--list"]
