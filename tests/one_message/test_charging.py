"""Agreements under a budget in the ledger of releases: they add up where they are about some of the same items."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("cryptography.hazmat.primitives.hpke")
pytest.importorskip("starlette")

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from ownview.base.errors import SettingError
from ownview.one_message.budget import ShareBudget
from ownview.one_message.charging import charge_agreement
from ownview.one_message.terms import Share, Terms, agreed
from ownview.releases.release_ledger import Ledger
from tests.outcome import Outcome


def _terms(items: range, epsilon: float | None, key: bytes = bytes(32)) -> Terms:
    keys: dict[Share, bytes] = {"a": key, "b": key}
    urls: dict[Share, str] = {"a": "http://a", "b": "http://b"}
    budget = None if epsilon is None else ShareBudget.planned(epsilon, 1e-5)
    return agreed("fedease", [str(item) for item in items], urls, keys, budget=budget)


def _charged(terms: Terms, total: float | None = None) -> None:
    charge_agreement(terms, Path("agreement.json"), Path("a"), total)


def test_an_agreement_is_charged_once_and_one_without_a_budget_never() -> None:
    _charged(_terms(range(20), None))
    assert not Ledger().entries()
    for _ in range(3):  # server a, server b, and a that was started again
        _charged(_terms(range(20), 1.0))
    (entry,) = Ledger().entries()
    assert (entry.number, entry.total) == (1, 1.0)
    assert entry.mechanism is not None
    assert len(entry.mechanism.noise) == 2  # sending, and taking back
    (standing,) = Ledger().standings()
    assert standing.spent.epsilon == 1.0


def test_agreements_about_some_of_the_same_items_add_up() -> None:
    _charged(_terms(range(20), 1.0))
    _charged(_terms(range(20, 40), 1.0))  # another shop
    with pytest.raises(SettingError, match=r"the budget of these people is spent.*--total 1\.\d+$"):
        _charged(_terms(range(19, 30), 1.0))
    assert len(Ledger().entries()) == 2
    _charged(_terms(range(10), 1.0), total=2.0)
    assert 1.0 < max(one.spent.epsilon for one in Ledger().standings()) < 2.0


def test_a_server_that_would_spend_too_much_does_not_start(tmp_path: Path, ownview: Callable[..., Outcome]) -> None:
    key = X25519PrivateKey.generate()
    (tmp_path / "a.key").write_bytes(key.private_bytes_raw())
    (tmp_path / "peer.key").write_bytes(bytes(32))
    public = key.public_key().public_bytes_raw()
    _charged(_terms(range(20), 1.0))
    for name, epsilon in (("more", 1.5), ("none", None)):
        (tmp_path / name).write_bytes(_terms(range(20), epsilon, public).content)
    keys = ("--key", tmp_path / "a.key", "--peer-key", tmp_path / "peer.key", "--port", "0")
    refused = ownview("sums", "serve", tmp_path / "more", "--share", "a", "--folder", tmp_path / "a", *keys)
    assert (refused.code, refused.err.count("\n")) == (2, 1)
    assert "the budget of these people is spent" in refused.err
    vain = ownview(
        "sums", "serve", tmp_path / "none", "--share", "a", "--folder", tmp_path / "b", *keys, "--total", "3"
    )
    assert (vain.code, vain.err.count("\n")) == (2, 1)
    assert "has no budget" in vain.err
