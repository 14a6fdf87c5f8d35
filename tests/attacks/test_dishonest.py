"""Dishonest clients: what they reach where nothing is checked, and what bounds by declaration leave them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from benchmarks.dishonest import BEGIN, END, PAGE, RULES_BEGIN, RULES_END, read, rules, tables

from ownview.attacks.dishonest.audit import DishonestSettings, at_chance, audit
from ownview.attacks.dishonest.crew import BACKDOOR, BOOSTED, BOUNDED, DEMOTE, PLAUSIBLE, PROMOTE, Crew
from ownview.attacks.dishonest.infiltration import lists_of, top_tens
from ownview.attacks.dishonest.one_liar import one_liar
from ownview.data.splitting.splits import Split
from ownview.federation.checks.liars import BOUND, defence, warning
from ownview.federation.options import FederationOptions
from ownview.messages.upload import Upload
from ownview.registry import METHODS
from ownview.runs.experiment import Experiment
from ownview.runs.findings.attacking import scene_of
from ownview.runs.run import run
from ownview.runs.training.setup import load_data, split_data
from ownview.seam.training import Params
from ownview.testing.worlds import federation, small_world
from tests.attacks.scenes import scene
from tests.faults.conftest import write_world
from tests.outcome import Outcome


@pytest.fixture(scope="module")
def world() -> Split:
    return small_world(num_users=80, num_items=120)


@pytest.mark.parametrize("method", sorted(METHODS))
def test_a_server_refuses_no_honest_upload(method: str) -> None:
    """As bytes, through everything that a server checks; two rounds, of which the second may send nothing new."""
    one = federation(METHODS[method](), small_world(num_users=12))
    honest, checked = one.server.take, set[int]()

    def opened() -> Params:
        return one.terms.opened(one.server.download(1, torch.arange(0)))

    def take(upload: Upload) -> None:
        for k, client in enumerate(upload.clients.tolist()):
            message = one.terms.codec.write_upload(upload.one(k), 1)
            if message:
                assert not one.terms.refusals(one.terms.codec.read_upload(message, client), 1, opened())
                checked.add(client)
        honest(upload)

    one.server.take = take  # type: ignore[method-assign]
    for number in (1, 2):
        one.round(number)
    assert not checked if method == "local-only" else len(checked) >= 11, "of one item nothing may follow"


def _exposure(
    world: Split, means: str, *, checked: bool, share: float = 0.05, method: str = "fedease"
) -> tuple[float, float, float]:
    """By how much the item that liars promote stands in more lists; and how many of how many uploads were refused."""
    rounds = 5 if method == "fcf" else 1  # steps of Adam
    settings = DishonestSettings(rounds, (PROMOTE,), (means,), (share,), checked=checked)
    values = audit(scene(method, world), settings)[-1].values
    return values["exposure"] - values["honest exposure"], values["refused"], values["sent"]


@pytest.mark.parametrize(
    ("method", "means"), [("fedease", BOOSTED), ("fedease", BOUNDED), ("fedials", BOOSTED), ("fcf", BOOSTED)]
)
def test_what_no_history_makes_is_refused_and_reaches_nothing(method: str, means: str, world: Split) -> None:
    assert _exposure(world, means, checked=False, method=method)[0] > 0.2
    reached, refused, sent = _exposure(world, means, checked=True, method=method)
    assert reached <= 0.05, "three lists of 67 differ without the histories that liars gave up"
    assert refused == sent >= 1


@pytest.mark.parametrize("method", ["fedease", "fedials", "fcf"])
def test_a_plausible_liar_is_counted_like_anybody(method: str, world: Split) -> None:
    _, refused, sent = _exposure(world, PLAUSIBLE, checked=True, method=method)
    assert (refused, sent) == (0, 20 if method == "fcf" else 4)


@pytest.mark.parametrize(
    ("method", "rule", "words"),
    [
        ("fedmf", "none", "of all lists; --set robust=bounded:4 bounds that"),
        ("fedmf", "bounded:4", "can put an item into"),
        ("gpfedrec", "none", "of all lists; --set robust=bounded:4 bounds that, at a cost (docs/dishonest.md)"),
        ("gpfedrec", "bounded:4", "can put an item into"),
        ("fedease", "none", "one client that lies is refused"),
    ],
)
def test_one_liar_is_named_with_the_next_step(method: str, rule: str, words: str) -> None:
    given = scene(method, small_world(num_users=80, num_items=1500))
    found = one_liar(replace(given, options=replace(given.options, robust=rule)), 3)
    assert words in found.sentence
    assert found.succeeds == (rule == "none" and method != "fedease")


def test_what_liars_do_not_reach_with_a_model_at_chance_is_said_to_say_little(world: Split) -> None:
    found = audit(scene("fedmf", world), DishonestSettings(1, (PROMOTE,), (PLAUSIBLE,), ()))[0]
    assert found.values["honest HR@10"] <= at_chance(world)
    assert not found.succeeds
    assert "without liars the model is at chance" in found.sentence


def test_a_backdoor_is_for_those_alone_who_have_the_trigger(world: Split) -> None:
    crew = Crew(world, BACKDOOR, PLAUSIBLE, 3)
    fake = crew.infiltrated().train.of(int(crew.members[0])).tolist()
    assert fake.index(crew.target) == fake.index(crew.trigger) + 1
    settings = DishonestSettings(1, (BACKDOOR,), (BOOSTED,), (0.05,), checked=False)
    values = audit(scene("fedease", world), settings)[0].values
    assert values["exposure"] > 0.5 > values["honest exposure"]


def test_liars_claim_what_their_goal_asks_for(world: Split) -> None:
    for goal in (PROMOTE, DEMOTE):
        crew = Crew(world, goal, PLAUSIBLE, 5)
        split = crew.infiltrated()
        assert len(set(crew.members.tolist())) == 5
        for user in range(world.num_users):
            mine = split.train.of(user)
            if user not in crew.members.tolist():
                assert torch.equal(mine, world.train.of(user))
                continue
            assert (crew.target in mine.tolist()) == (goal == PROMOTE)
            assert len(set(mine.tolist())) == len(mine) == int(world.train.lengths.median())
            if split.timeline.times is not None:
                times = split.timeline.times.of(user)
                assert torch.equal(times, times.sort().values)
    crew = Crew(world, DEMOTE, PLAUSIBLE, 1)
    assert crew.target == int(crew.takers.argmax())


def test_a_client_states_no_more_samples_than_a_history_of_all_items_has() -> None:
    one = federation(METHODS["fedmf"](), small_world(num_users=6))
    work = one.terms.client.training
    most = work.most_samples(one.world.num_items)
    assert most == one.world.num_items * (1 + work.negatives)
    upload = one.work.do(one.work.samples(1, torch.arange(6)), one.server.download(1, torch.arange(6)))
    assert int(upload.samples.max()) <= most


def test_the_command_says_how_far_liars_get(
    tmp_path: Path, ownview: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_world(tmp_path / "world.csv")
    asked = ("attack", "fedease", "--data", "world.csv", "--dishonest")
    outcome = ownview(*asked, "-o", "found.json")
    assert outcome.code == 0, outcome.err
    assert "promote, boosted: 1 client: an item that few have stands in" in outcome.words
    assert "no single history of at most 3 items can bring any one item into more than" in outcome.words
    attacks = json.loads(Path("found.json").read_text())["attacks"]
    assert {one["attack"] for one in attacks} >= {"promote, plausible", "demote, norm-bounded", "degrade, boosted"}
    assert all(one["values"]["refused"] == one["values"]["sent"] for one in attacks if "plausible" not in one["attack"])
    bare = json.loads(ownview(*asked, "--unchecked", "--json").out)["attacks"]
    assert all(one["values"]["refused"] == 0 for one in bare if "boosted" not in one["attack"])
    for wrong, why in (
        (("--dishonest", "--privacy", "central:epsilon=1"), "expected none"),
        (("--unchecked",), "--unchecked: is for --dishonest"),
        (("--goal", "promote"), "--goal: is for --dishonest"),
        (("--means", "boosted"), "--means: is for --dishonest"),
        (("--dishonest", "--goal", "promot"), "--goal promot: no such goal of liars; did you mean 'promote'?"),
        (("--dishonest", "--means", "piek-ipe"), "--means piek-ipe: no such means of liars; did you mean 'pieck-ipe'?"),
        (
            ("--dishonest", "--goal", "promote", "--means", "spattack-o-d"),
            "spattack-o-d degrades the lists; expected --goal degrade",
        ),
    ):
        refused = ownview("attack", "fedease", "--data", "world.csv", *wrong)
        assert (refused.code, why in refused.err) == (2, True), refused.err


def test_the_command_tries_the_goals_and_means_that_are_named(
    tmp_path: Path, ownview: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of the literature have one goal each, and are tried for no other."""
    monkeypatch.chdir(tmp_path)
    write_world(tmp_path / "world.csv")
    asked = ("attack", "fedmf", "--data", "world.csv", "--rounds", "1", "--dishonest", "--json")
    outcome = ownview(
        *asked, "--goal", "promote", "--goal", "degrade", "--means", "pieck-ipe", "--means", "spattack-l-d"
    )
    assert outcome.code == 0, outcome.err
    tried = [one["attack"] for one in json.loads(outcome.out)["attacks"]]
    assert [*dict.fromkeys(tried)] == ["promote, pieck-ipe", "degrade, spattack-l-d"]


