"""Both servers' stores in one process: messages are put, confirmed and opened without HTTP between them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from ownview.one_message.envelope import Message, Operation, Receipt, opened, sealed
from ownview.one_message.store import ShareStore
from ownview.one_message.terms import SHARES, Share, Terms, agreed

GROUPING = bytes(range(32))


class StorePair:
    """Stores a and b under one agreement about FedEASE.

    Args:
        folder: of both.
        items: how many.
        changes: fields of the agreement that are otherwise than `agreed` writes them.
        options: of `agreed`.
    """

    def __init__(self, folder: Path, items: int, changes: dict[str, Any] | None = None, **options: Any) -> None:
        self.keys = {share: X25519PrivateKey.generate() for share in SHARES}
        public: Any = {share: key.public_key().public_bytes_raw() for share, key in self.keys.items()}
        urls: dict[Share, str] = {"a": "http://a", "b": "http://b"}
        made = agreed("fedease", [str(item) for item in range(items)], urls, public, **options)
        self.terms = Terms.read(json.dumps({**json.loads(made.content), **(changes or {})}).encode())
        self.stores = {share: ShareStore(folder / share, self.terms, share, GROUPING) for share in SHARES}

    def messages(self, numbers: Any, receipt: Receipt, how: Operation) -> dict[Share, Message]:
        """What each server reads."""
        sent, _ = sealed(self.terms, numbers, receipt, how)
        return {share: opened(self.terms, share, self.keys[share], sent[share]) for share in SHARES}

    def receipts(self, count: int) -> list[Receipt]:
        """New ones, drawn until every group has enough to be opened, also if two of them are taken out.

        Names are random, and so are their groups: of a few hundred one group in a hundred would have too few.
        """
        while True:
            found = [Receipt.new() for _ in range(count)]
            groups = [self.stores["b"]._group(one.contribution) for one in found]
            if np.bincount(groups, minlength=self.terms.groups).min() >= self.terms.fewest + 2:
                return found

    def send(
        self, numbers: Any, receipt: Receipt, how: Operation = Operation.ADD, to: Iterable[Share] = SHARES
    ) -> None:
        """To a, then to b."""
        made = self.messages(numbers, receipt, how)
        for share in to:
            self.put(share, made[share])

    def put(self, share: Share, message: Message) -> None:
        """One of them."""
        self.stores[share].put(message)

    def confirm(self) -> None:
        """Until nothing waits that both have."""
        while self.stores["b"].confirm(self.stores["a"].known):
            pass

    def open(self) -> int:
        """Messages of the next batch; 0 where there is none."""
        self.confirm()
        return self.stores["b"].open(lambda names: self.stores["a"].batch(names).read_bytes())
