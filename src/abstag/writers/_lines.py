"""What a writer is given, and the cells of a table with one row a paper."""

import re
from collections.abc import Mapping
from typing import Any

from abstag.files import storable, without_nan
from abstag.records import Record, Reject

Tagged = tuple[Record | Reject | None, Mapping[str, Any]]

_COLUMNS = ("id", "file", "n", "title", "areas", "uncertain", "decision", "reason")
_REFUSED = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")  # by XML; most tables are cut off at a NUL


def header(names: Mapping[str, str]) -> list[str]:
    """Return the names of the columns: those of the output line, then ``score_<area>`` of each area."""
    return [*_COLUMNS, *(f"score_{area}" for area in names)]


def values(line: Mapping[str, Any], names: Mapping[str, str]) -> list[Any]:
    """Return what stands in the columns of `header`: ``areas`` and ``uncertain`` are lists, a missing score is None."""
    scores = line["scores"] or {}
    return [*(line[name] for name in _COLUMNS), *(without_nan(scores.get(area)) for area in names)]


def cells(line: Mapping[str, Any], names: Mapping[str, str]) -> list[Any]:
    """Return `values` as a cell can hold them: text, numbers and None.

    Lists are joined by ``;``, line breaks are line feeds, control characters but tabs are left out, half of a surrogate
    pair is "?".
    """
    return [_cell(value) for value in values(line, names)]


def _cell(value: Any) -> Any:
    if isinstance(value, list):
        return ";".join(value)
    if isinstance(value, str):
        return _REFUSED.sub("", storable(value).replace("\r\n", "\n").replace("\r", "\n"))
    return value
