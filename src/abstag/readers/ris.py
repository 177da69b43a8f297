"""RIS: a tag a line; in its dialects, and with PubMed's tags."""

import io
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from abstag.readers._fields import Place, doi, item, linked_id, year
from abstag.readers._mapping import refuse_mapping
from abstag.records import Record, Reject
from abstag.syntax.ris import Entry, entries

NAME = "ris"
SUFFIXES = (".ris",)

_BEGINNING = re.compile(r"(?:\A|[\r\n])\ufeff?(?:(TY {0,4}- {0,2}[A-Z]{3,9}\s)|PMID- \d)")
_BEFORE = 50
_TITLE = ("TI", "T1", "CT")
_ABSTRACT = ("AB", "N2")
_VENUE = ("T2", "JF", "JO", "BT", "C3", "JT", "JA", "J2")
_YEAR = ("PY", "Y1", "DA", "DP")


def sniff(head: str, mapping: Mapping[str, str]) -> int:
    """Return 2 when TY, 1 when PubMed's PMID begins one of the first 50 lines, and none is mapped."""
    found = _BEGINNING.search("\n".join(head.split("\n", _BEFORE)[:_BEFORE]) + "\n")
    return 0 if mapping or not found else 2 if found[1] else 1


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
    venue = next(iter(entry.values(*_VENUE)), None)
    ids = [doi(value) for tag in ("DO", "LID", "AID") for value in entry.values(tag)]
    ids += [linked_id(value) for tag in ("UR", "L1", "L2") for value in entry.values(tag)]
    ids += entry.values("PMID", "AN", "ID")
    return {
        "abstract": " ".join(entry.values(*_ABSTRACT)) or None,
        "title": next(iter(entry.values(*_TITLE)), None),
        "id": next(filter(None, ids), None),
        "venue": venue,
        "year": year(*(value for tag in _YEAR for value in entry.values(tag)), venue),
        "keywords": [word for line in entry.keywords for word in line.split(";")],
    }
