"""What a place or a coordinator has to remember, in two generations: the newest, and the one before it.

A generation is written under a temporary name, reaches the disk, and is renamed; so does the name. Its file ends in a
checksum of all before. A damaged generation is passed over for the other one, with a warning.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from ownview.base.files import drop_unfinished, make_folder, write_bytes

_SLOTS = ("a", "b")
_CHECKSUM = 16
"""Bytes at the end of a file."""


@dataclass(frozen=True, eq=False)
class Generation:
    """A state.

    Args:
        round: after which it was.
        about: few words that go with it.
        values: by name.
        kept: bytes by name.
        serial: rises from generation to generation.
    """

    round: int
    about: Mapping[str, Any] = field(default_factory=dict)
    values: Mapping[str, Tensor] = field(default_factory=dict)
    kept: Mapping[str, bytes] = field(default_factory=dict)
    serial: int = 0


class Generations:
    """Two generations in a folder; `notes` says what was wrong with them.

    Args:
        folder: is made where it is not there.
        looking: read-only, because another process is at work on them.
    """

    def __init__(self, folder: Path, *, looking: bool = False) -> None:
        self.folder = folder
        self.notes: list[str] = []
        self.slots: dict[str, Generation] = {}
        make_folder(folder, private=True)
        for slot in _SLOTS:
            if not looking:
                drop_unfinished(self._file(slot))
            found = self._read(slot)
            if found is not None:
                self.slots[slot] = found

    @property
    def newest(self) -> Generation | None:
        """The last that was written and is sound."""
        return max(self.slots.values(), key=lambda one: one.serial, default=None)

    def after(self, number: int) -> Generation | None:
        """The last state that was after this round; None where there is none."""
        there = [one for one in self.slots.values() if one.round == number]
        return max(there, key=lambda one: one.serial, default=None)

    def write(self, state: Generation, keep: Generation | None) -> Generation:
        """Write a state as the newest; the generation `keep` stays, and the other one goes."""
        newest = self.newest
        serial = 1 if newest is None else newest.serial + 1
        made = Generation(state.round, state.about, state.values, state.kept, serial)
        slot = next(one for one in _SLOTS if keep is None or self.slots.get(one) is not keep)
        write_bytes(self._file(slot), _packed(made), private=True)
        self.slots[slot] = made
        return made

    def _file(self, slot: str) -> Path:
        return self.folder / f"{slot}.generation"

    def _read(self, slot: str) -> Generation | None:
        file = self._file(slot)
        try:
            return _unpacked(file.read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, SafetensorError) as error:
            self.notes.append(f"{file.name} is damaged ({error}); going on from the other generation")
            return None


def _packed(state: Generation) -> bytes:
    tensors = {f"value {name}": value.contiguous() for name, value in state.values.items()}
    for name, content in state.kept.items():
        tensors[f"bytes {name}"] = torch.frombuffer(bytearray(content or b"\0"), dtype=torch.uint8)
    lengths = {name: len(content) for name, content in state.kept.items()}
    head = {"round": state.round, "serial": state.serial, "about": state.about, "lengths": lengths}
    body = save(tensors, {"generation": json.dumps(head)})
    return body + blake2b(body, digest_size=_CHECKSUM).digest()


def _unpacked(data: bytes) -> Generation:
    body, checksum = data[:-_CHECKSUM], data[-_CHECKSUM:]
    if blake2b(body, digest_size=_CHECKSUM).digest() != checksum:
        raise ValueError("its checksum is wrong")
    tensors = load(body)
    length = int.from_bytes(body[:8], "little")
    head = json.loads(json.loads(body[8 : 8 + length])["__metadata__"]["generation"])
    values = {name.removeprefix("value "): one for name, one in tensors.items() if name.startswith("value ")}
    kept = {name: tensors[f"bytes {name}"].numpy().tobytes()[:size] for name, size in head["lengths"].items()}
    return Generation(head["round"], head["about"], values, kept, head["serial"])
