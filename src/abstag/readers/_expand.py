"""The dumps that paths, folders, globs and zip archives name."""

import logging
import os
import re
from collections.abc import Iterable, Sequence
from glob import glob
from pathlib import Path

from abstag.errors import AbstagError, DataError
from abstag.readers._packed import is_archive, members

_LOG = logging.getLogger(__name__)
_ABOUT = re.compile(
    r"(?:readme|licen[cs]e|changelog|citation|contributing|notice|copying)(?:\.(?:md|txt|rst|cff))?", re.IGNORECASE
)
_DATASET = re.compile(r"dataset_info\.json|dataset_dict\.json|state\.json|cache-.*\.arrow|.*\.lock|.*\.incomplete")


def expand(paths: Sequence[str]) -> list[str]:
    """Return the files that paths, folders, globs and zip archives name, each once, in order.

    A folder or an archive stands for all files below it but hidden ones and those about it (README, LICENSE,
    CHANGELOG, …, and beside Arrow files what `datasets` keeps), which are named in a message. A file in an archive is
    called ``ARCHIVE/MEMBER``. An archive that cannot be listed is left for `open_dump` to say why.

    Raises
    ------
    DataError
        Nothing there, a folder without files, a glob that matches none, or a folder that may not be read.
    """
    found: dict[str, str] = {}
    for path in paths:
        for file in _expand(path):
            found.setdefault(file if file == "-" else os.path.realpath(file), file)
    return list(found.values())


def _expand(path: str) -> list[str]:
    if path == "-":
        return [path]
    try:
        if Path(path).is_dir():
            files = _below(path)
        elif Path(path).exists():
            files = _unzipped(path)
        else:
            matches = sorted(file for file in glob(path, recursive=True) if not Path(file).is_dir())  # noqa: PTH207
            files = [file for match in matches for file in _unzipped(match)]
    except OSError as error:
        where = error.filename or path
        raise DataError(f"cannot be read: {error.strerror or error}", where=where, remedy="check the path") from error
    if not files:
        what = "no file in this folder" if Path(path).is_dir() else "no such file, folder or match"
        raise DataError(what, where=path, remedy="check the path")
    return files


def _below(folder: str) -> list[str]:
    def fail(error: OSError) -> None:
        raise error

    found = []
    for place, folders, files in os.walk(folder, onerror=fail):
        folders[:] = [name for name in folders if not name.startswith(".")]
        found += [str(Path(place) / name) for name in files if not name.startswith(".")]
    dumps = sorted(file for file in _dumps(found) if Path(file).is_file())
    return [file for dump in dumps for file in _unzipped(dump)]


def _unzipped(file: str) -> list[str]:
    if not is_archive(file):
        return [file]
    try:
        return _dumps(members(file)) if members(file) != [file] else [file]
    except AbstagError:
        return [file]


def _dumps(files: Iterable[str]) -> list[str]:
    """Return the files without those about the folder."""
    files = list(files)
    datasets = {os.path.dirname(file) for file in files if file.endswith(".arrow")}  # noqa: PTH120
    datasets |= {os.path.dirname(folder) for folder in datasets}  # noqa: PTH120  # that of dataset_dict.json
    about = sorted(file for file in files if _is_about(*os.path.split(file), datasets))
    if about:
        _LOG.info("left out, since about the folder: %s", ", ".join(about))
    return [file for file in files if file not in set(about)]


def _is_about(folder: str, name: str, datasets: set[str]) -> bool:
    return _ABOUT.fullmatch(name) is not None or (folder in datasets and _DATASET.fullmatch(name) is not None)
