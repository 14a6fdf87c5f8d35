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
from ownview.messages.unwritten import Unwritten
from ownview.methods.fedease import FedEASE
from ownview.methods.fednext import FedNext
from ownview.one_message.budget import ShareBudget
from ownview.one_message.envelope import HEAD, Operation, Receipt, length, opened, sealed, stream
from ownview.one_message.numbers import signed, summand
from ownview.one_message.tables import MOST_HISTORY, STEP, next_tables, pair_table
from ownview.one_message.terms import Terms, agreed
from ownview.seam.training import Context, World

HERE = Path(__file__).resolve().parent
PACKAGE = HERE.parents[1] / "src" / "ownview" / "one_message" / "client"
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


@pytest.mark.parametrize("method", ["fedease", "counts", "fednext"])
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


def _client(history: list[int]) -> Any:
    size = len(history)
    return {
        "past.rows": torch.tensor(history), "past.times": torch.zeros(size, dtype=torch.float64),
        "past.mask": torch.ones(size, dtype=torch.float64), "told": torch.zeros((), dtype=torch.float64),
    }  # fmt: skip


def _written_out(sent: Any, shape: tuple[int, int]) -> Any:
    if not hasattr(sent, "rows"):  # a product
        return sent.left.T @ sent.right
    whole = torch.zeros(*shape, dtype=torch.float64)
    columns = sent.columns if len(sent.columns) else torch.arange(shape[1])
    return whole.index_put_((sent.rows[:, None], columns), sent.values, accumulate=True)  # padding adds 0


UNUSED: Any = None


@pytest.mark.parametrize("nearness", [4.0, 16.0, np.inf])
def test_numbers_are_the_report_of_fedease_in_steps(nearness: float) -> None:
    terms, chance = _with(pair_table(nearness)), np.random.default_rng(3)
    for _ in range(5):
        history = chance.integers(0, 40, 90).tolist()
        reported = FedEASE(nearness=nearness).report(_client(history), UNUSED, UNUSED)[0]
        sent = Unwritten.of(reported)["pairs"]
        steps = torch.round(_written_out(sent, (40, 40)) * STEP).to(torch.int64).numpy()
        assert np.array_equal(summand(terms, history), steps[np.triu_indices(40)])


@pytest.mark.parametrize("rank", [0, 3])
def test_numbers_are_the_report_of_fednext_but_for_the_rounding_of_tables(rank: int) -> None:
    m, chance, scales = 40, np.random.default_rng(4), (1.0, 8.0, 64.0)
    vectors = chance.normal(size=(m, rank)) / 6 if rank else None
    content = {"method": "fednext", "table": [], "next": next_tables(scales, 1.0, 0.5, 50, vectors)}
    terms = _with(content)
    form = FedNext(scales=scales, length=50, rank=rank).client(World(2, m, order="rows")).work
    wide = 3 * (rank or m)
    for _ in range(3):
        history = chance.integers(0, m, 90).tolist()
        given = _client(history) | ({"vectors": torch.from_numpy(vectors)} if vectors is not None else {})
        sent: Any = form.report(given, UNUSED, Context(6))[0]  # type: ignore[union-attr]
        pasts = _written_out(sent["pasts"], (wide, wide)).numpy()
        follows = _written_out(sent["follows"], (m, wide) if rank else (wide, m)).numpy()
        expected = np.concatenate([pasts[np.triu_indices(wide)], follows.reshape(-1)])
        found = signed(summand(terms, history)).astype(float)
        if rank:
            assert terms.next is not None
            found /= terms.next["unit"]
            found[: -follows.size] *= 2.0 ** terms.next["down"] / terms.next["unit"]
            assert np.abs(found - expected).max() < 0.03 * np.abs(expected).max()
        else:
            assert np.abs(found / STEP - expected).max() < 0.002
    assert terms.most >= 1000


@NODE
@pytest.mark.parametrize("name", ["fedease", "counts", "fednext", "fednext-rank", "private", "fednext-private"])
def test_long_random_histories_have_the_same_numbers_in_javascript(name: str, tmp_path: Path) -> None:
    chance, m = np.random.default_rng(8), 60
    urls: Any = {"a": "http://a", "b": "http://b"}
    keys: Any = dict.fromkeys(("a", "b"), bytes(32))
    method = "fedease" if name == "private" else name.partition("-")[0]
    budget = ShareBudget.planned(1.0, 1e-5) if "private" in name else None
    vectors = chance.normal(size=(m, 8)) if "rank" in name else None
    terms = agreed(method, [str(item) for item in range(m)], urls, keys, budget=budget, vectors=vectors)
    (tmp_path / "agreement.json").write_bytes(terms.content)
    asked = [chance.integers(0, m, size).tolist() for size in (0, 1, 2, 30, 250)]
    script = """
        const { readAgreement, summand } = await import(process.argv[1] + "/index.js");
        const { readFileSync } = await import("node:fs");
        const terms = await readAgreement(readFileSync(process.argv[2]));
        console.log(JSON.stringify(JSON.parse(process.argv[3]).map((one) => [...summand(terms, one)])));
    """
    line = ["node", "--input-type=module", "-e", script, str(PACKAGE), str(tmp_path / "agreement.json")]
    done = subprocess.run([*line, json.dumps(asked)], capture_output=True, text=True, check=True, timeout=120)
    for history, found in zip(asked, json.loads(done.stdout), strict=True):
        expected = summand(terms, history)
        assert np.array_equal(found, expected)
        if budget is not None:
            length = np.sqrt((signed(expected).astype(float) ** 2).sum())
            assert length <= budget.clip
            assert not expected.any() or length > 0.9 * budget.clip


def _with(table: dict[str, Any]) -> Terms:
    document = json.loads(VECTORS["agreements"]["fedease"]) | table | {"items": [str(item) for item in range(40)]}
    return Terms.read(json.dumps(document).encode())


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
    [
        {"format": 2}, {"method": "fednext"}, {"method": "other"}, {"work": 31}, {"budget": {"epsilon": 1}},
        {"items": []}, {"items": ["1", "1"]}, {"table": [-1]}, {"fewest": 0}, {"servers": {}}, {"items": [1]},
        {"table": []}, {"beyond": 0.5},
    ],
)  # fmt: skip
def test_what_is_no_agreement_is_refused(change: dict[str, Any]) -> None:
    document = json.loads(VECTORS["agreements"]["fedease"]) | change
    with pytest.raises(DataError, match="is no agreement"):
        Terms.read(json.dumps(document).encode())
    with pytest.raises(SettingError, match="expected one of fedease, counts, fednext"):
        agreed("fedmf", ["1"], {}, {})
