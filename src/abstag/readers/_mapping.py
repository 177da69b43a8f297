"""``--map``: which column or key of a dump holds which field of ours."""

import re
from collections.abc import Iterable, Mapping
from itertools import chain

from abstag.errors import DataError, near

MAPPED = ("title", "abstract", "id", "venue", "year", "keywords", "areas", "part", "primary_area", "topic")

_PART = re.compile(r'(?:[^",]|"(?:[^"]|"")*")*+')
_QUOTED = re.compile(r'\s*"((?:[^"]|"")*)"\s*')


def parse_mapping(texts: Iterable[str]) -> dict[str, str]:
    """Return field → column or key of texts like ``title=T,abstract=A``; a name with commas is quoted as in CSV.

    Raises
    ------
    DataError
        Not of this form, an unknown field, one given twice, or no name.
    """
    mapping: dict[str, str] = {}
    for part in chain.from_iterable(map(_parts, texts)):
        field, sign, name = _unquoted(part).partition("=")
        field, name = field.strip(), _unquoted(name).strip()
        if not sign or not field:
            raise _malformed(part)
        if field not in MAPPED:
            raise DataError(f"there is no field {field!r}", where="--map", remedy=near(field, MAPPED))
        if field in mapping:
            raise DataError(f"{field} is given twice", where="--map", remedy="name one column or key for each field")
        if not name:
            raise DataError(f"{field} has no name", where="--map", remedy=f"write {field}=NAME of the column or key")
        mapping[field] = name
    return mapping


def refuse_mapping(mapping: Mapping[str, str], file: str, format: str) -> None:  # noqa: A002
    """Raise DataError if there is a mapping: the format has no fields with names."""
    if mapping:
        raise DataError(
            f"--map names columns or keys, the format {format} has none", where=file, remedy="leave --map out"
        )


def _parts(text: str) -> list[str]:
    parts, start = [], 0
    while start <= len(text):
        end = _PART.match(text, start).end()  # type: ignore[union-attr]  # it matches the empty string, too
        if text[end : end + 1] not in ("", ","):
            raise _malformed(text[start:])
        parts.append(text[start:end])
        start = end + 1
    return parts


def _unquoted(text: str) -> str:
    quoted = _QUOTED.fullmatch(text)
    return quoted[1].replace('""', '"') if quoted else text


def _malformed(part: str) -> DataError:
    remedy = "write FIELD=NAME,FIELD=NAME, and a name with commas in double quotes"
    return DataError(f"cannot be read: {part[:60]!r}", where="--map", remedy=remedy)
