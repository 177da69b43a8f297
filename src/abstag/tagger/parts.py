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
_NAME = re.compile(r"part-(\d{12})-(\d{6})\.jsonl")


class Parts:
    """The scored records of one job, in a folder.

    Attributes
    ----------
    size
        Number of records kept, in the order read, from the first on.
    resumed
        Whether an earlier process had begun the job.
    """

    def __init__(self, folder: Path, *, resumed: bool = False) -> None:
        self._folder, self.size, self.resumed = folder, 0, resumed
        self._files: list[Path] = []
        for path in sorted(folder.iterdir()):
            name = _NAME.fullmatch(path.name)
            if name and int(name[1]) == self.size:
                self._files.append(path)
                self.size += int(name[2])

    def append(self, scored: Sequence[Scored]) -> None:
        """Keep records that follow on those kept; raises ArtifactError when the disk refuses them."""
        path = self._folder / f"part-{self.size:012d}-{len(scored):06d}.jsonl"
        with new_file(path, force=True) as stream:
            stream.writelines(to_json(item._asdict()) + "\n" for item in scored)
        self._files.append(path)
        self.size += len(scored)

    def __iter__(self) -> Iterator[list[Scored]]:
        """Yield the records kept, in the order read, as they were appended."""
        for path in self._files:
            with path.open(encoding="utf-8") as stream:
                yield [Scored(**json.loads(line)) for line in stream]


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

    lock = FileLock(folder / _LOCK)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock.acquire(blocking=False)
        resumed = _claim(folder, job, restart=restart)
    except Timeout as error:
        raise ArtifactError("another process is writing it", where=folder, remedy="wait for it") from error
    except OSError as error:
        raise refused(error, "cannot be written", error.filename or folder) from error
    parts, ended = Parts(folder, resumed=resumed), False
    try:
        yield parts
        ended = True
    finally:
        lock.release()
        if ended or not parts.size:
            shutil.rmtree(folder, ignore_errors=True)


def _claim(folder: Path, job: Mapping[str, Any], *, restart: bool) -> bool:
    """Make the folder one of this job, without what an interrupted write left; return whether it was one before."""
    found = read_json(folder / _JOB) if (folder / _JOB).exists() else None
    known = found if isinstance(found, dict) else {}
    differing = sorted(key for key in {*known, *job} if known.get(key) != job.get(key))
    names = {path.name for path in folder.iterdir()} - {_JOB, _LOCK}
    foreign = sorted(name for name in names if not (name.startswith(".") or _NAME.fullmatch(name)))
    if foreign:
        raise ArtifactError(f"holds {foreign[0]}, which is not abstag's", where=folder, remedy="move it away")
    if found is not None and differing and not restart:
        what = f"holds an unfinished run with other {', '.join(differing)}"
        raise ArtifactError(what, where=folder, remedy="give that run's command to go on, or start anew with --restart")
    for path in folder.iterdir():
        stale = path.name.startswith(".") or (differing and path.name not in {_JOB, _LOCK})
        if stale or (restart and path.name != _LOCK):
            path.unlink()
    if differing or restart:
        write_json(folder / _JOB, dict(job))
    return not (differing or restart)
