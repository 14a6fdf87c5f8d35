"""Blends: weights from summed wins, parts that train or come from finished runs, and what goes into the folder."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from ownview.base.errors import SettingError
from ownview.blends.blend import Blend, Part, names_of
from ownview.blends.weights import Remembered, after_pause, chosen, lattice, moved, own_choice, searched
from ownview.data.interactions import Interactions
from ownview.engine.machine import Machine
from ownview.evaluation.named_protocols import protocol
from ownview.federation.options import FederationOptions
from ownview.parts.sequences.transitions import standardised
from ownview.registry import build, enough_rounds
from ownview.runs.blended_runs import blend_of
from ownview.runs.experiment import Experiment
from ownview.runs.full_fit import fit_like
from ownview.runs.run import resume, run
from ownview.runs.training.trainers import trainer
from ownview.testing.worlds import block_world

PARTS = ("popularity", "ease strength=5", "markov")


@pytest.fixture(scope="module")
def world() -> Interactions:
    return block_world(groups=2, users=15, items=12, per_user=8).data


def test_a_part_is_its_text() -> None:
    part = Part.read("fednext rank=512 scales=1/4/20 @runs/a b")
    assert part == Part("fednext", {"rank": "512", "scales": "1,4,20"}, "runs/a b")
    assert str(part) == "fednext rank=512 scales=1/4/20 @runs/a b"
    assert str(Part.of("fednext", {"scales": (1.0, 4.0), "rank": 3})) == "fednext scales=1.0/4.0 rank=3"
    with pytest.raises(SettingError, match="expected METHOD NAME=VALUE"):
        Part.read("fedease nearness")


def test_parts_are_two_to_six_and_no_blends() -> None:
    with pytest.raises(SettingError, match="expected 2 to 8 parts, found 1"):
        Blend(parts=("fedease",))
    with pytest.raises(SettingError, match="a blend has no blends for parts"):
        enough_rounds(Blend(parts=("blend", "fedease")))
    assert enough_rounds(Blend(parts=("fedease", "fednext rank=2 iterations=3"))) == 4
    assert enough_rounds(Blend(parts=("fedease", "fedmf"))) is None


def test_the_lattice_is_all_of_the_simplex() -> None:
    for parts, points in ((2, 21), (3, 66), (4, 120), (7, 84), (8, 120)):
        found = lattice(parts)
        assert found.shape == (points, parts)
        assert np.allclose(found.sum(1), 1)
        assert found.min() == 0
        assert len(np.unique(found.round(9), axis=0)) == points


def test_scores_are_standardised_over_items() -> None:
    found = standardised(torch.tensor([[1.0, 2.0, 3.0], [5.0, 5.0, 5.0]]))
    assert found[0].tolist() == pytest.approx([-(1.5**0.5), 0, 1.5**0.5])
    assert found[1].tolist() == [0, 0, 0]


def test_those_behind_a_pause_choose_apart_where_there_are_enough() -> None:
    points = np.array([[1.0, 0.0], [0.0, 1.0]])
    won = np.array([[1.0, 0.0]] * 120 + [[0.0, 0.9]] * 60)
    late = np.arange(180) >= 120
    assert chosen(won, late, points).tolist() == [[1, 0], [0, 1]]
    assert chosen(won[:140], late[:140], points).tolist() == [[1, 0], [1, 0]], "20 are too few"
    own = own_choice(won, np.zeros(180, dtype=bool), points, own=10.0)
    assert own[0].tolist() == [1, 0]
    assert own[-1].tolist() == [0, 1]


def test_moves_are_finer_than_the_lattice_and_stay_on_the_simplex() -> None:
    found = moved(np.array([[0.5, 0.5, 0.0], [0.5, 0.5, 0.0]]), 0.1)
    assert found.tolist() == pytest.approx(
        np.array([[0.5, 0.5, 0], [0.4, 0.6, 0], [0.4, 0.5, 0.1], [0.6, 0.4, 0], [0.5, 0.4, 0.1]])
    )
    scarce = moved(np.array([[0.05, 0.95]]), 0.1)
    assert scarce.tolist() == pytest.approx(np.array([[0.05, 0.95], [0, 1], [0.15, 0.85]]))


@pytest.mark.parametrize("best", [(0.31, 0.12, 0.57), (0.02, 0.98, 0.0), (1.0, 0.0, 0.0)])
def test_the_search_ends_nearer_than_the_lattice_lets_it(best: tuple[float, ...]) -> None:
    """Wins fall off with the square of the distance, and both groups want something else."""
    late = np.arange(120) >= 60
    wanted = np.where(late[:, None], np.array(best[::-1]), np.array(best))
    asked = []

    def ask(points: np.ndarray) -> np.ndarray:
        asked.append(len(points))
        return np.asarray(1 - ((wanted[:, None, :] - points) ** 2).sum(axis=2))

    found, tried = searched(ask, late, 3)
    assert tried == sum(asked)
    assert np.abs(found - np.array([best, best[::-1]])).max() <= 1 / 40
    assert np.allclose(found.sum(axis=1), 1)
    assert found.min() >= 0
    assert max(asked) <= 66, "no question is longer than the lattice"
    assert len(asked) <= 1 + 2 * 3


@pytest.mark.parametrize(("blocks", "made"), [(2, 2), (1, 1 + 3), (0, 6)])
def test_scores_are_made_once_as_far_as_they_can_be_kept(blocks: int, made: int) -> None:
    asked: list[list[int]] = []

    class Scorer:
        def parts(self, users: torch.Tensor) -> torch.Tensor:
            asked.append(users.tolist())
            return users.double()[None, :, None].repeat(2, 1, 3)

    block = 2 * 2 * 3 * 8
    scorer = Remembered(Scorer(), blocks * block)
    for _ in range(3):
        for users in (torch.tensor([0, 2]), torch.tensor([3, 7])):
            assert torch.equal(scorer.parts(users), Scorer().parts(users))
            asked.pop()
    assert len(asked) == made


def test_a_blend_trains_its_parts_and_finds_the_best_weights(world: Interactions) -> None:
    one = Experiment(method="blend", data="w", settings={"parts": PARTS}, protocol=protocol("honest"))
    finished = run(one, data=world)
    weights = finished.folder.read_tensors("model")[0]["weights"]
    assert weights.shape == (2, 3)
    single = [
        run(Experiment(method=part.method, data="w", settings=part.settings), data=world).result["validation"]
        for part in map(Part.read, PARTS)
    ]
    best = max(one["NDCG@10"] for one in single)
    assert finished.result["validation"]["NDCG@10"] >= best - 1e-6, "each part alone is a point of the lattice"
    described = finished.result["blend"]
    assert described["parts"] == ["popularity", "ease", "markov"]
    assert described["weights"] == weights.tolist()
    assert described["weights_tried"] > 60, "more than the lattice"
    weights_words = ", ".join(
        f"{name} {one:.2f}" for name, one in zip(("popularity", "ease", "markov"), weights[0], strict=True)
    )
    assert finished.result["notes"][-1].startswith(
        f"blend: weights of the 3 parts, chosen on validation: {weights_words}"
    )
    assert len(finished.recommend(finished.folder.read_users()["user"][0], 3)) == 3


def test_parts_of_one_method_are_told_apart_by_the_settings_that_differ() -> None:
    parts = ("fedease nearness=8.0 recency=2.0 seen=1", "fednext rank=4", "fedease nearness=inf recency=2.0 seen=1 @x")
    assert names_of(parts) == ["fedease (nearness=8.0)", "fednext", "fedease (nearness=inf)"]
    assert names_of(("fedease", "fedease recency=inf")) == ["fedease", "fedease (recency=inf)"]
    assert names_of(("sasrec @a", "fedease", "sasrec @b")) == ["sasrec no. 1", "fedease", "sasrec no. 2"]


def test_finished_runs_are_blended_without_training(world: Interactions, tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("ease", "markov")]
    for folder in folders:
        run(Experiment(method=folder.name, data="w"), data=world, out=folder)
    asked = blend_of(folders)
    parts = asked.settings["parts"]
    assert isinstance(parts, tuple)
    assert [isinstance(text, str) and Part.read(text).method for text in parts] == ["ease", "markov"]
    finished = run(asked, data=world, out=tmp_path / "blend")
    trained = run(Experiment(method="blend", data="w", settings={"parts": ("ease", "markov")}), data=world)
    assert finished.metrics == pytest.approx(trained.metrics)
    assert resume(tmp_path / "blend", data=world).metrics == finished.metrics


def test_a_blend_is_trained_on_everything_with_the_weights_it_was_measured_with(
    world: Interactions, tmp_path: Path
) -> None:
    measured = run(Experiment(method="blend", data="w", settings={"parts": PARTS}), data=world, out=tmp_path / "blend")
    found = measured.folder.read_tensors("model")[0]["weights"]
    fitted = run(fit_like(tmp_path / "blend"), data=world, out=tmp_path / "model")
    assert torch.equal(fitted.folder.read_tensors("model")[0]["weights"], found)
    assert (fitted.folder.path / fitted.result["settings_from"]["run"]).resolve() == tmp_path / "blend"
    assert fitted.result["notes"][-1].startswith("blend: weights of the 3 parts, of another run:")

    parts = []
    for text in PARTS:
        part = Part.read(text)
        run(Experiment(method=part.method, data="w", settings=part.settings), data=world, out=tmp_path / part.method)
        parts.append(tmp_path / f"{part.method}-model")
        run(fit_like(tmp_path / part.method), data=world, out=parts[-1])
    put_together = run(blend_of(parts, like=tmp_path / "blend"), data=world, out=tmp_path / "together")
    for user in world.users.tolist():
        assert put_together.recommend(user, 5) == fitted.recommend(user, 5)


def test_weights_come_from_a_measured_blend_of_the_same_methods(world: Interactions, tmp_path: Path) -> None:
    for name in ("ease", "markov", "fedmf"):
        run(Experiment(method=name, data="w", rounds=1), data=world, out=tmp_path / name)
    run(blend_of([tmp_path / "ease", tmp_path / "markov"]), data=world, out=tmp_path / "blend")
    run(blend_of([tmp_path / "ease", tmp_path / "fedmf"]), data=world, out=tmp_path / "trained")
    with pytest.raises(SettingError, match="expected a measured blend of markov, ease; found ease, markov"):
        blend_of([tmp_path / "markov", tmp_path / "ease"], like=tmp_path / "blend")
    with pytest.raises(SettingError, match="expected a measured blend of ease, markov; found ease"):
        blend_of([tmp_path / "ease", tmp_path / "markov"], like=tmp_path / "ease")
    with pytest.raises(SettingError, match="its part fedmf trains round by round; train every part on everything"):
        fit_like(tmp_path / "trained")
    given = replace(fit_like(tmp_path / "blend"), settings=blend_of([tmp_path / "ease", tmp_path / "markov"]).settings)
    with pytest.raises(SettingError, match="blend chooses its weights on validation, and here nothing is held out"):
        run(given, data=world)
    weighed = replace(given, settings={**given.settings, "weights": (0.5, 0.5, 0.5, 0.5)})
    with pytest.raises(SettingError, match="has items held out; expected a model trained on everything"):
        run(weighed, data=world)


def test_runs_that_were_asked_something_else_are_not_blended(world: Interactions, tmp_path: Path) -> None:
    run(Experiment(method="ease", data="w"), data=world, out=tmp_path / "a")
    run(Experiment(method="ease", data="w", seed=1), data=world, out=tmp_path / "b")
    with pytest.raises(SettingError, match=r"its seed is 1, that of .*a is 0; expected runs that differ in the method"):
        blend_of([tmp_path / "a", tmp_path / "b"])


def test_pauses_are_told_by_the_clock(world: Interactions) -> None:
    asked = protocol("next-sitting").prepare(_sittings())
    assert after_pause(asked.test, 1.0)[asked.test.users].all()
    honest = protocol("honest").prepare(world)
    assert not after_pause(honest.test, 1.0).any()


def _sittings() -> Interactions:
    user = np.repeat([f"u{k}" for k in range(12)], 8)
    item = np.array([f"i{(k * 5 + u) % 17}" for u in range(12) for k in range(8)])
    time = np.array([(k * 10 + u % 3) * 86_400 for u in range(12) for k in range(8)])
    return Interactions.from_rows("sittings", user, item, timestamp=time)


@pytest.mark.parametrize("name", ["honest", "new-items"])
def test_text_is_a_part_that_counts_by_its_weight_and_speaks_of_new_items(name: str, world: Interactions) -> None:
    asked, machine = protocol(name), Machine(torch.device("cpu"), torch.float64)
    colours, goods = ("red", "blue", "green"), ("cup", "plate", "bowl", "fork", "lamp")
    titles = [f"{colours[k % 3]} {goods[k % 5]}" for k in range(world.num_items)]
    split = asked.prepare(world.with_tables(items={"item": world.items.tolist(), "title": titles}))
    assert (split.num_new > 0) == (name == "new-items")
    models = (Blend(parts=("text", "fedease"), weights=(0.3, 0.7, 0.3, 0.7)), build("text", {}), build("fedease", {}))
    users, found = torch.arange(split.num_users), []
    for model in models:
        one = trainer(model, split, asked, FederationOptions(), 0, machine)
        one.round(1)
        found.append(one.asked(split.test).scores(users, None).double())
    blended, *parts = found
    expected = torch.zeros_like(blended)
    for weight, scores in zip((0.3, 0.7), parts, strict=True):
        expected += weight * (scores - scores.mean(1, keepdim=True)) / scores.std(1, correction=0, keepdim=True)
    torch.testing.assert_close(blended, expected, rtol=1e-6, atol=1e-6)
    if split.num_new:
        new = blended[:, -split.num_new :]
        assert all(float(scores[:, -split.num_new :].std(1).min()) > 0 for scores in parts), (
            "both parts tell them apart"
        )
        assert float(new.std(1).min()) > 0
