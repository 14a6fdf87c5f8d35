"""Reading interactions from files: every format, and every way in which a file can be wrong."""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ownview.base.errors import DataError, SettingError
from ownview.data.reading.columns import parse_columns
from ownview.data.reading.problems import UnsoundFileError
from ownview.data.reading.readers import read

Write = Callable[[str, str | bytes], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write_file(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write_file


def parquet(columns: dict[str, list[object]]) -> bytes:
    content = io.BytesIO()
    pl.DataFrame(columns).write_parquet(content)
    return content.getvalue()


FOUR_ROWS = [
    ("7", "30", "5", "100"),
    ("8", "10", "1", "90"),
    ("7", "20", "2.5", "80"),
    ("8", "30", "4", "95"),
]
SAME_DATA_IN_MANY_FORMATS: dict[str, str | bytes] = {
    "a.csv": "user,item,rating,timestamp\n" + "\n".join(",".join(row) for row in FOUR_ROWS) + "\n",
    "a.tsv": "userId\tmovieId\tstars\tts\n" + "\n".join("\t".join(row) for row in FOUR_ROWS),
    "ratings.dat": "\n".join("::".join(row) for row in FOUR_ROWS) + "\n",
    "u.data": "\n".join("\t".join(row) for row in FOUR_ROWS) + "\n",
    "ratings.txt": "\n".join(" ".join(row) for row in FOUR_ROWS) + "\n",
    "semicolon.csv": "uid;item_id;rating;time\n" + "\n".join(";".join(row) for row in FOUR_ROWS) + "\n",
    "pipe": "user_id|book_id|rating|unixReviewTime\n" + "\n".join("|".join(row) for row in FOUR_ROWS) + "\n",
    "a.inter": "user_id:token\titem_id:token\trating:float\ttimestamp:float\n"
    + "\n".join("\t".join((*row[:3], f"{row[3]}.0")) for row in FOUR_ROWS),
    "quoted.csv": 'user,item,rating,timestamp\n"7","30",5,100\n8,10,1,90\n7,20,2.5,80\n8,30,4,95\n',
    "windows.csv": "\ufeffuser,item,rating,timestamp\r\n"
    + "\r\n".join(",".join(row) for row in FOUR_ROWS)
    + "\r\n\r\n",
    "reordered.csv": "ts,artistID,extra,userID,rating\n"
    + "\n".join(f"{row[3]},{row[1]},x,{row[0]},{row[2]}" for row in FOUR_ROWS),
    "a.parquet": parquet(
        {
            "uid": [7, 8, 7, 8],
            "asin": [30, 10, 20, 30],
            "rating": [5.0, 1.0, 2.5, 4.0],
            "ts": [100, 90, 80, 95],
        }
    ),
}


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize("name", SAME_DATA_IN_MANY_FORMATS)
def test_every_format_gives_the_same_data(write: Write, name: str, packed: bool) -> None:
    content = SAME_DATA_IN_MANY_FORMATS[name]
    raw = content if isinstance(content, bytes) else content.encode()
    data = read(write(name, gzip.compress(raw) if packed else raw))
    assert data.users.tolist() == [7, 8]
    assert data.items.tolist() == [30, 10, 20]
    assert data.users.dtype == np.int64
    assert data.row.tolist() == [0, 2, 1, 3]
    assert data.item.tolist() == [0, 2, 1, 0]
    assert data.rating is not None
    assert data.rating.tolist() == [5, 2.5, 1, 4]
    assert data.timestamp is not None
    assert data.timestamp.tolist() == [100, 80, 90, 95]


@pytest.mark.parametrize(("ids", "kept"), [(["007", "8"], ["007", "8"]), (["+7", "8"], ["+7", "8"])])
def test_ids_that_are_not_plain_integers_stay_text(write: Write, ids: list[str], kept: list[str]) -> None:
    data = read(write("a.csv", "user,item\n" + "".join(f"{i},5\n" for i in ids)))
    assert data.users.tolist() == kept
    assert data.users.dtype == object
    assert data.items.tolist() == [5]


def test_blanks_around_ids_are_no_part_of_them(write: Write) -> None:
    titles = write("titles.csv", "item,title\n 5 ,Five\n")
    data = read(write("a.csv", "user, item\nann, 5\nann ,5\n bo,6\n"), titles=titles)
    assert data.users.tolist() == ["ann", "bo"]
    assert data.items.tolist() == [5, 6]
    assert data.titles is not None
    assert data.titles[0] == "Five"


def test_columns_with_one_name_are_refused_unless_given_by_number(write: Write) -> None:
    path = write("a.csv", "user,item,timestamp,note,note,timestamp\n1,2,5,x,y,100\n")
    message = (
        r"a\.csv: line 1: 2 columns are called 'timestamp'; expected one for timestamp; .* --columns timestamp=2 or 5"
    )
    with pytest.raises(DataError, match=message):
        read(path)
    with pytest.raises(DataError, match=message):
        read(path, columns={"timestamp": "timestamp"})
    chosen = read(path, columns={"timestamp": "5"})
    assert chosen.timestamp is not None
    assert chosen.timestamp.tolist() == [100]
    assert read(path, columns={"timestamp": "-"}).timestamp is None
    parts = write("parts.csv", "user,item,at,at,at\n1,2,1970,1,2\n")
    assert read(parts, columns={"timestamp": "2+3+4"}).timestamp == [86400]


def test_one_column_cannot_be_user_and_item(write: Write) -> None:
    path = write("a.csv", "user,item\n1,2\n")
    with pytest.raises(DataError, match=r"a\.csv: line 1: column 'item' is both user and item; expected two columns"):
        read(path, columns={"user": "item", "item": "item"})


def test_integers_beyond_64_bits_stay_text(write: Write) -> None:
    data = read(write("a.csv", "user,item\n1,99999999999999999999\n1,-3\n"))
    assert data.items.tolist() == ["99999999999999999999", "-3"]


def test_rating_and_time_are_optional(write: Write) -> None:
    absent = read(write("a.csv", "user,item\n1,2\n"))
    empty = read(write("b.csv", "user,item,rating,timestamp\n1,2,,\n1,3,,\n"))
    assert absent.rating is None
    assert absent.timestamp is None
    assert empty.rating is None
    assert empty.timestamp is None


def test_times_as_dates_fractions_and_parts(write: Write) -> None:
    dates = read(write("a.csv", "user,item,date\n1,2,1970-01-02\n1,3,1970-01-01T00:00:01.9Z\n1,4,1970-01-01 01:00\n"))
    fractions = read(write("b.csv", "user,item,ts\n1,2,7\n1,3,7.9\n"))
    fine = read(write("f.csv", "user,item,ts\n1,2,1600000000000000000.5\n1,3,1600000000999999999\n"))
    parts = read(
        write("c.csv", "user,item,day,month,year\n1,2,2,1,1970\n1,3,1,4,2009\n"),
        columns={"timestamp": "year+month+day"},
    )
    typed = read(write("d.parquet", parquet({"user": [1], "item": [2], "ts": [datetime(1970, 1, 3)]})))
    for data, expected in (
        (dates, [86400, 1, 3600]),
        (fractions, [7, 7]),
        (fine, [1600000000, 1600000000]),  # through floats the second would be a second later
        (parts, [86400, 1238544000]),
        (typed, [172800]),
    ):
        assert data.timestamp is not None
        assert data.timestamp.tolist() == expected


@pytest.mark.parametrize("zeros", [0, 3, 6, 9])
def test_times_in_finer_units_are_seconds(write: Write, zeros: int) -> None:
    end = "0" * zeros
    data = read(write("a.csv", f"user,item,timestamp\n1,1,1600000000{end}\n1,2,1600086400{end}\n1,3,1600086401{end}\n"))
    assert data.timestamp is not None
    assert data.timestamp.tolist() == [1600000000, 1600086400, 1600086401]


@pytest.mark.parametrize(
    ("times", "line", "value"),
    [
        (("5", "6", "9000000000000000000"), 4, "9000000000000000000"),
        (("20231314221300", "20231314221400", "20231314221500"), 2, "20231314221300"),
    ],
)
def test_times_of_no_clock_are_refused(write: Write, times: tuple[str, ...], line: int, value: str) -> None:
    rows = "".join(f"1,{item},{time}\n" for item, time in enumerate(times))
    with pytest.raises(
        DataError, match=rf"line {line}, column 'timestamp': timestamp '{value}'; expected seconds since"
    ):
        read(write("a.csv", "user,item,timestamp\n" + rows))


@pytest.mark.parametrize(
    ("times", "value", "unit"),
    [
        (("1600000000", "1600086400", "9000000000000000000"), "9000000000000000000", "seconds"),
        (("1600000000", "1600086400", "1600086401000"), "1600086401000", "seconds"),
        (("1600000000000", "1600086400000", "1600086401"), "1600086401", "milliseconds"),
        (("1600000000000000", "1600086400000000", "1600086401000"), "1600086401000", "microseconds"),
    ],
)
def test_times_in_two_units_are_refused(write: Write, times: tuple[str, ...], value: str, unit: str) -> None:
    """The last of them would be of the year 5138 or of 1970."""
    rows = "".join(f"1,{item},{time}\n" for item, time in enumerate(times))
    with pytest.raises(
        DataError,
        match=rf"line 4, column 'timestamp': timestamp '{value}'; most rows are in {unit}, .*expected one unit",
    ):
        read(write("a.csv", "user,item,timestamp\n" + rows))


def test_times_of_an_order_and_zeros_are_no_other_unit(write: Write) -> None:
    for times in (("1", "2", "3"), ("0", "1600000000000", "1600086400000"), ("99", "100", "1600000000")):
        rows = "".join(f"1,{item},{time}\n" for item, time in enumerate(times))
        assert read(write("a.csv", "user,item,timestamp\n" + rows)).timestamp is not None


@pytest.mark.parametrize(
    ("times", "clock"),
    [
        (("1", "2", "3"), False),
        (("0", "1", "1"), False),
        (("2", "3", "4"), True),
        (("100", "200", "300"), True),
        (("1600000000", "1600000001", "1600000002"), True),
    ],
)
def test_times_that_count_rows_are_an_order_and_no_clock(write: Write, times: tuple[str, ...], clock: bool) -> None:
    rows = "".join(f"1,{item},{time}\n" for item, time in enumerate(times))
    assert read(write("a.csv", "user,item,timestamp\n" + rows)).clock is clock


def test_negative_times_only_where_allowed(write: Write) -> None:
    path = write("a.csv", "user,item,ts\n1,2,5\n1,3,-428720400\n")
    with pytest.raises(DataError, match=r"a\.csv: line 3, column 'ts': timestamp '-428720400'; expected 0 or more"):
        read(path)
    data = read(path, allow_negative_times=True)
    assert data.timestamp is not None
    assert data.timestamp.tolist() == [5, -428720400]


def test_mapping_by_name_and_by_number(write: Write) -> None:
    named = read(write("a.csv", "what,who,user\nx,1,9\n"), columns={"user": "who", "item": "what"})
    assert (named.users.tolist(), named.items.tolist()) == ([1], ["x"])
    numbered = read(write("b.csv", "5,x,1\n6,y,1\n"), columns={"user": "2", "item": "1"})
    assert (numbered.users.tolist(), numbered.items.tolist()) == ([1], ["x", "y"])
    assert numbered.rating is None
    texts = read(write("c.csv", "ann,film\nbob,film\n"), columns={"user": "0", "item": "1"})
    assert texts.users.tolist() == ["ann", "bob"]
    headed = read(write("e.csv", "item_id,user_id\n5,1\n"), columns={"user": "1", "item": "0"})
    assert (headed.users.tolist(), headed.items.tolist()) == ([1], [5])
    recbole = read(write("d.inter", "who:token\titem_id:token\n1\t2\n"), columns={"user": "who"})
    assert recbole.users.tolist() == [1]


def test_header_is_told_from_data_with_text_ids(write: Write) -> None:
    data = read(write("a.csv", "A1EE2E3N,B000GFDAUG,5.0,1202256000\nAGZ8SM1B,B000GFDAUG,5.0,1198195200\n"))
    assert data.users.tolist() == ["A1EE2E3N", "AGZ8SM1B"]


def test_quoted_fields_may_hold_separators_and_line_ends(write: Write) -> None:
    data = read(write("a.csv", 'user,item,rating\n1,"a,b",1\n1,"c\nd",2\n1,"say ""e""",3\n'))
    assert data.items.tolist() == ["a,b", "c\nd", 'say "e"']


def test_separator_of_ones_own(write: Write) -> None:
    assert read(write("a.txt", "1§2\n1§3\n"), separator="§").items.tolist() == [2, 3]
    assert read(write("b.txt", "1\t2\n"), separator="tab").items.tolist() == [2]
    with pytest.raises(SettingError, match="separator: found '--'; expected '::', one character"):
        read(write("c.txt", "1--2\n"), separator="--")


def test_name_comes_from_the_file_or_its_folder(tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()
    for path in (tmp_path / "shop" / "interactions.csv", tmp_path / "mine.csv.gz"):
        path.write_text("user,item\n1,2\n")
    assert read(tmp_path / "shop" / "interactions.csv").name == "shop"
    assert read(tmp_path / "mine.csv.gz").name == "mine"
    assert read(tmp_path / "mine.csv.gz", name="other").name == "other"


BROKEN: dict[str, tuple[str | bytes, str]] = {
    "empty": ("", "is empty; expected rows of user and item"),
    "blank lines": ("\n\n  \n", "is empty"),
    "header only": ("user,item,rating\n", "line 1: only a header (user, item, rating)"),
    "unknown columns": (
        "who,what\n1,2\n",
        "line 1: no user column; found who, what; name it with --columns user=COLUMN",
    ),
    "no column is near": ("user,date\n1,2\n", "no item column; found user, date; name it with --columns item=COLUMN"),
    "renamed column": ("usr,item\n1,2\n", "no user column; found usr, item; did you mean 'usr'?"),
    "one column": ("user\n1\n", "line 1: one column ('user'); expected two or more, such as user and item"),
    "five columns, no header": ("1,2,3,4,5\n", "line 1: 5 columns and no header; expected 2 to 4"),
    "too few fields": ("user,item,rating\n1,2,3\n\n1,2\n", "line 4: 2 fields; expected 3"),
    "too many fields": ("user,item,rating\n1,2,3\n1,2,3,4\n", "line 3: 4 fields; expected 3"),
    "too few fields, quoted": ('user,item,rating\n1,"2\n",3\n1,2\n', "line 4: 2 fields; expected 3"),
    "open quote": ('user,item\n1,2\n1,"2\n1,3\n', "line 3: a quote is opened and not closed"),
    "mostly no user": ("user,item\n1,2\n,3\n,4\n", "line 3, column 'user': no user; expected an id in every row"),
    "mostly no item": ("user,item,rating\n1,2,1\n\n\n1, ,3\n2,,3\n", "line 5, column 'item': no item"),
    "word for rating": (
        "user,item,stars\n1,2,3\n1,3,good\n",
        "line 3, column 'stars': rating 'good'; expected a fin",
    ),
    "infinite rating": (
        "user,item,rating\n1,2,inf\n",
        "line 2, column 'rating': rating 'inf'; expected a finite",
    ),
    "rating not a number": ("1,2,1\n1,3,nan\n", "line 2, column '2': rating 'nan'; expected a finite number"),
    "some ratings": (
        "user,item,rating\n1,2,3\n1,3,\n",
        "line 3, column 'rating': no rating; other rows have one",
    ),
    "some times": ("user,item,ts\n1,2,\n1,3,5\n", "line 2, column 'ts': no timestamp; other rows have one"),
    "word for time": (
        "user,item,ts\n1,2,5\n1,3,noon\n",
        "line 3, column 'ts': timestamp 'noon'; expected seconds",
    ),
    "bad date": (
        "user,item,ts\n1,2,2020-02-30\n",
        "line 2, column 'ts': timestamp '2020-02-30'; expected seconds",
    ),
    "huge time": ("user,item,ts\n1,2,1e300\n", "line 2, column 'ts': timestamp '1e300'"),
    "broken utf-8": (
        "user,item\n1,caf\xe9\n1,th\xe9\n".encode() + b"1,caf\xe9\n",
        "line 4: byte 0xe9 is not UTF-8, which the rest of the text is",
    ),
    "no encoding": (b"user,item\n1,2\n1,caf\x81\n", "line 3: byte 0x81 at offset 19 is neither UTF-8 nor Windows-1252"),
    "doubtful dates": ("user,item,date\n1,2,3/4/2010\n1,3,1/2/2010\n1,3,2/3/2010\n", "expected --dates day-first or"),
    "truncated gzip": (gzip.compress(b"user,item\n" + b"1,2\n" * 999)[:-9], "truncated gzip"),
    "corrupt gzip": (gzip.compress(b"user,item\n1,2\n")[:-8] + b"\0" * 8, "corrupt gzip"),
    "zip": (b"PK\x03\x04rest", "is a zip archive; unpack it"),
    "json": ('{"user": 1}\n', "no item column; found user"),
    "json without objects": ("[1, 2]\n", "looks like JSON without objects"),
    "torn json": ('{"user": 1, "item": 2}\n{"user": 1\n', "line 2: no JSON object"),
    "damaged workbook": (b"PK\x03\x04xl/", "is a zip archive"),
    "cut parquet": (parquet({"user": [1], "item": [2]})[:-9], "unreadable Parquet"),
    "parquet without rows": (parquet({"user": [], "item": []}), "no rows"),
    "parquet without item": (parquet({"user": [1], "item": [None]}), "row 1, column 'item': no item"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_broken_file_is_named_with_place_and_cause(write: Write, case: str) -> None:
    content, message = BROKEN[case]
    path = write("broken.csv", content)
    with pytest.raises(DataError) as caught:
        read(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_absent_file_suggests_its_neighbour(write: Write, tmp_path: Path) -> None:
    write("ratings.csv", "user,item\n1,2\n")
    with pytest.raises(DataError, match=r"rating\.csv: no such file; did you mean 'ratings\.csv'\?"):
        read(tmp_path / "rating.csv")
    with pytest.raises(DataError, match=r"no such file; the folder .*nowhere is not there either"):
        read(tmp_path / "nowhere" / "a.csv")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="is a folder; expected a file"):
        read(tmp_path / "empty")


def test_wrong_mapping_names_the_nearest_column(write: Write) -> None:
    path = write("a.csv", "who,what\n1,2\n")
    with pytest.raises(DataError, match=r"line 1: no column 'whom' for user; found who, what; did you mean 'who'\?"):
        read(path, columns={"user": "whom", "item": "what"})
    with pytest.raises(SettingError, match=r"columns: unknown name 'usr'; did you mean 'user'\?"):
        read(path, columns={"usr": "who"})
    numbers = write("b.csv", "1,2\n")
    with pytest.raises(DataError, match="no column '2' for item; the file has no header, expected 0 to 1"):
        read(numbers, columns={"user": "0", "item": "2"})
    with pytest.raises(SettingError, match=r"columns: 'item' is not given; b\.csv has no header"):
        read(numbers, columns={"user": "0"})


def test_a_title_is_read_from_the_column_that_is_named(write: Write) -> None:
    text = "user,item,label,title\nann,5,Five,no\nbo,6,Six,no\n"
    assert read(write("a.csv", text), columns={"title": "label"}).titles == ("Five", "Six")
    assert read(write("a.csv", text), columns={"title": "-"}).titles is None
    assert read(write("a.csv", text)).titles == ("no", "no")
    plain = {"user": "0", "item": "1", "title": "2"}
    assert read(write("b.csv", "1,5,Five\n2,6,Six\n"), columns=plain).titles == ("Five", "Six")


def test_columns_that_nothing_is_taken_from_are_named(write: Write) -> None:
    data = read(write("a.csv", "user_id,user,item,title,amount\n1,ann,5,Five,2\n"))
    assert data.unread == ("user_id", "amount")
    assert read(write("b.csv", "1,5\n2,6\n")).unread == ()


def test_titles_come_with_their_first_creator(write: Write) -> None:
    items = write(
        "items.csv",
        'item,title,creator,year\n2,"Good Omens","Terry Pratchett, Neil Gaiman",1990\n3,Beowulf,,1000\n9,Unread,A,1\n',
    )
    data = read(write("a.csv", "user,item\n1,3\n1,2\n1,4\n"), titles=items)
    assert data.titles == ("Beowulf", "Good Omens — Terry Pratchett", "4")
    text_ids = read(write("b.csv", "user,item\n1,2\n1,x\n"), titles=items)
    assert text_ids.titles == ("Good Omens — Terry Pratchett", "x")
    untitled = read(write("a.csv", "user,item\n1,3\n"), titles=write("tags.csv", "item,label\n3,x\n"))
    assert untitled.titles is None
    assert untitled.about is not None
    assert untitled.about.columns == {"label": ("x",)}
    assert "tags.csv has no column of titles: items are called by their ids" in untitled.reading
    with pytest.raises(DataError, match=r"bad\.csv: line 1: no item column; found label, tags"):
        read(write("a.csv", "user,item\n1,3\n"), titles=write("bad.csv", "label,tags\n3,x\n"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("user", "found 'user'; expected name=column"),
        ("user=", "found 'user='"),
        ("user=a,,item=b", "found ''"),
        ("user=a,user=b", "'user' is given twice"),
        ("usr=a", "unknown name 'usr'; did you mean 'user'"),
    ],
)
def test_junk_in_columns_is_refused(text: str, message: str) -> None:
    with pytest.raises(SettingError, match=message):
        parse_columns(text)


def test_columns_are_parsed() -> None:
    assert parse_columns("user=a, item = b") == {"user": "a", "item": "b"}
    assert parse_columns(None) is None


ids = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc", "Zs", "Zl", "Zp"]), min_size=1, max_size=5)


@settings(max_examples=60)
@given(rows=st.lists(st.tuples(ids, ids, st.integers(-5, 5), st.integers(0, 10**11 - 1)), min_size=1, max_size=20))
def test_any_ids_survive_a_quoted_csv(
    rows: list[tuple[str, str, int, int]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("property") / "a.csv"
    frame = pl.DataFrame(rows, schema=["user", "item", "rating", "timestamp"], orient="row")
    frame.write_csv(path)
    data = read(path)
    order = np.argsort(data.row)
    assert [str(u) for u in data.users[data.user[order]]] == [row[0] for row in rows]
    assert [str(i) for i in data.items[data.item[order]]] == [row[1] for row in rows]
    assert data.timestamp is not None
    assert data.timestamp[order].tolist() == [row[3] for row in rows]


@pytest.mark.realdata
def test_a_million_rows_are_read_whole(real_data_dir: Path) -> None:
    data = read(real_data_dir / "ml-1m" / "interactions.csv.gz")
    assert (len(data), data.num_users, data.num_items) == (1_000_209, 6040, 3706)


def test_a_rating_that_is_not_wanted_can_be_left_out(tmp_path: Path) -> None:
    path = tmp_path / "odd.csv"
    path.write_text('reader,isbn,stars\nann,1,"4,5"\nbob,2,good\n', encoding="utf-8")
    with pytest.raises(DataError, match="stars"):
        read(path, columns={"user": "reader", "item": "isbn"})
    data = read(path, columns={"user": "reader", "item": "isbn", "rating": "-"})
    assert (len(data), data.rating) == (2, None)
    with pytest.raises(DataError, match="no item column"):
        read(path, columns={"user": "reader", "item": "-"})


def test_everything_that_is_wrong_is_listed_at_once(write: Write) -> None:
    path = write("a.csv", "user,item,ts\n1,2,5\n1,3\n,4,6\n1,4,noon\n2,5,7\n2,6,\n2,7,8\n")
    with pytest.raises(UnsoundFileError) as refused:
        read(path)
    assert [(one.kind, one.count, one.examples, one.refused) for one in refused.value.problems] == [
        ("rows that have not 3 fields", 1, ("line 3: 2",), True),
        ("rows without a user", 1, ("line 4",), False),
        ("rows without a time", 1, ("line 7",), True),
        ("times that are no number", 1, ("line 5: 'noon'",), True),
    ]
    data = read(path, tolerant=True)
    assert (data.users.tolist(), data.items.tolist()) == ([1, 2], [2, 5, 7])
    assert len(data.reading) == 4


def test_ratings_that_are_none_cost_the_column_and_no_row(write: Write) -> None:
    path = write("a.csv", "user,item,stars\n1,2,5\n1,3,good\n2,3,1\n")
    data = read(path, tolerant=True)
    assert (len(data), data.rating) == (3, None)
    assert "the column of ratings is not read" in data.reading[0]
    liked = read(path, tolerant=True, min_rating=2)
    assert (len(liked), liked.items.tolist()) == (1, [2])


def test_an_encoding_that_is_named_wins(write: Write) -> None:
    path = write("a.csv", "user,item\n1,Žižek\n".encode("cp1250"))
    assert read(path).items.tolist() == ["\u017di\u017eek"], "the two letters lie at the same place in Windows-1252"
    assert read(write("b.csv", "user,item\n1,ř\n".encode("cp1250")), encoding="cp1250").items.tolist() == ["ř"]
    with pytest.raises(SettingError, match="no encoding is called 'klingon'"):
        read(path, encoding="klingon")
    with pytest.raises(DataError, match="is not of encoding ascii"):
        read(path, encoding="ascii")


def test_zeros_in_front_of_ids_part_no_titles_that_would_be_one(write: Write) -> None:
    titles = write("titles.csv", "item,title\n7,Seven\n8,Eight\n")
    data = read(write("a.csv", "user,item\n1,007\n1,07\n1,0008\n"), titles=titles)
    assert data.titles == ("007", "07", "Eight"), "two items may be 7, so neither is"


def test_events_that_are_not_there_are_refused(write: Write) -> None:
    path = write("a.csv", "user,item,event\n1,2,view\n1,3,purchase\n")
    assert read(path, events=("purchase",)).items.tolist() == [3]
    with pytest.raises(DataError, match=r"no event is called 'purchas'; did you mean 'purchase'\?"):
        read(path, events=("purchas",))
    with pytest.raises(DataError, match="has no column of events"):
        read(write("b.csv", "user,item\n1,2\n"), events=("view",))


def test_a_column_of_remarks_or_of_categories_is_no_title(write: Write) -> None:
    rows = "".join(f"{u},{i},very good {u},kind {i % 2}\n" for u in range(6) for i in range(4))
    data = read(write("a.csv", f"user,item,remark,sort\n{rows}"))
    assert data.titles is None
    assert data.unread == ("remark", "sort")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Person," + ",".join(f"Film {k}" for k in range(9)) + "\nann,5,,,3,,x,,,\nbob,,4,,,,,,2,\ncid,1,,,,,5,,,\n",
         "a person a row and an item a column?"),
        ("Bread,Milk\nMilk,Jam,Salt\nTea\nBread,Jam,Milk,Salt\nMilk,Salt\n", "a basket a line says nothing of people"),
        ('Book Id,ISBN,My Rating,Exclusive Shelf\n1,"=""12""",4,read\n2,"=""13""",5,read\n3,"=""14""",4,to-read\n',
         "one person's own history has no one to learn from"),
        ("Muse,Absolution,Hysteria,12 Jan 2014 12:33\nMuse,Drones,Psycho,13 Jan 2014 12:33\n",
         "the third column holds no ratings ('Hysteria')"),
    ],
)  # fmt: skip
def test_a_file_of_another_shape_is_named_as_what_it_looks_like(text: str, message: str, write: Write) -> None:
    with pytest.raises(DataError) as refused:
        read(write("odd.csv", text))
    assert message in str(refused.value)
    assert "perhaps" not in str(refused.value)


def test_no_two_names_of_one_thing_are_proposed(write: Write) -> None:
    rows = "".join(f"{k % 4},{10 + k % 4},{'abc'[k % 3]}\n" for k in range(24))
    with pytest.raises(DataError, match="perhaps --columns user=") as refused:
        read(write("odd.csv", "who,whose,what\n" + rows))
    assert "whose" not in str(refused.value).partition("perhaps")[2]


@pytest.mark.parametrize(
    ("begin", "what"),
    [
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(40), "a workbook of old Excel"),
        (b"%PDF-1.7\n1 0 obj\n", "a PDF"),
        (b"<!DOCTYPE html>\n<title>Log in, please</title>\n", "a web page"),
        (b"<HTML>\n<body>a,b\n", "a web page"),
    ],
)
def test_what_is_no_table_is_called_what_it_is(begin: bytes, what: str, tmp_path: Path) -> None:
    path = tmp_path / "export.csv"
    path.write_bytes(begin)
    with pytest.raises(DataError, match=f"is {what}"):
        read(path)


def test_what_is_wrong_in_a_folder_names_the_file_and_other_files_do_not_count(tmp_path: Path) -> None:
    rows = "user,item,date\nann,lamp,2020-01-02\nbob,lamp,2020-01-03\n"
    (tmp_path / "a.csv").write_text(rows)
    (tmp_path / "b.csv").write_text(rows + "cid\n")
    (tmp_path / "notes.csv").write_text("what,when\nclosed,today\nopen\n")
    with pytest.raises(DataError) as refused:
        read(tmp_path)
    assert "b.csv, line 4: 1 fields; expected 3" in str(refused.value)
    assert "more place" not in str(refused.value)
    assert "rows that have not 3 fields: 1, left out (b.csv, line 4: 1)" in read(tmp_path, tolerant=True).reading
