"""From the fields of one paper, in our names, to a record or a reject."""

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from abstag.abstracts import Fault, fault
from abstag.records import Record, Reject

_YEAR = re.compile(r"(?<!\d)(?:19|20)\d\d(?!\d)")
_LINKED = re.compile(
    r"(?i)openreview\.net/(?:forum|pdf|attachment)\?(?:[^\s)\]]{0,80}&)?id=([\w-]{4,40})"
    r"|arxiv(?:\.org/(?:abs|pdf|html)/|:\s?)(\d{4}\.\d{4,5}|[a-z-]{2,20}(?:\.[A-Z]{2})?/\d{7})"
)
_DOI = re.compile(r"10\.\d{4,9}/[^\s\"<>]{1,300}")
_SURROGATE = re.compile("[\ud800-\udfff]")
_OPENINGS = (
    "We|In|This|These|The|An?|Our|To|It|Background|Motivation|Objectives?|Purpose|Aims?|Introduction|Recent(?:ly)?"
)
_HEADING = re.compile(
    r"\s*+(?:<[^<>]{1,80}+>\s*+)*+(?:Abstract\s*+(?:</[^<>]{1,20}+>|:|\.(?=\s)|[—–]|-(?=\s))"
    rf"|ABSTRACT(?![A-Z-]|\s*+[A-Z]{{2}})[\s:.—–]*+|Abstract\s*+(?=(?:{_OPENINGS})\b))"
)
_FLAGS = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}
_PERSON = frozenset(("email", "e mail", "email address", "affiliation", "institution"))
_COLUMNS: Mapping[str, tuple[str, ...]] = {  # our field: header names, the first that is there counts
    "abstract": (
        "abstract",
        "abstract note",
        "abstract text",
        "paper abstract",
        "abstracts",
        "ab",
        "summary",
        "summaries",
    ),
    "title": ("title", "article title", "paper title", "document title", "titles", "ti", "display name", "name"),
    "id": (
        "ut",
        "ut (unique wos id)",
        "id",
        "paper id",
        "paperid",
        "forum",
        "corpusid",
        "eid",
        "publication id",
        "key",
        "pmid",
    ),
    "venue": (
        *("venue", "conference", "booktitle", "publication title", "source title", "journal", "so", "journal/book"),
        *("primary location.source.display name", "host venue.display name", "anthology title", "conference name"),
    ),
    "year": (
        "year",
        "publication year",
        "pub year",
        "pubyear",
        "py",
        "date",
        "publication date",
        "published year",
        "published",
        "publish time",
    ),
    "keywords": ("keywords", "author keywords", "manual tags", "de"),
    "primary_area": ("primary area",),
    "topic": ("topic",),
    "part": ("part",),
    "areas": ("areas",),
    "judged": ("judged",),
    "sure": ("sure",),
}


class Place(NamedTuple):
    """Where a record stands: file as given, 1-based number in it, 1-based physical line or None."""

    file: str
    n: int
    line: int | None


def item(fields: Mapping[str, object], place: Place) -> Record | Reject:
    """Return the record, or the reject that says why there is none.

    Parameters
    ----------
    fields
        Any of abstract, title, id, venue, year, part, areas, judged, sure, keywords, primary_area, topic. Lists may be
        joined by ";". A missing or blank value is None; the areas ``[]`` and "none" are the answer "none".
    """
    title, name = text(fields.get("title")), identifier(fields.get("id"))
    abstract, sure = fields.get("abstract"), _flag(fields.get("sure"))
    found = fault(abstract) or _sure_fault(fields.get("sure"), sure)
    if found:
        return Reject(*place, *found, title, name)
    return Record(
        *place,
        abstract=text(abstract) or "",
        title=title,
        id=name,
        venue=text(fields.get("venue")),
        year=year(fields.get("year"), fields.get("venue")),
        part=text(fields.get("part")),
        declared=_declared(fields),
        areas=_areas(fields.get("areas")),
        judged=_areas(fields.get("judged")) or None,
        sure=sure is not False,
    )


