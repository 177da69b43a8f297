"""From a source's fields, whatever they are called, to a record or a reject."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from abstag.records import Record, Reject

FIELDS: Mapping[str, tuple[str, ...]] = {
    "abstract": ("abstract", "abstract note", "abstracttext", "ab"),
    "title": ("title", "paper title", "article title", "document title", "ti"),
    "id": ("id", "paper_id", "paperid", "forum", "corpusid", "doi", "key"),
    "venue": ("venue", "conference", "booktitle", "journal", "source title", "publication title"),
    "year": ("year", "publication year", "publication_year", "pub_year"),
    "part": ("part", "split"),
    "areas": ("areas",),
    "judged": ("judged",),
    "sure": ("sure",),
}
DECLARED = ("keywords", "author keywords", "manual tags", "primary_area", "primary area", "topic")
_PLACEHOLDER = re.compile(
    r"\W*(?:n\W?/?\W?a|none|null|nan|tbd|tba|no abstract(?: is)?(?: available| provided)?|"
    r"abstract not available|not available|abstract)\W*\Z",
    re.IGNORECASE,
)
_WITHDRAWN = re.compile(
    r"\W*(?:this (?:paper|submission|article|work) (?:has been|was|is) )?withdrawn\b", re.IGNORECASE
)
_YEAR = re.compile(r"(?<!\d)(?:19|20)\d\d(?!\d)")
_NO = frozenset({"0", "false", "no"})


def build(fields: Mapping[str, Any], *, file: str, n: int, line: int | None) -> Record | Reject:
    """Return the record of a mapping from lower-case field names to values, or the reject that says what it lacks."""
    title, own_id = _text(_first(fields, "title")), _text(_first(fields, "id"))
    abstract = _text(_first(fields, "abstract"))
    problem = _problem(abstract)
    if abstract is None or problem:
        reason, detail = problem or ("no abstract", "")
        return Reject(file, n, line, reason, detail, title, own_id)
    venue = _text(_first(fields, "venue"))
    return Record(
        file=file,
        n=n,
        line=line,
        abstract=abstract,
        title=title,
        id=own_id,
        venue=venue,
        year=year_of(_first(fields, "year")) or year_of(venue),
        part=_text(_first(fields, "part")),
        declared=tuple(text for name in DECLARED for text in strings(fields.get(name))),
        areas=_areas(_first(fields, "areas")),
        judged=tuple(strings(_first(fields, "judged"))) or None,
        sure=str(_first(fields, "sure")).strip().lower() not in _NO,
    )


def strings(value: Any) -> list[str]:
    """Return the strings of a list, or of one string joined by semicolons; anything else counts as nothing."""
    parts: Iterable[Any] = value.split(";") if isinstance(value, str) else value if isinstance(value, list) else ()
    return [part.strip() for part in parts if isinstance(part, str) and part.strip()]


def year_of(value: Any) -> int | None:
    """Return the first year 1900–2099 in a number or text, None without one."""
    found = _YEAR.search(str(value)) if value is not None else None
    return int(found.group()) if found else None


def _first(fields: Mapping[str, Any], name: str) -> Any:
    values = (fields.get(synonym) for synonym in FIELDS[name])
    return next((value for value in values if value is not None and value != ""), None)


def _text(value: Any) -> str | None:
    if isinstance(value, bool) or not isinstance(value, str | int):
        return None
    return str(value).strip() or None


def _problem(abstract: str | None) -> tuple[str, str] | None:
    if abstract is None:
        return "no abstract", ""
    if _PLACEHOLDER.match(abstract):
        return "placeholder abstract", abstract[:60]
    if _WITHDRAWN.match(abstract):
        return "withdrawn", abstract[:60]
    return None


def _areas(value: Any) -> tuple[str, ...] | None:
    if isinstance(value, str) and value.strip().lower() == "none":
        return ()
    if isinstance(value, list) or (isinstance(value, str) and value.strip()):
        return tuple(strings(value))
    return None
