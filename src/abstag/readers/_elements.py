"""XML as people glue it: one element after the other at constant memory; no DTD, no other file is ever read."""

import html
import io
import re
from collections.abc import Collection, Iterator
from functools import partial
from typing import NamedTuple
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

_CHUNK, _TAIL, _DEPTH, _TOKEN = 1 << 14, 1200, 200, 1 << 20
_DECLARATION = re.compile(rb"<\?xml\s{1,20}version[^<>]{1,200}\?>")
_MENDED = re.compile(
    rb"&(?!(?:amp|lt|gt|quot|apos|#0{0,5}(?:9|10|13)|#x0{0,5}[9aAdD]);)(?:#?\w{1,31};)?"
    rb"|<(?=[\s\d<=])|<!DOCTYPE\s(?:[^<>\[\]]{1,1000}>)?"
)
_DOCTYPE = "_doctype"  # an element that stands for one that may declare entities
_CONTROLS = bytes(code for code in range(32) if code not in b"\t\n\r")


class Found(NamedTuple):
    """An element, or why the rest of its document cannot be read.

    Attributes
    ----------
    line
        1-based physical line where the element begins, or where the damage is.
    """

    line: int
    value: Element | str


def elements(stream: io.BufferedReader, names: Collection[str]) -> Iterator[Found]:
    """Yield each element of one of the names that is inside no other, prefixes left out of tags, and each damage.

    An XML declaration begins a document, of which a file may hold several; a document need not have a single root.
    After a damage reading goes on with the next document. The encoding is that of the stream whatever is declared,
    control characters are left out, entities of HTML are resolved, and any other "&" is text, as is "<" before no name.
    """
    cutter, line = _Cutter(names, 1), 1
    for piece in _pieces(stream):
        if _DECLARATION.match(piece):
            yield from cutter.close()
            cutter = _Cutter(names, line)
            piece = b"\n" * piece.count(b"\n")  # noqa: PLW2901
        yield from cutter.feed(piece)
        line += piece.count(b"\n")
    yield from cutter.close()


class _Cutter:
    """Cuts one document that begins on the given line."""

    def __init__(self, names: Collection[str], line: int) -> None:
        self._names, self._first = names, line
        self._depth = self._top = self._line = self._fed = 0
        self._builder: TreeBuilder | None = None
        self._found = list[Found]()
        self._is_damaged = False
        self._parser = expat.ParserCreate("utf-8")
        self._parser.buffer_text = True
        self._parser.StartElementHandler, self._parser.EndElementHandler = self._start, self._end
        self._parse(b"<_>", is_last=False)  # around all that is there

    def feed(self, piece: bytes, *, is_last: bool = False) -> list[Found]:
        """Return what the next bytes bring."""
        if self._is_damaged:
            return []
        try:
            self._parse(_MENDED.sub(_mended, piece.translate(None, _CONTROLS)), is_last)
        except expat.ExpatError as error:
            self._damage("it ends in the middle" if is_last and self._depth > 1 else expat.ErrorString(error.code))
        except ValueError as error:
            self._damage(str(error))
        return self._taken()

    def close(self) -> list[Found]:
        """Return what came last, and the damage of a document that ends in the middle; nothing more may be fed."""
        found = self.feed(b"</_>", is_last=True)
        # They hold this object, which holds the parser: memory would wait for the cycle to be found.
        self._parser.StartElementHandler = self._parser.EndElementHandler = None
        return found

    def _parse(self, text: bytes, is_last: bool) -> None:  # noqa: FBT001
        self._parser.Parse(text, is_last)
        self._fed += len(text)
        if self._fed - self._parser.CurrentByteIndex > _TOKEN:  # expat takes the square of its length
            raise ValueError("a tag or comment of more than 1 MB")

    def _taken(self) -> list[Found]:
        found, self._found = self._found, []
        return found

    def _damage(self, why: str) -> None:
        self._is_damaged = True
        self._found.append(Found(self._here(), why))

    def _here(self) -> int:
        return self._first + self._parser.CurrentLineNumber - 1

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._depth > _DEPTH:
            raise ValueError(f"more than {_DEPTH} elements inside each other")
        if name == _DOCTYPE:
            raise ValueError("a document type with declarations of its own")
        tag = name.rpartition(":")[2]
        if self._builder is None and tag in self._names:
            self._builder, self._top, self._line = TreeBuilder(), self._depth, self._here()
            self._parser.CharacterDataHandler = self._builder.data
        if self._builder is not None:
            self._builder.start(tag, attributes)

    def _end(self, name: str) -> None:
        if self._builder is not None:
            self._builder.end(name.rpartition(":")[2])
            if self._depth == self._top:
                self._found.append(Found(self._line, self._builder.close()))
                self._builder = self._parser.CharacterDataHandler = None
        self._depth -= 1


def _pieces(stream: io.BufferedReader) -> Iterator[bytes]:
    """Yield the stream in pieces, each declaration in one of its own, cut where no entity or declaration stands."""
    held = b""
    for chunk in iter(partial(stream.read, _CHUNK), b""):
        held += chunk
        cut = max(held.rfind(b"<"), held.rfind(b"&"))
        cut = cut if len(held) - _TAIL < cut else len(held)
        yield from _parted(held[:cut])
        held = held[cut:]
    yield from _parted(held)


def _parted(piece: bytes) -> Iterator[bytes]:
    start = 0
    for found in _DECLARATION.finditer(piece):
        yield piece[start : found.start()]
        yield found.group()
        start = found.end()
    yield piece[start:]


def _mended(found: re.Match[bytes]) -> bytes:
    """Return a character for an entity of HTML, text for a stray sign, line breaks for a document type."""
    text = found.group()
    if text.startswith(b"<!") and not text.endswith(b">"):
        return f"<{_DOCTYPE}>".encode()
    if text.startswith(b"<!"):
        return b"\n" * text.count(b"\n")
    return html.escape(html.unescape(text.decode()), quote=False).encode()
