"""The end of a run: the chosen round on test, and every file that a finished run has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ownview.data.interactions import FloatArray, IntArray
from ownview.data.splitting.splits import Split
from ownview.evaluation.groups import ActivityRange, by_activity
from ownview.evaluation.groups import summary as summary_of_group
from ownview.evaluation.metrics import HEADLINE, Standing, coverage, gini, per_user
from ownview.evaluation.ranking import Ranker, Scorer
from ownview.evaluation.statistics import mean_interval
from ownview.messages.layout import Layout
from ownview.privacy.record import record, summary
from ownview.round.cost import Cost, cost_of
from ownview.runs.experiment import Experiment
from ownview.runs.files.folder import RunFolder
from ownview.runs.files.manifest import write_manifest
from ownview.runs.full_fit import NO_TEST_FIGURE, settings_from
from ownview.runs.summaries.sample_lists import recommended
from ownview.runs.summaries.tried_settings import as_result, tried
from ownview.runs.training.best_round import Best
from ownview.runs.training.blending import BlendTrainer
from ownview.runs.training.trainer import Trainer
from ownview.runs.training.training_rounds import go_back
from ownview.runs.training.watching import Watch
from ownview.seam.protection import Protection

_LISTED = 10
"""Items that a measured run keeps of everybody's list."""

_TRIED = 32
"""People whose lists are made where nothing is measured, to see that the model has any."""

_TRAFFIC = ("bytes_down_per_client", "bytes_up_per_client", "bytes_dense_per_client")


