"""Ratings that come after a user was counted: the difference is sent, once; the sum is that of the whole history."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from ownview.base.errors import MessageError
from ownview.deploy.coordinator import Coordinator
from ownview.deploy.https.server import HttpsTransport
from ownview.deploy.place import Place
from ownview.federation.options import FederationOptions
from ownview.parts.pairs.history_kernel import HistoryKernel
from ownview.parts.sequences.places import Places
from ownview.parts.sequences.sent_before import by_sending, sent_by
from ownview.seam.training import Context
from tests.deploy.lines import PATIENCE, Running, enrolled, wait_for
from tests.deploy.world import ITEMS, NAMES, QUICK, agreement, write_homes

NEARNESS = 16.0
History = list[tuple[str, int]]


def _read(homes: Mapping[str, Path]) -> dict[str, History]:
    """Everybody's items and times, as the files have them."""
    found: dict[str, History] = {}
    for home in homes.values():
        for line in (home / "ratings.csv").read_text().splitlines()[1:]:
            user, item, when = line.split(",")
            found.setdefault(user, []).append((item, int(when)))
    return found


def _append(home: Path, rows: History, user: str) -> None:
    with (home / "ratings.csv").open("a") as file:
        file.writelines(f"{user},{item},{when}\n" for item, when in rows)


def _kernels(parts: list[dict[str, History]]) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """The sum of everybody's pairs; items in the order of the files that brought them, by time in each."""
    gram, known = np.zeros((ITEMS, ITEMS)), dict[str, list[int]]()
    for part in parts:
        for user, rows in part.items():
            mine = known.setdefault(user, [])
            new = [int(item[1:]) for item, _ in sorted(rows, key=lambda row: row[1])]
            mine += [item for item in new if item not in mine]
    for mine in known.values():
        place = np.arange(len(mine))
        gram[np.ix_(mine, mine)] += np.exp(-np.abs(place[:, None] - place) / NEARNESS)
    return gram


def _free(rows: History, count: int) -> list[str]:
    taken = {item for item, _ in rows}
    return [f"i{k}" for k in range(ITEMS) if f"i{k}" not in taken][:count]


@pytest.mark.parametrize("privacy", ["none", "masked:clip=1000,threshold=7"])
def test_later_ratings_count_once_over_https(privacy: str, tmp_path: Path) -> None:
    """Late ratings, ratings of long ago, of the same moment, and none; in clear they pass the server's check."""
    homes = write_homes(tmp_path, users=4)
    agreed = agreement("fedease", room=12, options=FederationOptions(privacy=privacy))
    certificates = enrolled(tmp_path / "certificates", NAMES)
    transport = HttpsTransport(("127.0.0.1", 0), *certificates)
    places = {name: Place(home) for name, home in homes.items()}
    running = [Running(place, transport.address, certificates[0], name) for name, place in places.items()]
    wait_for(lambda: list(transport.places()) == sorted(NAMES))
    patient = replace(QUICK, least=12, deadline=PATIENCE)  # however slow the machine is, all of them take part
    coordinator = Coordinator(agreed, transport, tmp_path / "server", patient)
    parts = [_read(homes)]
    try:
        for number in range(1, 5):
            coordinator.round(number)
            gram = next(value for name, value in coordinator.server.pack().items() if name.endswith("gram"))
            within = 1e-9 if privacy == "none" else 1e-3  # masked sums are in whole steps
            assert np.abs(gram.numpy() - _kernels(parts)).max() < within, f"round {number}"
            if number == 3:
                continue  # nothing is new in round 4
            new: dict[str, History] = {}
            for name, when in (("east", 20_000 * number), ("north", 10 + number), ("west", 9000)):
                user = f"{name}-{number % 4}"
                new[user] = [(item, when + k) for k, item in enumerate(_free(_read(homes)[user], 2))]
                _append(homes[name], new[user], user)
            parts.append(new)
    finally:
        transport.close()
        for one in running:
            one.end()


def test_under_a_budget_later_ratings_wait_and_nothing_more_is_spent(tmp_path: Path) -> None:
    home = write_homes(tmp_path, ("east",), users=4)["east"]
    options = FederationOptions(privacy="distributed:epsilon=2,threshold=3").for_rounds(2)
    agreed = agreement("fedease", room=4, options=options)
    place = Place(home)
    place._agree(agreed)
    place.releases.begin()
    frozen = place.releases.ratings().read_bytes()
    _append(home, [("i3", 99_999)], "east-1")
    assert place.releases.ratings().read_bytes() == frozen
    allowed = len(agreed.model.releases)
    for number in range(1, allowed + 1):
        place.releases.note(number, ["east-1"], f"mark {number}")
    with pytest.raises(MessageError, match="which is all that epsilon 2 allows"):
        place.releases.note(allowed + 1, ["east-1"], "one more")


def test_items_keep_the_places_that_they_were_sent_at() -> None:
    places = Places(torch.tensor([0, 5, 2, 7, 4]), torch.tensor([0, 1, 2, 3, 4]), torch.tensor([0.0, 1, 1, 1, 1]))
    sent = torch.zeros(9)
    sent[7], sent[2] = 1.0, 2.0
    moved, before = by_sending(places, sent)
    assert moved.rows[1:].tolist() == [7, 2, 5, 4]
    assert before.tolist() == [0, 1, 1, 0, 0]
    assert sent_by(moved, sent, Context(3)).tolist() == [0, 0, 2, 0, 3, 3, 0, 1, 0]


def test_a_difference_that_no_history_makes_is_refused() -> None:
    check, length = HistoryKernel(4.0), 9
    place = torch.arange(length)
    kernel = torch.exp(-(place[:, None] - place).abs() / 4.0)
    kernel[:6, :6] = 0.0
    shuffled = torch.randperm(length, generator=torch.Generator().manual_seed(1))
    assert check(kernel[shuffled][:, shuffled]) == ""
    for forged in (kernel.clone().fill_diagonal_(0.0), torch.where(kernel > 0, 1.0, 0.0)):
        assert "no history has" in check(forged)
