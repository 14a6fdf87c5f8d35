"""The papers' pictures, of clients that were watched (`--watch`): tables on paper, spectra, weights, paths.

Tables of the first watched user of every variant, as PFedRec's Figure 2, FedRAP's Figure 8, PFedCLR's Figure 6 and
FedEM's Figure 5 show them; singular values as PLGC's Figure 6; W and rho as FedEM's Figures 8 and 9; user vectors with
and without aggregation as PFedCLR's Figures 2 and 5, a run of METHOD with watched clients held against one of METHOD +
late-aggregation with the same seed and protocol.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

from ownview.base.errors import SettingError
from ownview.data.interactions import FloatArray, IntArray
from ownview.reports.reading import SeenRun, Variant
from ownview.runs.findings.skew import skew

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


MOST_TSNE = 16
"""Tables of a report that t-SNE lays out, those of variants with several tables first; it takes about a second each."""

_MOST_POINTS = 300
_MOST_INTERACTED = 120
_RHO_ITEMS = 30
_ABUNDANCE = "abundance "
_ROLES = {"global": 0, "local": 1, "merged": 2}

OTHER, INTERACTED, HELD_OUT = 0, 1, 2
"""What an item is to the user."""


class Watched(NamedTuple):
    """A run whose clients were watched: `place` of its variant, and the protocol's name."""

    place: int
    protocol: str
    run: SeenRun

    @property
    def about(self) -> dict[str, Any]:
        """What every picture says of where it comes from."""
        return {"variant": self.place, "protocol": self.protocol}

    @property
    def users(self) -> list[str]:
        """Watched users."""
        return list(self.run.watched[1]["users"]) if self.run.watched is not None else []


class Table(NamedTuple):
    """An item table [m, d] of a client and what it is to it."""

    name: str
    role: str
    values: FloatArray


def client_tables(run: SeenRun, user: str) -> list[Table]:
    """The client's item tables as wide as its widest, global before local before merged."""
    if run.watched is None or run.recommended is None:
        return []
    tensors, about = run.watched
    roles = {**about.get("roles", {}), "merged": "merged"}
    items = len(run.recommended[0]["popularity"])
    found = []
    for key, value in tensors.items():
        name = key.removeprefix(f"{user}.")
        if name != key and value.dim() == 2 and len(value) == items and value.shape[1] > 1:
            found.append(Table(name, roles.get(name, "table"), value.numpy().astype(float)))
    widest = max((table.values.shape[1] for table in found), default=0)
    wide = [table for table in found if table.values.shape[1] == widest]
    return sorted(wide, key=lambda table: (_ROLES.get(table.role, 3), table.name))


def layouts(watched: Iterable[Watched], most_tsne: int = MOST_TSNE) -> list[dict[str, Any]]:
    """Item tables of the first watched user of each, two coordinates an item, and what the item is to the user."""
    first = [(one, one.users[0]) for one in watched if one.users]
    chosen = [
        (one, user, marks, client_tables(one.run, user))
        for one, user in first
        if (marks := _marks(one.run, user)) is not None
    ]
    chosen.sort(key=lambda entry: -len(entry[3]))
    left = most_tsne if has_tsne() else 0
    found = []
    for one, user, marks, tables in chosen:
        kept = _some(marks)
        by_tsne = left >= len(tables)
        left -= len(tables) if by_tsne else 0
        drawn = [
            {"name": table.name, "role": table.role, "points": _rounded(project(table.values[kept], tsne=by_tsne))}
            for table in tables
        ]
        by = "t-SNE" if by_tsne else "PCA"
        found.append({**one.about, "user": user, "by": by, "marks": marks[kept].tolist(), "tables": drawn})
    return sorted(found, key=lambda one: one["variant"])


def spectra(watched: Iterable[Watched]) -> list[dict[str, Any]]:
    """Singular values of the tables of up to two watched users; information abundance is their sum over the largest."""
    found = []
    for one in watched:
        for user in one.users[:2]:
            tables = []
            for table in client_tables(one.run, user):
                values = np.linalg.svd(table.values, compute_uv=False)
                abundance = float(values.sum() / values.max()) if values.max() > 0 else 0.0
                rounded = [float(f"{value:.5g}") for value in values]
                tables.append({"name": table.name, "role": table.role, "values": rounded, "abundance": abundance})
            if tables:
                rounds = _abundance_by_round(one.run, user)
                found.append({**one.about, "user": user, "tables": tables, "rounds": rounds})
    return found


def _abundance_by_round(run: SeenRun, user: str) -> dict[str, list[float]]:
    """By table, where the method reads it every round (plug-in plgc)."""
    lines = [line["watched"][user] for line in run.rounds if user in (line.get("watched") or {})]
    columns = [name for name in (lines[0] if lines else {}) if name.startswith(_ABUNDANCE)]
    names = [name for name in columns if all(line.get(name) for line in lines)]
    return {name.removeprefix(_ABUNDANCE): [round(line[name][0], 4) for line in lines] for name in names}


