"""Models of the same people, one after the other: nothing counted them, and every one was "epsilon 1 for every user".

Twelve monthly models of epsilon 1 were epsilon 4.0 together (delta 1e-5), and cards, pages and `fit` said 1. Whoever
holds them all averages their noise away: sums of k models have noise smaller by the square root of k. Before the ledger
every refusal below was a release.
"""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import dp_accounting
import numpy as np
import pytest

import ownview as ov
from ownview.base.errors import OutputError, SettingError
from ownview.pages.export import export
from ownview.pages.page import page
from ownview.privacy.accountant import Sampling, epsilon_together
from ownview.releases import release_ledger as ledger_module
from ownview.releases.entries import Mechanism
from ownview.releases.release_ledger import Asked, Ledger
from ownview.releases.spending import spent
from tests.outcome import Outcome
from tests.shop import shop

DELTA = 1e-5
SIGMA = dp_accounting.get_sigma_gaussian(1.0, DELTA)
ONE = Mechanism("central", 1.0, DELTA, (SIGMA,), Sampling())
BUDGET = {"privacy": "central:epsilon=1"}
FIT = ("fit", "fedease", "--privacy", "central:epsilon=1")


def _asked(name: str, mechanism: Mechanism = ONE) -> Asked:
    return Asked(name, "shop.csv", "own", "fedease", "runs/fedease", mechanism)


def _people(first: int, last: int) -> list[str]:
    return [f"u{number}" for number in range(first, last)]


def _file(path: Path, users: list[str], shop: str = "i") -> Path:
    rows = [f"{user},{shop}{(place * 5 + step) % 12},{step}" for place, user in enumerate(users) for step in range(6)]
    path.write_text("\n".join(["user,item,timestamp", *rows]) + "\n")
    return path


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    _file(tmp_path / "january.csv", _people(0, 12))
    _file(tmp_path / "february.csv", _people(11, 24))  # one person is in both
    _file(tmp_path / "elsewhere.csv", _people(100, 112))
    return tmp_path


def test_a_second_model_is_refused_and_nothing_is_written(ownview: Callable[..., Outcome], folder: Path) -> None:
    assert ownview(*FIT, "--data", "january.csv", "--total", "1", "--out", "first").code == 0
    again = ownview(*FIT, "--data", "january.csv", "--out", "second")
    assert again.code == 2
    assert len(again.err.splitlines()) == 1
    for word in ("epsilon 1 of a total of 1", "fedease", "first", "--total 1.47", "ownview privacy total"):
        assert word in again.err
    assert not (folder / "second").exists()
    assert len(Ledger().entries()) == 1


def test_next_month_counts_for_those_who_are_in_both_files(ownview: Callable[..., Outcome], folder: Path) -> None:
    assert ownview(*FIT, "--data", "january.csv", "--out", "first").code == 0
    assert ownview(*FIT, "--data", "elsewhere.csv", "--out", "other").code == 0, (
        "other people have a budget of their own"
    )
    assert ownview(*FIT, "--data", "february.csv", "--out", "second").code == 2
    assert not (folder / "second").exists()
    assert ownview("privacy", "total", "february.csv", "1.5").code == 0
    assert ownview(*FIT, "--data", "february.csv", "--out", "second").code == 0
    ledger = json.loads(ownview("privacy", "--json").out)
    both = dp_accounting.get_epsilon_gaussian(SIGMA / np.sqrt(2), DELTA)
    spent_of = {Path(one["data"]).stem: one["spent"] for one in ledger["people"]}
    assert spent_of["february"] == pytest.approx(both, rel=1e-6)
    assert spent_of["elsewhere"] == 1.0
    assert "u11" not in json.dumps(ledger)
    listed = ownview("privacy").out
    assert "1.465 of 1.5 is spent by 2 releases" in listed
    assert "released fedease, central epsilon 1 on" in listed


