"""Which fields a paper in JSON has: exports of catalogues, conference sites and services, in our names."""

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from itertools import chain

from abstag.readers._fields import doi, headless, linked_id, text, year
from abstag.readers._json_papers import ABSTRACTS, TITLES, WRAPPERS, Found, folded

_IDS = ("id", "forum", "paperid", "corpusid", "key", "citationkey", "arxivid")
_VENUES = (
    *("venue", "conference", "booktitle", "publicationvenue", "primarylocation", "hostvenue", "journal", "so"),
    *("containertitle", "publicationtitle", "proceedingstitle", "conferencename"),
)
_DATES = (
    *("published", "publicationyear", "yearpublished", "pubyear", "py", "issued", "publishedprint", "publishedonline"),
    *("publicationdate", "publishedat", "date", "updatedate", "starttime"),
)
_CATALOGUED = ("externalids", "containertitle", "itemtype", "abstractinvertedindex", "openalex")
_ARXIV_ID = re.compile(r"\d{4}\.\d{4,5}(?:v\d{1,2})?")
_PAPERS = re.compile(r"(?i)\b(?:posters?|orals?|spotlights?|papers?|contributed)\b(?! session)")
_EVENTS = re.compile(
    r"(?i)\b(?:workshops?|tutorials?|socials?|breaks?|talks?|keynotes?|affinity|expo|competitions?|demos?|demonstrations?|"
    r"town ?halls?|panels?|mentor\w*|receptions?|registration|remarks|ceremony|sessions?|lunch|dinner|coffee|meetups?|"
    r"meetings?|plenary|opening|closing|sponsors?|exhibits?|award|attachment|note|annotation)\b"
)
_LONGEST = 100_000


def flattened(paper: Mapping[str, object]) -> dict[str, object]:
    """Return the fields by folded key, with those of the objects that it wraps; blanks do not hide what others say."""
    wrapped = [
        inner
        for key, inner in paper.items()
        if isinstance(inner, dict)
        and (key.casefold() in WRAPPERS or not {"title", *ABSTRACTS}.isdisjoint(map(folded, inner)))
    ]
    flat: dict[str, object] = {}
    for key, value in chain.from_iterable(one.items() for one in (paper, *wrapped)):
        name, one = folded(key), lifted(value)
        if flat.get(name) in (None, "") and not (one is None and name in flat):
            flat[name] = one
    return flat


def fields(flat: Mapping[str, object], found: Found, mapped: Mapping[str, object]) -> dict[str, object]:
    """Return the fields for `_fields.item` of a paper that is flattened, those ``mapped`` as they are.

    Where it has no id, its key in an object is; where no venue, the names of the lists around it, if there is a year.

    The abstract is the first with a text under an abstract's name, English ones first, else an inverted index put
    together, else, if the paper is arXiv's and has no field for an abstract, its ``summary``. What machines wrote
    (``tldr``, ``ai_summary``, …) is none. The id is the DOI in records of catalogues (OpenAlex, Crossref, Semantic
    Scholar, DBLP, Zotero), else the source's own.
    """
    venue = next(filter(None, (_named(flat[name]) for name in _VENUES if name in flat)), None) or _group(flat)
    own = _id(flat) or found.key
    snapshot = flat.get("categories") and (flat.get("versions") or flat.get("updatedate"))
    if venue is None and (snapshot or (isinstance(own, str) and _ARXIV_ID.fullmatch(own))):
        venue = "arXiv"
    if venue is None and year(found.path):
        venue = found.path
    venue = text(mapped["venue"]) if "venue" in mapped else venue
    said: dict[str, object] = {
        "title": next(filter(None, (_said(flat[name]) for name in TITLES if name in flat)), None),
        "abstract": _abstract(flat),
        "id": own,
        "venue": venue,
        "year": year(flat.get("year"), venue) or _dated(flat),
        "keywords": flat.get("keywords") or flat.get("keyword") or _tags(flat.get("tags")),
        "primary_area": flat.get("primaryarea"),
    }
    return {**flat, **said, **mapped}


def kind(flat: Mapping[str, object]) -> str | None:
    """Return what a flattened paper says that it is, if that is none: a workshop, a talk, a break, an attachment."""
    names = [name for name in ("eventtype", "itemtype") if name in flat] or (["type"] if "starttime" in flat else [])
    said = " ".join(filter(None, (_said(flat[name]) for name in names if name in flat)))
    return (said or None) if _EVENTS.search(said) and not _PAPERS.search(said) else None


def lifted(value: object) -> object:
    """Return what OpenReview's ``{"value": …}`` holds, anything else as it is."""
    return value["value"] if isinstance(value, dict) and "value" in value else value


