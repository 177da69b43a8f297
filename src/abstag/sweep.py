"""A sweep: the jobs of one name in a store, what became of each, and which results are stale and why."""

import logging
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self, get_type_hints
from urllib.parse import quote, unquote

from abstag.corpus import embedded_folder, identity
from abstag.environment import NUMERIC, code_digest, installed_versions
from abstag.errors import AbstagError, ArtifactError, near
from abstag.files import canonical_hash, read_json, write_json
from abstag.results import RunResult, fits, settings
from abstag.store import Store

_VERSION = 1
_FOLDER, _MANIFEST = ".sweeps", "sweep.json"
_IDENTIFYING = ("abstag", *NUMERIC, "code")
_ENCODING = ("torch", "transformers")
_RUNNER = "abstag.runner"
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Job:
    """What became of a job of a sweep.

    Attributes
    ----------
    key
        Hash of what the job overrides.
    command
        The command line that gives the job alone.
    state
        "left", "running", "done", or "failed". A process that was killed leaves "running" behind.
    run
        The run's id, once it is known.
    attempts
        How often the work was begun.
    began
        When, as ISO 8601; only for people and for the time left.
    seconds
        How long it took, by a clock that nobody sets.
    data
        The folder of the corpus and the file of the taxonomy, null for what ships.
    composed
        Hash of the configuration files.
    reads
        Whether the run depends on files or runs beside its corpus.
    label
        The classifier's name in tables.
    started
        The run's result as it stood when the work began; kept while it lasts.
    """

    key: str
    command: str
    state: str = "left"
    run: str | None = None
    attempts: int = 0
    began: str = ""
    seconds: float | None = None
    error: str | None = None
    data: tuple[str | None, str | None] = (None, None)
    composed: str = ""
    reads: bool = True
    label: str = ""
    started: dict[str, Any] | None = None

    @classmethod
    def from_json(cls, value: Any) -> Self:
        """Rebuild from the JSON form; raises TypeError when it is none."""
        known = {item.name for item in fields(cls)}
        job = cls(**{key: item for key, item in value.items() if key in known})
        hints = get_type_hints(cls)
        if not all(fits(getattr(job, name), hint) for name, hint in hints.items() if name != "data"):
            raise TypeError("no job")
        corpus, taxonomy = job.data
        return replace(job, data=(corpus, taxonomy))


class Sweep:
    """The jobs that were asked for under a name in a store; the newest command decides which.

    Every job has a file that is written whole when its state changes, so that nothing is lost when all are killed.
    """

    def __init__(self, store: Store, name: str) -> None:
        self.store, self.name = store, name
        self.folder = store.root / _FOLDER / quote(name, safe="").replace(".", "%2E")

    def announce(self, jobs: Sequence[Job]) -> None:
        """Write which jobs there are; raises ArtifactError when the disk refuses it."""
        listed = [{"key": key, "command": command} for key, command in {job.key: job.command for job in jobs}.items()]
        write_json(self.folder / _MANIFEST, {"version": _VERSION, "name": self.name, "jobs": listed})

    def jobs(self) -> list[Job]:
        """Return the jobs in their order, as they stand.

        Raises
        ------
        ArtifactError
            There is no such sweep, or another version of abstag wrote it.
        """
        path = self.folder / _MANIFEST
        if not path.is_file():
            known = sorted(unquote(file.parent.name) for file in path.parent.parent.glob(f"*/{_MANIFEST}"))
            raise ArtifactError(
                f"there is no sweep {self.name!r}", where=self.store.root, remedy=near(self.name, known)
            )
        value = read_json(path)
        version = value.get("version") if isinstance(value, dict) else None
        if version != _VERSION:
            what = f"is of version {version}, this abstag reads {_VERSION}"
            raise ArtifactError(what, where=path, remedy="use the abstag that wrote it, or give the sweep again")
        try:
            return [self.job(item["key"], item["command"]) for item in value["jobs"]]
        except (TypeError, KeyError) as error:
            raise ArtifactError("is damaged", where=path, remedy="give the sweep again") from error

    def job(self, key: str, command: str = "") -> Job:
        """Return a job as it stands; one whose file is missing or damaged is left to do."""
        with suppress(ArtifactError, TypeError, ValueError, AttributeError):
            return Job.from_json(read_json(self._file(key)))
        return Job(key, command)

    def note(self, job: Job) -> None:
        """Write what became of a job; raises ArtifactError when the disk refuses it."""
        write_json(self._file(job.key), asdict(job))

    def running(self, job: Job) -> bool:
        """Whether a process is at the job now."""
        return job.state == "running" and job.run is not None and self.store.busy(job.run)

    def settled(self, job: Job, composed: str, *, retry: bool) -> bool:
        """Whether nothing is to do for a job, as far as can be told without composing its configuration."""
        if job.reads or job.run is None or job.composed != composed or job.state not in {"done", "failed"}:
            return False
        found = self.store.kept(job.run)
        if found is None or found.status != job.state or (job.state == "failed" and retry):
            return False
        return not self.stale(job, found)

    def stale(self, job: Job, result: RunResult) -> list[str]:
        """Return in what the result of a job differs from what it would be made of now; empty when in nothing."""
        corpus, taxonomy = job.data
        try:
            now = identity(Path(corpus) if corpus else embedded_folder(self.store.root), taxonomy)
        except AbstagError:
            return [f"its corpus {result.corpus['name']} is not there any more"]
        return differences(result, as_of_now(result, *now))

    def _file(self, key: str) -> Path:
        return self.folder / f"job-{key}.json"


