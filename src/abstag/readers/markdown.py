"""Markdown lists of papers: titles as headings, bold lines, list items or table rows; text or labelled fields below."""

import io
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import compress
from typing import NamedTuple

from abstag.readers._body import Body, read_body
from abstag.readers._fields import Place, item, year
from abstag.readers._headings import Heading, heading, names_a_group
from abstag.readers._mapping import refuse_mapping
from abstag.readers._marks import bare, front_matter_title, scan
from abstag.readers._prose import is_english
from abstag.readers._sections import Section, cut
from abstag.records import Record, Reject

NAME = "markdown"
SUFFIXES = (".md", ".markdown")

_OTHER = re.compile(r'\s*(?:[{@%\\]|\[\s*[{"]|<(?:\?xml|!doctype|html)\b)', re.IGNORECASE)
_ID = re.compile(
    r"openreview\.net/(?:forum|pdf|attachment)\?(?:[^\s)\]]{0,80}&)?id=([\w-]{4,40})"
    r"|arxiv(?:\.org/(?:abs|pdf|html)/|:\s?)(\d{4}\.\d{4,5}|[a-z-]{2,20}(?:\.[A-Z]{2})?/\d{7})",
    re.IGNORECASE,
)
_LONG = 2000


class Entry(NamedTuple):
    """A section and what its lines say.

    Attributes
    ----------
    abstract
        Empty if there is none.
    surplus
        Other labelled abstracts in the same language.
    """

    section: Section
    body: Body
    abstract: str
    surplus: Sequence[str] = ()

    @property
    def title(self) -> str:
        """The title without markup; empty where the line can only stand over several papers."""
        is_none = self.section.kind == "about" or names_a_group(self.section.title)
        return "" if is_none else self.section.title

    @property
    def is_labelled(self) -> bool:
        """Whether something says that the text is an abstract."""
        return self.section.kind == "row" or any(
            part.kind == "abstract" and part.paragraphs for part in self.body.parts
        )

    @property
    def id(self) -> str | None:
        """The id in the first OpenReview or arXiv address of the title or of the lines about the paper."""
        found = (_ID.search(line) for line in [self.section.raw, *self.body.about])
        return next((match[1] or match[2] for match in found if match), None)


def sniff(head: str, mapping: Mapping[str, str]) -> int:
    """Return 2 for titles with labelled abstracts, or with a paragraph each and little text elsewhere; not mapped."""
    if mapping or _OTHER.match(head):
        return 0
    entries = _entries(head.replace("\r\n", "\n").replace("\r", "\n"))
    papers = [entry for entry, is_paper in entries if is_paper and entry.abstract and entry.title]
    labelled = sum(entry.is_labelled for entry in papers)
    surplus = sum(len(entry.surplus) for entry in papers)
    elsewhere = sum(len(entry.body.parts[0].paragraphs) for entry, is_paper in entries if not is_paper)
    several = sum(
        not entry.is_labelled and sum(map(is_english, entry.body.parts[0].paragraphs)) > 1 for entry in papers
    )
    short = len(papers) >= elsewhere + surplus and len(papers) >= 2 * several
    return 2 if labelled > surplus or (papers and short) else 0


def read(stream: io.BufferedReader, file: str, mapping: Mapping[str, str]) -> Iterator[Record | Reject]:
    """Yield one item a paper; venue and year are the paper's own, else those of the last heading that has a year.

    A title is no paper when it stands over papers ("Oral"), or when it has no abstract and the titles that have one
    look otherwise: tables of contents are left out. A text of 2,000 words or more below a title is rejected as "too
    long", a further labelled abstract as "second abstract".

    Raises
    ------
    DataError
        There is a mapping: nothing here has a name.
    """
    refuse_mapping(mapping, file, NAME)
    text = io.TextIOWrapper(stream, encoding="utf-8").read()
    n, current = 0, heading(front_matter_title(text)) or Heading(None, None)
    for entry, is_paper in _entries(text):
        if is_paper:
            for found in _items(entry, Place(file, n + 1, entry.section.number), current):
                n += 1
                yield found
        else:
            title = entry.section.title
            said = heading(f"# {title}" if entry.section.kind.startswith("h") else title)
            current = said.after(current) if said else current


