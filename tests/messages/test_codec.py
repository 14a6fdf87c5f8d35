"""How a method's messages are written, read and weighed: what is accounted is what is sent, and nothing gets lost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from ownview import (
    PLGC,
    DualPersonalisation,
    ElasticMerging,
    FederationOptions,
    FedMF,
    FedRAP,
    FedSASRec,
    LateAggregation,
    LocalOnly,
)
from ownview.base.errors import MessageError
from ownview.messages.download import Download
from ownview.messages.upload import Upload
from ownview.registry import METHODS
from ownview.round.federation import Federation
from ownview.seam.method import Federated, Method
from ownview.testing.worlds import federation, small_world
from tests.methods.golden import ENVELOPE, heading, touched_rows

CASES: dict[str, tuple[Federated, dict[str, object]]] = {
    **{name: (method(), {}) for name, method in METHODS.items()},
    "dual-personalisation": (DualPersonalisation(inner=FedMF()), {}),
    "elastic-merging": (ElasticMerging(inner=FedMF()), {}),
    "late-aggregation": (LateAggregation(inner=FedMF()), {}),
    "plgc": (PLGC(inner=FedMF()), {}),
    "thresholds": (FedRAP(update="proximal", sparse=30.0, table_rate=20.0, common_scale=0.0), {}),
    "thresholds, rows by touch": (
        FedRAP(update="proximal", sparse=30.0, table_rate=20.0, common_scale=0.0),
        {"row_mean": "touched"},
    ),
    "rows by touch": (FedMF(), {"row_mean": "touched"}),
    "personal rows by touch": (ElasticMerging(inner=FedMF()), {"row_mean": "touched"}),
    "noise": (FedMF(), {"privacy": "laplace:0.1"}),
    "clipped noise": (FedMF(), {"privacy": "gaussian:clip=0.1,noise=1"}),
    "noise on sums": (METHODS["fedease"](), {"privacy": "laplace:0.1"}),
    "fedsasrec, largest rows": (FedSASRec(embedding_size=8, length=9, sent_rows=6), {}),
    "fedsasrec, a byte each": (FedSASRec(embedding_size=8, length=9, sent_bits=8), {}),
    "fedsasrec, both": (FedSASRec(embedding_size=8, length=9, sent_rows=6, sent_bits=8), {}),
    "fedsasrec, noise on bytes": (FedSASRec(embedding_size=8, sent_bits=8), {"privacy": "laplace:0.1"}),
    "some receive": (METHODS["fedem"](), {"receiving": 0.5}),
    "some are there": (METHODS["fedfast"](), {"clients": 7}),
}
"""A method, and options of the federation."""


def _federation(case: str, dtype: torch.dtype = torch.float32) -> Federation:
    method, options = CASES[case]
    if isinstance(method, Method):  # how often a client passes over its samples changes no message
        method = replace(method, local_epochs=1)
    split = small_world(num_users=11)
    return federation(method, split, dtype=dtype, options=FederationOptions.of(options), block_clients=5)


def _messages(one: Federation, number: int) -> Iterator[tuple[Download, Tensor, Upload]]:
    """What crosses in a round, block by block, with the clients of each; the server combines nothing."""
    cohort = one.participants(number)
    one.clients.begin(one.server.download(number, cohort[:0]), cohort)
    for block in one.work.blocks(cohort):
        download = one.server.download(number, block, for_training=True)
        upload = one.work.do(one.work.samples(number, block), download)
        yield download, block, one.terms.sent(upload, number)


def _accounted(one: Federation, download: Download, count: int) -> list[int]:
    """What downloads to `count` clients are weighed as."""
    receives = [True] * count if download.receives is None else download.receives.tolist()
    return [one.terms.codec.download_size(download, receives=there) for there in receives]


@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("case", CASES)
def test_messages_are_as_long_as_accounted(case: str, number: int) -> None:
    one = _federation(case)
    for before in range(1, number):
        one.round(before)
    codec = one.terms.codec
    written = 0
    for download, block, upload in _messages(one, number):
        down = [len(codec.write_download(download, k)) for k in range(len(block))]
        assert down == _accounted(one, download, len(block))
        up = [len(codec.write_upload(upload.one(k), number)) for k in range(len(upload.clients))]
        assert up == codec.upload_sizes(upload).tolist()
        written += len(up)
    silent = case in ("fedease", "fednext", "noise on sums") and number == 2  # everybody has told what it has
    shortest = 2 if case.startswith("fedsasrec") else 1  # who has one item has nothing that follows it
    speaking = one.split.train.lengths[one.participants(number)] >= shortest
    assert written == (0 if silent else int(speaking.sum()))


def _spread(upload: Upload, num_items: int) -> dict[str, Tensor]:
    """Everything in an upload, with all rows."""
    return {**upload.spread(num_items).whole, **upload.written_out()}


@pytest.mark.parametrize("case", CASES)
def test_what_is_read_is_what_was_written(case: str) -> None:
    one = _federation(case, torch.float64)
    one.round(1)
    codec, items = one.terms.codec, one.world.num_items
    for download, block, upload in _messages(one, 2):
        for k in range(len(block)):
            _assert_same_download(one, codec.read_download(codec.write_download(download, k)), download, k)
        for k, client in enumerate(upload.clients.tolist()):
            sent = upload.one(k)
            written = codec.write_upload(sent, 2)
            if not written:
                assert case == "local-only"
                continue
            found = codec.read_upload(written, client)
            assert found.clients.tolist() == [client]
            assert found.samples.tolist() == (sent.samples.tolist() if codec.tells_samples else [0])
            left, right = _spread(found, items), _spread(sent, items)
            assert set(left) == set(right)
            for name, value in right.items():
                shaped = left[name].reshape(value.shape)
                assert torch.allclose(shaped, value, rtol=1e-12, atol=1e-12), name
            if codec.tells_touched:
                assert found.items[found.touched].tolist() == sent.items[sent.touched].tolist()


def _assert_same_download(one: Federation, found: Download, download: Download, k: int) -> None:
    receives = download.receives is None or bool(download.receives[k])
    assert found.round == download.round
    assert (found.receives is None) == receives
    assert set(found.moves) == set(download.moves)
    assert all(torch.equal(found.moves[name][0], move[k]) for name, move in download.moves.items())
    assert set(found.mixtures) == (set(download.mixtures) if receives else set())
    assert all(torch.equal(mixture[0], download.mixtures[name][k]) for name, mixture in found.mixtures.items())
    for name, value in download.values.items():
        param = one.client.params.get(name)
        mixed = name in download.mixtures
        if not mixed and (receives or (param is not None and param.role.name != "personal")):
            assert torch.equal(found.values[name], value), name


def test_a_client_that_does_not_receive_gets_a_shorter_message() -> None:
    one = _federation("some receive")
    one.round(1)
    whole = ENVELOPE + heading("items", 2) + one.world.num_items * one.client.params["items"].shape[0] * 4
    found = set()
    for download, block, _ in _messages(one, 2):
        assert download.receives is not None
        sizes = _accounted(one, download, len(block))
        assert sizes == [whole if receives else ENVELOPE for receives in download.receives.tolist()]
        found |= set(sizes)
    assert found == {whole, ENVELOPE}


def test_a_message_of_the_other_kind_is_refused() -> None:
    one = _federation("fedmf")
    ((download, _, upload), *_) = _messages(one, 1)
    codec = one.terms.codec
    with pytest.raises(MessageError, match="a message of kind 2; expected kind 1, download"):
        codec.read_download(codec.write_upload(upload.one(0), 1))
    with pytest.raises(MessageError, match="a message of kind 1; expected kind 2, upload"):
        codec.read_upload(codec.write_download(download, 0), 0)


# --- what a round reports ---


@pytest.mark.parametrize("block_clients", [3, 128])
def test_a_round_charges_the_messages_its_clients_send(block_clients: int) -> None:
    method = FedRAP(update="proximal", sparse=30.0, table_rate=20.0, embedding_size=4, local_epochs=2)
    one, other = (federation(method, small_world(), dtype=torch.float32, block_clients=block_clients) for _ in range(2))
    for each in (one, other):
        each.server.shared["common"][:40] = 0
    codec = other.terms.codec
    up, down = [], []
    for download, block, upload in _messages(other, 1):
        up += [len(codec.write_upload(upload.one(k), 1)) for k in range(len(block))]
        down += [len(codec.write_download(download, k)) for k in range(len(block))]
    report = one.round(1)
    assert len(set(up)) > 5
    assert report.bytes_up == round(sum(up) / len(up)) < report.bytes_dense
    # The last twenty rows, without the forty that are 0, by the positions of their values.
    assert {report.bytes_down} == set(down) == {ENVELOPE + heading("common", 2) + 4 + 20 * 4 * (4 + 4)}
    assert report.bytes_dense == 12 + 60 * 4 * 4
    zero = float((one.server.shared["common"] == 0).double().mean())
    assert report.sparsity["common"]["zero"] == pytest.approx(zero, abs=1e-12)
    assert zero > 0


def test_thresholding_keeps_a_table_sparse_that_starts_empty() -> None:
    """The mean over clients leaves 0 only what was 0 and stayed 0 at every client; from a dense start nothing is."""
    ends = {}
    for scale in (0.0, 1.0):
        method = FedRAP(update="proximal", sparse=2.0, common_scale=scale, curriculum="fixed", table_rate=20.0)
        one = federation(method, small_world(), dtype=torch.float32)
        ends[scale] = [one.round(number) for number in (1, 2, 3)][-1]
    assert 0.3 < ends[0.0].sparsity["common"]["zero"] < 1
    assert ends[0.0].bytes_up < 0.9 * ends[0.0].bytes_dense
    assert ends[1.0].sparsity["common"]["zero"] < 0.01


def test_tables_without_zeros_are_sent_by_row_and_not_looked_at() -> None:
    one = federation(FedMF(embedding_size=4), small_world(), dtype=torch.float32)
    assert one.terms.codec.shrunk == frozenset()
    report = one.round(1)
    assert report.bytes_down == ENVELOPE + heading("items", 2) + 60 * 4 * 4
    assert report.bytes_dense == 12 + 60 * 4 * 4
    up = [ENVELOPE + heading("items", 2) + min(4 + rows * (4 + 16), 960) for rows in touched_rows(one, 1)]
    assert min(up) < max(up) == report.bytes_down
    assert report.bytes_up == round(sum(up) / len(up))


def test_who_shares_nothing_sends_no_table() -> None:
    report = federation(LocalOnly(), small_world()).round(1)
    assert (report.bytes_up, report.bytes_down) == (0, ENVELOPE)
    assert report.bytes_dense == 0
    assert report.sparsity == {}
