"""What one upload gives away, read from its bytes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from ownview.attacks import sign, touched_over_rounds, touched_rows, unclipped
from ownview.attacks.evidence import moved, read
from ownview.attacks.guesses import Inapplicable, ItemGuess
from ownview.attacks.scoring import AttackFinding
from ownview.attacks.suite import from_one_upload, single_uploads
from ownview.attacks.view import victims, watch
from ownview.data.splitting.splits import leave_one_out
from ownview.registry import METHODS
from ownview.round.device import Device, own_data
from ownview.testing.worlds import small_world
from tests.attacks.scenes import noise_for, scene, sparse_world


def _findings(method: str, rounds: int = 1, **options: Any) -> dict[str, AttackFinding]:
    one = scene(method, **options)
    view, federation = watch(one, victims(30, 20, 0), rounds)
    return {found.attack: found for found in single_uploads(view, federation, one, 0)}


@pytest.mark.parametrize("method", ["fedmf", "fedrap", "pfedclr"])
def test_the_sign_of_one_upload_gives_the_items_away(method: str) -> None:
    found = _findings(method)["sign"]
    assert found.succeeds
    assert found.values["precision"] >= 0.99
    assert found.values["recall"] >= 0.99
    assert found.values["shuffled precision"] <= 0.3
    assert found.values["shuffled recall"] <= 0.3
    assert found.sentence.startswith("the server reads a user's items from one upload")


def test_the_diagonal_of_a_summand_lists_the_items() -> None:
    found = _findings("fedease")
    assert found["diagonal"].values["precision"] == found["diagonal"].values["recall"] == 1
    assert not found["sign"].applies
    assert "no upload holds rows" in found["sign"].sentence


def test_a_matrix_with_items_several_times_over_lists_them_too() -> None:
    """Without times FedNext's pairs of items, which stand once for every two scales, are all that tells of items."""
    untimed = replace(sparse_world().data, timestamp=None)
    one = scene("fednext", leave_one_out(untimed, ties="rows", untimed="rows", seed=0))
    view, federation = watch(one, victims(30, 20, 0), 1)
    found = {each.attack: each for each in single_uploads(view, federation, one, 0)}["diagonal"]
    assert found.applies
    assert found.values["precision"] == 1
    assert found.values["recall"] >= 0.7, "the latest item of a history is no past of anything, and some have three"


@pytest.mark.parametrize("method", ["fcf", "fedials"])
def test_sums_of_what_one_client_has_give_its_items_away(method: str) -> None:
    """FCF moves every row, own items further; FedIALS sends rows of own items alone, all to one side."""
    found = _findings(method)
    assert found["touched rows"].values["precision"] >= 0.9
    assert found["touched rows"].values["recall"] >= 0.9
    assert found["sign"].values["AUC"] >= 0.9


@pytest.mark.parametrize("privacy", ["none", "laplace:0.5", "gaussian:clip=0.1,noise=1"])
def test_what_a_client_sends_first_hangs_on_nobody_else(privacy: str) -> None:
    one, chosen = scene("fedmf", privacy=privacy), victims(30, 4, 0)
    alone, among_all = (
        {each.client: dict(each.changes) for each in watch(one, chosen, 1, cohort=cohort)[0].evidence}
        for cohort in (chosen, None)
    )
    assert sorted(alone) == chosen.tolist()
    torch.testing.assert_close(alone, {client: among_all[client] for client in alone}, rtol=1e-4, atol=1e-5)


def test_an_upload_of_a_later_round_is_attacked_by_itself() -> None:
    one = scene("fedmf", privacy="laplace:0.1")
    view, federation = watch(one, victims(30, 20, 0), 2)
    assert {each.round for each in view.evidence} == {1, 2}
    assert {each.round for each in view.of_round(2).evidence} == {2}
    (sign_of_second,) = (
        each for each in single_uploads(view.of_round(2), federation, one, 0) if each.attack == sign.NAME
    )
    assert from_one_upload(one, 20, 0, 2).values == pytest.approx(sign_of_second.values)
    assert from_one_upload(one, 20, 0, 1).values != pytest.approx(sign_of_second.values)


def test_rows_touched_over_rounds_tell_more_than_those_of_one_round() -> None:
    found = _findings("fedmf", rounds=3)
    one, more = found["touched rows"].values, found["rows touched over rounds"].values
    assert one["recall"] == more["recall"] == 1
    assert one["precision"] < 0.3
    assert more["precision"] > 0.8


