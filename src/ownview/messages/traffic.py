"""Bytes of a round's messages."""

from __future__ import annotations

import torch
from torch import Tensor

from ownview.messages.codec import Codec
from ownview.messages.download import Download
from ownview.messages.upload import Upload


class Traffic:
    """Counts bytes of a round's messages: as written, or as the codec would write them.

    Args:
        codec: writes them.
        download: of the round; it has the same size for all clients that receive tables.
    """

    def __init__(self, codec: Codec, download: Download) -> None:
        self.codec, self.download = codec, download
        self.receiving = self.others = self.written = 0
        self.more_up = self.more_down = 0
        self.up: list[Tensor] = []

    def downloaded(self, download: Download, count: int) -> None:
        """Count the downloads of `count` clients."""
        receiving = count if download.receives is None else int(download.receives.sum())
        self.receiving += receiving
        self.others += count - receiving

    def uploaded(self, upload: Upload) -> None:
        """Count these uploads."""
        self.up.append(self.codec.upload_sizes(upload))

    @property
    def clients(self) -> int:
        """How many clients have been counted."""
        return self.receiving + self.others + self.written

    @property
    def mean_down(self) -> int:
        """Mean bytes to one client; without any, the size of the round's download."""
        whole, less = (self.codec.download_size(self.download, receives=receives) for receives in (True, False))
        count = self.clients
        together = self.receiving * whole + self.others * less + self.more_down
        return round(together / count) if count else whole

    @property
    def mean_up(self) -> int:
        """Mean bytes from one client, silent ones included; 0 without clients."""
        return round((self.bytes_up + self.more_up) / max(self.clients, 1))

    @property
    def bytes_up(self) -> float:
        """Bytes of all uploads. Once a round: on a GPU, the host waits for it."""
        return sum(float(sizes.sum()) for sizes in self.up)

    def weighed(self, clients: int, down: int, up: int) -> None:
        """Count `count` more clients by the bytes of their written messages."""
        self.written += clients
        self.more_down += down
        self.more_up += up

    def merge(self, receiving: int, others: int, bytes_up: float) -> None:
        """Add another machine's counts."""
        self.receiving += receiving
        self.others += others
        self.up.append(torch.tensor(bytes_up, dtype=torch.float64))
