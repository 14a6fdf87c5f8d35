"""Run folders that were edited, cut, or hit by a bit that flipped: refused by name, never another result."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from ownview.runs.files.folder import RunFolder
from ownview.runs.files.tensor_files import read_tensors, write_tensors
from ownview.runs.run import resume
from tests.faults.conftest import ROUNDS
from tests.outcome import Outcome

RECOMMEND = ("recommend", "done", "--user", "u1")


def replaced(path: str, old: str, new: str) -> None:
    text = Path(path).read_text()
    assert text.count(old) == 1, text
    Path(path).write_text(text.replace(old, new))


class TestEditedExperiment:
    @pytest.mark.parametrize(
        ("old", "new", "message"),
        [
            ("seed = 0\ninactive", "seed = 1\ninactive", "seed is 1, and checkpoint.safetensors was made with 0"),
            ("learning_rate = 0.01", "learning_rate = 0.5", "settings.learning_rate is 0.5"),
            ("rounds = 4", "rounds = 9", "rounds is 9"),
            ('clients = "all"', 'clients = "0.5"', "federation.clients is '0.5'"),
        ],
        ids=lambda value: value,
    )
    def test_is_not_resumed_into_a_false_result(
        self, old: str, new: str, message: str, refused: Callable[..., str]
    ) -> None:
        replaced("begun/experiment.toml", old, new)
        assert message in refused("run", "--resume", "begun")
        assert not Path("begun/result.json").exists()

    def test_is_not_recommended_from(self, refused: Callable[..., str]) -> None:
        replaced("done/experiment.toml", "embedding_size = 4", "embedding_size = 8")
        assert "settings.embedding_size is 8, and model.safetensors was made with 4" in refused(*RECOMMEND)

    def test_a_setting_that_was_added_counts_too(self, refused: Callable[..., str]) -> None:
        replaced("begun/experiment.toml", "[columns]", "[columns]\nuser = 'user'")
        assert "columns.user is 'user'" in refused("run", "--resume", "begun")

    def test_data_that_has_moved_may_be_named_anew(self, here: Path, ownview: Callable[..., Outcome]) -> None:
        """Its fingerprint says whether it is the same."""
        text = Path("begun/experiment.toml").read_text().splitlines()
        (here / "moved.csv").write_bytes(Path("world.csv").read_bytes())
        moved = [f'data = "{here}/moved.csv"' if line.startswith("data =") else line for line in text]
        Path("begun/experiment.toml").write_text("\n".join(moved))
        assert ownview("run", "--resume", "begun").code == 0


class TestRounds:
    @pytest.mark.parametrize(
        "harm",
        [
            lambda lines: lines[1:],
            lambda lines: [lines[0], lines[0], *lines[2:]],
            lambda lines: [lines[0].replace('"round": 1', '"round": 7'), *lines[1:]],
            lambda lines: ["x" + lines[0][1:], *lines[1:]],
            lambda lines: [],
        ],
        ids=["first line lost", "line twice", "other number", "damaged line", "all lost"],
    )
    def test_lost_ones_come_back_from_the_checkpoint(self, harm: Callable[[list[str]], list[str]]) -> None:
        path = Path("begun/rounds.jsonl")
        before = [json.loads(line) for line in path.read_text().splitlines()]
        path.write_text("".join(line + "\n" for line in harm(path.read_text().splitlines())))
        _, about = RunFolder(Path("begun")).read_tensors("checkpoint")
        resume(Path("begun"))
        found = [json.loads(line) for line in path.read_text().splitlines()]
        assert [line["round"] for line in found] == list(range(1, ROUNDS + 1))
        assert found[: about["round"]] == before[: about["round"]], "to the last digit of the seconds"

    @pytest.mark.parametrize("kept", [0, 1, ROUNDS - 1])
    def test_a_finished_run_that_lost_some_says_so(self, kept: int, refused: Callable[..., str]) -> None:
        path = Path("done/rounds.jsonl")
        path.write_text("".join(line + "\n" for line in path.read_text().splitlines()[:kept]))
        line = refused("report", "done")
        assert f"done/rounds.jsonl: line {kept + 1} is damaged or missing; expected {ROUNDS} rounds" in line


class TestChecksums:
    @pytest.mark.parametrize(
        ("name", "arguments"),
        [
            ("done/model.safetensors", RECOMMEND),
            ("begun/checkpoint.safetensors", ("run", "--resume", "begun")),
            ("begun/best-*.safetensors", ("run", "--resume", "begun")),
            ("done/recommended.safetensors", ("report", "done")),
        ],
        ids=lambda value: value if isinstance(value, str) else "",
    )
    def test_a_flipped_bit_is_found_wherever_it_is(
        self, name: str, arguments: tuple[str, ...], refused: Callable[..., str]
    ) -> None:
        (path,) = Path().glob(name)
        name, sound = str(path), path.read_bytes()
        for place in range(len(sound) - 1, 7, -max(len(sound) // 7, 1)):
            harmed = bytearray(sound)
            harmed[place] ^= 0x10
            path.write_bytes(harmed)
            line = refused(*arguments)
            assert f"{name}: is damaged" in line or f"{name}: cannot be read" in line

    def test_a_file_without_one_is_refused(self, refused: Callable[..., str]) -> None:
        tensors, about, _ = read_tensors(Path("done/model.safetensors"))
        save_file(tensors, "done/model.safetensors", metadata={"about": json.dumps(about)})
        assert "done/model.safetensors: cannot be read: no 'checked' in it" in refused(*RECOMMEND)

    def test_every_kind_of_tensor_is_covered(self, tmp_path: Path) -> None:
        path = tmp_path / "x.safetensors"
        values = {
            "none": torch.zeros(0, 3), "one": torch.tensor(1.5), "yes": torch.tensor([True, False]),
            "half": torch.ones(2, 2, dtype=torch.bfloat16), "turned": torch.arange(6).reshape(2, 3).T,
        }  # fmt: skip
        write_tensors(path, values, {"a": 1}, {"seed": 2})
        tensors, about, experiment = read_tensors(path)
        assert (about, experiment) == ({"a": 1}, {"seed": 2})
        assert all(torch.equal(tensors[name], value) for name, value in values.items())


@pytest.mark.parametrize("name", ["model", "recommended"])
@pytest.mark.parametrize(
    "content", [b"", b"\xff" * 40, b"\x02\0\0\0\0\0\0\0{}", b"\x10\0\0\0\0\0\0\0" + b"[" * 16], ids=repr
)
def test_what_is_no_tensor_file(name: str, content: bytes, refused: Callable[..., str]) -> None:
    Path(f"done/{name}.safetensors").write_bytes(content)
    assert f"done/{name}.safetensors: cannot be read" in refused(
        *(RECOMMEND if name == "model" else ("report", "done"))
    )


def test_values_of_another_method(refused: Callable[..., str]) -> None:
    folder = RunFolder(Path("done"))
    folder.write_tensors("model", {"else": torch.zeros(3)}, {"round": 1})
    assert "done/model.safetensors: does not hold the values of this method" in refused(*RECOMMEND)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "done/users.csv: cannot be read"),
        ("user\nu1\n", "no column 'held_out'"),
        ("\0\0", "users.csv"),
        ('"', "users.csv: cannot be read"),
        ("user,held_out,HR@10,NDCG@10\nu1,i1,x,0\n", "line 2, column 'HR@10': 'x': expected a number"),
        ("user,held_out,HR@10,NDCG@10\nu1,i1,nan,0\n", "line 2, column 'HR@10'"),
        ("user,held_out,HR@10,NDCG@10\nu1,i1\n", "users.csv: cannot be read"),
        (b"\xff\xfe", "users.csv: cannot be read"),
    ],
    ids=repr,
)
def test_damaged_users(content: str | bytes, message: str, refused: Callable[..., str]) -> None:
    Path("done/users.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
    assert message in refused("report", "done")


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("provenance.json", {"data": 5}, "data is '5', expected a table"),
        ("provenance.json", {"data": {"fingerprint": [1]}}, "data.fingerprint is '[1]', expected text"),
        ("provenance.json", [[1, 2]], "the whole is '[[1, 2]]', expected a table"),
        ("result.json", {}, "method is missing"),
        ("result.json", {"test": 3}, "is missing"),
        ("result.json", [], "expected a table"),
    ],
    ids=repr,
)
def test_json_of_another_shape(name: str, value: Any, message: str, refused: Callable[..., str]) -> None:
    Path(f"done/{name}").write_text(json.dumps(value))
    line = refused(*RECOMMEND)
    assert f"done/{name}: is damaged" in line
    assert message in line


@pytest.mark.parametrize("name", ["provenance.json", "result.json"])
@pytest.mark.parametrize("text", ["[" * 100_000, '{"a": NaN}', "{", "\ufeff{}", "9" * 5000], ids=lambda text: text[:8])
def test_json_that_is_none(name: str, text: str, refused: Callable[..., str]) -> None:
    Path(f"done/{name}").write_text(text)
    assert f"done/{name}: is damaged" in refused(*RECOMMEND)
