"""Readers: one module a format family, found by its name; dumps in, records and rejects out.

A format is a module here with ``NAME``, ``SUFFIXES`` (with the dot, lower case), ``sniff(head, mapping)`` and
``read(stream, file, mapping)`` (see `Format`). One that reads bytes has ``BINARY = True`` and ``recognise(head)`` in
place of ``sniff`` (see `BinaryFormat`). A module whose name begins with "_" is none.
"""

import io
import pkgutil
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import BinaryIO, Literal, NamedTuple, Protocol, cast

from abstag.errors import AbstagError, DataError
from abstag.readers._expand import expand as expand
from abstag.readers._mapping import parse_mapping as parse_mapping
from abstag.readers._packed import HEAD, is_archive, members, open_bytes, seekable
from abstag.readers._packed import place as place
from abstag.readers._source import Encoding, open_text
from abstag.records import Record, Reject

_CONTROL = re.compile(r"[\0-\x08\x0e-\x19\x1c-\x1f\x7f]")
_ZIP = "zip archive or document"
_BINARY = {
    b"%PDF": "PDF",
    b"PK\x03\x04": _ZIP,
    b"PK\x05\x06": _ZIP,
    b"\x1f\x8b": "packed twice",
    b"\x28\xb5\x2f\xfd": "packed twice",
    b"BZh91AY": "packed twice",
    b"\xfd7zXZ": "packed twice",
    b"7z\xbc\xaf": "7z",
    b"Rar!": "RAR",
    b"\xd0\xcf\x11\xe0": "old Office",
    b"\x89HDF": "HDF5",
    b"\x89PNG": "PNG",
    b"\xff\xd8\xff": "JPEG",
    b"SQLite format 3": "SQLite",
    b"\x80\x02": "pickle",
    b"\x80\x03": "pickle",
    b"\x80\x04": "pickle",
    b"\x80\x05": "pickle",
}
_TEXTS = {
    "web page": re.compile(
        r"\s*(?:<!--.{0,2000}?-->\s*|<\?xml[^<>]{0,200}>\s*)?<(?:!doctype html|html|table)\b", re.IGNORECASE | re.DOTALL
    ),
    "LaTeX": re.compile(r"(?:\s*%[^\n]*\n)*\s*\\(?:documentclass|begin|section|input|usepackage)\b"),
    "TOML": re.compile(r"(?:\s*#[^\n]*\n)*\s*\[\[?[\w.-]{1,80}\]\]?\s*\n\s*[\w.-]{1,80} ?="),
}
_ADVICE = {
    "web page": "export BibTeX, RIS, CSV or JSON there, or copy the abstracts into a text, a blank line between them",
    "LaTeX": "copy the abstracts into a text, a blank line between them",
    "TOML": "write it as JSON or YAML",
    "PDF": "copy the abstracts into a text, a blank line between them",
    "SQLite": "export the table as CSV",
    "pickle": "write it as Parquet, CSV or JSON Lines",
}


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


