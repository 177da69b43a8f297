"""Headed plain text: a title line, then one abstract a paragraph, blank lines between."""

import io
import re
from collections.abc import Iterable, Iterator, Mapping

from abstag.abstracts import fault
from abstag.languages import words
from abstag.readers._fields import Place, item
from abstag.readers._headings import END, HASHES, RULE, Heading, heading
from abstag.readers._mapping import refuse_mapping
from abstag.records import Record, Reject

NAME = "plain"
SUFFIXES = (".txt", ".text", ".md")

_SHORT, _UNFINISHED, _LONG = 8, 20, 2000
_MARKUP = re.compile(r'\s*(?:[{<@%\\]|\[\s*[{"]|[A-Z][A-Z0-9]{1,3} {0,2}- )')


def sniff(head: str, mapping: Mapping[str, str]) -> int:
    """Return 1 when some paragraph reads as prose, neither markup nor a table begins the file, and none is mapped."""
    if mapping or _MARKUP.match(head) or head.count("\t") > head.count("\n"):
        return 0
    paragraphs = (" ".join(lines) for _, lines in _paragraphs(head.splitlines()))
    return int(any(len(text.split()) >= _UNFINISHED and re.search(r"[.!?](?:\s|$)", text) for text in paragraphs))


def read(stream: io.BufferedReader, file: str, mapping: Mapping[str, str]) -> Iterator[Record | Reject]:
    """Yield one item a paragraph, its lines joined; venue and year are those of the last heading that has a year.

    A heading (see `_headings.heading`) is no item. A paragraph is rejected as "too short" below 8 words, or below 20
    when it ends without a full stop, and as "too long" from 2,000 words, where blank lines are missing.

    Raises
    ------
    DataError
        There is a mapping: nothing here has a name.
    """
    refuse_mapping(mapping, file, NAME)
    n, current = 0, Heading(None, None)
    for line, lines in _paragraphs(io.TextIOWrapper(stream, encoding="utf-8")):
        text = " ".join(lines)
        found = heading(text) if len(lines) == 1 and not fault(text) else None
        if found:
            current = found.after(current)
            continue
        n += 1
        yield _item(text, Place(file, n, line), current)


def _item(text: str, place: Place, current: Heading) -> Record | Reject:
    count = words(text)
    if fault(text) is None:
        if count < _SHORT or (count < _UNFINISHED and not END.search(text)):
            return Reject(*place, "too short", f"{count} words: {text[:80]}")
        if count >= _LONG:
            return Reject(*place, "too long", f"{count} words; abstracts need blank lines between them")
    return item({"abstract": text, "venue": current.venue, "year": current.year}, place)


def _paragraphs(lines: Iterable[str]) -> Iterator[tuple[int, list[str]]]:
    """Yield the physical line and the lines of each paragraph; a markdown heading or the file's title stands alone."""
    start, block, begun = 0, list[str](), False
    for number, line in enumerate(lines, 1):
        text = line.strip()
        blank = not text or RULE.fullmatch(text) is not None
        alone = not blank and (HASHES.match(text) is not None or (not begun and _is_title(text)))
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
