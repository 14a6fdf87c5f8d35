"""The folder of a start: a copy of the data, the runs of the comparison, the model, lists, report and page."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

from ownview.base.errors import DataError, OutputError
from ownview.base.files import drop_unfinished, make_folder, sha256_of, write_json
from ownview.base.json_shapes import misfit
from ownview.base.json_text import parse_json
from ownview.data.datasets.catalog import catalog, load
from ownview.data.datasets.storage import store
from ownview.data.interactions import Interactions
from ownview.data.reading.folders import digest_of
from ownview.data.reading.readers import ReadingOptions, name_of, read
from ownview.data.reading.source_text import require_source
from ownview.start.suited import Selection
from ownview.sums.starts import FORGETTING

AUDIT, ATTACK, FIT, LISTS, REPORT, PAGE = "audit", "attack", "fit", "lists", "report", "page"
"""Parts of the work beside the runs."""

_FORMAT = 2


class StartFolder:
    """Where a start keeps everything; the same command goes on in it.

    Args:
        path: of the folder.
        file: the interactions.
        options: how the file is read.
        titles: a file with item and title, or None.
        users: a file with user and others about users, or None.
        protocol: the question that a person asked for, or None.
    """

    def __init__(
        self, path: Path, file: Path, options: ReadingOptions, titles: Path | None = None, users: Path | None = None,
        protocol: str | None = None,
    ) -> None:  # fmt: skip
        self.path, self.file, self.options, self.protocol = path, file, options, protocol
        self.titles, self.users = titles, users
        self.runs, self.model = path / "comparison", path / "model"
        self.lists, self.report, self.page = path / "lists.csv", path / "report.html", path / "page.html"
        self.verdict = path / "verdict.json"

    @property
    def data(self) -> Path:
        """The copy of the data, named after its file."""
        plain = re.sub(r"[^A-Za-z0-9._-]+", "-", name_of(self.file)).strip("-.") or "data"
        name = f"{plain}-file" if plain in catalog() else plain
        return self.path / "data" / name

    def open(self) -> Interactions:
        """The data: of the file, or of the copy that was made when it was first seen.

        Raises:
            DataError: the file is not sound, or not there.
            OutputError: the folder holds something else, or was begun with another file or other columns.
        """
        self._require_files()
        if self._record.is_file():
            before = _read(self._record)
            self._require_same(before, self._asked())
            kept = load(self.data)
            noted = {name: before.get(name) or [] for name in ("reading", "unread")}
            if why := misfit(noted, {"reading": [str], "unread": [str]}):
                raise OutputError(f"{self._record}: is damaged: {why}; choose another --out")
            return replace(kept, reading=tuple(noted["reading"]), unread=tuple(noted["unread"]))
        drop_unfinished(self._record)
        if self.path.exists() and any(one.name != self.data.parent.name for one in self.path.iterdir()):
            raise OutputError(f"{self.path}: holds other things; choose another --out")
        return self.read_file()

    def read_file(self) -> Interactions:
        """The data of the file as it is now."""
        return read(self.file, name=self.data.name, titles=self.titles, users=self.users, **self.options)

    def outgrown(self) -> Interactions | None:
        """The copy of the data where the file is another one now and all else is the same; None where it is not."""
        self._require_files()
        if not self._record.is_file():
            return None
        before, asked = _read(self._record), self._asked()
        if before.get("sha256") == asked["sha256"] or before.get("format") != _FORMAT:
            return None
        if not self.data.is_dir():  # the copy is called after the file that it was made of
            self._require_same(before, asked)
        self._require_same(before, asked | {name: before.get(name) for name in ("sha256", "titles", "users")})
        return load(self.data)

    def _require_files(self) -> None:
        if (self.path / FORGETTING).is_file():  # the copy of the data may hold the person still
            raise OutputError(
                f"{self.path}: a person was being forgotten when the command was cut off; expected the same once more "
                f"before a start goes on: ownview forget {shlex.quote(str(self.path))} USER"
            )
        if not self.file.is_dir():
            require_source(self.file)
        if self.titles is not None:
            require_source(self.titles, "a file of item and title")
        if self.users is not None:
            require_source(self.users, "a file of user and others about users")
        for one in filter(None, (self.file, self.titles, self.users)):
            if not (one.is_file() or one.is_dir()):
                raise DataError(f"{one}: is a pipe, and a start reads it more than once; expected a plain file")

    def keep(self, data: Interactions, *, again: bool = False) -> None:
        """Copy the data, so that the file may change or go while others work on it; once, or again where it grew."""
        if self._record.is_file() and not again:
            return
        make_folder(self.path)
        asked = self._asked()
        about = {"dataset": self.data.name, "file": self.file.name, "sha256": asked["sha256"]}
        store(data, self.data.name, self.data.parent, about, overwrite=True)
        write_json(self._record, asked | {"reading": list(data.reading), "unread": list(data.unread)})

    def planned(self, asked: dict[str, Any]) -> Selection | None:
        """The methods that were chosen when the same was asked before; None where nothing was."""
        if not self._plan.is_file():
            return None
        before = _read(self._plan)
        try:
            return Selection.of(before["chosen"]) if before["asked"] == asked else None
        except (KeyError, TypeError):
            raise OutputError(f"{self._plan}: is damaged; remove it, or choose another --out") from None

    def keep_plan(self, asked: dict[str, Any], chosen: Selection) -> None:
        """Keep the methods, so that a start that goes on, on a machine that is faster or busier, does the same."""
        write_json(self._plan, {"asked": asked, "chosen": chosen.to_dict()})

    @property
    def _plan(self) -> Path:
        return self.path / "plan.json"

    @property
    def _record(self) -> Path:
        return self.path / "start.json"

    def _asked(self) -> dict[str, Any]:
        titles, users = (None if one is None else sha256_of(one) for one in (self.titles, self.users))
        options = json.loads(json.dumps(self.options))
        return {
            "format": _FORMAT,
            "sha256": digest_of(self.file),
            "titles": titles,
            "users": users,
            "options": options,
            "protocol": self.protocol,
        }

    def _require_same(self, before: dict[str, Any], asked: dict[str, Any]) -> None:
        words = {
            "sha256": f"another file than {self.file} is now",
            "titles": "other titles than are given now",
            "users": "other facts about users than are given now",
            "options": "other columns or options of reading than are given now",
            "protocol": "another question (--protocol) than is asked now",
        }
        for name, word in words.items():
            if before.get(name) != asked[name]:
                raise OutputError(f"{self.path}: was begun with {word}; choose another --out, or remove it")


def _read(record: Path) -> dict[str, Any]:
    try:
        return dict(parse_json(record.read_text(encoding="utf-8")))
    except (ValueError, TypeError):
        raise OutputError(f"{record}: is damaged; remove {record.parent}, or choose another --out") from None
