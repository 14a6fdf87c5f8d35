"""FedMF in Flower's simulation: a ClientApp, FedAvg and Ray; a client's vector lies in its node's state.

Ray's workers import this file as a module, so that what they keep is kept: a function of a script travels to them anew
with every task. Where to read and write is in the environment, which they share.
"""

from __future__ import annotations

import json
import os
import sys
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import cpu_seconds
import flwr
import numpy as np
import torch
from flwr.app import ArrayRecord, ConfigRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg
from flwr.simulation import run_simulation

PROBLEM, OUT = "FEDMF_PROBLEM", "FEDMF_OUT"
client_app, server_app = ClientApp(), ServerApp()


@cache
def _problem() -> dict[str, Any]:
    """Read once a process."""
    torch.set_num_threads(1)
    return dict(np.load(os.environ[PROBLEM]))


@client_app.train()
def train(message: Message, context: Context) -> Message:
    """Local epochs of Adam on the client's samples."""
    given, client = _problem(), int(context.node_config["partition-id"])
    own = slice(given["offsets"][client], given["offsets"][client + 1])
    items, labels = torch.from_numpy(given["items"][own]), torch.from_numpy(given["labels"][own])
    table = message.content["arrays"].to_torch_state_dict()["table"].clone().requires_grad_()
    kept = context.state.get("own")
    user = torch.from_numpy(given["users"][client]) if kept is None else kept.to_torch_state_dict()["user"]
    user = user.clone().requires_grad_()
    optimizer = torch.optim.Adam([user, table], lr=given["rate"].item(), fused=True)
    for _ in range(int(given["epochs"])):
        for chosen in torch.randperm(len(items)).split(int(given["batch"])):
            optimizer.zero_grad()
            logits = table[items[chosen]] @ user
            torch.nn.functional.binary_cross_entropy_with_logits(logits, labels[chosen]).backward()
            optimizer.step()
    context.state["own"] = ArrayRecord({"user": user.detach()})
    content = {
        "arrays": ArrayRecord({"table": table.detach()}),
        "metrics": MetricRecord({"num-examples": len(items), "client": client, **_numbers(user)}),
    }
    return Message(content=RecordDict(content), reply_to=message)


def _numbers(user: torch.Tensor) -> dict[str, float]:
    """A client's vector, for the comparison of losses alone."""
    return {f"u{k:02d}": float(value) for k, value in enumerate(user.detach())}


class Noting(FedAvg):
    """FedAvg that notes CPU-seconds between rounds and the values after the first."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.marks = [cpu_seconds.of_tree()]

    def aggregate_train(self, server_round: int, replies: Any) -> Any:
        """The mean, as FedAvg makes it."""
        replies = list(replies)
        failed = [one for one in replies if one.has_error()]
        if failed:
            raise RuntimeError(f"{len(failed)} clients failed: {failed[0].error}")
        made = super().aggregate_train(server_round, replies)
        self.marks.append(cpu_seconds.of_tree())
        if server_round == 1:
            users = np.zeros_like(_problem()["users"])
            for one in replies:
                said = one.content["metrics"]
                users[int(said["client"])] = [said[f"u{k:02d}"] for k in range(users.shape[1])]
            np.savez(os.environ[OUT] + ".npz", users=users, table=made[0].to_torch_state_dict()["table"].numpy())
        return made


@server_app.main()
def serve(grid: Grid, context: Context) -> None:
    """All rounds; everybody takes part."""
    given = _problem()
    clients = len(given["offsets"]) - 1
    strategy = Noting(
        fraction_train=1.0, fraction_evaluate=0.0, min_train_nodes=clients, min_available_nodes=clients,
        train_metrics_aggr_fn=lambda records, weight: MetricRecord(),
    )  # fmt: skip
    start = ArrayRecord({"table": torch.from_numpy(given["table"])})
    strategy.start(grid=grid, initial_arrays=start, train_config=ConfigRecord(), num_rounds=int(given["rounds"]))
    seconds = [round(after - before, 2) for before, after in pairwise(strategy.marks)]
    said = {"versions": {"flwr": flwr.__version__}, "seconds": seconds, "megabytes": cpu_seconds.peak_megabytes()}
    Path(os.environ[OUT] + ".json").write_text(json.dumps(said))


if __name__ == "__main__":
    os.environ |= {PROBLEM: sys.argv[1], OUT: sys.argv[2], "PYTHONPATH": str(Path(__file__).parent)}
    import flower_fedmf as apps

    run_simulation(
        apps.server_app, apps.client_app, len(apps._problem()["offsets"]) - 1,
        backend_config={"client_resources": {"num_cpus": 1}, "init_args": {"num_cpus": 1}},
    )  # fmt: skip
