"""Liars under masks: groups leave out the one that stands out, and items of few takers cannot be pushed."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from benchmarks.hidden_liars import PAGE, TABLES, read, rendered

from ownview import FedEASE, FederationOptions, FedNext
from ownview.attacks.dishonest.crew import BOOSTED, BOUNDED, COUNTED_BOOSTED, COUNTED_BOUNDED, PROMOTE, Crew
from ownview.attacks.dishonest.infiltration import infiltrated, lists_of, top_tens
from ownview.base.errors import SettingError
from ownview.data.splitting.splits import Split
from ownview.federation.checks.liars import warning
from ownview.parts.pairs.pairs_again import PairsAgain
from ownview.round.scorers import asked
from ownview.seam.method import Federated
from ownview.testing.worlds import federation, small_world
from tests.attacks.scenes import scene

ONE_SUM, GROUPS = "masked:clip=1000,masks=skipped", "masked:clip=1000,groups=8,masks=skipped"


@pytest.fixture(scope="module")
def world() -> Split:
    return small_world(num_users=80, num_items=120)


def _reached(world: Split, method: Federated, means: str, count: int, privacy: str = "none") -> tuple[float, set[int]]:
    """Share of honest lists that the target enters, and who was left out."""
    crew = Crew(world, PROMOTE, means, count)
    given = replace(scene("fedease", world), method=method, options=FederationOptions(privacy=privacy))
    one, _ = infiltrated(given, crew, 1e3, checked=False)
    out = set(one.round(1).left_out)
    return lists_of(top_tens(one), crew).exposure, out


def test_one_boosted_liar_takes_a_masked_sum_and_its_group_is_left_out(world: Split) -> None:
    assert _reached(world, FedEASE(), BOOSTED, 1, ONE_SUM)[0] > 0.5
    reached, out = _reached(world, FedEASE(), BOOSTED, 1, GROUPS)
    assert reached <= 0.05
    assert out >= set(Crew(world, PROMOTE, BOOSTED, 1).members.tolist())
    assert len(out) == 10, "its group of 80 in eight, and no other"


def test_groups_do_not_see_what_is_as_small_as_honest_work(world: Split) -> None:
    assert not _reached(world, FedEASE(), BOUNDED, 4, GROUPS)[1]


@pytest.mark.parametrize("method", [FedEASE, FedNext])
def test_items_of_few_takers_are_in_no_list_that_sums_make(method: type[FedEASE] | type[FedNext], world: Split) -> None:
    open_to_all = _reached(world, method(), BOUNDED, 4)[0]
    target = Crew(world, PROMOTE, BOUNDED, 4)
    most = int(target.takers[target.target]) + 5
    assert open_to_all > 0.1
    assert _reached(world, method(takers=most), BOUNDED, 4)[0] == 0
    assert _reached(world, method(takers=most), COUNTED_BOUNDED, 1)[0] == 0
    assert _reached(world, method(takers=most), COUNTED_BOOSTED, 1)[0] > 0.1, "a count that is made up passes"


def test_the_limit_changes_columns_of_rare_items_alone(world: Split) -> None:
    plain, limited = (federation(FedEASE(takers=takers), world) for takers in (0, 12))
    for one in (plain, limited):
        one.round(1)
    before, after = (one.server.shared["weights"] for one in (plain, limited))
    rare = plain.server.held["gram"].diagonal() < 12
    assert 0 < int(rare.sum()) < len(rare)
    assert torch.equal(after[:, ~rare], before[:, ~rare])
    assert not bool(after[:, rare].any())
    again = PairsAgain(100.0, 12)({"pairs": plain.server.held["gram"]}, {}).values["weights"]
    assert not bool(again[:, rare].any())
    assert torch.allclose(again[:, ~rare], before[:, ~rare], atol=1e-6)


def test_a_limited_item_scores_0_whatever_liars_send_and_above_scores_below_0(world: Split) -> None:
    """It is no item that is never shown: what the pages say of it."""
    limited = federation(FedEASE(takers=12), world)
    limited.round(1)
    rare = limited.server.held["gram"].diagonal() < 12
    scores = asked(limited, world.test).scores(torch.arange(8), None)
    assert not bool(scores[:, rare].any())
    assert bool((scores[:, ~rare] < 0).any())


def test_fednext_counts_takers_among_the_latest_items_alone(world: Split) -> None:
    counts = []
    for length in (3, 1000):
        one = federation(FedNext(length=length), world)
        one.round(1)
        counts.append(one.server.held["pairs"].diagonal())
    latest = torch.bincount(torch.cat([world.timeline.items.of(u)[-3:] for u in range(world.num_users)]), minlength=120)
    assert counts[0].tolist() == latest.tolist()
    assert counts[1].sum() > counts[0].sum()


@pytest.mark.parametrize(
    ("method", "privacy"),
    [
        (FedEASE(takers=5), "central:epsilon=8,rounds=2"),
        (FedNext(takers=5, rank=4), "none"),
    ],
)
def test_where_takers_are_not_counted_the_limit_is_refused(method: Federated, privacy: str, world: Split) -> None:
    with pytest.raises(SettingError, match=r"setting takers=5: .*; expected 0"):
        federation(method, world, options=FederationOptions(privacy=privacy)).round(1)


def test_it_is_said_what_groups_leave_open(world: Split) -> None:
    said = warning(federation(FedEASE(), world, options=FederationOptions(privacy="masked:clip=1,groups=8")).terms)
    assert "a client that lies spoils its group, which is left out" in said


@pytest.mark.parametrize("table", TABLES)
def test_the_page_shows_the_record(table: str) -> None:
    begin, end = (f"<!-- {part}: benchmarks/hidden_liars.py {table} -->\n" for part in ("begin", "end"))
    assert begin + rendered(table, read()) + end in PAGE.read_text(encoding="utf-8")
