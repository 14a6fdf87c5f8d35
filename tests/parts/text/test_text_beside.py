"""Text beside sums, against values worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from ownview import FedEASE, FederationOptions, FedNext, Interactions
from ownview.base.errors import SettingError
from ownview.data.splitting.splits import Split, leave_one_out
from ownview.parts.text.text_beside import loudness, loudness_through
from ownview.round.scorers import scorer_of
from ownview.seam.method import Federated
from ownview.seam.portable import Linear
from ownview.testing import small_world
from ownview.testing.federated import alone_equals_vector
from ownview.testing.worlds import federation


def _shelf(titles: tuple[str, ...] = ("red bird", "red fox", "blue bird", "blue bird")) -> Split:
    users, items = np.repeat([0, 1], 4), np.array([0, 1, 2, 3, 3, 2, 1, 0])
    about = {"title": dict(enumerate(titles))} if titles else None
    data = Interactions.from_rows("shelf", users, items, timestamp=np.arange(8), about=about)
    return leave_one_out(data, ties="hash", untimed="random", seed=0)


def test_scores_are_the_sums_and_the_weighed_likeness() -> None:
    """User 0 trains on items 0 and 1, user 1 on 3 and 2: B has one value b on two pairs, and 0 elsewhere.

    G of a pair is [[1, e], [e, 1]], e = exp(-1 / 16). With lambda 1 P of the block is [[2, -e], [-e, 2]] / (4 - e^2),
    so b = e / 2, and the root mean square over 16 cells is sqrt(4 b^2 / 16) = b / 2.
    """
    method = FedEASE(regularization=1.0, nearness=16.0, recency=4.0, text=3.0, text_recency=2.0)
    one = federation(method, _shelf())
    one.round(1)
    b = math.exp(-1 / 16) / 2
    assert float(one.server.shared["loud"]) == pytest.approx(b / 2, rel=1e-6)
    color, bird = math.log(2), math.log(4 / 3)
    first, third = math.hypot(color, bird), math.sqrt(2 * color**2 + bird**2)
    like_fox, like_bird = color / first, bird**2 / (first * third)
    latest, before = 1.0, math.exp(-1 / 4)
    text = 3.0 * b / 2
    wanted = [
        latest * b + text * like_fox,  # item 0 is like item 1, the latest
        before * b + text * math.exp(-1 / 2) * like_fox,
        text * math.exp(-1 / 2) * like_bird,
        text * math.exp(-1 / 2) * like_bird,
    ]
    scores = scorer_of(one).scores(torch.tensor([0]), None)[0]
    torch.testing.assert_close(scores, torch.tensor(wanted, dtype=torch.float64), rtol=1e-6, atol=1e-7)


def test_no_text_is_the_method_itself() -> None:
    for method in (FedEASE(), FedNext()):
        assert not {"likeness", "loud"} & set(method.client(federation(method, small_world()).world).params)


@pytest.mark.parametrize(
    ("method", "privacy"),
    [
        (FedEASE(text=10.0), "none"),
        (FedNext(text=10.0), "none"),
        (FedNext(text=10.0, rank=4, iterations=1), "none"),
        (FedEASE(text=10.0), "central:epsilon=100,noise=seeded"),
        (FedNext(text=10.0, rank=4), "central:epsilon=100,noise=seeded"),
    ],
)
def test_the_portable_form_gives_a_clients_scores(method: Federated, privacy: str) -> None:
    split = small_world()
    one = federation(method, split, options=FederationOptions(privacy=privacy))
    plan = one.world.protection
    for number in range(1, (2 if plan is None else plan.rounds) + 1):
        one.round(number)
    received = {name: value.cpu() for name, value in one.newest(torch.arange(0)).values.items()}
    form = method.portable(received, one.world)
    assert isinstance(form, Linear)
    scores = scorer_of(one).scores(torch.arange(3), None)
    for user in range(3):
        found = form.scores(split.timeline.items.of(user))
        if plan is None and isinstance(method, FedNext):
            continue  # after a pause a client of FedNext scores otherwise, and says so
        torch.testing.assert_close(found, scores[user], rtol=1e-4, atol=1e-6)


def test_where_noise_leaves_nothing_text_is_left() -> None:
    assert float(loudness(torch.zeros(3, 3))) == 1
    one = federation(FedEASE(text=10.0), small_world(), options=FederationOptions(privacy="central:epsilon=0.1"))
    for number in (1, 2):
        one.round(number)
    scores = scorer_of(one).scores(torch.arange(5), None)
    assert float(scores.std(1).min()) > 0.1, "items must be told apart by text"


def test_loudness_of_a_product_is_that_of_the_matrix() -> None:
    random = torch.Generator().manual_seed(0)
    vectors, weights = (torch.randn(size, generator=random, dtype=torch.float64) for size in ((6, 2), (6, 4)))
    whole = torch.cat([vectors @ part.T for part in torch.split(weights, 2, dim=1)])
    assert float(loudness_through(vectors, weights)) == pytest.approx(float(loudness(whole)))


def test_data_without_text_is_refused_in_one_line() -> None:
    with pytest.raises(SettingError, match="parameter 'likeness': nothing is known of the items but their ids"):
        federation(FedEASE(text=1.0), _shelf(()))


@pytest.mark.parametrize("privacy", ["none", "central:epsilon=8"])
def test_alone_equals_vector(privacy: str) -> None:
    alone_equals_vector(FedEASE(text=10.0), FederationOptions(privacy=privacy), together=True)