@dataclass(frozen=True, eq=False)
class Finishing:
    """Looks at test, once, and writes down what it sees.

    Args:
        experiment: as it is written, every setting named.
        split: its data.
        ranker: of test.
        trainer: of the model; it goes back to the chosen round.
        watch: clients that are watched.
        costed: whether what a client and the server need is worked out.
    """

    experiment: Experiment
    split: Split
    ranker: Ranker
    trainer: Trainer
    watch: Watch | None
    costed: bool = True

    def write(self, best: Best, folder: RunFolder) -> None:
        """Every file of a finished run; result.json comes last."""
        if best.round != self.experiment.rounds:  # of the last round it has the values already
            go_back(self.trainer, best, folder)
        scorer = self.trainer.asked(self.ranker.question)
        measured = self.experiment.protocol.measured
        figures = self._measured(best, scorer, folder) if measured else self._fitted(scorer, folder)
        folder.write_tensors("model", best.packed, {"round": best.round})
        if self.watch is not None:
            folder.write_tensors("watched", self.watch.tensors(), {"round": best.round, **self.watch.about()})
        cost = self._cost(best, folder)
        if cost is not None:
            folder.write_note("cost", cost.to_dict())
        if self._plan is not None and self.trainer.federation is not None:
            one = self.trainer.federation
            masks = None if one.terms.masked is None else one.terms.masked.described()
            numbers = Layout.of(one.client, one.terms.averaged, one.world.num_items).size
            releases = one.method.releases
            entry = record(self._plan, one.options, one.world.num_clients, releases, numbers, masks)
            noise = folder.read_noise_key()
            folder.write_note("privacy", entry if noise is None else {**entry, "release": noise.name})
        folder.write_result(self._result(best, figures, folder, cost))
        write_manifest(folder.path)
        folder.drop_checkpoint()
        folder.drop_noise_key()

    def _measured(self, best: Best, scorer: Scorer, folder: RunFolder) -> dict[str, Any]:
        """Everybody's figures and lists, written down; the figures of all."""
        standing, lists = self.ranker.rank_and_top(scorer, _LISTED)
        values = per_user(standing, self.experiment.protocol.cutoffs)
        folder.write_users(self._users(standing, values))
        watched = () if self.watch is None else self.watch.positions
        folder.write_tensors("recommended", *recommended(self.split, self.ranker.question, lists, watched))
        return self._figures(best, standing, values, lists)

    @property
    def _plan(self) -> Protection | None:
        """The budget that the model was trained under."""
        federation = self.trainer.federation
        return None if federation is None else federation.world.protection

    def _users(self, standing: Standing, values: dict[str, FloatArray]) -> dict[str, list[Any]]:
        question = self.ranker.question
        items = self.split.items_of(question)
        columns: dict[str, list[Any]] = {
            "user": self.split.users_of(question)[standing.users].tolist(),
            "training_interactions": self._interactions(standing.users).tolist(),
            "held_out": _joined(items[question.relevant.values.numpy()].tolist(), standing),
            "better": _joined(standing.better.tolist(), standing),
            "tied": _joined(standing.tied.tolist(), standing),
            "candidates": standing.candidates.tolist(),
        }
        return columns | {name: np.round(column, 12).tolist() for name, column in values.items()}

    def _cost(self, best: Best, folder: RunFolder) -> Cost | None:
        """None for a model that is not federated."""
        federation = self.trainer.federation
        return None if federation is None or not self.costed else cost_of(federation, best.round, folder.read_rounds())

    def _interactions(self, users: IntArray) -> IntArray:
        """[k] what trains of the users, or what is known of those who do not train."""
        question = self.ranker.question
        lists = self.split.train if question.strangers is None else question.known.items
        return np.asarray(lists.lengths.numpy()[users])

    def _by_activity(self, standing: Standing, values: dict[str, FloatArray]) -> dict[str, Any]:
        strangers = self.ranker.question.strangers is not None
        interactions = self._interactions(standing.users) if strangers else self.split.data.counts[standing.users]
        found: dict[str, Any] = {"groups": by_activity(interactions, values)}
        if self.experiment.inactive:
            asked = ActivityRange.parse(self.experiment.inactive)
            found["inactive"] = summary_of_group(f"inactive {asked}", asked.members(interactions), interactions, values)
        return found

    def _figures(
        self, best: Best, standing: Standing, values: dict[str, FloatArray], lists: IntArray
    ) -> dict[str, Any]:
        """What was measured, on test and where the round was chosen."""
        protocol = self.experiment.protocol
        return {
            "test": {
                **{name: float(column.mean()) for name, column in values.items()},
                "coverage@10": coverage(lists, self.split.num_items),
                "Gini@10": gini(lists, self.split.num_items),
            },
            "interval_95": {name: mean_interval(values[name]) for name in HEADLINE},
            **self._by_activity(standing, values),
            "validation" if protocol.selection != "test" else "test_at_choice": best.metrics,
            "users_ranked": len(standing.users),
            "tied_users": standing.tied_share,
        }

    def _fitted(self, scorer: Scorer, folder: RunFolder) -> dict[str, Any]:
        """What stands in place of figures where everything was trained on; lists are made when they are asked for."""
        self.ranker.some(_TRIED, self.experiment.seed).top(scorer, _LISTED)  # scores that are no numbers end it here
        like = self.experiment.like
        return {
            "no_test_figure": NO_TEST_FIGURE,
            **({"settings_from": settings_from(like, folder.path)} if like else {}),
        }

    def _result(self, best: Best, figures: dict[str, Any], folder: RunFolder, cost: Cost | None) -> dict[str, Any]:
        protocol = self.experiment.protocol
        lines = folder.read_rounds()
        return {
            "method": self.experiment.label(),
            "data": self.split.data.name,
            "protocol": protocol.name,
            "seed": self.experiment.seed,
            "settings": self.experiment.to_dict()["settings"],
            **as_result(tried(self.experiment)),
            "rounds": self.experiment.rounds,
            "chosen_round": best.round,
            "chosen_on": protocol.selection,
            **figures,
            **({"blend": self.trainer.described()} if isinstance(self.trainer, BlendTrainer) else {}),
            "notes": [*self.split.notes, *self.trainer.notes()],
            "seconds": round(sum(sum(line["seconds"].values()) for line in lines), 3),
            "peak_memory_bytes": max(line["peak_memory_bytes"] for line in lines),
            **{name: _per_client(lines, name) for name in _TRAFFIC},
            **({} if cost is None else {"cost": cost.summary()}),
            **({} if self._plan is None else {"privacy": summary(self._plan)}),
        }


def _joined(values: list[Any], standing: Standing) -> list[Any]:
    """[p] values of right answers as [k], one a user; several of one user are parted by semicolons."""
    if standing.answers is None:
        return values
    ends = np.cumsum(standing.answers).tolist()
    return [";".join(map(str, values[end - count : end])) for end, count in zip(ends, standing.answers, strict=True)]


def _per_client(lines: list[dict[str, Any]], name: str) -> int:
    """The mean over all rounds and their clients, rounded."""
    clients = sum(int(line["clients"]) for line in lines)
    return round(sum(int(line[name]) * int(line["clients"]) for line in lines) / max(clients, 1))
