"""YAML: a list of papers, an item at a time, and the fields above a note (front matter)."""

import io
import re
from collections.abc import Iterable, Iterator, Mapping

from abstag.readers._fields import Place, item
from abstag.readers._json_fields import fields, flattened
from abstag.readers._json_papers import Found
from abstag.readers._mapping import refuse_mapping
from abstag.records import Record, Reject

NAME = "yaml"
SUFFIXES = (".yaml", ".yml")

_LONGEST = 1 << 20
_KEY = r"[\"']?[A-Za-z][\w -]{0,40}[\"']?:(?:\s|\Z)"
_ABSTRACT = r"[\"']?(?i:abstract)[\"']?:\s"
_NOTE = re.compile(rf"[\s\ufeff]*+---[ \t]*\r?\n(?=(?:(?!---)[^\n]*\n){{0,300}}?{_ABSTRACT})(?=(?:{_KEY}|#|\s))")
_LIST = re.compile(rf"[\s\ufeff]*+(?:(?:---|#[^\n]*|[\w-]{{1,40}}:\s*)\r?\n\s*)*+- +{_KEY}")
_IN_LIST = re.compile(rf"\n {{1,12}}{_ABSTRACT}|\n {{0,10}}- +{_ABSTRACT}")
_ITEM = re.compile(rf"( *)-(?= +{_KEY})")
_EMPTY = ("null", "~", "")


def sniff(head: str, mapping: Mapping[str, str]) -> int:
    """Return 2 for a list of objects, or for front matter, that has an abstract, if none is mapped."""
    if mapping:
        return 0
    return 2 if _NOTE.match(head) or (_LIST.match(head) and _IN_LIST.search(head)) else 0


def read(stream: io.BufferedReader, file: str, mapping: Mapping[str, str]) -> Iterator[Record | Reject]:
    """Yield one item an element of the list, or one of a note; what the note says itself is left out.

    An item that is no YAML, refers to another or has more than a million characters is a reject "bad YAML".

    Raises
    ------
    DataError
        There is a mapping.
    """
    refuse_mapping(mapping, file, NAME)
    is_note = _NOTE.match(stream.peek().decode(errors="ignore")) is not None
    lines = enumerate(io.TextIOWrapper(stream, encoding="utf-8"), 1)
    for n, (line, text) in enumerate(_note(lines) if is_note else _items(lines), 1):
        place, value = Place(file, n, line), _loaded(text)
        if isinstance(value, str):
            yield Reject(*place, "bad YAML", value[:200])
        else:
            yield item(fields(flattened(value), Found(value), {}), place)


def _note(lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    held, begun = list[str](), 0
    for number, line in lines:
        if line.rstrip() in ("---", "...") and begun:
            break
        if begun:
            held.append(line)
        begun = begun or (number if line.strip("\ufeff \r\n") == "---" else 0)
    yield begun, "".join(held)


def _items(lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """Yield the line and the text of each item, its dash a blank; what is too long is cut just above the limit."""
    start, indent, held, size = 0, None, list[str](), 0
    for number, line in lines:
        found = _ITEM.match(line)
        if found and found[1] == (found[1] if indent is None else indent):
            if held:
                yield start, "".join(held)
            start, indent, held, size = number, found[1], [], 0
        if indent is not None and size <= _LONGEST:
            text = f"{indent} {line[found.end() :]}" if number == start and found else line
            held.append(text[: _LONGEST + 1])
            size += len(text)
    if held:
        yield start, "".join(held)


def _loaded(text: str) -> dict[str, object] | str:
    """Return the object that a text is, every value in it a string, or why it is none."""
    import yaml

    if len(text) > _LONGEST:
        return f"more than {_LONGEST:,} characters in one item"
    try:
        if "*" in text and any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text, yaml.BaseLoader)):
            return "refers to another value (*name)"
        value = yaml.load(text, yaml.BaseLoader)  # noqa: S506  # it makes strings, lists and dicts alone
    except (yaml.YAMLError, RecursionError) as error:
        return " ".join(str(error).split())
    if not isinstance(value, dict):
        return "not an object"
    return {str(key): None if one in _EMPTY else one for key, one in value.items()}
