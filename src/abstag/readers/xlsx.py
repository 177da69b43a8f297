"""Workbooks of Excel: every sheet that has a column of abstracts, row by row."""

import logging
import re
import warnings
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from datetime import date, datetime, time
from itertools import chain, count, islice
from typing import Any, BinaryIO, Literal

from abstag.abstracts import Fault
from abstag.errors import DataError
from abstag.readers import _rows as table
from abstag.records import Record, Reject

_LOG = logging.getLogger(__name__)

NAME = "xlsx"
SUFFIXES = (".xlsx", ".xlsm")
BINARY: Literal[True] = True

_SAVE = "save it as .xlsx or CSV"
_OLD, _ZIP = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", b"PK\x03\x04"
_MEMBER = re.compile(rb"PK\x03\x04.{26}xl/", re.DOTALL)
_ODS = b"mimetypeapplication/vnd.oasis.opendocument.spreadsheet"
_ROWS, _BATCH = 1_048_576, 100  # of a sheet, and no more; read at a time
_TEXTS, _UNPACKED = 1 << 29, 1 << 32  # bytes of what is held in memory, and of all
_HARMLESS, _RATIO = 1 << 26, 200  # how far a bigger member may be packed
_ESCAPE = re.compile(r"_x([0-9A-Fa-f]{4})_")
_DAMAGED = (
    *(zipfile.BadZipFile, zlib.error, SyntaxError, KeyError, ValueError, TypeError, AttributeError, EOFError),
    *(IndexError, OverflowError, NotImplementedError, RuntimeError, OSError),
)


def recognise(head: bytes) -> bool:
    """Whether this is a workbook, be it one that `read` refuses (.xls, .ods)."""
    return head.startswith(_OLD) or (head.startswith(_ZIP) and (_ODS in head[:99] or _MEMBER.search(head) is not None))


def read(stream: BinaryIO, file: str, mapping: Mapping[str, str]) -> Iterator[Record | Reject]:
    """Yield one item a row that is not empty, ``line`` its number in the sheet; formulas give what they gave last.

    Sheets without an abstract column are named in a message.

    Raises
    ------
    DataError
        Damaged, of another kind, too big unpacked, no sheet with an abstract column, or a mapped column is not there.
    """
    _refuse(stream, file)
    numbers, refused, found = count(1), dict[str, DataError](), False
    for name, rows in _sheets(stream, file):
        header, below = table.begin(rows, mapping)
        try:
            table.check(header, file, mapping)
        except DataError as error:
            refused[name] = error
            continue
        found = True
        table.tell(header, f"{file}, sheet {name}")
        yield from table.records(_even(below, header.width), header, file, mapping, numbers)
    if not found:
        raise next(iter(refused.values()), None) or DataError("no sheet with cells", where=file)
    if refused:
        _LOG.warning("%s: no column of abstracts, so left out: sheet %s", file, ", ".join(refused))


def _refuse(stream: BinaryIO, file: str) -> None:
    """Raise DataError for another kind of file, and for one too big unpacked."""
    head = stream.read(99)
    if head.startswith(_OLD):
        raise DataError("an Excel file of the old kind, or one with a password", where=file, remedy=_SAVE)
    if _ODS in head:
        raise DataError("an OpenDocument spreadsheet", where=file, remedy=_SAVE)
    try:
        infos = zipfile.ZipFile(stream).infolist()
    except _DAMAGED as error:
        raise _damaged(file, error) from error
    packed = any(info.file_size > max(_HARMLESS, _RATIO * info.compress_size) for info in infos)
    texts = sum(info.file_size for info in infos if not info.filename.startswith("xl/worksheets/"))
    if packed or texts > _TEXTS or sum(info.file_size for info in infos) > _UNPACKED:
        raise DataError("too big when it is unpacked", where=file, remedy="save it as CSV")


def _sheets(stream: BinaryIO, file: str) -> Iterator[tuple[str, Iterator[table.Row]]]:
    """Yield the name of each sheet that has cells, and its rows."""
    from openpyxl import load_workbook

    stream.seek(0)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of styles and rules that are of no use here
            sheets = load_workbook(stream, read_only=True, data_only=True, keep_links=False).worksheets
    except _DAMAGED as error:
        raise _damaged(file, error) from error
    for sheet in sheets:
        rows = _rows(sheet, file)
        first = next(rows, None)
        if first:
            yield sheet.title, chain([first], rows)


def _rows(sheet: Any, file: str) -> Iterator[table.Row]:
    """Yield number and texts of the rows that are not empty."""
    sheet.reset_dimensions()  # what a file says of them may be wrong
    rows, numbers = sheet.iter_rows(values_only=True), iter(range(1, _ROWS + 1))
    while True:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                some = list(zip(islice(rows, _BATCH), numbers, strict=False))
        except _DAMAGED as error:
            raise _damaged(file, error) from error
        if not some:
            return
        for row, number in some:
            cells = [_text(value) if value is not None else "" for value in row]
            if any(map(str.strip, cells)):
                yield number, cells


def _even(rows: Iterator[table.Row], width: int) -> Iterator[table.Row]:
    """Yield the rows as wide as the header; what stands beside a table is none of its cells."""
    for number, row in rows:
        yield number, row if isinstance(row, Fault) else [*row[:width], *[""] * (width - len(row))]


def _text(value: object) -> str:
    """Return a cell as text: whole numbers without a point, days without an hour, and Excel's escapes resolved."""
    if isinstance(value, str):
        return _ESCAPE.sub(lambda found: chr(int(found[1], 16)), value) if "_x" in value else value
    if isinstance(value, bool) or (isinstance(value, float) and value.is_integer()):
        return str(int(value))
    if isinstance(value, datetime) and value.time() == time():
        return value.date().isoformat()
    return value.isoformat() if isinstance(value, date | time) else str(value)


def _damaged(file: str, error: Exception) -> DataError:
    what = " ".join(str(error).split())[:200]
    return DataError(f"damaged, or no workbook: {what}", where=file, remedy=f"{_SAVE} again")