def test_equal_ids_of_two_shops_are_different_people_and_a_file_that_has_grown_is_known_again(
    ownview: Callable[..., Outcome], folder: Path
) -> None:
    """They are told apart by items; both shops in one file are known again as both."""
    numbers = [str(number) for number in range(1, 13)]
    books, music = _file(folder / "books.csv", numbers, "b"), _file(folder / "music.csv", numbers, "m")
    assert ownview(*FIT, "--data", books, "--out", "first").code == 0
    assert ownview(*FIT, "--data", music, "--out", "second").code == 0, "people of another shop"
    assert [one.spent.epsilon for one in Ledger().standings()] == [1.0, 1.0]
    grown = folder / "grown.csv"
    grown.write_text(books.read_text() + "13,b1,7\n13,b2,8\n13,b3,9\n13,b4,10\n1,new,11\n")
    both = folder / "both.csv"
    both.write_text(books.read_text() + music.read_text().split("\n", 1)[1])
    for data, releases in ((grown, 2), (both, 3)):
        refused = ownview(*FIT, "--data", data, "--out", "third")
        epsilon = dp_accounting.get_epsilon_gaussian(SIGMA / np.sqrt(releases), DELTA)
        assert (refused.code, f"it would be {epsilon:.4g};" in refused.err) == (2, True), refused.err
    output = ownview("privacy", "--json").out
    assert '"b1"' not in output
    assert all(one.items not in output for one in Ledger().entries())


def test_a_line_of_before_counts_for_every_shop() -> None:
    ledger = Ledger()
    assert ledger.charge(_asked("a"), _people(0, 5))
    assert ledger.entries()[0].items == ""
    with pytest.raises(SettingError, match="the budget of these people is spent"):
        ledger.charge(_asked("b")._replace(items=["x"]), _people(0, 5))


def test_start_private_books_what_it_fits_and_nothing_that_it_compares(
    ownview: Callable[..., Outcome], folder: Path
) -> None:
    """600 people are enough for a budget of 8, which is fitted; a second start of the same is the same release."""
    chance = np.random.default_rng(1)
    rows = [f"u{user},i{item},{place}" for user in range(600) for place, item in enumerate(chance.permutation(24)[:5])]
    (folder / "many.csv").write_text("\n".join(["user,item,timestamp", *rows]) + "\n")
    for _ in range(2):
        done = ownview("start", "many.csv", "--private", "-k", "3", "--out", "started")
        assert done.code == 0, done.err
        assert "recommended: epsilon 8" in done.words
        (entry,) = Ledger().entries()
        assert entry.mechanism is not None
        assert (entry.mechanism.epsilon, entry.number) == (8.0, 600)
        assert Path(entry.folder) == (folder / "started/model").resolve()
    refused = ownview("fit", "fedease", "--privacy", "central:epsilon=1", "--data", "many.csv", "--out", "more")
    assert (refused.code, "epsilon 8 of a total of 8" in refused.err) == (2, True), refused.err


def test_page_and_export_of_one_model_count_once(tmp_path: Path) -> None:
    made = ov.fit(ov.FedEASE(), shop(), federation=BUDGET, out=tmp_path / "run")
    export(made, tmp_path / "model")
    page(made, tmp_path / "page.html")
    page(made, tmp_path / "page.html", force=True)
    assert [one.model for one in Ledger().entries()] == ["fedease, central epsilon 1"]


def test_a_model_of_another_machine_is_counted_when_it_is_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = [ov.fit(ov.FedEASE(), shop(), federation=BUDGET, total=9, out=tmp_path / f"run{k}") for k in (1, 2)]
    monkeypatch.setenv(ledger_module.ENVIRONMENT, str(tmp_path / "here"))
    export(made[0], tmp_path / "model")
    for publish in (export, page):
        with pytest.raises(SettingError, match="the budget of these people is spent"):
            publish(made[1], tmp_path / "second")
    assert not (tmp_path / "second").exists()