def job_key(overrides: Iterable[str]) -> str:
    """Return the key of the job with these overrides; where runs are kept and how long they may take do not matter."""
    return canonical_hash(
        sorted(word for word in overrides if not word.startswith(("runs_dir=", "timeout=", "mlflow=")))
    )[:12]


def sweeps(store: Store) -> list[Sweep]:
    """Return the sweeps of a store."""
    return [Sweep(store, unquote(file.parent.name)) for file in sorted((store.root / _FOLDER).glob(f"*/{_MANIFEST}"))]


def stale_runs(store: Store, results: Iterable[RunResult]) -> dict[str, list[str]]:
    """Return the finished runs that would not be made alike now, and in what; corpora are known for those of sweeps."""
    places = {job.run: (sweep, job) for sweep in sweeps(store) for job in _readable(sweep)}
    found = {}
    for result in results:
        if result.status == "done":
            sweep, job = places.get(result.id, (None, None))
            same = differences(result, as_of_now(result)) if sweep is None or job is None else sweep.stale(job, result)
            found[result.id] = same
    return {run: reasons for run, reasons in found.items() if reasons}


def _readable(sweep: Sweep) -> list[Job]:
    with suppress(ArtifactError):
        return sweep.jobs()
    return []


def as_of_now(result: RunResult, fingerprint: str | None = None, digest: str | None = None) -> RunResult:
    """Return a result with the versions that are installed, and with a corpus and taxonomy as they are now."""
    now = installed_versions()
    with suppress(ImportError, KeyError, TypeError, ValueError, AttributeError):
        module, _, _ = result.config["classifier"]["_target_"].rpartition(".")
        now["code"] = code_digest(_RUNNER, module)
    corpus = result.corpus | ({"fingerprint": fingerprint} if fingerprint else {})
    return replace(
        result, versions=now, corpus=corpus, taxonomy=result.taxonomy | ({"digest": digest} if digest else {})
    )


def differences(old: RunResult, new: RunResult) -> list[str]:
    """Return what tells two results of a job apart, as "numpy 2.1.0 → 2.2.0"; what a side has not kept is left out."""
    found = []
    before, now = settings(old.config), settings(new.config)
    names = [*_IDENTIFYING, *(_ENCODING if "classifier.encoder" in before else ())]
    if old.taxonomy.get("digest") != new.taxonomy.get("digest"):
        found.append(f"taxonomy {old.taxonomy.get('digest')} → {new.taxonomy.get('digest')}")
    elif old.corpus["fingerprint"] != new.corpus["fingerprint"]:
        found.append(f"corpus {old.corpus['fingerprint']} → {new.corpus['fingerprint']}")
    found += [
        f"{name} {old.versions[name]} → {new.versions[name]}"
        for name in names
        if name in old.versions and name in new.versions and old.versions[name] != new.versions[name]
    ]
    changed = [key for key in sorted({*before, *now}) if before.get(key) != now.get(key)]
    return found + [f"{key} {before.get(key)} → {now.get(key)}" for key in changed]


