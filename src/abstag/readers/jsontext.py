"""JSON: an array, an object that holds one, or an object a line; shapes of OpenReview, arXiv, paper lists and ours."""

import io
import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import NamedTuple

from abstag.errors import DataError
from abstag.readers._fields import Place, item, text, year
from abstag.records import Record, Reject

NAME = "json"
SUFFIXES = (".json", ".jsonl", ".ndjson")

_OPENING = re.compile(r'\{\s*["}]|\[\s*(?:[{"\]]|null|\d+\s*,)')
_LINE = re.compile(r'^\{".*\}\s*$', re.MULTILINE)
_STARTS, _ENDS = ("start_map", "start_array"), ("end_map", "end_array")
_LISTS = frozenset(("data", "papers", "notes", "results", "records", "items", "entries"))
_PAPER = frozenset(("abstract", "content"))
_IDS = ("id", "forum", "paper_id", "paperid", "corpusid")
_VENUES = ("venue", "conference", "booktitle", "journal")
_DEPTH, _SHOWN = 100, 30
_STEP = re.compile(r"[^.\[\]]+|\[\d{1,9}\]")


class Layout(NamedTuple):
    """Where papers stand: ``level`` containers deep, inside the top-level key ``key`` if not None."""

    level: int
    key: str | None = None


def sniff(head: str, mapping: Mapping[str, str]) -> int:  # noqa: ARG001
    """Return 2 when the text opens as JSON, 1 when only some later line is an object."""
    return 2 if _OPENING.match(head.lstrip()) else int(_LINE.search(head) is not None)


def read(stream: io.BufferedReader, file: str, mapping: Mapping[str, str]) -> Iterator[Record | Reject]:
    """Yield one item for each element or line, in constant memory.

    A line that is not JSON is a reject. After a defect inside an array, one reject stands for the rest of the file.

    Raises
    ------
    DataError
        At the end: no record has a mapped key.
    """
    layout, unseen, keys = _layout(stream.peek()), set(mapping), list[str]()
    found = _lines(stream) if layout is None else _elements(stream, layout)
    for n, (line, value) in enumerate(found, 1):
        place = Place(file, n, line)
        if isinstance(value, Exception):
            yield Reject(*place, "bad JSON", " ".join(str(value).split())[:200])
        elif not isinstance(value, dict):
            yield Reject(*place, "not an object", type(value).__name__)
        else:
            mapped = {field: one for field, key in mapping.items() for one in _at(value, key)}
            unseen, keys = unseen - mapped.keys(), keys or list(_keys(value))
            yield item(_fields(value, dict.fromkeys(mapping) | mapped), place)
    for field in sorted(unseen) if keys else ():
        what = f"--map {field}: no record has the key {mapping[field]!r}"
        raise DataError(what, where=file, remedy=f"the keys of the first are: {', '.join(keys[:_SHOWN])}")


def _keys(paper: Mapping[str, object]) -> Iterator[str]:
    for key, value in paper.items():
        yield key[:40]
        if isinstance(value, dict):
            yield from (f"{key}.{inner}"[:40] for inner in value)


def _at(value: object, path: str) -> list[object]:
    """Return, alone in a list, what stands at a key such as ``content.authors[0].name``; the list is empty for none."""
    if isinstance(value, dict) and path in value:
        return [_lifted(value[path])]
    steps = _STEP.findall(path)
    for step in steps:
        number = int(step[1:-1]) if step[0] == "[" else None
        if isinstance(value, list) and number is not None and number < len(value):
            value = value[number]
        elif isinstance(value, dict) and number is None and (key := _key(value, step)) is not None:
            value = value[key]
        else:
            return []
    return [_lifted(value)] if steps else []


def _key(paper: Mapping[str, object], name: str) -> str | None:
    folded = name.casefold()
    return name if name in paper else next((key for key in paper if key.casefold() == folded), None)


def _lifted(value: object) -> object:
    return value["value"] if isinstance(value, dict) and "value" in value else value


