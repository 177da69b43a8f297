"""JSON arrays, objects that hold one, and JSON Lines: paperlists, OpenReview 1 and 2, arXiv snapshot, our own."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, TextIO

from abstag.readers._fields import build, year_of
from abstag.records import Record, Reject

NAME = "json"
SUFFIXES = (".json", ".jsonl", ".ndjson")

_LISTS = ("data", "papers", "notes", "results", "records", "items")


def sniff(head: str) -> bool:
    """Whether the text begins with an object or an array of objects."""
    start = head.lstrip()
    return start[:1] == "{" or (start[:1] == "[" and start[1:].lstrip()[:1] in ("{", "]", ""))


def read(stream: TextIO, file: str) -> Iterator[Record | Reject]:
    """Yield the records of lines or of an array, whichever the dump holds, without loading it whole."""
    number, first = _first_line(stream)
    if _is_object(first):
        yield from _lines(stream, file, number, first)
    else:
        yield from _array(_Chained(first, stream), file)


def _first_line(stream: TextIO) -> tuple[int, str]:
    for number, line in enumerate(stream, start=1):
        if line.strip():
            return number, line
    return 1, ""


def _is_object(line: str) -> bool:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and not any(isinstance(value.get(name), list) for name in _LISTS)


def _lines(stream: TextIO, file: str, number: int, first: str) -> Iterator[Record | Reject]:
    n = 0
    for line_number, line in enumerate(_chain(first, stream), start=number):
        if not line.strip():
            continue
        n += 1
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
            yield Reject(file, n, line_number, "bad JSON", str(error))
            continue
        yield _record(value, file, n, line_number)


def _chain(first: str, stream: TextIO) -> Iterator[str]:
    yield first
    yield from stream


class _Chained:
    """A stream for ijson: the line already read, then the rest, as UTF-8 bytes."""

    def __init__(self, first: str, rest: TextIO) -> None:
        self._first, self._rest = first, rest

    def read(self, size: int = -1) -> bytes:
        if size == 0:
            return b""
        head, self._first = self._first, ""
        return (head or self._rest.read(size)).encode("utf-8", "surrogatepass")


def _array(stream: _Chained, file: str) -> Iterator[Record | Reject]:
    import ijson

    n = 0
    try:
        for value in _items(ijson.parse(stream, use_float=True), ijson.ObjectBuilder):
            n += 1
            yield _record(value, file, n, None)
    except (ijson.JSONError, RecursionError, ValueError) as error:
        yield Reject(file, n + 1, None, "bad JSON", f"what follows cannot be read: {error}")


def _items(events: Iterator[tuple[str, str, Any]], builder_class: Any) -> Iterator[Any]:
    """Yield the items of the outer array or of the first known list in the outer object; else the object itself."""
    places = {"item"} | {f"{name}.item" for name in _LISTS}
    builder, place, depth = None, "", 0
    for prefix, event, value in events:
        if builder is None and prefix in places and event not in ("end_array", "end_map"):
            builder, place, depth = builder_class(), prefix, 0
        if builder is None or not prefix.startswith(place):
            continue
        builder.event(event, value)
        depth += (event in ("start_map", "start_array")) - (event in ("end_map", "end_array"))
        if depth == 0 and prefix == place:
            yield builder.value
            builder = None


def _record(value: Any, file: str, n: int, line: int | None) -> Record | Reject:
    if not isinstance(value, Mapping):
        return Reject(file, n, line, "not an object", f"found {type(value).__name__}")
    return build(_fields(value), file=file, n=n, line=line)


def _fields(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return lower-case fields; OpenReview's ``content`` is unfolded, its ``value`` boxes opened."""
    content = value.get("content")
    merged = {**value, **content} if isinstance(content, Mapping) else dict(value)
    fields = {key.lower(): _unboxed(item) for key, item in merged.items()}
    for name in ("primary_area", "topic"):
        if isinstance(fields.get(name), str):
            fields[name] = [fields[name]]
    if "categories" in fields and not any(fields.get(name) for name in ("venue", "conference", "journal")):
        fields["venue"] = "arXiv"
        fields["year"] = fields.get("year") or year_of(fields.get("update_date"))
    return fields


def _unboxed(item: Any) -> Any:
    return item["value"] if isinstance(item, Mapping) and "value" in item else item