def _abstract(flat: Mapping[str, object]) -> object:
    given = {name: _said(flat[name]) or flat[name] for name in ABSTRACTS if name in flat}
    texts = [value for value in given.values() if isinstance(value, str)]
    if not given and _is_arxiv(flat):
        return flat.get("summary")
    found = next((value for value in texts if value.strip()), next(chain(texts, given.values()), None))
    return headless(found) if isinstance(found, str) else found


def _said(value: object) -> str | None:
    """Return the text of a string, of its parts, of its English one, or of an inverted index."""
    if isinstance(value, list):
        parts = [part if isinstance(part, str) else _said(part) for part in value]
        return "\n".join(filter(None, parts)) or None
    if isinstance(value, dict):
        inner = value.get("InvertedIndex", value)
        names = ("en", "eng", "english", "text", "#text", "value")
        found = next((value[name] for name in names if isinstance(value.get(name), str)), None)
        return text(found) or (_put_together(inner) if isinstance(inner, dict) else None)
    return text(value)


def _put_together(index: Mapping[str, object]) -> str | None:
    """Return the words of an inverted index (word → positions) in order; holes close, of two at a place both stay."""
    places = [
        (place, word)
        for word, numbers in index.items()
        if isinstance(numbers, list)
        for place in numbers
        if isinstance(place, int) and not isinstance(place, bool)
    ]
    return " ".join(word for _, word in sorted(places, key=lambda one: one[0])) or None


def _id(flat: Mapping[str, object]) -> object:
    own = next((flat[name] for name in _IDS if flat.get(name) not in (None, "")), None)
    external = flat.get("externalids")
    others = {folded(key): value for key, value in external.items()} if isinstance(external, dict) else {}
    named = text(others.get("doi")) or text(flat.get("doi"))
    if named and (own is None or any(name in flat for name in _CATALOGUED) or _is_openalex(own)):
        return doi(named) or named
    link = linked_id(own) if isinstance(own, str) and "arxiv.org/" in own[:_LONGEST] else None
    return text(others.get("arxiv")) or link or own


def _is_openalex(own: object) -> bool:
    return isinstance(own, str) and "openalex.org/" in own


def _is_arxiv(flat: Mapping[str, object]) -> bool:
    """Return whether an id or a link is arXiv's."""
    texts = [value for name in ("id", "entryid", "link", "url", "pdfurl", "absurl") if (value := text(flat.get(name)))]
    return (
        any(name.startswith("arxiv") and value for name, value in flat.items())
        or any(_ARXIV_ID.fullmatch(value) for value in texts)
        or any("arxiv.org/" in value[:_LONGEST] and linked_id(value[:_LONGEST]) for value in texts)
    )


def _named(value: object) -> str | None:
    """Return a venue's name: a text, the first of a list, the name in an object, or that of its source."""
    if isinstance(value, list):
        return _named(value[0]) if value and not isinstance(value[0], list) else None
    if isinstance(value, dict):
        inner = {folded(key): one for key, one in value.items()}
        source = inner.get("source")
        if isinstance(source, dict):
            inner = {folded(key): one for key, one in source.items()}
        return text(inner.get("displayname")) or text(inner.get("name"))
    return text(value)


def _group(flat: Mapping[str, object]) -> str | None:
    """Return the OpenReview group from which a conference site took its list: ``NeurIPS.cc/2025/Conference``."""
    link = text(flat.get("sourceurl")) or ""
    return link.partition("group?id=")[2][:200] or None


def _dated(flat: Mapping[str, object]) -> int | None:
    """Return the year of the first version, of publication, of the last update or, in milliseconds, of creation."""
    versions = flat.get("versions")
    first = versions[0] if isinstance(versions, list) and versions else None
    found = year(
        first.get("created") if isinstance(first, dict) else None,
        *chain.from_iterable(_moments(flat[name]) for name in _DATES if name in flat),
    )
    moment = flat.get("cdate")
    if found is None and isinstance(moment, int) and 0 < moment < 4e12:
        return datetime.fromtimestamp(moment / 1000, UTC).year
    return found


def _moments(value: object) -> Iterator[object]:
    """Yield the years that may stand in a date, or in the lists and objects of CSL and Crossref."""
    if isinstance(value, dict):
        for name in ("date-parts", "raw", "literal", "date-time"):
            yield from _moments(value.get(name))
    elif isinstance(value, list):
        yield from _moments(value[0] if value else None)
    else:
        yield value


def _tags(value: object) -> object:
    """Return the tags that a person gave in Zotero."""
    tags = value if isinstance(value, list) else []
    return [tag.get("tag") for tag in tags if isinstance(tag, dict) and not tag.get("type")]
