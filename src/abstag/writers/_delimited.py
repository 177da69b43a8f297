"""Rows of text cells that no spreadsheet takes for formulas."""

import codecs
import csv
import unicodedata
from collections.abc import Iterable, Mapping
from typing import Any, BinaryIO

from abstag.writers._lines import Tagged, cells, header

_SIGNS = frozenset("=+-@")


def write_rows(tagged: Iterable[Tagged], out: BinaryIO, *, names: Mapping[str, str], delimiter: str) -> None:
    """Write a header and one row a paper in UTF-8, without a byte order mark; rows end in a line feed."""
    rows = csv.writer(codecs.getwriter("utf-8")(out), delimiter=delimiter, lineterminator="\n")
    rows.writerow(header(names))
    for _, line in tagged:
        rows.writerow([_harmless(cell) for cell in cells(line, names)])


def _harmless(cell: Any) -> Any:
    """Return a text with an apostrophe before it when a spreadsheet would run it.

    See OWASP, "CSV injection". Full-width signs count, and so do those behind white space, signs that do not show, and
    apostrophes of the text's own: so one apostrophe less is always the text as it was.
    """
    if not isinstance(cell, str):
        return cell
    bare = cell.lstrip("'")
    shown = next((sign for sign in bare if sign.isprintable() and not sign.isspace()), "")
    runs = bare.startswith(("\t", "\n")) or unicodedata.normalize("NFKC", shown) in _SIGNS
    return f"'{cell}" if runs else cell
