"""Every registered method whose clients send sums, through every check of that family."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pytest

from ownview import FCF, FedCIA, FedEASE, FedIALS, FedMF, Gathering, History, Product, Summands
from ownview.base.errors import SettingError
from ownview.registry import GATHERINGS, PLUGINS, build
from ownview.seam.training import Context, Params
from ownview.testing import GATHERING_CHECKS, conform, gathering, small_world

# Short fits: a hundred steps on a norm whose gradient never gets small turn a last digit into several.
GENTLE: dict[str, Gathering] = {"fedcia": FedCIA(fit_steps=10, fit_rate=0.01)}
LEARNING: dict[str, Gathering] = {
    "fedcia": FedCIA(local_epochs=5, learning_rate=0.05, fit_steps=20, noise=0.0),
}
VARIANTS: dict[str, Gathering] = {
    "fedials, little regularisation": FedIALS(embedding_size=4, exponent=0.0, regularization=0.5),
    "fedcia, squares": FedCIA(loss="squares", fit_steps=5, fit_rate=0.01, noise=0.0, local_epochs=3),
    "fedcia, released": FedCIA(loss="released", fit_steps=5, fit_rate=0.01, local_epochs=2),
    "fcf, no momentum": FCF(first_decay=0.0, embedding_size=3),
}


@pytest.mark.parametrize("check", GATHERING_CHECKS)
@pytest.mark.parametrize("name", GATHERINGS)
def test_conforms(name: str, check: str) -> None:
    usual = GENTLE.get(name, GATHERINGS[name]())
    GATHERING_CHECKS[check](LEARNING.get(name, usual) if check == "learns" else usual)


@pytest.mark.parametrize("check", [name for name in GATHERING_CHECKS if name != "learns"])
@pytest.mark.parametrize("name", VARIANTS)
def test_variants_conform(name: str, check: str) -> None:
    GATHERING_CHECKS[check](VARIANTS[name])


def test_nothing_is_left_out() -> None:
    assert set(GATHERINGS) == {"fcf", "fedcia", "fedease", "fedials"}


def test_the_kit_takes_both_kinds_and_can_fail() -> None:
    @dataclass(frozen=True)
    class Leaky(FedEASE):
        """Counts again every time a client takes part, so one round is not enough."""

        name: ClassVar[str] = "leaky"

        def report(self, history: History, own: Params, server: Params, context: Context) -> tuple[Summands, Params]:
            return {"pairs": Product(history.seen[None], history.seen[None])}, {}

    conform(FedEASE())
    with pytest.raises(AssertionError, match="enough is enough"):
        conform(Leaky())


@pytest.mark.parametrize("plugin", PLUGINS)
def test_plugins_are_refused_with_the_reason(plugin: str) -> None:
    with pytest.raises(SettingError, match="clients of fedease send statistics that the server sums"):
        build("fedease", {}, [(plugin, {})])


def test_a_summand_that_was_not_declared_is_refused() -> None:
    @dataclass(frozen=True)
    class Sly(FedEASE):
        def report(self, history: History, own: Params, server: Params, context: Context) -> tuple[Summands, Params]:
            sent, new = super().report(history, own, server, context)
            return {**sent, "history": history.seen}, new

    with pytest.raises(SettingError, match="declared as leaving the device is"):
        gathering(Sly(), small_world()).round(1)


def test_methods_that_train_tables_are_not_taken_for_this_family() -> None:
    assert not isinstance(FedMF(), Gathering)
