"""A picture of a protocol: what trains, what is known and what is asked, on one timeline a user.

It is drawn from what the protocol's own split makes of five example users, so it cannot say anything else than the
code does.
"""

from __future__ import annotations

from dataclasses import replace
from html import escape

import numpy as np

from ownview.base.errors import OwnviewError
from ownview.data.interactions import Interactions
from ownview.data.questions import Question
from ownview.data.sittings import DAY
from ownview.data.splitting.causal_splits import moment_at
from ownview.data.splitting.splits import Split
from ownview.evaluation.protocol import CAUSAL, Protocol

_SITTINGS = (
    ((1, 4), (12, 3), (45, 3)),
    ((3, 5), (30, 2), (54, 2)),
    ((8, 3), (20, 3), (52, 2)),
    ((5, 3), (38, 3)),
    ((25, 4), (47, 3)),
)
"""By user: the day on which a sitting begins, and how many items it has."""

_STEP, _LANE, _LEFT, _TOP, _WIDTH, _DAYS = 12, 34, 70, 30, 760, 60
_KINDS = {
    "trains": "trains",
    "known": "known when asked, not trained on",
    "validation": "asked to choose rounds and settings",
    "test": "asked at the end",
    "unused": "not used",
}
"""What an item can be to a model, and in words."""

_STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#33363d}.trains{fill:#2f6fb4}.known{fill:#fff;stroke:#2f6fb4;"
    "stroke-width:2.5}.validation{fill:#e0a100}.test{fill:#c8402f}.unused{fill:#c9ccd3}.lane{stroke:#d9dce2}"
    ".cut{stroke:#33363d;stroke-dasharray:4 3}"
)


def picture(protocol: Protocol) -> str:
    """An SVG image; empty where the protocol cannot split the example, such as one that reads its split from files."""
    data = example()
    split = _split(protocol, data)
    if split is None:
        return ""
    kinds = kinds_of_rows(split, data)
    height = _TOP + _LANE * len(_SITTINGS) + 56
    parts = [f'<rect width="{_WIDTH}" height="{height}" rx="8" fill="#fbfbfc"/>', *_cuts(protocol, data)]
    known = "its training and its validation items" if protocol.knows_validation else "its training items"
    if protocol.split not in CAUSAL:
        parts.append(f'<text x="12" y="18">when it is asked at the end, a client knows {known}</text>')
    parts += _lanes(kinds) + _legend(kinds, height - 34)
    title = f"What protocol {protocol.name} trains on, knows and asks"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}" '
        f'role="img"><title>{escape(title)}</title><style>{_STYLE}</style>{"".join(parts)}</svg>\n'
    )


def _split(protocol: Protocol, data: Interactions) -> Split | None:
    """The split with the first fold of users, by a hash of their ids, that can be prepared; None if none can."""
    wanted = replace(protocol, min_interactions=0, min_item_interactions=0, candidates=0, same_candidates=False)
    for fold in range(round(1 / protocol.newcomers)):
        try:
            return replace(wanted, fold=fold).prepare(data)
        except OwnviewError:
            continue
    return None


def example() -> Interactions:
    """Five users with a few sittings each; items are numbered along a user's history, later users take other ones."""
    users, items, times = [], [], []
    for user, sittings in enumerate(_SITTINGS):
        count = 0
        for day, length in sittings:
            for place in range(length):
                users.append(f"user {user + 1}")
                items.append(f"{(user * 3 + count) % 12}")
                times.append(day * DAY + place * 600)
                count += 1
    return Interactions.from_rows("example", np.array(users), np.array(items), timestamp=np.array(times))


def kinds_of_rows(split: Split, data: Interactions) -> dict[tuple[str, str], str]:
    """By user and item of the example, what it is to the model that is tested, or to the choice before."""
    kinds = {(str(data.users[u]), str(data.items[i])): "unused" for u, i in zip(data.user, data.item, strict=True)}
    earlier = split.earlier or split
    layers = (
        ("known", _pairs(split, split.test, "known")),
        ("trains", {(str(split.data.users[u]), i) for u in range(split.num_users) for i in _trained(split, u)}),
        ("validation", _pairs(earlier, split.validation, "relevant")),
        ("test", _pairs(split, split.test, "relevant")),
    )
    for kind, pairs in layers:
        kinds |= dict.fromkeys(pairs, kind)
    return kinds


def _trained(split: Split, user: int) -> list[str]:
    return [str(split.data.items[i]) for i in split.train.of(user).tolist()]


def _pairs(split: Split, question: Question, which: str) -> set[tuple[str, str]]:
    lists = question.relevant if which == "relevant" else question.known.items
    users, items = split.users_of(question), split.items_of(question)
    asked = set(question.users.tolist())
    return {
        (str(users[u]), str(items[i]))
        for u in range(len(lists))
        if u in asked
        for i in lists.of(u).tolist()
    }  # fmt: skip


def _x(day: float) -> float:
    return _LEFT + 14 + day / _DAYS * (_WIDTH - _LEFT - 60)


def _lanes(kinds: dict[tuple[str, str], str]) -> list[str]:
    parts = []
    for user, sittings in enumerate(_SITTINGS):
        y, count = _TOP + _LANE * user + 14, 0
        parts.append(f'<line class="lane" x1="{_LEFT}" x2="{_WIDTH - 16}" y1="{y}" y2="{y}"/>')
        parts.append(f'<text x="12" y="{y + 4}">user {user + 1}</text>')
        for day, length in sittings:
            for place in range(length):
                kind = kinds[f"user {user + 1}", f"{(user * 3 + count) % 12}"]
                parts.append(_mark(kind, _x(day) + _STEP * place, y))
                count += 1
    return parts


def _mark(kind: str, x: float, y: float) -> str:
    """Told apart by shape too, not by colour alone."""
    if kind == "test":
        points = f"{x:.1f},{y - 7} {x + 6.5:.1f},{y + 5} {x - 6.5:.1f},{y + 5}"
        return f'<polygon class="test" points="{points}"/>'
    if kind == "validation":
        return f'<rect class="validation" x="{x - 5:.1f}" y="{y - 5}" width="10" height="10"/>'
    return f'<circle class="{kind}" cx="{x:.1f}" cy="{y}" r="{2.5 if kind == "unused" else 4.5}"/>'


def _cuts(protocol: Protocol, data: Interactions) -> list[str]:
    if protocol.split not in CAUSAL:
        return []
    parts, bottom = [], _TOP + _LANE * len(_SITTINGS)
    cuts = ((protocol.validation_from, "cut for the choice ", "end"), (protocol.test_from, " cut", "start"))
    for share, words, anchor in cuts:
        x = _x(moment_at(data, share, protocol.name) / DAY) - 8
        parts.append(f'<line class="cut" x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP - 8}" y2="{bottom}"/>')
        parts.append(f'<text x="{x:.1f}" y="{_TOP - 12}" text-anchor="{anchor}" xml:space="preserve">{words}</text>')
    return parts


def _legend(kinds: dict[tuple[str, str], str], y: int) -> list[str]:
    parts, x = [f'<text x="{_WIDTH - 16}" y="{y - 8}" text-anchor="end">time →</text>'], 20.0
    for kind, words in _KINDS.items():
        if kind in kinds.values():
            parts.append(_mark(kind, x, y + 14) + f'<text x="{x + 12}" y="{y + 18}">{words}</text>')
            x += 34 + 6.1 * len(words)
    return parts
