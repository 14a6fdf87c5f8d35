"""A Python place as a client of two servers: the same messages as a browser's, under the same agreement."""

from __future__ import annotations

import time
import urllib.error
import urllib.request
from collections.abc import Iterable, Sequence
from hashlib import sha256
from http import HTTPStatus
from itertools import count

import numpy as np
import numpy.typing as npt

from ownview.base.errors import MessageError
from ownview.one_message.envelope import HEAD, Operation, Receipt, sealed
from ownview.one_message.numbers import Numbers, signed, summand
from ownview.one_message.terms import SHARES, Terms

_PATIENCE, _ATTEMPTS = 120.0, 12
_LATER = (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS)


class Contributor:
    """Sends contributions.

    Args:
        terms: the agreement.
    """

    def __init__(self, terms: Terms) -> None:
        self.terms = terms

    def numbers(self, history: Sequence[str]) -> Numbers:
        """[n] of ids of items, oldest first; unknown ids count for nothing."""
        return summand(self.terms, [self.terms.place[item] for item in history if item in self.terms.place])

    def add(self, history: Sequence[str]) -> Receipt:
        """Add a history; the receipt changes it or takes it out."""
        receipt = Receipt.new()
        self._send(self.numbers(history), receipt, Operation.ADD)
        return receipt

    def change(self, receipt: Receipt, before: Sequence[str], now: Sequence[str]) -> None:
        """Let what a history says now count instead of what it said when it was sent."""
        self._send(self.numbers(now) - self.numbers(before), receipt, Operation.CHANGE)

    def take_out(self, receipt: Receipt, history: Sequence[str]) -> None:
        """Take a contribution out, with the history that counts."""
        self._send((-signed(self.numbers(history))).astype(np.uint32), receipt, Operation.TAKE_OUT)

    def _send(self, numbers: Numbers, receipt: Receipt, operation: Operation) -> None:
        """To a, then to b; the same bytes again while a server is away, which count once.

        Raises:
            MessageError: a server does not take it; says why.
        """
        made, _ = sealed(self.terms, numbers, receipt, operation)
        for share in SHARES:
            for attempt in range(_ATTEMPTS):
                try:
                    self._post(f"{self.terms.urls[share]}/v1/messages", made[share])
                    break
                except OSError as error:
                    if attempt == _ATTEMPTS - 1:
                        raise MessageError(f"{self.terms.urls[share]}: cannot be reached: {error}") from error
                    time.sleep(min(5.0, 0.1 * 2**attempt))

    def _post(self, url: str, body: bytes) -> None:
        headers = {"ownview-work": worked(body, self.terms.work)} if self.terms.work else {}
        try:
            with urllib.request.urlopen(urllib.request.Request(url, body, headers), timeout=_PATIENCE) as answer:
                answer.read()
        except urllib.error.HTTPError as error:
            if error.code in _LATER or error.code >= HTTPStatus.INTERNAL_SERVER_ERROR:
                raise
            said = error.read(2000).decode("utf-8", "replace")
            raise MessageError(f"{url}: answered {error.code}: {said}") from None


def worked(body: bytes, bits: int) -> str:
    """A message's proof of work."""
    for number in count():
        if not int.from_bytes(sha256(body[:HEAD] + number.to_bytes(8, "big")).digest(), "big") >> (256 - bits):
            return f"{number:016x}"
    raise AssertionError


def simulated(terms: Terms, histories: Iterable[Sequence[str]]) -> npt.NDArray[np.int64]:
    """[n] what the two servers would open of these histories, where there is no budget: added up here."""
    contributor, total = Contributor(terms), np.zeros(terms.size, dtype=np.int64)
    for one in histories:
        total += signed(contributor.numbers(one))
    return total
