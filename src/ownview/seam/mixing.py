"""How a server mixes the clients' uploads into a table for each client: a matrix of weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import torch
from torch import Tensor
from torch.nn.functional import normalize, one_hot

from ownview.seam.clusters import cluster


@dataclass(frozen=True, eq=False)
class Known:
    """The server's knowledge of the c clients that have uploaded.

    Args:
        uploads: [c, values], the latest upload of each client.
        shares: [c] of the training data, summing to 1.
        initial: [values] the table everybody started from.
        reported: by name [c, ...], the newest values of `reported` parameters that the server has seen.
        key: random number of the run, for rules that need one.
        round: that has just ended, from 1.
        clients: [c] their identities, ascending.
        every: by name [c, values], the latest uploads of everything that is mixed: a network has several.
        memory: the rule's state by name, as it returned it last; empty at first.
    """

    uploads: Tensor
    shares: Tensor
    initial: Tensor
    reported: Mapping[str, Tensor] = field(default_factory=dict)
    key: int = 0
    round: int = 0
    clients: Tensor = field(default_factory=lambda: torch.zeros(0, dtype=torch.long))
    every: Mapping[str, Tensor] = field(default_factory=dict)
    memory: Mapping[str, Tensor] = field(default_factory=dict)


class Mixing(Protocol):
    """Weights from what the server knows."""

    def weights(self, known: Known) -> Tensor | tuple[Tensor, Mapping[str, Tensor]]:
        """[c, c], row u: how much of each upload client u receives. Rows are not negative and sum to 1.

        A rule with state also returns that: tensors by name, of any shape, for the next `Known.memory`.
        """


@dataclass(frozen=True)
class Similarity:
    """FedEM's rule: w_u minimises sum_v (w_uv - p_v)^2 + alpha (w_uv - s_uv)^2 over the simplex.

    s_uv = 1 / (1 + |Q_u - Q_v|^2), p the shares. Completing the square, that is the Euclidean projection of
    (p + alpha s_u) / (1 + alpha) onto the simplex.
    """

    alpha: float

    def weights(self, known: Known) -> Tensor:
        """[c, c] the projections, row by row."""
        similar = 1 / (1 + squared_distances(known.uploads))
        return project_onto_simplex((known.shares + self.alpha * similar) / (1 + self.alpha))


@dataclass(frozen=True)
class ComponentSimilarity:
    """What FedEM's released code does instead: compare tables along one direction.

    Similarity is 1 / (1 + |c_u - c_v|) with c_u [m] the rows of table Q_u along their first principal component, set to
    1 above 0.9; weights are the projection of p + alpha s_u.

    Args:
        alpha: weight of the similarity.
        width: of a table's rows.
    """

    alpha: float
    width: int

    def weights(self, known: Known) -> Tensor:
        """[c, c] the projections, row by row."""
        tables = known.uploads.reshape(len(known.uploads), -1, self.width)
        centred = tables - tables.mean(1, keepdim=True)
        directions = torch.linalg.eigh(centred.mT @ centred).eigenvectors[..., -1:]
        components = (centred @ directions)[..., 0]
        # A direction's sign is arbitrary; the longest row's is made positive, so that equal tables are equal.
        leading = components.gather(1, components.abs().argmax(1, keepdim=True))
        similar = 1 / (1 + squared_distances(components * leading.sign()).sqrt())
        similar = torch.where(similar > 0.9, 1.0, similar)
        return project_onto_simplex(known.shares + self.alpha * similar)


@dataclass(frozen=True)
class UpdateSimilarity:
    """pFedGraph's rule: w_u minimises sum_v w_uv d_uv + alpha sum_v (w_uv - p_v)^2 over the simplex.

    d_uv = -cos(Q_u - Q_0, Q_v - Q_0), Q_0 the initial table, p the shares. Completing the square, that is the Euclidean
    projection of p - d_u / (2 alpha) onto the simplex. The cosine with an upload that equals Q_0 is 0.
    """

    alpha: float

    def weights(self, known: Known) -> Tensor:
        """[c, c] the projections, row by row."""
        directions = normalize(known.uploads - known.initial, dim=1)
        return project_onto_simplex(known.shares + directions @ directions.T / (2 * self.alpha))


@dataclass(frozen=True)
class NeighbourGraph:
    """GPFedRec's rule: the plain mean of a client's neighbours, those whose similarity is above tau times the mean.

    s_uv = cos(Q_u, Q_v); the mean is over all pairs, a client with itself included. A client is its own neighbour where
    s_uu passes, like any other; one without neighbours receives its own upload.

    Args:
        threshold: tau.
        distances: take 1 - cos for the similarity, as the released code does: the most unlike become neighbours.
    """

    threshold: float
    distances: bool = False

    def weights(self, known: Known) -> Tensor:
        """[c, c] 1 / (number of neighbours) for each of them."""
        # |x - y|^2 = 2 (1 - cos) of unit vectors; what little tables of one federation differ by survives that way.
        apart = squared_distances(normalize(known.uploads, dim=1)) / 2
        similar = apart if self.distances else 1 - apart
        near = similar > self.threshold * similar.mean()
        alone = torch.eye(len(near), dtype=torch.bool, device=near.device)
        near = torch.where(near.any(1, keepdim=True), near, alone).to(known.uploads.dtype)
        return near / near.sum(1, keepdim=True)


@dataclass(frozen=True)
class ClusterMean:
    """PerFedRec's rule: the plain mean of the client's cluster; clusters by k-means of a reported value.

    Args:
        by: name of the value.
        clusters: how many.
    """

    by: str
    clusters: int

    def weights(self, known: Known) -> Tensor:
        """[c, c] 1 / (size of the cluster) for everybody in it."""
        found = cluster(known.reported[self.by].flatten(1), self.clusters, known.key)
        members = one_hot(found, self.clusters).to(known.uploads)
        together = members @ members.T
        return together / together.sum(1, keepdim=True)


def squared_distances(points: Tensor) -> Tensor:
    """[c, c] |x_u - x_v|^2 of points [c, values]; exactly 0 on the diagonal.

    Points are centred first: tables of one federation differ little compared with their length, and products of long
    vectors would lose that little.
    """
    products = products_of_all(points - points.mean(0))
    lengths = products.diagonal()
    found = (lengths[:, None] + lengths - 2 * products).clamp(min=0)
    return found.fill_diagonal_(0)


def products_of_all(points: Tensor, together: int = 128) -> Tensor:
    """[c, c] X X^T of points X [c, values], for little over half the work of a full product.

    Args:
        points: [c, values].
        together: rows of a strip that begins at the diagonal; what is below a strip is its mirror image.
    """
    found = points.new_empty(len(points), len(points))
    for start in range(0, len(points), together):
        here, beyond = slice(start, start + together), slice(start + together, None)
        found[here, start:] = points[here] @ points[start:].T
        found[beyond, here] = found[here, beyond].T
    return found


def project_onto_simplex(points: Tensor) -> Tensor:
    """[c, k] -> [c, k]: for every row the nearest point with entries >= 0 that sum to 1.

    x_i = max(v_i - t, 0) with t = (v_(1) + ... + v_(r) - 1) / r over the r largest entries, r the largest number with
    v_(r) > t. Entries of -inf stay out: their weight is 0.
    """
    # Only differences matter. Counted from the largest entry, no large number common to all swallows the 1.
    points = points - points.amax(dim=1, keepdim=True)
    falling = points.sort(dim=1, descending=True).values
    possible = falling.isfinite()
    sums = torch.where(possible, falling, 0).cumsum(1)
    ranks = torch.arange(1, points.shape[1] + 1, device=points.device, dtype=points.dtype)
    inside = possible & (falling * ranks > sums - 1)
    count = inside.sum(1, keepdim=True)
    threshold = (sums.gather(1, count - 1) - 1) / count
    return (points - threshold).clamp(min=0)
