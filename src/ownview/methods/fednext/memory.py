"""Numbers that FedNext's forms hold at the same time, for the size of blocks and early refusals."""

from __future__ import annotations

from ownview.methods.fednext.form import NextForm
from ownview.parts.sequences.places import numbers_held
from ownview.seam.memory import Memory

_LESS = "raise --memory, or take a lower rank or fewer scales"


def full_memory(form: NextForm) -> Memory:
    """Solving holds the sums with their ridge and the factor."""
    m, count = form.world.num_items, len(form.given.scales)

    def client(length: int) -> int:
        size = min(length, form.given.length)
        scoring = numbers_held(count * size, count * m, m) + 2 * numbers_held(size, m, m)
        return max(6 * (count * size) ** 2 + 12 * size**2, scoring) + length

    advice = "raise --memory, take fewer scales, or give a rank: the full form is items by items for two scales"
    return Memory(client, (2 * count**2 + count + (8 if form.clock else 0)) * m**2, advice)


def rank_memory(form: NextForm) -> Memory:
    """Solving holds the sums once more, transposed."""
    m, rank = form.world.num_items, form.given.rank
    wide = len(form.given.scales) * rank

    def client(length: int) -> int:
        size = min(length, form.given.length)
        return 4 * size * (2 * wide + rank + size) + 4 * m + 4 * wide + length

    return Memory(client, 2 * wide * (m + wide), _LESS)


def private_memory(form: NextForm, rank: int, kept: int) -> Memory:
    """Eigenvectors of the kept items stand twice while the first `rank` are chosen."""
    wide = len(form.given.scales) * rank

    def client(length: int) -> int:
        size = min(length, form.given.length)
        return 8 * size * (2 * wide + rank + size) + 4 * form.world.num_items + 4 * wide

    return Memory(client, 8 * kept**2 + 4 * wide * (wide + kept), _LESS)
