"""XML: arXiv, PubMed, EndNote and what libraries give out, one response or many in one file."""

import io
import logging
import re
from collections.abc import Iterator, Mapping
from xml.etree.ElementTree import Element

from abstag.abstracts import Fault
from abstag.errors import DataError
from abstag.readers._elements import elements
from abstag.readers._fields import Place, item
from abstag.readers._mapping import refuse_mapping
from abstag.readers._vocabularies import KNOWN, PAPERS, fields
from abstag.records import Record, Reject

NAME = "xml"
SUFFIXES = (".xml",)

_LOG = logging.getLogger(__name__)
_FIRST = re.compile(rb"<([A-Za-z_][\w:.-]{0,60})")
_BEFORE = r"(?:\s|<!--(?:[^-]|-(?!->))*+-->|<\?(?:[^?]|\?(?!>))*+\?>|<!DOCTYPE\s[^<>]*+>)*+"
_HTML = re.compile(rf"{_BEFORE}<html\b", re.IGNORECASE)
_OPENING = re.compile(
    rf"\s*<\?xml\s|{_BEFORE}<(?:[\w.-]{{1,20}}:)?(?:xml|OAI-PMH|ListRecords|GetRecord|records?|dc|feed|entry|rss|RDF"
    r"|PubmedArticleSet|Pubmed(?:Book)?Article|MedlineCitation(?:Set)?|mods(?:Collection)?|pmc-articleset"
    r"|article(?=[^<>]*>\s*<front|[^<>]*\sarticle-type))(?:\s[^<>]*)?>"
)


def sniff(head: str, mapping: Mapping[str, str]) -> int:
    """Return 2 for an XML declaration or a first tag of a known vocabulary, if it is not HTML and none is mapped."""
    return 2 if not mapping and _OPENING.match(head) and not _HTML.match(head) else 0


def read(stream: io.BufferedReader, file: str, mapping: Mapping[str, str]) -> Iterator[Record | Reject]:
    """Yield one item a paper; for the rest of a damaged document one reject "bad XML" stands.

    Raises
    ------
    DataError
        There is a mapping, or nothing in the file is a paper in a known vocabulary.
    """
    refuse_mapping(mapping, file, NAME)
    n, first, token = 0, _FIRST.search(stream.peek()), None
    for line, found in elements(stream, {*PAPERS, "resumptionToken"}):
        if isinstance(found, Element) and found.tag == "resumptionToken":
            token = found.text
            continue
        n += 1
        yield _item(found, Place(file, n, line))
    if n == 0:
        where = f"the first element is <{first[1].decode()}>" if first else "there is no element"
        raise DataError(f"no paper in XML of a known kind: {where}", where=file, remedy=f"known: {KNOWN}")
    if token and token.strip():
        _LOG.info("%s: the list is incomplete, it ends with a resumption token", file)


def _item(found: Element | str, place: Place) -> Record | Reject:
    if isinstance(found, str):
        return Reject(*place, "bad XML", f"the rest cannot be read: {found}")
    values = fields(found)
    return Reject(*place, *values) if isinstance(values, Fault) else item(values, place)
