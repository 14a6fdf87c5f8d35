"""Who may send how much, without accounts: a rate by address, and a proof of work; neither says who a person is.

What each stops: the rate, one address that sends much (many addresses are many senders); the proof of work, that
messages cost nothing (2^bits hashes each: who has many processors has many contributions). Neither tells a person from
a machine. A blind token of an issuer who knows people (Privacy Pass, RFC 9578) would; docs/one-message.md weighs it.
"""

from __future__ import annotations

import ipaddress
import time
from hashlib import sha256

from starlette.requests import Request

from ownview.base.errors import MessageError
from ownview.one_message.envelope import HEAD

WORK = "ownview-work"
_DIGITS = 16
_ADDRESSES = 100_000


class TooManyError(MessageError):
    """An address has sent too much for now."""


class Senders:
    """Counts messages by address for a minute, and forgets them.

    Args:
        per_minute: messages of one address; of an IPv6 network of 64 bits, which one customer has.
        behind_proxy: whether the address stands last in X-Forwarded-For, as a proxy in front writes it.
    """

    def __init__(self, per_minute: int, *, behind_proxy: bool = False) -> None:
        self.per_minute, self.behind_proxy = per_minute, behind_proxy
        self.minute, self.seen = 0, dict[str, int]()

    def count(self, request: Request) -> None:
        """Refuse an address that sends too much."""
        minute, address = int(time.monotonic() // 60), self.address(request)
        if minute != self.minute:
            self.minute, self.seen = minute, {}
        self.seen[address] = self.seen.get(address, 0) + 1
        if self.seen[address] > self.per_minute or len(self.seen) > _ADDRESSES:
            raise TooManyError(f"more than {self.per_minute} messages of one address in a minute; try again later")

    def address(self, request: Request) -> str:
        """Of who sends; of an IPv6 network of 64 bits."""
        said = request.client.host if request.client else ""
        if self.behind_proxy:
            lines = request.headers.getlist("x-forwarded-for")  # some proxies add a line of their own, as the last
            said = (lines[-1] if lines else said).rpartition(",")[2].strip()
        try:
            found = ipaddress.ip_address(said)
        except ValueError:
            return ""
        if found.version == 6 and found.ipv4_mapped is not None:  # as a socket for both has addresses of version 4
            found = found.ipv4_mapped
        return str(found if found.version == 4 else ipaddress.ip_network((found, 64), strict=False))


def require_work(body: bytes, said: str, bits: int) -> None:
    """Refuse a message without its proof: SHA-256 of its head and of 8 bytes (16 digits) begins with so many zeros."""
    if not bits:
        return
    try:
        number = bytes.fromhex(said) if len(said) == _DIGITS else b""
    except ValueError:
        number = b""
    hashed = int.from_bytes(sha256(body[:HEAD] + number).digest(), "big")
    if not number or hashed >> (256 - bits):
        raise MessageError(f"no proof of work of {bits} bits in the header {WORK}")
