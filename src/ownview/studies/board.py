"""Signed result files, and a board of them: what was measured, by whose word, and what is needed to run it again.

A result file is JSON: `content` (the experiment, the result, its provenance, fingerprints of the run's files and the
source of a method of one's own), `signer` (a name and an Ed25519 public key) and `signature`, over the canonical form
of the rest: keys sorted, no blanks, UTF-8. A signature says who states a figure; only running it again says it is true.
Names are freely chosen unless known keys are given (`studies.signing_keys`).
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path, PurePosixPath
from typing import Any

from ownview.base.display.shown import one_line
from ownview.base.errors import DataError, OutputError
from ownview.base.files import is_file, make_folder, sha256_of, write_json, write_text
from ownview.base.json_shapes import TableOf, misfit
from ownview.base.json_text import parse_json
from ownview.blends.blend import Blend, Part
from ownview.evaluation.metrics import HEADLINE
from ownview.runs.experiment import SOURCE, Experiment
from ownview.runs.files.manifest import fingerprints, read_manifest
from ownview.runs.files.sources import DATA
from ownview.runs.run import open_run, run
from ownview.runs.scoring import is_of_lists
from ownview.runs.verifying import Check, came_out_again
from ownview.studies.signing_keys import fingerprint, holds, private_key, public_text, signature

FORMAT = 1
_MOST = 4 * 2**20
"""Bytes of a result file."""
_FIELDS = (
    "method",
    "data",
    "protocol",
    "seed",
    "settings",
    "chosen_round",
    "rounds",
    "test",
    "interval_95",
    "users_ranked",
)
_SHAPE = {
    "format": int, "signature": str, "signer": {"name": str, "key": str},
    "content": {
        "experiment": str, "provenance": {}, "files": TableOf(str), "sources": TableOf(str),
        "result": {"method": str, "data": str, "protocol": str, "seed": int, "settings": {}, "chosen_round": int,
                   "rounds": int, "test": TableOf(float), "interval_95": TableOf([float]), "users_ranked": int},
    },
}  # fmt: skip


@dataclass(frozen=True)
class Signed:
    """A result file whose signature holds.

    Args:
        path: of the file.
        signer: name that the signer states.
        public: the key, in base64.
        content: what was signed.
    """

    path: Path
    signer: str
    public: str
    content: dict[str, Any]

    @property
    def key(self) -> str:
        """Fingerprint of the key, 16 hexadecimal digits."""
        return fingerprint(self.public)

    @property
    def result(self) -> dict[str, Any]:
        """Figures, with protocol and seed."""
        return dict(self.content["result"])


def sign(folder: str | Path, key: Any, name: str, out: Path) -> Path:
    """Write a finished run as a signed result file.

    Args:
        folder: of the run, unchanged since it finished.
        key: an Ed25519 private key, or its file in PEM without a password, which is made where it is not there.
        name: of the signer, as the board shows it.
        out: the file.
    """
    one = open_run(folder)
    place = one.folder.path
    if read_manifest(place) != fingerprints(place):
        raise OutputError(
            f"{place}: has changed since the run finished, or has no manifest; ownview verify says what differs"
        )
    if "test" not in one.result:
        raise OutputError(f"{place}: has no test figure; expected a measured run")
    if why := _stays(one.experiment):
        raise OutputError(f"{place}: {why}, which a result file cannot make again")
    if out.exists():
        raise OutputError(f"{out}: already exists; choose another --out")
    sources = {
        path.relative_to(place / SOURCE).as_posix(): path.read_text("utf-8")
        for path in sorted((place / SOURCE).rglob("*.py"))
    }
    # No path of the signer's machine: a reader has the data by its name, or lays its file beside the result.
    content = {
        "experiment": one.experiment.to_toml_for_others(), "provenance": one.folder.read_provenance(),
        "files": fingerprints(place), "sources": sources,
        "result": {name: one.result[name] for name in _FIELDS},
    }  # fmt: skip
    private = private_key(key) if isinstance(key, Path) else key
    signed = {"format": FORMAT, "content": content, "signer": {"name": name, "key": public_text(private)}}
    write_json(out, {**signed, "signature": signature(private, _canonical(signed))})
    return out


def _stays(experiment: Experiment) -> str:
    """What a run rests on that no result file holds, in words; empty where it is nothing but data."""
    if is_of_lists(experiment):
        return "measures lists of another program"
    if experiment.protocol.split_folder:
        return f"is measured on split files of a folder ({Path(experiment.protocol.split_folder).name})"
    model = experiment.model() if experiment.method.lower() == Blend.name else None
    parts = [Part.read(text) for text in model.parts] if isinstance(model, Blend) else []
    if any(part.folder or part.method.endswith(".py") for part in parts):
        return "blends finished runs or files of this machine"
    return ""


def read_signed(path: str | Path) -> Signed:
    """A result file, checked: `DataError` names what is wrong with it."""
    path = Path(path)
    if not path.is_file() or path.stat().st_size > _MOST:
        raise DataError(f"{path}: no result file of at most {_MOST:,} bytes")
    try:
        values = parse_json(path.read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        raise DataError(f"{path}: is no result file: {error}") from None
    if found := misfit(values, _SHAPE):
        raise DataError(f"{path}: is no result file: {found}")
    if values["format"] != FORMAT:
        raise DataError(f"{path}: format {values['format']}; this version reads {FORMAT}")
    signed = {name: values[name] for name in ("format", "content", "signer")}
    if not holds(values["signer"]["key"], values["signature"], _canonical(signed)):
        raise DataError(f"{path}: the signature is not that of its key; nothing in it is believed")
    return Signed(path, values["signer"]["name"], values["signer"]["key"], values["content"])


def require_known(one: Signed, names: Mapping[str, str]) -> None:
    """Refuse a file whose key is not among known ones, or that is signed by another name than its key's."""
    if (known := names.get(one.public)) is None:
        raise DataError(f"{one.path}: key {one.key} is none of the {len(names)} known ones; nothing in it is believed")
    if known != one.signer:
        raise DataError(f"{one.path}: signed as {one_line(one.signer)} by key {one.key}, which is that of {known}")


