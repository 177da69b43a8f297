"""Scored records on disk, in files that are whole or absent, so that a killed run goes on where it was."""

import json
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from abstag.errors import ArtifactError, refused
from abstag.files import new_file, read_json, to_json, write_json
from abstag.tagger.lines import Scored

_JOB, _LOCK = "job.json", "lock"
_ANEW = "start anew with --restart"
_UNFINISHED = re.compile(r"\.(?:part-\d{12}-\d{6}\.jsonl|job\.json)\.\d+\.part")
_NAME = re.compile(r"part-(\d{12})-(\d{6})\.jsonl")


class Parts:
    """The scored records of one job, in a folder.

    Attributes
    ----------
    files
        The files that hold them, in the order read.
    size
        Number of records kept, in the order read, from the first on.
    resumed
        Whether an earlier process had begun the job.
    """

    def __init__(self, folder: Path, *, resumed: bool = False) -> None:
        self._folder, self.size, self.resumed = folder, 0, resumed
        self.files: list[Path] = []
        for path in sorted(folder.iterdir()):
            name = _NAME.fullmatch(path.name)
            if name and int(name[1]) == self.size:
                self.files.append(path)
                self.size += int(name[2])

    def append(self, scored: Sequence[Scored]) -> None:
        """Keep records that follow on those kept; raises ArtifactError when the disk refuses them."""
        path = self._folder / f"part-{self.size:012d}-{len(scored):06d}.jsonl"
        with new_file(path, force=True) as stream:
            stream.writelines(to_json(list(item)) + "\n" for item in scored)
        self.files.append(path)
        self.size += len(scored)

    def __iter__(self) -> Iterator[list[Scored]]:
        """Yield the records kept, in the order read, as they were appended; raises ArtifactError for a damaged part."""
        return map(read_part, self.files)


def read_part(path: Path) -> list[Scored]:
    """Return the records of a file of parts; raises ArtifactError when it is damaged."""
    try:
        with path.open(encoding="utf-8") as stream:
            batch = [Scored(*json.loads(line)) for line in stream]
    except (OSError, ValueError, TypeError) as error:
        raise ArtifactError(f"is damaged: {error}", where=path, remedy=_ANEW) from error
    if len(batch) != _records_of(path.name):
        raise ArtifactError("was cut after it was written", where=path, remedy=_ANEW)
    return batch


def _records_of(name: str) -> int:
    found = _NAME.fullmatch(name)
    return int(found[2]) if found else 0


@contextmanager
def kept_parts(folder: Path, job: Mapping[str, Any], *, restart: bool = False) -> Iterator[Parts]:
    """Give the parts of a job, those that an earlier process left included; the folder goes when the block ends well.

    Parameters
    ----------
    job
        What the scores depend on, as JSON.
    restart
        Throw away what another job has left.

    Raises
    ------
    ArtifactError
        Another process is at it, another job has left its parts, or the disk refuses the folder.
    """
    from filelock import FileLock, Timeout

    lock, kept = FileLock(folder / _LOCK), True
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock.acquire(blocking=False)
    except Timeout as error:
        raise ArtifactError("another process is writing it", where=folder, remedy="wait for it") from error
    except OSError as error:
        raise refused(error, "cannot be written", error.filename or folder) from error
    try:
        parts = Parts(folder, resumed=_claim(folder, job, restart=restart))
        try:
            yield parts
            kept = False
        finally:
            if not (kept and parts.size):
                shutil.rmtree(folder, ignore_errors=True)
    except OSError as error:
        if error.filename is None or not Path(error.filename).is_relative_to(folder):
            raise
        raise refused(error, "cannot be written", error.filename) from error
    finally:
        lock.release()


def _claim(folder: Path, job: Mapping[str, Any], *, restart: bool) -> bool:
    """Make the folder one of this job, without what an interrupted write left; return whether it was one before."""
    names = {path.name for path in folder.iterdir()} - {_JOB, _LOCK}
    foreign = sorted(name for name in names if not (_NAME.fullmatch(name) or _UNFINISHED.fullmatch(name)))
    if foreign:
        raise ArtifactError(f"holds {foreign[0]}, which is not abstag's", where=folder, remedy="move it away")
    known, asked = _known_job(folder, restart=restart), json.loads(to_json(dict(job)))
    differing = sorted(key for key in {*known, *asked} if known.get(key) != asked.get(key))
    if known and differing and not restart:
        what = f"holds an unfinished run with other {', '.join(differing)}"
        raise ArtifactError(what, where=folder, remedy="give that run's command to go on, or start anew with --restart")
    anew = bool(differing) or restart
    for name in names:
        if anew or _UNFINISHED.fullmatch(name):
            (folder / name).unlink()
    if anew:
        write_json(folder / _JOB, asked)
    return not anew


def _known_job(folder: Path, *, restart: bool) -> dict[str, Any]:
    """Return the job that the folder is of, empty when it is of none, or is to be thrown away and cannot be read."""
    if not (folder / _JOB).exists():
        return {}
    try:
        found = read_json(folder / _JOB)
    except ArtifactError as error:
        if restart:
            return {}
        raise ArtifactError(error.what, where=error.where, remedy=_ANEW) from error
    return found if isinstance(found, dict) else {}
