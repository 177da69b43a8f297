"""The answers of arXiv, both of its interfaces, as elements."""

from xml.etree import ElementTree as ET

from abstag.sources._http import PassingError

Element = ET.Element
ATOM, OPENSEARCH = "{http://www.w3.org/2005/Atom}", "{http://a9.com/-/spec/opensearch/1.1/}"
ARXIV, OAI = "{http://arxiv.org/schemas/atom}", "{http://www.openarchives.org/OAI/2.0/}"


def parsed(body: bytes, root: str) -> Element:
    """Return the root element, which must have this name; raises PassingError."""
    if b"<!doctype" in body[:2000].lower():  # a page for browsers, or entities that swell
        raise PassingError("the answer is no XML but a page for browsers, or has a DTD")
    try:
        found = ET.fromstring(body)  # noqa: S314  # expat bounds expansion and fetches nothing
    except (ET.ParseError, ValueError) as error:
        raise PassingError(f"the answer is no XML: {body[:60].decode(errors='replace')!r}") from error
    if found.tag != root:
        raise PassingError(f"the answer is not {root.partition('}')[2]} but {found.tag.rpartition('}')[2]}")
    return found


def text(element: Element | None) -> str:
    """Return the text of an element, as it is but for white space around it; blank for none."""
    return "" if element is None else "".join(element.itertext()).strip()


def number(digits: str | None) -> int | None:
    """Return the whole number that a text holds."""
    return int(digits) if digits and digits.strip().isdecimal() else None