def test_measured_runs_and_seeded_noise_are_not_releases(tmp_path: Path) -> None:
    for _ in range(2):
        ov.run(ov.FedEASE(), shop(), rounds=2, federation=BUDGET)
        ov.fit(ov.FedEASE(), shop(), federation={"privacy": "central:epsilon=1,noise=seeded"})
        ov.fit(ov.FedEASE(), shop())
    assert Ledger().entries() == []
    with pytest.raises(SettingError, match=r"--total 2: the model has no secret noise"):
        ov.fit(ov.FedEASE(), shop(), total=2, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_crash_after_the_charge_counts_too_much_and_never_too_little(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ownview.runs.files.folder import RunFolder

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(RunFolder, "write_experiment", killed)
        with pytest.raises(KeyboardInterrupt):
            ov.fit(ov.FedEASE(), shop(), federation=BUDGET, out=tmp_path / "run")
    assert len(Ledger().entries()) == 1
    with pytest.raises(SettingError, match="the budget of these people is spent"):
        ov.fit(ov.FedEASE(), shop(), federation=BUDGET)


def test_a_run_that_goes_on_is_the_same_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ownview.runs.run import resume
    from ownview.runs.training.finishing import Finishing

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Finishing, "write", killed)
        with pytest.raises(KeyboardInterrupt):
            ov.fit(ov.FedEASE(), shop(), federation=BUDGET, out=tmp_path / "run")
    export(resume(tmp_path / "run", data=shop()), tmp_path / "model")
    assert len(Ledger().entries()) == 1


@pytest.mark.parametrize("harm", ["cut", "edited", "gone", "empty", "people", "key", "other key"])
def test_a_damaged_ledger_releases_nothing(harm: str, tmp_path: Path) -> None:
    ledger = Ledger()
    assert ledger.charge(_asked("a"), _people(0, 9))
    lines = ledger.file.read_text()
    (hashes,) = ledger.people.iterdir()
    harms: dict[str, Callable[[], object]] = {
        "cut": lambda: ledger.file.write_text(lines[:-20]),
        "edited": lambda: ledger.file.write_text(lines.replace('"delta": 1e-05', '"delta": 5')),
        "gone": ledger.file.unlink,
        "empty": lambda: ledger.file.write_text(""),
        "people": lambda: hashes.write_bytes(hashes.read_bytes()[8:]),
        "key": (ledger.folder / "key").unlink,
        "other key": lambda: (ledger.folder / "key").write_bytes(bytes(32)),
    }
    harms[harm]()
    with pytest.raises(OutputError, match="nothing is released; bring a sound copy") as refused:
        ov.fit(ov.FedEASE(), shop(), federation=BUDGET, out=tmp_path / "run")
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "run").exists()


