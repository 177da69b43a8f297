"""Markdown, line by line: headings, list items, quotes, tables and folded parts, without their signs."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from abstag.readers._headings import RULE
from abstag.readers._labels import Label, label
from abstag.readers._prose import IMAGE, LINK, is_prose

_FENCE = re.compile(r"(?:```|~~~)[`~]*+\s*+([^`]*)$")
_QUOTE = re.compile(r"[ \t]{0,12}(?:>[ \t]?)++")
_ITEM = re.compile(r"(?:[-*+•‣◦]|\d{1,6}[.)、])\s+(?:\[[ xX]\]\s+)?")
_HEADING = re.compile(r"(#{1,6})\s+(.*)$|<h([1-6])\b[^<>]{0,300}>(.*?)</h[1-6]>\s*(?:<[^<>]{0,40}>)?$", re.IGNORECASE)
_UNDERLINE = re.compile(r"(=+|-{3,})\s*$")
_DELIMITERS = re.compile(r"\|?\s*+:?-++:?\s*+(?:\|\s*+:?-++:?\s*+)*+\|?$")
_BAR = re.compile(r"(?<!\\)\|")
_FOLD = re.compile(r"(</?(?:details|summary)\b[^<>]{0,300}>)", re.IGNORECASE)
_SUMMARY = re.compile(r"<summary\b[^<>]{0,300}>[^<>]{0,300}</summary>", re.IGNORECASE)
_BREAK = re.compile(r"<br\s{0,3}/?>", re.IGNORECASE)
_ANCHOR = re.compile(
    r"<a\b[^<>]{0,500}?\bhref\s{0,3}=\s{0,3}[\"']?([^\"'\s<>]{1,1000})[\"']?[^<>]{0,300}>([^<>]{1,500})</a>",
    re.IGNORECASE,
)
_STRONG = re.compile(r"</?(?:b|strong)\s{0,3}>", re.IGNORECASE)
_SLANTED = re.compile(r"</?(?:i|em)\s{0,3}>", re.IGNORECASE)
_TAG = re.compile(
    r"</?(?:a|p|div|ol|ul|li|center|span|font|small|img|section|blockquote|hr|table|tr|td|h[1-6])\b[^<>]{0,500}>",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"(?:\[\s?#?\d{1,6}\s?\]|\(\d{1,6}\)|#?\d{1,6}\s?[.)、:](?!\d)|#\d{1,6}(?=\s))[\s.:]*")
_EMPHASIS = re.compile(r"(\*{1,3}|_{1,3})(?=\S)(.{1,600}?)(?<=\S)\1(?![\w*])")
_EMPTY = re.compile(r"[\[(][\s|,/·-]{0,9}[\])]")
_SEPARATORS = " |·,–—"
_CODES = re.compile(r"(?: ?`[^`]{0,100}`){1,9}$")
_HASHES = re.compile(r"\s#+$")
_ESCAPE = re.compile(r"\\([\[\]()_*#`|!&])")
_LINK_WORD = re.compile(
    r"papers?|pdf|codes?|arxiv|abs|html|github|git|projects?|pages?|websites?|sites?|web|home|homepage|videos?|slides?"
    r"|posters?|demo|data|datasets?|models?|blog|openreview|links?|urls?|doi|hugging|face|huggingface|supp|bibtex|cite"
    r"|reviews?|here|official|unofficial|pytorch|tensorflow|jax|appendix|talk|\d\w*"
)
_PLAIN_CODE = ("", "text", "txt")
_LONGEST = 2000


class Line(NamedTuple):
    """One line, or a part of one.

    Attributes
    ----------
    kind
        blank, rule, head (``level`` 1–6), item, text, open (a folded part, with its summary), close, header and row
        (of a table, as written).
    indent
        Columns before the sign of the item or the text; a quote sign itself counts for nothing.
    label
        The label with which an item or a text begins.
    """

    number: int
    indent: int
    kind: str
    text: str = ""
    level: int = 0
    label: Label | None = None


def scan(text: str) -> Iterator[Line]:
    """Yield the lines of a markdown text; front matter, comments and blocks of program code are left out."""
    yield from _folded(_lines(_without_comments(text).split("\n")))


def front_matter_title(text: str) -> str:
    """Return what the front matter gives as the title, or an empty text."""
    lines = text.split("\n", 201)[:200]
    found = [line for line in lines[: _after_front_matter(lines)] if line.startswith("title:")]
    return found[0].removeprefix("title:").strip(" \"'") if found else ""


def cells(row: str) -> list[str]:
    """Return the cells of a table row."""
    return [cell.strip().replace("\\|", "|") for cell in _BAR.split(row.strip().removeprefix("|").removesuffix("|"))]


def unfolded(cell: str) -> str:
    """Return the text of a table cell, without the tags and the summaries of folds."""
    return without_tags(_BREAK.sub(" ", _FOLD.sub(" ", _SUMMARY.sub(" ", cell)))).strip()


def bare(text: str) -> str:
    """Return a title or a value without numbers before it, links, emphasis, images and tags."""
    text = " ".join(without_tags(text[:_LONGEST]).split())
    if "[" in text:
        text = LINK.sub(lambda link: "" if is_link_text(link[1]) else link[1], IMAGE.sub("", text))
        text = _EMPTY.sub("", text)
    if "*" in text or "_" in text:
        text = _EMPHASIS.sub(r"\2", _EMPHASIS.sub(r"\2", text))
    text = text.strip(_SEPARATORS)
    number = _NUMBER.match(text)
    text = text[number.end() :] if number else text
    text = _CODES.sub("", text) or text if text.endswith("`") else text
    return " ".join(_ESCAPE.sub(r"\1", _HASHES.sub("", text)).split())


def is_link_text(text: str) -> bool:
    """Return whether the text of a link says only where it leads: "PDF", "arXiv 2401.00001", an address."""
    words = re.findall(r"\w+", text.casefold().replace("_", " "))
    return text.startswith("http") or all(map(_LINK_WORD.fullmatch, words))


def without_tags(text: str) -> str:
    """Return a line with HTML links and emphasis as markdown, and without other tags of layout."""
    if "<" not in text:
        return text
    text = _ANCHOR.sub(r"[\2](\1)", text)
    return _TAG.sub(" ", _SLANTED.sub("*", _STRONG.sub("**", text)))


def _without_comments(text: str) -> str:
    parts, start = [], 0
    while (opening := text.find("<!--", start)) >= 0 and (closing := text.find("-->", opening)) >= 0:
        parts += [text[start:opening], "\n" * text.count("\n", opening, closing)]
        start = closing + 3
    return "".join([*parts, text[start:]])


def _after_front_matter(lines: Sequence[str]) -> int:
    if not lines or lines[0].strip() != "---":
        return 0
    ends = (row for row in range(1, min(len(lines), 200)) if lines[row].strip() in ("---", "..."))
    return next(ends, -1) + 1


def _lines(rows: Sequence[str]) -> Iterator[Line]:
    number, code = _after_front_matter(rows), None
    last_fence = max((row for row, raw in enumerate(rows) if _fence(raw)), default=-1)
    while number < len(rows):
        raw, number = rows[number], number + 1
        fence = _fence(raw)
        if not raw or raw.isspace():
            yield Line(number, 0, "blank")
        elif fence:
            opens = number <= last_fence and (code is None or fence[1].strip() != "")
            code = fence[1].strip().lower() if opens else None
            yield Line(number, 0, "blank")
        elif code is not None:
            if code in _PLAIN_CODE and not raw.lstrip().startswith(("@", "$", "{")):
                yield Line(number, _indent(raw), "text", raw.strip(), label=label(raw.strip()))
        elif number < len(rows) and _is_table(raw, rows[number]):
            yield Line(number, 0, "header", raw)
            number += 1
            while number < len(rows) and "|" in rows[number]:
                number += 1
                yield Line(number, 0, "row", rows[number - 1])
        elif level := _underlined(rows, number - 1):
            yield Line(number, 0, "head", raw.strip(), level)
            number += 1
        else:
            yield from _parts(raw, number)


def _fence(raw: str) -> re.Match[str] | None:
    return _FENCE.match(raw.lstrip()) if "```" in raw or "~~~" in raw else None


def _indent(line: str) -> int:
    return len(line[: len(line) - len(line.lstrip())].expandtabs(4))


def _is_table(header: str, below: str) -> bool:
    if "|" not in header or "-" not in below or not _DELIMITERS.match(below.strip()):
        return False
    return len(cells(header)) == len(cells(below)) > 1


def _underlined(rows: Sequence[str], row: int) -> int:
    """Return 1 or 2 for a line that stands alone over ``===`` or ``---``, else 0."""
    below = _UNDERLINE.match(rows[row + 1]) if row + 1 < len(rows) and rows[row + 1][:1] in ("=", "-") else None
    text = rows[row].strip() if below else ""
    if not below or not text or (row and rows[row - 1].strip()) or not text[0].isalnum() or len(text) > 300:
        return 0
    return 0 if is_prose(text) or label(text) else 1 if below[1][0] == "=" else 2


def _parts(raw: str, number: int) -> Iterator[Line]:
    """Yield what stands on one line; folded parts as details, summary, /summary and /details."""
    quote = _QUOTE.match(raw)
    inner = raw[quote.end() :] if quote else raw
    indent, text = (_indent(raw) if quote else 0) + _indent(inner), inner.strip()
    if RULE.fullmatch(text):
        yield Line(number, indent, "rule")
        return
    item = _ITEM.match(text)
    text = text[item.end() :] if item else text
    heading = _HEADING.match(text)
    if heading:
        yield Line(number, indent, "head", heading[2] or heading[4] or "", len(heading[1] or "") or int(heading[3]))
        return
    kind, found = "item" if item else "text", [text]
    if "<" in text:
        found = [without_tags(part).strip() for split in _FOLD.split(text) for part in _BREAK.split(split)]
    for part in filter(None, found):
        tag = part[0] == "<" and _FOLD.fullmatch(part)
        if tag and kind == "item":
            yield Line(number, indent, kind)
            kind, indent = "text", indent + 1
        yield Line(number, indent, _tag(part)) if tag else Line(number, indent, kind, part, label=label(part))
        if kind == "item":
            kind, indent = "text", indent + 1
    if not any(found):
        yield Line(number, indent, "item" if item else "blank")


def _tag(tag: str) -> str:
    return "/" * tag.startswith("</") + ("details" if "details" in tag[:10].lower() else "summary")


def _folded(lines: Iterable[Line]) -> Iterator[Line]:
    """Join the parts of a fold's opening, over several lines or not, to one line of the kind open."""
    opening: Line | None = None
    summary: list[str] | None = None
    for line in lines:
        if opening and summary is None and line.kind in ("blank", "summary"):
            summary = [] if line.kind == "summary" else None
            continue
        if summary is not None and line.kind in ("text", "item"):
            summary.append(line.text)
            continue
        if opening:
            yield opening._replace(kind="open", text=" ".join(summary or ()))
            opening, summary = None, None
        if line.kind == "details":
            opening = line
        elif line.kind == "/details":
            yield line._replace(kind="close")
        elif line.kind not in ("summary", "/summary"):
            yield line
    if opening:
        yield opening._replace(kind="open", text=" ".join(summary or ()))
