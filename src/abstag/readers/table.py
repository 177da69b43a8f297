"""CSV and TSV: commas, tabs, semicolons or bars, quoted cells over several lines, lines above the header."""

import csv
import io
import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from itertools import count

from abstag.abstracts import Fault
from abstag.readers._rows import Header, Row, begin, check, fits, is_paper, records, tell
from abstag.records import Record, Reject

NAME = "table"
SUFFIXES = (".csv", ".tsv", ".tab", ".psv")

_DELIMITERS = ",\t;|"
_CELL_LIMIT = 2**31 - 1
_SPAN = 1 << 26  # characters of a row over several lines at most
_TRIES = 3  # times that a line is read again behind a quote that does not close
_WIDE = 100  # cells that make a table of a line, whatever their names
_CUT = 60_000  # characters from which the last row of a head may be cut off
_PIECES = 50  # lines that may belong to a row with bad quotes
_OTHER = re.compile(r'\s*(?:[{<@%]|\[\s*[{"\[]|\|)')
_RULE = re.compile(r"^[^\S\n]*+:?-{2,}+:?[^\S\n]*+\|", re.MULTILINE)
_SEPARATOR = re.compile(r'\s*"?sep=(.)', re.IGNORECASE)


class Lines(Iterator[str]):
    """Physical lines of which those behind a bad quote are read again, each a few times at most.

    Attributes
    ----------
    header
        The header once it is known: a row over several lines must fit it.
    number
        1-based number of the first line that was taken, as long as there is one.
    """

    def __init__(self, source: Iterable[str]) -> None:
        self._source, self._again = iter(source), deque[tuple[str, int]]()
        self._taken, self._size = list[tuple[str, int]](), 0
        self.header: Header | None = None
        self.number = 1

    def __next__(self) -> str:
        if self._size > _SPAN:
            raise csv.Error("a quote is not closed")
        line, tries = self._again.popleft() if self._again else (next(self._source), 0)
        if self._taken and tries >= _TRIES:
            self._again.appendleft((line, tries))
            raise csv.Error("a quote is not closed")
        self._taken.append((line, tries))
        self._size += len(line) if len(self._taken) > 1 else 0
        return line

    @property
    def taken(self) -> list[str]:
        """The lines taken since the last row was done."""
        return [line for line, _ in self._taken]

    def done(self, *, keep: int | None = None) -> None:
        """Go on behind the lines that were taken, or behind the first few of them."""
        keep = len(self._taken) if keep is None else keep
        self._again.extendleft((line, tries + 1) for line, tries in reversed(self._taken[keep:]))
        self.number += min(keep, len(self._taken))
        self._taken.clear()
        self._size = 0


def sniff(head: str, mapping: Mapping[str, str]) -> int:
    """Return 2 for a mapped column or, among several, an abstract; 1 for another one that we know or may be mapped.

    Below other lines a header counts only if it names an abstract and the row below fits it. Without a header it is 2
    for tabs, else 1, if the content tells which column holds the abstracts.
    """
    if _OTHER.match(head):
        return 0
    delimiter, header, rows = _layout(head, mapping)
    if not header.cells:
        return (1 + (delimiter == "\t")) * bool(header.columns)
    below, is_cut = next(rows, None), len(head) > _CUT
    first = next(number for number, line in enumerate(io.StringIO(head, newline=""), 1) if line.strip())
    shown = "abstract" in header.columns and below and (is_cut or is_paper(header, below[1]))
    if header.line > first and not (shown and len(header.cells) > 1):
        return 0
    if set(mapping) & set(header.columns):
        return 2
    if len(header.cells) == 1:
        return int("abstract" in header.columns)
    return 2 if "abstract" in header.columns else int(bool(header.columns or mapping or header.width > _WIDE))


def read(stream: io.BufferedReader, file: str, mapping: Mapping[str, str]) -> Iterator[Record | Reject]:
    """Yield one item a row that is not empty; an empty ``areas`` cell is unlabelled, "none" is none of the areas.

    A row whose quotes do not close, or are followed by text, is one reject, with the shorter lines behind it; between
    tabs such quotes are text where the cells are as many as they should be.

    Raises
    ------
    DataError
        There is no abstract column, or a mapped column is not there.
    """
    delimiter = _layout(stream.peek().decode(errors="ignore"), mapping)[0]
    lines = Lines(io.TextIOWrapper(stream, encoding="utf-8", newline=""))
    header, rows = begin(_rows(lines, delimiter), mapping)
    check(header, file, mapping)
    tell(header, file)
    lines.header = header
    yield from records(rows, header, file, mapping, count(1))


def _layout(head: str, mapping: Mapping[str, str]) -> tuple[str, Header, Iterator[Row]]:
    """Return the delimiter with most known columns, then tabs, then most cells; the header, and the rows below it."""
    said = _SEPARATOR.match(head)
    delimiters = said[1] if said else _DELIMITERS[: 3 if _RULE.search(head) else 4]  # bars may be those of markdown
    found = [(one, *begin(_rows(Lines(io.StringIO(head, newline="")), one), mapping)) for one in delimiters]
    return max(found, key=lambda one: (len(one[1].columns), one[0] == "\t" and one[1].width > 1, one[1].width))


def _rows(lines: Lines, delimiter: str) -> Iterator[Row]:
    """Yield physical line and cells of the rows that are not empty, a fault for one that cannot be read."""
    rows = csv.reader(lines, delimiter=delimiter, strict=True)
    while (row := _next(rows)) is not None:
        line, several = lines.number, len(lines.taken) > 1
        if isinstance(row, Fault) or (several and lines.header and not fits(lines.header, row)):
            yield line, _broken(rows, lines, delimiter, row)
        else:
            lines.done()
            if any(cell.strip() for cell in row):
                yield line, row


def _next(rows: Iterator[list[str]]) -> list[str] | Fault | None:
    usual = csv.field_size_limit(_CELL_LIMIT)  # global in `csv`: raised for one row at a time
    try:
        return next(rows, None)
    except csv.Error as error:
        return Fault("bad row", str(error))
    finally:
        csv.field_size_limit(usual)


def _broken(rows: Iterator[list[str]], lines: Lines, delimiter: str, row: list[str] | Fault) -> list[str] | Fault:
    """Return the fault of a row with bad quotes, its pieces passed over; between tabs the row itself if it fits."""
    header, line = lines.header, lines.number
    cells = lines.taken[0].rstrip("\r\n").split(delimiter)
    lines.done(keep=1)
    if delimiter == "\t" and header and fits(header, cells):
        return cells
    last = _pass_over(rows, lines, header) if header else line
    what = row.detail if isinstance(row, Fault) else "a quote is not closed, or a line break stands outside quotes"
    return Fault("bad row", f"{what}; lines {line} to {last}" if last > line else what)


def _pass_over(rows: Iterator[list[str]], lines: Lines, header: Header) -> int:
    """Pass over lines that are rather pieces of the row before than rows; return the number of the last of the row."""
    spaced = any(cell.startswith(" ") for cell in header.cells)
    for _ in range(_PIECES):
        row = _next(rows)
        short = isinstance(row, list) and (
            len(row) < header.width or (not spaced and any(cell.startswith(" ") for cell in row[1:]))
        )
        if not short or len(lines.taken) > 1:
            lines.done(keep=0)
            break
        lines.done()
    return lines.number - 1
