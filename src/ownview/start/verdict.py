"""What a start found, in sentences that need no table: how many people are served, by what, and at what price."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ownview.base.display.amounts import in_people, readable
from ownview.evaluation.comparison import Mark
from ownview.evaluation.named_protocols import NEXT_SITTING
from ownview.runs.run import Run
from ownview.runs.table import Comparison
from ownview.start.question import FEWEST, Question

BESTSELLERS = "popularity"
_HITS, _CHOSEN_BY = "HR@10", "NDCG@10"


@dataclass(frozen=True)
class Verdict:
    """Sentences, and the numbers in them as the runs' records have them.

    Args:
        sentences: in the order in which they are read.
        numbers: by name: `hits` and `bestsellers` are shares of the people asked, `seconds` and `bytes` are the fitted
            model's, `of` is the number of people that the sentence speaks of.
    """

    sentences: tuple[str, ...]
    numbers: Mapping[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """The verdict as plain values."""
        return {"sentences": list(self.sentences), "numbers": dict(self.numbers)}


def judge(
    question: Question,
    runs: Sequence[Run],
    found: Comparison,
    best: Run,
    model: Run,
    words: str,
    *,
    by_figures: bool = True,
) -> Verdict:
    """Say what came out.

    Args:
        question: that was asked.
        runs: of the comparison.
        found: the comparison as a table.
        best: the run that validation chose.
        model: the same, trained on everything.
        words: what the method does, in half a sentence.
        by_figures: whether the highest figure on validation chose it.
    """
    label = best.experiment.label()
    column = next(iter(found.ranked))
    cell = found.cells[label, column, _CHOSEN_BY]
    by_label = {one.experiment.label(): one for one in runs}
    counts = by_label.get(BESTSELLERS)
    hits = float(best.result["test"][_HITS])
    usual = None if counts is None else float(counts.result["test"][_HITS])
    of = _round_number([hits] if usual is None else [hits, usual])
    size = (model.folder.path / "model.safetensors").stat().st_size
    seconds = float(model.result["seconds"])
    numbers: dict[str, Any] = {
        "method": label, "hits": hits, "bestsellers": usual, "of": of, "people_asked": int(best.result["users_ranked"]),
        "validation": float(best.result["validation"][_CHOSEN_BY]), "seconds": seconds, "bytes": size,
        "same_basket": question.same_basket, "protocol": question.protocol.name,
    }  # fmt: skip
    as_well = "bestsellers may serve" if cell.not_above == BESTSELLERS else "those may serve"
    beaten = counts is not None and label != BESTSELLERS and not cell.not_above
    sentences = [_served(question, hits, None if label == BESTSELLERS else usual, of)]
    if beaten or counts is None:
        sentences.append(f"Take {label}: {words}; trained in {_short_time(seconds)}, {readable(size)}.")
    elif label == BESTSELLERS:
        sentences.append("Nothing that was tried beats bestsellers here: show those, and come back with more data.")
    else:
        sentences.append(
            f"{in_people(numbers['people_asked'])} cannot tell {label} from plain "
            f"counts ({cell.not_above}): {as_well} as well here until there is more data. {label} was fitted "
            f"all the same: {words}; trained in {_short_time(seconds)}, {readable(size)}."
        )
    if numbers["people_asked"] < FEWEST:
        sentences.append(
            f"Only {in_people(numbers['people_asked'])} could be asked; fewer than {FEWEST} say little about others."
        )
    if by_figures:
        sentences += _other_winner(found, column, label, numbers)
    if question.why:
        sentences.append(f"{question.why[0].upper()}{question.why[1:]}.")
    return Verdict(tuple(sentences), numbers)


def _served(question: Question, hits: float, usual: float | None, of: int) -> str:
    """How many people find what was held out."""
    if question.protocol.split == NEXT_SITTING.split:
        who, what = "people who came back", "something new that they then took"
    elif question.split.order == "none":
        who, what = "people", "one of their own things, hidden at random,"
    else:
        who, what = "people", "what they took next"
    sentence = f"Of {of:,} {who}, {round(of * hits):,} find {what} among ten suggestions"
    return f"{sentence}." if usual is None else f"{sentence}; with bestsellers it would be {round(of * usual):,}."


def _round_number(shares: Sequence[float]) -> int:
    """Number of people in a sentence: a hundred, or more where less than one in a hundred is served."""
    smallest = min((one for one in shares if one > 0), default=1.0)
    return next((of for of in (100, 1_000, 10_000) if of * smallest >= 1), 100_000)


def _other_winner(found: Comparison, column: str, label: str, numbers: dict[str, Any]) -> list[str]:
    """That another row has the highest figure on test, where one has, and whether that means anything."""
    rows = {method: cell for (method, name, metric), cell in found.cells.items()
            if (name, metric) == (column, _CHOSEN_BY)}  # fmt: skip
    winner = max(rows, key=lambda method: rows[method].mean)
    if winner == label:
        return []
    numbers |= {"test": rows[label].mean, "winner": winner, "winner_test": rows[winner].mean}
    apart = rows[label].mark is not Mark.LEVEL
    certainty = "by more than chance" if apart else "which so few people cannot tell apart"
    return [
        f"{label} was chosen on validation ({_CHOSEN_BY} {numbers['validation']:.3f}); on test {winner} is ahead "
        f"({rows[winner].mean:.3f} against {rows[label].mean:.3f}), {certainty}. Test chooses nothing."
    ]


def _short_time(seconds: float) -> str:
    if seconds < 1:
        return "less than a second"
    if seconds < 10:
        return f"{seconds:.1f} s"
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
