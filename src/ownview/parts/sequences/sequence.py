"""Settings of a transformer over sequences, the same for clients that send gradients and for one trained centrally."""

from __future__ import annotations

from dataclasses import dataclass

from ownview.base.errors import SettingError
from ownview.config.search import Between, OneOf
from ownview.config.settings import Settings, setting
from ownview.parts.sequences.transformer import Transformer

_LOWEST = 0.02
"""Of the first rate, where it stops falling: a last step of 0 would waste what clients sent."""


@dataclass(frozen=True)
class SequenceSettings(Settings):
    """The network, its loss, and the rate of Adam."""

    embedding_size: int = setting(64, "d, length of item vectors", low=1, search=OneOf((32, 64, 128)))
    blocks: int = setting(2, "blocks of attention and a layer", low=1, high=12, search=OneOf((1, 2, 3)))
    heads: int = setting(2, "heads of attention; they share d", low=1)
    length: int = setting(200, "items looked back at", low=1, search=OneOf((50, 100, 200)))
    dropout: float = setting(0.3, "share of values dropped in training", low=0, high=0.95, search=Between(0.0, 0.6))
    horizon: float = setting(
        0.0, "how far targets reach: an item k places after the next weighs exp(-k / horizon); 0: the next alone",
        low=0, search=Between(0.5, 16.0, log=True),
    )  # fmt: skip
    item_dropout: float = setting(
        0.0, "share of a history's items left out in training", low=0, high=0.95, search=Between(0.0, 0.4)
    )
    label_smoothing: float = setting(
        0.0, "share of a target that is spread over all items alike", low=0, high=0.95, search=Between(0.0, 0.4)
    )
    widening: int = setting(
        1, "the layer of a block is so many times d wide inside", low=1, high=16, search=OneOf((1, 2, 4))
    )
    frequency: float = setting(
        0.0, "weight of a filter of slow and fast waves beside attention; 0: attention alone", low=0, high=1,
        search=Between(0.1, 0.9),
    )  # fmt: skip
    waves: int = setting(
        3, "(frequency) slowest waves that pass the filter unweighed, of a period of `length` places", low=1
    )
    prefixes: bool = setting(
        False, "every beginning of a history is a sequence of its own, whose last place alone learns",
        search=OneOf((False, True)),
    )  # fmt: skip
    drawn: int = setting(0, "(prefixes) beginnings drawn of a history in a round; 0 for all", low=0)
    relative: bool = setting(False, "attention also learns how much each distance of two places counts")
    temperature: float = setting(
        0.0,
        "scores are cosines over it; 0: products of vectors as they are",
        low=0,
        search=Between(0.03, 0.3, log=True),
    )
    negatives: int = setting(
        0, "items drawn for a sequence's loss; 0 for all items", low=0, excludes=("horizon", "label_smoothing")
    )
    exclude_seen: bool = setting(
        False, "items looked back at are no candidates in training, as they are none in lists of what is new",
        excludes=("negatives", "prefixes", "horizon", "label_smoothing"),
    )  # fmt: skip
    r_drop: float = setting(
        0.0, "weight of how far two passes with different dropout are apart (R-Drop); 0: one pass", low=0,
        excludes=("negatives", "prefixes"),
    )  # fmt: skip
    learning_rate: float = setting(0.001, "Adam's rate", above=0, search=Between(1e-4, 1e-2, log=True))
    decay_steps: int = setting(
        0, "rounds, or batches, in which the rate falls to a fiftieth along a line, to stay there; 0: it never falls",
        low=0,
    )  # fmt: skip

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require_effect()
        if self.embedding_size % self.heads:
            fits = [n for n in range(1, self.embedding_size + 1) if self.embedding_size % n == 0]
            nearest = min(fits, key=lambda n: abs(n - self.heads))
            raise SettingError(
                f"{self.title} setting heads={self.heads}: expected a divisor of embedding_size={self.embedding_size}, "
                f"such as {nearest}"
            )

    def _require_effect(self) -> None:
        """Refuse settings of what is switched off, and a filter through which every wave passes."""
        if self.drawn and not self.prefixes:
            raise SettingError(f"{self.title} setting drawn={self.drawn}: draws of prefixes=True; expected that, or 0")
        if self.r_drop and not (self.dropout or self.item_dropout):
            raise SettingError(
                f"{self.title} setting r_drop={self.r_drop:g}: is of passes that differ by dropout; expected dropout "
                "or item_dropout above 0, or r_drop=0"
            )
        if not self.frequency:
            if self.waves != (default := type(self).waves):
                raise SettingError(
                    f"{self.title} setting waves={self.waves}: is of a filter with frequency above 0; expected that, "
                    f"or {default}"
                )
        elif self.waves > (most := self.length // 2):
            raise SettingError(
                f"{self.title} setting waves={self.waves}: of a period of length={self.length} all waves pass, which "
                f"filters nothing; expected {f'at most {most}' if most else 'frequency=0'}"
            )

    @property
    def network(self) -> Transformer:
        """From a sequence to scores."""
        return Transformer(
            self.embedding_size, self.blocks, self.heads, self.length, self.dropout, self.horizon, self.item_dropout,
            self.label_smoothing, self.widening, self.frequency, self.waves, looks_back=not self.prefixes,
            relative=self.relative, temperature=self.temperature, exclude_seen=self.exclude_seen, r_drop=self.r_drop,
        )  # fmt: skip

    def rate(self, step: int) -> float:
        """Adam's rate at a step, from 1."""
        if not self.decay_steps:
            return self.learning_rate
        return self.learning_rate * max(_LOWEST, 1 - (step - 1) / self.decay_steps)


def require_order(name: str, order: str) -> None:
    """Refuse data whose items have no order: there is no next one to learn."""
    if order == "none":
        raise SettingError(
            f"{name} learns what comes next, and the data has no times and no declared order; expected times, or "
            'rows in time order and a protocol with untimed="rows" (such as sequential)'
        )
