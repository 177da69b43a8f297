"""OpenReview: the notes of a venue, from the second version of its interface, else from the first."""

import difflib
import json
import logging
from collections.abc import Iterator
from typing import Any, NamedTuple

from abstag.errors import DataError
from abstag.sources._collect import Page, Source
from abstag.sources._http import Client, PassingError, RefusedError, endless

_LOG = logging.getLogger(__name__)
_SECOND, _FIRST = "https://api2.openreview.net", "https://api.openreview.net"
_LIMIT, _PAUSE, _NEAR = 1000, 1.0, 8


class _Way(NamedTuple):
    """A way to ask for a venue: the client, the parameter and its value."""

    client: Client
    parameter: str
    value: str


def venue(name: str, *, url: str | None = None) -> Source:
    """Return the notes of a venue such as ``ICLR.cc/2024/Conference``, or of an invitation (a name with ``/-/``).

    A venue of the second version gives its accepted papers, its invitation ``VENUE/-/Submission`` all; a venue of the
    first gives all. Notes are told as they come.
    """
    name = name.strip().strip("/")
    ways = _ways(name, url)

    def pages(cursor: Any) -> Iterator[Page]:
        number, after = cursor or (0, None)
        for place, way in enumerate(ways[number:], number):
            found = False
            for page in _notes(way, place, after):
                found = True
                yield page
            if found:
                return
        raise _unknown(name, ways[0].client)

    return Source({"source": "openreview", "venue": name, "url": url}, pages)


def _ways(name: str, url: str | None) -> list[_Way]:
    second, first = Client(url or _SECOND, pause=_PAUSE), Client(url or _FIRST, pause=_PAUSE)
    if "/-/" in name:
        return [_Way(second, "invitation", name), _Way(first, "invitation", name)]
    older = [_Way(first, "invitation", f"{name}/-/{kind}") for kind in ("Blind_Submission", "Submission")]
    return [_Way(second, "content.venueid", name), *older]


def _notes(way: _Way, number: int, after: str | None) -> Iterator[Page]:
    """Yield pages of notes in the order of their ids, so that one that comes meanwhile shifts none."""
    while True:
        asked: dict[str, str | int] = {way.parameter: way.value, "sort": "id", "limit": _LIMIT}
        try:
            answer = way.client.get(asked | ({"after": after} if after else {}), _parsed, "/notes")
        except RefusedError as error:
            if error.status == 404 and after is None:  # an invitation that there is not
                return
            raise
        notes, count = answer["notes"], answer.get("count")
        if not notes and after is None:
            return
        if after is None:
            _LOG.info("%s: %s notes of %s", way.client.url, "unknown number of" if count is None else count, way.value)
        expected = count if after is None and isinstance(count, int) else None
        last = len(notes) < _LIMIT
        if not last and notes[-1]["id"] == after:
            raise endless(way.client.url)
        after = notes[-1]["id"] if notes else after
        yield Page(notes, None if last else [number, after], expected)
        if last:
            return


def _parsed(body: bytes) -> dict[str, Any]:
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise PassingError(f"the answer is no JSON: {body[:60].decode(errors='replace')!r}") from error
    notes = answer.get("notes") if isinstance(answer, dict) else None
    if not isinstance(notes, list) or not all(isinstance(note, dict) and "id" in note for note in notes):
        raise PassingError(f"the answer holds no notes: {body[:60].decode(errors='replace')!r}")
    return dict(answer)


def _unknown(name: str, client: Client) -> DataError:
    try:
        names = client.get({"id": "venues"}, _members, "/groups")
    except DataError:  # the list is only help
        names = []
    known = {known.casefold(): known for known in names}
    close = difflib.get_close_matches(name.casefold(), known, n=_NEAR, cutoff=0.6)
    near = ", ".join(known[match] for match in close)
    remedy = f"near names: {near}" if near else "write it as in the address of its page, as ICLR.cc/2024/Conference"
    return DataError("no public notes of this venue", where=name, remedy=remedy)


def _members(body: bytes) -> list[str]:
    try:
        return [str(name) for name in json.loads(body)["groups"][0]["members"]]
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise PassingError("the list of venues cannot be read") from error
