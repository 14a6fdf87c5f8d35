"""`ownview data` as a person types it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from ownview.base.errors import DataError, DownloadError, OutputError, SettingError, UnknownNameError
from ownview.cli.data import app
from ownview.data import load


@pytest.fixture(autouse=True)
def _narrow(own_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    path = tmp_path / "shop.csv"
    path.write_text("who,item,stars\nann,7,5\nann,8,4\nbob,7,1\n")
    return path


def test_list_says_where_each_dataset_is(tmp_path: Path, shop: Path) -> None:
    assert run("import", shop, "--name", "my-shop", "--columns", "user=who", "--data-dir", tmp_path).exit_code == 0
    result = run("ls", "--data-dir", tmp_path)
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert "  comes with Ownview" in lines
    assert "  not here: ownview data fetch ml-1m" in lines
    assert "  not here: see https://github.com/yuangh-x/2022-NIPS-Tenrec" in lines
    assert f"  {tmp_path / 'my-shop'}" in lines
    assert any(line.split()[:4] == ["ml-1m", "6,040", "3,706", "1,000,209"] for line in lines)
    assert all(len(line) <= 80 for line in lines if not line.startswith("  "))


def test_list_as_json_is_one_object() -> None:
    listed = json.loads(run("ls", "--json").stdout)["datasets"]
    by_name = {row["name"]: row for row in listed}
    assert by_name["ml-100k"]["rows"] == 100_000
    assert by_name["ml-100k"]["path"] is None
    assert by_name["goodbooks"]["path"].endswith("interactions.csv.gz")


def test_describe_in_words_and_in_json(shop: Path) -> None:
    words = run("describe", "goodbooks")
    assert words.exit_code == 0
    assert "1,200, 2,000, 92,756" in words.stdout
    assert all(len(line) <= 80 for line in words.stdout.splitlines())
    found = json.loads(run("describe", shop, "--columns", "user=who", "--json").stdout)
    assert (found["users"], found["items"], found["rows"], found["users_under_3"]) == (2, 2, 3, 2)
    assert found["rating_range"] == [1.0, 5.0]
    assert found["times"]["kind"] == "absent"


def test_import_keeps_data_titles_and_provenance(tmp_path: Path, shop: Path) -> None:
    titles = tmp_path / "titles.csv"
    titles.write_text("item,title\n7,Tea\n")
    command = ("import", shop, "--name", "my-shop", "--columns", "user=who", "--data-dir", tmp_path / "data")
    result = run(*command, "--titles", titles)
    assert result.exit_code == 0
    assert "my-shop: 2 users, 2 items, 3 rows" in result.stdout
    data = load("my-shop", data_dir=tmp_path / "data")
    assert data.titles == ("Tea", "8")
    assert data.users.tolist() == ["ann", "bob"]
    provenance = json.loads((tmp_path / "data" / "my-shop" / "provenance.json").read_text())
    assert provenance["file"] == "shop.csv"
    assert isinstance(run(*command).exception, OutputError)
    assert run(*command, "--overwrite").exit_code == 0
    assert load("my-shop", data_dir=tmp_path / "data").titles is None


def test_environment_names_the_folder(tmp_path: Path, shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OWNVIEW_DATA", str(tmp_path / "environment"))
    assert run("import", shop, "--name", "my-shop", "--columns", "user=who").exit_code == 0
    assert (tmp_path / "environment" / "my-shop" / "interactions.csv.gz").is_file()
    assert run("describe", "my-shop").exit_code == 0


def test_fetch_of_what_is_here_prints_its_path() -> None:
    result = run("fetch", "goodbooks")
    assert result.exit_code == 0
    assert result.stdout.strip().endswith("interactions.csv.gz")


def test_errors_reach_the_caller_untouched(tmp_path: Path, shop: Path) -> None:
    for arguments, kind in (
        (("describe", "ml-1m"), DataError),
        (("describe", "ml1m"), UnknownNameError),
        (("describe", tmp_path / "none.csv"), DataError),
        (("describe", shop), DataError),
        (("describe", shop, "--columns", "who"), SettingError),
        (("fetch", "ml1m"), UnknownNameError),
        (("fetch", "tafeng"), DownloadError),
        (("import", shop, "--name", "../up", "--columns", "user=who", "--data-dir", tmp_path), SettingError),
    ):
        result = run(*arguments)
        assert isinstance(result.exception, kind), arguments
        assert result.stdout == "", "nothing but the error"
