"""Headed plain text: a title line, then one abstract a paragraph, blank lines between."""

import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from abstag.abstracts import fault
from abstag.languages import words
from abstag.readers._fields import Place, item
from abstag.readers._headings import HASHES, RULE, Heading, heading
from abstag.readers._mapping import refuse_mapping
from abstag.records import Record, Reject

NAME = "plain"
SUFFIXES = (".txt", ".text", ".md")

_SHORT, _UNFINISHED, _LONG = 8, 20, 2000
_WIDE = 200  # characters: a line that no editor wrapped
_STOP = re.compile(r"[.!…。！][\s\"'”’)\]*_]*$")  # not "?": titles end so
_LABEL = re.compile(r"(?:Abstract|ABSTRACT)\s?[:.—–]")
_MARKUP = re.compile(r'\s*(?:[{<@%\\]|\[\s*[{"[]|[A-Z][A-Z0-9]{1,3} {0,2}- )')


def sniff(head: str, mapping: Mapping[str, str]) -> int:
    """Return 1 when some paragraph reads as prose, neither markup nor a table begins the file, and none is mapped."""
    if mapping or _MARKUP.match(head) or head.count("\t") > head.count("\n"):
        return 0
    paragraphs = (" ".join(lines) for _, lines in _paragraphs(head.splitlines()))
    return int(any(len(text.split()) >= _UNFINISHED and re.search(r"[.!?](?:\s|$)", text) for text in paragraphs))


def read(stream: io.BufferedReader, file: str, mapping: Mapping[str, str]) -> Iterator[Record | Reject]:
    """Yield one item a paragraph, its lines joined; venue and year are those of the last heading that has a year.

    A heading (see `_headings.heading`) is no item. Above a line that begins with "Abstract:", or a wide one (200
    characters) below lines that are no sentences, stands the title; where several lines are wide, each is an abstract.
    A text is rejected as "too short" below 8 words, or below 20 when it ends without a full stop, and as "too long"
    from 2,000 words, where blank lines are missing.

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
        for at, title, abstract in _papers(lines):
            n += 1
            yield _item(abstract, Place(file, n, line + at), current, title)


def _papers(lines: Sequence[str]) -> Iterator[tuple[int, str | None, str]]:
    """Yield of each paper of a paragraph the line in it, the title if there is one, and the abstract."""
    wide = [at for at, text in enumerate(lines) if len(text) >= _WIDE]
    if len(wide) > 1 and all(_STOP.search(lines[at]) for at in wide):
        for is_wide, group in groupby(enumerate(lines), lambda line: len(line[1]) >= _WIDE):
            found = list(group)
            texts = found if is_wide else [(found[0][0], " ".join(text for _, text in found))]
            yield from ((at, None, text) for at, text in texts)
    else:
        labelled = next((at for at, text in enumerate(lines) if at and _LABEL.match(text)), 0)
        start = labelled or (wide[0] if len(wide) == 1 and _is_below_title(lines[: wide[0] + 1]) else 0)
        yield 0, next((text for text in lines[:start] if not heading(text)), None), " ".join(lines[start:])


def _is_below_title(lines: Sequence[str]) -> bool:
    """Return whether the last line begins a sentence, and none above ends one or goes on."""
    return lines[-1][0].isupper() and not any(text.endswith((".", ",", ";", ":", "!")) for text in lines[:-1])


def _item(text: str, place: Place, current: Heading, title: str | None) -> Record | Reject:
    count = words(text)
    if fault(text) is None:
        if count < _SHORT or (count < _UNFINISHED and not _STOP.search(text)):
            return Reject(*place, "too short", f"{count} words: {text[:80]}")
        if count >= _LONG:
            return Reject(*place, "too long", f"{count} words; abstracts need blank lines between them")
    return item({"title": title, "abstract": text, "venue": current.venue, "year": current.year}, place)


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
