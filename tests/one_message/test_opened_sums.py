"""What reads a server's folder beside the server, and what must not be taken for nothing opened yet."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("cryptography.hazmat.primitives.hpke")

from ownview.base import lock
from ownview.base.errors import DataError, OutputError
from ownview.base.lock import sole_worker
from ownview.cli.devices.share_server import command
from ownview.cli.devices.shares import total
from ownview.one_message.envelope import Receipt
from ownview.one_message.numbers import signed, summand
from ownview.one_message.opened_sums import JOURNAL, OpenedSums
from ownview.one_message.store import ShareStore
from tests.one_message.store_pairs import GROUPING, StorePair

ITEMS, FEWEST = 6, 3


@pytest.fixture
def pair(tmp_path: Path) -> StorePair:
    made = StorePair(tmp_path, ITEMS, fewest=FEWEST)
    for _ in range(FEWEST):
        made.send(summand(made.terms, [1, 2]), Receipt.new())
    assert made.open() == FEWEST
    (tmp_path / "agreement.json").write_bytes(made.terms.content)
    return made


def test_reading_beside_a_server_takes_nothing_away_that_it_is_writing(pair: StorePair, tmp_path: Path) -> None:
    """A message whose row is not written yet, and the files of the next generation."""
    begun = [tmp_path / "b" / name for name in (f"waiting/{bytes(16).hex()}", "share.99.u4", "total.99.i64")]
    for path in begun:
        path.write_bytes(b"not finished")
    total(tmp_path / "agreement.json", tmp_path / "b", tmp_path / "sums.i64")
    assert all(path.is_file() for path in begun)
    read = np.fromfile(tmp_path / "sums.i64", dtype="<i8")
    assert np.array_equal(read, FEWEST * signed(summand(pair.terms, [1, 2])))


def test_a_folder_without_shares_is_refused_and_none_is_made(pair: StorePair, tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="holds no shares"):
        total(tmp_path / "agreement.json", tmp_path / "c", tmp_path / "sums.i64")
    assert not (tmp_path / "c").exists()
    with pytest.raises(DataError, match="or of the other server"):
        OpenedSums(tmp_path / "a", pair.terms, "b")


@pytest.mark.parametrize("kind", ["total.*.i64", "share.*.u4"])
def test_a_lost_file_of_sums_is_no_sum_of_nothing(pair: StorePair, tmp_path: Path, kind: str) -> None:
    (path,) = (tmp_path / "b").glob(kind)
    path.unlink()
    b = ShareStore(tmp_path / "b", pair.terms, "b", GROUPING)
    pair.stores["b"] = b
    for _ in range(FEWEST):
        pair.send(summand(pair.terms, [1, 2]), Receipt.new())
    with pytest.raises(DataError, match="bring a sound copy back"):
        pair.open()
    b.close()


@pytest.mark.parametrize("content", [b"", b"no journal at all " * 100])
def test_a_journal_that_is_empty_or_damaged_is_refused_in_a_line(
    pair: StorePair, tmp_path: Path, content: bytes
) -> None:
    for store in pair.stores.values():
        store.close()
    (tmp_path / "b" / JOURNAL).write_bytes(content)
    with pytest.raises(
        DataError, match=r"journal.sqlite: cannot be read as a journal of shares: .*; bring a sound"
    ) as error:
        total(tmp_path / "agreement.json", tmp_path / "b", tmp_path / "sums.i64")
    assert "\n" not in str(error.value)


def test_a_second_server_on_a_folder_is_refused(
    pair: StorePair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock, "_PATIENCE", 0.0)
    (tmp_path / "b.key").write_bytes(pair.keys["b"].private_bytes_raw())
    (tmp_path / "peer.key").write_bytes(GROUPING)
    assert json.loads(pair.terms.content)["fewest"] == FEWEST
    with sole_worker(tmp_path / "b"), pytest.raises(OutputError, match="another process is at work there"):
        command(
            tmp_path / "agreement.json", "b", tmp_path / "b", tmp_path / "b.key", tmp_path / "peer.key", "127.0.0.1", 0
        )