def _fields(paper: Mapping[str, object], mapped: dict[str, object]) -> dict[str, object]:
    """Lift OpenReview's ``content`` and ``{"value": …}``, and find id, venue and year under their other names."""
    content = paper.get("content")
    lifted = (content if isinstance(content, dict) else {}) | {k: v for k, v in paper.items() if k != "content"}
    fields = {k.casefold(): _lifted(v) for k, v in lifted.items()}
    venue = next((found for name in _VENUES if (found := text(fields.get(name)))), None)
    snapshot = fields.get("categories") and (fields.get("versions") or fields.get("update_date"))
    if venue is None and snapshot:
        venue = "arXiv"
    venue = text(mapped["venue"]) if "venue" in mapped else venue
    fields["id"] = next((fields[name] for name in _IDS if fields.get(name) not in (None, "")), None)
    return fields | {"venue": venue, "year": year(fields.get("year"), venue) or _dated(fields)} | mapped


def _dated(fields: Mapping[str, object]) -> int | None:
    """Return the year of the first version, the last update or, in milliseconds, of creation."""
    versions = fields.get("versions")
    first = versions[0] if isinstance(versions, list) and versions else None
    created = first.get("created") if isinstance(first, dict) else None
    found = year(created, fields.get("published"), fields.get("update_date"))
    moment = fields.get("cdate")
    if found is None and isinstance(moment, int) and 0 < moment < 4e12:
        return datetime.fromtimestamp(moment / 1000, UTC).year
    return found


def _lines(stream: io.BufferedReader) -> Iterator[tuple[int, object]]:
    for number, line in enumerate(stream, 1):
        if not line.isspace():
            try:
                yield number, json.loads(line.decode(), strict=False, parse_constant=_refuse)
            except (ValueError, RecursionError) as error:
                yield number, error


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def _layout(head: bytes) -> Layout | None:
    """Return where the papers stand, None when they stand one a line."""
    opening = head.lstrip()
    if opening.startswith(b"["):
        return Layout(1)
    if not opening.startswith(b"{"):
        return None
    key = _list_key(head)
    if key is not None:
        return Layout(2, key)
    lines = [line.strip() for line in opening.splitlines()]
    spread = lines[0][-1:] in b"{[," and len(lines) > 1 and not lines[1].startswith(b"{")
    return Layout(0) if spread else None


def _list_key(head: bytes) -> str | None:
    """Return the key of the first object that holds a list of papers; None when the object is a paper itself."""
    import ijson

    depth, key = 0, None
    try:
        for event, value in ijson.basic_parse(io.BytesIO(head), use_float=True):
            depth -= event in _ENDS
            if event == "map_key" and depth == 1:
                key = str(value)
            if (depth == 0 and event == "end_map") or (depth == 1 and event == "map_key" and key in _PAPER):
                return None
            if depth == 2 and event == "start_map" and key in _LISTS:
                return key
            depth += event in _STARTS
    except ijson.JSONError:  # the head ends in the middle, or is damaged: the reading proper will say
        pass
    return None


def _elements(stream: io.BufferedReader, layout: Layout) -> Iterator[tuple[None, object]]:
    import ijson

    # Not `ijson.items`: memory grows with the square of the depth. Not without use_float: ijson 3.6.0's C back end dies
    # of a segmentation fault on an integer of 5,000 digits.
    events = ijson.basic_parse(stream, use_float=True, multiple_values=True, buf_size=1 << 14)
    try:
        for value in _built(_inside(events, layout)):
            yield None, value
    except ijson.JSONError as error:
        yield None, ValueError(f"the rest of the file is unreadable: {str(error).splitlines()[0]}")


def _inside(events: Iterator[tuple[str, object]], layout: Layout) -> Iterator[tuple[int, str, object]]:
    """Yield depth below the element, event and value of all that belongs to elements."""
    depth, key = 0, None
    for event, value in events:
        depth -= event in _ENDS
        if event == "map_key" and depth == 1:
            key = value
        below = depth - layout.level
        closes_list = below < 0
        if not closes_list and (layout.key is None or key == layout.key) and not (below == 0 and event == "map_key"):
            yield below, event, value
        depth += event in _STARTS


def _built(events: Iterator[tuple[int, str, object]]) -> Iterator[object]:
    """Put elements together; one nested too deep becomes a RecursionError."""
    from ijson.common import ObjectBuilder

    builder, deep = ObjectBuilder(), False
    for below, event, value in events:
        deep = deep or below > _DEPTH
        if below <= _DEPTH:
            builder.event(event, value)
        if below == 0 and event not in _STARTS:
            yield RecursionError(f"nested more than {_DEPTH} deep") if deep else builder.value
            builder, deep = ObjectBuilder(), False