class Watch:
    """Notes when the work on a job of a sweep begins and how it ends."""

    def __init__(self, sweep: Sweep, job: Job) -> None:
        self.sweep, self.job, self.began = sweep, job, time.monotonic()

    def begin(self, started: RunResult) -> None:
        """Note that the work begins; say in what the run differs from an earlier one of this job."""
        if self.job.run not in {None, started.id}:
            old = self.sweep.store.kept(str(self.job.run))
            reasons = (old and differences(old, started)) or ["what its classifier reads"]
            _LOG.warning("%s is stale: %s; made anew as %s", self.job.run, "; ".join(reasons), started.id)
        now, attempts = datetime.now(UTC).isoformat(timespec="milliseconds"), self.job.attempts + 1
        self._note(state="running", run=started.id, attempts=attempts, began=now, error=None, started=started.to_json())

    def end(self, result: RunResult) -> None:
        """Note the result, which may have been there before; one that another process is at is that one's to note."""
        if result.status != "running":
            worked = self.job.started is not None
            seconds = time.monotonic() - self.began if worked else self.job.seconds
            changes = {"run": result.id, "error": result.error, "seconds": seconds, "started": None}
            self._note(state=result.status, **changes)

    def fail(self, error: str) -> None:
        """Note a failure that the store does not have; it is given one where the work had begun.

        Raises
        ------
        ArtifactError
            The disk refuses it.
        """
        store, started = self.sweep.store, self.job.started
        if started is not None:
            failed = replace(RunResult.from_json(started), status="failed", error=error)
            if store.done(failed.id) is None:
                store.save(failed, log=f"{error}\n")
        run = None if started is None else self.job.run
        self._note(state="failed", run=run, error=error, seconds=time.monotonic() - self.began, started=None)

    def complain(self, error: str) -> None:
        """Note what went wrong after the run was done; raises ArtifactError when the disk refuses it."""
        self._note(error=error)

    def _note(self, **changes: Any) -> None:
        self.job = replace(self.job, **changes)
        self.sweep.note(self.job)


def status(sweep: Sweep) -> dict[str, Any]:
    """Return how a sweep stands, as docs/contracts.md says.

    Raises
    ------
    ArtifactError
        There is no such sweep, or another version of abstag wrote it.
    """
    rows = []
    for job in sweep.jobs():
        result = sweep.store.kept(job.run) if job.run and job.state != "running" else None
        gone = result is None if job.state == "done" else job.state == "running" and not sweep.running(job)
        state = "left" if gone else job.state
        stale = sweep.stale(job, result) if result is not None and result.status == "done" else []
        kept = {name: getattr(job, name) for name in ("command", "run", "attempts", "seconds", "error")}
        rows.append(kept | {"state": state, "stale": stale, "began": job.began or None})
    states = [row["state"] for row in rows]
    counts = {name: states.count(name) for name in ("done", "running", "failed", "left")}
    return {"sweep": sweep.name, **counts, "seconds_left": _seconds_left(rows), "jobs": rows}


def _seconds_left(rows: Sequence[dict[str, Any]]) -> float | None:
    """Return how long the rest takes at the mean pace of what has ended; None where nothing has, or nothing runs."""
    took: list[float] = [
        row["seconds"] for row in rows if row["seconds"] is not None and row["state"] in {"done", "failed"}
    ]
    running = [row for row in rows if row["state"] == "running"]
    if not took or not running:
        return None
    mean = sum(took) / len(took)
    spent = sum(min(max(_since(row["began"]), 0.0), mean) for row in running)  # a clock may have been moved
    left = sum(row["state"] == "left" for row in rows)
    return float(mean * (left + len(running)) - spent) / len(running)


def _since(when: str | None) -> float:
    with suppress(TypeError, ValueError):
        return (datetime.now(UTC) - datetime.fromisoformat(when or "")).total_seconds()
    return 0.0
