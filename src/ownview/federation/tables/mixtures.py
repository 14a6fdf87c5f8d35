"""Tables that the server mixes for every single client."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from ownview.base.errors import TrainingError
from ownview.seam.mixing import Known, Mixing
from ownview.seam.training import Params

_PACKED = ("uploads", "sizes", "known", "weights")
_MEMORY = "memory."


class Mixtures:
    """A table for each client: sum over v of w_uv Q_v, Q_v the latest upload of client v.

    Clients that never uploaded are no part of any mixture; one of them receives the mean of the others by their shares.
    Before the first upload every client receives the initial table.

    Args:
        rule: gives the weights.
        initial: [m, ...] the table everybody starts from.
        count: n, of clients.
        key: random number of the run, for the rule.
    """

    def __init__(self, rule: Mixing, initial: Tensor, count: int, key: int = 0) -> None:
        self.rule, self.initial, self.key = rule, initial, key
        self.sizes = torch.zeros(count, dtype=torch.long, device=initial.device)
        self.uploads = torch.zeros(count, initial.numel(), dtype=initial.dtype, device=initial.device)
        self.known = torch.zeros(count, dtype=torch.bool, device=initial.device)
        self.weights = torch.zeros(count, count, dtype=initial.dtype, device=initial.device)
        self.memory: Params = {}
        self.arrived: list[tuple[Tensor, Tensor, Tensor]] = []

    def sent(self, clients: Tensor) -> Tensor:
        """[B, m, ...] what these clients receive."""
        mixed = self.weights[clients] @ self.uploads
        return torch.where(self.known.any(), mixed.reshape(-1, *self.initial.shape), self.initial)

    def take(self, clients: Tensor, uploads: Tensor, samples: Tensor) -> None:
        """Note uploads; until `mix`, clients still receive the mixtures of before.

        Args:
            clients: [B] identities.
            uploads: [B, m, ...] their tables.
            samples: [B] how many they trained on.
        """
        self.arrived.append((clients, uploads.reshape(len(clients), -1), samples))

    def settle(self) -> None:
        """A round's uploads are in: they are the latest from now on."""
        for clients, uploads, samples in self.arrived:
            self.uploads[clients] = uploads
            self.sizes[clients] = samples
            self.known[clients] = True
        self.arrived.clear()

    def mix(
        self, number: int, reported: Params, every: Mapping[str, Mixtures], receiving: Tensor | None = None
    ) -> None:
        """Work out the weights anew, once a round's uploads are settled.

        Args:
            number: of the round.
            reported: by name [n, ...], values the server has seen of every client.
            every: by name, all that is mixed, this among it.
            receiving: [n] True for the clients whose tables alone are mixed, for them alone; all others that have
                uploaded get their own back. None for everybody.
        """
        if not bool(self.known.any()):
            return
        self.weights.zero_()
        self.weights[:, self.known] = self._shares(self.known)
        among = self.known
        if receiving is not None:
            among, apart = self.known & receiving, (self.known & ~receiving).nonzero()[:, 0]
            self.weights[self.known] = 0
            self.weights[apart, apart] = 1
        chosen = among.nonzero()[:, 0]
        if not len(chosen):
            return
        latest = self.uploads if len(chosen) == len(among) else self.uploads[chosen]
        seen = {name: value[chosen] for name, value in reported.items()}
        beside = {name: latest if one is self else one.uploads[chosen] for name, one in every.items()}
        shares, start = self._shares(among), self.initial.reshape(-1)
        facts = Known(latest, shares, start, seen, self.key, number, chosen, beside, self.memory)
        found = self.rule.weights(facts)
        weights, kept = found if isinstance(found, tuple) else (found, {})
        self.memory = dict(kept)
        expected = (len(chosen), len(chosen))
        if weights.shape != expected:
            raise TrainingError(f"{type(self.rule).__name__}: weights came as {tuple(weights.shape)}, not {expected}")
        self.weights[chosen[:, None], chosen] = weights.to(self.weights)

    def _shares(self, among: Tensor) -> Tensor:
        """[c] of the training data of those clients, by [n] True for each of them."""
        sizes = self.sizes[among].to(self.uploads.dtype)
        return sizes / sizes.sum()

    def common(self) -> Tensor:
        """[m, ...] plain mean of the mixtures of all clients that have uploaded; the initial table before that."""
        return self._mixed(self.weights[self.known].mean(0))

    def mean(self) -> Tensor:
        """[m, ...] mean of the latest uploads by their clients' samples; the initial table before there are any."""
        sizes = torch.where(self.known, self.sizes, 0).to(self.uploads.dtype)
        return self._mixed(sizes / sizes.sum())

    def _mixed(self, weights: Tensor) -> Tensor:
        """[m, ...] uploads by weights [n]; the initial table before there are any."""
        mixed = (weights @ self.uploads).reshape(self.initial.shape)
        return mixed if bool(self.known.any()) else self.initial

    def pack(self) -> dict[str, Tensor]:
        """Everything by name, for a checkpoint."""
        kept = {_MEMORY + name: value for name, value in self.memory.items()}
        return {name: getattr(self, name) for name in _PACKED} | kept

    def unpack(self, packed: Mapping[str, Tensor]) -> None:
        """Restore what `pack` returned."""
        for name in _PACKED:
            # Models of earlier versions have no sizes; predictions do not need them.
            setattr(self, name, packed.get(name, getattr(self, name)).to(self.initial.device, copy=True))
        kept = ((name.removeprefix(_MEMORY), value) for name, value in packed.items() if name.startswith(_MEMORY))
        self.memory = {name: value.to(self.initial.device, copy=True) for name, value in kept}