def again(one: Signed, data_dir: Path | None = None, memory: str = "auto") -> Check:
    """Carry a result file's experiment out once more; source of its own must be trusted (--trust).

    Data that is a file, of which a result has the name and the fingerprint, is looked for beside the result.
    """
    with tempfile.TemporaryDirectory() as place:
        for name, text in one.content["sources"].items():
            relative = PurePosixPath(name)
            if relative.is_absolute() or ".." in relative.parts:
                raise DataError(f"{one.path}: source {name!r} lies outside of its folder")
            make_folder((Path(place) / SOURCE / relative).parent)
            write_text(Path(place) / SOURCE / relative, text)
        write_text(Path(place) / "experiment.toml", one.content["experiment"])
        experiment = Experiment.from_toml(one.content["experiment"], str(Path(place) / "experiment.toml"))
        if (known := one.content["provenance"].get(DATA)) is not None:
            experiment = replace(experiment, data=_beside(one, experiment.data_label(), known))
        made = run(experiment, out=Path(place) / "run", data_dir=data_dir, memory=memory)
        return came_out_again(one.result, one.content["provenance"], made)


def _beside(one: Signed, data: str, known: Any) -> str:
    """The file of data that lies beside a result, by its full path; it must be the one that was measured."""
    path = one.path.resolve().parent / Path(data).name
    if not is_file(path):
        raise DataError(
            f"{one.path}: measures the file {one_line(path.name)}; expected it beside the result, at {path}"
        )
    if sha256_of(path) != known:
        raise DataError(
            f"{one.path}: {path} is not the file that was measured; expected SHA-256 {one_line(str(known))}"
        )
    return str(path)


def page(files: Sequence[Signed], title: str = "Board") -> str:
    """One page: a table for each dataset and protocol, the best first."""
    groups: dict[tuple[str, str], list[Signed]] = {}
    for one in files:
        groups.setdefault((one.result["data"], one.result["protocol"]), []).append(one)
    parts = []
    heads = ["method", *HEADLINE, "95 % interval", "seed", "signed by", "to run it again"]
    for (data, protocol), ones in sorted(groups.items()):
        ordered = sorted(ones, key=lambda one: -one.result["test"].get(HEADLINE[1], 0.0))
        rows = "".join(
            "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in _cells(one)) + "</tr>" for one in ordered
        )
        head = "".join(f"<th>{escape(one)}</th>" for one in heads)
        parts.append(f"<h2>{escape(data)}, {escape(protocol)}</h2><table><tr>{head}</tr>{rows}</table>")
    style = "body{font:16px sans-serif;max-width:70em;margin:2em auto}td,th{padding:.2em .8em;text-align:left}"
    about = (
        "Every row is a signed file. A signature says who states a figure; to check it, run it again: "
        "<code>ownview board verify FILE --again</code>."
    )
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(title)}</title><style>{style}</style>'
        f"<h1>{escape(title)}</h1><p>{about}</p>{''.join(parts)}</html>\n"
    )


def _cells(one: Signed) -> list[str]:
    result, about = one.result, one.content["provenance"]
    low, high = (result["interval_95"].get(HEADLINE[1]) or [0.0, 0.0])[:2]
    how = f"{len(one.content['sources'])} source files" if one.content["sources"] else "registered"
    return [
        result["method"], *(f"{result['test'].get(name, 0.0):.4f}" for name in HEADLINE), f"{low:.4f} to {high:.4f}",
        str(result["seed"]), f"{one.signer} ({one.key})", f"{how}, Ownview {about.get('ownview', '?')}",
    ]  # fmt: skip


def _canonical(values: Any) -> bytes:
    text = json.dumps(values, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8")
