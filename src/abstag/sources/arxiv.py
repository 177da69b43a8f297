"""arXiv's search: the papers of a query, oldest first."""

import re
from collections.abc import Iterator
from typing import Any

from abstag.errors import DataError
from abstag.sources._collect import Page, Source
from abstag.sources._http import Client, PassingError
from abstag.sources._xml import ARXIV, ATOM, OPENSEARCH, Element, number, parsed, text

_URL = "https://export.arxiv.org/api/query"
_LIMIT, PAUSE = 500, 3.0  # one request in three seconds is what arXiv's terms allow
_ID = re.compile(r"/abs/(.+?)(?:v(\d+))?$")


def search(query: str, *, url: str | None = None) -> Source:
    """Return the papers that a query in arXiv's own terms finds, as ``cat:cs.LG AND abs:graph``."""
    client = Client(url or _URL, pause=PAUSE)

    def pages(cursor: Any) -> Iterator[Page]:
        start: int | None = cursor or 0
        while start is not None:
            page = _page(client, query, start)
            start = page.cursor
            yield page

    return Source({"source": "arxiv", "query": query, "url": url}, pages)


def _page(client: Client, query: str, start: int) -> Page:
    order = {"sortBy": "submittedDate", "sortOrder": "ascending"}  # a paper that comes meanwhile shifts none
    asked: dict[str, str | int] = {"search_query": query, "start": start, "max_results": _LIMIT, **order}
    feed = client.get(asked, lambda body: _feed(body, start))
    entries, total = feed.findall(f"{ATOM}entry"), _total(feed)
    for entry in entries:
        if "/api/errors" in text(entry.find(f"{ATOM}id")):
            raise DataError(f"arXiv refuses: {text(entry.find(f'{ATOM}summary'))}", where=query)
    following = start + len(entries)
    return Page([_paper(entry) for entry in entries], following if following < total else None, total)


def _feed(body: bytes, start: int) -> Element:
    feed = parsed(body, f"{ATOM}feed")
    if feed.find(f"{ATOM}entry") is None and start < _total(feed):  # it does so now and then, with status 200
        raise PassingError("the answer is empty, though there are more papers")
    return feed


def _total(feed: Element) -> int:
    return number(feed.findtext(f"{OPENSEARCH}totalResults")) or 0


def _paper(entry: Element) -> dict[str, Any]:
    """Return an entry under the names of arXiv's public snapshot."""
    address = text(entry.find(f"{ATOM}id"))
    known = _ID.search(address)
    told = {
        "id": known[1] if known else address,
        "version": known[2] if known else None,
        "title": text(entry.find(f"{ATOM}title")),
        "abstract": text(entry.find(f"{ATOM}summary")),
        "authors": [text(name) for name in entry.iterfind(f"{ATOM}author/{ATOM}name")],
        "categories": " ".join(tag.get("term", "") for tag in entry.iterfind(f"{ATOM}category")),
        "comments": text(entry.find(f"{ARXIV}comment")),
        "journal-ref": text(entry.find(f"{ARXIV}journal_ref")),
        "doi": text(entry.find(f"{ARXIV}doi")),
        "published": text(entry.find(f"{ATOM}published")),
        "update_date": text(entry.find(f"{ATOM}updated")),
    }
    return {name: value for name, value in told.items() if value}
