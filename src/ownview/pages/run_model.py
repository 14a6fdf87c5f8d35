"""The model of a finished run for a page or an export: its portable form, what items are called, and facts about it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from ownview.attacks.published_weights import People, weights_attacked
from ownview.attacks.scoring import AttackFinding
from ownview.base.errors import SettingError
from ownview.base.items.item_table import ItemTable
from ownview.base.version import __version__
from ownview.data.datasets.catalog import catalog
from ownview.data.interactions import IntArray, Interactions
from ownview.evaluation.metrics import HEADLINE
from ownview.pages.budgeted import budget_of, charge, covered, require_publishable
from ownview.pages.fidelity import Fidelity, fidelity
from ownview.pages.offered import Offered
from ownview.registry import Model
from ownview.runs.run import Run
from ownview.runs.summaries.summary import SIMULATED
from ownview.runs.training.setup import ExperimentSetup
from ownview.runs.training.trainer import Trainer
from ownview.seam.client import Client, Reporting
from ownview.seam.portable import Attention, Blended, Factors, Linear, Refusal, in_sums


@dataclass(frozen=True, eq=False)
class RunModel:
    """A finished run whose model has a portable form.

    Args:
        run: the run.
        setup: its data.
        trainer: its model, with its values.
        taken: the portable form of the model's scores.
        offered: items without interactions; None where none are offered.
    """

    run: Run
    setup: ExperimentSetup
    trainer: Trainer
    taken: Linear | Factors | Attention | Blended
    offered: Offered | None = None

    @classmethod
    def of(
        cls, run: Run, data_dir: Path | None = None, new_items: Path | None = None, *, networks: bool = False
    ) -> RunModel:
        """Read the model; with items without interactions, of a file or the model's own. `networks` are taken too.

        Raises:
            SettingError: the model has no form that a device could score with; says why.
        """
        require_publishable(run)
        at_hand = run.loaded(data_dir)
        form = at_hand.trainer.portable() if networks else in_sums(at_hand.trainer.portable())
        if isinstance(form, Refusal):
            raise SettingError(
                f"{run.folder.path}: {run.experiment.label()} cannot be taken along: it {form.reason}; "
                "take one that can, such as fedease"
            )
        offered, new_items = None, new_items or run.new_items
        if new_items is not None:
            more = at_hand.offering(new_items).split
            offered = Offered(more.data, at_hand.split.num_items)
        return cls(run, at_hand.setup, at_hand.trainer, form, offered)

    def charge(self) -> None:
        """Count what is about to be published, where it was made under a budget.

        Raises:
            SettingError: the budget of its people is spent.
        """
        charge(self.run, self.trainer.federation, self.data)

    @property
    def form(self) -> Linear | Factors:
        """Of a model that is no network."""
        assert isinstance(self.taken, Linear | Factors)
        return self.taken

    @property
    def data(self) -> Interactions:
        """Users and items that took part."""
        return self.setup.split.data

    @property
    def num_items(self) -> int:
        """Of the model."""
        return self.data.num_items

    @property
    def _named(self) -> Interactions:
        return self.data if self.offered is None else self.offered.data

    @property
    def ids(self) -> list[Any]:
        """[m] of the items, and of those without interactions."""
        return list(self._named.items.tolist())

    @cached_property
    def titles(self) -> list[str]:
        """[m] what people call the items; ids behind titles that several items have. New items are marked as new."""
        named = distinct_titles([self._named.title(item) for item in range(self._named.num_items)], self.ids)
        return [title if place < self.num_items else f"{title} (new)" for place, title in enumerate(named)]

    @property
    def titled(self) -> bool:
        """Whether items have titles, and not their ids alone."""
        return self.data.titled

    @property
    def about(self) -> ItemTable | None:
        """What is known of the items, and of those without interactions."""
        return self._named.about

    @cached_property
    def budgeted(self) -> bool:
        """Whether the model was made under an accounted budget."""
        return self.trainer.federation is not None and budget_of(self.run) is not None

    @cached_property
    def people(self) -> People:
        """Who had what in training."""
        train = self.setup.split.train
        ones = np.ones(len(train.values), dtype=np.int8)
        shape = (len(train), self.num_items)
        made = sparse.csr_matrix((ones, train.values.numpy(), train.offsets.numpy()), shape=shape)
        made.sum_duplicates()
        return People(made.astype(bool))

    def attacked(self, form: Linear | Factors, kept: IntArray) -> tuple[AttackFinding, ...]:
        """What attacks read off a form of some items, compared with who had what."""
        return tuple(weights_attacked(form, self.people.of_items(kept)))

    @property
    def popularity(self) -> IntArray:
        """[m] training rows of each item."""
        return np.bincount(self.setup.split.train.values.numpy(), minlength=self.data.num_items)

    def fidelity(self, form: Linear | Factors, kept: IntArray) -> Fidelity:
        """How far a form of some items recommends what the model does."""
        return fidelity(form, kept, self.trainer, self.setup.rankers[1])

    def facts(self) -> dict[str, Any]:
        """What it is and where it comes from, in plain values."""
        experiment, result = self.run.experiment, self.run.result
        model = self.run.model or experiment.model()
        facts = {
            "ownview": __version__,
            "method": {
                "name": experiment.label(),
                "title": _title(model),
                "summary": model.summary,
                "paper": model.paper,
            },
            "settings": experiment.to_dict()["settings"],
            "rounds": result["chosen_round"],
            "seed": experiment.seed,
            "data": self._data(),
            "protocol": experiment.protocol.name,
            "figures": _figures(result),
            "notes": list(result["notes"]),
            "left_out": list(self.taken.left_out),
            "privacy": self._privacy(),
            "made_with": {
                name: self.run.folder.read_provenance().get(name) for name in ("ownview", "revision", "packages")
            },
        }
        return facts if budget_of(self.run) is None else covered(facts)

    def _data(self) -> dict[str, Any]:
        data, entry = self.data, catalog().get(self.run.experiment.data)
        about = {
            "name": self.run.experiment.data_label(),
            "users": data.num_users,
            "items": data.num_items,
            "interactions": len(data),
            "fingerprint": data.fingerprint(),
        }
        if entry is None:
            return about | {"title": about["name"], "terms": "not known: data of one's own"}
        return about | {
            "title": entry.title,
            "terms": entry.terms,
            "homepage": entry.homepage,
            "citation": entry.citation,
        }

    def _privacy(self) -> dict[str, Any]:
        federation = self.trainer.federation
        if federation is None:
            return {
                "federated": False,
                "leaves_a_device": ["everything: the data of all people was in one place"],
                "sentence": "the model was learnt from everybody's data in one place",
            }
        sent = leaves_a_device(federation.client)
        return {
            "federated": True,
            "simulated": True,
            "leaves_a_device": sent,
            "noise": self.run.experiment.federation.privacy,
            "sentence": f"{SIMULATED}. A device would have sent: {'; '.join(sent)}",
        }


def distinct_titles(titles: Sequence[str], ids: Sequence[Any]) -> list[str]:
    """[m] titles, with the id behind those that several items have."""
    times = Counter(titles)
    return [title if times[title] == 1 else f"{title} ({one})" for title, one in zip(titles, ids, strict=True)]


def leaves_a_device(client: Client) -> list[str]:
    """What a client sends, in words."""
    if isinstance(client.work, Reporting):
        return [one.what for one in client.work.sends.values()]
    sent = {"change": "what training changed in", "whole": "the whole of"}
    named = [f"{sent[param.role.sends]} {name}" for name, param in client.params.items() if param.sends]
    return [*named, "its number of training samples"]


def _title(model: Model) -> str:
    return str(getattr(model, "title", model.name))


def _figures(result: Mapping[str, Any]) -> dict[str, Any] | str:
    """Test figures with their interval, or why there are none; where settings come from is said without its place."""
    if "test" not in result:
        why, origin = str(result.get("no_test_figure", "no test figure")), result.get("settings_from", {})
        if "test" not in origin:
            return why
        reached = " and ".join(f"{name} {origin['test'][name]:.4f}" for name in HEADLINE)
        return f"{why}. Settings and rounds are those of a run that reached {reached} (protocol {origin['protocol']})"
    figures = {name: {"value": result["test"][name], "interval_95": result["interval_95"][name]} for name in HEADLINE}
    return figures | {"users": result["users_ranked"]}
