"""Private by one word: ways to recommend that keep from others what a person has, and the rule that recommends one.

A budget is chosen by the numbers of people and items alone, which count as public: a choice by figures would be made of
people's held-out interactions, and no epsilon covers that. Figures on validation choose between the two ways that have
no epsilon.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ownview.base.errors import SettingError
from ownview.config.settings import Value
from ownview.data.interactions import Interactions
from ownview.methods.fedease import FedEASE
from ownview.parts.pairs.private_pairs import FEWEST_ITEMS, MOST_ITEMS, USERS_PER_ITEM
from ownview.parts.text.text_beside import UNDER_A_BUDGET
from ownview.privacy.accountant import Sampling, noise_for
from ownview.privacy.budget import DELTA
from ownview.privacy.masking.cohort import FEWEST, MOST
from ownview.runs.run import Run
from ownview.start.suited import Selection, Suited

WHO = (
    "You hold the file already: nothing here protects people from you. A budget protects them from readers of the "
    "model, its page or its lists.",
    "You must not collect it: with text at home nothing is sent; with hidden sums you see sums over many people, and "
    "no single person's; a budget bounds what the sums say as well.",
    "Several must not pool it: each keeps its rows at its own place and sends hidden sums (ownview deploy); no "
    "place sees another's.",
)
"""Who is protected from whom, and from what."""

NOTHING, HIDDEN = "nothing sent", "sums hidden"
EPSILONS = (8.0, 1.0)
_COVERED = 0.5
"""Share of the items that the people must be enough for under a budget."""
_NEAR = 0.95
"""Share of the hidden sums' figure from which on text at home is taken: what is not sent needs no promise."""
_LITTLE = 0.25
"""Share of the hidden sums' figure below which a budget is said to leave next to nothing."""
_SHORTENED = 0.01
"""Share of the people whose pairs a recommended clip may shorten."""
_FIGURE = "NDCG@10"
_PAIRS = "it learns which things go together, from sums of pairs"


@dataclass(frozen=True)
class People:
    """What counts as public, and how much one person adds.

    Args:
        number: of people.
        items: of items.
        clip: the smallest power of 2 that shortens the pairs of at most one in a hundred.
        most: items that a person may have whose pairs it does not shorten.
        text: whether something is known of the items but their ids.
    """

    number: int
    items: int
    clip: float
    most: int
    text: bool

    @classmethod
    def of(cls, data: Interactions, *, ordered: bool) -> People:
        """The people of some data; `ordered` where FedEASE knows what came after what."""
        counts = sorted(data.without_repeats().counts.tolist())
        usual = counts[min(math.ceil((1 - _SHORTENED) * len(counts)), len(counts)) - 1]
        clip = 2.0 ** math.ceil(math.log2(length_of_pairs(usual, ordered=ordered)))
        most = usual
        while most < data.num_items and length_of_pairs(most + 1, ordered=ordered) <= clip:
            most += 1
        text = data.about is not None and data.about.known > 0
        return cls(data.num_users, data.num_items, clip, most, text)

    @property
    def masked(self) -> str:
        """The setting `privacy` of hidden sums, in a simulation."""
        return f"masked:clip={self.clip:g},masks=skipped"

    def budget(self, epsilon: float) -> str:
        """The setting `privacy` of a budget; delta is a tenth of one over the number of people at most."""
        delta = "" if DELTA * 10 * self.number <= 1 else f",delta={0.1 / self.number:.1g}"
        return f"central:epsilon={epsilon:g}{delta}"

    def enough_for(self, epsilon: float) -> bool:
        """Whether n / (5 sigma), 4096 at most, is half of the items or more, and 100 (`parts.pairs.private_pairs`)."""
        sigma = noise_for(epsilon, min(DELTA, 0.1 / self.number), 1, Sampling())
        return min(self.number / (USERS_PER_ITEM * sigma), MOST_ITEMS) >= max(_COVERED * self.items, FEWEST_ITEMS)

    def smallest_budget(self) -> float | None:
        """The smallest epsilon that the people are enough for; None where they are for none."""
        return next((epsilon for epsilon in sorted(EPSILONS) if self.enough_for(epsilon)), None)


def length_of_pairs(items: int, *, ordered: bool) -> float:
    """Frobenius norm of what a person with so many items adds to FedEASE's sum.

    |K|^2 = L + 2 sum over d of (L - d) exp(-2 d / nearness), d from 1 to L - 1; L where there is no order.
    """
    if not ordered:
        return float(items)
    near = FedEASE().nearness
    return math.sqrt(items + 2 * sum((items - d) * math.exp(-2 * d / near) for d in range(1, items)))


def name_of_budget(epsilon: float) -> str:
    """What the table calls it."""
    return f"epsilon {epsilon:g}"


