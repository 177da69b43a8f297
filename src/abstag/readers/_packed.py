"""The bytes of a dump: of a file, a member of a zip archive or standard input, unpacked within limits."""

import bz2
import gzip
import io
import lzma
import os
import re
import shutil
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache, partial
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, BinaryIO, cast

from abstag.errors import AbstagError, ConfigError, DataError

HEAD = 1 << 16
RATIO, SIZE = "ABSTAG_MAX_RATIO", "ABSTAG_MAX_UNPACKED"

_LIMITS = {RATIO: 200, SIZE: 1 << 36}
_HARMLESS = 1 << 26  # bytes below which no ratio is too high
_ZIP = (b"PK\x03\x04", b"PK\x05\x06")
_PACKED = {
    b"\x1f\x8b": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\x50\x2a\x4d\x18": "zstd",  # pzstd begins with a frame to be skipped
    b"\xfd7zXZ\0": "xz",
    **{b"BZh%d1AY&SY" % level: "bzip2" for level in range(1, 10)},
}
_DOCUMENT = ("[Content_Types].xml", "mimetype", "META-INF/MANIFEST.MF")  # Office, OpenDocument and EPUB, Java
_HIDDEN = re.compile(r"(?:.*/)?(?:\.|__MACOSX/).*", re.DOTALL)
_DAMAGES = (OSError, EOFError, ValueError, RuntimeError, zlib.error, lzma.LZMAError, zipfile.BadZipFile)
_PACK_AGAIN = "fetch or pack the file again"


class Chunks(io.RawIOBase):
    """A stream of chunks; ``taken`` counts their bytes. Closing it closes what they come from."""

    def __init__(self, chunks: Iterator[bytes], close: Callable[[], None]) -> None:
        self._chunks, self._close, self._rest, self.taken = chunks, close, memoryview(b""), 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        """Fill the buffer whole unless the dump ends or is damaged there, so that one ``peek`` shows its head."""
        filled = 0
        while filled < len(buffer):
            try:
                self._rest = self._rest or memoryview(next(self._chunks, b""))
            except AbstagError as error:
                if not filled:
                    raise
                self._chunks = _raising(error)  # once more, after what came before it
                break
            size = min(len(buffer) - filled, len(self._rest))
            if not size:
                break
            buffer[filled : filled + size], self._rest = self._rest[:size], self._rest[size:]
            filled += size
        self.taken += filled
        return filled

    def close(self) -> None:
        """Close what the chunks come from."""
        if not self.closed:
            self._close()
        super().close()


def _raising(error: AbstagError) -> Iterator[bytes]:
    yield from ()
    raise error


def buffered(chunks: Iterator[bytes], close: Callable[[], None]) -> io.BufferedReader:
    """Return chunks as a stream whose first ``peek`` is up to `HEAD` bytes."""
    return io.BufferedReader(Chunks(chunks, close), HEAD)


def open_bytes(file: str) -> io.BufferedReader:
    """Return the bytes of a dump, unpacked if it is packed; "-" is standard input, which is never closed.

    Raises
    ------
    DataError
        On opening or later: no such file, not readable, damaged, or unpacked it exceeds a limit.
    """
    opened = _open(file)
    stream = buffered(_chunks(opened, file), (lambda: None) if file == "-" else opened.close)
    try:
        kind = _kind(stream.peek(HEAD))
    except BaseException:
        stream.close()
        raise
    return buffered(_unpacked(stream, kind, file), stream.close) if kind else stream


def seekable(stream: io.BufferedReader, file: str) -> BinaryIO:
    """Return a stream that can be read in any order: the file itself, or a temporary copy of what is unpacked."""
    if Path(file).is_file():
        plain = Path(file).open("rb")
        if _kind(plain.read(HEAD)) is None:
            stream.close()
            plain.seek(0)
            return plain
        plain.close()
    copy = cast("BinaryIO", TemporaryFile())
    with stream:
        shutil.copyfileobj(stream, copy)
    copy.seek(0)
    return copy


def place(file: str) -> Path:
    """Return the file on disk that a dump stands in: the archive of a member, else the dump itself."""
    return Path(_split(file)[0])


def is_archive(file: str) -> bool:
    """Whether a file is a zip archive; pipes are not looked into."""
    with suppress(OSError, ValueError):
        if Path(file).is_file():
            with Path(file).open("rb") as stream:
                return stream.read(len(_ZIP[0])) in _ZIP
    return False


