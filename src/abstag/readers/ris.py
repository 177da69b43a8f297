"""RIS and what else has tags before dashes: PubMed's MEDLINE format (.nbib) and Ovid's."""

import io
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from abstag.readers._fields import Place, doi, headless, item, linked_id, year
from abstag.readers._mapping import refuse_mapping
from abstag.records import Record, Reject
from abstag.syntax.ris import Entry, entries

NAME = "ris"
SUFFIXES = (".ris", ".nbib")

_BEGINNING = re.compile(r"(?:\A|[\r\n])\ufeff?(?:TY {0,4}- {0,2}[A-Z]{3,9}\s|PMID- \d{1,12}\s{1,4}[A-Z]{2,4} {0,2}- )")
_OVID = re.compile(r"(?:\A|[\r\n])<\d{1,7}\.? ?>\s{1,4}[A-Z]{2} {1,2}- ")
_BEFORE = 50
_TITLE = ("TI", "T1", "CT", "BTI")
_ABSTRACT = ("AB", "N2")
_VENUE = ("T2", "JF", "JO", "BT", "C3", "JT", "JA", "J2", "JN")
_YEAR = ("PY", "Y1", "DA", "DP", "YR")


def sniff(head: str, mapping: Mapping[str, str]) -> int:
    """Return 2 when TY or PMID begins one of the first 50 lines, or a tag the line below "<1>", and none is mapped."""
    first = "\n".join(head.split("\n", _BEFORE)[:_BEFORE]) + "\n"
    return 2 if not mapping and (_BEGINNING.search(first) or _OVID.search(head)) else 0


def read(stream: io.BufferedReader, file: str, mapping: Mapping[str, str]) -> Iterator[Record | Reject]:
    """Yield one item an entry, whether or not ER ends it; the abstract is AB, else N2, several of one tag joined.

    The id is the DOI, else the arXiv or OpenReview id of a link, else that of PubMed, the database or the reference.

    Raises
    ------
    DataError
        There is a mapping: RIS has tags.
    """
    refuse_mapping(mapping, file, NAME)
    for n, entry in enumerate(entries(io.TextIOWrapper(stream, encoding="utf-8", newline="")), 1):
        yield replace(item(_fields(entry), Place(file, n, entry.line)), raw=entry.text)


def _fields(entry: Entry) -> dict[str, object]:
    source = [value.split(". ")[0] for value in entry.values("SO") if not value.startswith("(")]
    venue = next(iter([*entry.values(*_VENUE), *source]), None)
    links = [value for tag in ("UR", "L1", "L2") for value in entry.values(tag)]
    ids = [doi(value) for tag in ("DO", "DI", "LID", "AID", "M3") for value in entry.values(tag)]
    ids += [doi(link) for link in links if "doi" in link] + [linked_id(link) for link in links]
    ids += entry.values("PMID", "UI", "AN", "ID")
    return {
        "abstract": headless(" ".join(entry.values(*_ABSTRACT))) or None,
        "title": next(iter(entry.values(*_TITLE)), None),
        "id": next(filter(None, ids), None),
        "venue": venue,
        "year": year(*(value for tag in _YEAR for value in entry.values(tag)), venue, *entry.values("SO")),
        "keywords": [word.strip().removeprefix("*") for line in entry.keywords for word in line.split(";")],
    }
