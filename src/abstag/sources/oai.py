"""arXiv's harvesting (OAI-PMH): all papers of a set that were changed in a span of days."""

from collections.abc import Iterator
from datetime import date
from typing import Any

from abstag.errors import ConfigError, DataError
from abstag.sources._collect import Page, Source
from abstag.sources._http import Client, endless
from abstag.sources._xml import OAI, Element, number, parsed, text
from abstag.sources.arxiv import PAUSE

_URL = "https://oaipmh.arxiv.org/oai"
_REMEDIES = {
    "noRecordsMatch": "choose other days, or another set",
    "badArgument": "check --set, --from and --until",
    "badResumptionToken": "run the same command again; it goes on",
}


def harvest(subset: str, *, since: str | None = None, until: str | None = None, url: str | None = None) -> Source:
    """Return the papers of a set (``cs``, ``cs:cs:LG``) last changed from one day to another, both included.

    Raises
    ------
    ConfigError
        A day is not YYYY-MM-DD, or the last is before the first.
    """
    first, last = _day(since, "--from"), _day(until, "--until")
    if first and last and last < first:
        raise ConfigError(f"{last} is before {first}", where="--until", remedy="exchange the days")
    span = {name: day for name, day in (("from", first), ("until", last)) if day}
    client = Client(url or _URL, pause=PAUSE)

    def pages(cursor: Any) -> Iterator[Page]:
        return _pages(client, {"verb": "ListRecords", "metadataPrefix": "arXiv", "set": subset} | span, cursor)

    return Source({"source": "arxiv", "set": subset, **span, "url": url}, pages)


def _day(told: str | None, option: str) -> str | None:
    try:
        return None if told is None else date.fromisoformat(told).isoformat()
    except ValueError as error:
        raise ConfigError(f"{told!r} is no day", where=option, remedy="write YYYY-MM-DD") from error


def _pages(client: Client, asked: dict[str, str], cursor: Any) -> Iterator[Page]:
    """Yield pages; the cursor is the token, and the day from which to ask anew when it has expired."""
    token, day = cursor or (None, asked.get("from"))
    begun = object()
    while True:
        parameters = (
            {"verb": "ListRecords", "resumptionToken": token} if token else asked | ({"from": day} if day else {})
        )
        answer = client.get(parameters, lambda body: parsed(body, f"{OAI}OAI-PMH"))
        error = answer.find(f"{OAI}error")
        if error is not None and error.get("code") == "badResumptionToken" and token and begun != day:
            token, begun = None, day
            continue
        if error is not None:
            raise _refusal(error, client.url)
        page = _page(answer, day)
        yield page
        if page.cursor is None:
            return
        if page.cursor[0] == token:
            raise endless(client.url)
        token, day = page.cursor


def _refusal(error: Element, url: str) -> DataError:
    code = error.get("code", "error")
    said = "no paper was changed in these days" if code == "noRecordsMatch" else f"{code}: {text(error)}"
    return DataError(said, where=url, remedy=_REMEDIES.get(code))


def _page(answer: Element, day: str | None) -> Page:
    """Return the page; where its days do not rise they are no order to go by, and the day stays what it was."""
    records = answer.findall(f"{OAI}ListRecords/{OAI}record")
    last = answer.find(f"{OAI}ListRecords/{OAI}resumptionToken")
    token = text(last) or None
    days = [day or "", *(text(record.find(f"{OAI}header/{OAI}datestamp"))[:10] for record in records)]
    day = days[-1] if days == sorted(days) else day
    papers = [_paper(record) for record in records]
    kept = [paper for paper in papers if paper]
    size = None if last is None else number(last.get("completeListSize"))
    return Page(kept, [token, day] if token else None, size, len(papers) - len(kept))


def _paper(record: Element) -> dict[str, Any]:
    """Return what arXiv's own format tells, under its names; nothing for a deleted record."""
    metadata = record.find(f"{OAI}metadata")
    if metadata is None or not len(metadata):
        return {}
    told: dict[str, Any] = {element.tag.rpartition("}")[2]: text(element) for element in metadata[0]}
    authors = [element for element in metadata[0] if element.tag.endswith("}authors")]
    told["authors"] = [_name(author) for element in authors for author in element]
    told["id"] = told.get("id") or text(record.find(f"{OAI}header/{OAI}identifier"))
    told |= {"published": told.get("created"), "update_date": text(record.find(f"{OAI}header/{OAI}datestamp"))}
    return {name: value for name, value in told.items() if value}


def _name(author: Element) -> str:
    parts = {element.tag.rpartition("}")[2]: text(element) for element in author}
    return " ".join(filter(None, (parts.get("forenames"), parts.get("keyname"), parts.get("suffix"))))
