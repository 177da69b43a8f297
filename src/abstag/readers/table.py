"""Comma-, tab- or semicolon-separated values with a header line."""

import csv
from collections.abc import Iterator
from typing import TextIO

from abstag.errors import DataError
from abstag.readers._fields import FIELDS, build
from abstag.records import Record, Reject

NAME = "table"
SUFFIXES = (".csv", ".tsv", ".tab")

_DELIMITERS = ",\t;"
_MAX_CELL = 100_000_000


def sniff(head: str) -> bool:
    """Whether the first line names two or more columns, one of which may hold a title or an abstract."""
    names = _header(head.lstrip().partition("\n")[0])
    return len(names) > 1 and bool({*FIELDS["abstract"], *FIELDS["title"]} & set(names))


def read(stream: TextIO, file: str) -> Iterator[Record | Reject]:
    """Yield the records of a table; raises DataError when no column holds abstracts."""
    limit = csv.field_size_limit(_MAX_CELL)
    try:
        yield from _read(stream, file)
    except csv.Error as error:
        raise DataError(f"not a table: {error}", where=file) from error
    finally:
        csv.field_size_limit(limit)


def _read(stream: TextIO, file: str) -> Iterator[Record | Reject]:
    first = next((line for line in stream if line.strip()), "")
    names, delimiter = _header(first), _delimiter(first)
    if not set(FIELDS["abstract"]) & set(names):
        raise DataError(
            f"no column holds abstracts among {', '.join(names)}", where=file, remedy="name one of them 'abstract'"
        )
    rows, n, line = csv.reader(stream, delimiter=delimiter), 0, 2
    for row in rows:
        start, line = line, rows.line_num + 2
        if not any(cell.strip() for cell in row):
            continue
        n += 1
        if len(row) != len(names):
            yield Reject(file, n, start, "ragged row", f"{len(row)} cells under {len(names)} columns")
        else:
            yield build(dict(zip(names, row, strict=True)), file=file, n=n, line=start)


def _header(line: str) -> list[str]:
    return [name.strip().lower() for name in next(csv.reader([line.strip("\r\n")], delimiter=_delimiter(line)), [])]


def _delimiter(line: str) -> str:
    return max(_DELIMITERS, key=line.count)
