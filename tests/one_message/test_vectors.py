"""Test vectors that both sides read: numbers, shares and sealed bytes, made in JavaScript and read in Python."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

pytest.importorskip("cryptography.hazmat.primitives.hpke")

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from ownview.base.errors import DataError, MessageError, SettingError
from ownview.methods.fedease import FedEASE
from ownview.one_message.envelope import HEAD, Operation, Receipt, length, opened, sealed, stream
from ownview.one_message.numbers import signed, summand
from ownview.one_message.terms import MOST_HISTORY, STEP, Terms, agreed, pair_table

HERE = Path(__file__).resolve().parent
PACKAGE = HERE.parents[1] / "packages" / "ownview-client"
VECTORS: dict[str, Any] = json.loads((HERE / "vectors.json").read_text(encoding="utf-8"))
KEYS = {
    share: X25519PrivateKey.from_private_bytes(bytes.fromhex(one["secret"]))
    for share, one in VECTORS["servers"].items()
}
NODE = pytest.mark.skipif(shutil.which("node") is None, reason="needs node")


def _terms(name: str) -> Terms:
    return Terms.read(VECTORS["agreements"][name].encode())


@pytest.mark.parametrize("case", VECTORS["cases"], ids=lambda case: f"{case['agreement']}-{case['operation']}")
def test_python_reads_the_vectors_and_makes_their_numbers(case: dict[str, Any]) -> None:
    terms = _terms(case["agreement"])
    numbers = summand(terms, case["history"])
    if case["before"] is not None:
        numbers = numbers - summand(terms, case["before"])
    assert [[place, int(value)] for place, value in enumerate(numbers) if value] == case["numbers"]
    read = {share: opened(terms, share, KEYS[share], bytes.fromhex(case[share])) for share in ("a", "b")}
    assert read["a"].share == bytes.fromhex(case["key"])
    assert np.array_equal(stream(read["a"].share, terms.size) + np.frombuffer(read["b"].share, "<u4"), numbers)
    for message in read.values():
        assert (message.operation, message.name.hex()) == (case["operation"], case["name"])
        assert message.contribution.hex() == case["contribution"]
    assert read["a"].proof == read["b"].proof


@NODE
def test_javascript_makes_the_vectors_again_byte_by_byte() -> None:
    line = ["node", str(HERE / "vectors.mjs"), str(PACKAGE), str(HERE / "vectors.json")]
    made = json.loads(subprocess.run(line, capture_output=True, text=True, check=True, timeout=60).stdout)
    assert made == [{name: case[name] for name in ("numbers", "a", "b")} for case in VECTORS["cases"]]


@pytest.mark.parametrize("method", ["fedease", "counts"])
def test_what_python_seals_python_reads_and_shares_look_random(method: str) -> None:
    terms = _terms(method)
    numbers = summand(terms, [1, 2, 3])
    sent = [sealed(terms, numbers, Receipt.new(), Operation.ADD)[0] for _ in range(2)]
    for share in ("a", "b"):
        first, second = (opened(terms, share, KEYS[share], one[share]) for one in sent)
        assert first.share != second.share
        assert len(sent[0][share]) == length(terms, share)


def test_a_message_with_any_byte_changed_is_refused() -> None:
    terms, case = _terms("fedease"), VECTORS["cases"][0]
    whole = bytes.fromhex(case["a"])
    for place in range(len(whole)):
        spoilt = bytearray(whole)
        spoilt[place] ^= 0x40
        with pytest.raises(MessageError):
            opened(terms, "a", KEYS["a"], bytes(spoilt))
    for body in (b"", whole[:-1], whole + b"x", bytes.fromhex(case["b"]), whole[:HEAD]):
        with pytest.raises(MessageError):
            opened(terms, "a", KEYS["a"], body)
    with pytest.raises(MessageError, match="another agreement"):
        opened(_terms("counts"), "a", KEYS["a"], whole)


@pytest.mark.parametrize("nearness", [4.0, 16.0, np.inf])
def test_numbers_are_the_report_of_fedease_in_steps(nearness: float) -> None:
    terms, chance = _with(pair_table(nearness)), np.random.default_rng(3)
    for _ in range(5):
        history = chance.integers(0, 40, 90).tolist()
        rows = torch.tensor(history)
        client: Any = {
            "past.rows": rows, "past.times": torch.zeros(90, dtype=torch.float64),
            "past.mask": torch.ones(90, dtype=torch.float64), "told": torch.zeros((), dtype=torch.float64),
        }  # fmt: skip
        unused: Any = None
        sent: Any = FedEASE(nearness=nearness).report(client, unused, unused)[0]["pairs"]
        whole = torch.zeros(40, 40, dtype=torch.float64)
        whole.index_put_((sent.rows[:, None], sent.columns), sent.values, accumulate=True)  # padding adds 0
        steps = torch.round(whole * STEP).to(torch.int64).numpy()
        assert np.array_equal(summand(terms, history), steps[np.triu_indices(40)])


def _with(table: dict[str, Any]) -> Terms:
    told = json.loads(VECTORS["agreements"]["fedease"]) | table | {"items": [str(item) for item in range(40)]}
    return Terms.read(json.dumps(told).encode())


def test_differences_are_read_with_their_sign() -> None:
    terms = _terms("fedease")
    changed = summand(terms, [1]) - summand(terms, [1, 2])
    assert signed(changed).min() < 0
    assert np.array_equal(signed(changed) + summand(terms, [1, 2]), summand(terms, [1]))


def test_long_histories_count_their_latest_rows() -> None:
    terms = _terms("counts")
    assert int(summand(terms, [0] * (MOST_HISTORY + 5))[0]) == MOST_HISTORY


@pytest.mark.parametrize(
    "change",
    [{"format": 2}, {"method": "fednext"}, {"items": []}, {"items": ["1", "1"]}, {"table": [-1]}, {"fewest": 0},
               {"servers": {}}, {"items": [1]}, {"table": []}, {"beyond": 0.5}]
)  # fmt: skip
def test_what_is_no_agreement_is_refused(change: dict[str, Any]) -> None:
    told = json.loads(VECTORS["agreements"]["fedease"]) | change
    with pytest.raises(DataError, match="is no agreement"):
        Terms.read(json.dumps(told).encode())
    with pytest.raises(SettingError, match="expected one of fedease, counts"):
        agreed("fednext", ["1"], {}, {})
