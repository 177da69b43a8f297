"""JSON and JSON Lines: papers wherever they stand (see `_json_papers`), with any export's fields (`_json_fields`)."""

import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import chain
from typing import Any

from abstag.errors import DataError
from abstag.readers._fields import Place, item
from abstag.readers._json_fields import fields, flattened, kind, lifted
from abstag.readers._json_papers import ABSTRACTS, Found, folded, papers
from abstag.records import Record, Reject

NAME = "json"
SUFFIXES = (".json", ".jsonl", ".ndjson", ".js")

_PREFIX = re.compile(  # a guard against inclusion, a script's assignment or call
    r"""\s*(?:\)\]\}'?,?|(?:export\s+)?(?:default\b|(?:var|let|const)\s+[\w$]{1,80}\s*=|[\w$.\[\]"']{1,80}\s*[=(]))\s*"""
    r"(?=[\[{])"
)
_OPENING = re.compile(r'\{\s*["}]|\[\s*(?:[{"\]]|\[\s*[{\[]|null|\d+\s*,)')
_LINE = re.compile(r'^\{".*\}\s*$', re.MULTILINE)
_CONSTANT = re.compile(rb'((?<!\\)"\s{0,4}:\s{0,4})(?:NaN|-?Infinity)(?=\s{0,8}[,}])')
_HIGH, _LOW = (rb"\\u[dD][%b][0-9a-fA-F]{2}" % digits for digits in (b"89abAB", b"c-fC-F"))
_PAIR = re.compile(_HIGH + _LOW)
_LONE = re.compile(rb"(%b|\\[^u])|%b|%b(?=[^\\]|\\(?:[^u]|u(?:[^dD]|[dD][^c-fC-F])))" % (_PAIR.pattern, _LOW, _HIGH))
_TAIL, _SCRIPT_END = 64, re.compile(rb"\s*\)?\s*;?\s*\Z")
_JSON = json.JSONDecoder(strict=False, parse_constant=lambda _: None)
_CHUNK, _EASY, _LONGEST = 1 << 16, 1 << 20, 1 << 24
_SHOWN = 30
_STEP = re.compile(r"[^.\[\]]+|\[\d{1,9}\]")


def sniff(head: str, mapping: Mapping[str, str]) -> int:  # noqa: ARG001
    """Return 2 when the text opens as JSON, be it in a script, 1 when only some later line is an object."""
    prefix = _PREFIX.match(head)
    return 2 if _OPENING.match(head[prefix.end() if prefix else 0 :].lstrip()) else int(_LINE.search(head) is not None)


def read(stream: io.BufferedReader, file: str, mapping: Mapping[str, str]) -> Iterator[Record | Reject]:
    """Yield one item for each paper, in constant memory; ``line`` is told where values stand one a line.

    What is no paper by its own word (a workshop, a break) is a reject. So is a line that is not JSON. After a defect
    inside a value over several lines, one reject stands for the rest of the file.

    Raises
    ------
    DataError
        At the end: no record has a mapped key.
    """
    unseen, keys = set(mapping), list[str]()
    abstracts = frozenset((*ABSTRACTS, *map(folded, _STEP.findall(mapping.get("abstract", ""))[:1])))
    for n, (line, found) in enumerate(_rows(_found(stream, abstracts)), 1):
        place, value = Place(file, n, line), found.value
        if isinstance(value, Exception):
            yield Reject(*place, "bad JSON", " ".join(str(value).split())[:200])
        elif not isinstance(value, dict):
            yield Reject(*place, "not an object", type(value).__name__)
        else:
            mapped = {field: one for field, key in mapping.items() for one in _at(value, key)}
            unseen, keys = unseen - mapped.keys(), keys or list(_keys(value))
            yield _item(value, found, dict.fromkeys(mapping) | mapped, place)
    for field in sorted(unseen) if keys else ():
        what = f"--map {field}: no record has the key {mapping[field]!r}"
        raise DataError(what, where=file, remedy=f"the keys of the first are: {', '.join(keys[:_SHOWN])}")


def _rows(values: Iterable[tuple[int | None, Found]]) -> Iterator[tuple[int | None, Found]]:
    """Yield what is found, a paper each where an object holds columns side by side, as pandas writes them."""
    for line, found in values:
        rows = _spread(found.value) if isinstance(found.value, dict) else None
        yield from [(line, found)] if rows is None else ((line, Found(row)) for row in rows)


def _spread(value: Mapping[str, Any]) -> list[dict[str, object]] | None:
    """Return the rows of an object of columns: lists or objects keyed by row number, all of one length, or "split"."""
    columns = list(value.values())
    if value.keys() == {"columns", "index", "data"}:
        names, rows = value["columns"], value["data"]
        is_split = isinstance(names, list) and isinstance(rows, list) and all(isinstance(row, list) for row in rows)
        return [dict(zip(map(str, names), row, strict=False)) for row in rows] if is_split and rows else None
    if len(columns) > 1 and all(isinstance(one, dict) and all(map(str.isdecimal, one)) for one in columns):
        columns = [list(one.values()) for one in columns]
    if len(columns) < 2 or not all(isinstance(one, list) for one in columns):
        return None
    counts = {len(one) for one in columns}
    is_table = len(counts) == 1 and max(counts) > 1
    return [dict(zip(value, row, strict=True)) for row in zip(*columns, strict=True)] if is_table else None


def _item(paper: Mapping[str, object], found: Found, mapped: Mapping[str, object], place: Place) -> Record | Reject:
    flat = flattened(paper)
    result, other = item(fields(flat, found, mapped), place), kind(flat)
    return Reject(*place, "not a paper", other[:100], result.title, result.id) if other else result


