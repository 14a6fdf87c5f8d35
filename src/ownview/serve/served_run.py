"""The folder that a run is served from: its model in portable form with all items, and who its users are.

Nothing is left out, unlike in what is published: the folder is the server's own, and only lists leave it.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from safetensors.numpy import save

from ownview.pages.export import write_portable
from ownview.pages.run_model import RunModel
from ownview.runs.files.versions import reading
from ownview.runs.run import open_run


def write_served(model: Path, out: Path, data_dir: Path | None = None) -> None:
    """Make the folder `out`, which only its owner may read.

    Raises:
        OwnviewError: the model cannot be read, has no portable form, or its people's budget is spent.
    """
    taken = reading(model, lambda version: RunModel.of(open_run(version), data_dir))
    taken.charge()
    out.mkdir(mode=0o700)
    data, question = taken.data, taken.setup.rankers[1].question
    members = question.strangers is None
    known = question.known.items
    empty = np.zeros(0, dtype=np.int64)
    arrays = {
        "popularity": taken.popularity.astype(np.int64),
        "offsets": known.offsets.cpu().numpy() if members else np.zeros(1, dtype=np.int64),
        "known": known.values.cpu().numpy() if members else empty,
    }
    about = {
        "columns": {} if data.about is None else {name: list(cells) for name, cells in data.about.columns.items()},
        "users": [str(one) for one in data.users.tolist()] if members else [],
    }
    (out / "serving.safetensors").write_bytes(save(arrays))
    (out / "serving.json").write_text(json.dumps(about, ensure_ascii=False), encoding="utf-8")
    write_portable(out, taken.form, data.items.tolist(), taken.titles, taken.facts())
