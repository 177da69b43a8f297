"""CSV with a header, for spreadsheets and scripts."""

from collections.abc import Iterable, Mapping
from typing import BinaryIO

from abstag.writers._delimited import write_rows
from abstag.writers._lines import Tagged

SUFFIXES = (".csv",)
NEEDS_RECORDS = False


def write(tagged: Iterable[Tagged], out: BinaryIO, *, names: Mapping[str, str]) -> None:
    """Write one row a record in UTF-8, cells divided by a comma.

    A text that a spreadsheet would take for a formula (it begins with = + - @, a tab or a line break; also full-width,
    or after white space or apostrophes) gets an apostrophe before it: where one stands before such a text, take one off
    to have the text as it was.
    """
    write_rows(tagged, out, names=names, delimiter=",")