def headless(abstract: str) -> str:
    """Return an abstract without the heading "Abstract" before it, be it in tags; "Abstract syntax trees" stays."""
    heading = _HEADING.match(abstract)
    return abstract[heading.end() :].lstrip() if heading else abstract


def text(value: object) -> str | None:
    """Return a string without white space around it and without lone surrogates; None for anything else and blanks."""
    if not isinstance(value, str):
        return None
    return (value if value.isascii() else _SURROGATE.sub("\ufffd", value)).strip() or None


def identifier(value: object) -> str | None:
    """Return a source's own id as a string, None if it is neither a text nor a whole number."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63:
        return str(value)
    return text(value)


def linked_id(value: str) -> str | None:
    """Return the OpenReview or arXiv id that a link in a text names, or ``arXiv:…``."""
    found = _LINKED.search(value)
    return (found[1] or found[2]) if found else None


def doi(value: str) -> str | None:
    """Return the DOI that stands in a text, be it in a link."""
    found = _DOI.search(value)
    return found[0].rstrip(".,;") if found else None


def year(*sources: object) -> int | None:
    """Return the first year 1900–2099 that the sources hold as a number or inside a text."""
    for source in sources:
        if isinstance(source, int | float) and 1900 <= source < 2100:
            return int(source)
        found = _YEAR.search(source) if isinstance(source, str) else None
        if found:
            return int(found[0])
    return None


def columns(cells: Sequence[str]) -> dict[str, int]:
    """Return the column number of each field of ours that a header row names."""
    return {field: numbers[0] for field, numbers in column_numbers(cells).items()}


def column_numbers(
    cells: Sequence[str], known: Mapping[str, tuple[str, ...]] = MappingProxyType(_COLUMNS)
) -> dict[str, list[int]]:
    """Return the column numbers, the best first, of each field (ours, or those given by names) in a header row."""
    names = list(map(column_name, cells))
    if "pt" in names:  # Web of Science: there "ID" is keywords by machine
        names = ["" if name == "id" else name for name in names]
    if not _PERSON.isdisjoint(names):  # a form: the name is that of who filled it in
        names = ["" if name == "name" else name for name in names]
    short = [name.partition(" (")[0] for name in names]  # "abstract (at most 300 words)"
    found = {
        field: [names.index(name) for name in those if name in names]
        or [short.index(name) for name in those if name in short]
        for field, those in known.items()
    }
    return {field: numbers for field, numbers in found.items() if numbers}


def column_name(cell: str) -> str:
    """Return the name in a header's cell with small letters, spaces for "_" and "-", and nothing around it."""
    return " ".join(cell[:200].casefold().replace("_", " ").replace("-", " ").strip('\ufeff" ').split())


def _declared(fields: Mapping[str, object]) -> tuple[str, ...]:
    keywords = fields.get("keywords")
    if isinstance(keywords, str):
        keywords = keywords.split(";" if ";" in keywords else ",")
    values: list[object] = []
    for value in (keywords, fields.get("primary_area"), fields.get("topic")):
        values += value if isinstance(value, list) else [value]
    return tuple(dict.fromkeys(name for name in map(text, values) if name))


def _areas(value: object) -> tuple[str, ...] | None:
    if isinstance(value, str):
        if value.strip().casefold() == "none":
            return ()
        names = tuple(name for name in map(text, value.split(";")) if name)
        return names or None
    if isinstance(value, list):
        return tuple(str(name).strip() for name in value if name is not None)
    return None if value is None else (str(value)[:100],)


def _flag(value: object) -> bool | None:
    known = value if isinstance(value, str) else f"{value:d}" if isinstance(value, bool) else repr(value)
    return _FLAGS.get(known.strip().casefold()[:10])


def _sure_fault(value: object, sure: bool | None) -> Fault | None:  # noqa: FBT001
    if sure is None and value is not None and value != "":
        return Fault("bad value", f"sure must be 0 or 1, not {str(value)[:20]!r}")
    return None
