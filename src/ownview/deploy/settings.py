"""How a coordinator conducts its rounds: settings that a person may change between two starts of a server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ownview.config.settings import Settings, setting


@dataclass(frozen=True)
class CoordinatorSettings(Settings):
    """How a coordinator conducts its rounds."""

    title: ClassVar[str] = "coordinator"

    quorum: float = setting(
        1.0, "share of a round's clients that must answer; 1 waits for all of them", above=0, high=1
    )
    deadline: float = setting(600.0, "seconds after which a round ends if the quorum has answered", above=0)
    # Transports send nothing twice to a place that has it already, so asking again soon costs nothing.
    resend: float = setting(5.0, "seconds after which a message that was not answered is sent again", above=0)
    greeting: float = setting(60.0, "seconds to wait for what no round depends on", above=0)
    least: int = setting(1, "clients that must be there for a round to begin", low=1)
    waiting: float = setting(
        0.0, "seconds that a round waits for enough users, after which the server ends; 0 for ever", low=0
    )
    users_per_place: int = setting(
        0, "users that one place may bring; a place with more is declined. 0 for all that were agreed on", low=0
    )
