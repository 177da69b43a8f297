"""Markdown lists of papers: titles as headings, bold lines, list items or table rows; text or labelled fields below."""

import io
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import compress

from abstag.readers import tagged, yamltext
from abstag.readers._fields import Place, item, linked_id, year
from abstag.readers._headings import Heading, heading
from abstag.readers._mapping import refuse_mapping
from abstag.readers._marks import bare, is_english
from abstag.readers._sections import Section, cut
from abstag.records import Record, Reject

NAME = "markdown"
SUFFIXES = (".md", ".markdown")

_OTHER = re.compile(r'\s*(?:[{@%\\]|\[\s*[{"]|<(?:\?xml|!doctype|html)\b)', re.IGNORECASE)
_FIELDS = ("id", "venue", "year", "keywords", "primary_area", "topic")


def sniff(head: str, mapping: Mapping[str, str]) -> int:
    """Return 2 for titles with labelled abstracts, or with a paragraph each and little text elsewhere; not mapped."""
    if mapping or _OTHER.match(head) or tagged.sniff(head, mapping) or yamltext.sniff(head, mapping):
        return 0
    sections = cut(head.replace("\r\n", "\n").replace("\r", "\n"))
    kinds = list(zip(sections, _are_papers(sections), strict=True))
    papers = [section for section, is_paper in kinds if is_paper and section.title and section.abstract]
    elsewhere = sum(len(section.parts[0][1]) for section, is_paper in kinds if not is_paper)
    several = sum(sum(map(is_english, section.parts[0][1])) > 1 for section in papers)
    return 2 if any(paper.is_labelled for paper in papers) or len(papers) >= max(elsewhere, 2 * several, 1) else 0


def read(stream: io.BufferedReader, file: str, mapping: Mapping[str, str]) -> Iterator[Record | Reject]:
    """Yield one item a paper; venue and year are the paper's own, else those of the last heading that has a year.

    A title is no paper when it stands over papers ("Oral"), or when it has no abstract and the titles that have one
    look otherwise: tables of contents are left out. Rejects are "several abstracts" and, from 2,000 words, "too long".

    Raises
    ------
    DataError
        There is a mapping: nothing here has a name.
    """
    refuse_mapping(mapping, file, NAME)
    sections = cut(io.TextIOWrapper(stream, encoding="utf-8").read())
    n, current = 0, Heading(None, None)
    for section, is_paper in zip(sections, _are_papers(sections), strict=True):
        if is_paper:
            n += 1
            yield _item(section, Place(file, n, section.number), current)
        else:
            said = heading(("# " if section.kind.startswith("h") else "") + bare(section.raw))
            current = said.after(current) if said else current


def _item(section: Section, place: Place, current: Heading) -> Record | Reject:
    name = next(filter(None, map(linked_id, [section.raw, *section.about])), None)
    words, title = len(section.abstract.split()), section.title or None
    if section.kind == "ragged":
        return Reject(*place, "ragged row", "more cells than the header has; a bar inside a cell is written \\|")
    if words >= 2000:
        return Reject(*place, "too long", f"{words} words below one title", title, name)
    if len(set(filter(is_english, section.texts("abstract")))) > 1:
        return Reject(*place, "several abstracts", "below one title", title, name)
    own = {kind: bare(" ".join(part)) for kind, part in reversed(section.parts) if kind in _FIELDS}
    said = year(own.get("year"), own.get("venue")) or current.year
    known = {"title": title, "abstract": section.abstract, "id": name or own.get("id"), "year": said}
    return item({"venue": current.venue} | {key: value for key, value in (own | known).items() if value}, place)


def _are_papers(sections: Sequence[Section]) -> list[bool]:
    """Return of each section whether it is a paper, be it without an abstract.

    Those with a labelled abstract are, and those with a text, unless others with a text belong to them as is usual for
    their kind. Those without are if their kind is and none belong to them; contents are not.
    """
    has = [section.is_labelled or bool(section.title and section.abstract) for section in sections]
    over, open_ = [False] * len(sections), list[int]()
    for at, section in enumerate(sections):
        while open_ and sections[open_[-1]].level >= section.level:
            open_.pop()
        for holder in open_ if has[at] else ():
            over[holder] = True
        open_.append(at)
    votes = Counter[str]()
    for at in compress(range(len(sections)), has):
        votes[sections[at].kind] += -1 if over[at] else 1

    def is_paper(at: int) -> bool:
        section, alike = sections[at], votes[sections[at].kind] > 0
        if has[at]:
            return section.is_labelled or alike or not over[at]
        return alike and bool(section.title) and not (over[at] or any("](#" in line for line in section.about))

    return [is_paper(at) for at in range(len(sections))]
