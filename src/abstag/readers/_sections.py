"""A markdown text cut at the lines that may be titles of papers."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from abstag.readers._fields import columns
from abstag.readers._headings import names_a_group
from abstag.readers._labels import kind_of, label
from abstag.readers._marks import Line, bare, cells, is_link_text, unfolded
from abstag.readers._prose import LINK, is_links, is_names, is_prose

_BOLD = re.compile(
    r"(?:[^\w*\[(#]{0,6}|\[?#?\d{1,6}[\].)]?\s{1,3})"
    r"(\*\*\*?|__)(?=\S)(?P<title>.{1,600}?)(?<=\S)\1(?!\*)(?P<rest>.*)"
)
_NUMBER = re.compile(r"(?:\[?#?\d{1,6}[\].)]\s{0,3})?")
_SEPARATOR = re.compile(r"\s{0,3}(?:[:：]|[-–—]{1,3}\s)\s{0,3}")
_UNFOLD = re.compile(r"click|here|show|hide|see|view|read|more|expand|open|toggle|details?|me|to|for|the")
_NAMES_APART = re.compile(r"[,;&·|、]|\band\b|\bet al\b")
_AFTER_NAMES = re.compile(r"[,(|·;\[]")
_BOLD_LEVEL, _ITEM_LEVEL, _ROW_LEVEL = 7, 8, 9
_AHEAD, _WORDS = 12, 40


@dataclass(slots=True)
class Section:
    """A line that may be a title, and the lines below it up to the next such line.

    Attributes
    ----------
    kind
        What the title line is: h1 to h6, bold, label, fold, bold item, link item, item, row; about for a heading such
        as "License"; start has no title line.
    level
        The sections of higher level that follow belong to this one.
    raw
        The title line as written; ``title`` without markup.
    row
        The cells of a table row by our field names; None for a row with more cells than the header.
    """

    kind: str
    level: int
    number: int
    raw: str = ""
    title: str = ""
    lines: list[Line] = field(default_factory=list)
    row: dict[str, str] | None = None


class Title(NamedTuple):
    """A title line taken apart: as written, what follows on the line, and without markup ("" if not yet known)."""

    kind: str
    raw: str
    rest: str = ""
    text: str = ""


def cut(lines: Sequence[Line]) -> list[Section]:
    """Return the sections of a text in order; the first holds what stands before all titles."""
    cutter = _Cutter(lines)
    for at in range(len(lines)):
        cutter.take(at)
    return cutter.sections


class _Cutter:
    """The section that lines go to, and the list items and folds that are open."""

    def __init__(self, lines: Sequence[Line]) -> None:
        self.sections = [Section("start", 0, 0)]
        self._lines = lines
        self._current = self.sections[0]
        self._items: list[tuple[int, Section]] = []
        self._folds: list[bool] = []
        self._labelled_folds = 0
        self._columns: dict[str, int] = {}
        self._width = 0
        self._heading_level = 0

    def take(self, at: int) -> None:
        """Let the line begin a section, or add it to the one to which it belongs."""
        line = self._lines[at]
        if line.kind == "head":
            self._take_heading(line)
        elif line.kind == "header":
            header = [bare(cell) for cell in cells(line.text)]
            self._columns, self._width = columns(header), len(header)
        elif line.kind == "row":
            self._take_row(line)
        elif title := self._title(at):
            self._begin(title, line)
        else:
            if line.kind == "close" and self._folds:
                self._labelled_folds -= self._folds.pop()
            self._attach(line, after_gap=self._after_gap(at))

    def _take_heading(self, line: Line) -> None:
        self._folds, self._labelled_folds = [], 0
        title = bare(line.text)
        said = kind_of(title)
        if said and (said in ("abstract", "summary") or line.level > self._heading_level > 0):
            self._items = []
            self._current.lines.append(line)
        else:
            self._heading_level = line.level
            self._begin(Title("about" if said else f"h{line.level}", line.text, text=title), line)

    def _take_row(self, line: Line) -> None:
        if "abstract" not in self._columns:
            return
        row = cells(line.text)
        found = {name: unfolded(row[number]) if number < len(row) else "" for name, number in self._columns.items()}
        title = bare(found.get("title", ""))
        fits = len(row) <= self._width
        self.sections.append(
            Section("row", _ROW_LEVEL, line.number, line.text, title if fits else "", row=found if fits else None)
        )

    def _take_fold(self, line: Line) -> Title | None:
        """Note that a fold opens; return the title that its summary may be."""
        kind = kind_of(bare(line.text))
        words = [word for word in bare(line.text).casefold().split() if not _UNFOLD.fullmatch(word)]
        title = Title("fold", line.text) if kind is None and len(words) > 2 and not self._labelled_folds else None
        self._folds.append(kind is not None and kind not in ("text", "part"))
        self._labelled_folds += self._folds[-1]
        return title

    def _title(self, at: int) -> Title | None:
        line = self._lines[at]
        if line.kind == "open":
            return self._take_fold(line)
        if line.kind not in ("item", "text") or self._labelled_folds:
            return None
        if line.label:
            said = line.label.kind == "title" and line.label.rest
            return Title("label", line.label.rest) if said else None
        if line.kind == "item":
            return _item_title(line.text) or (Title("item", line.text) if self._has_abstract_below(at) else None)
        title = _bold_title(line.text, "bold") if self._after_gap(at) else None
        return None if title and self._is_byline(title) else title

    def _has_abstract_below(self, at: int) -> bool:
        """Return whether a labelled abstract stands inside a list item that may be a title."""
        item = self._lines[at]
        if len(item.text.split()) < 3 or is_prose(item.text):
            return False
        for line in self._lines[at + 1 : at + _AHEAD]:
            if line.kind in ("head", "rule", "row") or (line.kind == "item" and line.indent <= item.indent):
                return False
            if line.kind == "open" and kind_of(bare(line.text)) == "abstract":
                return True
            if line.label and line.label.kind == "abstract":
                return True
        return False

    def _is_byline(self, title: Title) -> bool:
        """Return whether a bold line right below a heading names the authors of the paper."""
        above = self._current
        return (
            above.kind.startswith("h")
            and not self._items
            and all(line.kind == "blank" for line in above.lines)
            and (len(above.title.split()) > 3 or above.title != above.raw.strip())
            and not names_a_group(above.title)
            and _are_names(bare(title.raw))
        )

    def _after_gap(self, at: int) -> bool:
        return at == 0 or self._lines[at - 1].kind not in ("text", "item")

    def _begin(self, title: Title, line: Line) -> None:
        is_item = title.kind.endswith("item")
        level = line.level or (_ITEM_LEVEL + line.indent if is_item else _BOLD_LEVEL)
        section = Section(title.kind, level, line.number, title.raw, title.text or bare(title.raw))
        if title.rest:
            section.lines.append(line._replace(kind="text", text=title.rest, label=label(title.rest)))
            if _AFTER_NAMES.match(title.rest) or is_names(title.rest) or is_links(title.rest):
                section.lines.append(line._replace(kind="blank"))
        self.sections.append(section)
        if is_item:
            while self._items and self._items[-1][0] >= line.indent:
                self._items.pop()
            self._items.append((line.indent, section))
        else:
            self._items, self._current = [], section

    def _attach(self, line: Line, *, after_gap: bool) -> None:
        """Add a line to the list item inside which it stands, else to what stands above.

        What stands beside an item goes with it, too, unless the item is a mere link.
        """
        items = self._items
        while len(items) > 1 and items[-1][0] >= line.indent > items[0][0]:
            items.pop()
        beside = bool(items) and line.indent <= items[-1][0] and items[-1][1].kind == "link item"
        if beside and (line.kind == "item" or (after_gap and line.kind in ("text", "open"))):
            self._items = items = []
        (items[-1][1] if items else self._current).lines.append(line)


def _item_title(text: str) -> Title | None:
    number = _NUMBER.match(text)
    link = LINK.match(text, number.end() if number else 0)
    if not link:
        return _bold_title(text, "bold item")
    rest = text[link.end() :].strip()
    separator = _SEPARATOR.match(rest)
    if is_link_text(bare(link[1])) or link[2].startswith("#"):
        return None
    if is_prose(rest) and not separator and rest[0].islower():
        return None
    return Title("link item", link.group(), rest[separator.end() :] if separator else rest)


def _bold_title(text: str, kind: str) -> Title | None:
    found = _BOLD.match(text)
    words = bare(found["title"]).split() if found else []
    if not found or not words or is_link_text(found["title"]):
        return None
    if len(words) > _WORDS or (len(words) * 2 > _WORDS and words[-1].endswith(".")):
        return None
    rest = found["rest"].strip()
    separator, short = _SEPARATOR.match(rest), len(words) < 4
    if separator:
        rest = rest[separator.end() :]
        return None if short and is_prose(rest) else Title(kind, found["title"], rest)
    if is_prose(rest) and (short or found["title"].endswith(".") or not rest[0].isupper()):
        return None
    return Title(kind, found["title"], rest)


def _are_names(text: str) -> bool:
    names = [name.split() for name in _NAMES_APART.split(text) if name.strip(" .")]
    several = len(names) > 1 and max(map(len, names)) > 1
    if not (several or (len(names) == 1 and 2 <= len(names[0]) <= 3)):
        return False
    return all(len(name) <= 4 and name[0][0].isupper() and name[-1][0].isupper() for name in names)
