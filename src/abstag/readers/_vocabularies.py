"""The XML vocabularies of papers: from an element to fields in our names, or why it holds no paper."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from xml.etree.ElementTree import Element

from abstag.abstracts import Fault
from abstag.readers._fields import doi, linked_id, year

Fields = dict[str, object]

KNOWN = "arXiv (OAI-PMH, Atom, RSS), OAI-PMH and Dublin Core, PubMed, EndNote, JATS, MODS"

_BLOCKS = frozenset(("p", "title", "sec", "break", "br", "list-item", "disp-formula"))
_TWICE = frozenset(("tex-math", "annotation"))  # a formula that stands beside in MathML
_APART = re.compile(r"[;\r\n]")
_ANNOUNCED = re.compile(r"\s*arXiv:\S+\s+Announce Type:\s*\S+\s+Abstract:\s*")
_COMMENT = re.compile(r"\s*Comments?:")


def fields(element: Element) -> Fields | Fault:
    """Return the fields of one paper (see `_fields.item`), or a fault.

    The id is that of arXiv in arXiv's vocabularies, else the DOI, else that of PubMed or the record. Categories of
    arXiv are no keywords.
    """
    return PAPERS[element.tag](element)


def words(element: Element | None) -> str | None:
    """Return the text of an element, inline markup left out, None where the element lacks."""
    return None if element is None else "".join(_pieces(element))


def _pieces(element: Element) -> Iterator[str]:
    gap = " " if element.tag in _BLOCKS else ""
    yield gap + (element.text or "")
    for child in element:
        if child.tag not in _TWICE:
            yield from _pieces(child)
        yield child.tail or ""
    yield gap


def _first(element: Element, *paths: str) -> str | None:
    """Return the first text at the paths that is not blank."""
    return next(_texts(element, *paths), None)


def _texts(element: Element, *paths: str) -> Iterator[str]:
    found = (words(place) for path in paths for place in element.iterfind(path))
    return (text for text in found if text and text.strip())


def _english(found: Iterable[Element]) -> list[Element]:
    """Return those in English where languages are told, else all."""
    every = list(found)
    languages = [one.get("xml:lang", one.get("lang", "en")) for one in every]
    return [one for one, language in zip(every, languages, strict=True) if language[:2] == "en"] or every


def _earliest(dates: Iterable[str]) -> int | None:
    return min(filter(None, map(year, dates)), default=None)


def _record(record: Element) -> Fields | Fault:
    header = record.find("header")
    if header is None:
        return _endnote(record) if record.find("titles") is not None else _dublin_core(record)
    if header.get("status") == "deleted":
        return Fault("deleted record", _first(header, "identifier") or "")
    inner = record.find("metadata/*")
    if inner is not None and inner.tag not in _METADATA:
        return Fault("unknown metadata", f"<{inner.tag[:40]}>")
    found = {} if inner is None else _METADATA[inner.tag](inner)
    return found if found.get("id") else found | {"id": _first(header, "identifier")}


def _arxiv(paper: Element) -> Fields:
    return {
        "abstract": _first(paper, "abstract"),
        "title": _first(paper, "title"),
        "id": _first(paper, "id"),
        "venue": "arXiv",
        "year": year(_first(paper, "created", "version/date")),
    }


def _dublin_core(paper: Element) -> Fields:
    # A description may be a comment (arXiv) or a note (libraries): the abstract is the longest that is no comment.
    links = list(_texts(paper, "identifier"))
    arxiv = next(filter(None, map(linked_id, (link for link in links if "arxiv" in link.casefold()))), None)
    told = [one for one in _english(paper.iterfind("description")) if not _COMMENT.match(words(one) or "")]
    return {
        "abstract": _first(paper, "abstract") or max(filter(None, map(words, told)), key=len, default=None),
        "title": _first(paper, "title"),
        "id": arxiv or next(filter(None, map(doi, links)), None),
        "venue": _first(paper, "source") or (arxiv and "arXiv"),
        "year": _earliest(_texts(paper, "date", "issued", "created")),
        "keywords": [] if arxiv else list(_texts(paper, "subject")),
    }


def _atom(entry: Element) -> Fields | Fault:
    name = _first(entry, "id") or ""
    if "/api/errors" in name:
        return Fault("error message", _first(entry, "summary") or "")
    arxiv = linked_id(name.replace("oai:arXiv.org:", "arXiv:"))
    terms = () if arxiv else (one.get("label") or one.get("term") for one in entry.iterfind("category"))
    return {
        "abstract": _ANNOUNCED.sub("", _first(entry, "summary", "content") or "", count=1) or None,
        "title": _first(entry, "title"),
        "id": arxiv or _first(entry, "doi") or name,
        "venue": "arXiv" if arxiv else None,
        "year": year(_first(entry, "published", "updated")),
        "keywords": [term for term in terms if term],
    }


def _rss(entry: Element) -> Fields:
    link = next(filter(None, map(linked_id, _texts(entry, "link"))), None)
    return {
        "abstract": _ANNOUNCED.sub("", _first(entry, "description") or "", count=1) or None,
        "title": _first(entry, "title"),
        "id": link or _first(entry, "guid", "link"),
        "venue": "arXiv" if link else None,
        "year": year(_first(entry, "pubDate", "date")),
    }


def _pubmed(article: Element) -> Fields:
    citation = article if article.tag == "MedlineCitation" else article.find("MedlineCitation")
    if citation is None:
        return {}
    other = (one for one in citation.iterfind("OtherAbstract") if one.get("Type") != "plain-language-summary")
    abstracts = [*citation.iterfind("Article/Abstract"), *(one for one in other if one.get("Language", "eng") == "eng")]
    ids = _first(article, "PubmedData/ArticleIdList/ArticleId[@IdType='doi']")
    ids = ids or _first(citation, "Article/ELocationID[@EIdType='doi']") or ""
    journal = "Article/Journal/JournalIssue/PubDate"
    return {
        "abstract": next(filter(None, map(_labelled, abstracts)), None),
        "title": _first(citation, "Article/ArticleTitle", "Article/VernacularTitle"),
        "id": doi(ids) or _first(citation, "PMID"),
        "venue": _first(citation, "Article/Journal/Title", "Article/Journal/ISOAbbreviation"),
        "year": year(_first(citation, f"{journal}/Year", f"{journal}/MedlineDate", "Article/ArticleDate/Year")),
        "keywords": list(_texts(citation, "KeywordList/Keyword")),
    }


def _book(article: Element) -> Fields:
    book = article.find("BookDocument")
    if book is None:
        return {}
    abstract, doi_type = book.find("Abstract"), "ArticleIdList/ArticleId[@IdType='doi']"
    found = _first(article, f"BookDocument/{doi_type}", f"PubmedBookData/{doi_type}") or ""
    return {
        "abstract": abstract if abstract is None else _labelled(abstract),
        "title": _first(book, "ArticleTitle", "Book/BookTitle"),
        "id": doi(found) or _first(book, "PMID"),
        "venue": _first(book, "Book/BookTitle"),
        "year": year(_first(book, "Book/PubDate/Year", "ContributionDate/Year")),
        "keywords": list(_texts(book, "KeywordList/Keyword")),
    }


def _labelled(abstract: Element) -> str | None:
    """Return the parts of an abstract, joined, each after its label."""
    parts = [(part.get("Label") or "UNLABELLED", words(part) or "") for part in abstract.iterfind("AbstractText")]
    told = [text if label == "UNLABELLED" else f"{label}: {text}" for label, text in parts if text.strip()]
    return " ".join(told) or None


def _endnote(record: Element) -> Fields:
    links = list(_texts(record, "urls/related-urls/url", "urls/web-urls/url"))
    number = doi(_first(record, "electronic-resource-num") or "")
    return {
        "abstract": _first(record, "abstract"),
        "title": _first(record, "titles/title"),
        "id": number or next(filter(None, map(linked_id, links)), None) or _first(record, "accession-num"),
        "venue": _first(record, "periodical/full-title", "titles/secondary-title", "alt-periodical/full-title"),
        "year": year(_first(record, "dates/year"), _first(record, "dates/pub-dates/date")),
        "keywords": [word for text in _texts(record, "keywords/keyword") for word in _APART.split(text)],
    }


def _jats(article: Element) -> Fields:
    meta, journal = "front/article-meta", "front/journal-meta"
    # One with a type is another abstract: for laymen, graphical, highlights.
    abstracts = _english(one for one in article.iterfind(f"{meta}/abstract") if one.get("abstract-type") is None)
    ids = [_first(article, f"{meta}/article-id[@pub-id-type='{kind}']") for kind in ("doi", "arxiv", "pmid")]
    return {
        "abstract": words(abstracts[0]) if abstracts else None,
        "title": _first(article, f"{meta}/title-group/article-title"),
        "id": next(filter(None, ids), None),
        "venue": _first(article, f"{journal}/journal-title-group/journal-title", f"{journal}/journal-title"),
        "year": _earliest(_texts(article, f"{meta}/pub-date/year")),
        "keywords": list(_texts(article, f"{meta}/kwd-group/kwd")),
    }


def _mods(paper: Element) -> Fields:
    host, date = "relatedItem[@type='host']", "originInfo/dateIssued"
    links = list(_texts(paper, "identifier", "location/url"))
    names = [*map(doi, _texts(paper, "identifier[@type='doi']")), *map(linked_id, links), paper.get("ID")]
    abstracts = _english(paper.iterfind("abstract"))
    return {
        "abstract": words(abstracts[0]) if abstracts else None,
        "title": _first(paper, "titleInfo/title"),
        "id": next(filter(None, names), None),
        "venue": _first(paper, f"{host}/titleInfo/title"),
        "year": year(*_texts(paper, date, f"{host}/{date}", "part/date", f"{host}/part/date")),
        "keywords": list(_texts(paper, "subject/topic")),
    }


_METADATA: Mapping[str, Callable[[Element], Fields]] = {
    "arXiv": _arxiv,
    "arXivRaw": _arxiv,
    "arXivOld": _arxiv,
    "dc": _dublin_core,
    "article": _jats,
    "mods": _mods,
}
PAPERS: Mapping[str, Callable[[Element], Fields | Fault]] = {
    "record": _record,
    "entry": _atom,
    "item": _rss,
    "PubmedArticle": _pubmed,
    "PubmedBookArticle": _book,
    "MedlineCitation": _pubmed,
    "article": _jats,
    "mods": _mods,
    "dc": _dublin_core,
}
