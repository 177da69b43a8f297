"""Readers: one module a format family, found by module name; every dump becomes records and rejects, as a stream.

A format module has ``NAME``, ``SUFFIXES`` (a hint only), ``sniff(head) -> bool`` on the first characters, and
``read(stream, file) -> Iterator[Record | Reject]``. A new format is a new module; nothing else is touched.
"""

import codecs
import glob
import gzip
import importlib
import io
import pkgutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import BinaryIO, NamedTuple, Protocol, TextIO, cast

from abstag.errors import DataError
from abstag.records import Record, Reject

STDIN = "-"
_HEAD = 65_536
_GZIP = b"\x1f\x8b"
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


class Format(Protocol):
    """What a format module offers."""

    NAME: str
    SUFFIXES: tuple[str, ...]

    def sniff(self, head: str) -> bool:
        """Whether the first characters of a dump (no byte-order mark) look like this format."""
        ...

    def read(self, stream: TextIO, file: str) -> Iterator[Record | Reject]:
        """Yield the records and rejects of a dump, numbered from 1."""
        ...


class Dump(NamedTuple):
    """An open dump: the path as given, the format found, and its records and rejects as they are read."""

    file: str
    format: str
    items: Iterator[Record | Reject]


@cache
def formats() -> dict[str, Format]:
    """Return the format modules by name."""
    names = [info.name for info in pkgutil.iter_modules(__path__) if not info.name.startswith("_")]
    modules = [cast("Format", importlib.import_module(f"{__name__}.{name}")) for name in sorted(names)]
    return {module.NAME: module for module in modules}


def expand(paths: Sequence[str]) -> list[str]:
    """Return the files that paths, folders, globs and "-" (standard input) stand for, in order, each once.

    Raises
    ------
    DataError
        A path is missing, or a folder or glob holds no file.
    """
    found = [file for path in paths for file in _expand(path)]
    return list(dict.fromkeys(found))


def _expand(path: str) -> list[str]:
    if path == STDIN or Path(path).is_file():
        return [path]
    if Path(path).is_dir():
        inside = (item for item in Path(path).rglob("*") if item.is_file())
        files = sorted(str(item) for item in inside if not _hidden(item.relative_to(path)))
    else:
        files = sorted(
            name
            for name in glob.glob(path, recursive=True)  # noqa: PTH207 - takes absolute patterns too
            if Path(name).is_file()
        )
    if not files:
        what = "the folder holds no file" if Path(path).is_dir() else "no such file, folder or match"
        raise DataError(what, where=path)
    return files


def _hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def open_dump(file: str, *, format: str | None = None) -> Dump:  # noqa: A002
    """Open a dump, gzipped or not, and find its format by content.

    Parameters
    ----------
    file
        A path, or "-" for standard input.
    format
        Name of a format, instead of looking.

    Raises
    ------
    DataError
        The dump is missing, empty, in no known format or in several; while items are read: not UTF-8 or UTF-16, or
        cut off in the middle of its compression.
    """
    stack = ExitStack()
    try:
        raw = sys.stdin.buffer if file == STDIN else stack.enter_context(Path(file).open("rb"))
        stream = _text(cast("BinaryIO", raw), stack)
        head = _head(stream, file)
        module = _by_name(format) if format else sniff(head, file)
    except (OSError, EOFError) as error:
        stack.close()
        raise DataError(f"cannot be read: {error}", where=file) from error
    except UnicodeError as error:
        stack.close()
        raise _encoding_error(error, file) from error
    except BaseException:
        stack.close()
        raise
    return Dump(file, module.NAME, _items(module, cast("TextIO", _Rewound(head, stream)), file, stack))


def sniff(head: str, file: str) -> Format:
    """Return the format whose signs the first characters show; the suffix decides between several.

    Raises
    ------
    DataError
        None fits, or several fit and the suffix does not decide; the message lists the names.
    """
    fitting = [module for module in formats().values() if module.sniff(head)]
    if len(fitting) > 1:
        suffixes = [suffix.lower() for suffix in Path(file).suffixes]
        hinted = [module for module in fitting if set(suffixes) & set(module.SUFFIXES)]
        fitting = hinted or fitting
    if len(fitting) == 1:
        return fitting[0]
    names = ", ".join(module.NAME for module in fitting) or ", ".join(formats())
    what = "several formats fit" if fitting else "unknown format"
    raise DataError(what, where=file, remedy=f"name it with --format, one of {names}")


def _by_name(name: str) -> Format:
    if name not in formats():
        raise DataError(f"unknown format {name!r}", where="--format", remedy=f"known: {', '.join(formats())}")
    return formats()[name]


def _text(raw: BinaryIO, stack: ExitStack) -> TextIO:
    buffered = raw if isinstance(raw, io.BufferedReader) else io.BufferedReader(cast("io.RawIOBase", raw))
    if buffered.peek(2)[:2] == _GZIP:
        buffered = io.BufferedReader(cast("io.RawIOBase", stack.enter_context(gzip.open(buffered, "rb"))))
    encoding = "utf-16" if buffered.peek(2)[:2] in _UTF16 else "utf-8-sig"
    return io.TextIOWrapper(buffered, encoding=encoding, errors="strict", newline="")


def _head(stream: TextIO, file: str) -> str:
    head = ""
    while not head.strip():
        more = stream.read(_HEAD)
        if not more:
            raise DataError("the dump is empty", where=file)
        head += more
    if "\0" in head[:1024]:
        raise DataError("this is a binary file", where=file, remedy=f"known formats: {', '.join(formats())}")
    return head


class _Rewound(io.TextIOBase):
    """A text stream with the characters already read put back in front; knows no seeking, so pipes work."""

    def __init__(self, head: str, rest: TextIO) -> None:
        self._head, self._rest = io.StringIO(head, newline=""), rest

    def readable(self) -> bool:
        return True

    def read(self, size: int | None = -1) -> str:
        if size is None or size < 0:
            return self._head.read() + self._rest.read()
        return self._head.read(size) or self._rest.read(size)

    def readline(self, size: int = -1) -> str:  # type: ignore[override]
        line = self._head.readline(size)
        return line if line.endswith("\n") else line + self._rest.readline(size)


def _items(module: Format, stream: TextIO, file: str, stack: ExitStack) -> Iterator[Record | Reject]:
    with stack:
        try:
            yield from module.read(stream, file)
        except UnicodeError as error:
            raise _encoding_error(error, file) from error
        except (OSError, EOFError) as error:
            raise DataError(f"cannot be read to its end: {error}", where=file) from error


def _encoding_error(error: UnicodeError, file: str) -> DataError:
    byte = f", byte 0x{error.object[error.start]:02x}" if isinstance(error, UnicodeDecodeError) else ""
    return DataError(f"neither UTF-8 nor UTF-16 with a byte-order mark{byte}", where=file, remedy="convert it to UTF-8")