def weights(watched: Iterable[Watched]) -> list[dict[str, Any]]:
    """How much of whose upload each watched client receives: the part of W among the watched ones."""
    found = []
    for one in watched:
        tensors, about = one.run.watched or ({}, {})
        users, positions = one.users, about.get("positions")
        rows = [value for user in users for key, value in tensors.items() if key.startswith(f"{user}.weights of ")]
        if len(rows) != len(users) or len(users) < 2 or positions is None:
            continue
        matrix = np.array([row.numpy()[positions] for row in rows], float)
        among = len(rows[0])
        found.append({**one.about, "users": users, "clients": among, "matrix": _rounded(matrix)})
    return found


def merging(watched: Iterable[Watched]) -> list[dict[str, Any]]:
    """Rho of the first items for every watched client, and its mean over items the user has and the others."""
    found = []
    for one in watched:
        tensors, _ = one.run.watched or ({}, {})
        users = [user for user in one.users if f"{user}.rho" in tensors]
        rows = [tensors[f"{user}.rho"].numpy().astype(float) for user in users]
        if not rows:
            continue
        marks = [_marks(one.run, user) for user in users]
        split = [
            None if mark is None else [float(row[mark == INTERACTED].mean()), float(row[mark == OTHER].mean())]
            for row, mark in zip(rows, marks, strict=True)
        ]
        matrix = np.array([row[:_RHO_ITEMS] for row in rows])
        found.append({**one.about, "users": users, "matrix": _rounded(matrix), "means": split})
    return found


def _marks(run: SeenRun, user: str) -> IntArray | None:
    """[m] what each item is to the user; None where the run has not recorded it."""
    if run.recommended is None:
        return None
    tensors, about = run.recommended
    sample = next((one for one in about["samples"] if one["user"] == user), None)
    if sample is None:
        return None
    marks = np.zeros(len(tensors["popularity"]), np.int64)
    marks[sample["history"]] = INTERACTED
    held_out = [*sample["validation"], *sample["test"]]
    marks[held_out] = HELD_OUT
    return marks


def _some(marks: IntArray) -> IntArray:
    """Places of at most `_MOST_POINTS` items, drawn by a fixed seed: held-out ones, interacted ones, and others."""
    random = np.random.default_rng(0)
    held_out = np.flatnonzero(marks == HELD_OUT)
    interacted = np.flatnonzero(marks == INTERACTED)
    if len(interacted) > _MOST_INTERACTED:
        interacted = random.choice(interacted, _MOST_INTERACTED, replace=False)
    others = np.flatnonzero(marks == OTHER)
    room = _MOST_POINTS - len(held_out) - len(interacted)
    if len(others) > room:
        others = random.choice(others, room, replace=False)
    return np.concatenate([others, interacted, held_out])  # drawn in this order, the few on top


def _rounded(matrix: FloatArray) -> list[list[float]]:
    return [[float(f"{value:.4g}") for value in row] for row in matrix]


def watched_runs(variants: Sequence[Mapping[str, Sequence[SeenRun]]]) -> list[Watched]:
    """One run of each variant and protocol whose clients were watched, the first seed that has any."""
    return [
        Watched(place, protocol, next(run for run in runs if run.watched is not None))
        for place, by_protocol in enumerate(variants)
        for protocol, runs in by_protocol.items()
        if any(run.watched is not None for run in runs)
    ]


_WITHOUT = "late-aggregation"
_VECTOR = "user"


def trajectories(found: Sequence[Variant]) -> list[dict[str, Any]]:
    """For every pair, protocol and watched user: both paths in their common main directions, and the skew."""
    made = []
    for place, variant in enumerate(found):
        for partner in found:
            if not _apart_by_aggregation(variant, partner):
                continue
            for protocol in variant.runs:
                made += [
                    {"variant": place, "protocol": protocol, "without": partner.label, **pair}
                    for pair in _pairs(variant.runs[protocol], partner.runs.get(protocol, []))
                ]
    return made


def _apart_by_aggregation(one: Variant, other: Variant) -> bool:
    """Whether the other is the first with late aggregation around it, all else equal."""
    rest = {name: value for name, value in other.settings.items() if not name.startswith(f"{_WITHOUT}.")}
    return rest["method"] == f"{one.settings['method']} + {_WITHOUT}" and all(
        rest.get(name) == value for name, value in one.settings.items() if name != "method"
    )


def _pairs(runs: Sequence[SeenRun], partners: Sequence[SeenRun]) -> list[dict[str, Any]]:
    """Paths of the first pair of runs with a common seed."""
    pairs = ((run, other) for run in runs for other in partners if run.experiment.seed == other.experiment.seed)
    return next((_paths(*pair) for pair in pairs), [])


def _paths(run: SeenRun, partner: SeenRun) -> list[dict[str, Any]]:
    users = [user for user in run.experiment.watch if user in partner.experiment.watch]
    try:
        apart = skew(run, partner, _VECTOR) if users else {}
    except SettingError:  # a method without such a vector, or other users watched
        return []
    made = []
    for user in users:
        paths = [np.array([line["watched"][user][_VECTOR] for line in one.rounds]) for one in (run, partner)]
        points, first = _rounded(main_directions(np.concatenate(paths))), len(paths[0])
        driven = [round(value, 5) for value in apart[user]]
        made.append({"user": user, "paths": [points[:first], points[first:]], "skew": driven})
    return made
