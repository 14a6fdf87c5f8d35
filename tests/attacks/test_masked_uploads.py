"""What is left to attack where uploads are masked: nothing in one of them, everything that the sum says."""

from __future__ import annotations

import pytest
import torch

from ownview.attacks.canaries import SUM
from ownview.attacks.membership import attack as membership
from ownview.attacks.scoring import AttackFinding
from ownview.attacks.suite import Claim, claim_of, from_one_upload, notes_on, single_uploads
from ownview.attacks.view import CuriousServer, expecting, victims, watch
from ownview.messages.upload import Upload
from ownview.testing.worlds import small_world
from tests.attacks.scenes import scene

SKIPPED = "masked:clip=1,masks=skipped"


def _findings(method: str, privacy: str, rounds: int = 1) -> dict[str, AttackFinding]:
    one = scene(method, privacy=privacy)
    view, federation = watch(one, victims(30, 30, 0), rounds)
    return {found.attack: found for found in single_uploads(view, federation, one, 0)}


@pytest.mark.parametrize(
    ("method", "privacy", "attack"),
    [
        ("fedmf", "masked:clip=1", "sign"),
        ("fedmf", "distributed:epsilon=8,clip=1,rounds=2", "sign"),
        ("fedease", "masked:clip=100", "diagonal"),
    ],
)
def test_one_masked_upload_says_nothing(method: str, privacy: str, attack: str) -> None:
    found = _findings(method, privacy, rounds=2 if method == "fedmf" else 1)
    assert found[attack].applies
    assert abs(found[attack].values["AUC"] - 0.5) < 0.08  # about 300 items of 30 users: 0.017 is one standard error
    assert not any(one.succeeds for one in found.values())
    for name in ("touched rows", "rows touched over rounds"):
        assert not found[name].applies


def test_the_same_uploads_without_masks_say_everything() -> None:
    found = _findings("fedmf", SKIPPED)["sign"]
    assert found.succeeds
    assert min(found.values["precision"], found.values["recall"]) >= 0.99


def test_what_the_server_holds_of_a_round_is_masked_numbers_and_their_sum() -> None:
    """Everything that reaches the server's half, and everything it has kept when the round is over."""
    arrived: list[Upload] = []

    class Keeping(CuriousServer):
        def take(self, upload: Upload) -> None:
            super().take(upload)
            arrived.append(upload)

    one, bare = (scene("fedmf", privacy=privacy).federation() for privacy in ("masked:clip=1", SKIPPED))
    one.server = Keeping(one.terms, torch.arange(30))
    plain = Keeping(bare.terms, torch.arange(30))
    bare.server = plain
    one.round(1)
    masked, arrived = arrived, []
    bare.round(1)
    for upload in masked:
        assert upload.words is not None
        assert not any((upload.rows, upload.whole, upload.sums, upload.items.numel(), bool(upload.samples.any())))
    hidden, clear = (
        torch.cat([upload.words for upload in each if upload.words is not None]) for each in (masked, arrived)
    )
    assert hidden.shape == clear.shape
    assert float((hidden == clear).double().mean()) < 1e-3
    assert float((clear == 0).double().mean()) > 0.5, "most rows are not touched, and that is hidden too"
    assert float((hidden == 0).double().mean()) < 1e-3
    for name, value in one.server.pack().items():
        assert torch.equal(value, bare.server.pack()[name]), f"{name} is of the sum alone"


def test_sums_are_attacked_as_before() -> None:
    real, skipped = (membership(scene("fedmf", privacy=privacy), 15) for privacy in ("masked:clip=1", SKIPPED))
    assert real.values == skipped.values
    assert real.succeeds, "masks without noise protect nobody from the sum"


def test_a_curious_server_has_every_groups_sum() -> None:
    """Of 15 members in four groups each sum is of three or four: membership shows more than in one sum of 15."""
    world = small_world(num_users=30, num_items=60)
    whole, parted = (
        membership(scene("fedease", world, privacy=f"masked:clip=1000{groups}"), 15) for groups in ("", ",groups=4")
    )
    assert (whole.values["summed"], parted.values["summed"]) == (15, 3)
    assert "4 sums over about 3 clients each" in parted.sentence
    assert parted.values["AUC"] > whole.values["AUC"]


def test_groups_stay_as_far_as_there_are_clients_for_them() -> None:
    terms = scene("fedease", privacy="masked:clip=100,groups=6,combine=median,masks=skipped").federation().terms
    found = [expecting(terms, clients).masked for clients in (30, 13, 5)]
    assert [(one.groups, one.masks.median) for one in found if one is not None] == [(6, True), (4, True), (1, False)]


def test_it_is_said_who_sees_what() -> None:
    assert claim_of("masked:clip=1") == Claim(SUM, None)
    assert "uploads are masked" in notes_on("masked:clip=1")[0]
    assert "uploads are masked" in notes_on("distributed:epsilon=8")[0]
    assert "masks were left out" in notes_on(SKIPPED)[0]
    bare, hidden = (from_one_upload(scene("fedmf", privacy=privacy), 6) for privacy in (SKIPPED, "masked:clip=1"))
    assert bare.sentence.endswith("; masks, which were left out, hide that")
    assert not hidden.succeeds
    assert "next to nothing" in hidden.sentence