def test_local_noise_of_epsilon_8_leaves_next_to_nothing() -> None:
    found = _findings("fedmf", privacy=f"gaussian:clip=0.1,noise={noise_for(8):.4f}")
    assert found["sign"].applies
    assert not found["sign"].succeeds
    assert found["sign"].values["AUC"] <= 0.56
    assert found["sign, vector told"].applies
    assert found["sign, vector told"].values["AUC"] <= 0.6  # of 20 users of a small world
    assert not found["touched rows"].applies


def test_noise_does_not_hide_rows_that_the_server_is_told_of() -> None:
    """Averaged over those who touched them, rows are named in every message, noise or no noise."""
    found = _findings("fedmf", rounds=4, row_mean="touched", privacy="laplace:5")
    assert found["rows touched over rounds"].values["precision"] >= 0.9
    assert found["rows touched over rounds"].values["recall"] == 1


@pytest.mark.parametrize("method", sorted(METHODS))
def test_every_method_is_attacked_by_the_form_of_its_messages(method: str) -> None:
    found = from_one_upload(scene(method, small_world()), 6)
    assert found.sentence
    assert found.applies == (method != "local-only"), found.sentence


def test_who_is_trusted_is_said() -> None:
    findings = {mode: from_one_upload(scene("fedease", privacy=mode), 6) for mode in ("none", "central:epsilon=8")}
    assert findings["none"].succeeds
    assert "trusted" not in findings["none"].sentence
    assert findings["central:epsilon=8"].sentence.endswith("; it adds the noise and is trusted")


def test_a_table_that_was_mixed_with_the_received_one_moved_by_training_alone() -> None:
    random = torch.Generator().manual_seed(0)
    before, received = torch.randn(50, 4, generator=random), torch.randn(50, 4, generator=random)
    trained = torch.zeros(50, 4)
    trained[3:9] = torch.randn(6, 4, generator=random)
    for share in (0.0, 0.3, 1.0):
        arrived = before + share * (received - before) + trained
        assert torch.allclose(moved(arrived, received, before), trained, atol=1e-5)
    assert torch.allclose(moved(received + trained, received, None), trained, atol=1e-5)


def test_the_server_sees_what_a_client_alone_sends(tmp_path: Path) -> None:
    """The bytes of a client in a process of its own are those that the attack reads in a simulation."""
    one = scene("fedmf")
    view, federation = watch(one, torch.tensor([4]), 1)
    device = Device(federation.terms, own_data(one.split, one.excluded, 4), tmp_path / "4.safetensors")
    offered = one.federation().server.download(1, torch.tensor([4]))
    message = device.round(1, federation.terms.codec.write_download(offered, 0))
    alone = read(message, 4, federation.terms, offered, {})
    assert alone.size == view.evidence[0].size
    assert torch.equal(alone.touched, view.evidence[0].touched)
    assert torch.allclose(alone.changes["items"], view.evidence[0].changes["items"], atol=1e-5)


def test_attacks_say_why_they_have_nothing_to_go_by() -> None:
    view, _ = watch(scene("local-only"), victims(30, 5, 0), 1)
    for attack in (touched_rows, touched_over_rounds, sign):
        assert isinstance(attack.guess(view), Inapplicable)


def test_the_smaller_side_is_claimed_whatever_the_sign_of_the_direction() -> None:
    view, _ = watch(scene("fedmf"), victims(30, 5, 0), 1)
    guess = sign.guess(view)
    assert isinstance(guess, ItemGuess)
    for claimed, one in zip(guess.claimed, view.first(), strict=True):
        assert 0 < int(claimed.sum()) < int(one.touched.sum()) / 2
    assert guess.scores.shape == (5, sparse_world().num_items)


def test_what_laplace_noise_costs_is_read_off_uploads_before_it() -> None:
    one = scene("fedmf", privacy="laplace:0.5")
    chosen = victims(30, 5, 0)
    bare, _ = watch(scene("fedmf"), chosen, 1, cohort=chosen)
    sums = sorted(float(each.changes["items"].abs().sum()) for each in bare.evidence)
    found = unclipped.measured(one, chosen)
    assert found.values["epsilon of the median user"] == pytest.approx(sums[2] / 0.5, rel=1e-4)
    assert found.values["largest epsilon"] == pytest.approx(sums[-1] / 0.5, rel=1e-4)
    assert not unclipped.measured(scene("local-only", privacy="laplace:0.5"), chosen).applies
