"""The bytes of a dump: unpacked, and as UTF-8 without byte order mark whatever the file has."""

import codecs
import io
import sys
import zlib
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import chain
from pathlib import Path
from typing import BinaryIO

from abstag.errors import DataError

HEAD = 1 << 16
_GZIP = b"\x1f\x8b"
_ENCODINGS = (  # UTF-32 first: its mark begins with that of UTF-16
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_BINARY = {
    b"%PDF": "PDF",
    b"PK\x03\x04": "zip or xlsx",
    b"PAR1": "Parquet",
    b"ARROW1": "Arrow",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"BZh": "bzip2",
    b"\xfd7zXZ": "xz",
    b"\xd0\xcf\x11\xe0": "old Office",
    b"\x89HDF": "HDF5",
    b"SQLite format 3": "SQLite",
}


class Source(io.RawIOBase):
    """A dump as a stream of UTF-8; closing it closes the file (never standard input).

    Attributes
    ----------
    binary
        Name of the binary format that the first bytes give away, or None.

    Raises
    ------
    DataError
        On opening or later: no such file, not readable, damaged gzip, neither UTF-8 nor UTF-16 with a mark.
    """

    def __init__(self, file: str) -> None:
        self._file, self._owned = _open(file), file != "-"
        first, chunks = _first(_chunks(self._file, file))
        if first.startswith(_GZIP):
            first, chunks = _first(_unpacked(chunks, file))
        self.binary = next((kind for magic, kind in _BINARY.items() if first.startswith(magic)), None)
        self._chunks = _utf8(chunks, first, file)
        self._rest = b""

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        """Fill the buffer whole unless the dump ends, so that one ``peek`` shows the head of a pipe too."""
        while len(self._rest) < len(buffer) and (chunk := next(self._chunks, b"")):
            self._rest += chunk
        size = min(len(buffer), len(self._rest))
        buffer[:size], self._rest = self._rest[:size], self._rest[size:]
        return size

    def close(self) -> None:
        """Close the file."""
        opened = getattr(self, "_file", None)  # absent when opening failed
        if opened is not None and self._owned:
            opened.close()
        super().close()


def open_stream(file: str) -> io.BufferedReader:
    """Return a buffered `Source` (in ``raw``) whose first ``peek`` is up to `HEAD` bytes; "-" is standard input."""
    return io.BufferedReader(Source(file), HEAD)


def _open(file: str) -> BinaryIO:
    if file == "-" and sys.stdin is None:
        raise DataError("is closed", where="standard input", remedy="name a file, or pipe the dump in")
    try:
        return sys.stdin.buffer if file == "-" else Path(file).open("rb")
    except (OSError, ValueError) as error:
        raise DataError(f"cannot be opened: {getattr(error, 'strerror', None) or error}", where=file) from error


def _first(chunks: Iterator[bytes]) -> tuple[bytes, Iterator[bytes]]:
    first = next(chunks, b"")
    return first, chain([first], chunks)


def _chunks(stream: BinaryIO, file: str) -> Iterator[bytes]:
    try:
        yield from iter(partial(stream.read, HEAD), b"")
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror or error}", where=file) from error


def _unpacked(chunks: Iterable[bytes], file: str) -> Iterator[bytes]:
    inflate, damage = zlib.decompressobj(31), "it ends in the middle"
    try:
        for chunk in chunks:
            rest = chunk
            while rest:
                if inflate.eof:  # a file may hold several members, and zeros after the last
                    rest, inflate = rest.lstrip(b"\0"), inflate if not rest.strip(b"\0") else zlib.decompressobj(31)
                    continue
                if text := inflate.decompress(rest, HEAD):
                    yield text
                rest = inflate.unconsumed_tail or inflate.unused_data
    except zlib.error as error:
        damage = str(error)
    else:
        if inflate.eof:
            return
    raise DataError(f"damaged gzip: {damage}", where=file, remedy="fetch or pack the file again")


def _utf8(chunks: Iterable[bytes], first: bytes, file: str) -> Iterator[bytes]:
    encoding = next((name for mark, name in _ENCODINGS if first.startswith(mark)), "utf-8")
    decoder, offset, line = codecs.getincrementaldecoder(encoding)(), 0, 1
    try:
        for chunk in chain(chunks, [b""]):
            text = decoder.decode(chunk, final=not chunk)
            offset, line = offset + len(chunk), line + text.count("\n")
            if text:
                yield text.encode()
    except UnicodeDecodeError as error:
        start = offset - (len(error.object) - len(chunk)) + error.start
        line += error.object[: error.start].decode(error.encoding, "ignore").count("\n")
        raise DataError(
            f"byte {start} (line {line}) is not {error.encoding.upper()}: {error.reason}",
            where=file,
            remedy="convert the file to UTF-8, for instance with `iconv -f LATIN1 -t UTF-8`",
        ) from error
