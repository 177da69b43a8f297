"""Excel's workbook, with one sheet: bold header that stays in view, filters, texts that are never formulas."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import IO, Any, BinaryIO, Literal
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from abstag.errors import ArtifactError
from abstag.writers._lines import Tagged, cells, header

SUFFIXES = (".xlsx",)
NEEDS_RECORDS = False

_ROWS = 1_048_575  # Excel's sheet has one more, for the header
_CHARACTERS = 32_767  # of a cell, in UTF-16, as Excel counts
_WIDTHS = {"id": 20, "file": 20, "n": 7, "title": 70, "areas": 25, "uncertain": 25, "decision": 10, "reason": 40}
_SCORE_WIDTH = 15
_DATE = (1980, 1, 1, 0, 0, 0)  # the first that a zip archive can hold


class _Undated(ZipFile):
    """An archive that is the same whenever it is written."""

    def open(
        self,
        name: str | ZipInfo,
        mode: Literal["r", "w"] = "r",
        pwd: bytes | None = None,
        *,
        force_zip64: bool = False,
    ) -> IO[bytes]:
        """Open a member as `ZipFile.open` does, without the date."""
        if isinstance(name, ZipInfo):
            name.date_time = _DATE
        return super().open(name, mode, pwd, force_zip64=force_zip64)


def write(tagged: Iterable[Tagged], out: BinaryIO, *, names: Mapping[str, str]) -> None:
    """Write one row a record; texts are cut at 32,767 characters, as Excel holds no more.

    Rows wait in a temporary file, not in memory.

    Raises
    ------
    ArtifactError
        There are more than 1,048,575 records.
    """
    from openpyxl import Workbook
    from openpyxl.writer.excel import ExcelWriter

    workbook = Workbook(write_only=True)
    workbook.properties.created = workbook.properties.modified = datetime(*_DATE)
    sheet = workbook.create_sheet("papers")
    try:
        _fill(sheet, tagged, names)
    finally:
        sheet.close()  # else its temporary file stays open after an error
    with _Undated(out, "w", ZIP_DEFLATED) as archive:
        ExcelWriter(workbook, archive).save()


def _fill(sheet: Any, tagged: Iterable[Tagged], names: Mapping[str, str]) -> None:
    from openpyxl.styles import Font
    from openpyxl.utils import get_column_letter

    titles = [_text(sheet, head) for head in header(names)]
    letters = [get_column_letter(number) for number in range(1, len(titles) + 1)]
    for letter, title in zip(letters, titles, strict=True):
        sheet.column_dimensions[letter].width = _WIDTHS.get(title.value, _SCORE_WIDTH)
        title.font = Font(bold=True)
    sheet.freeze_panes = "A2"
    sheet.append(titles)
    count = 0
    for count, (_, line) in enumerate(tagged, 1):
        if count > _ROWS:
            what = f"a sheet of Excel holds {_ROWS:,} papers, and there are more"
            raise ArtifactError(what, remedy="write CSV (.csv) or Parquet (.parquet)")
        sheet.append([_text(sheet, cell) if isinstance(cell, str) else cell for cell in cells(line, names)])
    sheet.auto_filter.ref = f"A1:{letters[-1]}{count + 1}"


def _text(sheet: Any, text: str) -> Any:
    """Return a cell that is text, whatever it looks like."""
    from openpyxl.cell import WriteOnlyCell

    cell = WriteOnlyCell(sheet, text.encode("utf-16-le")[: 2 * _CHARACTERS].decode("utf-16-le", "ignore"))
    cell.data_type = "s"
    return cell
