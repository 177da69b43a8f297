"""A digest in Markdown: the papers of each area, then those for review, of no area, and rejected.

Titles and all other texts stand on one line and are escaped (CommonMark 0.31, section 2.4), so that none can become
markup, a link or HTML.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, BinaryIO

from abstag.files import storable
from abstag.records import Record
from abstag.writers._lines import Tagged

SUFFIXES = (".md", ".markdown")
NEEDS_RECORDS = True

_UNSEEN = re.compile("[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u202a-\u202e\u2066-\u2069]")  # control, and text direction
_MARKUP = re.compile(r"[\\`*_\[\]<>&~|$^{}@]|(?<=:)/(?=/)|(?<=www)\.", re.IGNORECASE)
_BLOCK = re.compile(r"^(\d*)([.)](?= |$)|(?<!\d)[#+-])")  # what begins a heading or a list
_WORDS = 12  # of an abstract without a title
_OTHERS = {"review": "For review", "none": "None of the areas", "reject": "Rejected"}


def write(tagged: Iterable[Tagged], out: BinaryIO, *, names: Mapping[str, str]) -> None:
    """Write a digest in UTF-8: one line of counts, then lists; within an area the most probable papers come first.

    A paper of several areas stands under each; one for review also under the areas that it has for sure. One line of
    each paper is held in memory.
    """
    counts: Counter[str] = Counter()
    of_area: dict[str, list[tuple[float, str]]] = {area: [] for area in names}
    others: dict[str, list[str]] = {decision: [] for decision in _OTHERS}
    for item, line in tagged:
        decision, paper = line["decision"], _paper(item, line)
        counts[decision] += 1
        for area in line["areas"]:
            of_area[area].append((line["scores"][area], paper))
        if decision in others:
            others[decision].append(paper + _remark(paper, line, names))
    out.write(f"# Tagged papers\n\n{_summary(counts)}\n".encode())
    for area, papers in of_area.items():
        papers.sort(key=lambda pair: -pair[0])
        _section(out, names[area], [f"{paper}, {score:.2f}" for score, paper in papers])
    for decision, head in _OTHERS.items():
        _section(out, head, others[decision])


def _summary(counts: Counter[str]) -> str:
    parts = {"tag": "tagged", "none": "of none of the areas", "review": "for review", "reject": "rejected"}
    listed = ", ".join(f"{counts[decision]:,} {part}" for decision, part in parts.items())
    return f"{counts.total():,} records: {listed}."


def _section(out: BinaryIO, head: str, papers: list[str]) -> None:
    out.write(f"\n## {_escaped(head)} ({len(papers):,})\n".encode())
    if papers:
        out.write(b"\n")
    out.writelines(f"* {paper}\n".encode() for paper in papers)


def _paper(item: Any, line: Mapping[str, Any]) -> str:
    """Return the title, or else how the abstract begins, the id or the place; with venue and year if there are any."""
    name = _escaped(line["title"] or "") or _opening(item) or _escaped(line["id"] or "") or _place(line)
    venue, year = (item.venue or "", str(item.year or "")) if isinstance(item, Record) else ("", "")
    source = _escaped(venue if year in venue else f"{venue} {year}")
    return f"{name} ({source})" if source else name


def _opening(item: Any) -> str:
    words = item.abstract.split(maxsplit=_WORDS) if isinstance(item, Record) else []
    return _escaped(" ".join(words[:_WORDS])) + (" …" if len(words) > _WORDS else "")


def _remark(paper: str, line: Mapping[str, Any], names: Mapping[str, str]) -> str:
    """Return what is to be said of a paper for review (doubtful areas, or why) or of a reject (place and reason)."""
    if line["decision"] == "reject":
        place = _place(line)
        return f"{'' if paper == place else f', {place}'}: {_escaped(line['reason'])}"
    doubts = (f"{_escaped(names[area])} {line['scores'][area]:.2f}" for area in line["uncertain"])
    told = ", ".join(doubts) or (_escaped(line["reason"] or "") if line["decision"] == "review" else "")
    return f": {told}" if told else ""


def _place(line: Mapping[str, Any]) -> str:
    return f"record {line['n']} of {_escaped(line['file'])}"


def _escaped(text: str) -> str:
    shown = " ".join(_UNSEEN.sub("", storable(text)).split())
    return _BLOCK.sub(r"\1\\\2", _MARKUP.sub(r"\\\g<0>", shown))
