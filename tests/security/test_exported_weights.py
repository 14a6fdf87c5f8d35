"""Attack: a reader of an exported model, or of a page, solves its weights back into histories.

Possible before: a plain export of FedEASE or EASE^R held every item's exact count of people, and the row of an item
that one person had was that person's history (ml-100k, FedEASE: 1,682 of 1,682 counts; 58 people read with precision
1.000 and recall .533; EASE^R: recall 1.000). A page told the same from weights rounded to a byte. Striking rows and
columns out was not enough: what is left of an inverse holds traces of them.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy import sparse

from ownview.attacks.guesses import Inapplicable
from ownview.attacks.published_weights import COUNTS, HISTORIES, NEAREST, PAIRS, People, dense, weights_attacked
from ownview.attacks.scoring import AttackFinding
from ownview.attacks.solved_sums import solved_sums
from ownview.pages import scorer
from ownview.pages.encoding import encode
from ownview.pages.export import export
from ownview.pages.leaving_out import MIN_PEOPLE, left_out
from ownview.pages.page import page
from ownview.pages.published import Published, strength
from ownview.pages.run_model import RunModel
from ownview.runs.experiment import Experiment
from ownview.runs.full_fit import fit_of
from ownview.runs.run import Run, run
from ownview.seam.portable import Linear, Term
from tests.outcome import Outcome

USERS, COMMON, OWN = 60, 40, 12
LAMBDA = 20.0


def write_world(path: Path) -> Path:
    """Everybody has some of 40 items that many have; twelve people have an item of their own besides."""
    chance = random.Random(3)
    rows = ["user,item,title,timestamp"]
    for user in range(USERS):
        taste = [item for item in range(COMMON) if item % 3 == user % 3]
        had = [*chance.sample(taste, 8), *chance.sample(range(COMMON), 6)]
        had = list(dict.fromkeys(had))
        if user < OWN:
            had.insert(4, COMMON + user)
        rows += [f"u{user},i{item},Title {item},{1_000 * user + 10 * place}" for place, item in enumerate(had)]
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Run]:
    folder, done = tmp_path_factory.mktemp("fitted"), dict[str, Run]()
    world = write_world(folder / "world.csv")

    def one(method: str, **settings: Any) -> Run:
        name = "-".join([method, *map(str, settings.values())])
        if name not in done:
            done[name] = run(Experiment(method, data=str(world), settings=settings), out=folder / name)
        return done[name]

    return one


def people_of(one: Run, items: list[str]) -> People:
    """Who had what in training, of some items; the attacker has no such thing, the score of its guesses does."""
    split = RunModel.of(one).setup.split
    place = {str(item): position for position, item in enumerate(split.data.items.tolist())}
    ones = np.ones(len(split.train.values))
    shape = (len(split.train), split.data.num_items)
    every = sparse.csr_matrix((ones, split.train.values.numpy(), split.train.offsets.numpy()), shape=shape)
    return People(every[:, [place[item] for item in items]])


def attacked(folder: Path, one: Run, regularization: float | None) -> dict[str, AttackFinding]:
    """An exported folder, by what lies in it alone."""
    there = scorer.Model(folder)
    weights = torch.from_numpy(there.arrays["term0.weights"].copy())
    form = Linear((Term(weights, regularization=regularization),))
    return {found.attack: found for found in weights_attacked(form, people_of(one, [item for item, _ in there.items]))}


SOLVED = [
    ("fedease", {"regularization": LAMBDA}),
    ("fedease", {"regularization": LAMBDA, "nearness": np.inf}),
    ("ease", {"strength": LAMBDA}),
]


@pytest.mark.parametrize(("method", "settings"), SOLVED)
def test_weights_in_full_give_counts_and_histories_away_and_an_export_does_not(
    method: str, settings: dict[str, Any], fitted: Callable[..., Run], tmp_path: Path
) -> None:
    model = fitted(method, **settings)
    plain = export(model, tmp_path / "plain", min_people=1)
    before = attacked(plain.path, model, LAMBDA)
    assert before[COUNTS].values["exact"] == 1
    assert before[HISTORIES].values["precision"] == 1
    assert before[HISTORIES].values["recall"] > 0.9
    assert before[HISTORIES].values["people"] >= 8
    assert before[NEAREST].values["precision"] > before[NEAREST].values["shuffled precision"] + 0.3
    assert any("histories of single people can be read off" in one for one in plain.exposure.sentences())

    done = export(model, tmp_path / "made")
    after = attacked(done.path, model, LAMBDA)
    assert not after[HISTORIES].applies
    assert not after[NEAREST].applies
    assert after[PAIRS].values["recall"] == 0
    assert people_of(model, [item for item, _ in scorer.Model(done.path).items]).count.min() >= MIN_PEOPLE
    assert done.exposure.items_left_out >= 8
    assert not any("histories of single people" in one for one in done.exposure.sentences())


def test_sums_of_one_person_are_named_in_full_weights_and_gone_from_an_export(
    fitted: Callable[..., Run], tmp_path: Path
) -> None:
    model = fitted("fedease", regularization=LAMBDA, nearness=np.inf)
    before = attacked(export(model, tmp_path / "plain", min_people=1).path, model, LAMBDA)
    assert before[PAIRS].values["precision"] == before[PAIRS].values["recall"] == 1
    made = export(model, tmp_path / "made")
    assert made.exposure.pairs_left_out > 0
    assert attacked(made.path, model, LAMBDA)[PAIRS].values["claimed"] == 0


def test_striking_rows_and_columns_out_leaves_traces_and_solving_anew_does_not(fitted: Callable[..., Run]) -> None:
    """An inverse that was cut has sums that are no whole numbers: how far off tells whose item was cut."""
    form = RunModel.of(fitted("ease", strength=LAMBDA)).form
    assert isinstance(form, Linear)
    people = people_of(fitted("ease", strength=LAMBDA), [str(one) for one in _items(fitted)])
    made = left_out(form, people, MIN_PEOPLE)
    assert isinstance(made.form, Linear)
    whole = solved_sums(dense(made.form.terms[0]), LAMBDA)
    assert not isinstance(whole, Inapplicable)
    np.testing.assert_allclose(whole.counts, people.count[made.kept], atol=1e-2)
    exact = people.together[made.kept][:, made.kept].toarray()
    np.testing.assert_allclose(whole.sums, np.where(exact >= 2, exact, 0), atol=1e-2)
    struck = dense(form.terms[0])[np.ix_(made.kept, made.kept)]
    cut = solved_sums(struck, LAMBDA)
    assert not isinstance(cut, Inapplicable)
    assert np.abs(cut.sums - np.rint(cut.sums)).max() > 0.03


def _items(fitted: Callable[..., Run]) -> list[Any]:
    return list(RunModel.of(fitted("ease", strength=LAMBDA)).data.items.tolist())


def test_a_page_is_attacked_with_the_numbers_that_stand_in_it(fitted: Callable[..., Run], tmp_path: Path) -> None:
    model = fitted("ease", strength=LAMBDA)
    full = Published(RunModel.of(model), 1)
    rounded = full.exposure(encode(full.form, 10**6).form)
    before = {one.attack: one for one in rounded.findings}
    assert before[NEAREST].succeeds
    assert before[HISTORIES].values["precision"] > before[HISTORIES].values["shuffled precision"] + 0.2
    made = page(model, tmp_path / "page.html")
    assert not any(one.succeeds for one in made.exposure.findings if one.attack != COUNTS)
    text = made.path.read_text(encoding="utf-8")
    assert '"popularity"' not in text
    for number in range(OWN):
        assert f"Title {COMMON + number}" not in text


@pytest.mark.parametrize("method", ["fednext", "markov", "slist", "fcf"])
def test_other_models_leave_items_of_few_out_too(method: str, fitted: Callable[..., Run], tmp_path: Path) -> None:
    model = fitted(method)
    every = export(model, tmp_path / "plain", min_people=1)
    nearest = next(one for one in every.exposure.findings if one.attack == NEAREST)
    assert nearest.applies
    done = export(model, tmp_path / "made")
    assert not next(one for one in done.exposure.findings if one.attack == NEAREST).applies
    kept = {item for item, _ in scorer.Model(done.path).items}
    assert not kept & {f"i{COMMON + number}" for number in range(OWN)}
    assert scorer.Model(done.path).recommend(["i0", "i3"], k=5)


def test_under_a_budget_exact_counts_decide_nothing(tmp_path: Path) -> None:
    """To leave items out by how many people had them would be a release that no budget accounts for."""
    world = write_world(tmp_path / "world.csv")
    asked = {"method": "fedease", "data": str(world), "federation": {"privacy": "central:epsilon=8"}}
    private = run(fit_of(Experiment.from_dict(asked), None), out=tmp_path / "run")
    taken = RunModel.of(private)
    published = Published(taken)
    assert published.model.budgeted
    assert len(published.ids) == taken.data.num_items
    exposure = published.exposure(published.form)
    assert exposure.findings == ()
    assert "the budget covers them" in exposure.sentences()[0]
    assert published.known.tolist() == np.argsort(-strength(published.form), kind="stable").tolist()


def test_it_is_said_where_it_is_made_and_in_the_card(
    fitted: Callable[..., Run], tmp_path: Path, ownview: Callable[..., Outcome]
) -> None:
    folder = fitted("ease", strength=LAMBDA).folder.path
    outcome = ownview("export", folder, "-o", tmp_path / "made")
    card = (tmp_path / "made" / "MODEL_CARD.md").read_text(encoding="utf-8")
    about = json.loads((tmp_path / "made" / "model.json").read_text(encoding="utf-8"))
    assert "## What the weights give away" in card
    assert about["exposure"]["min_people"] == MIN_PEOPLE
    for sentence in about["exposure"]["sentences"]:
        assert f"weights: {sentence}" in outcome.out
        assert sentence in card.replace("\\", "")
    outcome = ownview("page", folder, "-o", tmp_path / "page.html", "--min-people", "1")
    assert "histories of single people can be read off the weights" in outcome.out
    outcome = ownview("export", folder, "-o", tmp_path / "none", "--min-people", "1000")
    assert outcome.code == 2
    assert "no two items were had by 1,000 people or more" in outcome.err
