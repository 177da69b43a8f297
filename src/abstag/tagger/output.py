"""Which files a job may read, make, replace and remove."""

import filecmp
import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO

from abstag import readers
from abstag.errors import ArtifactError, DataError
from abstag.files import is_folder, new_binary_file, refuse_existing


def summary_path(out: Path) -> Path:
    """Return where the summary of a job stands: beside its output."""
    return out.with_name(f"{out.name}.summary.json")


def parts_path(out: Path) -> Path:
    """Return the folder in which a job keeps what it has scored, until its output is whole."""
    return out.with_name(f"{out.name}.parts")


def dumps(paths: Sequence[str], out: Path | None) -> list[str]:
    """Return the files to tag; what an earlier attempt at the same output has left among them is none."""
    files = readers.expand(paths)
    if out is None:
        return files
    if not out.name:
        raise ArtifactError("is no name of a file", where=out, remedy="name a file")
    parts, summary = (os.path.realpath(path) for path in (parts_path(out), summary_path(out)))
    begun = is_folder(parts)
    places = {file: os.path.realpath(file) for file in files if file != "-"}
    own = {file for file, place in places.items() if Path(place).is_relative_to(parts) or (begun and place == summary)}
    for made in (out, summary_path(out)):
        if any(_is_file(file, made) for file in files if file not in own):
            raise ArtifactError("is one of the dumps to be tagged", where=made, remedy="choose another name")
    if own == set(files):
        raise DataError("holds only what an interrupted run has left", where=", ".join(paths))
    return [file for file in files if file not in own]


def _is_file(file: str, made: Path) -> bool:
    """Whether a dump, or what standard input is read from, is a file that is to be made."""
    place = readers.place(file)
    try:
        return os.path.samestat(os.fstat(sys.stdin.fileno()), made.stat()) if file == "-" else made.samefile(place)
    except (OSError, ValueError, AttributeError):  # standard input may be no file at all
        return False


def read_once(files: Sequence[str]) -> list[str]:
    """Return the dumps that cannot be read a second time: standard input, pipes."""
    return [file for file in files if file == "-" or not readers.place(file).is_file()]


@contextmanager
def put(out: Path, *, force: bool) -> Iterator[BinaryIO]:
    """Give a file to fill that becomes ``out``; one that is there without ``force`` must be what is written."""
    if force or not out.exists():
        with new_binary_file(out, force=force) as stream:
            yield stream
        return
    with TemporaryDirectory(prefix="abstag-") as folder:
        again = Path(folder) / "again"
        with again.open("w+b") as stream:
            yield stream
        if not filecmp.cmp(again, out, shallow=False):
            refuse_existing(out)


def remove_unfinished(out: Path) -> None:
    """Remove what a killed process left of the output; its parts are locked, so that no other is writing it."""
    name = re.compile(rf"\.{re.escape(out.name[:50])}\.\d+\.part")
    for path in out.parent.iterdir():
        if name.fullmatch(path.name) and path.is_file():
            path.unlink()
