"""Sweeps survive: killed, failing, hanging jobs; two sweeps on one store; launchers; and what is stale is told."""

import errno
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from abstag import sweep as sweep_module
from abstag.config import launch
from abstag.environment import code_digest
from abstag.errors import ArtifactError, MissingExtraError
from abstag.ingest import ingest
from abstag.results import RunResult
from abstag.store import Store
from abstag.sweep import Job, Sweep, differences, job_key, stale_runs, status
from abstag.taxonomy import load_taxonomy
from tests.conftest import SHORT, Go, make_result, write_dump
from tests.test_contracts import check

WILD = """
import os, signal, sys, time
from abstag.classifiers.prior import Prior

class Wild(Prior):
    def __init__(self, how="well", number=0):
        self.how, self.number = how, number

    def _fit(self, documents, targets, taxonomy):
        with open(os.environ["ABSTAG_TEST_NOTES"], "a") as notes:
            notes.write(f"{self.how} {self.number}\\n")
        if self.how == "well" and self.number % 10 in {3, 7}:
            raise RuntimeError("boom")
        if self.how == "well" and self.number == 20 or self.how == "hang":
            time.sleep(1000)
        if self.how == "exit":
            sys.exit(3)
        if self.how == "leave":
            os._exit(4)
        if self.how == "memory":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.how == "print":
            print("x" * 12_000_000)  # in each of 9 fits
        super()._fit(documents, targets, taxonomy)
"""