def members(file: str) -> list[str]:
    """Return the dumps in a zip archive, called ``ARCHIVE/MEMBER``; the archive itself when it is a document.

    Raises
    ------
    DataError
        Damaged, encrypted, empty, or it would exceed a limit when it is unpacked.
    """
    archive = _archive(file)
    if any(name in archive.NameToInfo for name in _DOCUMENT):
        return [file]
    found = [info for info in archive.infolist() if not info.is_dir() and not _HIDDEN.fullmatch(info.filename)]
    if not found:
        raise DataError("the archive holds no file", where=file)
    locked = next((info.filename for info in found if info.flag_bits & 1), None)
    if locked:
        raise DataError(f"the archive is encrypted ({locked})", where=file, remedy="unpack it, and name the folder")
    packed = Path(file).stat().st_size
    _refuse(sum(info.file_size for info in found), packed, file)
    if sum(info.compress_size for info in found) > packed:
        raise DataError("damaged zip: its members overlap", where=file, remedy=_PACK_AGAIN)
    return sorted(f"{file}/{info.filename}" for info in found)


def _open(file: str) -> IO[bytes]:
    if file == "-" and sys.stdin is None:
        raise DataError("is closed", where="standard input", remedy="name a file, or pipe the dump in")
    try:
        archive, member = _split(file)
        if member:
            return _archive(archive).open(member)
        return sys.stdin.buffer if file == "-" else Path(file).open("rb")
    except KeyError as error:
        raise DataError(f"there is no {member} in {archive}", where=file) from error
    except _DAMAGES as error:
        raise DataError(f"cannot be opened: {getattr(error, 'strerror', None) or error}", where=file) from error


def _split(file: str) -> tuple[str, str]:
    """Return the archive and the member that a name stands for; the member is empty for a file of its own."""
    for found in re.finditer("/", file[1:]):
        archive, member = file[: found.start() + 1], file[found.end() + 1 :]
        with suppress(ValueError):
            if member and os.path.isfile(archive):  # noqa: PTH113  # Path.is_file raises on names that are too long
                return archive, member
    return file, ""


def _archive(file: str) -> zipfile.ZipFile:
    found = Path(file).stat()
    try:
        return _directory(file, found.st_mtime_ns, found.st_size)
    except _DAMAGES as error:
        raise DataError(f"damaged zip: {error}", where=file, remedy=_PACK_AGAIN) from error


@lru_cache(maxsize=1)  # a directory of 10,000 members is not read 10,000 times
def _directory(file: str, changed: int, size: int) -> zipfile.ZipFile:  # noqa: ARG001
    return zipfile.ZipFile(file)


def _chunks(stream: IO[bytes], file: str) -> Iterator[bytes]:
    try:
        yield from iter(partial(stream.read, HEAD), b"")
    except _DAMAGES as error:
        raise DataError(f"cannot be read: {getattr(error, 'strerror', None) or error}", where=file) from error


def _kind(head: bytes) -> str | None:
    return next((kind for magic, kind in _PACKED.items() if head.startswith(magic)), None)


def _unpacked(packed: io.BufferedReader, kind: str, file: str) -> Iterator[bytes]:
    size = 0
    try:
        with _opened(packed, kind) as stream:
            while chunk := stream.read1(HEAD):
                size += len(chunk)
                _refuse(size, cast("Chunks", packed.raw).taken, file)
                yield chunk
    except _DAMAGES as error:
        raise DataError(f"damaged {kind}: {error}", where=file, remedy=_PACK_AGAIN) from error


@contextmanager
def _opened(packed: io.BufferedReader, kind: str) -> Iterator[Any]:
    if kind != "zstd":
        openers: dict[str, Callable[[io.BufferedReader], Any]] = {"bzip2": bz2.BZ2File, "xz": lzma.LZMAFile}
        openers["gzip"] = partial(gzip.GzipFile, None, "rb", 9)
        with openers[kind](packed) as stream:
            yield stream
        return
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd
    try:
        with zstd.ZstdFile(packed) as stream:
            yield stream
    except zstd.ZstdError as error:
        raise OSError(str(error)) from error


def _refuse(size: int, packed: int, file: str) -> None:
    """Raise DataError when so many unpacked bytes are more than the limits allow for so many packed ones."""
    if size <= _HARMLESS:
        return
    if size > _limit(SIZE):
        what, name = f"unpacked it has more than {_limit(SIZE)} bytes", SIZE
    elif size > packed * _limit(RATIO):
        what, name = f"unpacked it is more than {_limit(RATIO)} times as big as packed", RATIO
    else:
        return
    raise DataError(what, where=file, remedy=f"if you trust it, set the environment variable {name} higher")


def _limit(name: str) -> int:
    given = os.environ.get(name, "")
    if given and not given.isdecimal():
        raise ConfigError(f"{given[:40]!r} is no whole number", where=name)
    return int(given or _LIMITS[name])
