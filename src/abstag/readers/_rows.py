"""Rows of cells, whatever file holds them, to records: where the header stands, and which column holds what."""

import json
import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice

from abstag.abstracts import Fault
from abstag.errors import DataError
from abstag.readers._fields import Place, column_name, column_numbers, doi, item
from abstag.readers._marks import is_english, is_prose
from abstag.records import Record, Reject

Row = tuple[int, Sequence[str] | Fault]  # where it begins, and its cells

_LOG = logging.getLogger(__name__)
_LOOK = 20  # rows in which the header must stand
_NAME, _LONG = 60, 12  # characters of a column's name at most, words of an abstract at least
_ABSTRACT = ("abstract", "abstract note", "abstract text", "ab")
_MORE: Mapping[str, tuple[str, ...]] = {
    "english": (
        *("original abstract", "abstract original", "abstract en", "abstract english", "abstract (english)"),
        *("abstract (en)", "english abstract", "abstract in english", "translated abstract", "abstract translated"),
        *("abstract (translated)", "abstract translation"),
    ),
    "inverted": ("abstract inverted index",),
    "doi": ("doi", "di"),
    "kind": ("item type",),
}
_NO_PAPERS = ("attachment", "note", "annotation")
_SEPARATOR = re.compile(r"\s*sep=.?\s*", re.IGNORECASE)
_WORD = r"""("(?:[^"\\]|\\.){0,100}+"|'(?:[^'\\]|\\.){0,100}+')"""
_POSITIONS = re.compile(_WORD + r"\s{0,9}:\s{0,9}\[([\d,\s]*+)\]")
_NUMBER, _QUOTED = re.compile(r"\d{1,9}"), re.compile(_WORD)
_ADVICE = "--map abstract=NAME, or by its number where there is no header, as --map abstract=3"


@dataclass(slots=True)
class Header:
    """The names of the columns as written, empty where there are none, and the columns of each field, the best first.

    Attributes
    ----------
    width
        Number of cells that a row must have.
    line
        Where it stands, 0 for none.
    """

    cells: Sequence[str]
    columns: Mapping[str, Sequence[int]]
    width: int
    line: int


def begin(rows: Iterator[Row], mapping: Mapping[str, str]) -> tuple[Header, Iterator[Row]]:
    """Return the header and the rows below it; what stands above (a sheet's title, comments) is left out.

    Without a row that names an abstract it is the one with most names that we know, unless the content tells which
    column is the abstract and the first row is a paper already.
    """
    seen: list[tuple[int, Sequence[str]]] = []
    names = {field: name for field, name in mapping.items() if not name.isdecimal()}
    for line, row in islice(rows, _LOOK):
        if isinstance(row, Fault) or _SEPARATOR.fullmatch("".join(row)):
            continue
        named = "abstract" in _named(row, names, line).columns
        if named and _may_be_names(row) and (not seen or len(row) > 1):
            return _named(row, mapping, line), rows
        seen.append((line, row))
    found = _by_content([row for _, row in seen], mapping)
    if found or not seen:
        return found or Header((), {}, 0, 0), chain(seen, rows)
    at = max(range(len(seen)), key=lambda number: len(_named(seen[number][1], names, 0).columns))
    return _named(seen[at][1], mapping, seen[at][0]), chain(seen[at + 1 :], rows)


def check(header: Header, file: str, mapping: Mapping[str, str]) -> None:
    """Raise DataError if there is no abstract column, or a mapped one is not there."""
    names = [cell.strip()[:40] for cell in header.cells[:20]]
    for field, name in mapping.items():
        if field not in _mapped(header.cells, {field: name}) and field not in _numbered(header.width, {field: name}):
            what = f"--map {field}: there is no column {name!r}"
            raise DataError(what, where=file, remedy=f"the columns are: {str(names)[1:-1]}")
    if "abstract" not in header.columns:
        raise DataError(
            f"no abstract column among: {', '.join(names)}",
            where=file,
            remedy=f"rename the one that holds the abstracts to abstract, or name it with {_ADVICE}; "
            "if none does, export again with abstracts",
        )


