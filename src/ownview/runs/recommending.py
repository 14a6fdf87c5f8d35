"""A finished model in memory: read once, asked any number of times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ownview.data.interactions import FloatArray, IntArray, Interactions
from ownview.data.matching import ItemNames
from ownview.data.persons import Newcomer
from ownview.data.splitting.splits import Split
from ownview.data.unseen_items import with_untaken
from ownview.evaluation.ranking import NONE, OnUsers, Ranker, Scorer
from ownview.registry import Model
from ownview.runs.experiment import Experiment
from ownview.runs.files.folder import RunFolder
from ownview.runs.training.carrying import CarryingTrainer, carrier_of
from ownview.runs.training.setup import ExperimentSetup
from ownview.runs.training.trainer import Trainer
from ownview.runs.training.training_rounds import restore


class Recommendation(NamedTuple):
    """One recommended item.

    held_out: the user did interact with it, and it was held out of training
    new:      without interactions
    """

    item: Any
    title: str
    score: float
    held_out: bool
    new: bool = False


class Lists(NamedTuple):
    """Lists of items for some users.

    users:  [n] positions
    items:  [n, k] positions, best first; -1 for empty places
    scores: [n, k] minus infinity there
    """

    users: IntArray
    items: IntArray
    scores: FloatArray


@dataclass(frozen=True, eq=False)
class Recommender:
    """A restored model with its users and items.

    Args:
        setup: data and questions.
        trainer: of the model.
        model: its settings.
    """

    setup: ExperimentSetup
    trainer: Trainer
    model: Model

    @classmethod
    def of(
        cls, folder: RunFolder, experiment: Experiment, model: Model | None, data: Interactions | None,
        data_dir: Path | None, values: dict[str, Tensor] | None = None,
    ) -> Recommender:  # fmt: skip
        """Read from a run's folder, for the device that is here, whichever the model was trained on.

        `values` are the model's, where this process has just written them; None where they are to be read and checked.
        """
        here = replace(experiment, device="auto")
        setup = ExperimentSetup.of(here, data=data, data_dir=data_dir)
        setup.require_same(folder, here)
        model = model or here.model()
        trainer = setup.trainer(here, model, folder.path.parent)
        values = folder.read_tensors("model")[0] if values is None else values
        restore(trainer, values, folder.path / "model.safetensors")
        return cls(setup, trainer, model)

    def offering(self, file: Path) -> Recommender:
        """The same with those items of a file that have no interactions: text carries the model's scores to them.

        Nothing is trained or sent: a model of sums suffices (`parts.text.carried`).

        Raises:
            DataError: the file names no new item.
            SettingError: nothing is known of the items but their ids.
        """
        data = with_untaken(self.split.data, file)
        split = replace(self.split, data=data, num_new=data.num_items - self.split.num_items)
        rankers = [replace(one, num_items=data.num_items) for one in self.setup.rankers]
        trainer = CarryingTrainer(self.trainer, carrier_of(self.model, split, self.setup.machine))
        return Recommender(replace(self.setup, split=split, rankers=(rankers[0], rankers[1])), trainer, self.model)

    @property
    def split(self) -> Split:
        """The data, as the run has it."""
        return self.setup.split

    @property
    def ranker(self) -> Ranker:
        """Ranker of test: its question has every user's known items, which are not recommended."""
        return self.setup.rankers[1]

    @cached_property
    def names(self) -> ItemNames:
        """What people call the items."""
        return ItemNames(self.split.data)

    @cached_property
    def _members(self) -> Scorer:
        """Scores of everybody the question is about."""
        return self.trainer.asked(self.ranker.question)

    @property
    def num_users(self) -> int:
        """Users that `lists` has lists of."""
        return len(self.ranker.question.relevant)

    def lists(self, ids: Sequence[object] | None, k: int, on_users: OnUsers | None = None) -> Lists:
        """Lists of users by id, or of all users."""
        question = self.ranker.question
        users = (
            np.arange(self.num_users)
            if ids is None
            else np.array([self.split.position_in(question, one) for one in ids], dtype=np.int64)
        )
        return self._asked(self.ranker, self._members, users, k, on_users)

    def one(self, user: object, k: int) -> list[Recommendation]:
        """Recommendations to one user, by id."""
        found = self.lists([user], k)
        return self._recommendations(found, self.ranker.question.answers(int(found.users[0])))

    def newcomer(self, person: Newcomer, k: int) -> list[Recommendation]:
        """Recommendations to a new user."""
        question, device = person.question(self.split), self.setup.machine.device
        ids = question.strangers
        assert ids is not None
        ranker = replace(self.ranker, question=question, hidden=question.hidden.to(device), sampled=None, ids=ids)
        return self._recommendations(
            self._asked(ranker, self.trainer.asked(question), np.zeros(1, dtype=np.int64), k), []
        )

    def _asked(self, ranker: Ranker, scorer: Scorer, users: IntArray, k: int, on_users: OnUsers | None = None) -> Lists:
        if not len(users):
            return Lists(users, np.zeros((0, 0), dtype=np.int64), np.zeros((0, 0)))
        asked = replace(ranker, users=torch.from_numpy(users).to(self.setup.machine.device))
        return Lists(users, *asked.best(scorer, min(k, self.split.num_items), on_users))

    def _recommendations(self, found: Lists, right: list[int]) -> list[Recommendation]:
        data, taken = self.split.data, self.split.num_items - self.split.num_new
        return [
            Recommendation(data.items.item(item), data.title(item), score, item in right, item >= taken)
            for item, score in zip(found.items[0].tolist(), found.scores[0].tolist(), strict=True)
            if item != NONE
        ]
