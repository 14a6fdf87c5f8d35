"""Downloads against a real HTTP server that can be told to misbehave."""

from __future__ import annotations

import gzip
import hashlib
import http.server
import io
import json
import stat
import threading
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ownview.base.errors import DataError, DownloadError
from ownview.data import load
from ownview.data.datasets.catalog import Entry, entry_of
from ownview.data.datasets.download import download
from ownview.data.datasets.fetch import fetch
from ownview.data.datasets.unpack import unpack


class Server(http.server.ThreadingHTTPServer):
    """Serves `content` at any path but /absent."""

    content = b""
    etag: str | None = '"first"'
    ranges = True
    cut_at: int | None = None
    ignores_if_range = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: list[dict[str, str]] = []

    def url(self, name: str) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/{name}"


class Handler(http.server.BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        served = self.server
        served.asked.append(dict(self.headers))
        if self.path == "/absent":
            self.send_error(404)
            return
        start = self._start()
        if start >= len(served.content) > 0:
            self.send_error(416)
            return
        body = served.content[start:]
        self.send_response(206 if start else 200)
        if start:
            end = len(served.content)
            self.send_header("Content-Range", f"bytes {start}-{end - 1}/{end}")
        self.send_header("Content-Length", str(len(body)))
        if served.etag is not None:
            self.send_header("ETag", served.etag)
        self.end_headers()
        self.wfile.write(body if served.cut_at is None else body[: max(0, served.cut_at - start)])

    def _start(self) -> int:
        served, asked = self.server, self.headers
        if not served.ranges or "Range" not in asked:
            return 0
        if "If-Range" in asked and asked["If-Range"] != served.etag and not served.ignores_if_range:
            return 0
        return int(asked["Range"].removeprefix("bytes=").rstrip("-"))

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name in the base class
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def zipped(files: dict[str, bytes]) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return content.getvalue()


RATINGS = b"9::30::5::100\n8::10::1::90\n9::20::2.5::80\n"


def entry_for(server: Server, **changes: object) -> Entry:
    url = server.url("set.zip")
    plain = Entry("set", "Set", "https://example.org", "none", "none", urls=(url,), member="set/ratings.dat")
    return replace(plain, **changes)  # type: ignore[arg-type]


def test_good_download_is_verified_converted_and_kept(server: Server, tmp_path: Path) -> None:
    server.content = zipped({"set/README": b"hello", "set/ratings.dat": RATINGS})
    digest = hashlib.sha256(server.content).hexdigest()
    seen: list[tuple[int, int | None]] = []
    entry = entry_for(server, sha256=digest)
    path = fetch(entry, tmp_path, progress=lambda done, total: seen.append((done, total)))
    assert path == tmp_path / "set" / "interactions.csv.gz"
    text = gzip.decompress(path.read_bytes()).decode()
    assert text == "user,item,rating,timestamp\n9,30,5.0,100\n8,10,1.0,90\n9,20,2.5,80\n"
    assert seen[0] == (0, len(server.content))
    assert seen[-1] == (len(server.content), len(server.content))
    provenance = json.loads((tmp_path / "set" / "provenance.json").read_text())
    assert (provenance["sha256"], provenance["url"]) == (digest, entry.urls[0])
    assert provenance["bytes"] == len(server.content)
    assert sorted(p.name for p in path.parent.iterdir()) == ["interactions.csv.gz", "provenance.json"]
    assert fetch(entry, tmp_path) == path
    assert len(server.asked) == 1, "the second call asks nobody"
    assert load("set", data_dir=tmp_path).users.tolist() == [9, 8]


def test_unknown_checksum_is_recorded(server: Server, tmp_path: Path) -> None:
    server.content = zipped({"ratings.dat": RATINGS})
    fetch(entry_for(server), tmp_path)
    provenance = json.loads((tmp_path / "set" / "provenance.json").read_text())
    assert provenance["sha256"] == hashlib.sha256(server.content).hexdigest()
    assert provenance["sha256_expected"] is None


def test_plain_file_columns_and_milliseconds(server: Server, tmp_path: Path) -> None:
    server.content = b"userID\tmovieID\trating\ttimestamp\n75\t3\t1\t1162160236999\n"
    entry = replace(entry_of("hetrec2011"), urls=(server.url("ratings.dat"),), member=None)
    path = fetch(entry, tmp_path)
    assert gzip.decompress(path.read_bytes()).decode().splitlines()[1] == "75,3,1,1162160236"


def test_tag_assignments_are_dated_by_their_parts(server: Server, tmp_path: Path) -> None:
    header = b"userID\tartistID\ttagID\tday\tmonth\tyear\n"
    server.content = zipped({"user_taggedartists.dat": header + b"2\t52\t13\t1\t4\t2009\n2\t52\t15\t1\t1\t1956\n"})
    entry = replace(entry_of("lastfm-2k-tags"), urls=(server.url("a.zip"),), sha256=None)
    path = fetch(entry, tmp_path)
    assert gzip.decompress(path.read_bytes()).decode().splitlines()[1:] == [
        "2,52,,1238544000",
        "2,52,,-441849600",
    ]


def test_wrong_checksum_shows_both_and_removes_the_file(server: Server, tmp_path: Path) -> None:
    server.content = zipped({"set/ratings.dat": RATINGS})
    found = hashlib.sha256(server.content).hexdigest()
    with pytest.raises(DownloadError, match=f"wrong SHA-256 {found}; expected {'0' * 64}"):
        fetch(entry_for(server, sha256="0" * 64), tmp_path)
    assert list((tmp_path / "set").iterdir()) == []


def test_absent_and_unreachable(server: Server, tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match=r"/absent: not found \(HTTP 404\)"):
        fetch(entry_for(server, urls=(server.url("absent"),)), tmp_path)
    with pytest.raises(DownloadError, match="cannot be reached"):
        download("http://127.0.0.1:9/a.zip", tmp_path / "a.zip")
    with pytest.raises(DownloadError, match="expected an http or https address"):
        download("file:///etc/passwd", tmp_path / "a.zip")


def test_second_address_is_tried(server: Server, tmp_path: Path) -> None:
    server.content = zipped({"set/ratings.dat": RATINGS})
    fetch(entry_for(server, urls=(server.url("absent"), server.url("set.zip"))), tmp_path)
    assert len(server.asked) == 2


def cut(server: Server, target: Path, at: int) -> None:
    """Break a download off after so many bytes."""
    server.cut_at = at
    with pytest.raises(DownloadError, match=f"truncated, {at:,} of {len(server.content):,} bytes|broke off"):
        download(server.url("a.bin"), target)
    server.cut_at = None
    assert not target.exists()
    assert target.with_name("a.bin.part").stat().st_size == at


def test_broken_download_is_resumed(server: Server, tmp_path: Path) -> None:
    server.content = bytes(range(256)) * 20
    target = tmp_path / "a.bin"
    cut(server, target, 1000)
    seen: list[int] = []
    download(server.url("a.bin"), target, progress=lambda done, total: seen.append(done))
    assert target.read_bytes() == server.content
    assert server.asked[-1]["Range"] == "bytes=1000-"
    assert server.asked[-1]["If-Range"] == '"first"'
    assert seen[0] == 1000
    assert [path.name for path in tmp_path.iterdir()] == ["a.bin"]


def test_server_without_ranges_starts_again(server: Server, tmp_path: Path) -> None:
    server.content = bytes(range(256)) * 20
    target = tmp_path / "a.bin"
    cut(server, target, 1000)
    server.ranges = False
    download(server.url("a.bin"), target)
    assert target.read_bytes() == server.content


@pytest.mark.parametrize("ignores_if_range", [False, True])
@pytest.mark.parametrize("length", [500, 5120, 9000])
def test_two_versions_are_never_glued(server: Server, tmp_path: Path, length: int, ignores_if_range: bool) -> None:
    server.content = b"a" * 5120
    target = tmp_path / "a.bin"
    cut(server, target, 1000)
    server.content, server.etag, server.ignores_if_range = b"b" * length, '"second"', ignores_if_range
    download(server.url("a.bin"), target)
    assert target.read_bytes() == server.content


def test_without_tags_the_length_tells_versions_apart(server: Server, tmp_path: Path) -> None:
    server.content, server.etag = b"a" * 5120, None
    target = tmp_path / "a.bin"
    cut(server, target, 1000)
    server.content = b"b" * 6000
    download(server.url("a.bin"), target)
    assert target.read_bytes() == server.content


def test_truncated_dataset_leaves_no_dataset(server: Server, tmp_path: Path) -> None:
    server.content = zipped({"set/ratings.dat": RATINGS})
    server.cut_at = 40
    with pytest.raises(DownloadError, match=r"truncated|broke off"):
        fetch(entry_for(server), tmp_path)
    with pytest.raises(DataError, match="no such file"):
        load(str(tmp_path / "set" / "interactions.csv.gz"))
    server.cut_at = None
    assert fetch(entry_for(server), tmp_path).is_file()


def link_archive() -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        info = zipfile.ZipInfo("set/ratings.dat")
        info.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(info, "/etc/passwd")
    return content.getvalue()


BAD_ARCHIVES = {
    "climbing": (zipped({"../evil": b"x", "set/ratings.dat": RATINGS}), r"unsafe name '\.\./evil'"),
    "absolute": (zipped({"/evil": b"x", "set/ratings.dat": RATINGS}), "unsafe name '/evil'"),
    "windows": (zipped({"..\\evil": b"x", "set/ratings.dat": RATINGS}), "unsafe name"),
    "drive": (zipped({"C:/evil": b"x", "set/ratings.dat": RATINGS}), "unsafe name 'C:/evil'"),
    "link": (link_archive(), "'set/ratings.dat' is a link"),
    "no zip": (b"<html>moved</html>", "not a sound zip archive"),
    "cut": (zipped({"set/ratings.dat": RATINGS * 50})[:-30], "not a sound zip archive"),
    "without member": (
        zipped({"set/rating.dat": RATINGS}),
        r"no file 'set/ratings\.dat' .*did you mean 'set/rating",
    ),
}


@pytest.mark.parametrize("case", BAD_ARCHIVES)
def test_bad_archives_are_refused_whole(server: Server, tmp_path: Path, case: str) -> None:
    server.content, message = BAD_ARCHIVES[case]
    with pytest.raises(DownloadError, match=message):
        fetch(entry_for(server), tmp_path / "data")
    assert list((tmp_path / "data" / "set").iterdir()) == [], "the bad archive is gone, the next try is fresh"
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


def test_a_damaged_member_is_noticed(tmp_path: Path) -> None:
    archive = tmp_path / "a.zip"
    content = bytearray(zipped({"ratings.dat": bytes(range(256)) * 40}))
    content[60] ^= 0xFF
    archive.write_bytes(bytes(content))
    with pytest.raises(DownloadError, match=r"a\.zip: not a sound zip archive"):
        unpack(archive, "ratings.dat", tmp_path)


def test_unpacked_size_is_bounded(tmp_path: Path) -> None:
    archive = tmp_path / "bomb.zip"
    archive.write_bytes(zipped({"ratings.dat": b"\0" * 5_000_000}))
    with pytest.raises(DownloadError, match="unpacks to over 1,000,000 bytes"):
        unpack(archive, "ratings.dat", tmp_path, largest=1_000_000)


def test_download_put_there_by_hand_is_used_and_left(server: Server, tmp_path: Path) -> None:
    archive = tmp_path / "set" / "set.zip"
    archive.parent.mkdir()
    archive.write_bytes(zipped({"set/ratings.dat": RATINGS}))
    with pytest.raises(DownloadError, match=r"set\.zip: wrong SHA-256 .*; expected 000"):
        fetch(entry_for(server, sha256="0" * 64), tmp_path)
    fetch(entry_for(server), tmp_path)
    assert archive.is_file()
    assert server.asked == []


def test_dataset_without_address_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(
        DownloadError, match=r"no direct download; see https://.*ownview data import FILE --name qb-art"
    ):
        fetch(entry_of("qb-article"), tmp_path)


def test_embedded_dataset_needs_no_download(tmp_path: Path) -> None:
    assert fetch(entry_of("goodbooks"), tmp_path).is_file()
    assert list(tmp_path.iterdir()) == []