class BinaryFormat(Protocol):
    """What a format module that reads bytes offers."""

    NAME: str
    SUFFIXES: tuple[str, ...]
    BINARY: Literal[True]

    @staticmethod
    def recognise(head: bytes, /) -> bool:
        """Whether the first 64 KiB of an unpacked dump are of this format."""

    @staticmethod
    def read(stream: BinaryIO, file: str, mapping: Mapping[str, str], /) -> Iterator[Record | Reject]:
        """Read a seekable stream lazily; raises as `Format.read` does."""


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
    why
        Why it was taken for that format: "content", "content and suffix", or "--format".
    encoding
        How its text is encoded, None for a binary format; complete when the items have been read.
    """

    file: str
    format: str
    items: "Items"
    why: str
    encoding: Encoding | None


class Items(Iterator[Record | Reject]):
    """The records and rejects of one dump; closes the file when it is done, whether or not reading has begun."""

    def __init__(self, stream: BinaryIO, items: Iterator[Record | Reject]) -> None:
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
def formats() -> Mapping[str, Format | BinaryFormat]:
    """Return the format modules by their ``NAME``."""
    names = [module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_")]
    modules = [cast("Format | BinaryFormat", import_module(f"{__name__}.{name}")) for name in names]
    return {module.NAME: module for module in modules}


def sniff(head: str, name: str, mapping: Mapping[str, str] | None = None) -> Format:
    """Return the format of a text from its first 64 KiB; the suffix only decides between equals.

    With a mapping (see `parse_mapping`) only formats whose fields have names come into question.

    Raises
    ------
    DataError
        No format fits, several fit equally well, or the only one that may fit contradicts the suffix.
    """
    return _sniffed(head, name, mapping or {})[0]


def _sniffed(head: str, name: str, mapping: Mapping[str, str]) -> tuple[Format, str]:
    texts = text_formats()
    certainty = {key: module.sniff(head, mapping) for key, module in texts.items()}
    best = max(certainty.values())
    fitting = [key for key in texts if certainty[key] == best > 0]
    hinted = [key for key in texts if set(texts[key].SUFFIXES) & {part.lower() for part in Path(name).suffixes}]
    by_suffix = [key for key in fitting if key in hinted]
    fitting = by_suffix or fitting
    if len(fitting) > 1:
        raise DataError(f"may be any of the formats {', '.join(fitting)}", where=name, remedy="name one with --format")
    if mapping and not fitting:
        raise DataError("neither JSON nor a table, so --map can name nothing", where=name, remedy="leave --map out")
    binary = len(_CONTROL.findall(head)) * 30 > len(head)
    if not fitting or binary or (best == 1 and hinted and fitting[0] not in hinted and not mapping):
        kind = next((kind for kind, pattern in _TEXTS.items() if pattern.match(head)), None)
        raise _unknown(name, "binary" if binary else kind)
    return texts[fitting[0]], "content and suffix" if by_suffix else "content"


def open_dump(path: str, *, format: str | None = None, mapping: Mapping[str, str] | None = None) -> Dump:  # noqa: A002
    """Open a dump, packed (gzip, bzip2, xz, zstd) or not; "-" is standard input.

    Parameters
    ----------
    format
        Name of a format, instead of looking at the content.
    mapping
        Column or key that holds a field of ours, by field (see `parse_mapping`); the other fields are found by name.

    Raises
    ------
    DataError
        Here: not readable, empty, damaged, or of no known format. While reading: the same further down.
    """
    if format is not None and format not in formats():
        raise DataError(f"there is no format {format!r}", where=path, remedy=_known())
    stream = open_bytes(path)
    try:
        return _binary_dump(stream, path, format, mapping or {}) or _text_dump(stream, path, format, mapping or {})
    except BaseException:
        stream.close()
        raise


def brought(files: Sequence[str], paths: Sequence[str]) -> set[str]:
    """Return the files that folders, globs and archives brought along: one that is unreadable need not stop the others.

    A file that was named, or is the only one, is none of them.
    """
    return set() if len(files) == 1 else set(files) - set(paths)


def unreadable(file: str, n: int, error: AbstagError) -> Reject:
    """Return the reject, the ``n``-th item, that stands for what could not be read of a file."""
    return Reject(file, n, None, "unreadable file", error.what)


def _binary_dump(stream: io.BufferedReader, path: str, name: str | None, mapping: Mapping[str, str]) -> Dump | None:
    """Open what a binary format is named for or recognises; raises DataError for bytes that no format reads."""
    head = stream.peek(HEAD)
    if not head.strip():
        raise DataError("the dump is empty", where=path)
    if not head.strip(b"\0"):
        raise DataError("begins with NULs alone, so it is damaged", where=path, remedy="fetch the file again")
    fitting = next((one for key, one in _binaries().items() if key == name or (not name and one.recognise(head))), None)
    if fitting:
        whole = seekable(stream, path)
        why = "--format" if name else "content"
        return Dump(path, fitting.NAME, Items(whole, fitting.read(whole, path, mapping)), why, None)
    kind = next((kind for magic, kind in _BINARY.items() if head.startswith(magic)), None)
    if kind == _ZIP and is_archive(path):
        members(path)  # says why the archive cannot be listed
    if kind:
        raise _unknown(path, kind)
    return None


def _text_dump(stream: io.BufferedReader, path: str, name: str | None, mapping: Mapping[str, str]) -> Dump:
    text, encoding = open_text(stream, path)
    head = text.peek(HEAD).decode(errors="ignore")
    if not head.strip():
        raise DataError("the dump is empty", where=path)
    module, why = (text_formats()[name], "--format") if name else _sniffed(head, path, mapping)
    return Dump(path, module.NAME, Items(text, module.read(text, path, mapping)), why, encoding)


def text_formats() -> dict[str, Format]:
    """Return the modules of formats that are text by their ``NAME``."""
    return {key: module for key, module in formats().items() if not hasattr(module, "BINARY")}


def _binaries() -> dict[str, BinaryFormat]:
    return {key: cast("BinaryFormat", module) for key, module in formats().items() if hasattr(module, "BINARY")}


def _known() -> str:
    return f"known formats: {', '.join(sorted(formats()))}"


def _unknown(name: str, kind: str | None) -> DataError:
    detail = f" ({kind})" if kind else ""
    advice = f"{_known()}; convert it, name one with --format, or its columns with --map"
    return DataError(f"unknown format{detail}", where=name, remedy=_ADVICE.get(kind or "", advice))