def test_a_crash_before_the_first_line_locks_nobody_out(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("write_text", "write_people"):
        with monkeypatch.context() as patch:
            patch.setattr(ledger_module, name, lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
            with pytest.raises(KeyboardInterrupt):
                Ledger().charge(_asked("a"), _people(0, 9))
    assert Ledger().charge(_asked("a"), _people(0, 9))


def test_two_processes_at_once_never_exceed_the_total() -> None:
    code = (
        "import sys\n"
        "from ownview.base.errors import SettingError\n"
        "from ownview.privacy.accountant import Sampling\n"
        "from ownview.releases.entries import Mechanism\n"
        "from ownview.releases.release_ledger import Asked, Ledger\n"
        "one = Mechanism('central', 1.0, 1e-5, (3.7306316,), Sampling())\n"
        "print('ready', flush=True)\n"
        "sys.stdin.readline()\n"
        "try: print(Ledger().charge(Asked(sys.argv[1], 'shop.csv', 'own', 'fedease', 'runs', one), range(20_000)))\n"
        "except SettingError: print('refused')"
    )
    pipe = subprocess.PIPE
    started = [
        subprocess.Popen([sys.executable, "-c", code, name], stdin=pipe, stdout=pipe, text=True) for name in "ab"
    ]
    for one in started:
        assert one.stdout is not None
        assert one.stdout.readline() == "ready\n"
    for one in started:
        assert one.stdin is not None
        one.stdin.write("go\n")
        one.stdin.flush()
    assert sorted(one.communicate()[0].strip() for one in started) == ["True", "refused"]
    assert len(Ledger().entries()) == 1


def test_only_the_owner_reads_it_and_it_names_nobody() -> None:
    before = os.umask(0)
    try:
        ledger = Ledger()
        ledger.charge(_asked("a"), ["anna@example.org", "ben@example.org"])
    finally:
        os.umask(before)
    files = [path for path in ledger.folder.rglob("*") if path.is_file()]
    assert len(files) == 3
    for path in files:
        assert b"example" not in path.read_bytes()
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(ledger.folder.stat().st_mode) == 0o700


def test_composition_is_that_of_dp_accounting() -> None:
    poisson = Sampling(rate=0.1)
    rounds = ((0.9,) * 20, poisson)
    mixed = epsilon_together([((SIGMA,), Sampling()), rounds], DELTA)
    accountant = dp_accounting.pld.PLDAccountant(value_discretization_interval=1e-3)
    accountant.compose(dp_accounting.GaussianDpEvent(SIGMA))
    accountant.compose(dp_accounting.PoissonSampledDpEvent(0.1, dp_accounting.GaussianDpEvent(0.9)), 20)
    assert mixed.epsilon == pytest.approx(accountant.get_epsilon(DELTA), rel=5e-3)
    gaussian = dp_accounting.pld.PLDAccountant(value_discretization_interval=1e-3)
    gaussian.compose(dp_accounting.GaussianDpEvent(SIGMA), 12)
    year = epsilon_together([((SIGMA,), Sampling())] * 12, DELTA)
    assert year.epsilon == pytest.approx(gaussian.get_epsilon(DELTA), rel=5e-3)
    cohorts = ((4.0,) * 5, Sampling(cohort=10, population=100))
    basic = epsilon_together([cohorts, ((SIGMA,), Sampling())], DELTA)
    assert basic.how.startswith("basic composition")
    assert basic.epsilon > max(epsilon_together([one], DELTA).epsilon for one in (cohorts, ((SIGMA,), Sampling())))


def test_people_are_counted_one_by_one() -> None:
    """Three months of which nobody is in more than two cost what two cost; many different sets are counted together."""
    members = np.array([[1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1]], dtype=bool)
    found = spent([ONE] * 3, members)
    assert len(found.releases) == 2
    assert found.epsilon == pytest.approx(dp_accounting.get_epsilon_gaussian(SIGMA / np.sqrt(2), DELTA), rel=1e-9)
    halves = np.array([[bit == "1" for bit in f"{number:012b}"] for number in range(4096)]).T
    chosen = halves[:, halves.sum(axis=0) == 6]  # 924 sets, none of which is part of another
    assert spent([ONE] * 12, chosen).releases == tuple(range(12))
    assert spent([ONE], np.zeros((1, 3), dtype=bool)).epsilon == 0.0


def test_the_smallest_delta_and_the_last_total_hold() -> None:
    ledger = Ledger()
    rare = replace(ONE, delta=1e-7, noise=(dp_accounting.get_sigma_gaussian(1.0, 1e-7),))
    assert ledger.charge(_asked("a"), _people(0, 5), 3.0)
    assert ledger.charge(_asked("b", rare), _people(4, 9), 3.0)
    (_, last) = ledger.standings()
    assert last.spent.delta == 1e-7
    ledger.set_total("shop.csv", "own", _people(0, 5), 1.0)
    with pytest.raises(SettingError, match="of a total of 1,"):
        ledger.charge(_asked("c"), _people(0, 9))
    assert ledger.charge(_asked("c"), _people(5, 9)), "these have 3 still"
    assert not ledger.charge(_asked("c"), _people(5, 9))
