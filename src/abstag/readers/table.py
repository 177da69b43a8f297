"""CSV and TSV with a header: comma, tab or semicolon, quoted cells over several lines."""

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from abstag.errors import DataError
from abstag.readers._fields import Fault, Place, item
from abstag.records import Record, Reject

NAME = "table"
SUFFIXES = (".csv", ".tsv", ".tab")

_DELIMITERS = ",\t;"
_CELL_LIMIT = 2**31 - 1
_COLUMNS: Mapping[str, tuple[str, ...]] = {  # our field: header names, the first that is there counts
    "abstract": ("abstract", "abstract note", "abstract text", "ab", "summary"),
    "title": ("title", "article title", "paper title", "document title", "ti"),
    "id": ("ut", "id", "paper id", "paperid", "forum", "corpusid", "eid", "key"),  # Web of Science: "ID" is keywords
    "venue": ("venue", "conference", "booktitle", "publication title", "source title", "journal", "so"),
    "year": ("year", "publication year", "pub year", "py", "date"),
    "keywords": ("keywords", "author keywords", "manual tags", "de"),
    "primary_area": ("primary area",),
    "topic": ("topic",),
    "part": ("part",),
    "areas": ("areas",),
    "judged": ("judged",),
    "sure": ("sure",),
}
_KNOWN = frozenset(name for names in _COLUMNS.values() for name in names)


class Header(NamedTuple):
    """The header row: its delimiter, its cells as written, and the column number of each field of ours."""

    delimiter: str
    cells: Sequence[str]
    columns: Mapping[str, int]


def sniff(head: str) -> int:
    """Return 2 for a header with an abstract among several columns, 1 for some other column that we know."""
    header = _header(head)
    if len(header.cells) == 1:
        return int("abstract" in header.columns)
    return 2 if "abstract" in header.columns else int(bool(header.columns))


def read(stream: io.BufferedReader, file: str) -> Iterator[Record | Reject]:
    """Yield one item a row that is not empty; an empty ``areas`` cell is unlabelled, "none" is none of the areas.

    Raises
    ------
    DataError
        There is no abstract column.
    """
    header = _header(stream.peek().decode(errors="ignore"))
    if "abstract" not in header.columns:
        seen = ", ".join(cell.strip()[:40] for cell in header.cells[:20])
        raise DataError(
            f"no abstract column among: {seen}",
            where=file,
            remedy="rename the one that holds the abstracts to abstract",
        )
    rows = _rows(io.TextIOWrapper(stream, encoding="utf-8", newline=""), header.delimiter)
    next(rows)
    for n, (line, row) in enumerate(rows, 1):
        place = Place(file, n, line)
        if isinstance(row, Fault):
            yield Reject(*place, *row)
        elif len(row) != len(header.cells):
            yield Reject(*place, "ragged row", f"{len(row)} cells, the header has {len(header.cells)}")
        else:
            yield item({field: row[column] for field, column in header.columns.items()}, place)


def _header(head: str) -> Header:
    """Read the first line that is not blank with the delimiter that gives most known columns, then most cells."""
    line = next((line for line in head.splitlines() if line.strip()), "")
    headers = []
    for delimiter in _DELIMITERS:
        cells = next((row for _, row in _rows(io.StringIO(line), delimiter) if not isinstance(row, Fault)), [line])
        headers.append(Header(delimiter, cells, _columns(cells)))
    return max(headers, key=lambda header: (len(header.columns), len(header.cells)))


def _columns(cells: Sequence[str]) -> dict[str, int]:
    names = [" ".join(cell.casefold().replace("_", " ").replace("-", " ").split()) for cell in cells]
    found = {field: [names.index(name) for name in known if name in names] for field, known in _COLUMNS.items()}
    return {field: columns[0] for field, columns in found.items() if columns}


def _rows(lines: io.TextIOBase, delimiter: str) -> Iterator[tuple[int, list[str] | Fault]]:
    """Yield physical line and cells of the rows that are not empty, a fault for one that cannot be read."""
    rows = csv.reader(lines, delimiter=delimiter, strict=True)
    while True:
        line = rows.line_num + 1
        usual = csv.field_size_limit(_CELL_LIMIT)  # global in `csv`: raised for one row at a time
        try:
            row = next(rows, None)
        except csv.Error as error:
            yield line, Fault("bad row", str(error))
            continue
        finally:
            csv.field_size_limit(usual)
        if row is None:
            return
        if any(cell.strip() for cell in row):
            yield line, row
