"""A folder for a telephone: the model as ONNX, what items are called, what it is, and a card.

model.onnx     history and k in, scores of all items and the k best out; items by position
items.csv      id and title of every item, by position
model.json     inputs, outputs, method, settings, data, protocol, figures, privacy, versions, SHA-256 of both files
MODEL_CARD.md  the same for people
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ownview.base.errors import SettingError
from ownview.base.extras import how_to_install
from ownview.base.files import require_new, write_folder
from ownview.base.version import __version__
from ownview.blends.blend import Blend, Part
from ownview.data.interactions import IntArray
from ownview.pages.budgeted import agreement_covered, budget_of
from ownview.pages.card import card
from ownview.pages.export import Exported, write_about, write_items
from ownview.pages.fidelity import fidelity
from ownview.pages.leaving_out import MIN_PEOPLE, left_out
from ownview.pages.published import Exposure
from ownview.pages.run_model import RunModel
from ownview.runs.run import Run, open_run
from ownview.seam.portable import Attention, Blended, Factors, Linear

try:
    from ownview.phones.checking import compared
    from ownview.phones.forms import different, scored
    from ownview.phones.graph import FLOAT, INT, IR, OPSET, Graph, made, value
except ImportError as error:
    raise SettingError(
        f"a file for telephones needs onnx and onnxruntime; install: {how_to_install('onnx')}"
    ) from error

Form = Linear | Factors | Attention | Blended
ASKED = 200
"""Histories that a runtime is compared with Python on."""
_UNTRIED = "none is known here for a network, whose weights may hold traces of single people"
_MOST_BYTES = 2**31 - 2**20
"""Of one file: what its format can hold."""


def export_onnx(
    run: Run | str | Path, out: str | Path, *, min_people: int = MIN_PEOPLE, data_dir: Path | None = None
) -> Exported:
    """Write a finished model into a new folder, whole or not at all, after a runtime has recommended what Python does.

    Args:
        run: a run or its folder.
        out: the folder; it must not exist.
        min_people: items that fewer people had are left out; 1 leaves nothing out.
        data_dir: where datasets are.

    Raises:
        SettingError: the model has no portable form, is too large for one file, is a blend with a part that was made
            under a budget, or nothing would be left.
    """
    path = Path(out)
    require_new(path)
    model = RunModel.of(run if isinstance(run, Run) else open_run(Path(run)), data_dir, networks=True)
    _require_no_budget_inside(model)
    form, kept, exposed = _published(model, min_people)
    agreed = fidelity(form, kept, model.trainer, model.setup.rankers[1])
    content = as_onnx(form, len(kept), model.run.experiment.label())
    equal = compared(form, content, _histories(model, kept))
    if not equal.close:
        raise SettingError(f"{path}: {equal.sentence()}: too far from Python; nothing was written")
    model.charge()
    agreement = agreement_covered() if model.budgeted else {"sentence": agreed.sentence(), **agreed.plain()}
    agreement["runtime"] = equal.sentence()
    facts = model.facts() | {"agreement": agreement, "exposure": exposed.plain()}
    write_folder(path, lambda folder: _fill(folder, model, kept, content, facts, form))
    size = sum(file.stat().st_size for file in path.iterdir())
    return Exported(path, size, agreed, exposed, form.left_out, equal.sentence())


def _fill(folder: Path, model: RunModel, kept: IntArray, content: bytes, facts: dict[str, Any], form: Form) -> None:
    (folder / "model.onnx").write_bytes(content)
    write_items(folder, [model.ids[item] for item in kept], [model.titles[item] for item in kept])
    described = {"kind": "onnx", "opset": OPSET, "ir": IR, **_signature(form)}
    about = write_about(folder, described, facts, ("model.onnx", "items.csv"))
    (folder / "MODEL_CARD.md").write_text(card(about), encoding="utf-8")


def _signature(form: Form) -> dict[str, Any]:
    """Inputs and outputs: what they are, by name."""
    inputs = {"history": "int64 [length], positions of items, oldest first", "k": "int64 [1]"}
    if isinstance(form, Blended):
        inputs["after_pause"] = "int64 [1], 1 where the latest item is from before a pause, else 0"
    outputs = {"scores": "float32 [items]", "best": "int64 [k], positions, the best first, none of the history"}
    return {"inputs": inputs, "outputs": outputs}


def as_onnx(form: Form, m: int, method: str) -> bytes:
    """The file's content for a form of m items.

    Raises:
        SettingError: it would be larger than a file of this format can be.
    """
    graph = Graph()
    scores = graph.op("Identity", scored(graph, form, "history", m, "after_pause"), name="scores")
    mine = different(graph, "history")
    count = graph.size(mine)
    never = graph.op("Expand", graph.constant(-np.inf), graph.op("Shape", mine))
    others = graph.op("ScatterElements", scores, mine, never, axis=0)
    most = graph.op("Min", "k", graph.op("Sub", graph.ints(m), count))
    graph.best(others, most, "best")
    if (size := sum(one.ByteSize() for one in graph.constants)) > _MOST_BYTES:
        raise SettingError(f"the model takes {size / 1e9:.1f} GB as ONNX, whose files hold 2.1; take fewer items")
    inputs = [value("history", INT, ["length"]), value("k", INT, [1])]
    if isinstance(form, Blended):
        inputs.append(value("after_pause", INT, [1]))
    outputs = [value("scores", FLOAT, [m]), value("best", INT, ["count"])]
    content: bytes = made(graph, inputs, outputs, {"method": method}, __version__).SerializeToString()
    return content


def _require_no_budget_inside(model: RunModel) -> None:
    """Refuse a blend whose parts, or weights, would be published beyond the budget of a part."""
    blend, beside = model.run.experiment.model(), model.run.folder.path.parent
    parts = map(Part.read, blend.parts) if isinstance(blend, Blend) else ()
    for part in parts:
        if part.folder and budget_of(open_run(beside / part.folder)) is not None:
            raise SettingError(
                f"{model.run.folder.path}: its part {part.folder} was made under a budget, which does not cover the "
                "blend's weights; export that part alone"
            )


def _published(model: RunModel, min_people: int) -> tuple[Form, IntArray, Exposure]:
    """What is left of a model, the items that are, and what it gives away; under a budget everything is left."""
    form, leaves = model.taken, [one for one in _leaves(model.taken) if not isinstance(one, Attention)]
    if model.budgeted:
        everything = np.arange(model.num_items)
        return form, everything, Exposure("items of few people are in it: the budget covers them", None, 0, 0, ())
    counted = left_out(leaves[0] if leaves else Linear(()), model.people, min_people)
    if min_people > 1:
        form = _mapped(form, lambda one: _without(one, model, min_people, counted.kept))
    findings = tuple(
        finding
        for one in _leaves(form)
        if not isinstance(one, Attention)
        for finding in model.attacked(one, counted.kept)
    )
    rule = counted.sentence(min_people)
    if leaves and len(leaves) < len(_leaves(form)):
        rule += f". No attack was tried on the network in it: {_UNTRIED}"
    return form, counted.kept, Exposure(rule, min_people, counted.items, counted.pairs, findings, _UNTRIED)


def _without(one: Linear | Factors | Attention, model: RunModel, min_people: int, kept: IntArray) -> Any:
    if isinstance(one, Attention):
        rows = one.values["items"][torch.from_numpy(kept)].contiguous()
        return replace(one, values={**one.values, "items": rows})
    return left_out(one, model.people, min_people).form


def _leaves(form: Form) -> tuple[Linear | Factors | Attention, ...]:
    return form.parts if isinstance(form, Blended) else (form,)


def _mapped(form: Form, change: Callable[[Linear | Factors | Attention], Any]) -> Form:
    if isinstance(form, Blended):
        return replace(form, parts=tuple(change(one) for one in form.parts))
    changed: Form = change(form)
    return changed


def _histories(model: RunModel, kept: IntArray) -> list[list[int]]:
    """Some people's, by place among the items that are left, and an empty one; under a budget random ones.

    What is written of these then says nothing of people.
    """
    if model.budgeted:
        chance = np.random.default_rng(0)
        return [chance.integers(0, len(kept), size).tolist() for size in range(ASKED // 4)]
    known, place = model.setup.rankers[1].question.known, {item: at for at, item in enumerate(kept.tolist())}
    users = np.flatnonzero(known.items.lengths.cpu().numpy())[:ASKED]
    found = [[place[item] for item in known.items.of(user).tolist() if item in place] for user in users.tolist()]
    return [*found, []]