def _items(entry: Entry, place: Place, current: Heading) -> Iterator[Record | Reject]:
    words, title = len(entry.abstract.split()), entry.title or None
    if entry.section.kind == "row" and entry.section.row is None:
        yield Reject(*place, "ragged row", "more cells than the header has; a bar inside a cell is written \\|")
    elif words >= _LONG:
        yield Reject(*place, "too long", f"{words} words below one title", title, entry.id)
    else:
        yield item(_fields(entry, current), place)
    for n, text in enumerate(entry.surplus, place.n + 1):
        yield Reject(place.file, n, place.line, "second abstract", text[:80], title, entry.id)


def _fields(entry: Entry, current: Heading) -> dict[str, object]:
    own = entry.body.fields if entry.section.row is None else {k: bare(v) for k, v in entry.section.row.items()}
    said = year(own.get("year"), own.get("venue"))
    known = {"id": entry.id, "title": entry.title, "abstract": entry.abstract, "year": said}
    default: dict[str, object] = {"venue": current.venue, "year": current.year}
    return default | {name: value for name, value in (own | known).items() if value}


def _entries(text: str) -> list[tuple[Entry, bool]]:
    """Return all sections, with True for those that are papers, be it without an abstract."""
    entries = [_entry(section) for section in cut(list(scan(text)))]
    papers = _from_below(entries, lambda at, below: _has_abstract(entries[at], over_papers=below))
    kinds = Counter(entry.section.kind for entry in compress(entries, papers))
    papers = _with_parts(entries, papers, kinds)
    inside = _inside(entries, papers)

    def is_paper(at: int, below: bool) -> bool:  # noqa: FBT001
        lacks = not below and not inside[at] and _lacks_abstract(entries[at], entries[at + 1 : at + 3], kinds)
        return papers[at] or lacks

    return list(zip(entries, _from_below(entries, is_paper), strict=True))


def _with_parts(entries: Sequence[Entry], papers: Sequence[bool], kinds: Mapping[str, int]) -> list[bool]:
    """Take a title with text over papers for a paper, too, where most of its like have none below."""
    texts = [bool(entry.abstract and entry.title) for entry in entries]
    over = [has and not is_paper for has, is_paper in zip(texts, papers, strict=True)]
    groups = Counter(entry.section.kind for entry in compress(entries, over))
    alike = [kinds[entry.section.kind] > groups[entry.section.kind] for entry in entries]
    return [paper or (text and most) for paper, text, most in zip(papers, over, alike, strict=True)]


def _inside(entries: Sequence[Entry], papers: Sequence[bool]) -> list[bool]:
    """Return of each entry whether it belongs to a paper: a link in a list below the title."""
    inside, open_levels = [], list[tuple[int, bool]]()
    for entry, is_paper in zip(entries, papers, strict=True):
        while open_levels and open_levels[-1][0] >= entry.section.level:
            open_levels.pop()
        inside.append(bool(open_levels) and open_levels[-1][1])
        open_levels.append((entry.section.level, is_paper))
    return inside


def _entry(section: Section) -> Entry:
    body = read_body(section.lines)
    if section.kind == "row":
        return Entry(section, body, (section.row or {}).get("abstract", ""))
    abstract, *others = body.abstracts or [""]
    labelled = set(body.texts("abstract")) - {abstract} if others else ()
    surplus = [text for text in others if text in labelled and is_english(text) == is_english(abstract)]
    return Entry(section, body, abstract, surplus)


def _from_below(entries: Sequence[Entry], decide: Callable[[int, bool], bool]) -> list[bool]:
    """Decide of each entry, from the last to the first, knowing whether an entry that belongs to it was taken."""
    taken, open_levels = [False] * len(entries), list[tuple[int, bool]]()
    for at in reversed(range(len(entries))):
        level, below = entries[at].section.level, False
        while open_levels and open_levels[-1][0] > level:
            below = open_levels.pop()[1] or below
        taken[at] = decide(at, below)
        open_levels.append((level, taken[at] or below))
    return taken


def _has_abstract(entry: Entry, *, over_papers: bool) -> bool:
    if entry.section.kind == "start":
        return False
    return entry.is_labelled or (bool(entry.abstract and entry.title) and not over_papers)


def _lacks_abstract(entry: Entry, following: Sequence[Entry], kinds: Mapping[str, int]) -> bool:
    """Return whether a title without an abstract is a paper's: its like are, or authors or an id stand below."""
    kind, body = entry.section.kind, entry.body
    marked = not kind.endswith("item") and any(part.kind in ("authors", "venue") for part in body.parts)
    if not (kind in kinds or marked or (entry.id and not kind.endswith("item"))) or body.has_anchors or not entry.title:
        return False
    links = sum(after.section.kind == "link item" and after.section.level > entry.section.level for after in following)
    return links < 2 or marked or entry.id is not None
