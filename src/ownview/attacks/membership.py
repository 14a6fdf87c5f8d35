"""Membership from sums: was a person, whose items the attacker knows, among those a sum was made of?

Half of the clients take part in one round, half do not. The attacker has the sum and, of everybody it asks about, what
that person would have sent: the client's program is public, so it runs it on the person's items, with negatives of its
own. Where everything that is sent is a count, a member's cells cannot be smaller than what the member put in; else what
the person would have sent is laid beside the sum (the cosine). Where sums are made in groups the server sees each of
them, and the attacker has all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from ownview.attacks.guesses import Inapplicable
from ownview.attacks.scoring import CLEARLY, AttackFinding, areas, without
from ownview.attacks.view import CuriousServer, Scene, expecting
from ownview.messages.upload import Upload
from ownview.round.federation import Federation
from ownview.seam.server import SUMS
from ownview.seam.training import Params

NAME, SEES = "membership", "the sum of one round"

_OTHER_NEGATIVES = 10**6
"""The attacker draws negatives as of a round that never comes: it does not know the client's."""


def attack(scene: Scene, asked: int = 100) -> AttackFinding:
    """AUC of telling members from others.

    Args:
        scene: that is attacked; everybody of one half takes part in its first round.
        asked: of each half, how many the attacker asks about at most.
    """
    federation = scene.federation()
    if federation.terms.server.needs != SUMS:
        return without(NAME, SEES, Inapplicable("the server needs every single upload, and sees more than sums"))
    order = torch.randperm(scene.split.num_users, generator=torch.Generator().manual_seed(scene.seed))
    half = len(order) // 2
    if half < 2:
        return without(NAME, SEES, Inapplicable(f"{len(order)} clients are too few for two halves"))
    members, others = order[:half].sort().values, order[half:].sort().values
    federation.terms = expecting(federation.terms, half, masks=False)
    server = CuriousServer(federation.terms, order[:0], members)
    federation.server = server
    federation.round(1)
    seen = server.parts or server.sums
    if not any(bool(value.any()) for sums in seen for value in sums.values()):
        return without(NAME, SEES, Inapplicable("clients send nothing"))
    candidates = torch.cat([members[:asked], others[:asked]])
    scores = _likeness(scene.federation(), candidates, seen)
    inside = torch.arange(len(candidates)) < len(members[:asked])
    area = float(areas(scores[None], inside[None])[0])
    turned = inside[torch.randperm(len(inside), generator=torch.Generator().manual_seed(scene.seed + 1))]
    control = float(areas(scores[None], turned[None])[0])
    # Of a guess that knows nothing, AUC spreads by sqrt((a + b + 1) / (12 a b)) about one half.
    a, b = int(inside.sum()), int((~inside).sum())
    clear = area >= max(CLEARLY, 0.5 + 2 * ((a + b + 1) / (12 * a * b)) ** 0.5)
    verb = "tells" if clear else "hardly tells"
    what = f"the sum over {half} clients"
    if len(seen) > 1:
        verb, what = verb.removesuffix("s"), f"{len(seen)} sums over about {half // len(seen)} clients each"
    sentence = f"{what} {verb} whether a person is among them: AUC {area:.3f} over {len(inside)}"
    summed = float(half // len(seen))
    values = {"AUC": area, "shuffled AUC": control, "clients": float(len(inside)), "summed": summed}
    return AttackFinding(NAME, SEES, True, clear, sentence, values)


def _likeness(shadow: Federation, candidates: Tensor, seen: Sequence[Params]) -> Tensor:
    """[C] how much the sums look as if each candidate had added to them: of several groups' the one that does most."""
    found = torch.zeros(len(candidates), dtype=torch.float64)
    places = {int(client): place for place, client in enumerate(candidates)}
    shadow.clients.begin(shadow.server.download(1, candidates[:0]), candidates)
    for block in shadow.work.blocks(candidates.to(shadow.machine.device)):
        download = shadow.server.download(1, block)
        upload = shadow.work.do(shadow.work.samples(_OTHER_NEGATIVES, block), download)
        for k, client in enumerate(upload.clients.tolist()):
            found[places[client]] = max(_like(upload.one(k), sums, shadow.world.num_items) for sums in seen)
    return found


def _like(upload: Upload, sums: Params, num_items: int) -> float:
    """Of one client's own summands and changes, laid beside the sums of the same names."""
    spread = upload.spread(num_items)
    mine, there = [], []
    for name, total in sums.items():
        value = _written(spread, name)
        if value is not None:
            flat = value.reshape(-1).double().cpu()
            cells = flat != 0
            mine.append(flat[cells])
            there.append(total.reshape(-1)[cells].double())
    own, summed = torch.cat(mine), torch.cat(there)
    if not len(own):
        return 0.0
    if bool((own >= 0).all()):
        return float((summed / own).clamp(0, 1).mean())
    return float(torch.nn.functional.cosine_similarity(own, summed, dim=0))


def _written(upload: Upload, name: str) -> Tensor | None:
    if name in upload.whole:
        return upload.whole[name]
    if name in upload.sums:
        return replace(upload, sums={name: upload.sums[name]}).written_out()[name]
    return None
