"""Fine-tuning on several processes: the figures of one, written by one."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from abstag.files import read_json, write_json
from abstag.store import Store, read_scores
from tests.conftest import Go, make_encoder

TORCHRUN = ("-m", "torch.distributed.run", "--nproc-per-node", "2", "-m", "abstag")


@pytest.mark.slow
def test_two_processes_give_the_scores_of_one(embedded: Path, tmp_path: Path, go: Go) -> None:
    """The last batch of an epoch is uneven, and a sweep goes on after a training that has diverged."""
    encoder = make_encoder(tmp_path)
    write_json(encoder / "config.json", read_json(encoder / "config.json") | {"hidden_dropout_prob": 0.0})
    setting = {"encoder": encoder, "device": "cpu", "frozen_layers": 1, "dropout": 0, "max_tokens": 32, "epochs": 2}
    arguments = ["run", "classifier=minilm", "split=holdout", "decision=holdout", "decision.holdout=0.3"]
    arguments += [f"classifier.{key}={value}" for key, value in setting.items()] + [f"data.path={embedded}"]
    go(*arguments, "classifier.learning_rate=0.01", f"runs_dir={tmp_path / 'one'}", code=0)
    swept = ("-m", "classifier.learning_rate=1e30,0.01", f"runs_dir={tmp_path / 'two'}")
    command = [sys.executable, *TORCHRUN, *arguments, *swept]
    ran = subprocess.run(command, env=os.environ, capture_output=True, text=True, check=False, timeout=300)
    assert "1 of 2 jobs failed" in ran.stderr
    (one,) = Store(tmp_path / "one").results()
    two = Store(tmp_path / "two")
    assert [result.id for result in two.results() if result.status == "done"] == [one.id]
    assert ran.stdout.count(one.id) == 1
    assert len((two.root / "looks.jsonl").read_text(encoding="utf-8").splitlines()) == 1
    was, now = (read_scores(store.folder(one.id)) for store in (Store(tmp_path / "one"), two))
    assert was.scores.std() > 0.01
    np.testing.assert_allclose(now.scores, was.scores, atol=1e-5)