def private_ways(people: People) -> Selection:
    """What is compared: bestsellers as the yardstick, then every way that this data allows."""
    ways = [Suited("popularity", words="it shows everybody what is taken most")]
    left_out = []
    if people.text:
        words = "it finds items whose text is like that of one's own; nothing is sent"
        ways.append(Suited("text", words=words, way=NOTHING))
    else:
        left_out.append(f"{NOTHING}: nothing is known of the items but their ids; --items FILE says more of them")
    beside: dict[str, Value] = {"text": UNDER_A_BUDGET} if people.text else {}
    if people.number >= FEWEST:
        ways.append(Suited("fedease", beside, words=f"{_PAIRS} that hide every single person's", privacy=people.masked,
                           way=HIDDEN))  # fmt: skip
    else:
        left_out.append(f"{HIDDEN}: {people.number} people are too few to hide among; at least {FEWEST} are needed")
    try:
        people.smallest_budget()
    except SettingError as lacking:
        left_out.append(f"budgets: {lacking}")
        return Selection(tuple(ways), tuple(left_out))
    ways += [
        Suited(
            "fedease", beside, rounds=len(FedEASE.releases), words=f"{_PAIRS} with noise",
            privacy=people.budget(epsilon), way=name_of_budget(epsilon),
        )
        for epsilon in EPSILONS
    ]  # fmt: skip
    return Selection(tuple(ways), tuple(left_out))


@dataclass(frozen=True)
class Recommended:
    """way: of the table; reasons: sentences."""

    way: str
    reasons: tuple[str, ...]


def without_figures(people: People) -> Suited:
    """The way to fit where nothing is measured: the smallest budget that the people are enough for, else hidden sums.

    Raises:
        SettingError: there are too few people to hide among, and nothing is known of the items.
    """
    ways = {one.way: one for one in private_ways(people).methods if one.way}
    try:
        epsilon = people.smallest_budget()
    except SettingError:  # the accountant's package is not there, and hidden sums do without
        epsilon = None
    for way in ([] if epsilon is None else [name_of_budget(epsilon)]) + [HIDDEN, NOTHING]:
        if way in ways:
            return ways[way]
    raise SettingError(
        f"--private: {people.number} people are too few to hide among, and nothing is known of the items but their "
        f"ids; expected at least {FEWEST} people, or columns about items"
    )


def recommended(people: People, runs: dict[str, Run]) -> Recommended:
    """The rule.

    1. The smallest budget that the number of people permits, whichever its figure.
    2. Else nothing sent, where its figure on validation is at least 95 % of the hidden sums'.
    3. Else hidden sums; else nothing sent; else the largest budget.

    Args:
        people: their numbers.
        runs: by way, those of the comparison; at least one.
    """
    reasons = _budgets_in_words(people, runs)
    epsilon = people.smallest_budget() if any(name_of_budget(one) in runs for one in EPSILONS) else None
    if epsilon is not None and name_of_budget(epsilon) in runs:
        why = (
            f"{people.number:,} people are enough for {people.items:,} items under a budget of {epsilon:g}: that is "
            "told by these two numbers, not by figures, which no epsilon covers"
        )
        return Recommended(name_of_budget(epsilon), (*reasons, why, *_better_text(runs, name_of_budget(epsilon))))
    home, hidden = (None if way not in runs else validation_of(runs[way]) for way in (NOTHING, HIDDEN))
    if hidden is not None and (home is None or home < _NEAR * hidden):
        than = "" if home is None else f" ({hidden:.3f} on validation, text at home {home:.3f})"
        return Recommended(HIDDEN, (*reasons, f"hidden sums have the most to say{than}; {_masks(people)}"))
    if home is not None:
        than = "" if hidden is None else f" ({home:.3f} on validation, hidden sums {hidden:.3f})"
        return Recommended(NOTHING, (*reasons, f"text at home says as much as the sums{than}, and nothing is sent"))
    return Recommended(next(iter(runs)), reasons)


def validation_of(run: Run) -> float:
    """NDCG@10 on validation."""
    return float(run.result["validation"][_FIGURE])


def _budgets_in_words(people: People, runs: dict[str, Run]) -> tuple[str, ...]:
    """Which budgets leave next to nothing of the sums, and whether text at home does better."""
    if HIDDEN not in runs or not (whole := validation_of(runs[HIDDEN])):
        return ()
    sentences = []
    for epsilon in EPSILONS:
        if (way := name_of_budget(epsilon)) not in runs:
            continue
        share = validation_of(runs[way]) / whole
        if share >= _LITTLE:
            continue
        home = validation_of(runs[NOTHING]) / whole if NOTHING in runs else 0.0
        more = f"; text at home has {home:.0%}" if home > share else ""
        left = "next to nothing" if share > 0 else "nothing"
        sentences.append(
            f"with {people.number:,} people a budget of {epsilon:g} leaves {left} of the sums ({share:.0%}){more}"
        )
    return tuple(sentences)


def _better_text(runs: dict[str, Run], way: str) -> tuple[str, ...]:
    if NOTHING not in runs or validation_of(runs[NOTHING]) <= validation_of(runs[way]):
        return ()
    return (
        "text at home has the higher figure, which the rule does not look at; a choice by it spends something "
        "that epsilon does not cover, and sends nothing",
    )


def _masks(people: People) -> str:
    sentence = f"the recommended clip is {people.clip:g}: up to {people.most:,} items of a person count in full"
    if people.number <= MOST:
        return sentence
    return f"{sentence}. Masks are for {MOST:,} people a round: deploy with clients={MOST} and more rounds"


def rows_of(runs: Sequence[Run], selection: Selection) -> dict[str, Run]:
    """By way, the run of each."""
    by_folder = {one.folder.path.name: one for one in runs}
    return {one.way: by_folder[one.place] for one in selection.methods if one.way and one.place in by_folder}
