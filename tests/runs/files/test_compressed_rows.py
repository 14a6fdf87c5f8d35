"""Matrices of few numbers lie in compressed rows, and come back to the bit; damaged ones end in a line."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors import safe_open

from ownview.base.errors import OutputError
from ownview.runs.files.compressed_rows import compressed, whole
from ownview.runs.files.tensor_files import read_tensors, write_tensors


def _thin(kind: torch.dtype, side: int = 1200) -> torch.Tensor:
    draw = torch.Generator().manual_seed(0)
    value = torch.rand((side, side), generator=draw).to(kind)
    value[torch.rand((side, side), generator=draw) > 0.05] = 0
    value[7] = 0
    value[side - 1, side - 1], value[3, 4] = -0.0, torch.inf
    return value


@pytest.mark.parametrize("kind", [torch.float16, torch.float32, torch.float64])
def test_what_is_read_is_what_was_written_to_the_bit_and_small(tmp_path: Path, kind: torch.dtype) -> None:
    value, dense, none = _thin(kind), torch.ones(600, 600), torch.zeros(1200, 1200, dtype=kind)
    file = tmp_path / "model.safetensors"
    write_tensors(file, {"thin": value, "dense": dense, "none": none, "short": torch.zeros(3, 3)}, {"round": 1}, {})
    tensors, about, _ = read_tensors(file)
    assert about == {"round": 1}
    assert sorted(tensors) == ["dense", "none", "short", "thin"]
    assert bytes(tensors["thin"].numpy().data) == bytes(value.numpy().data), "also the sign of -0.0"
    assert torch.equal(tensors["dense"], dense)
    assert torch.equal(tensors["none"], none)
    assert file.stat().st_size < dense.nbytes + value.nbytes / 4


@pytest.mark.parametrize("number", [0, 1, 3])
def test_a_number_that_stands_for_several_is_written(tmp_path: Path, number: int) -> None:
    """An expanded tensor of one number counts as contiguous and has a stride of 0."""
    file, value = tmp_path / "model.safetensors", torch.tensor(2.5).expand(number)
    write_tensors(file, {"one": value}, {}, {})
    assert torch.equal(read_tensors(file)[0]["one"], value)


def test_dense_and_small_matrices_are_written_as_they_are(tmp_path: Path) -> None:
    file = tmp_path / "model.safetensors"
    write_tensors(file, {"one": torch.ones(600, 600), "two": torch.zeros(5, 5)}, {}, {})
    with safe_open(file, framework="pt") as stored:
        assert sorted(stored.keys()) == ["one", "two"]


@pytest.mark.parametrize(
    ("part", "change"),
    [
        ("columns", lambda one: one + 1200),
        ("columns", lambda one: one - 1200),
        ("offsets", lambda one: one + 1),
        ("offsets", lambda one: one.flip(0)),
        ("offsets", lambda one: one[:-1]),
        ("values", lambda one: one[:-1]),
    ],
)
def test_rows_that_do_not_fit_are_refused(part: str, change: object) -> None:
    assert callable(change)
    tensors, shapes = compressed({"thin": _thin(torch.float32)})
    with pytest.raises(ValueError, match="thin: compressed rows that do not fit 1200 x 1200"):
        whole({**tensors, f"thin.{part}": change(tensors[f"thin.{part}"])}, shapes)


@pytest.mark.parametrize("shape", [[10**8, 10**8], [1200], [-1200, 1200], "1200", [1200, 1199]])
def test_a_file_whose_shapes_are_wrong_ends_in_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shape: object
) -> None:
    file = tmp_path / "model.safetensors"

    def lying(tensors: object) -> tuple[object, object]:
        made, _ = compressed(tensors)  # type: ignore[arg-type]
        return made, {"thin": shape}

    monkeypatch.setattr("ownview.runs.files.tensor_files.compressed", lying)
    write_tensors(file, {"thin": _thin(torch.float32)}, {}, {})
    with pytest.raises(OutputError, match=r"model\.safetensors: cannot be read: "):
        read_tensors(file)
