"""Four people with a file each, from the raw export to the sentence they came for; its numbers are the records'."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.outcome import Outcome

METHODS = ("--method", "popularity", "--method", "fedease")
BEGIN = datetime(2010, 12, 1, 8, 26, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "1000")


def record(folder: Path, method: str) -> dict[str, Any]:
    return dict(json.loads((folder / "comparison" / method / "result.json").read_text()))


def verdict(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "verdict.json").read_text()))


def require_numbers(folder: Path, outcome: Outcome) -> list[str]:
    """Every sentence was printed, stands on the report, and its numbers are those of the runs."""
    found = verdict(folder)
    sentences: list[str] = found["sentences"]
    report = (folder / "report.html").read_text()
    for sentence in sentences:
        assert sentence in outcome.out
        assert json.dumps(sentence, ensure_ascii=False)[1:-1].replace("&", "\\u0026") in report
    numbers, best = found["numbers"], found["numbers"]["method"]
    hits, usual = (record(folder, one)["test"]["HR@10"] for one in (best, "popularity"))
    assert (numbers["hits"], numbers["bestsellers"]) == (hits, usual)
    numerals = [int(one.replace(",", "")) for one in re.findall(r"\d[\d,]*", sentences[0])]
    of = numerals[0]
    assert numerals == [of, round(of * hits), *([] if best == "popularity" else [round(of * usual)])]
    assert numbers["validation"] == record(folder, best)["validation"]["NDCG@10"]
    model = json.loads((folder / "model" / "result.json").read_text())
    assert numbers["seconds"] == model["seconds"]
    assert numbers["bytes"] == (folder / "model" / "model.safetensors").stat().st_size
    assert numbers["people_asked"] == record(folder, best)["users_ranked"]
    size = numbers["bytes"]
    right = {
        *map(str, numerals), f"{numbers['seconds']:.1f}", f"{numbers['seconds']:.0f}", f"{numbers['people_asked']:,}",
        "30", f"{size / 1e6:.3g}" if size >= 1e6 else f"{size / 1e3:.3g}", f"{numbers['validation']:.3f}",
        f"{numbers['same_basket'] or 0:.0%}",
    }  # fmt: skip
    if "winner" in numbers:
        for name, one in (("winner_test", numbers["winner"]), ("test", best)):
            assert numbers[name] == pytest.approx(record(folder, one)["test"]["NDCG@10"])
            right.add(f"{numbers[name]:.3f}")
        assert f"{numbers['winner_test']:.3f} against {numbers['test']:.3f}" in " ".join(sentences)
    for sentence in sentences:
        words = re.sub(r"NDCG@10|\(.*not above.*?\)", "", sentence)
        assert set(re.findall(r"\d[\d,]*(?:\.\d+)?%?", words)) <= right, sentence
    return sentences


def tastes(draw: np.random.Generator, person: int, items: int, number: int = 6) -> list[int]:
    """Some things of one of two halves of the range, in no order."""
    return [int(one) + items // 2 * (person % 2) for one in draw.permutation(items // 2)[:number]]


def test_a_shop_whose_orders_are_baskets_is_asked_what_people_take_when_they_come_back(
    ownview: Callable[..., Outcome],
) -> None:
    draw = np.random.default_rng(1)
    rows: list[tuple[object, ...]] = []
    for person in range(180):
        mine = tastes(draw, person, 40, 12)
        for visit in range(4):
            day = BEGIN + timedelta(days=int(draw.integers(0, 200)), minutes=person)
            when = f"{day.month}/{day.day}/{day.year} {day.hour}:{day.minute:02d}"
            rows += [
                (
                    536365 + 4 * person + visit,
                    f"{85000 + one}A",
                    f"CAFÉ SET No {one} £",
                    2,
                    when,
                    2.55,
                    17000 + person,
                    "UK",
                )
                for one in mine[3 * visit : 3 * visit + 3]
            ]
    rows.append((900000, "85001A", "CAFÉ SET No 1 £", 2, "3/1/2011 9:00", 2.55, "", "UK"))
    with Path("retail.csv").open("w", encoding="cp1252", newline="") as file:
        header = "InvoiceNo,StockCode,Description,Quantity,InvoiceDate,UnitPrice,CustomerID,Country"
        csv.writer(file).writerows([header.split(","), *rows])
    outcome = ownview("start", "retail.csv", *METHODS)
    assert outcome.code == 0, outcome.err
    sentences = require_numbers(Path("runs/start-retail"), outcome)
    assert re.match(r"Of 100 people who came back, \d+ find something new that they then took", sentences[0])
    assert sentences[1].startswith("Take fedease: it learns which things go together, from sums of pairs; trained in ")
    assert sentences[-1].startswith("100% of everybody's latest items came at the very same time as the one before")
    assert record(Path("runs/start-retail"), "fedease")["protocol"] == "next-sitting"
    assert verdict(Path("runs/start-retail"))["numbers"]["same_basket"] == 1.0


def test_a_film_club_is_told_what_to_take(ownview: Callable[..., Outcome]) -> None:
    draw, lines = np.random.default_rng(2), []
    for person in range(80):
        for place, film in enumerate(tastes(draw, person, 40)):
            lines.append(f"{person}::{film}::{1 + film % 5}::{978300000 + 200_000 * place + person}")
    Path("ratings.dat").write_text("\n".join(lines))
    outcome = ownview("start", "ratings.dat", *METHODS, "--table")
    assert "NDCG@10" in outcome.out
    sentences = require_numbers(Path("runs/start-ratings"), outcome)
    assert re.fullmatch(
        r"Of 100 people, \d+ find what they took next among ten suggestions; with bestsellers it would be \d+\.",
        sentences[0],
    )
    assert sentences[1].startswith("Take fedease: ")
    assert len(sentences) == 2


def test_a_library_without_dates_is_asked_at_random(ownview: Callable[..., Outcome]) -> None:
    draw = np.random.default_rng(3)
    with Path("loans.jsonl").open("w") as file:
        for person in range(80):
            for book in tastes(draw, person, 40):
                file.write(json.dumps({"borrower_id": f"b{person}", "isbn": f"97{book:04d}"}) + "\n")
    outcome = ownview("start", "loans.jsonl", *METHODS)
    sentences = require_numbers(Path("runs/start-loans"), outcome)
    assert re.match(r"Of 100 people, \d+ find one of their own things, hidden at random, among ten", sentences[0])


def test_few_people_are_named_as_few(ownview: Callable[..., Outcome]) -> None:
    draw = np.random.default_rng(5)
    lines = [f"{person},{one},{place}" for person in range(12) for place, one in enumerate(tastes(draw, person, 40))]
    Path("club.csv").write_text("\n".join(["user,item,timestamp", *lines]))
    sentences = require_numbers(Path("runs/start-club"), ownview("start", "club.csv", *METHODS))
    assert "Only 12 people could be asked; fewer than 30 say little about others." in sentences
    assert re.match(
        r"12 people cannot tell \w+ from plain counts \(\w+\): (those|bestsellers) may serve as well", sentences[1]
    )


def test_where_nothing_beats_bestsellers_it_is_said(ownview: Callable[..., Outcome]) -> None:
    """What people take here has nothing to do with what they took."""
    draw = np.random.default_rng(4)
    weight = 1.0 / np.arange(1, 41)
    with Path("kiosk.csv").open("w", newline="") as file:
        rows = csv.writer(file, delimiter=";")
        rows.writerow(["Kundennummer", "Artikelnummer", "Bestelldatum"])
        for person in range(60):
            for place, one in enumerate(draw.choice(40, 5, replace=False, p=weight / weight.sum()).tolist()):
                rows.writerow([person, one, f"{1 + person % 28:02d}.{1 + 2 * place:02d}.2020"])
    outcome = ownview("start", "kiosk.csv", *METHODS)
    assert outcome.code == 0, outcome.err
    sentences = require_numbers(Path("runs/start-kiosk"), outcome)
    assert "bestsellers" in sentences[1]
    assert "Take" not in " ".join(sentences)
