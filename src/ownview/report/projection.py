"""Points of many dimensions on paper: t-SNE where scikit-learn is installed, else the two main directions."""

from __future__ import annotations

import warnings
from importlib.util import find_spec

import numpy as np

from ownview.data.interactions import FloatArray

_PERPLEXITY = 30.0


def has_tsne() -> bool:
    """Whether scikit-learn is here (extra `report`)."""
    return find_spec("sklearn") is not None


def project(points: FloatArray, *, tsne: bool) -> FloatArray:
    """[k, 2] of points [k, d], in [0, 1] with equal scales on both axes.

    t-SNE has a fixed seed and starts from the main directions, so that equal tables give equal pictures.
    """
    flat = _tsne(points) if tsne and len(points) > 3 else main_directions(points)
    low, high = flat.min(0), flat.max(0)
    span = float((high - low).max()) or 1.0
    return np.asarray(0.5 + (flat - (low + high) / 2) / span)


def main_directions(points: FloatArray) -> FloatArray:
    """[k, 2] coordinates along the two directions of largest variance (PCA)."""
    centred = points - points.mean(0)
    left, values, _ = np.linalg.svd(centred, full_matrices=False)
    flat = np.zeros((len(points), 2))
    flat[:, : min(2, len(values))] = (left * values)[:, :2]
    return flat


def _tsne(points: FloatArray) -> FloatArray:
    from sklearn.manifold import TSNE  # noqa: PLC0415 - an extra, and slow to import

    spread = float(points.std()) or 1.0
    perplexity = min(_PERPLEXITY, (len(points) - 1) / 3)
    model = TSNE(perplexity=perplexity, init="pca", random_state=0, max_iter=400)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # rows that are all equal have no direction
        return np.asarray(model.fit_transform(points / spread), float)
