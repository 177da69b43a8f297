"""CSV and TSV with a header: comma, tab or semicolon, quoted cells over several lines."""

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from abstag.abstracts import Fault
from abstag.errors import DataError
from abstag.readers._fields import Place, columns, item
from abstag.records import Record, Reject

NAME = "table"
SUFFIXES = (".csv", ".tsv", ".tab")

_DELIMITERS = ",\t;"
_CELL_LIMIT = 2**31 - 1


class Header(NamedTuple):
    """The header row: its delimiter, its cells as written, and the column number of each field of ours."""

    delimiter: str
    cells: Sequence[str]
    columns: Mapping[str, int]


def sniff(head: str, mapping: Mapping[str, str]) -> int:
    """Return 2 for a mapped column or, among several, an abstract; 1 for another one that we know or may be mapped."""
    header = _header(head, mapping)
    if _mapped(header.cells, mapping):
        return 2
    if len(header.cells) == 1:
        return int("abstract" in header.columns)
    return 2 if "abstract" in header.columns else int(bool(header.columns or mapping))


def read(stream: io.BufferedReader, file: str, mapping: Mapping[str, str]) -> Iterator[Record | Reject]:
    """Yield one item a row that is not empty; an empty ``areas`` cell is unlabelled, "none" is none of the areas.

    Raises
    ------
    DataError
        There is no abstract column, or a mapped column is not there.
    """
    header = _header(stream.peek().decode(errors="ignore"), mapping)
    _check(header, file, mapping)
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


def _check(header: Header, file: str, mapping: Mapping[str, str]) -> None:
    names = [cell.strip()[:40] for cell in header.cells[:20]]
    for field, name in mapping.items():
        if field not in _mapped(header.cells, {field: name}):
            what = f"--map {field}: there is no column {name!r}"
            raise DataError(what, where=file, remedy=f"the columns are: {str(names)[1:-1]}")
    if "abstract" not in header.columns:
        raise DataError(
            f"no abstract column among: {', '.join(names)}",
            where=file,
            remedy="rename the one that holds the abstracts to abstract, or name it with --map abstract=NAME",
        )


def _header(head: str, mapping: Mapping[str, str]) -> Header:
    """Read the first line that is not blank with the delimiter that gives most known columns, then most cells."""
    line = next((line for line in head.splitlines() if line.strip()), "")
    headers = []
    for delimiter in _DELIMITERS:
        cells = next((row for _, row in _rows(io.StringIO(line), delimiter) if not isinstance(row, Fault)), [line])
        headers.append(Header(delimiter, cells, columns(cells) | _mapped(cells, mapping)))
    return max(headers, key=lambda header: (len(header.columns), len(header.cells)))


def _mapped(cells: Sequence[str], mapping: Mapping[str, str]) -> dict[str, int]:
    """Return the numbers of the mapped columns that are there, small letters for capital ones if need be."""
    exact = [cell.strip() for cell in cells]
    folded = [cell.casefold() for cell in exact]
    found = {field: (name, exact) if name in exact else (name.casefold(), folded) for field, name in mapping.items()}
    return {field: names.index(name) for field, (name, names) in found.items() if name in names}


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
