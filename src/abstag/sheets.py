"""Sheets that people fill in: text cells out as CSV or XLSX, and back as a spreadsheet has saved them."""

import codecs
import csv
import io
import re
import zipfile
import zlib
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from xml.etree.ElementTree import ParseError

from abstag.errors import DataError, refused
from abstag.files import new_file

SUFFIXES = (".csv", ".xlsx")
_RISKY = re.compile(r"'*(?:[=+\-@\t\r\n＝＋－＠]|(?=\D*\d)[\d.,:/ eE+-]+\Z)")
_LONGEST = 32_767  # characters that a spreadsheet keeps of a cell
_DELIMITERS = ",;\t"
_ZIP, _OLD_EXCEL = b"PK\x03\x04", b"\xd0\xcf\x11\xe0"
_DAMAGED = (zipfile.BadZipFile, zlib.error, ParseError, KeyError, ValueError, TypeError, AttributeError, EOFError)


def protected(text: str) -> str:
    """Return the text so that a spreadsheet takes it for text, with "'" before what may be a formula or a number."""
    return f"'{text}" if _RISKY.match(text) else text


def unprotected(text: str) -> str:
    """Return what `protected` was given."""
    return text[1:] if text.startswith("'") and _RISKY.match(text) else text


def write_sheet(path: Path, rows: Sequence[Sequence[str]], widths: Sequence[int], *, force: bool = False) -> None:
    """Write a header row and rows of text, protected; CSV is UTF-8 with a byte order mark, as spreadsheets want it.

    Parameters
    ----------
    widths
        Of each column, in characters (XLSX only).

    Raises
    ------
    DataError
        The name ends in neither .csv nor .xlsx.
    ArtifactError
        As `files.new_file`.
    """
    if path.suffix.lower() not in SUFFIXES:
        raise DataError("only CSV and XLSX are written", where=path, remedy="name it .csv or .xlsx")
    safe = [[protected(cell)[:_LONGEST] for cell in row] for row in rows]
    with new_file(path, force=force) as stream:
        if path.suffix.lower() == ".csv":
            stream.write("\ufeff")
            csv.writer(stream).writerows(safe)
        else:
            stream.buffer.write(_workbook(safe, widths))


def _workbook(rows: Sequence[Sequence[str]], widths: Sequence[int]) -> bytes:
    """Return the rows as XLSX; each cell is formatted as text, so that what is typed stays as it is typed."""
    from openpyxl import Workbook
    from openpyxl.cell.cell import ILLEGAL_CHARACTERS_RE
    from openpyxl.styles import Alignment, Font
    from openpyxl.utils import get_column_letter

    book = Workbook()
    sheet = book.worksheets[0]
    for row in rows:
        sheet.append([ILLEGAL_CHARACTERS_RE.sub("", cell) for cell in row])
    for cells in sheet.iter_rows():
        for cell in cells:
            cell.number_format = "@"
            cell.alignment = Alignment(vertical="top", wrap_text=True)
            cell.font = Font(bold=cell.row == 1)
    for number, width in enumerate(widths, start=1):
        sheet.column_dimensions[get_column_letter(number)].width = width
    sheet.freeze_panes = "A2"
    content = io.BytesIO()
    book.save(content)
    return content.getvalue()


def read_sheet(path: Path) -> list[list[str]]:
    """Read the rows of a CSV file or of an XLSX file's first sheet as text without white space around, unprotected.

    The content decides, not the name. CSV may have commas, semicolons or tabs, and be UTF-8, UTF-16 with a byte order
    mark, or Windows-1252. A day is YYYY-MM-DD, a whole number has no decimal point, true is 1 and false 0.

    Raises
    ------
    DataError
        It cannot be read, is damaged, empty, or of another kind.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise refused(error, "cannot be read", path) from error
    if content.startswith(_OLD_EXCEL):
        raise DataError("is an Excel file of the old kind", where=path, remedy="save it as .xlsx or .csv")
    rows = _xlsx_rows(content, path) if content.startswith(_ZIP) else _csv_rows(content, path)
    if not any(map(any, rows)):
        raise DataError("the sheet is empty", where=path)
    return [[unprotected(cell).strip() for cell in row] for row in rows]


def _xlsx_rows(content: bytes, path: Path) -> list[list[str]]:
    from openpyxl import load_workbook

    try:
        sheet = load_workbook(io.BytesIO(content), data_only=True).worksheets[0]
    except (*_DAMAGED, IndexError) as error:
        raise DataError(
            f"cannot be read as XLSX: {error}", where=path, remedy="save it again as .xlsx or .csv"
        ) from error
    return [[_text(cell) for cell in row] for row in sheet.iter_rows(values_only=True)]


def _text(value: object) -> str:
    if isinstance(value, datetime) and not (value.hour or value.minute or value.second):
        return value.date().isoformat()
    if isinstance(value, bool) or (isinstance(value, float) and value.is_integer()):
        return str(int(value))
    return "" if value is None else str(value)


def _csv_rows(content: bytes, path: Path) -> list[list[str]]:
    try:
        text = _decoded(content)
        first = next((line for line in text.splitlines() if line.strip()), "")
        delimiter = max(_DELIMITERS, key=first.count)
        return list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True))
    except (UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"cannot be read as CSV: {error}", where=path, remedy="save it as CSV (UTF-8)") from error


def _decoded(content: bytes) -> str:
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return content.decode("utf-16")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("cp1252")
