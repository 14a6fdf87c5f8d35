"""Moments as people and programs write them: ISO, day/month/year, month/day/year, with month names, as one number.

Whether 3/4/2010 is in March or in April no single date tells; a column of them does: somewhere a number is above 12, or
the rows are in time order in one reading alone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone

DAY_FIRST, MONTH_FIRST = "day-first", "month-first"
ORDERS = (DAY_FIRST, MONTH_FIRST)

_CLOCK = (
    r"(?:[T ,]+(?:um |at |à |a las |alle )?(\d{1,2})[:.h](\d{2})(?:[:.](\d{2})(?:[.,]\d+)?)?"
    r"\s*([AaPp]\.?\s?[Mm]\.?)?\s*(Z|UTC|GMT|[+-]\d{2}:?\d{2})?)?"
)
_NUMERIC = re.compile(rf"(\d{{1,4}})([./-])(\d{{1,2}})\2(\d{{1,4}}){_CLOCK}")
_WORDED = re.compile(
    rf"(?:[^\W\d]+\.?,? )?(?:(\d{{1,2}})\.?[ -](?:de )?([^\W\d]+)\.?[ -,]+(?:de )?(\d{{2,4}})|"
    rf"([^\W\d]+)\.? (\d{{1,2}})(?:st|nd|rd|th)?,? (\d{{4}})){_CLOCK}"
)
_COMPACT = re.compile(r"(\d{4})(\d{2})(\d{2})(?:[T ]?(\d{2})(\d{2})(\d{2}))?")
_MONTHS = (
    "jan january januar janvier janv enero ene gennaio gen janeiro januari",
    "feb february februar fevrier fevr février févr febrero febbraio fevereiro fev februari",
    "mar march märz maerz mrz mär mars marzo março marco maart mrt",
    "apr april avril avr abril abr aprile",
    "may mai mayo maggio mag maio mei",
    "jun june juni juin junio giugno giu junho",
    "jul july juli juillet juil julio luglio lug julho",
    "aug august août aout agosto ago augustus",
    "sep sept september septembre septiembre settembre set setembro",
    "oct october oktober okt octobre octubre ottobre ott outubro out",
    "nov november novembre noviembre novembro",
    "dec december dezember dez décembre decembre déc diciembre dic dicembre dezembro",
)
_MONTH = {name: number for number, names in enumerate(_MONTHS, 1) for name in names.split()}


@dataclass(frozen=True)
class Dates:
    """Seconds since 1970 by text.

    Args:
        seconds: None for texts that are no moment, or one of another order than most.
        order: of day and month, where the data shows it or it was given; None where no date depends on it.
        doubtful: whether both orders would do, so that `order` is an assumption.
        decided_by: what decided the order, in words.
    """

    seconds: dict[str, int | None]
    order: str | None = None
    doubtful: bool = False
    decided_by: str = ""


def read_dates(texts: Sequence[str], order: str | None) -> Dates:
    """Read a column of moments, one order of day and month for all.

    Args:
        texts: in the order of the rows, with repetitions.
        order: `day-first` or `month-first`; detected where None.
    """
    known: dict[str, int | None] = {}
    parts: dict[str, re.Match[str]] = {}
    for text in dict.fromkeys(texts):
        found = _NUMERIC.fullmatch(text)
        if found and len(found[1]) < 3:
            parts[text] = found
        else:
            known[text] = _fixed(text, found)
    if not parts:
        return Dates(known)
    read_by = {one: {text: _ordered(found, one) for text, found in parts.items()} for one in ORDERS}
    chosen, decided_by = (order, "as asked") if order else _order(parts)
    doubtful = False
    if chosen is None:
        chosen, decided_by = _by_sequence([text for text in texts if text in parts], read_by)
    if chosen is None:
        separators = {found[2] for found in parts.values()}
        chosen, decided_by = DAY_FIRST, "dates with dots and dashes are"
        doubtful = "/" in separators
    return Dates(known | read_by[chosen], chosen, doubtful, decided_by)


def _order(parts: dict[str, re.Match[str]]) -> tuple[str | None, str]:
    """By numbers above 12; where there are some in both places, by the more frequent."""
    day = [text for text, found in parts.items() if int(found[1]) > 12 >= int(found[3])]
    month = [text for text, found in parts.items() if int(found[3]) > 12 >= int(found[1])]
    if not day and not month:
        return None, ""
    first = len(day) >= len(month)
    return (DAY_FIRST if first else MONTH_FIRST), f"{(day if first else month)[0]} tells"


def _by_sequence(texts: Sequence[str], read_by: dict[str, dict[str, int | None]]) -> tuple[str | None, str]:
    """By the one reading in which the rows stand in time order, from old to new or from new to old."""
    sorted_by = []
    for order, seconds in read_by.items():
        line = [one for one in (seconds[text] for text in texts) if one is not None]
        if len(set(line)) > 2 and line in (sorted(line), sorted(line, reverse=True)):
            sorted_by.append(order)
    return (sorted_by[0], "in that reading the rows are in time order") if len(sorted_by) == 1 else (None, "")


def _fixed(text: str, found: re.Match[str] | None) -> int | None:
    """Seconds of a moment whose day and month are unambiguous."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        pass
    else:
        return _seconds(moment)
    if found:
        return _moment(int(found[1]), int(found[3]), int(found[4]), found.groups()[4:])
    if worded := _WORDED.fullmatch(text):
        day, month, year = worded.group(1, 2, 3) if worded[1] else worded.group(5, 4, 6)
        number = _MONTH.get(month.casefold())
        return None if number is None else _moment(_year(year), number, int(day), worded.groups()[6:])
    if compact := _COMPACT.fullmatch(text):
        year, month, day, *clock = compact.groups()
        return _moment(int(year), int(month), int(day), (*clock, None, None))
    return None


def _ordered(found: re.Match[str], order: str) -> int | None:
    first, second = int(found[1]), int(found[3])
    day, month = (first, second) if order == DAY_FIRST else (second, first)
    return _moment(_year(found[4]), month, day, found.groups()[4:])


def _year(text: str) -> int:
    """Two digits are of 1970 to 2069."""
    year = int(text)
    return year if len(text) > 2 else year + (1900 if year >= 70 else 2000)


def _moment(year: int, month: int, day: int, clock: Sequence[str | None]) -> int | None:
    """Clock: hour, minute, second, half of the day and zone, each or none."""
    hour, minute, second, half, zone = clock
    hours = int(hour or 0)
    if half:
        if not 1 <= hours <= 12:
            return None
        hours = hours % 12 + (12 if half[0] in "Pp" else 0)
    try:
        moment = datetime(year, month, day, hours, int(minute or 0), int(second or 0), tzinfo=_zone(zone))
    except ValueError:
        return None
    return _seconds(moment)


def _zone(text: str | None) -> timezone:
    if text is None or text[0] not in "+-":
        return UTC
    digits = text[1:].replace(":", "")
    offset = timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
    return timezone(offset if text[0] == "+" else -offset)


def _seconds(moment: datetime) -> int | None:
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    try:
        return int(moment.timestamp() // 1)
    except (OverflowError, ValueError):
        return None