def tell(header: Header, file: str) -> None:
    """Log which columns were taken where no header names them."""
    if not header.cells:
        taken = ", ".join(f"{field}={numbers[0] + 1}" for field, numbers in header.columns.items())
        _LOG.warning("%s: no header; by their content the columns are taken as --map %s", file, taken)


def records(
    rows: Iterator[Row], header: Header, file: str, mapping: Mapping[str, str], numbers: Iterator[int]
) -> Iterator[Record | Reject]:
    """Yield one item a row; a header that comes again is none, and what follows is read by it.

    ``numbers`` gives each item its number. Attachments and notes of Zotero are rejected as "not a paper".
    """
    names = {*_ABSTRACT, column_name(mapping.get("abstract", "abstract"))}
    for line, row in rows:
        if isinstance(row, Fault):
            yield Reject(file, next(numbers), line, *row)
        elif header.cells and _repeats(row, header, mapping, names):
            pass
        elif not _is_ragged(row, header):
            yield _item(row, header, Place(file, next(numbers), line))
        elif not row[0].lstrip().startswith("#"):  # else it is a comment
            detail = f"{len(row)} cells, the header has {_width(header)}"
            yield Reject(file, next(numbers), line, "ragged row", detail)


def fits(header: Header, row: Sequence[str] | Fault) -> bool:
    """Return whether a row has as many cells as the header, or more that are empty."""
    return not isinstance(row, Fault) and not _is_ragged(row, header)


def is_paper(header: Header, row: Sequence[str] | Fault) -> bool:
    """Return whether a row fits the header, and shows that its columns hold what they say, if they are but two."""
    if isinstance(row, Fault) or _is_ragged(row, header):
        return False
    texts = [row[number] for number in header.columns["abstract"]]
    return len(header.columns) > 2 or any(len(text.split()) >= _LONG and text[0] != " " for text in texts)


def _is_ragged(row: Sequence[str], header: Header) -> bool:
    return len(row) < header.width or any(cell.strip() for cell in row[_width(header) :])


def _width(header: Header) -> int:
    return max(len(header.cells), header.width)


def _named(cells: Sequence[str], mapping: Mapping[str, str], line: int) -> Header:
    columns = column_numbers(cells)
    more = column_numbers(cells, _MORE)
    if abstracts := [*columns.get("abstract", ())[:1], *more.pop("english", ())]:
        columns["abstract"] = abstracts
    elif "inverted" in more:
        columns["abstract"] = []
    width = max((number for number, cell in enumerate(cells, 1) if cell.strip()), default=0)
    return Header(cells, columns | more | _numbered(width, mapping) | _mapped(cells, mapping), width, line)


def _mapped(cells: Sequence[str], mapping: Mapping[str, str]) -> dict[str, list[int]]:
    """Return the numbers of the mapped columns that are there, small letters for capital ones if need be."""
    exact = [cell.strip() for cell in cells]
    folded = [cell.casefold() for cell in exact]
    found = {field: (name, exact) if name in exact else (name.casefold(), folded) for field, name in mapping.items()}
    return {field: [names.index(name)] for field, (name, names) in found.items() if name in names}


def _numbered(width: int, mapping: Mapping[str, str]) -> dict[str, list[int]]:
    """Return the numbers of the columns that are mapped by number, from 1."""
    counted = {field: int(name) for field, name in mapping.items() if name.isdecimal() and len(name) < 6}
    return {field: [number - 1] for field, number in counted.items() if 1 <= number <= width}


def _may_be_names(cells: Sequence[str]) -> bool:
    return all(len(cell) < _NAME or "." in cell for cell in cells if cell.strip())


