"""What a run is kept with: versions, revision, memory."""

import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from abstag import __version__, environment


def test_versions_name_what_can_change_numbers() -> None:
    numeric = environment.numeric_versions()
    assert numeric.keys() == {"abstag", "numpy", "scipy", "scikit-learn"}
    assert numeric["abstag"] == __version__
    assert numeric["numpy"] == np.__version__
    found = environment.versions()
    assert found.keys() == {
        *numeric,
        "torch",
        "transformers",
        "accelerate",
        "python",
        "machine",
        "cpu",
        "system",
        "git",
    }
    assert all(found.values())


@pytest.mark.parametrize("error", [FileNotFoundError("git"), subprocess.TimeoutExpired("git", 10)])
def test_revision_is_none_without_git(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(subprocess, "run", fail)
    assert environment.versions()["git"] == "none"


def test_revision_is_none_when_installed_into_the_tree_of_another_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = tmp_path / "project" / ".venv" / "site-packages" / "abstag" / "conf"
    site.mkdir(parents=True)
    for command in (
        ["init", "-q"],
        ["-c", "user.name=x", "-c", "user.email=x@x", "commit", "-qm", "x", "--allow-empty"],
    ):
        subprocess.run(["git", "-C", str(tmp_path / "project"), *command], check=True, capture_output=True)
    monkeypatch.setattr(environment, "resource", lambda name: site)
    assert environment.versions()["git"] == "none"


def test_peak_memory_sees_what_is_freed_before_the_end_and_forgets_it_for_the_next() -> None:
    import time

    with environment.peak_memory() as idle:
        pass
    with environment.peak_memory() as peak:
        block = np.ones(40_000_000)
        time.sleep(0.1)
        del block
    with environment.peak_memory() as after:
        pass
    assert idle.mebibytes > 10
    assert peak.mebibytes > idle.mebibytes + 200
    assert after.mebibytes < peak.mebibytes - 200


def test_peak_memory_is_read_after_an_error_too() -> None:
    with pytest.raises(RuntimeError, match="boom"), environment.peak_memory() as peak:
        raise RuntimeError("boom")
    assert peak.mebibytes > 10
