"""Pages of a source → one file of JSON Lines: whole or absent, and gone on with where it was cut off."""

import json
import logging
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from abstag.errors import ArtifactError, DataError
from abstag.files import read_json, refuse_existing, to_json, write_json
from abstag.progress import progress

_LOG = logging.getLogger(__name__)
_RESTART = "name another file with -o, or begin anew with --restart"


class Page(NamedTuple):
    """One answer of a source.

    Attributes
    ----------
    entries
        Papers as the source tells them.
    cursor
        JSON from which the source goes on after this page; None at the end.
    expected
        How many entries the source says there are in all, None where it does not.
    left_out
        Entries that the source lists without their content.
    """

    entries: list[dict[str, Any]]
    cursor: Any
    expected: int | None = None
    left_out: int = 0


class Source(NamedTuple):
    """What is asked of whom.

    Attributes
    ----------
    query
        JSON that says all of it; a file is gone on with for the same query only.
    pages
        From a cursor (None: from the beginning) to the pages that follow.
    key
        Key that tells entries apart; None where each is one of its own.
    """

    query: Mapping[str, Any]
    pages: Callable[[Any], Iterator[Page]]
    key: str | None = "id"


@dataclass(slots=True)
class Fetched:
    """How far a fetch has come: entries written, repeated and without content, pages, and what the source promised."""

    fetched: int = 0
    duplicates: int = 0
    left_out: int = 0
    pages: int = 0
    expected: int | None = None

    def __str__(self) -> str:
        expected = "" if self.expected is None else f", expected {self.expected}"
        counts = f"{self.duplicates} duplicates, {self.left_out} without content"
        return f"fetched {self.fetched}, {counts}, {self.pages} pages{expected}"

    @property
    def complete(self) -> bool:
        """Whether the counts are those that the source promised, repeated entries counted or not."""
        once = self.fetched + self.left_out
        return self.expected in {None, once, once + self.duplicates}


@dataclass(slots=True)
class _Left:
    """Where a fetch stands: counts, from where the source goes on, and how many bytes of the file are whole pages."""

    counts: Fetched
    cursor: Any = None
    size: int = 0


def collect(source: Source, out: Path, *, restart: bool = False, force: bool = False) -> Fetched:
    """Write all entries of a source into ``out``, each once, and return the counts.

    Until the end they are in ``OUT.part``, and in ``OUT.part.json`` how far it has come, written after each page; the
    same call goes on from there.

    Parameters
    ----------
    restart
        Throw away what an earlier fetch has left.
    force
        Replace ``out``.

    Raises
    ------
    ArtifactError
        ``out`` exists (without ``force``), or what is left is of another query or damaged (without ``restart``).
    DataError
        The source cannot be reached, refuses, gives nonsense, or has nothing.
    """
    refuse_existing(out, force=force)
    part, state = out.with_name(f"{out.name}.part"), out.with_name(f"{out.name}.part.json")
    out.parent.mkdir(parents=True, exist_ok=True)
    if restart or not part.exists():
        _clear(part, state)
    elif not state.exists():
        raise ArtifactError("is in the way, and not of a fetch", where=part, remedy=_RESTART)
    left = _left(state, source.query)
    if not left.counts.pages:
        write_json(state, _state(source.query, left))
    try:
        with part.open("a+b") as stream:
            for _ in progress(_written(source, stream, left, state), "fetching", unit="pages"):
                write_json(state, _state(source.query, left))
    finally:
        if not left.counts.fetched:
            _clear(part, state)
    if not left.counts.fetched:
        raise DataError("the source has nothing that fits", remedy="check the name, the query and the dates")
    part.replace(out)
    state.unlink()
    if not left.counts.complete:
        _LOG.warning("%s: %s; the source may have changed meanwhile", out, left.counts)
    return left.counts


def _clear(*files: Path) -> None:
    for file in files:
        file.unlink(missing_ok=True)


def _state(query: Mapping[str, Any], left: _Left) -> dict[str, Any]:
    return {"query": query, **asdict(left)}


def _left(state: Path, query: Mapping[str, Any]) -> _Left:
    """Return how far an earlier fetch of this query has come."""
    if not state.exists():
        return _Left(Fetched())
    try:
        told = read_json(state)
        left = _Left(Fetched(**told["counts"]), told["cursor"], int(told["size"]))
        other = told["query"] != query
    except (ArtifactError, KeyError, TypeError, ValueError) as error:
        raise ArtifactError("is damaged", where=state, remedy=_RESTART) from error
    if other:
        raise ArtifactError(f"is of another fetch: {told['query']}", where=state, remedy=_RESTART)
    return left


def _written(source: Source, stream: BinaryIO, left: _Left, state: Path) -> Iterator[Page]:
    """Yield each page when its entries are on the disk and ``left`` tells of it."""
    if stream.seek(0, os.SEEK_END) < left.size:
        raise ArtifactError("tells of more than there is", where=state, remedy=_RESTART)
    stream.truncate(left.size)  # what was written after the last whole page
    seen = _seen(stream, source.key, state)
    if left.counts.pages:
        _LOG.info("going on after %d entries", left.counts.fetched)
        if left.cursor is None:
            return
    for page in source.pages(left.cursor):
        _add(stream, page, left.counts, seen, source.key)
        left.cursor, left.size = page.cursor, stream.tell()
        yield page


def _seen(stream: BinaryIO, key: str | None, state: Path) -> set[str]:
    """Return the keys of the entries that are written already."""
    stream.seek(0)
    try:
        names = (_name(json.loads(line), key) for line in stream)
        return {name for name in names if name is not None} if key is not None else set()
    except (ValueError, AttributeError) as error:
        raise ArtifactError("tells of something else than there is", where=state, remedy=_RESTART) from error


def _name(entry: dict[str, Any], key: str | None) -> str | None:
    """Return what tells the entry apart, None where nothing does."""
    return str(entry[key]) if key is not None and entry.get(key) else None


def _add(stream: BinaryIO, page: Page, counts: Fetched, seen: set[str], key: str | None) -> None:
    for entry in page.entries:
        name = _name(entry, key)
        if name is not None and name in seen:
            counts.duplicates += 1
            continue
        seen.update(filter(None, [name]))
        counts.fetched += 1
        stream.write(to_json(entry).encode() + b"\n")
    counts.left_out += page.left_out
    counts.pages += 1
    counts.expected = page.expected if counts.expected is None else counts.expected
    stream.flush()
    os.fsync(stream.fileno())