def _by_content(rows: Sequence[Sequence[str]], mapping: Mapping[str, str]) -> Header | None:
    """Return the columns of rows without a header: those mapped by number, else the one of long English texts.

    The title is the column of short distinct texts. Two that may be the abstract, or rows of several widths: None.
    """
    width = len(rows[0]) if rows else 0
    numbered = _numbered(width, mapping)
    columns = list(zip(*rows, strict=True)) if {len(row) for row in rows} == {width} else []
    if "abstract" in numbered:
        is_paper = len(rows[0][numbered["abstract"][0]].split()) >= _LONG
        return Header((), numbered, width, 0) if is_paper else None
    if any(cell[:1].isspace() for row in rows for cell in row[1:]):
        return None  # the commas are those of sentences
    long = [number for number, cells in enumerate(columns) if all(map(_is_abstract, cells))]
    if len(long) != 1 or width < 2 or len(rows) < 2 or len(numbered) < len(mapping):
        return None
    short = [number for number, cells in enumerate(columns) if number not in long and _are_titles(cells)]
    title = {"title": short} if len(short) == 1 else {}
    return Header((), {"abstract": long} | title | numbered, width, 0)


def _is_abstract(cell: str) -> bool:
    return len(cell.split()) >= 2 * _LONG and is_prose(cell[:2000]) and is_english(cell[:2000])


def _are_titles(cells: Sequence[str]) -> bool:
    """Return whether these are distinct texts of few words; those with ";" or "://" are lists or links."""
    words = [len(cell.split()) for cell in cells]
    texts = not any(re.search(r";|://", cell) or not re.search(r"[^\W\d_]{3}", cell) for cell in cells)
    return texts and max(words) <= 30 and sum(words) >= 2 * len(cells) and len(set(cells)) == len(cells)


def _repeats(row: Sequence[str], header: Header, mapping: Mapping[str, str], names: set[str]) -> bool:
    """Return whether a row is a header, as where exports were glued together; its columns hold from here on."""
    if any(len(row[number]) >= _NAME for number in header.columns["abstract"] if number < len(row)):
        return False  # before all names are looked at: it is true of most rows
    if not any(len(cell) < _NAME and column_name(cell) in names for cell in row):
        return False
    again = _named(row, mapping, header.line)
    same = [cell.strip() for cell in row] == [cell.strip() for cell in header.cells]
    if same or ({"abstract", "title"} <= set(again.columns) and _may_be_names(row)):
        header.cells, header.columns, header.width = again.cells, again.columns, again.width
        return True
    return False


def _item(row: Sequence[str], header: Header, place: Place) -> Record | Reject:
    fields: dict[str, object] = {field: _first(row, numbers) for field, numbers in header.columns.items()}
    filled = [row[number] for number in header.columns["abstract"] if row[number].strip()]
    kind, inverted, link = (str(fields.pop(field, "")).strip() for field in ("kind", "inverted", "doi"))
    english = filled if len(filled) < 2 else [text for text in filled if is_english(text[:2000])] or filled
    fields["abstract"] = english[0] if english else _in_order(inverted)
    is_catalogued = kind or "openalex.org/" in str(fields.get("id"))  # then the id is the DOI, as from JSON
    fields["id"] = (doi(link) if is_catalogued else None) or fields.get("id") or doi(link)
    if str(fields.get("keywords", "")).startswith("["):
        fields["keywords"] = [_unquoted(found[1]) for found in _QUOTED.finditer(str(fields["keywords"]))]
    found = item(fields, place)
    return Reject(*place, "not a paper", kind, found.title, found.id) if kind.casefold() in _NO_PAPERS else found


def _first(row: Sequence[str], numbers: Sequence[int]) -> str:
    if len(numbers) == 1:
        return row[numbers[0]]
    return next((row[number] for number in numbers if row[number].strip()), "")


def _in_order(inverted: str) -> str:
    """Return the text of an OpenAlex ``abstract_inverted_index``, written as JSON or as Python does."""
    words = [
        (int(position), _unquoted(found[1]))
        for found in _POSITIONS.finditer(inverted)
        for position in _NUMBER.findall(found[2])
    ]
    return " ".join(word for _, word in sorted(words))


def _unquoted(word: str) -> str:
    try:
        return str(json.loads(word))
    except ValueError:
        return re.sub(r"\\(.)", r"\1", word[1:-1])
