"""Files, names and numbers that people give, or are given: each ends in one line that says what to do."""

from __future__ import annotations

import gzip
import io
import os
import resource
import stat
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from ownview.base.errors import DataError, DownloadError, OutputError
from ownview.base.files import append_line, write_text
from ownview.data.datasets.unpack import unpack
from ownview.data.reading.readers import read
from ownview.runs.run import open_run
from tests.apart import PATIENCE
from tests.outcome import Outcome

DEEP = 100_000
NEEDS_RIGHTS = pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")


def test_so_many_recommendations_that_nobody_has_them(ownview: Callable[..., Outcome]) -> None:
    outcome = ownview("recommend", "done", "--user", "u1", "-k", str(10**12))
    assert outcome.code == 0
    assert len(open_run(Path("done")).recommend("u1", k=10**12)) < 60


def test_bpr_that_diverges(refused: Callable[..., str]) -> None:
    pytest.importorskip("implicit")
    line = refused("run", "bpr", "--data", "world.csv", "--set", "learning_rate=1e6", "--out", "r", code=3)
    assert "bpr diverged" in line
    assert "learning_rate" in line


@pytest.mark.parametrize("column", ["²", "9" * 5000, "٣", "-1", "1e3"])
def test_a_column_number_that_is_none(column: str, refused: Callable[..., str]) -> None:
    given = ("--data", "world.csv", "--columns", f"user={column},item=1")
    assert "no column" in refused("run", "popularity", *given)


@pytest.mark.parametrize(
    "arguments",
    [("run", "fedmf", "--protocol", "d.toml"), ("run", "--config", "d.toml"), ("bench", "d.toml"), ("audit", "d.toml")],
    ids=" ".join,
)
def test_a_folder_where_a_file_is_expected(arguments: tuple[str, ...], refused: Callable[..., str]) -> None:
    Path("d.toml").mkdir()
    line = refused(*arguments)
    assert "d.toml: " in line
    assert "irectory" in line or "folder" in line


@pytest.mark.parametrize("text", ["a = " + "[" * DEEP, "a = " + "{a=" * DEEP, "a = " + "9" * 5000], ids=lambda t: t[:8])
@pytest.mark.parametrize(
    "arguments",
    [("run", "--config", "x.toml"), ("run", "fedmf", "--protocol", "x.toml"), ("bench", "x.toml")],
    ids=" ".join,
)
def test_toml_that_is_nested_without_end(text: str, arguments: tuple[str, ...], refused: Callable[..., str]) -> None:
    Path("x.toml").write_text(text)
    assert "x.toml: not TOML" in refused(*arguments)


@pytest.mark.parametrize("memory", ["9" * 400, "9" * 400 + "GB", "1." + "9" * 400 + "GB", "1e400", "nan", "inf", "-1"])
def test_memory_beyond_all_bounds(memory: str, refused: Callable[..., str]) -> None:
    assert "expected a size such as 4GB" in refused("run", "fedmf", "--data", "world.csv", "--memory", memory)


LONG, STRANGE = "n" * 300, os.fsdecode(b"caf\xe9")


@pytest.mark.parametrize("name", [LONG, STRANGE, f"{LONG}.csv", f"{STRANGE}.csv", f"x/{LONG}"], ids=ascii)
@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "popularity", "--data", "{}"),
        ("run", "{}"),
        ("run", "{}.py"),
        ("run", "popularity", "--data", "world.csv", "--protocol", "{}"),
        ("run", "popularity", "--data", "world.csv", "--protocol", "{}.toml"),
        ("run", "--config", "{}"),
        ("run", "--resume", "{}"),
        ("run", "popularity", "--data", "world.csv", "--data-dir", "{}"),
        ("run", "popularity", "--data", "world.csv", "--columns", "user={},item=item"),
        ("run", "fedmf", "--data", "world.csv", "--watch", "{}"),
        ("run", "fedmf", "--data", "world.csv", "--plugin", "{}"),
        ("run", "fedmf", "--data", "world.csv", "--preset", "{}"),
        ("run", "fedmf", "--data", "world.csv", "--engine", "{}"),
        ("recommend", "{}", "--user", "u1"),
        ("recommend", "done", "--user", "{}"),
        ("report", "{}"),
        ("watch", "{}", "--once"),
        ("bench", "{}.toml"),
        ("data", "describe", "{}"),
        ("data", "import", "{}", "--name", "x"),
        ("data", "import", "world.csv", "--name", "{}"),
        ("data", "import", "world.csv", "--name", "x", "--titles", "{}"),
    ],
    ids=" ".join,
)
def test_names_that_are_too_long_or_not_text(
    name: str, arguments: tuple[str, ...], refused: Callable[..., str]
) -> None:
    refused(*(one.format(name) for one in arguments))