@pytest.fixture
def wild(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Overrides for a classifier that may do anything, each fit of which is noted in ``tmp_path / "notes"``."""
    package, group = tmp_path / "path" / "wild", tmp_path / "conf" / "classifier"
    for folder in (package, group):
        folder.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "jobs.py").write_text(WILD)
    (group / "wild.yaml").write_text("_target_: wild.jobs.Wild\nhow: well\nnumber: 0\n")
    monkeypatch.syspath_prepend(str(package.parent))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(package.parent), *sys.path]))
    monkeypatch.setenv("ABSTAG_TEST_NOTES", str(tmp_path / "notes"))
    return ["--config-dir", str(tmp_path / "conf"), "-m", "classifier=wild", "plugins=[wild]", *SHORT]


def notes(folder: Path) -> list[str]:
    return (folder / "notes").read_text().splitlines() if (folder / "notes").exists() else []


def test_what_a_job_does_to_its_process_is_one_failed_job(
    wild: list[str], go: Go, embedded: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    runs = tmp_path / "runs"
    words = [*wild, "classifier.how=exit,leave,memory,hang,print", f"data.path={embedded}", f"runs_dir={runs}"]
    ran = go("run", *words, "timeout=8", code=1)
    assert ran.err.splitlines()[-1] == "abstag: 4 of 5 jobs failed, see above"
    results = {result.config["classifier"]["how"]: result for result in Store(runs).results()}
    assert {how: result.error for how, result in results.items()} == {
        "exit": "its code called sys.exit(3)",
        "leave": "its process ended by itself with exit code 4",
        "memory": "its process was killed by SIGKILL, as the system does when memory is short",
        "hang": "no end after 8 s (timeout), stopped",
        "print": None,
    }
    assert all(f"{result.id}: {result.error}" in caplog.messages for result in results.values() if result.error)
    assert len(ran.out) < 10_000
    listed = go("runs", "--failed", "--runs-dir", runs, code=0).out
    assert sorted(listed.splitlines()) == sorted(
        f"{result.id}: {result.error}" for result in results.values() if result.error
    )
    found = json.loads(go("status", "single", "--json", "--runs-dir", runs, code=0).out)
    check("status", found)
    assert [found[name] for name in ("done", "running", "failed", "left", "seconds_left")] == [1, 0, 4, 0, None]
    assert "single: 1 done, 0 running, 4 failed, 0 left\n" in go("status", "single", "--runs-dir", runs, code=0).out


def test_failed_job_waits_for_retry_and_tells_its_traceback(
    wild: list[str], go: Go, embedded: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    words = [*wild, "classifier.number=1,3", f"data.path={embedded}", f"runs_dir={tmp_path}/runs"]
    first = go("run", *words, code=1)
    before = notes(tmp_path)
    again = go("run", *words, code=1)
    assert notes(tmp_path) == before, "a job was done twice"
    assert first.out == again.out
    (failed,) = [result for result in Store(tmp_path / "runs").results() if result.status == "failed"]
    assert f"{failed.id}: RuntimeError('boom') (failed before; --retry tries again)" in caplog.messages
    assert "in _fit" in (tmp_path / "runs" / failed.id / "log").read_text()
    go("run", "--retry", *words, code=1)
    assert Counter(notes(tmp_path)) - Counter(before) == {"well 3": 1}
    jobs = Sweep(Store(tmp_path / "runs"), "single").jobs()
    assert [(job.state, job.attempts) for job in jobs] == [("done", 1), ("failed", 2)]


def test_two_sweeps_on_one_store_do_no_job_twice(wild: list[str], embedded: Path, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    words = [*wild, "classifier.number=0,1,2,4,5,6", f"data.path={embedded}", f"runs_dir={runs}"]
    command = [sys.executable, "-m", "abstag", "run", *words]
    pair = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    told = [process.communicate(timeout=200) for process in pair]
    assert [process.returncode for process in pair] == [0, 0], told
    assert told[0][0] == told[1][0]
    assert set(Counter(notes(tmp_path)).values()) == {9}, "9 fits a job: 2 splits and all, 2 folds and all"


def sweep_of(root: Path, *jobs: Job, name: str = "night") -> Sweep:
    sweep = Sweep(Store(root), name)
    sweep.announce(jobs)
    for job in jobs:
        sweep.note(job)
    return sweep


def test_status_counts_and_estimates(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.save(make_result("nb-1", config={}))
    done = Job("a", "abstag run a", "done", "nb-1", 1, "2025-01-01T00:00:00+00:00", 10.0, data=(str(tmp_path), None))
    now = Job("b", "abstag run b", "running", "nb-2", 1, "2999-01-01T00:00:00+00:00")  # the clock was moved back
    sweep = sweep_of(tmp_path, done, now, Job("c", "abstag run c"), replace(done, key="d", run="nb-gone"))
    with store.lock("nb-2", wait=False) as ours:
        assert ours
        found = status(sweep)
    assert [job["state"] for job in found["jobs"]] == ["done", "running", "left", "left"]
    assert found["seconds_left"] == 10.0 * 3
    killed = status(sweep)
    assert [killed[name] for name in ("done", "running", "left", "seconds_left")] == [1, 0, 3, None]


def test_status_of_an_unknown_sweep_and_of_another_version(go: Go, tmp_path: Path) -> None:
    sweep = sweep_of(tmp_path, Job("a", "abstag run a"))
    ran = go("status", "nigth", "--runs-dir", tmp_path, code=1)
    assert "there is no sweep 'nigth'; did you mean 'night'?" in ran.err
    (sweep.folder / "sweep.json").write_text('{"version": 7}')
    assert "is of version 7, this abstag reads 1" in go("status", "night", "--runs-dir", tmp_path, code=1).err
    (sweep.folder / "sweep.json").write_text('{"version": 1, "jobs": [{}]}')
    assert "is damaged; give the sweep again" in go("status", "night", "--runs-dir", tmp_path, code=1).err


@pytest.mark.parametrize("name", ["../up", "a/b", ".", "..", "nächtlich 1"])
def test_sweep_of_any_name_stays_in_its_store(name: str, tmp_path: Path) -> None:
    sweep = sweep_of(tmp_path / "runs", Job("a", "abstag run a"), name=name)
    assert sweep.folder.resolve().parent == (tmp_path / "runs" / ".sweeps").resolve()
    assert [found.name for found in sweep_module.sweeps(sweep.store)] == [name]


@pytest.mark.parametrize("text", ["", "[]", "{", '{"key": "a"}', '{"key": "a", "command": "x", "attempts": "many"}'])
def test_damaged_note_is_a_job_left_to_do(text: str, tmp_path: Path) -> None:
    sweep = sweep_of(tmp_path, Job("a", "abstag run a", "done", "nb-1"))
    (sweep.folder / "job-a.json").write_text(text)
    assert [job.state for job in sweep.jobs()] == ["left"]


def test_key_is_that_of_the_overrides_but_place_and_timeout() -> None:
    assert job_key(["seed=1", "runs_dir=a", "timeout=3"]) == job_key(["runs_dir=b", "seed=1"])
    assert job_key(["seed=1"]) != job_key(["seed=2"])


def test_full_disk_is_a_failed_job_and_nothing_half_written(
    embedded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Sweep, "announce", full)
    with pytest.raises(OSError, match="No space left"):
        launch(["-m", "classifier=prior", *SHORT, f"data.path={embedded}", f"runs_dir={tmp_path}/runs"])
    assert not Store(tmp_path / "runs").results()


def test_store_that_is_only_read_gives_what_it_has(go: Go, wild: list[str], embedded: Path, tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.save(make_result("nb-1", config={}))
    sweep_of(tmp_path, Job("a", "abstag run a", "running", "nb-2"))
    (tmp_path / ".locks").write_text("")  # no folder can be made there, not even by root
    assert go("status", "night", "--runs-dir", tmp_path, code=0).out.startswith(
        "night: 0 done, 0 running, 0 failed, 1 left"
    )
    with pytest.raises(ArtifactError, match="cannot be written"), store.lock("nb-1", wait=True):
        pass


def test_missing_launcher_names_its_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("abstag.config._LAUNCHERS", {"moon": "joblib"})
    with pytest.raises(MissingExtraError, match=re.escape("pip install 'abstag[joblib]'")):
        launch(["-m", "hydra/launcher=moon", "classifier=prior", f"runs_dir={tmp_path}"])


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({}, []),
        ({"corpus": {"name": "c", "fingerprint": "beef"}}, ["corpus f00d → beef"]),
        ({"taxonomy": {"digest": "e"}, "corpus": {"name": "c", "fingerprint": "x"}}, ["taxonomy d → e"]),
        ({"versions": {"numpy": "3", "git": "b"}}, ["numpy 2 → 3"]),
        ({"config": {"classifier": {"C": 2}}}, ["classifier.C 1 → 2"]),
    ],
)
def test_differences_are_named(changes: dict[str, Any], told: list[str]) -> None:
    old = make_result(config={"classifier": {"C": 1}}, versions={"numpy": "2", "git": "a", "scipy": "1"})
    assert differences(old, replace(old, **changes)) == told


def by_classifier(results: list[RunResult]) -> dict[str, str]:
    return {result.id: result.classifier for result in results}


def test_change_makes_exactly_the_runs_stale_that_depend_on_it(
    go: Go, papers: list[dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpora = tmp_path / "one", tmp_path / "other"
    for corpus in corpora:
        ingest([str(write_dump(tmp_path / "papers.jsonl", papers))], corpus, taxonomy=load_taxonomy())
    runs, store = f"runs_dir={tmp_path}/runs", Store(tmp_path / "runs")
    words = ("run", "-m", "classifier=prior,keywords", f"data.path={corpora[0]},{corpora[1]}", *SHORT, runs)
    go(*words[:3], *(word for word in words[3:] if "data" not in word), f"data.path={corpora[0]}", code=0)
    assert stale_runs(store, store.results()) == {}

    digest = code_digest
    monkeypatch.setattr(
        sweep_module, "code_digest", lambda *names: "new" if "abstag.classifiers.prior" in names else digest(*names)
    )
    stale = stale_runs(store, store.results())
    assert [by_classifier(store.results())[run] for run in stale] == ["prior"]
    assert next(iter(stale.values()))[0].startswith("code ")
    monkeypatch.undo()

    changed = [dict(paper) for paper in papers]
    changed[3]["abstract"] += " Indeed."
    shutil.rmtree(corpora[0])
    ingest([str(write_dump(tmp_path / "papers.jsonl", changed))], corpora[0], taxonomy=load_taxonomy())
    stale = stale_runs(store, store.results())
    assert set(by_classifier(store.results()).values()) == {"prior", "keywords"}
    assert stale.keys() == by_classifier(store.results()).keys()
    assert all(reason.startswith("corpus ") for reasons in stale.values() for reason in reasons)
    assert " is stale: corpus " in go("runs", "--runs-dir", tmp_path / "runs", code=0).out
    assert " is stale: corpus " in go("status", "single", "--runs-dir", tmp_path / "runs", code=0).out


@pytest.mark.slow
@pytest.mark.parametrize("launcher", ["joblib", "submitit_local"])
def test_every_launcher_gives_the_same_table(launcher: str, go: Go, embedded: Path, tmp_path: Path) -> None:
    pytest.importorskip(f"hydra_plugins.hydra_{launcher.partition('_')[0]}_launcher")
    tables = []
    for extra in ([], [f"hydra/launcher={launcher}"]):
        runs = tmp_path / f"runs{len(extra)}"
        words = ["-m", "classifier=prior,keywords,nb", "seed=0,1", f"data.path={embedded}", *SHORT]
        go("run", *words, *extra, f"runs_dir={runs}", code=0)
        results = Store(runs).results()
        tables.append({result.id: result.parts for result in results})
    assert len(tables[0]) == 6
    assert tables[0] == tables[1]


@pytest.mark.slow
def test_sweep_killed_ten_times_does_every_job_once(wild: list[str], embedded: Path, tmp_path: Path) -> None:
    chosen = [*[number for number in range(100) if number % 10 not in {3, 7}][:38], 3, 7]  # 20 hangs
    once = ["split=holdout", "split.share=0.3", "decision=holdout", "decision.holdout=0.3"]
    draw = random.Random(8)

    def command(runs: Path) -> list[str]:
        swept = f"classifier.number={','.join(map(str, chosen))}"
        return [
            *wild[: -len(SHORT)],
            *once,
            swept,
            f"data.path={embedded}",
            f"runs_dir={runs}",
            "timeout=3",
            "name=night",
        ]

    def start(runs: Path) -> subprocess.Popen[bytes]:
        program = [sys.executable, "-m", "abstag", "run", *command(runs)]
        return subprocess.Popen(program, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)

    def states(runs: Path) -> Counter[str]:
        return Counter(job["state"] for job in status(Sweep(Store(runs), "night"))["jobs"])

    begun = time.monotonic()
    assert start(tmp_path / "calm").wait() == 1
    calm = time.monotonic() - begun
    begun = time.monotonic()
    assert start(tmp_path / "calm").wait() == 1
    start_up = time.monotonic() - begun
    (tmp_path / "notes").unlink()

    runs, begun = tmp_path / "runs", time.monotonic()
    for _ in range(10):
        process = start(runs)
        time.sleep(start_up + draw.random() * calm / 10)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert start(runs).wait() == 1
    took = time.monotonic() - begun
    assert states(runs) == {"done": 37, "failed": 3}
    done = [result for result in Store(runs).results() if result.status == "done"]
    assert len(done) == 37
    whole = Counter(json.loads(line)["run"] for line in (runs / "looks.jsonl").read_text().splitlines())
    assert max(whole.values()) <= 2, "a run that was killed while it was saved may have looked before"
    assert took < 1.5 * calm + 11 * start_up
