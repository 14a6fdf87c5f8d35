"""Every registered method under every named protocol, one round each, on a tiny world that comes back in sittings."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ownview.base.errors import SettingError, UnknownNameError
from ownview.data import Interactions
from ownview.evaluation.metrics import HEADLINE
from ownview.evaluation.named_protocols import NEW_USERS, NEXT_SITTING, PROTOCOLS, at_cut
from ownview.evaluation.protocol import Protocol
from ownview.registry import BASELINES, METHODS, PLUGINS
from ownview.runs.experiment import Experiment
from ownview.runs.run import Run, run

DAY = 86_400
USERS, ITEMS = 24, 130
SMALL = {"embedding_size": 4, "local_epochs": 1, "rank": 2, "epochs": 1, "clusters": 2}
"""Settings that keep a round short, where a method has them."""

PER_USER = {"bpr", "centrap", "lightgcn", "mf", "ncf"}
"""Central models that learn values for every user: they have nothing to say about users who never took part."""


@pytest.fixture(scope="module")
def data() -> Interactions:
    """Everybody has a sitting of three items every ten days, at a time of their own; enough items for `paper`."""
    random = np.random.default_rng(0)
    users, items, times = [], [], []
    for user in range(USERS):
        chosen = random.choice(ITEMS // 2 if user % 2 else ITEMS, 24, replace=False)
        for sitting in range(8):
            begin = (10 * sitting + int(random.integers(5))) * DAY + int(random.integers(DAY))
            users += [f"u{user}"] * 3
            items += chosen[3 * sitting : 3 * sitting + 3].tolist()
            times += [begin + 60 * k for k in range(3)]
    about = {"title": {item: f"number {item} of shelf {item % 9}" for item in range(ITEMS)}}
    return Interactions.from_rows(
        "sittings", np.array(users, object), np.array(items), timestamp=np.array(times), about=about
    )


def settings_of(name: str) -> dict[str, int]:
    known = {**METHODS, **BASELINES}[name]().values()
    return {key: value for key, value in SMALL.items() if key in known}


def finished(name: str, protocol: Protocol, data: Interactions, folder: Path, plugin: str = "") -> Run:
    asked = Experiment(
        method=name, data="", protocol=protocol, rounds=1, settings=settings_of(name),
        plugins=((plugin, {}),) if plugin else (),
    )  # fmt: skip
    return run(asked, data=data, out=folder / "run")


def assert_measured(one: Run, protocol: Protocol) -> None:
    for metric in HEADLINE:
        assert 0 <= one.metrics[metric] <= 1
    assert ("recall@10" in one.metrics) == (protocol.split in ("next-sitting", "new-items"))
    assert one.result["users_ranked"] == len(one.folder.read_users()["user"]) > 0


@pytest.mark.parametrize("protocol", PROTOCOLS.values(), ids=PROTOCOLS)
@pytest.mark.parametrize("name", [*METHODS, *BASELINES])
def test_runs_or_refuses_in_words(name: str, protocol: Protocol, data: Interactions, tmp_path: Path) -> None:
    if name in PER_USER and protocol is NEW_USERS:
        with pytest.raises(SettingError, match=f"{name} learns values for every user .* under protocol new-users take"):
            finished(name, protocol, data, tmp_path)
        return
    assert_measured(finished(name, protocol, data, tmp_path), protocol)


@pytest.mark.parametrize("protocol", [NEXT_SITTING, NEW_USERS], ids=lambda one: one.name)
@pytest.mark.parametrize("plugin", PLUGINS)
def test_plugins_run_too(plugin: str, protocol: Protocol, data: Interactions, tmp_path: Path) -> None:
    assert_measured(finished("fedmf", protocol, data, tmp_path, plugin), protocol)


def test_those_that_are_refused_are_those_that_do_not_score_by_history() -> None:
    assert {name for name, model in BASELINES.items() if not model.by_history} == PER_USER


def test_newcomers_are_recommended_to_and_members_are_refused(data: Interactions, tmp_path: Path) -> None:
    one = finished("fedmf", NEW_USERS, data, tmp_path)
    newcomer = one.folder.read_users()["user"][0]
    tensors, about = one.folder.read_tensors("recommended")
    lists = tensors["lists"][0].tolist()
    split = NEW_USERS.prepare(data)
    assert [found.item for found in one.recommend(newcomer)] == split.data.items[lists].tolist()
    member = str(split.data.users[0])
    with pytest.raises(
        UnknownNameError, match=f"unknown user of sittings who never took part '{member}'; choose from u"
    ):
        one.recommend(member)
    assert {sample["user"] for sample in about["samples"]} <= set(one.folder.read_users()["user"])


def test_a_run_with_several_answers_notes_them_all(data: Interactions, tmp_path: Path) -> None:
    one = finished("popularity", NEXT_SITTING, data, tmp_path)
    split, users = NEXT_SITTING.prepare(data), one.folder.read_users()
    for place, user in enumerate(split.test.users.tolist()):
        answers = split.items_of(split.test)[split.test.answers(user)].tolist()
        assert users["user"][place] == split.data.users[user]
        assert users["held_out"][place] == ";".join(map(str, answers))
        assert len(users["better"][place].split(";")) == len(users["tied"][place].split(";")) == len(answers)
    assert any(";" in held for held in users["held_out"])
    _, about = one.folder.read_tensors("recommended")
    for sample in about["samples"]:
        assert sample["test"] == split.test.answers(split.data.position_of_user(sample["user"]))
        assert sample["validation"] == []  # another model is asked for it
        assert all(str(item) in about["titles"] for item in sample["test"])


def test_the_round_is_chosen_by_a_model_that_trained_on_less(data: Interactions, tmp_path: Path) -> None:
    one = run(Experiment(method="fedmf", data="", protocol=NEXT_SITTING, rounds=3, settings=settings_of("fedmf")),
              data=data, out=tmp_path / "run")  # fmt: skip
    packed, _ = one.folder.read_tensors("model")
    split = NEXT_SITTING.prepare(data)
    assert split.earlier is not None
    assert len(packed["own.user"]) == split.num_users
    assert len(packed["earlier.own.user"]) == split.earlier.num_users <= split.num_users
    assert len(split.earlier.data) < len(split.data)
    assert split.validation is split.earlier.test
    assert split.validation.users.tolist() != split.test.users.tolist()
    assert one.result["validation"] == one.rounds[one.result["chosen_round"] - 1]["validation"]


def test_another_cut_is_another_protocol(data: Interactions, tmp_path: Path) -> None:
    one, other = (finished("popularity", cut, data, tmp_path / cut.name) for cut in (at_cut(0.5), NEXT_SITTING))
    assert one.experiment.protocol.name == "next-sitting@0.5"
    assert one.experiment.protocol == Experiment.from_toml(one.experiment.to_toml()).protocol
    trained = [int(run.folder.read_tensors("recommended")[0]["popularity"].sum()) for run in (one, other)]
    assert trained[0] / len(data) == pytest.approx(0.5, abs=0.02)
    assert trained[1] / len(data) == pytest.approx(0.8, abs=0.02)
