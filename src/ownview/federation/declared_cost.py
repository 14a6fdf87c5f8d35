"""What a method costs by what it declares: values at a client and on the server, bytes that travel.

Space as in Tables 4 and 6 of "Beyond Personalization: Federated Recommendation with Calibration via Low-rank
Decomposition", whose MB are 2^20 bytes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from math import prod

from ownview.seam.training import Param, World


@dataclass(frozen=True)
class DeclaredCost:
    """Cost that follows from the declared parameters.

    Args:
        private: values that stay with a client, by parameter; tables received beside the client's own are some.
        shared: values that client and server exchange, by parameter.
        num_clients: that may send at the same time.
        bytes_per_value: 4 for float32.
        uploaded: names of the shared values that training moves; None for all.
        reported: private values that the server sees.
        common: values of means that a client receives beside its mixtures.
    """

    private: Mapping[str, int]
    shared: Mapping[str, int]
    num_clients: int
    bytes_per_value: int = 4
    uploaded: Collection[str] | None = None
    reported: int = 0
    common: int = 0

    @classmethod
    def of(
        cls,
        params: Mapping[str, Param],
        world: World,
        bytes_per_value: int = 4,
        uploaded: Collection[str] | None = None,
    ) -> DeclaredCost:
        """Count what a method declares for a world."""
        values = {name: prod(one.shape) * (world.num_items if one.rows else 1) for name, one in params.items()}
        beside = {table: values[name] for name, one in params.items() for table in (one.beside, one.common) if table}
        return cls(
            {name: count for name, count in values.items() if not params[name].shared} | beside,
            {name: count for name, count in values.items() if params[name].shared},
            world.num_clients,
            bytes_per_value,
            uploaded,
            sum(count for name, count in values.items() if params[name].reported),
            sum(count for name, count in values.items() if params[name].common),
        )

    @property
    def client_values(self) -> int:
        """Private values and one copy of the shared ones: a client that keeps a table trains the copy it received."""
        return sum(self.private.values()) + sum(self.shared.values())

    @property
    def client_bytes(self) -> int:
        """Bytes of `client_values`."""
        return self.client_values * self.bytes_per_value

    @property
    def server_values(self) -> int:
        """One copy of the shared values; changes are added up as they come in."""
        return sum(self.shared.values())

    @property
    def server_bytes(self) -> int:
        """Bytes of `server_values`."""
        return self.server_values * self.bytes_per_value

    @property
    def server_bytes_with_uploads(self) -> int:
        """Bytes of a server that stores the upload of every client beside its own copy, which the paper counts."""
        return self.server_bytes + self.num_clients * self.bytes_up

    @property
    def bytes_down(self) -> int:
        """To one client in a round: all shared values, and means."""
        return self.server_bytes + self.common * self.bytes_per_value

    @property
    def bytes_up(self) -> int:
        """From one client in a round: the shared values that training moves, and reports."""
        back = (count for name, count in self.shared.items() if self.uploaded is None or name in self.uploaded)
        return (sum(back) + self.reported) * self.bytes_per_value
