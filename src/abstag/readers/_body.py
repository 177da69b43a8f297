"""What the lines below the title of a paper say: the abstract, in English where there is a choice, and other fields."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from abstag.readers._fields import abstract_fault
from abstag.readers._labels import Label, kind_of
from abstag.readers._marks import Line, bare
from abstag.readers._prose import is_english, is_foreign, is_links, is_names, is_prose

_WRAPPED = re.compile(r"([*_]{1,3})(?![*_\s])(.+)(?<![*_\s])\1")
_TEXTS = ("abstract", "summary", "text")
_FIELDS = ("venue", "year", "keywords", "primary_area", "topic")
_TICKS = re.compile(r"`\s*`|\s[·|]\s")


@dataclass(slots=True)
class Part:
    """The paragraphs that stand under one label, or under none ("text").

    ``ends`` says where it ends: at the end of a paragraph, at the next label, or with the fold. ``indent`` is that of
    the list item that holds the label.
    """

    kind: str
    ends: str = "label"
    indent: int | None = None
    paragraphs: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Body:
    """All that is said below a title.

    Attributes
    ----------
    parts
        In order; the first is the text without a label.
    about
        Lines that are not the abstract: authors, links.
    has_anchors
        Items of a list lead to other places of the same page.
    """

    parts: list[Part] = field(default_factory=lambda: [Part("text")])
    about: list[str] = field(default_factory=list)
    has_anchors: bool = False

    def texts(self, kind: str) -> list[str]:
        """Return the text of each part of one kind; where a part has English paragraphs, these alone."""
        return [text for part in self.parts if part.kind == kind if (text := _in_english(part.paragraphs))]

    @property
    def abstracts(self) -> list[str]:
        """The abstracts, best first: labelled ones, text without a label, a summary; English before other languages."""
        found = [*self.texts("abstract"), *self.texts("text"), *self.texts("summary")]
        return sorted(found, key=lambda text: not is_english(text)) if len(found) > 1 else found

    @property
    def fields(self) -> dict[str, str]:
        """The labelled fields other than the abstract."""
        found = {part.kind: " ".join(part.paragraphs) for part in reversed(self.parts) if part.kind in _FIELDS}
        return {name: bare(_TICKS.sub("; ", text)) for name, text in found.items()}


def read_body(lines: Iterable[Line]) -> Body:
    """Read the lines of one section."""
    reader = _BodyReader()
    for line in lines:
        reader.take(line)
    return reader.finished()


def _in_english(paragraphs: list[str]) -> str:
    english = [text for text in paragraphs if is_english(text)] if len(paragraphs) > 1 else []
    return " ".join(english or paragraphs)


def _is_excuse(text: str) -> bool:
    """Return whether a text stands in place of an abstract: "N/A", "Withdrawn"."""
    return any(map(str.isalnum, text)) and abstract_fault(text) is not None


class _BodyReader:
    """The part that text goes to, the folds that are open, and the paragraph that has begun."""

    def __init__(self) -> None:
        self._body = Body()
        self._part = self._body.parts[0]
        self._folds: list[Part | None] = []
        self._labelled: list[Part] = []
        self._has_text = False
        self._paragraph: list[str] = []

    def finished(self) -> Body:
        self._flush()
        return self._body

    def take(self, line: Line) -> None:
        if line.kind in ("item", "text"):
            self._take_text(line)
            return
        self._flush()
        if line.kind == "blank":
            self._end_paragraph()
        elif line.kind == "rule" and self._has_text:
            self._start("other")
        elif line.kind == "head":
            self._start(kind_of(bare(line.text)) or "other")
        elif line.kind == "open":
            self._open(kind_of(bare(line.text)))
        elif line.kind == "close" and self._folds and self._folds.pop():
            self._labelled.pop()
            self._resume()

    def _open(self, kind: str | None) -> None:
        part = None if kind is None or kind in ("text", "part") else self._start(kind, ends="fold")
        self._folds.append(part)
        self._labelled += [part] if part else []

    def _take_text(self, line: Line) -> None:
        if line.kind == "item":
            self._flush()
            self._end_item(line.indent)
            self._body.has_anchors |= line.text.startswith("[") and "](#" in line.text
        found = line.label
        if found and found.kind != "text":
            self._flush()
            self._take_label(found, line)
        else:
            if found:
                self._flush()
            self._add(found.rest if found else line.text)

    def _take_label(self, found: Label, line: Line) -> None:
        ends = "label" if found.kind in _TEXTS else "paragraph"
        if found.kind not in (*_TEXTS, "aside"):
            self._body.about.append(line.text)
        self._start(found.kind, ends=ends, indent=line.indent if line.kind == "item" else None)
        self._add(found.rest)
        if found.rest and found.kind not in _TEXTS and found.kind != "aside":
            self._flush()
            self._resume()

    def _add(self, text: str) -> None:
        if not self._paragraph and (not text or self._is_about(text)):
            self._body.about.append(text)
            return
        if self._paragraph and is_foreign(text) != is_foreign(self._paragraph[-1]):
            self._flush()
        self._paragraph.append(text)

    def _is_about(self, text: str) -> bool:
        if _is_excuse(text):
            return False
        slanted = text[0] in "*_" and text[-1] == text[0] and _WRAPPED.fullmatch(text)
        if self._part.kind == "text" and (is_names(text) or (slanted and not is_prose(text))):
            return True
        return self._part.kind in _TEXTS and is_links(text)

    def _flush(self) -> None:
        text, self._paragraph = " ".join(self._paragraph), []
        wrapped = _WRAPPED.fullmatch(text)
        text = wrapped[2] if wrapped and wrapped[1] not in wrapped[2] else text
        part = self._part
        first = not part.paragraphs and part.kind != "text"
        if text and (first or part.kind not in _TEXTS or is_prose(text) or _is_excuse(text)):
            part.paragraphs.append(text)
            self._has_text = self._has_text or part.kind in _TEXTS

    def _start(self, kind: str, *, ends: str = "label", indent: int | None = None) -> Part:
        self._part = Part(kind, ends, indent)
        self._body.parts.append(self._part)
        return self._part

    def _resume(self) -> None:
        """Go back to the fold that is open, or to the text without a label."""
        self._part = self._labelled[-1] if self._labelled else self._body.parts[0]

    def _end_paragraph(self) -> None:
        if self._part.ends == "paragraph" and self._part.paragraphs:
            self._resume()

    def _end_item(self, indent: int) -> None:
        own = self._part.indent
        if own is not None and indent <= own and self._part.paragraphs:
            self._resume()
