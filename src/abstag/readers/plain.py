"""Headed plain text: a title line such as "ICML 2025 Papers", then one abstract a paragraph."""

import re
from collections.abc import Iterator
from typing import NamedTuple, TextIO

from abstag.readers._fields import year_of
from abstag.records import Record, Reject

NAME = "plain"
SUFFIXES = (".txt", ".text", ".md")

_HEADING_WORDS = 12
_MIN_WORDS = 5
_LIST_WORDS = (
    r"papers?|abstracts?|accepted|proceedings|posters?|orals?|spotlights?|talks?|workshops?|sessions?|list|main|track|"
    r"conference|论文列表|论文|列表|摘要"
)
_HEADING = re.compile(
    rf"#+\s|(?:.*(?<![^\W\d_]))?(?:{_LIST_WORDS})(?![^\W\d_])|[^\W\d_]{{2,12}}\s*(?:19|20)\d\d\W*\Z", re.IGNORECASE
)
_LIST_TITLE = re.compile(rf"\s*(?:accepted\s+)?(.*?)\s*(?:19|20)\d\d.*|\s*(.*?)\s*(?:{_LIST_WORDS}).*", re.IGNORECASE)
_MARKUP = re.compile(r"\s*[{\[<@%]")


class _Paragraph(NamedTuple):
    line: int
    text: str


def sniff(head: str) -> bool:
    """Whether the text begins with prose: no bracket, no table of many short cells."""
    return not _MARKUP.match(head) and any(len(line.split()) > _HEADING_WORDS for line in head.splitlines())


def read(stream: TextIO, file: str) -> Iterator[Record | Reject]:
    """Yield a record for each paragraph; headings give venue and year to what follows and are not counted."""
    venue: str | None = None
    year: int | None = None
    n = 0
    for paragraph in _paragraphs(stream):
        if _is_heading(paragraph.text):
            found = year_of(paragraph.text)
            if found:
                venue, year = _venue(paragraph.text), found
            continue
        n += 1
        words = len(paragraph.text.split())
        if words < _MIN_WORDS:
            yield Reject(file, n, paragraph.line, "too short", f"{words} words: {paragraph.text[:60]}")
        else:
            yield Record(file, n, paragraph.line, paragraph.text, venue=venue, year=year)


def _paragraphs(stream: TextIO) -> Iterator[_Paragraph]:
    lines: list[str] = []
    number, start = 0, 1
    for number, line in enumerate(stream, start=1):
        if line.strip():
            start = start if lines else number
            lines.append(line.strip())
        elif lines:
            yield _Paragraph(start, "\n".join(lines))
            lines = []
    if lines:
        yield _Paragraph(start, "\n".join(lines))


def _is_heading(text: str) -> bool:
    short = "\n" not in text and len(text.split()) <= _HEADING_WORDS
    return short and not text.rstrip().endswith((".", "?", "!", "。")) and bool(_HEADING.match(text))


def _venue(heading: str) -> str | None:
    found = _LIST_TITLE.match(heading.lstrip("# "))
    return (found and (found.group(1) or found.group(2))) or None
