"""FedMF in FedJAX: `for_each_client`, whose step is compiled; a client's vector is its own input and output.

Batches of an epoch are padded to one size with a mask, so that one step is compiled for all clients: without that JAX
compiles anew for every size of a last batch.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import cpu_seconds
import fedjax
import jax
import jax.numpy as jnp
import numpy as np
import optax


def main(problem: str, out: str) -> None:  # noqa: C901 - one page, as a user would write it
    """Train, and write what came out after the first round."""
    given = np.load(problem)
    offsets, items, labels = given["offsets"], given["items"], given["labels"]
    epochs, size, rounds, rate = (given[name].item() for name in ("epochs", "batch", "rounds", "rate"))
    size = min(size, int(np.diff(offsets).max()))
    users, table = jnp.asarray(given["users"]), jnp.asarray(given["table"])
    optimizer = optax.adam(rate, eps=1e-8)

    def loss(params: Any, batch: Any) -> Any:
        logits = params["table"][batch["items"]] @ params["user"]
        each = optax.sigmoid_binary_cross_entropy(logits, batch["labels"])
        return (each * batch["mask"]).sum() / batch["mask"].sum()

    def begin(shared: Any, own: Any) -> Any:
        params = {"table": shared, "user": own}
        return {"params": params, "memory": optimizer.init(params), "table": shared}

    def step(state: Any, batch: Any) -> Any:
        moved, memory = optimizer.update(jax.grad(loss)(state["params"], batch), state["memory"])
        return {**state, "params": optax.apply_updates(state["params"], moved), "memory": memory}

    def end(shared: Any, state: Any) -> Any:
        return {"change": state["params"]["table"] - shared, "user": state["params"]["user"]}

    each_client = fedjax.for_each_client(begin, step, end)

    def batches(client: int, random: np.random.Generator) -> Iterator[Any]:
        own = slice(offsets[client], offsets[client + 1])
        count = offsets[client + 1] - offsets[client]
        for _ in range(epochs):
            order = random.permutation(count)
            for first in range(0, count, size):
                chosen = order[first : first + size]
                wide = np.zeros(size, np.int64)
                wide[: len(chosen)] = chosen
                mask = (np.arange(size) < len(chosen)).astype(np.float32)
                yield {"items": items[own][wide], "labels": labels[own][wide], "mask": mask}

    seconds, random = [], np.random.default_rng(0)
    for number in range(rounds):
        start = cpu_seconds.of_tree()
        clients = [(client, batches(client, random), users[client]) for client in range(len(offsets) - 1)]
        total, new = jnp.zeros_like(table), {}
        for client, sent in each_client(table, clients):
            total = total + sent["change"] * float(offsets[client + 1] - offsets[client])
            new[client] = sent["user"]
        table = table + total / float(offsets[-1])
        users = jnp.stack([new[client] for client in range(len(users))])
        jax.block_until_ready((table, users))
        seconds.append(round(cpu_seconds.of_tree() - start, 2))
        if not number:
            np.savez(out + ".npz", users=np.asarray(users), table=np.asarray(table))
    versions = {name: version(name) for name in ("fedjax", "jax")}
    said = {"versions": versions, "seconds": seconds, "megabytes": cpu_seconds.peak_megabytes()}
    Path(out + ".json").write_text(json.dumps(said))


main(sys.argv[1], sys.argv[2])
