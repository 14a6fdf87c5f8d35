"""The catalogue, the places datasets are looked for in, and loading by name or path."""

from __future__ import annotations

import gzip
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ownview.base.errors import DataError, OutputError, SettingError, UnknownNameError
from ownview.data import Interactions, load
from ownview.data.datasets.catalog import catalog, entry_of, find, min_interactions
from ownview.data.datasets.storage import places, store

NAMES = [
    *("goodbooks", "filmtrust", "ml-100k", "ml-1m", "hetrec2011", "lastfm-2k-tags", "lastfm-2k-artists"),
    *("amazon-instant-video", "amazon-beauty", "citeulike", "douban-book", "tafeng", "qb-article"),
]


pytestmark = pytest.mark.usefixtures("own_folder")  # no datasets of this machine


def put(folder: Path, name: str, rows: str = "user,item,rating,timestamp\n1,2,,\n") -> Path:
    (folder / name).mkdir(parents=True)
    path = folder / name / "interactions.csv.gz"
    path.write_bytes(gzip.compress(rows.encode()))
    return path


def test_catalogue_is_complete_and_consistent() -> None:
    assert list(catalog()) == NAMES
    for entry in catalog().values():
        assert entry.embedded + bool(entry.urls) + bool(entry.by_hand) == 1, f"{entry.name}: one way to get it"
        assert entry.sha256 is None or re.fullmatch("[0-9a-f]{64}", entry.sha256)
        assert all(url.startswith("https://") for url in entry.urls)
        assert all(url.endswith(".zip") == (entry.member is not None) for url in entry.urls)
        assert entry.terms
        assert entry.citation
        assert len(entry.terms) <= 31, f"{entry.name}: terms do not fit the list"
        if not entry.embedded:
            assert entry.counts[0].min_interactions == entry.min_interactions


def test_papers_filter() -> None:
    assert {name: min_interactions(name) for name in NAMES if min_interactions(name) != 10} == {
        "goodbooks": None,
        "lastfm-2k-tags": 5,
        "amazon-instant-video": 5,
        "amazon-beauty": 5,
        "douban-book": 5,
    }
    assert min_interactions("my-shop") is None


def test_goodbooks_comes_with_the_package() -> None:
    data = load("goodbooks")
    assert (data.name, data.num_users, data.num_items, len(data)) == ("goodbooks", 1_200, 2_000, 92_756)
    assert data.titles is not None
    assert "The Hunger Games (The Hunger Games, #1) — Suzanne Collins" in data.titles
    assert "Harry Potter and the Sorcerer's Stone (Harry Potter, #1) — J.K. Rowling" in data.titles


def test_search_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OWNVIEW_DATA", str(tmp_path / "environment"))
    assert places(tmp_path / "given")[:3] == [
        tmp_path / "given",
        tmp_path / "environment",
        tmp_path / "cache" / "ownview",
    ]
    embedded = find("goodbooks", tmp_path / "given")
    for folder in (tmp_path / "cache" / "ownview", tmp_path / "environment", tmp_path / "given"):
        before = find("goodbooks", tmp_path / "given")
        path = put(folder, "goodbooks")
        assert find("goodbooks", tmp_path / "given") == path != before
    assert embedded is not None
    assert find("goodbooks", None) == tmp_path / "environment" / "goodbooks" / "interactions.csv.gz"


@pytest.mark.parametrize("name", ["../secret", "/etc", "", ".", ".."])
def test_names_do_not_leave_the_places(tmp_path: Path, name: str) -> None:
    put(tmp_path, "secret")
    (tmp_path / "data").mkdir()
    assert find(name, tmp_path / "data") is None


def test_a_data_dir_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"absent: no such folder of datasets \(--data-dir\)"):
        load("goodbooks", data_dir=tmp_path / "absent")


def test_absent_dataset_says_how_to_get_it(tmp_path: Path) -> None:
    (tmp_path / "given").mkdir()
    with pytest.raises(DataError, match=r"'ml-1m' is not here \(looked in .*given, .*\); .*ownview data fetch ml-1m"):
        load("ml-1m", data_dir=tmp_path / "given")
    with pytest.raises(DataError, match=r"https://github\.com/.*ownview data import FILE --name qb-article"):
        load("qb-article")


