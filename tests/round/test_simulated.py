"""Simulated devices: who answers, when, on which version; and nothing else changes."""

from __future__ import annotations

import pytest
import torch

from ownview import FedEASE, FedEM, FederationOptions, FedMF, PFedRec
from ownview.base.errors import SettingError
from ownview.config.simulated_devices import SimulatedDevices, Tier, devices
from ownview.round.federation import Federation
from ownview.seam.method import Federated
from ownview.testing.federated import assert_close
from ownview.testing.worlds import federation, small_world

METHOD = FedMF(local_epochs=1, embedding_size=4)


def simulated(
    asked: str, method: Federated = METHOD, clients: str = "all", users: int = 23, engine: str = "vector"
) -> Federation:
    options = FederationOptions(devices=asked, clients=clients)
    return federation(method, small_world(users), options=options, engine=engine)


def test_devices_that_are_all_alike_change_the_clock_and_nothing_else() -> None:
    plain, slow = federation(METHOD, small_world()), simulated("tiers=1:5")
    reports = [(plain.round(number), slow.round(number)) for number in (1, 2, 3)]
    assert_close(plain.server.shared, slow.server.shared, 0.0)
    lengths = slow.split.train.lengths.double()
    longest = 5 * float(lengths.max() / lengths.mean())
    assert [round(one.simulated or 0, 6) for _, one in reports] == [round(k * longest, 6) for k in (1, 2, 3)]
    assert plain.round(4).simulated is None


def test_shares_of_tiers_and_availability_are_as_asked() -> None:
    clients = torch.arange(20_000)
    found = SimulatedDevices((Tier(0.7, 1), Tier(0.3, 10))).tier_of(0, clients)
    assert float((found == 1).double().mean()) == pytest.approx(0.3, abs=0.02)
    day = SimulatedDevices(hours=(8, 14))
    assert float(day.there(0, clients, 0).double().mean()) == pytest.approx(0.25, abs=0.02)
    assert not bool((day.there(0, clients, 0) & day.there(0, clients, 12 * 3600)).any())
    night = SimulatedDevices(hours=(22, 4))
    assert float(night.there(0, clients, 0).double().mean()) == pytest.approx(0.25, abs=0.02)
    assert float(SimulatedDevices(dropout=0.2).dropped(0, 1, clients).double().mean()) == pytest.approx(0.2, abs=0.02)


def test_who_is_late_or_disappears_does_not_count_and_goes_back() -> None:
    one = simulated("tiers=0.5:1+0.5:100,deadline=20,dropout=0.2")
    before = one.clients.own["user"].clone()
    report = one.round(1)
    assert set(report.left_out.values()) == {"late", "dropped out"}
    out = sorted(report.left_out)
    assert report.clients == 23 - len(out)
    assert torch.equal(one.clients.own["user"][out], before[out])
    assert report.simulated == 20


def test_devices_with_too_little_memory_take_no_part() -> None:
    needed = 4 * 60 * 4 * 8  # values, slopes and two moments of a table of 60 items, 4 numbers of 8 bytes each
    one = simulated(f"tiers=0.5:1:{needed // 2}+0.5:1")
    assert 0 < len(one.participants(1)) < 23
    with pytest.raises(Exception, match="no client has the"):
        simulated("tiers=1:1:10").round(1)


def test_a_buffer_of_all_is_the_synchronous_round() -> None:
    """Everybody works at any time, and the server waits for everybody: nothing is stale."""
    plain, buffered = federation(METHOD, small_world()), simulated("tiers=1:1,buffer=23")
    for number in (1, 2, 3):
        plain.round(number), buffered.round(number)
    assert_close(plain.server.shared, buffered.server.shared, 1e-12)
    assert_close(plain.clients.own, buffered.clients.own, 1e-12)


@pytest.mark.parametrize("method", [METHOD, PFedRec(local_epochs=1, embedding_size=4)], ids=lambda one: one.name)
def test_asynchronous_rounds_are_the_same_by_loop_and_resume_exactly(method: Federated) -> None:
    asked = "tiers=0.6:1+0.4:7,spread=0.3,dropout=0.1,buffer=4"
    vector, loop = simulated(asked, method, "10"), simulated(asked, method, "10", engine="loop")
    resumed = simulated(asked, method, "10")
    stale = 0
    for number in range(1, 9):
        cohort = vector.participants(number)
        assert torch.equal(cohort, vector.participants(number)), "asking twice changes nothing"
        assert len(cohort) == 4
        planned = vector.fleet.planned  # type: ignore[attr-defined]
        stale = max(stale, number - int(planned.versions.min()))
        before = vector.fleet.flight.now  # type: ignore[attr-defined]
        report, other = vector.round(number), loop.round(number)
        assert report.simulated == other.simulated
        assert report.simulated is not None
        assert report.simulated > before
        if number == 4:
            resumed.unpack({name: value.clone() for name, value in vector.pack().items()})
        elif number > 4:
            resumed.round(number)
    assert stale >= 2, "slow clients work on old versions"
    assert_close(vector.server.shared, loop.server.shared, 1e-10)
    assert_close(vector.server.shared, resumed.server.shared, 0.0)
    assert_close(vector.clients.own, resumed.clients.own, 0.0)


def test_stale_uploads_count_less() -> None:
    """Two clients by hand: the one that is t rounds old moves the table by (1 + t)^-a times its change."""
    fresh, discounted = (simulated(f"tiers=0.5:1+0.5:9,buffer=3,staleness={a}", clients="9", users=12) for a in (0, 1))
    for number in range(1, 7):
        fresh.round(number), discounted.round(number)
    moved = [float((one.server.shared["items"] - one.terms.drawn("items")).norm()) for one in (fresh, discounted)]
    assert moved[1] < moved[0]


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ("tier=1:1", "did you mean 'tiers'"),
        ("tiers=0.5:1+0.4:2", "shares adding up to 1"),
        ("tiers=1:1:64XB", "SHARE:SECONDS:MEMORY"),
        ("buffer=0", "a whole number of uploads from 1 on"),
        ("buffer=3,deadline=4", "give one of the two"),
        ("staleness=1", r"expected buffer=K as well"),
        ("hours=9-9", "two hours"),
        ("dropout=0.1,dropout=0.2", "stands twice"),
    ],
)
def test_what_is_no_device_is_refused(asked: str, reason: str) -> None:
    with pytest.raises(SettingError, match=reason) as refused:
        devices(asked)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("method", "options", "reason"),
    [
        (FedEASE(), {}, "do not grow old"),
        (FedEM(), {}, "something for every single client"),
        (METHOD, {"privacy": "masked:clip=1"}, "synchronous rounds"),
        (METHOD, {"clients": "poisson:0.5"}, "no number of clients at work"),
    ],
)
def test_asynchronous_rounds_are_refused_where_they_make_no_sense(
    method: Federated, options: dict[str, object], reason: str
) -> None:
    with pytest.raises(SettingError, match=reason):
        federation(method, small_world(), options=FederationOptions.of({"devices": "buffer=3", **options}))


def test_a_run_without_devices_keeps_its_name() -> None:
    assert "devices" not in FederationOptions().plain()
    assert FederationOptions(devices="dropout=0.1").plain()["devices"] == "dropout=0.1"
