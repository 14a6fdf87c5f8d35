"""What everybody who adds to a store has agreed on: method, what clients do, how data is read, and the step."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ownview.base.errors import OutputError, SettingError
from ownview.base.files import write_json
from ownview.base.json_text import parse_json
from ownview.baselines.parts.counting import Counting
from ownview.config.settings import declared
from ownview.registry import Model, find_model
from ownview.runs.experiment import Experiment
from ownview.seam.client import Reporting
from ownview.seam.method import Federated
from ownview.seam.roles import HISTORY, ITEM_FEATURES, PRIVATE, RECEIVED, TIMELINE, visible
from ownview.seam.server import Sums
from ownview.seam.training import World
from ownview.sums.blocks import FRACTION

FILE = "agreement.json"
_FORMAT = 1
LARGE_WORLD = World(num_clients=2, num_items=2**20)
"""Names and roles do not depend on the world; with so many items every setting is allowed."""

_AT_HOME = (TIMELINE, HISTORY, PRIVATE, RECEIVED, ITEM_FEATURES)


@dataclass(frozen=True)
class StoreAgreement:
    """What a store's numbers mean.

    Args:
        experiment: method, settings, plug-ins, and how the protocol reads data.
        order: what is known of the order of a person's items, see `ownview.seam.training.World`.
        moment: what clients' clocks are taken to say while they work; None without times.
        round: that the sums are of; rounds before it made what clients receive.
    """

    experiment: Experiment
    order: str
    moment: int | None = None
    round: int = 1

    @property
    def model(self) -> Model:
        """With its settings and plug-ins."""
        return self.experiment.model()

    def clients(self) -> dict[str, Any]:
        """All that decides contributions, in plain values; settings that are solved afterwards are left out."""
        whole, free = self.experiment.to_dict(), set(solved_afterwards(self.experiment))
        return {
            "format": _FORMAT,
            "fraction": FRACTION,
            "method": self.experiment.method,
            "settings": {name: value for name, value in whole["settings"].items() if name not in free},
            "plugins": whole["plugins"],
            "protocol": whole["protocol"],
            "order": self.order,
            "moment": self.moment,
            "round": self.round,
        }

    def digest(self) -> str:
        """SHA-256 of what decides contributions: equal where two stores can be added."""
        return hashlib.sha256(json.dumps(self.clients(), sort_keys=True).encode()).hexdigest()

    def difference(self, other: StoreAgreement) -> str:
        """What two agreements differ in, in words; empty where their stores can be added."""
        mine, theirs = self.clients(), other.clients()
        apart = [name for name in mine if mine[name] != theirs[name]]
        return ", ".join(f"{name} is {mine[name]!r} here and {theirs[name]!r} there" for name in apart)

    def write(self, folder: Path) -> None:
        """Write agreement.json."""
        experiment = {**replace(self.experiment, like="").to_dict(), "data": self.experiment.data_label()}
        document = {**self.clients(), "digest": self.digest(), "experiment": experiment}  # no path of this machine
        write_json(folder / FILE, document)

    @classmethod
    def read(cls, folder: Path) -> StoreAgreement:
        """Of a store."""
        path = folder / FILE
        try:
            document = dict(parse_json(path.read_text(encoding="utf-8")))
            experiment = Experiment.from_dict(document["experiment"], str(path))
            found = cls(experiment, document["order"], document["moment"], document["round"])
            written = document["digest"]
        except OSError as error:
            raise OutputError(f"{path}: cannot be read: {error.strerror}; expected a store (ownview sums)") from None
        except (ValueError, KeyError, TypeError) as error:
            raise OutputError(f"{path}: is damaged: {error!r}; bring a sound copy back") from None
        if written != found.digest():
            raise OutputError(f"{path}: is damaged: it was changed after it was written; bring a sound copy back")
        return found

    def solved_with(self, settings: dict[str, Any]) -> StoreAgreement:
        """The same with other settings of the server; others are refused.

        Raises:
            SettingError: a setting decides what clients send, so that everybody would have to be asked again.
        """
        changed = replace(self, experiment=replace(self.experiment, settings={**self.experiment.settings, **settings}))
        apart = [name for name in settings if changed.clients()["settings"].get(name) is not None]
        if apart and changed.clients() != self.clients():
            raise part_of_the_agreement(apart[0], self.experiment)
        return changed


def solved_afterwards(experiment: Experiment) -> list[str]:
    """Settings that decide nothing that people send."""
    return [one.name for one in declared(find_model(experiment.method)) if one.metadata["rule"].afterwards]


def part_of_the_agreement(setting: str, experiment: Experiment) -> SettingError:
    """Why a setting cannot change without everybody."""
    return SettingError(
        f"setting {setting}: decides what people add, and is part of the agreement; expected one of "
        f"{', '.join(solved_afterwards(experiment)) or 'none'}, or a new model (ownview fit)"
    )


def why_no_sum(experiment: Experiment) -> str | None:
    """Why a model is not made of sums that can be kept, in half a sentence; None where it is."""
    model, options = experiment.model(), experiment.federation
    if experiment.protocol.min_item_interactions:
        return "its protocol drops items by everybody's rows (min_item_interactions)"
    if isinstance(model, Counting):
        return None
    if not isinstance(model, Federated):
        return "it trains"
    if options.privacy != "none" or options.clients != "all":
        return "its sums are hidden or noised, or not everybody takes part"
    client, server = model.client(LARGE_WORLD), model.server(LARGE_WORLD)
    reports = isinstance(client.work, Reporting) and isinstance(server.combine, Sums) and not client.work.negatives
    roles = {param.role for param in visible(client.params).values()}
    return None if reports and roles <= set(_AT_HOME) else "it trains in rounds"
