"""FedSASRec's network in NumPy, place by place, and what clients of a small world send."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ownview import FedSASRec
from ownview.messages.upload import Upload
from ownview.parts.sequences.slopes import turned
from ownview.round.federation import Federation
from ownview.seam.client import Product

Matrix = NDArray[np.float64]
Values = dict[str, Matrix]

LENGTH = 6
METHOD = FedSASRec(embedding_size=4, blocks=2, heads=2, length=LENGTH, dropout=0.0, learning_rate=0.01)


def norm(p: Values, name: str, x: Matrix) -> Matrix:
    centred = x - x.mean()
    scaled: Matrix = centred / np.sqrt((centred**2).mean() + 1e-8) * p[f"{name}.scale"]
    return scaled + p[f"{name}.shift"]


def filtered(z: Matrix, root: Matrix, waves: int, causal: bool) -> Matrix:
    """Through the Fourier transform of `LENGTH` places, of which a sequence fills the first ones."""
    found = np.zeros_like(z)
    for t in range(len(z)):
        seen = np.zeros((LENGTH, z.shape[1]))
        there = t + 1 if causal else len(z)
        seen[:there] = z[:there]
        spectrum = np.fft.rfft(seen, axis=0)
        spectrum[waves:] = 0
        low = np.fft.irfft(spectrum, n=LENGTH, axis=0)[t]
        found[t] = low + root**2 * (z[t] - low)
    return found


def states(p: Values, items: list[int], frequency: float = 0.0, waves: int = 2, causal: bool = True) -> Matrix:
    """[n, d] what the network makes of a sequence, one place after the other."""
    d, n = p["items"].shape[1], len(items)
    x = np.array([2.0 * p["items"][item] + p["places"][n - 1 - t] for t, item in enumerate(items)])  # sqrt(4)
    for block in range(2):
        name = f"block{block}.attention"
        z = np.array([norm(p, name, one) for one in x])
        query, key, value = np.split(z @ p[f"{name}.inward"], 3, axis=1)
        added = np.zeros_like(x)
        for t in range(n):
            for number, head in enumerate((slice(0, d // 2), slice(d // 2, d))):
                apart = p[f"{name}.apart"][number, t::-1] if f"{name}.apart" in p else 0.0  # places t, t - 1, ... apart
                near = np.exp(key[: t + 1, head] @ query[t, head] / np.sqrt(d // 2) + apart)
                added[t, head] = near @ value[: t + 1, head] / near.sum()
        seen = added @ p[f"{name}.outward"]
        if frequency:
            passed = filtered(z, p[f"block{block}.filter.root"], waves, causal)
            seen = (1 - frequency) * seen + frequency * passed
        x = x + seen
        name = f"block{block}.forward"
        inner = np.array([norm(p, name, one) for one in x]) @ p[f"{name}.inward"] + p[f"{name}.inward.bias"]
        x = x + np.maximum(inner, 0) @ p[f"{name}.outward"] + p[f"{name}.outward.bias"]
    return np.array([norm(p, "last", one) for one in x])


def cosines(states: Matrix, items: Matrix, temperature: float) -> Matrix:
    """[..., m] over the temperature."""
    lengths = np.linalg.norm(states, axis=-1)[..., None] * np.linalg.norm(items, axis=-1)
    found: Matrix = states @ items.T / lengths / temperature
    return found


def loss(p: Values, items: list[int], horizon: float = 0.0, smoothing: float = 0.0) -> float:
    """The sum over the last `LENGTH` places; each may learn from several targets, the k-th after it by exp(-k / h)."""
    items = items[-LENGTH - 1 :]
    total, targets = 0.0, items[1:]
    for t, row in enumerate(states(p, items[:-1]) @ p["items"].T):
        later = targets[t:] if horizon else targets[t : t + 1]
        weights = [np.exp(-k / horizon) if horizon else 1.0 for k in range(len(later))]
        mean = sum(weight * row[item] for weight, item in zip(weights, later, strict=True)) / sum(weights)
        total += float(np.log(np.exp(row).sum()) - (1 - smoothing) * mean - smoothing * row.mean())
    return total


def loss_of_prefixes(p: Values, items: list[int], frequency: float, horizon: float) -> float:
    """The sum over all beginnings, each a sequence of its own whose last place learns what came after it."""
    total = 0.0
    for cut in range(1, len(items)):
        row = p["items"] @ states(p, items[max(0, cut - LENGTH) : cut], frequency, causal=False)[-1]
        later = items[cut:] if horizon else items[cut : cut + 1]
        weights = [np.exp(-k / horizon) if horizon else 1.0 for k in range(len(later))]
        mean = sum(weight * row[item] for weight, item in zip(weights, later, strict=True)) / sum(weights)
        total += float(np.log(np.exp(row).sum()) - mean)
    return total


def sequence(one: Federation, client: int) -> list[int]:
    found: list[int] = one.split.timeline.items.of(client).tolist()
    return found


def plain(one: Federation) -> Values:
    return {name: value.numpy().copy() for name, value in one.server.shared.items()}


def sent(one: Federation, clients: list[int]) -> Upload:
    block = torch.tensor(clients)
    return one.work.do(one.work.samples(1, block), one.server.download(1, block))


def sums(one: Federation, clients: list[int]) -> dict[str, Tensor]:
    """What clients send, every sum of it written out, and the items' gradient whole."""
    found: dict[str, Tensor] = {}
    for name, value in sent(one, clients).sums.items():
        whole = value.left.mT @ value.right if isinstance(value, Product) else value
        assert isinstance(whole, Tensor), name
        found[name] = whole
    if "along" in found:
        along, items = found.pop("along"), one.server.shared["items"]
        found["gradient.items"] = torch.stack(
            [turned(slope, here, items) for slope, here in zip(found["gradient.items"], along, strict=True)]
        )
    return found
