"""Sums as memory-mapped files of 64-bit whole numbers, changed so that a kill at any moment loses nothing.

A small change is written down first: a file of cells and the values they will have. The journal names it in the same
transaction that notes the contribution; then cells are written in place. Who comes after a kill writes them once more,
which changes nothing where they were. A large change makes new files beside the old ones, and the journal names the new
generation. Who reads takes both into account, and reads again where the journal went on meanwhile.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from ownview.base.errors import OutputError
from ownview.base.files import make_folder, sync_folder, write_bytes, writing
from ownview.data.interactions import IntArray
from ownview.sums.blocks import LARGEST, Axes, Blocks, Change, Steps

_CHUNK = 2**22
"""Numbers that are copied together."""


class Arrays:
    """Files of one generation.

    Args:
        folder: of the store.
        generation: of files.
        axes: of every sum, by name.
        items: places that there is room for.
        write: whether they are changed.
    """

    def __init__(self, folder: Path, generation: int, axes: Mapping[str, Axes], items: int, *, write: bool) -> None:
        self.folder, self.axes, self.items = folder / f"g{generation:06d}", axes, items
        self.values: dict[str, Any] = {}
        for name, (rows, columns) in axes.items():
            path, shape = self.folder / f"{name}.i64", (rows.size(items), columns.size(items))
            try:
                if path.stat().st_size != 8 * shape[0] * shape[1]:
                    raise OutputError(f"{path}: is damaged: not {shape[0]:,} x {shape[1]:,} numbers; bring it back")
                self.values[name] = np.memmap(path, dtype="<i8", mode="r+" if write else "r", shape=shape)
            except OSError as error:
                raise OutputError(f"{path}: cannot be read: {error.strerror}; bring a sound copy back") from None

    @classmethod
    def create(cls, folder: Path, generation: int, axes: Mapping[str, Axes], items: int) -> Arrays:
        """Files of zeros, which take no room until something is added."""
        place = folder / f"g{generation:06d}"
        with writing(place):
            shutil.rmtree(place, ignore_errors=True)
            make_folder(place)
            for name, (rows, columns) in axes.items():
                with (place / f"{name}.i64").open("wb") as file:
                    file.truncate(8 * rows.size(items) * columns.size(items))
        return cls(folder, generation, axes, items, write=True)

    def copied_to(self, generation: int, items: int) -> Arrays:
        """The same numbers in new files, with room for more items."""
        new = Arrays.create(self.folder.parent, generation, self.axes, items)
        with writing(new.folder):
            for name, (rows, columns) in self.axes.items():
                mine, theirs = self.values[name], new.values[name]
                every = np.arange(self.items)
                down, across = rows.of(every, items), columns.of(every, items)
                together, step = _together(down) and _together(across), max(1, _CHUNK // max(1, mine.shape[1]))
                for first in range(0, len(mine), step):
                    part, end = mine[first : first + step], first + step
                    if not part.any():  # files keep their holes
                        continue
                    if together:
                        theirs[first:end][: len(part), : len(across)] = part
                    else:
                        theirs[down[first:end, None], across] = part
        return new

    def after(self, change: Change) -> Change:
        """The values that cells have once a change is added.

        Raises:
            OutputError: a sum would leave its 64 bits.
        """
        found = {}
        for name, (places, steps) in change.items():
            found[name] = Steps(places, self.bounded(name, self.values[name].reshape(-1)[places] + steps))
        return found

    def put(self, cells: Change) -> None:
        """Write values into cells."""
        for name, (places, steps) in cells.items():
            self.values[name].reshape(-1)[places] = steps

    def add(self, blocks: Blocks) -> None:
        """Add a whole contribution to files that are being made."""
        for name, block in blocks.items():
            place = np.ix_(block.rows, block.columns)
            self.values[name][place] = self.bounded(name, self.values[name][place] + block.steps)

    def bounded(self, name: str, steps: IntArray) -> IntArray:
        """New values of cells; refused where one would be beyond `LARGEST`."""
        if steps.size and max(int(steps.max()), -int(steps.min())) > LARGEST:
            raise OutputError(f"{self.folder / name}: a sum would go beyond 2^62 steps; nothing was added")
        return steps

    def flush(self) -> None:
        """Everything has reached the disk when this returns."""
        with writing(self.folder):
            for value in self.values.values():
                value.flush()
            sync_folder(self.folder)

    def of(self, name: str, places: IntArray, *, copied: bool = True) -> IntArray:
        """The rows and columns of some items; the file itself where they lie together and no copy is asked for."""
        rows, columns = (axis.of(places, self.items) for axis in self.axes[name])
        if _together(rows) and _together(columns):
            part = self.values[name][: len(rows), : len(columns)]
            return np.array(part) if copied else part
        return np.asarray(self.values[name][rows[:, None], columns])


def _together(places: IntArray) -> bool:
    """Whether places, ascending, are the first ones, without a gap."""
    return not len(places) or int(places[-1]) + 1 == len(places)


def write_redo(path: Path, cells: Change) -> None:
    """Values of cells, whole or not at all."""
    parts = {f"{name}.{part}": getattr(one, part) for name, one in cells.items() for part in Steps._fields}
    write_bytes(path, save({name: np.ascontiguousarray(value) for name, value in parts.items()}))


def read_redo(path: Path) -> Change:
    """What `write_redo` wrote."""
    try:
        found = load(path.read_bytes())
        names = {name.rpartition(".")[0] for name in found}
        return {name: Steps(*(found[f"{name}.{part}"] for part in Steps._fields)) for name in names}
    except (OSError, SafetensorError, KeyError) as error:
        raise OutputError(f"{path}: cannot be read: {error}; bring a sound copy back") from None


def drop_others(folder: Path, generation: int, redo: str) -> None:
    """Remove generations and cells that a killed process left behind."""
    with writing(folder):
        for other in [
            *folder.glob("g[0-9]*"),
            *folder.glob("redo-*"),
            *folder.glob(".redo-*"),
            *folder.glob(".solved*"),
        ]:
            if other.name in (f"g{generation:06d}", redo):
                continue
            shutil.rmtree(other) if other.is_dir() else other.unlink()
