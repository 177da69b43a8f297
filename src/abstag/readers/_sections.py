"""A markdown text cut at the lines that may be titles of papers, and what the lines below each title say."""

import re

from abstag.readers import _marks as marks
from abstag.readers._fields import columns
from abstag.readers._headings import names_a_group
from abstag.readers._marks import TEXTS, Line, bare, is_english, is_prose, is_text, kind_of, label

_BOLD = re.compile(r"(?:[^\w*\[(#]{0,6}|\[?#?\d{1,6}[\].)]?\s{1,3})(\*\*\*?|__)(?=\S)(.{1,600}?)(?<=\S)\1(?!\*)")
_SEPARATOR = re.compile(r"\s{0,3}(?:[:：]|[-–—]{1,3}\s)\s{0,3}")
_BOLD_LEVEL, _ITEM_LEVEL, _ROW_LEVEL = 7, 8, 1_000_000
_Title = tuple[str, str, str]  # kind of the title line, title with its markup, rest of the line


class Section:
    """A line that may be a title, and what stands below it; sections of higher level that follow belong to it.

    ``kind`` is what the line is: h1 to h6, bold, label, fold, item, link, row; "ragged" is a row too long,
    "about" a heading such as "License", "start" no line. ``raw`` is the title with markup, ``parts`` are labels
    with their paragraphs, the first without a label ("text"); ``about`` are lines such as authors.
    """

    def __init__(self, kind: str, level: int, number: int, raw: str) -> None:
        self.kind, self.level, self.number, self.raw = kind, level, number, raw
        self.parts: list[tuple[str, list[str]]] = [("text", [])]
        self.about: list[str] = []
        self._part, self._fleeting = self.parts[0], False  # a fleeting part ends with its first paragraph
        self._begun, self._has_text = list[str](), False
        title = bare(raw)
        self.title = "" if kind == "about" or names_a_group(title) else title  # empty: it can only stand over papers

    @property
    def abstract(self) -> str:
        """The abstract: labelled, else without a label, else a summary; English if there is a choice."""
        return max([*self.texts("abstract"), *self.texts("text"), *self.texts("summary")], key=is_english, default="")

    @property
    def is_labelled(self) -> bool:
        """Whether something says that the text is an abstract."""
        return self.kind in ("row", "ragged") or bool(self.texts("abstract"))

    def texts(self, kind: str) -> list[str]:
        """Return the text of each part of a kind, English first; of several paragraphs those in English."""
        found = [[*filter(is_english, part)] or part for name, part in self.parts if name == kind and part]
        return sorted(map(" ".join, found), key=is_english, reverse=True)

    def take(self, line: Line) -> None:
        """Add a line."""
        found = label(line.text) if line.kind in ("item", "text") else None
        if line.kind != "text" or found:
            self.end()
        if line.kind == "head" or (line.kind == "fold" and kind_of(bare(line.text))):
            self._start(kind_of(bare(line.text)) or "other")
        elif line.kind == "close" or (line.kind == "rule" and self._has_text):
            self._start("other" if line.kind == "rule" else "text")
        elif found:
            kind, rest = found
            self._start(kind, fleeting=kind not in TEXTS)
            self._add(rest)
            if kind not in (*TEXTS, "aside"):
                self.about.append(line.text)
                self.end()
        elif line.kind in ("item", "text"):
            self._add(line.text)

    def end(self) -> None:
        """End the paragraph that has begun."""
        text, self._begun = " ".join(self._begun), []
        kind, paragraphs = self._part
        text = text.strip("*_") if text[:1] in ("*", "_") and text[-1:] == text[0] else text
        is_first = kind != "text" and not paragraphs
        if text and (is_first or kind not in TEXTS or is_prose(text)):
            paragraphs.append(text)
            self._has_text |= kind in TEXTS
        elif text:
            self.about.append(text)
        if self._fleeting and paragraphs:
            self._start("text")

    def _start(self, kind: str, *, fleeting: bool = False) -> None:
        self._part, self._fleeting = self.parts[0], fleeting
        if kind != "text":
            self._part = (kind, [])
            self.parts.append(self._part)

    def _add(self, text: str) -> None:
        if self._begun and marks.is_foreign(text) != marks.is_foreign(self._begun[-1]):
            self.end()
        is_about = self._part[0] == "text" and not self._begun and not is_text(text)
        (self.about if is_about or not text else self._begun).append(text)


