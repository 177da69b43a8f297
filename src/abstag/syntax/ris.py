"""RIS and its relatives: a text cut into entries at constant memory, fields by tag, and where a tag may be added."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple

_TAG = re.compile(r"\ufeff?([A-Z][A-Z0-9]{1,3})( {0,4})-(?: ([^\r\n]*+)|\s*+\Z)")
_TYPE = re.compile(r"[A-Z]{3,9}\s*")
_END = re.compile(r"ER\s*+-?\s*+\Z")
_LOOSE = re.compile(r"\s*+(?:\d{1,7}\.)?\s*+\Z")
_OVID = re.compile(r"\s*+<\s*+\d{1,7}\s*+\.?\s*+>\s*+\Z")
_KNOWN = re.compile(
    "A[1-4BDNUV]|BT|C[1-8ANPTY]|D[ABIOP]|E[DPT]|I[DS]|J[12AFO]|KW|L[1-4ABK]|M[1-3]|N[12OV]|O[LP]|P[BPY]|R[DINP]"
    "|S[ENPT]|T[1-3AIT]|U[1-5R]|V[LO]|Y[12]"
)


class Field(NamedTuple):
    """A tag, and its value by lines: what stands beside it, and the lines without a tag below, stripped, none blank."""

    tag: str
    lines: list[str]


class Entry(NamedTuple):
    """An entry with the text before it since the last one (after the last entry: to the end).

    Attributes
    ----------
    line
        1-based line of its first tag.
    gap
        What stands between the tag and the dash of its first line.
    end
        Where in the text lines may be added: before ER, or after the last line where that lacks.
    """

    text: str
    line: int
    gap: str
    fields: list[Field]
    end: int

    def values(self, *tags: str) -> list[str]:
        """Return the values of the first of the tags that has any, each on one line."""
        for tag in tags:
            if found := [" ".join(field.lines) for field in self.fields if field.tag == tag and field.lines]:
                return found
        return []

    @property
    def keyword_tag(self) -> str:
        """The tag of keywords: PubMed's, where its PMID begins the entry."""
        return "OT" if self.fields[0].tag == "PMID" else "KW"

    @property
    def keywords(self) -> list[str]:
        """The lines of keywords: one may follow another without a tag. Ovid's OT is a title in another language."""
        is_pubmed = any(field.tag == "PMID" for field in self.fields)
        return [line for field in self.fields if field.tag in ("KW", "OT"[: 2 * is_pubmed]) for line in field.lines]


@dataclass(slots=True)
class _Open:
    """An entry that is being read; ``loose`` are the lines at its end that may stand before the next.

    ``is_pubmed`` says that a PMID came: from there on three and four letters may be a tag.
    """

    line: int
    gap: str
    text: list[str] = field(default_factory=list)
    fields: list[Field] = field(default_factory=list)
    loose: list[str] = field(default_factory=list)
    is_pubmed: bool = False

    def settle(self) -> None:
        """Take the loose lines into the value of the last tag."""
        if self.fields:
            self.fields[-1].lines.extend(line.strip() for line in self.loose if line.strip())
        self.text += self.loose
        self.loose = []

    def closed(self, last: str = "") -> Entry:
        """Return the entry, ``last`` being its line ER."""
        text = "".join(self.text)
        return Entry(text + last, self.line, self.gap, self.fields, len(text))


class _Cutter:
    """The entry that is open, if any, and the lines before the next one."""

    def __init__(self) -> None:
        self._open: _Open | None = None
        self._number = 0
        self.before = list[str]()

    def take(self, line: str) -> Entry | None:
        """Take a line; return the entry that it ends."""
        self._number += 1
        if _OVID.match(line) and not (self._open and self._open.fields[0].tag in ("TY", "PMID")):
            ended = self.close()
            self.before.append(line)
            return ended
        tag, ended = _tag(line, self._open), None
        if tag and tag[0] != "ER" and (self._open is None or _begins(tag[0], self._open)):
            ended = self.close()
            self._open, self.before = _Open(self._number, tag[1], self.before), []
        if self._open is None:
            self.before.append(line)
        elif tag is None:
            _continue(self._open, line)
        elif tag[0] == "ER":
            self._open.settle()
            ended, self._open = self._open.closed(line), None
        else:
            self._open.settle()
            self._open.fields.append(Field(tag[0], [value] if (value := tag[2].strip()) else []))
            self._open.text.append(line)
            self._open.is_pubmed |= tag[0] == "PMID"
        return ended

    def close(self) -> Entry | None:
        """End the open entry, if any; its loose lines stand before the next."""
        if self._open is None:
            return None
        entry, self.before, self._open = self._open.closed(), self._open.loose, None
        return entry


def entries(lines: Iterable[str]) -> Iterator[Entry]:
    """Yield the entries of a text that comes in lines with their ends; the texts of all are the whole text.

    TY begins an entry, as does PMID where no TY did, any tag after ER, and among entries that begin with neither a tag
    below Ovid's "<12. >". A line is a tag line if it has two spaces before the dash, or as many as the first of the
    entry and a tag of RIS. "12." alone on a line before an entry is no part of the last value. Of a text without any
    entry nothing is yielded.
    """
    cutter, held = _Cutter(), None
    for ended in chain(map(cutter.take, lines), (cutter.close() for _ in range(1))):
        if ended and held:
            yield held
        held = ended or held
    if held:
        yield held._replace(text="".join([held.text, *cutter.before]))


def _tag(line: str, open_: _Open | None) -> tuple[str, str, str] | None:
    """Return tag, gap and value of a tag line."""
    if _END.match(line):
        return "ER", "", ""
    found = _TAG.match(line)
    if not found:
        return None
    tag, gap, value = found[1], found[2], found[3] or ""
    if tag == "PMID" or (tag == "TY" and (len(gap) == 2 or _TYPE.fullmatch(value))):
        return tag, gap, value
    usual = "  " if len(tag) == 2 else open_ and open_.is_pubmed and " " * (4 - len(tag))
    is_usual = gap == usual or (open_ and gap == open_.gap and _KNOWN.fullmatch(tag))  # "AI - based" is text
    return (tag, gap, value) if is_usual else None


def _begins(tag: str, open_: _Open) -> bool:
    return tag == "TY" or (tag == "PMID" and open_.fields[0].tag == "PMID")


def _continue(open_: _Open, line: str) -> None:
    if _LOOSE.match(line):
        open_.loose.append(line)
    else:
        open_.settle()
        open_.fields[-1].lines.append(line.strip())
        open_.text.append(line)