def test_unknown_name_tells_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match=r"unknown dataset 'ml100k'; did you mean 'ml-100k'\?"):
        load("ml100k")
    with pytest.raises(UnknownNameError, match=r"unknown dataset 'filmtrus'; did you mean 'filmtrust'\?"):
        entry_of("filmtrus")
    put(tmp_path, "my-shop")
    with pytest.raises(UnknownNameError, match=r"did you mean 'my-shop'\?"):
        load("my-shp", data_dir=tmp_path)


def test_paths_are_read_as_files(tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text("who,item\n1,2\n")
    assert load(tmp_path / "mine.csv", columns={"user": "who"}).name == "mine"
    assert load(str(tmp_path / "mine.csv"), columns={"user": "who"}).num_users == 1
    put(tmp_path, "shop")
    assert load(str(tmp_path / "shop")).name == "shop"
    with pytest.raises(DataError, match=r"mine\.csb: no such file; did you mean 'mine\.csv'\?"):
        load(str(tmp_path / "mine.csb"))


def test_only_the_catalogue_allows_times_before_1970(tmp_path: Path) -> None:
    rows = "user,item,rating,timestamp\n1,2,1,-5\n"
    put(tmp_path, "lastfm-2k-tags", rows)
    put(tmp_path, "my-shop", rows)
    data = load("lastfm-2k-tags", data_dir=tmp_path)
    assert data.timestamp is not None
    assert data.timestamp.tolist() == [-5]
    with pytest.raises(DataError, match="line 2, column 'timestamp'"):
        load("my-shop", data_dir=tmp_path)


def sample(titles: dict[str, str] | None = None) -> Interactions:
    return Interactions.from_rows(
        "sample",
        np.array(["b", "a", "b"], dtype=object),
        np.array(["007", 'say "x", y', "007"], dtype=object),
        rating=np.array([1.0, 2.5, 3.0]),
        timestamp=np.array([3, 1, 2], dtype=np.int64),
        titles=titles,
    )


def test_stored_data_comes_back_equal_and_byte_for_byte(tmp_path: Path) -> None:
    titles = {"007": "Bond — Fleming"}
    first = store(sample(titles), "one", tmp_path, {"file": "a.csv"})
    second = store(sample(titles), "two", tmp_path, {"file": "a.csv"})
    assert first.read_bytes() == second.read_bytes()
    back = load("one", data_dir=tmp_path)
    assert back.fingerprint() == sample().fingerprint()
    assert back.titles == ("Bond — Fleming", 'say "x", y')
    assert {path.name for path in first.parent.iterdir()} == {
        "interactions.csv.gz",
        "items.csv.gz",
        "provenance.json",
    }


def test_stored_rows_have_the_canonical_form(tmp_path: Path) -> None:
    bare = Interactions.from_rows("bare", np.array([2, 1, 2]), np.array([5, 5, 4]), rating=np.array([5.0, 1.0, 2.0]))
    content = store(bare, "bare", tmp_path, {}).read_bytes()
    assert gzip.decompress(content).decode() == "user,item,rating,timestamp\n2,5,5,\n1,5,1,\n2,4,2,\n"
    assert content[4:8] == b"\0\0\0\0", "no time in the gzip header"


def test_storing_does_not_overwrite_unasked(tmp_path: Path) -> None:
    store(sample({"007": "Bond"}), "mine", tmp_path, {})
    with pytest.raises(OutputError, match=r"mine/interactions\.csv\.gz: is there already; .*--overwrite"):
        store(sample(), "mine", tmp_path, {})
    store(sample(), "mine", tmp_path, {}, overwrite=True)
    assert load("mine", data_dir=tmp_path).titles is None, "titles of the old data are gone"
    with pytest.raises(SettingError, match=r"name: found '\.\./mine'"):
        store(sample(), "../mine", tmp_path, {})


def test_a_failed_write_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store(sample(), "mine", tmp_path, {})
    before = load("mine", data_dir=tmp_path).fingerprint()

    def full(self: Path, target: Path) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OutputError, match=r"mine/items\.csv\.gz: cannot be written: No space left"):
        store(sample({"007": "Bond"}), "mine", tmp_path, {}, overwrite=True)
    assert sorted(path.name for path in (tmp_path / "mine").iterdir()) == [
        "interactions.csv.gz",
        "provenance.json",
    ]
    assert load("mine", data_dir=tmp_path).fingerprint() == before


def test_importing_the_data_package_does_not_import_polars() -> None:
    code = "import sys, ownview.data, ownview.data.datasets.fetch, ownview.cli.data; sys.exit('polars' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