@pytest.mark.parametrize(
    ("method", "options", "words"),
    [
        ("fedease", {}, ""),
        ("fednext", {}, ""),
        ("local-only", {}, ""),
        ("fedmf", {"robust": "clipped:2"}, "one in twenty that lie together can still move lists"),
        ("fedmf", {"privacy": "central:epsilon=8,clip=0.1,rounds=1"}, ""),
        ("fedmf", {}, "--set robust=bounded:4"),
        ("fedials", {}, ""),
        ("fcf", {}, ""),
        ("fedcia", {}, "noise hides its upload"),
        ("gpfedrec", {}, "nothing bounds its upload"),
        ("fedmf", {"privacy": "masked:clip=1"}, "the server cannot see which"),
    ],
)
def test_it_is_said_where_nothing_bounds_a_liar(method: str, options: dict[str, str], words: str) -> None:
    given = FederationOptions(**options)  # type: ignore[arg-type]
    said = warning(federation(METHODS[method](), small_world(num_users=8), options=given).terms)
    assert words in said
    assert bool(words) == bool(said)


@pytest.mark.parametrize(
    ("method", "rule"), [("fedmf", BOUND), ("fedease", "none"), ("gpfedrec", "none"), ("fedem", "none")]
)
def test_tables_that_clients_send_whole_are_not_bounded_by_default(method: str, rule: str) -> None:
    assert defence(federation(METHODS[method](), small_world(num_users=8)).terms) == rule


