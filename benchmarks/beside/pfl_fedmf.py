"""FedMF in pfl-research: FederatedAveraging in its simulation, weighed by samples; vectors stay with their users.

Adam is PyTorch's fused one, which is the faster there. A user's samples are shuffled once a round, not every epoch:
pfl's datasets go through their samples in order.
"""

from __future__ import annotations

import json
import sys
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import cpu_seconds
import numpy as np
import torch
from pfl.aggregate.simulate import SimulatedBackend
from pfl.aggregate.weighting import WeightByDatapoints
from pfl.algorithm.base import NNAlgorithmParams
from pfl.algorithm.federated_averaging import FederatedAveraging
from pfl.callback.base import TrainingProcessCallback
from pfl.data.dataset import Dataset
from pfl.data.federated_dataset import FederatedDataset
from pfl.hyperparam.base import NNTrainHyperParams
from pfl.metrics import Metrics
from pfl.model.pytorch import PyTorchModel


class MatrixFactorisation(torch.nn.Module):
    """One user's vector and the table; pfl asks for `loss` and `metrics`."""

    def __init__(self, table: np.ndarray[Any, Any]) -> None:
        super().__init__()
        self.table = torch.nn.Parameter(torch.from_numpy(table.copy()))
        self.user = torch.nn.Parameter(torch.zeros(table.shape[1]))

    def loss(self, items: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """[] mean cross-entropy."""
        return torch.nn.functional.binary_cross_entropy_with_logits(self.table[items] @ self.user, labels)

    def metrics(self, items: torch.Tensor, labels: torch.Tensor) -> dict[str, Any]:
        """None."""
        return {}


class WithUsers(PyTorchModel):
    """A model of which the table alone is shared."""

    def __init__(self, users: np.ndarray[Any, Any], **given: Any) -> None:
        super().__init__(**given)
        self.users = torch.from_numpy(users.copy())
        del self._variable_map["user"]

    def do_multiple_epochs_of(self, user_dataset: Any, *given: Any, **more: Any) -> Any:
        """With the user's own vector, which is kept."""
        own = self.users[int(user_dataset.user_id)]
        self.pytorch_model.user.data.copy_(own)
        made = super().do_multiple_epochs_of(user_dataset, *given, **more)
        own.copy_(self.pytorch_model.user.data)
        return made


class Noting(TrainingProcessCallback):
    """CPU-seconds of every round, and the values after the first."""

    def __init__(self, out: str) -> None:
        self.out, self.marks = out, [cpu_seconds.of_tree()]

    def after_central_iteration(
        self, aggregate_metrics: Any, model: Any, *, central_iteration: int
    ) -> tuple[bool, Metrics]:
        """Note them."""
        self.marks.append(cpu_seconds.of_tree())
        if len(self.marks) == 2:
            table = model.pytorch_model.table.detach().numpy()
            np.savez(self.out + ".npz", users=model.users.numpy(), table=table)
        return False, Metrics()


def main(problem: str, out: str) -> None:
    """Train, and write what came out after the first round."""
    torch.set_num_threads(1)
    given = np.load(problem)
    offsets, items, labels = given["offsets"], given["items"], given["labels"]
    count, random = len(offsets) - 1, np.random.default_rng(0)

    def dataset(user: int) -> Dataset:
        own = offsets[user] + random.permutation(offsets[user + 1] - offsets[user])
        return Dataset((torch.from_numpy(items[own]), torch.from_numpy(labels[own])), user_id=str(user))

    in_turn = iter(range(10**9))
    users = FederatedDataset(dataset, lambda: next(in_turn) % count)
    module = MatrixFactorisation(given["table"])
    model = WithUsers(
        given["users"], model=module, local_optimizer_create=partial(torch.optim.Adam, fused=True),
        central_optimizer=torch.optim.SGD([module.table], lr=1.0),
    )  # fmt: skip
    backend = SimulatedBackend(training_data=users, val_data=None, postprocessors=[WeightByDatapoints()])
    noting = Noting(out)
    FederatedAveraging().run(
        backend=backend, model=model, send_metrics_to_platform=False,
        algorithm_params=NNAlgorithmParams(
            central_num_iterations=int(given["rounds"]), evaluation_frequency=10**6, train_cohort_size=count,
            val_cohort_size=0,
        ),
        model_train_params=NNTrainHyperParams(
            local_num_epochs=int(given["epochs"]), local_learning_rate=given["rate"].item(),
            local_batch_size=int(given["batch"]),
        ),
        callbacks=[noting],
    )  # fmt: skip
    seconds = [round(after - before, 2) for before, after in zip(noting.marks, noting.marks[1:], strict=False)]
    said = {"versions": {"pfl": version("pfl"), "torch": torch.__version__}, "seconds": seconds}
    Path(out + ".json").write_text(json.dumps(said | {"megabytes": cpu_seconds.peak_megabytes()}))


main(sys.argv[1], sys.argv[2])
