"""The server's side of personal aggregation: the latest upload of every client, and a mixture for each."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from ownview.seam.mixing import Known, Mixing
from ownview.seam.training import Params


class Mixtures:
    """A table for each client: sum over v of w_uv Q_v, Q_v the latest upload of client v.

    Clients that never uploaded are no part of any mixture; one of them receives the mean of the others by their shares.
    Before anybody has uploaded, everybody receives the initial table.

    Args:
        rule: gives the weights.
        initial: [m, ...] the table everybody starts from.
        sizes: [n] training samples of each client.
        key: random number of the run, for the rule.
    """

    def __init__(self, rule: Mixing, initial: Tensor, sizes: Tensor, key: int = 0) -> None:
        self.rule, self.initial, self.sizes, self.key = rule, initial, sizes, key
        count = len(sizes)
        self.uploads = torch.zeros(count, initial.numel(), dtype=initial.dtype, device=initial.device)
        self.known = torch.zeros(count, dtype=torch.bool, device=initial.device)
        self.weights = torch.zeros(count, count, dtype=initial.dtype, device=initial.device)
        self.arrived: list[tuple[Tensor, Tensor]] = []

    def sent(self, clients: Tensor) -> Tensor:
        """[B, m, ...] what these clients receive."""
        mixed = self.weights[clients] @ self.uploads
        return torch.where(self.known.any(), mixed.reshape(-1, *self.initial.shape), self.initial)

    def take(self, clients: Tensor, uploads: Tensor) -> None:
        """Note some clients' uploads [B, m, ...]; until `mix`, others still receive the mixtures of before."""
        self.arrived.append((clients, uploads.reshape(len(clients), -1)))

    def mix(self, reported: Params) -> None:
        """Work out the weights anew, once a round's uploads are in.

        Args:
            reported: by name [n, ...], values the server has seen of every client.
        """
        for clients, uploads in self.arrived:
            self.uploads[clients] = uploads
            self.known[clients] = True
        self.arrived.clear()
        known = self.known.nonzero()[:, 0]
        if not len(known):
            return
        shares = self.sizes[known].to(self.uploads.dtype)
        shares = shares / shares.sum()
        self.weights.zero_()
        self.weights[:, known] = shares
        everybody = len(known) == len(self.known)
        latest = self.uploads if everybody else self.uploads[known]
        seen = {name: value[known] for name, value in reported.items()}
        facts = Known(latest, shares, self.initial.reshape(-1), seen, self.key)
        self.weights[known[:, None], known] = self.rule.weights(facts)

    def common(self) -> Tensor:
        """[m, ...] plain mean of the mixtures of all clients that have uploaded; the initial table before that."""
        if not bool(self.known.any()):
            return self.initial
        return (self.weights[self.known].mean(0) @ self.uploads).reshape(self.initial.shape)

    def mean(self) -> Tensor:
        """[m, ...] mean of the latest uploads by their clients' samples; the initial table before there are any."""
        sizes = torch.where(self.known, self.sizes, 0).to(self.uploads.dtype)
        if not bool(self.known.any()):
            return self.initial
        return (sizes / sizes.sum() @ self.uploads).reshape(self.initial.shape)

    def pack(self) -> dict[str, Tensor]:
        """Everything by name, for a checkpoint."""
        return {"uploads": self.uploads, "known": self.known, "weights": self.weights}

    def unpack(self, packed: Mapping[str, Tensor]) -> None:
        """Restore what `pack` returned."""
        for name in ("uploads", "known", "weights"):
            setattr(self, name, packed[name].to(self.initial.device))
