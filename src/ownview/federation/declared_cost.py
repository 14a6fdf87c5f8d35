"""What a method costs by what it declares: values at a client and on the server, and what travels.

Space as in Tables 4 and 6 of "Beyond Personalization: Federated Recommendation with Calibration via Low-rank
Decomposition", whose MB are 2^20 bytes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from math import prod

from ownview.seam.client import Client, Reporting
from ownview.seam.roles import HELD
from ownview.seam.training import World


@dataclass(frozen=True)
class DeclaredCost:
    """Cost that follows from the declared parameters; a client's data is none.

    Args:
        private: values that stay with a client, by parameter; tables received beside the client's own are some.
        shared: values that a client receives, by parameter.
        held: values that never leave the server, by parameter; sums over clients are some.
        sent: values that a client sends, by parameter.
        means: values of means that a client receives beside its mixtures.
        num_clients: that may send at the same time.
        bytes_per_value: 4 for float32.
        first_upload: bytes that a client which reports sends in its first round, the mean over clients.
    """

    private: Mapping[str, int]
    shared: Mapping[str, int]
    held: Mapping[str, int]
    sent: Mapping[str, int]
    means: int
    num_clients: int
    bytes_per_value: int = 4
    first_upload: int | None = None

    @classmethod
    def of(
        cls,
        client: Client,
        world: World,
        bytes_per_value: int = 4,
        moved: Collection[str] | None = None,
        first_upload: int | None = None,
    ) -> DeclaredCost:
        """Count what a method declares for a world.

        Args:
            client: the method's.
            world: number of clients and items.
            bytes_per_value: 4 for float32.
            moved: names of the values that training moves, which alone travel back; None for all.
            first_upload: of clients that report.
        """
        params = {name: param for name, param in client.params.items() if not param.role.given}
        values = {name: prod(param.whole_shape(world.num_items)) for name, param in params.items()}
        beside = {table: values[name] for name, param in params.items() for table in param.tables_beside}
        reports = client.work.sends if isinstance(client.work, Reporting) else {}
        return cls(
            {n: values[n] for n, param in params.items() if not (param.from_server or param.role is HELD)} | beside,
            {n: values[n] for n, param in params.items() if param.from_server},
            {n: values[n] for n, param in params.items() if param.role is HELD}
            | {f"sum of {name}": prod(one.shape) for name, one in reports.items()},
            {n: values[n] for n, param in params.items() if param.sends and (moved is None or n in moved)},
            sum(values[n] for n, param in params.items() if param.everybodys_mean),
            world.num_clients,
            bytes_per_value,
            first_upload,
        )

    @property
    def client_values(self) -> int:
        """Private values and one copy of the received ones: a client that keeps a table trains the copy it received."""
        return sum(self.private.values()) + sum(self.shared.values())

    @property
    def client_bytes(self) -> int:
        """Bytes of `client_values`."""
        return self.client_values * self.bytes_per_value

    @property
    def server_values(self) -> int:
        """One copy of what clients receive, and what is held back; changes are added up as they come in."""
        return sum(self.shared.values()) + sum(self.held.values())

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
        """To one client in a round: all received values, and means; zeros count."""
        return (sum(self.shared.values()) + self.means) * self.bytes_per_value

    @property
    def bytes_up(self) -> int:
        """From one client in a round: whole values, or what a client that reports sends in its first round."""
        if self.first_upload is not None:
            return self.first_upload
        return sum(self.sent.values()) * self.bytes_per_value
