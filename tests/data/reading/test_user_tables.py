"""What a file says of users: joined by id, kept with the data, and at home."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ownview.base.errors import DataError
from ownview.data.datasets.catalog import load
from ownview.data.reading.readers import read
from ownview.data.reading.user_tables import with_users
from ownview.runs.run import open_run
from tests.outcome import Outcome

ROWS = "user,item\n" + "".join(f"{user},{4 * k + item}\n" for k, user in enumerate("abc") for item in range(5))


def _written(folder: Path, **texts: str) -> None:
    for name, text in texts.items():
        (folder / f"{name}.csv").write_text(text)


def test_columns_are_joined_by_id_and_strangers_are_left_out(tmp_path: Path) -> None:
    _written(tmp_path, rows=ROWS, users="age,customer,city\n31,b,Rome\n52,a,\n9,zz,Bern\n")
    data = with_users(read(tmp_path / "rows.csv"), tmp_path / "users.csv")
    assert data.about_users is not None
    assert data.about_users.columns == {"age": ("52", "31", ""), "city": ("", "Rome", "")}
    assert "users.csv: 1 user not in the data, left out" in data.reading


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("age,city\n3,Rome\n", r"users\.csv: line 1: no user column; found age, city"),
        ("user,age\na,1\na,2\n", r"users\.csv: the table of users: row 2: user 'a' stands in row 1 too"),
        ("user,age\nx,1\n", r"users\.csv: the table of users names none of the users of the data, such as 'a'"),
        ("user,age,age\na,1,2\n", r"users\.csv: line 1: two columns are called 'age'"),
        ("user," + ",".join(f"c{k}" for k in range(10**6)) + "\n", r"users\.csv: line 1: 1,000,001 columns; expected"),
    ],
)
def test_what_is_wrong_is_one_line(text: str, message: str, tmp_path: Path) -> None:
    _written(tmp_path, rows=ROWS, users=text)
    with pytest.raises(DataError, match=message):
        with_users(read(tmp_path / "rows.csv"), tmp_path / "users.csv")


def test_bytes_of_no_encoding_are_one_line(tmp_path: Path) -> None:
    _written(tmp_path, rows=ROWS)
    (tmp_path / "users.csv").write_bytes(b"user,city\na,caf\x81\n")
    with pytest.raises(DataError, match=r"users\.csv: line 2: byte 0x81 .* is neither UTF-8 nor Windows-1252"):
        with_users(read(tmp_path / "rows.csv"), tmp_path / "users.csv")
    with pytest.raises(DataError, match=r"users\.csv: line 2: byte 0x81"):
        read(tmp_path / "rows.csv", titles=tmp_path / "users.csv")


@pytest.mark.parametrize("encoding", ["cp1252", "utf-16", "utf-8-sig"])
def test_other_encodings_are_understood(encoding: str, tmp_path: Path) -> None:
    _written(tmp_path, rows=ROWS)
    (tmp_path / "users.csv").write_text("user,city\na,Zürich\nb,Köln\nc,Liège\n", encoding=encoding)
    data = with_users(read(tmp_path / "rows.csv"), tmp_path / "users.csv")
    assert data.about_users is not None
    assert data.about_users.columns["city"] == ("Zürich", "Köln", "Liège")


def test_an_imported_dataset_keeps_them_and_a_method_reads_them(
    ownview: Callable[..., Outcome], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tower = Path("examples/two_tower.py").resolve()
    monkeypatch.chdir(tmp_path)
    _written(
        tmp_path, rows=ROWS, users="user,city\na,Rome\nb,Bern\nc,Rome\n",
        items="item,title\n" + "".join(f"{item},tale of kind {item % 2}x\n" for item in range(13)),
    )  # fmt: skip
    said = ("--items", "items.csv", "--users", "users.csv", "--data-dir", "data")
    assert ownview("data", "import", "rows.csv", "--name", "town", *said).code == 0
    data = load("town", data_dir=Path("data"))
    assert data.about_users is not None
    assert data.about_users.columns["city"] == ("Rome", "Bern", "Rome")
    fit = ("fit", str(tower), "--data", "town", "--data-dir", "data", "--rounds", "2", "--out", "model")
    done = ownview(*fit)
    assert done.code == 0, done.err
    assert ownview("recommend", "model", "--user", "a", "--trust").code == 0, (
        "the model's copy of the data has them too"
    )
    assert ownview("data", "import", "rows.csv", "--name", "town", "--overwrite", "--data-dir", "data").code == 0
    assert load("town", data_dir=Path("data")).about_users is None


def test_a_start_takes_them_and_what_comes_and_goes_later_keeps_them(
    ownview: Callable[..., Outcome], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A method outside the folder of work is compared inside the start's own; ratings of rows stay with them."""
    tower = Path("examples/two_tower.py").resolve()
    monkeypatch.chdir(tmp_path)
    rows = "user,item,rating\n" + "".join(f"{line},{k % 5}\n" for k, line in enumerate(ROWS.splitlines()[1:]))
    towns = "user,city\na,Rome\nb,Bern\nc,Rome\n"
    _written(
        tmp_path, rows=rows, users=towns, wrong=towns + "a,Oslo\n",
        items="item,title\n" + "".join(f"{item},tale of kind {item % 2}x\n" for item in range(13)),
    )  # fmt: skip
    start = ("start", "rows.csv", "--items", "items.csv", "--out", "all", "--method", str(tower))
    refused = ownview(*start, "--users", "wrong.csv")
    assert (refused.code, refused.err.count("\n")) == (2, 1)
    assert "wrong.csv: the table of users: row 4: user 'a' stands in row 1 too" in refused.err
    assert not Path("all").exists()
    done = ownview(*start, "--users", "users.csv")
    assert done.code == 0, done.err
    assert next(one.name for one in Path("all/comparison").iterdir()).endswith("two_tower.py")
    other = ownview(*start)
    assert other.code == 2
    assert "was begun with other facts about users" in other.err
    _written(tmp_path, more="user,item,rating\nd,3,4\na,12,1\n", newcomers="user,city\nd,Oslo\n")
    done = ownview("update", "all/model", "more.csv", "--users", "newcomers.csv", "--trust")
    assert done.code == 0, done.err
    data = open_run(Path("all/model")).data
    assert data is not None
    assert data.about_users is not None
    assert data.rating is not None
    assert data.about_users.columns["city"] == ("Rome", "Bern", "Rome", "Oslo")
    assert data.rating[data.of(0)].tolist() == [0, 1, 2, 3, 4, 1]
    assert ownview("forget", "all", "b", "--trust").code == 0
    kept = [load(Path("all/data/rows")), open_run(Path("all/model")).data]
    assert [one is not None and one.about_users and one.about_users.columns["city"] for one in kept] == [
        ("Rome", "Rome"), ("Rome", "Rome", "Oslo")
    ]  # fmt: skip
