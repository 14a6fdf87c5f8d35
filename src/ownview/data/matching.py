"""Which item a person means: by its id, by its title, or by a part of the title that fits one item alone."""

from __future__ import annotations

import difflib
import re
import unicodedata
from contextlib import suppress
from functools import cached_property
from typing import NamedTuple

from ownview.base.errors import DataError
from ownview.data.interactions import Interactions

SEPARATOR = ";"
"""Between the items of a history in one text."""

BY_ID = "id:"
"""In front of a name: what follows is an id and no title."""

_ARTICLES = ("the", "a", "an")
_NAMED = 3
"""Titles that an error names."""


class Match(NamedTuple):
    """A given text and the item matched to it."""

    given: str
    position: int
    title: str


class ItemNames:
    """The items of some data by what people call them.

    A title is compared without case, accents' encoding and punctuation. 'Dune (Dune Chronicles #1) — Frank Herbert' is
    found by itself, without the creator, without what stands in brackets at its end, and by words of it that no other
    title has all of. Articles in front do not count: 'Matrix, The (1999)' is found as 'The Matrix' and as 'matrix'.

    Args:
        data: items, with titles or without.
    """

    def __init__(self, data: Interactions) -> None:
        self.data = data

    def find(self, given: str, *, ids_first: bool = False) -> Match:
        """The one item that is meant.

        Args:
            given: an id, also behind `id:`, or a title.
            ids_first: whether a text that is an id is never read as a title.

        Raises:
            DataError: none or several; names the nearest titles.
        """
        text = given.strip()
        if text.startswith(BY_ID):
            return self._match(given, self._by_id(text.removeprefix(BY_ID).strip(), given))
        by_id = self._ids.get(text)
        by_title = [] if ids_first and by_id is not None else self._by_title(text)
        if by_id is not None and by_title and by_title != [by_id]:
            other = self.data.items[by_title[0]]
            raise DataError(
                f"history: {given!r} is the id of {self.data.title(by_id)!r} and the title of item {other}: "
                f"write {BY_ID}{text} or {BY_ID}{other}"
            )
        if by_id is not None:
            return self._match(given, by_id)
        found = by_title or self._by_words(text)
        if not found:
            raise DataError(f"history: no item of {self.data.name} is called {given!r}{self._nearest(text)}")
        if len(found) > 1:
            raise DataError(
                f"history: {given!r} may be {self._listed(found)}; write more of the title, or {BY_ID} and its id"
            )
        return self._match(given, found[0])

    def name_of(self, position: int) -> str | None:
        """What an item is found by in a list of names: its title, or its id where others have the title too.

        None where neither will do, because the sign between names stands in both.
        """
        for name in (self.data.title(position), f"{BY_ID}{self.data.items[position]}"):
            with suppress(DataError):
                if SEPARATOR not in name and self.find(name).position == position:
                    return name
        return None

    def _match(self, given: str, position: int) -> Match:
        return Match(given, position, self.data.title(position))

    def _by_id(self, text: str, given: str) -> int:
        if text not in self._ids:
            near = difflib.get_close_matches(text, self._ids, n=_NAMED)
            hint = f"; did you mean {' or '.join(near)}?" if near else ""
            raise DataError(f"history: {given!r}: {self.data.name} has no item with this id{hint}")
        return self._ids[text]

    @cached_property
    def _ids(self) -> dict[str, int]:
        return {str(one): place for place, one in enumerate(self.data.items.tolist())}

    @cached_property
    def _forms(self) -> tuple[dict[str, list[int]], ...]:
        """Items by their titles, whole at first and then by less of them."""
        levels: tuple[dict[str, list[int]], ...] = ({}, {}, {})
        for place, title in enumerate(self.data.titles or ()):
            for level, form in zip(levels, _forms(title), strict=True):
                level.setdefault(form, []).append(place)
        return levels

    @cached_property
    def _words(self) -> list[frozenset[str]]:
        return [frozenset(plain(title).split()) for title in self.data.titles or ()]

    def _by_title(self, text: str) -> list[int]:
        wanted = plain(text)
        if not wanted:
            return []
        return next((level[wanted] for level in self._forms if wanted in level), self._forms[2].get(_bare(wanted), []))

    def _by_words(self, text: str) -> list[int]:
        wanted = frozenset(plain(text).split())
        return [place for place, words in enumerate(self._words) if wanted <= words] if wanted else []

    def _nearest(self, text: str) -> str:
        if self.data.titles is None:
            near = difflib.get_close_matches(text, self._ids, n=_NAMED)
            return f"; it has no titles, so write ids{', such as ' + ' or '.join(near) if near else ''}"
        near = difflib.get_close_matches(plain(text), self._forms[2], n=_NAMED, cutoff=0.5)
        if not near:
            return ", and no title is like it; write a title or an id"
        return f"; did you mean {self._listed([self._forms[2][one][0] for one in near])}?"

    def _listed(self, found: list[int]) -> str:
        named = [f"{self.data.title(one)!r} (id {self.data.items[one]})" for one in found[:_NAMED]]
        more = len(found) - len(named)
        return " or ".join(named) + (f" or one of {more} others" if more else "")


def plain(text: str) -> str:
    """Letters and digits in lower case, words parted by one space."""
    folded = unicodedata.normalize("NFKC", text).casefold().replace("'", "").replace("’", "")
    return " ".join(re.findall(r"\w+", folded))


def _forms(title: str) -> tuple[str, str, str]:
    """A title whole, without its creator, and without that and what stands in brackets at its end."""
    alone = title.partition(" — ")[0]
    short = re.sub(r"(\s*\([^()]*\))+\s*$", "", alone)
    head, comma, article = short.rpartition(", ")
    if comma and article.casefold() in _ARTICLES:
        short = head
    return plain(title), plain(alone), _bare(plain(short) or plain(alone))


def _bare(text: str) -> str:
    """Without an article in front."""
    first, _, rest = text.partition(" ")
    return rest if rest and first in _ARTICLES else text
