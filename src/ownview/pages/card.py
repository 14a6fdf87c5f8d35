"""The model card: what an exported model is, in Markdown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ownview.base.display.shown import one_line
from ownview.privacy.masks import masked_sums
from ownview.runs.summaries.summary import SIMULATED


def card(about: Mapping[str, Any]) -> str:
    """The text, from what model.json says."""
    parts = (_head, _data, _figures, _privacy, _exposure, _licence, _use)
    return "\n".join(line for part in parts for line in [*part(about), ""]).rstrip() + "\n"


def _head(about: Mapping[str, Any]) -> list[str]:
    method = about["method"]
    seed = f", seed {about['seed']}" if "seed" in about else ""
    lines = [
        f"# {_text(method['title'])}, trained on {_text(about['data']['title'])}",
        "",
        f"A recommender made with Ownview {about['ownview']}: {_text(method['summary'])} ({_text(method['paper'])}).",
        f"Method `{method['name']}`, {about['rounds']} round{'s' * (about['rounds'] != 1)}{seed}.",
        "",
        "| setting | value |",
        "| --- | --- |",
        *(f"| {_text(name)} | {_text(value)} |" for name, value in about["settings"].items()),
    ]
    if not about["settings"]:
        lines = lines[:4]
    notes = [f"- {_text(one)}" for one in [*about["left_out"], *about["notes"]]]
    return [*lines, "", _form(about["form"]), *(["", "To know:", "", *notes] if notes else [])]


def _form(form: Mapping[str, Any]) -> str:
    if form["kind"] == "onnx":
        return f"Scores are worked out of a history by `model.onnx` (operations of ONNX {form['opset']})."
    if form["kind"] == "linear":
        return "Scores are a sum over the items of a history; nothing else about a person is needed."
    return (
        "Scores are one vector of the person times a vector of each item; the person's is made of a history "
        f"({form['fold_in']['kind']} fold-in, see scorer.py)."
    )


def _data(about: Mapping[str, Any]) -> list[str]:
    data = about["data"]
    counted = ""
    if "interactions" in data:
        counted = f", {data['interactions']:,} interactions. Fingerprint `{data['fingerprint'][:16]}`"
    return [
        "## Data",
        "",
        f"{_text(data['title'])}: {data['users']:,} people, {data['items']:,} items{counted}.",
        *([f"Cite: {_text(data['citation'])}"] if "citation" in data else []),
        *([f"From: {_text(data['homepage'])}"] if "homepage" in data else []),
    ]


def _figures(about: Mapping[str, Any]) -> list[str]:
    figures, agreement = about["figures"], about["agreement"]
    lines = ["## Figures", ""]
    if isinstance(figures, str):
        lines.append(f"There is none: {_text(figures)}.")
    else:
        lines += [
            f"Protocol `{_text(about['protocol'])}`, {figures['users']:,} people asked, 95 % interval over people:",
            "",
            "| | test | from | to |",
            "| --- | --- | --- | --- |",
        ]
        for name, one in figures.items():
            if name != "users":
                low, high = one["interval_95"]
                lines.append(f"| {name} | {one['value']:.4f} | {low:.4f} | {high:.4f} |")
    lines += ["", f"The model in this folder beside the whole one: {agreement['sentence']}."]
    if hits := agreement.get("test_hit_rate_at_10"):
        lines.append(
            f"Over the same people HR@10 on test is {hits['here']:.4f} here and {hits['model']:.4f} in the run."
        )
    return lines


def _privacy(about: Mapping[str, Any]) -> list[str]:
    privacy = about["privacy"]
    lines = ["## Privacy", ""]
    if not privacy["federated"]:
        return [*lines, "Not federated: everybody's interactions were in one place when the model was made."]
    lines += (
        [f"Federated, {SIMULATED}. With real devices one person would be one client, and send in a round:", ""]
        if privacy["simulated"]
        else ["Federated: devices of their own took part. One person is one client, and sent in a round:", ""]
    )
    lines += [f"- {_text(one)}" for one in privacy["leaves_a_device"]]
    lines += ["", "A server needs sums over clients alone; one client's message says more than a sum."]
    noise = privacy["noise"]
    masked = masked_sums(noise) is not None
    said = (
        "No noise was added: the model may say something of single people, most of all from items that few had."
        if masked or noise == "none"
        else f"Noise on what a client sends: `{noise}`."
    )
    hidden = (
        "Uploads would be masked, and a server would see"
        if privacy["simulated"]
        else "Uploads were masked: the server saw"
    )
    said = f"{hidden} sums alone (`{noise}`). {said}" if masked else said
    return [*lines, "", said, "Recommending with this folder sends nothing anywhere."]


def _exposure(about: Mapping[str, Any]) -> list[str]:
    return ["## What the weights give away", "", *(f"- {_text(one)}" for one in about["exposure"]["sentences"])]


def _licence(about: Mapping[str, Any]) -> list[str]:
    program = "" if about["form"]["kind"] == "onnx" else " `scorer.py` is part of Ownview (Apache-2.0)."
    return [
        "## Licence",
        "",
        f"Terms of the data: {_text(about['data']['terms'])}. Titles and weights come from it; look at the terms "
        f"before passing the folder on.{program}",
    ]


def _use(about: Mapping[str, Any]) -> list[str]:
    if about["form"]["kind"] == "onnx":
        sides = (
            f"{side[:-1]} `{name}`: {what}"
            for side in ("inputs", "outputs")
            for name, what in about["form"][side].items()
        )
        lines = ["## Use", "", *(f"- {one}" for one in sides), "", f"{about['agreement']['runtime']}."]
        return [*lines, "Positions are those of items.csv; `model.json` holds the SHA-256 of both files."]
    return [
        "## Use",
        "",
        "```sh",
        "python scorer.py ID ID ...     # needs numpy; ids are in items.csv, the latest item last",
        "```",
        "",
        "`model.json` says what the arrays of `model.safetensors` are, and holds their SHA-256.",
    ]


def _text(value: Any) -> str:
    """On one line, and no markup."""
    plain = one_line(str(value))
    for mark in "\\`*_{}[]<>|#":
        plain = plain.replace(mark, f"\\{mark}")
    return plain
