"""Titles by what a person types: the page's search (`pages/assets/search.js`) in Python, fast for many titles.

Every word must stand in the title, accents and case aside. A title that is exactly the text comes first, then titles
that begin with it, those in which a word begins with it, and the better known.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Sequence

_MAKER, _BRACKET = re.compile(r" \u2014 .*$"), re.compile(r" \([^()]*\)$")


def plain(text: str) -> str:
    """Letters and digits in lower case without accents, words parted by one space."""
    bare = "".join(one for one in unicodedata.normalize("NFD", text) if unicodedata.category(one)[0] != "M")
    return " ".join("".join(one if unicodedata.category(one)[0] in "LN" else " " for one in bare.lower()).split())


class TitleSearch:
    """m titles in one text, so that looking for a word is one pass of C code over it.

    Args:
        titles: [m].
        known: [m] positions, the best known first.
    """

    def __init__(self, titles: Sequence[str], known: Sequence[int]) -> None:
        self.names = [plain(_BRACKET.sub("", _MAKER.sub("", title))) for title in titles]
        self.spelt = [f" {plain(title)} " for title in titles]
        self.rank = {item: rank for rank, item in enumerate(known)}
        self.text = "\n".join(self.spelt)
        self.starts, at = [], 0
        for title in self.spelt:
            self.starts.append(at)
            at += len(title) + 1

    def find(self, text: str, most: int) -> list[int]:
        """Positions of at most so many titles, the best first; none for a text without letters and digits."""
        words = plain(text).split()
        if not words:
            return []
        whole = " ".join(words)
        rarest = max(words, key=len)
        fits = [item for item in self._with(rarest) if all(word in self.spelt[item] for word in words)]
        return sorted(fits, key=lambda item: (self._kind(item, whole), self.rank[item]))[:most]

    def _with(self, word: str) -> list[int]:
        found, at = [], self.text.find(word)
        while at >= 0:
            item = bisect_right(self.starts, at) - 1
            found.append(item)
            if item + 1 == len(self.starts):
                break
            at = self.text.find(word, self.starts[item + 1])
        return found

    def _kind(self, item: int, whole: str) -> int:
        spelt = self.spelt[item]
        if spelt == f" {whole} " or self.names[item] == whole:
            return -1
        return 0 if spelt.startswith(f" {whole}") else 1 if f" {whole}" in spelt else 2