def test_a_run_folder_whose_name_is_not_text_is_refused_before_anything_is_trained(refused: Callable[..., str]) -> None:
    assert "caf\\udce9: the name is not UTF-8" in refused("run", "popularity", "--data", "world.csv", "--out", STRANGE)
    assert not Path(STRANGE).exists()


@pytest.mark.parametrize("name", ["method", "data", "inactive"])
def test_a_nul_character_in_a_file_of_settings(name: str, refused: Callable[..., str]) -> None:
    values = {"method": "fedmf", "data": "world.csv", name: "a\\u0000b"}
    Path("x.toml").write_text("".join(f'{key} = "{value}"\n' for key, value in values.items()))
    assert f"setting {name}='a\\x00b': holds a NUL character" in refused("run", "--config", "x.toml")


def test_an_import_does_not_take_the_name_of_a_dataset_that_is_known(refused: Callable[..., str]) -> None:
    assert "comes with Ownview" in refused("data", "import", "world.csv", "--name", "goodbooks")
    assert "ownview data fetch ml-100k" in refused("data", "import", "world.csv", "--name", "ml-100k")
    assert not Path("cache").exists()


@pytest.mark.parametrize("method", ["mf", "lightgcn", "centrap", "fedmf"])
def test_a_user_is_called_by_the_name_it_has(method: str, refused: Callable[..., str]) -> None:
    rows = [f"everything,i{item},3,{item}" for item in range(12)]
    rows += [f"u{user},i{item},3,{item}" for user in range(6) for item in range(user, user + 5)]
    Path("full.csv").write_text("\n".join(["user,item,rating,timestamp", *rows]) + "\n")
    protocol = "negatives_avoid = 'known'\n"
    Path("known.toml").write_text(protocol)
    line = refused("run", method, "--data", "full.csv", "--protocol", "known.toml", "--out", "r")
    assert "user everything leaves only 0 of 12 items" in line


class TestGzip:
    def test_a_bomb_is_stopped_before_it_fills_the_memory(self) -> None:
        """2 GiB in 2 MB; the process may not take more than 1.5 GiB."""
        block = gzip.compress(b"user,item\n" + b"a,b\n" * (16 << 20), compresslevel=9)
        Path("bomb.csv.gz").write_bytes(block * 32)
        code = "import sys; from ownview.data.reading.readers import read; read(sys.argv[1])"
        limit = (3 << 29, 3 << 29)
        done = subprocess.run(
            [sys.executable, "-c", code, "bomb.csv.gz"], capture_output=True, text=True, check=False, timeout=PATIENCE,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, limit),
        )  # fmt: skip
        assert "DataError: bomb.csv.gz: unpacks to over 268,435,456 bytes" in done.stderr

    def test_members_one_after_the_other_are_one_file(self) -> None:
        header, *rows = Path("world.csv").read_bytes().splitlines(keepends=True)
        parts = [header + b"".join(rows[:9]), b"".join(rows[9:])]
        Path("two.csv.gz").write_bytes(b"".join(gzip.compress(part) for part in parts) + b"\0" * 9)
        assert read("two.csv.gz", name="w").fingerprint() == read("world.csv", name="w").fingerprint()

    def test_a_flipped_bit_is_found(self) -> None:
        packed = bytearray(gzip.compress(Path("world.csv").read_bytes()))
        packed[-6] ^= 1  # in the checksum
        Path("bad.csv.gz").write_bytes(packed)
        with pytest.raises(DataError, match="corrupt gzip"):
            read("bad.csv.gz")

    @pytest.mark.parametrize("device", ["/dev/zero", "/dev/full"])
    def test_a_device_has_no_end(self, device: str) -> None:
        with pytest.raises(DataError, match="is a device"):
            read(device)