def cut(text: str) -> list[Section]:
    """Return the sections of a text in order; the first holds what stands before all titles."""
    lines, edge, cutter = list(marks.scan(text)), [Line(0, 0, "blank")], _Cutter()
    for above, line, below in zip(edge + lines, lines, lines[1:] + edge, strict=False):
        cutter.take(line, above, below)
    for section in cutter.sections:
        section.end()
    return cutter.sections


class _Cutter:
    """The sections so far, and what is open: heading, list items by indent and the columns of a table."""

    def __init__(self) -> None:
        self.sections = [Section("start", 0, 0, "")]
        self._top, self._level = self.sections[0], 0
        self._items: list[tuple[int, Section]] = []
        self._columns, self._width = dict[str, int](), 0

    def take(self, line: Line, above: Line, below: Line) -> None:
        """Let the line begin a section, or add it to the one to which it belongs."""
        if line.kind == "header":
            header = [bare(cell) for cell in marks.cells(line.text)]
            self._columns, self._width = columns(header), len(header)
        elif line.kind == "row":
            self._take_row(line)
        elif title := self._title(line, above, below):
            self._begin(line, *title)
        else:
            self._owner(line, beside=line.kind == "item" or above.kind not in ("text", "item")).take(line)

    def _take_row(self, line: Line) -> None:
        row = marks.cells(line.text)
        if "abstract" in self._columns:
            found = {name: row[at] for name, at in self._columns.items() if at < len(row)}
            kind = "row" if len(row) <= self._width else "ragged"
            self.sections.append(Section(kind, _ROW_LEVEL, line.number, found.get("title", "")))
            self.sections[-1].parts += [(name, [cell]) for name, cell in found.items() if cell]

    def _title(self, line: Line, above: Line, below: Line) -> _Title | None:
        """Return the title that a line is, None for any other line."""
        if line.kind == "head":
            return self._heading(line)
        found = label(line.text)
        if found:
            return ("label", found[1], "") if found[0] == "title" and found[1] else None
        if line.kind == "fold":
            says_more = len(line.text.split()) > 2 and not re.search("click|expand|toggle", line.text.lower())
            return ("fold", line.text, "") if says_more else None
        if line.kind == "text":
            is_byline = not is_text(bare(line.text)) and re.search(",| et al", line.text)
            begins = above.kind not in ("text", "item") and not (above.kind == "head" and is_byline)
            return _marked_title(line.text, "bold") if begins else None
        labelled = line.text and below.kind == "item" and below.indent > line.indent and label(below.text)
        title = _marked_title(line.text, "item") or (("item", line.text, "") if labelled else None)
        return title if line.kind == "item" else None

    def _heading(self, line: Line) -> _Title | None:
        kind, self._items = kind_of(bare(line.text)), []
        if kind in ("abstract", "summary") or (kind and line.level > self._level > 0):
            return None
        self._level = line.level
        return "about" if kind else f"h{line.level}", line.text, ""

    def _begin(self, line: Line, kind: str, raw: str, rest: str) -> None:
        in_list = kind in ("item", "link")
        section = Section(kind, line.level or (_ITEM_LEVEL + line.indent if in_list else _BOLD_LEVEL), line.number, raw)
        self.sections.append(section)
        section.take(line._replace(kind="text", text=rest))
        self._items = [(indent, item) for indent, item in self._items if in_list and indent < line.indent]
        if in_list:
            self._items.append((line.indent, section))
        else:
            self._top = section

    def _owner(self, line: Line, *, beside: bool) -> Section:
        """Return the list item inside which, or (no link) beside which a line stands, else what is above."""
        items = self._items
        while items and line.indent <= items[-1][0]:
            if not (beside and items[-1][1].kind == "link") and not (len(items) > 1 and line.indent > items[0][0]):
                break
            items.pop()
        return items[-1][1] if items else self._top


def _marked_title(text: str, kind: str) -> _Title | None:
    """Return the title if a line begins with a bold text or, in a list, with a link."""
    link = marks.LINK.match(text) if kind == "item" else None
    found = link or _BOLD.match(text)
    words = bare(found[0]).split() if found else []
    if not found or not 0 < len(words) <= 40 or marks.is_link_text(" ".join(words)) or (link and link[2][:1] == "#"):
        return None
    rest, ends = text[found.end() :].strip(), words[-1].endswith(".")
    separator = _SEPARATOR.match(rest)
    unlike = ends or (len(words) < 4 and not link) or not (separator or rest[:1].isupper())
    if (unlike and is_prose(rest)) or (ends and len(words) > 20):
        return None
    return "link" if link else kind, found[0], rest[separator.end() :] if separator else rest
