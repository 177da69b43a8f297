"""BibTeX: an entry a paper, LaTeX accents and grouping braces resolved."""

import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from abstag.readers._fields import Place, doi, headless, item, linked_id, year
from abstag.readers._mapping import refuse_mapping
from abstag.records import Record, Reject
from abstag.syntax.bibtex import Entry, entries, plain, share

NAME = "bibtex"
SUFFIXES = (".bib", ".bibtex")

_ABSTRACT = ("abstract", "abstractnote")
_KEYWORDS = ("author_keywords", "keywords", "keyword")
_VENUE = ("booktitle", "journal", "journaltitle", "eventtitle")
_YEAR = ("year", "date")
_IN_VOLUME = ("inproceedings", "conference")
_EPRINT = re.compile(r"(?i)(?:arxiv:)?\s*(\d{4}\.\d{4,5}|[a-z-]{2,20}(?:\.[a-z]{2})?/\d{7})(?:v\d+)?")


def sniff(head: str, mapping: Mapping[str, str]) -> int:
    """Return 2 when more than half of the text stands in entries, and none is mapped."""
    return 2 if not mapping and share(head) > 0.5 else 0


def read(stream: io.BufferedReader, file: str, mapping: Mapping[str, str]) -> Iterator[Record | Reject]:
    """Yield one item an entry; one that cannot be read is a reject "bad BibTeX", and reading goes on.

    The id is the DOI, else the arXiv or OpenReview id, else the key. A paper in proceedings that names no venue has
    venue and year of the last ``@proceedings`` above it. Of repeated fields the first that is not blank counts, and
    all keywords do.

    Raises
    ------
    DataError
        There is a mapping: BibTeX names its fields itself.
    """
    refuse_mapping(mapping, file, NAME)
    volume = dict[str, object]()
    for n, entry in enumerate(entries(io.TextIOWrapper(stream, encoding="utf-8", newline="")), 1):
        place = Place(file, n, entry.line)
        if entry.block.fault:
            yield Reject(*place, "bad BibTeX", entry.block.fault, None, entry.block.key, entry.text)
            continue
        values = _values(entry)
        fields = _fields(values, entry.block.key)
        if entry.block.kind == "proceedings":
            name = _first(values, ("booktitle", "title"))
            volume = {"venue": name, "year": year(*(_first(values, (kind,)) for kind in _YEAR), name)}
        elif entry.block.kind in _IN_VOLUME and fields["venue"] is None and "crossref" not in values:
            fields |= {"venue": volume.get("venue"), "year": fields["year"] or volume.get("year")}
        yield replace(item(fields, place), raw=entry.text)


def _values(entry: Entry) -> dict[str, list[str]]:
    """Return the values of each field that are not blank, in order."""
    values = dict[str, list[str]]()
    for field in entry.block.fields:
        if field.value.strip():
            values.setdefault(field.name, []).append(field.value)
    return values


def _first(values: Mapping[str, Sequence[str]], names: Sequence[str]) -> str | None:
    return next((plain(values[name][0]) for name in names if name in values), None)


def _fields(values: Mapping[str, Sequence[str]], key: str | None) -> dict[str, object]:
    eprint = _EPRINT.fullmatch(_first(values, ("eprint",)) or "")
    is_arxiv = "arxiv" in (_first(values, ("archiveprefix", "eprinttype")) or "").casefold()
    venue = _first(values, _VENUE) or ("arXiv" if is_arxiv else None)
    ids = (doi(_first(values, ("doi",)) or ""), eprint and eprint[1], linked_id(_first(values, ("url",)) or ""), key)
    return {
        "abstract": headless(_first(values, _ABSTRACT) or "") or None,
        "title": _first(values, ("title",)),
        "id": next(filter(None, ids), None),
        "venue": venue and venue.removeprefix("\\"),  # ADS has commands for journals: {\apj}
        "year": year(*(_first(values, (kind,)) for kind in _YEAR), venue),
        "keywords": [word for name in _KEYWORDS for value in values.get(name, ()) for word in _split(plain(value))],
    }


def _split(keywords: str) -> list[str]:
    return keywords.split(";" if ";" in keywords else ",")
