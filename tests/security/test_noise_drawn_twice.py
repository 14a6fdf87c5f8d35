"""Noise of one round that is drawn twice averages away; noise that two rounds share is taken off by their difference.

A run that is interrupted and goes on must therefore draw the same noise for a round that it does again, and never the
same for anything else. Its key lies in the run's folder until it has finished, for its owner's eyes alone.
"""

from __future__ import annotations

import shutil
import signal
from pathlib import Path

import pytest
import torch

from ownview import FederationOptions, FedMF
from ownview.runs.experiment import Experiment
from ownview.runs.files.folder import RunFolder
from ownview.runs.run import resume, run
from ownview.runs.training.training_rounds import InterruptedRunError
from ownview.testing.worlds import federation, small_world
from tests.outcome import signalled

_PRIVACY = "central:epsilon=8,clip=0.2"


def _asked(privacy: str = _PRIVACY) -> Experiment:
    small = {"embedding_size": 4, "local_epochs": 1}
    options = FederationOptions(privacy=privacy)
    return Experiment(method="fedmf", data="world", rounds=4, settings=small, federation=options)


def test_a_run_that_goes_on_draws_the_noise_of_a_round_no_second_time(tmp_path: Path) -> None:
    data, stopped = small_world().data, tmp_path / "stopped"
    with signalled(signal.SIGTERM, RunFolder, "append_round", 2), pytest.raises(InterruptedRunError):
        run(_asked(), data=data, out=stopped)
    key = stopped / "noise.key"
    assert key.stat().st_mode & 0o077 == 0, "others can read it"
    shutil.copytree(stopped, tmp_path / "copied")
    for folder in (stopped, tmp_path / "copied"):
        resume(folder, data=data)
        assert not (folder / "noise.key").exists()
    models = [(folder / "model.safetensors").read_bytes() for folder in (stopped, tmp_path / "copied")]
    assert models[0] == models[1]


def test_two_runs_share_no_noise(tmp_path: Path) -> None:
    data = small_world().data
    items = [
        run(_asked(), data=data, out=tmp_path / str(k)).folder.read_tensors("model")[0]["shared.items"] for k in (1, 2)
    ]
    assert float((items[0] - items[1]).abs().min()) > 0


def test_a_run_with_seeded_noise_repeats_and_keeps_no_key(tmp_path: Path) -> None:
    data, asked = small_world().data, _asked(f"{_PRIVACY},noise=seeded")
    models = []
    for k in (1, 2):
        folder = run(asked, data=data, out=tmp_path / str(k)).folder
        models.append((folder.path / "model.safetensors").read_bytes())
        assert folder.read_result()["privacy"]["noise_from"] == "seed"
    assert models[0] == models[1]


def test_rounds_and_clients_and_federations_have_noise_of_their_own() -> None:
    """Local noise on uploads of nothing: no number comes twice anywhere."""
    options = FederationOptions(privacy="local:epsilon=8,clip=0.2,rounds=2")
    seen = []
    for _ in range(2):
        one = federation(FedMF(embedding_size=4), small_world(num_users=4), options=options)
        for number in (1, 2):
            block = one.server.download(number, torch.arange(4))
            upload = one.work.do(one.work.samples(number, torch.arange(4)), block)
            nothing = upload.scaled(torch.zeros(4, dtype=torch.float64))
            seen.append(one.terms.sent(nothing, number).whole["items"])
    numbers = torch.cat(seen).flatten(1)  # each of two federations, two rounds, four clients
    for first in range(len(numbers)):
        for second in range(first):
            assert float((numbers[first] == numbers[second]).double().mean()) < 0.01
