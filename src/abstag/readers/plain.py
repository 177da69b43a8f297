"""Headed plain text: a title line, then one abstract a paragraph, blank lines between."""

import io
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from abstag.readers._fields import Place, abstract_fault, item
from abstag.records import Record, Reject

NAME = "plain"
SUFFIXES = (".txt", ".text", ".md")

_HEADING_LETTERS, _HEADING_WORDS, _SHORT, _UNFINISHED, _LONG = 100, 12, 8, 20, 2000
_MARKUP = re.compile(r'\s*(?:[{<@%\\]|\[\s*[{"]|[A-Z][A-Z0-9]{1,3} {0,2}- )')
_RULE = re.compile(r"([-=_*~])(?:\s*\1){2,}")
_HASHES = re.compile(r"#{1,6}\s")
_END = re.compile(r"""[.!?;,…。！？][\s"'”’)\]*_]*$""")
_YEAR = re.compile(r"(?<!\d)(?:19|20)\d\d(?!\d)")
_WORD = re.compile(r"[^\W\d_][\w&'/+-]*")
_LIST_WORD = re.compile(
    r"papers?|accepted|list|abstracts?|proceedings|conference|track|orals?|posters?|spotlights?|sessions?|workshops?",
    re.IGNORECASE,
)
_LINK_WORDS = frozenset({"of", "the", "at", "from", "in", "for", "on", "and", "main"})
_LIST_SIGNS = re.compile("论文|列表|摘要")


class Heading(NamedTuple):
    """What a title line says: the venue as written there, and the year; None is not said."""

    venue: str | None
    year: int | None


def sniff(head: str) -> int:
    """Return 1 when some paragraph reads as prose and neither markup nor a table begins the file."""
    if _MARKUP.match(head) or head.count("\t") > head.count("\n"):
        return 0
    paragraphs = (" ".join(lines) for _, lines in _paragraphs(head.splitlines()))
    return int(any(len(text.split()) >= _UNFINISHED and re.search(r"[.!?](?:\s|$)", text) for text in paragraphs))


def read(stream: io.BufferedReader, file: str) -> Iterator[Record | Reject]:
    """Yield one item a paragraph, its lines joined; venue and year are those of the last heading that has a year.

    A heading (see `heading`) is no item. A paragraph is rejected as "too short" below 8 words, or below 20 when it ends
    without a full stop, and as "too long" from 2,000 words, where blank lines are missing.
    """
    n, current = 0, Heading(None, None)
    for line, lines in _paragraphs(io.TextIOWrapper(stream, encoding="utf-8")):
        text = " ".join(lines)
        found = heading(text) if len(lines) == 1 and not abstract_fault(text) else None
        if found:
            current = Heading(found.venue or current.venue, found.year or current.year)
            continue
        n += 1
        yield _item(text, Place(file, n, line), current)


def heading(text: str) -> Heading | None:
    """Return what a line says when it is a heading, else None.

    A heading begins with ``#``, or has at most 12 words and 100 characters, does not end like a sentence, and holds a
    year or a word such as "papers" or "posters".
    """
    if len(text) > _HEADING_LETTERS:
        return Heading(None, None) if _HASHES.match(text) and len(text) < 3 * _HEADING_LETTERS else None
    if not _HASHES.match(text) and (len(text.split()) > _HEADING_WORDS or _END.search(text)):
        return None
    years, words = _YEAR.findall(text), _WORD.findall(_YEAR.sub(" ", text))
    if not (_HASHES.match(text) or years or _LIST_SIGNS.search(text) or any(map(_LIST_WORD.fullmatch, words))):
        return None
    names = [word for word in words if word.isascii() and not _is_filler(word)]
    named = len(names) < len(words) or any(sum(map(str.isupper, name)) > 1 for name in names)
    if len(years) != 1 or len(names) > 4 or not (named or not names):
        return Heading(None, None)
    return Heading(" ".join(names) or None, int(years[0]))


def _is_filler(word: str) -> bool:
    return word.casefold() in _LINK_WORDS or _LIST_WORD.fullmatch(word) is not None


def _item(text: str, place: Place, current: Heading) -> Record | Reject:
    words = len(text.split())
    if abstract_fault(text) is None:
        if words < _SHORT or (words < _UNFINISHED and not _END.search(text)):
            return Reject(*place, "too short", f"{words} words: {text[:80]}")
        if words >= _LONG:
            return Reject(*place, "too long", f"{words} words; abstracts need blank lines between them")
    return item({"abstract": text, "venue": current.venue, "year": current.year}, place)


def _paragraphs(lines: Iterable[str]) -> Iterator[tuple[int, list[str]]]:
    """Yield the physical line and the lines of each paragraph; a markdown heading or the file's title stands alone."""
    start, block, begun = 0, list[str](), False
    for number, line in enumerate(lines, 1):
        text = line.strip()
        blank = not text or _RULE.fullmatch(text) is not None
        alone = not blank and (_HASHES.match(text) is not None or (not begun and _is_title(text)))
        if block and (blank or alone):
            yield start, block
            block = []
        if alone:
            yield number, [text]
        elif not blank:
            start = start if block else number
            block.append(text)
        begun = begun or not blank
    if block:
        yield start, block


def _is_title(text: str) -> bool:
    found = heading(text)
    return found is not None and found.venue is not None
