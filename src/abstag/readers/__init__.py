"""Readers: one module a format family, found by its name; dumps in, records and rejects out.

A format is a module here with ``NAME``, ``SUFFIXES`` (with the dot, lower case), ``sniff(head, mapping)`` and
``read(stream, file, mapping)`` (see `Format`). A module whose name begins with "_" is none.
"""

import io
import logging
import os
import pkgutil
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from glob import glob
from importlib import import_module
from pathlib import Path
from typing import NamedTuple, Protocol, cast

from abstag.errors import DataError
from abstag.readers._mapping import parse_mapping as parse_mapping
from abstag.readers._source import HEAD, Source, open_stream
from abstag.records import Record, Reject

_LOG = logging.getLogger(__name__)
_ABOUT = re.compile(
    r"(?:readme|licen[cs]e|changelog|citation|contributing|notice|copying)(?:\.(?:md|txt|rst|cff))?", re.IGNORECASE
)


class Format(Protocol):
    """What each format module offers."""

    NAME: str
    SUFFIXES: tuple[str, ...]

    @staticmethod
    def sniff(head: str, mapping: Mapping[str, str], /) -> int:
        """Return 0 (not this format), 1 (possible) or 2 (sure) for the first 64 KiB of a dump."""

    @staticmethod
    def read(stream: io.BufferedReader, file: str, mapping: Mapping[str, str], /) -> Iterator[Record | Reject]:
        """Read UTF-8 lazily; raises DataError when the file as a whole is unusable, or the mapping does not fit it."""


class Dump(NamedTuple):
    """An open dump.

    Attributes
    ----------
    file
        The path as given.
    format
        Name of its format.
    items
        Records and rejects, read as they are asked for; the file is closed at the end, on an error, and on ``close``.
    """

    file: str
    format: str
    items: "Items"


class Items(Iterator[Record | Reject]):
    """The records and rejects of one dump; closes the file when it is done, whether or not reading has begun."""

    def __init__(self, stream: io.BufferedReader, items: Iterator[Record | Reject]) -> None:
        self._stream, self._items = stream, items

    def __next__(self) -> Record | Reject:
        try:
            return next(self._items)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the file; nothing more comes."""
        self._items = iter(())
        self._stream.close()


@cache
def formats() -> Mapping[str, Format]:
    """Return the format modules by their ``NAME``."""
    names = [module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_")]
    modules = [cast("Format", import_module(f"{__name__}.{name}")) for name in names]
    return {module.NAME: module for module in modules}


def expand(paths: Sequence[str]) -> list[str]:
    """Return the files that paths, folders and globs name, each once, in order.

    A folder stands for all files below it but hidden ones and those about the folder (README, LICENSE, CHANGELOG, …),
    which are named in a message.

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


def sniff(head: str, name: str, mapping: Mapping[str, str] | None = None) -> Format:
    """Return the format of a dump from its first 64 KiB; the suffix only decides between equals.

    With a mapping (see `parse_mapping`) only formats whose fields have names come into question.

    Raises
    ------
    DataError
        No format fits, several fit equally well, or the only one that may fit contradicts the suffix.
    """
    certainty = {key: module.sniff(head, mapping or {}) for key, module in formats().items()}
    best = max(certainty.values())
    fitting = [key for key in certainty if certainty[key] == best > 0]
    hinted = [key for key in formats() if set(formats()[key].SUFFIXES) & {part.lower() for part in Path(name).suffixes}]
    fitting = [key for key in fitting if key in hinted] or fitting
    if len(fitting) > 1:
        raise DataError(f"may be any of the formats {', '.join(fitting)}", where=name, remedy="name one with --format")
    if mapping and not fitting:
        raise DataError("neither JSON nor a table, so --map can name nothing", where=name, remedy="leave --map out")
    binary = head.count("\0") * 10 > len(head)
    if not fitting or binary or (best == 1 and hinted and fitting[0] not in hinted and not mapping):
        raise _unknown(name, "binary, or UTF-16 without a byte order mark" if binary else None)
    return formats()[fitting[0]]


def open_dump(path: str, *, format: str | None = None, mapping: Mapping[str, str] | None = None) -> Dump:  # noqa: A002
    """Open a dump, packed with gzip or not; "-" is standard input.

    Parameters
    ----------
    format
        Name of a format, instead of looking at the content.
    mapping
        Column or key that holds a field of ours, by field (see `parse_mapping`); the other fields are found by name.

    Raises
    ------
    DataError
        Here: not readable, empty, damaged, not UTF-8, or of no known format. While reading: the same further down.
    """
    if format is not None and format not in formats():
        raise DataError(f"there is no format {format!r}", where=path, remedy=_known())
    stream = open_stream(path)
    try:
        module = _format_of(stream, path, format, mapping)
    except BaseException:
        stream.close()
        raise
    return Dump(path, module.NAME, Items(stream, module.read(stream, path, mapping or {})))


def _format_of(stream: io.BufferedReader, path: str, name: str | None, mapping: Mapping[str, str] | None) -> Format:
    kind = cast("Source", stream.raw).binary
    if kind:
        raise _unknown(path, kind)
    head = stream.peek(HEAD).decode(errors="ignore")
    if not head.strip():
        raise DataError("the dump is empty", where=path)
    return formats()[name] if name else sniff(head, path, mapping)


def _known() -> str:
    return f"known formats: {', '.join(sorted(formats()))}"


def _unknown(name: str, kind: str | None) -> DataError:
    detail = f" ({kind})" if kind else ""
    advice = "convert it, name one with --format, or its columns with --map"
    return DataError(f"unknown format{detail}", where=name, remedy=f"{_known()}; {advice}")


def _expand(path: str) -> list[str]:
    if path == "-":
        return [path]
    try:
        if Path(path).is_dir():
            files = _below(path)
        elif Path(path).exists():
            files = [path]
        else:
            files = sorted(file for file in glob(path, recursive=True) if not Path(file).is_dir())  # noqa: PTH207
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
        found += [Path(place) / name for name in files if not name.startswith(".")]
    about = sorted(str(file) for file in found if _ABOUT.fullmatch(file.name))
    if about:
        _LOG.info("left out, since about the folder: %s", ", ".join(about))
    return sorted(str(file) for file in found if file.is_file() and str(file) not in about)
