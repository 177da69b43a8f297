"""The text of a dump as UTF-8 without byte order mark, whatever the file has."""

import codecs
import io
import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain

from abstag.errors import DataError
from abstag.readers._packed import HEAD, buffered

_LOG = logging.getLogger(__name__)
_MARKS = (  # UTF-32 first: its mark begins with that of UTF-16
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_MANY, _FEW = 0.3, 0.02  # share of NULs among the high and the low bytes of UTF-16 in Latin letters
_ESCAPED = re.compile("[\udc80-\udcff]+")
_WINDOWS = "".join(bytes([byte]).decode("cp1252", "ignore") or chr(byte) for byte in range(256))  # five mean nothing


@dataclass(slots=True)
class Encoding:
    """How a text is encoded; ``repaired`` counts the bytes read so far that are no UTF-8, read as Windows-1252."""

    name: str
    repaired: int = 0


def open_text(stream: io.BufferedReader, file: str) -> tuple[io.BufferedReader, Encoding]:
    """Return a dump's text as UTF-8, and its encoding.

    Bytes that are no UTF-8 are read as Windows-1252, each by itself, so that the text around them stays as it is.

    Raises
    ------
    DataError
        While reading: not UTF-16 or UTF-32 where the first bytes say so.
    """
    head = stream.peek(HEAD)
    encoding = Encoding(next((name for mark, name in _MARKS if head.startswith(mark)), None) or _unmarked(head))
    return buffered(_utf8(stream, encoding, file), stream.close), encoding


def _unmarked(head: bytes) -> str:
    """Return which UTF-16 a text without a mark is in, else UTF-8: every other byte of Latin letters is NUL there."""
    first, second = (half.count(0) / max(1, len(half)) for half in (head[::2], head[1::2]))
    if max(first, second) > _MANY and min(first, second) < _FEW:
        return "utf-16-le" if second > first else "utf-16-be"
    return "utf-8"


def _windows(run: re.Match[str]) -> str:
    return codecs.charmap_decode(run[0].encode("utf-8", "surrogateescape"), "strict", _WINDOWS)[0]


def _utf8(stream: io.BufferedReader, encoding: Encoding, file: str) -> Iterator[bytes]:
    lenient = "surrogateescape" if encoding.name.startswith("utf-8") else "strict"
    decoder, offset, line, first = codecs.getincrementaldecoder(encoding.name)(lenient), 0, 1, 0
    try:
        for chunk in chain(iter(partial(stream.read1, HEAD), b""), [b""]):
            text = decoder.decode(chunk, final=not chunk)
            if lenient == "surrogateescape" and not text.isascii() and (found := _ESCAPED.search(text)):
                first = first or line + text.count("\n", 0, found.start())
                encoding.repaired += sum(len(run[0]) for run in _ESCAPED.finditer(text))
                text = _ESCAPED.sub(_windows, text)
            offset, line = offset + len(chunk), line + text.count("\n")
            if text:
                yield text.encode()
    except UnicodeDecodeError as error:
        start = offset - (len(error.object) - len(chunk)) + error.start
        line += error.object[: error.start].decode(error.encoding, "ignore").count("\n")
        raise DataError(
            f"byte {start} (line {line}) is not {error.encoding.upper()}: {error.reason}",
            where=file,
            remedy="convert the file to UTF-8, for instance with `iconv -f UTF-16 -t UTF-8`",
        ) from error
    if encoding.repaired:
        what = "%s: %d bytes are not UTF-8, the first in line %d; they were read as Windows-1252"
        _LOG.info(what, file, encoding.repaired, first)