@pytest.mark.parametrize("kind", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_damaged_archives(kind: int, tmp_path: Path) -> None:
    """Every byte of the first 200 and of the last 120, one after the other."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", kind) as archive:
        archive.writestr("u.data", "1\t2\t3\t4\n" * 50)
    sound, path = packed.getvalue(), tmp_path / "a.zip"
    out = tmp_path / "out"
    out.mkdir()
    ended = 0
    for place in {*range(min(200, len(sound))), *range(max(len(sound) - 120, 0), len(sound))}:
        harmed = bytearray(sound)
        harmed[place] ^= 0xFF
        path.write_bytes(harmed)
        try:
            unpack(path, "u.data", out)
        except DownloadError:
            ended += 1
    assert ended > 50, "most of them do harm"


class TestRights:
    @pytest.mark.parametrize(("mask", "mode"), [(0o077, 0o600), (0o022, 0o644), (0o007, 0o660)], ids=oct)
    def test_files_have_those_that_the_umask_leaves(
        self, mask: int, mode: int, ownview: Callable[..., Outcome]
    ) -> None:
        before = os.umask(mask)
        try:
            assert ownview("run", "fedmf", "--data", "world.csv", "--rounds", "1", "--out", "r").code == 0
            assert ownview("data", "import", "world.csv", "--name", "mine").code == 0
        finally:
            os.umask(before)
        files = [path for folder in ("r", "cache") for path in Path(folder).rglob("*") if path.is_file()]
        assert len(files) > 8
        assert {oct(stat.S_IMODE(path.stat().st_mode)) for path in files} == {oct(mode)}

    def test_a_file_that_is_replaced_keeps_its_own(self) -> None:
        path = Path("secret.html")
        path.touch(0o600)
        write_text(path, "new")
        assert (path.read_text(), oct(stat.S_IMODE(path.stat().st_mode))) == ("new", oct(0o600))

    @NEEDS_RIGHTS
    def test_a_folder_that_must_not_be_written(self, refused: Callable[..., str]) -> None:
        Path("closed").mkdir(0o500)
        assert "closed/r: cannot be written" in refused("run", "popularity", "--data", "world.csv", "--out", "closed/r")
        Path("begun").chmod(0o500)
        assert "cannot be written" in refused("run", "--resume", "begun")


@pytest.mark.parametrize("call", ["open", "mkdir", "replace", "fsync", "flock"])
def test_a_disk_that_can_only_be_read(
    call: str, ownview: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system's answer on such a disk, given where a run writes."""
    import errno
    import fcntl

    def read_only(*given: object, **_: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), *map(str, given[:1]))

    if call == "open":
        real = os.open
        writes = os.O_CREAT | os.O_WRONLY
        monkeypatch.setattr(
            os, "open", lambda path, flags, *more, **named: (
                read_only(path) if flags & writes else real(path, flags, *more, **named)
            ),
        )  # fmt: skip
    else:
        monkeypatch.setattr(fcntl if call == "flock" else os, call, read_only)
    outcome = ownview("run", "popularity", "--data", "world.csv", "--out", "r")
    if call == "flock":  # a file system without locks is no reason to refuse
        assert outcome.code == 0
        return
    assert outcome.code == 2
    assert outcome.err.count("\n") == 1
    assert "Read-only file system" in outcome.err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_device_is_written_to_and_never_replaced(refused: Callable[..., str]) -> None:
    before = Path("/dev/full").stat().st_rdev
    assert "/dev/full: cannot be written: No space left" in refused("report", "done", "-o", "/dev/full", "--force")
    with pytest.raises(OutputError, match="No space left"):
        append_line(Path("/dev/full"), "x")
    assert Path("/dev/full").stat().st_rdev == before