def _keys(paper: Mapping[str, object]) -> Iterator[str]:
    for key, value in paper.items():
        yield key[:40]
        if isinstance(value, dict):
            yield from (f"{key}.{inner}"[:40] for inner in value)


def _at(value: object, path: str) -> list[object]:
    """Return, alone in a list, what stands at a key such as ``content.authors[0].name``; the list is empty for none."""
    if isinstance(value, dict) and path in value:
        return [lifted(value[path])]
    steps = _STEP.findall(path)
    for step in steps:
        number = int(step[1:-1]) if step[0] == "[" else None
        if isinstance(value, list) and number is not None and number < len(value):
            value = value[number]
        elif isinstance(value, dict) and number is None and (key := _key(value, step)) is not None:
            value = value[key]
        else:
            return []
    return [lifted(value)] if steps else []


def _key(paper: Mapping[str, object], name: str) -> str | None:
    folded = name.casefold()
    return name if name in paper else next((key for key in paper if key.casefold() == folded), None)


def _found(stream: io.BufferedReader, abstracts: frozenset[str]) -> Iterator[tuple[int | None, Found]]:
    """Yield what stands at papers' places with its line, None where values run over lines."""
    prefix = _PREFIX.match(stream.peek().decode(errors="ignore"))
    before = stream.read(len(prefix[0].encode())) if prefix else b""
    first, limit = b"", _CHUNK if stream.peek(1).lstrip()[:1] == b"[" else _LONGEST
    while not first.strip() and (line := stream.readline(limit)):
        before, first = before + first, line
    if _is_line(first.strip(), stream.peek(1).lstrip()):
        lines = chain([first if first.endswith(b"\n") else first + stream.readline()], stream)
        for number, line in enumerate(lines, 1 + before.count(b"\n")):
            yield from ((number, found) for found in _line(line, abstracts))
    else:
        chunks = chain(_slices(first), iter(partial(stream.read, _CHUNK), b""))
        yield from (
            (None, found) for found in _parsed(_cleaned(chunks, is_script=prefix is not None), abstracts, "file")
        )


def _is_line(first: bytes, after: bytes) -> bool:
    """Return whether values stand one a line, from the first line and the start of the next."""
    first = first.rstrip(b",")
    if first[:1] == b"[":
        return first[-1:] == b"]" and after[:1] == b"["
    if first[:1] != b"{":
        return True
    if first[-1:] == b"}":
        return after[:1] in (b"", b"{") or len(first) > _EASY or not isinstance(_loaded(first), Exception)
    return first[-1:] not in b"{[," and after[:1] == b"{"


def _line(line: bytes, abstracts: frozenset[str]) -> Iterator[Found]:
    """Yield what one line holds; most are a paper, which the standard library reads faster."""
    line = line.strip().removesuffix(b",")
    if not line:
        return
    structured = line[:1] in (b"{", b"[")
    value = _loaded(line) if len(line) <= _EASY or not structured else None
    if not structured or (isinstance(value, dict) and not abstracts.isdisjoint(map(folded, value))):
        yield Found(value)
    else:
        yield from _parsed(_cleaned(_slices(line)), abstracts, "line")


def _slices(line: bytes) -> Iterator[bytes]:
    return (line[at : at + _CHUNK] for at in range(0, len(line), _CHUNK))


def _loaded(line: bytes) -> object:
    try:
        return _JSON.decode(line.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        return error


def _parsed(chunks: Iterable[bytes], abstracts: frozenset[str], what: str) -> Iterator[Found]:
    import ijson

    try:
        yield from papers(_events(chunks), abstracts)
    except ijson.JSONError as error:
        yield Found(ValueError(f"the rest of the {what} is unreadable: {str(error).splitlines()[0]}"))


def _events(chunks: Iterable[bytes]) -> Iterator[tuple[str, Any]]:
    """Yield ijson's events; chunks double while none come, since the parser copies a text anew with each."""
    import ijson

    # Not `ijson.items`: memory grows with the square of the depth. Not without use_float: ijson 3.6.0's C back end dies
    # of a segmentation fault on an integer of 5,000 digits.
    events = ijson.sendable_list()
    parser = ijson.basic_parse_coro(events, use_float=True, multiple_values=True)
    held, size, wanted = list[bytes](), 0, 0
    for chunk in chain(filter(None, chunks), [None]):
        held, size = [*held, chunk or b""], size + len(chunk or b"")
        if chunk and size < wanted:
            continue
        damage = None
        try:
            if size:  # no bytes would be the end
                parser.send(b"".join(held))
            if chunk is None:
                parser.close()
        except ijson.JSONError as error:
            damage = error
        yield from events
        wanted = 0 if events else 2 * size
        held, size = [], 0
        events.clear()
        if damage:
            raise damage


def _cleaned(chunks: Iterable[bytes], *, is_script: bool = False) -> Iterator[bytes]:
    """Yield the bytes with null for NaN and infinities as values in objects, and without the end of a script.

    Half a surrogate pair becomes U+FFFD, since ijson would make no UTF-8 of it.
    """
    held = b""
    for chunk in chunks:
        held = _CONSTANT.sub(rb"\1null", held + chunk)
        cut = max(0, len(held) - _TAIL)
        if b"\\ud" in held or b"\\uD" in held:
            held = _LONE.sub(lambda found: found[1] or rb"\ufffd", held)
            cut = next((pair.start() for pair in _PAIR.finditer(held, max(0, cut - 11), cut + 11)), cut)
            before = held[max(0, cut - _TAIL) : cut]
            cut -= (len(before) - len(before.rstrip(b"\\"))) % 2
        yield held[:cut]
        held = held[cut:]
    yield _SCRIPT_END.sub(b"", held) if is_script else held