def test_yes_needs_all_means_for_every_number_of_liars() -> None:
    rows = [one for one in read() if one["method"] == "fedncf"]
    lacking = [one for one in rows if (one["server"], one["attack"]) != ("now", "promote, plausible")]
    assert "| yes |" in tables(rows)
    assert "| as far as measured |" in tables(lacking)
    assert "| yes |" not in tables(lacking)


def test_rows_of_a_rule_stand_in_the_table_of_rules_alone() -> None:
    rows = [one for one in read() if one["method"] == "fedmf"]
    ruled = [one | {"server": "median", "robust": "median"} for one in rows if one["server"] == "now"]
    assert tables([*rows, *ruled]) == tables(rows)
    assert "| `fedmf` | median | 0.0 %, 0.0 %, 0.0 % |" in rules([*rows, *ruled])
    assert "median" not in rules(rows)


def test_a_check_is_named_where_uploads_are_checked_whole() -> None:
    summary = tables(read()).partition("`local-only` sends nothing")[0].splitlines()
    by = {one.split("`")[1]: one.split("|")[2].strip() for one in summary if one.startswith("| `")}
    assert (by["fedease"], by["gpfedrec"], by["fedcia"], by["fedncf"]) == ("check", "none", "none", "bounded:4")


def test_a_deployment_warns_wherever_the_page_says_that_the_limit_is_not_reached() -> None:
    """By the record, so that a figure which falls behind its limit cannot stay unsaid."""
    summary = tables(read()).partition("`local-only` sends nothing")[0].splitlines()
    missed = {one.split("`")[1] for one in summary if one.endswith("| **no** |")}
    unbounded = {one.split("`")[1] for one in summary if "| none |" in one}
    assert {"pfedrec", "fedmf", "gpfedrec", "perfedrec"} & missed == {"pfedrec", "gpfedrec", "perfedrec"}
    assert {"gpfedrec", "perfedrec", "fedcia"} <= unbounded
    for method in sorted(missed | unbounded):
        few = small_world(num_users=8)
        rule = FederationOptions(robust=defence(federation(METHODS[method](), few).terms))
        said = warning(federation(METHODS[method](), few, options=rule).terms)
        assert "one client that lies can move everybody's lists" in said or method not in unbounded, method
        assert "lie" in said, method


@pytest.mark.parametrize(("method", "rule"), [("pfedrec", "none"), ("pfedrec", "bounded:4"), ("fedmf", "bounded:4")])
def test_what_start_and_compare_say_of_one_liar_says_what_many_can_do(method: str, rule: str) -> None:
    """`start` shows this sentence of the best method: also where one client alone reaches nothing."""
    given = scene(method, small_world(num_users=80, num_items=1500))
    found = one_liar(replace(given, options=replace(given.options, robust=rule)), 3)
    assert found.succeeds or "one in twenty that lie together can still move lists" in found.sentence


def test_the_page_is_written_from_the_record() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert BEGIN + tables(read()) + END in page
    assert RULES_BEGIN + rules(read()) + RULES_END in page


@pytest.mark.parametrize("method", ["fedease", "fednext", "pfedrec"])
def test_figures_are_those_of_a_run(method: str, tmp_path: Path) -> None:
    """Clients are asked as in every measured run: with what they know by then, and by the clock of the question."""
    write_world(tmp_path / "world.csv")
    experiment = Experiment(method, data=str(tmp_path / "world.csv"), rounds=1)
    expected = run(experiment, out=tmp_path / "run").result["test"]["HR@10"]
    scene_here = scene_of(experiment, experiment.model(), split_data(experiment, load_data(experiment, None)))
    one = scene_here.federation()
    one.round(1)
    assert lists_of(top_tens(one), Crew(scene_here.split, PROMOTE, PLAUSIBLE, 0)).hits == pytest.approx(expected)
