"""Markdown a line at a time: its kind, a label before the text, and what a line or a paragraph reads as."""

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from abstag.readers._headings import END, RULE

LINK = re.compile(
    r"(?<!!)\[((?:[^\[\]]|\[[^\[\]]{0,60}\]){1,500}+)\]"
    r"\(\s{0,3}<?((?:[^()\s<>]|\([^()\s]{0,200}\)){0,1000}+)>?(?:\s{1,3}[\"'][^\"']{0,200}[\"'])?\s{0,3}\)"
)
_IMAGE = re.compile(r"!\[[^\[\]]{0,300}\]\([^()\s]{0,1000}\)")
_CODE = re.compile(r"`[^`]{0,300}`|<?https?://\S+")
_CUT, _FOLD, _CLOSE = "\ufdd0", "<summary>", "</details>"  # the first ends a line inside a physical one


def _blank(found: re.Match[str]) -> str:
    return "\n" * found[0].count("\n")


_HTML: tuple[tuple[str, str | Callable[[re.Match[str]], str]], ...] = (  # what becomes of it, in this order
    (r"\A---\s*\n(?=[\w-]+:).{0,5000}?\n(?:---|\.\.\.)\s*\n", _blank),  # front matter
    (r"(?m:^)[ >]*(```|~~~) ?(?!te?xt)\w.{0,3000}?\n[ >]*\1[ \t]*(?m:$)", _blank),  # program code
    (r"<summary\b[^<>]*>(.{0,600}?)</summary>", lambda it: _CUT + _FOLD + " ".join(it[1].split()) + _CUT + _blank(it)),
    (r"<h([1-6])\b[^<>]{0,300}>([^\n]{0,500}?)</h\1>", lambda it: f"{_CUT}{'#' * int(it[1])} {it[2]}{_CUT}"),
    (r"(?m:^)([ >]*>[ \t]*)\[!(\w{1,30})\][+-]?", r"\1**\2:**"),  # a callout of Obsidian
    (r"<!--.{0,2000}?-->", _blank),
    (r"</details\s{0,3}>", f"{_CUT}{_CLOSE}{_CUT}"),
    (r"<br\s{0,3}/?>|<details\b[^<>]{0,300}>", _CUT),
    (r"<a\b[^<>]{0,500}?\bhref\s?=\s?[\"']?([^\"'\s<>]{1,999})[^<>]{0,300}>([^<>]{1,500})</a>", r"[\2](\1)"),
    (r"</?(?:b|strong)\s{0,3}>", "**"),
    (r"</?(?:i|em)\s{0,3}>", "*"),
    (r"</?(?:a|p|div|ol|ul|li|center|span|font|small|img|section|blockquote|hr|table|tr|td)\b[^<>]{0,500}>", " "),
)
_QUOTE = re.compile(r"\A[ \t]{0,12}(?:>[ \t]?)++")
_ITEM = re.compile(r"(?:[-*+•‣◦]|\d{1,6}[.)、])\s+(?:\[[ xX]\]\s+)?")
_DELIMITERS = re.compile(r"\|?\s*+:?-++:?\s*+(?:\|\s*+:?-++:?\s*+)*+\|?")
_NUMBER = re.compile(r"\A(?:\[\s?#?\d{1,6}\s?\]|\(\d{1,6}\)|#?\d{1,6}\s?[.)、:](?!\d)|#\d{1,6}(?=\s))[\s.:]*")
_EMPHASIS = re.compile(r"(\*{1,3}|_{1,3})(?=\S)(.{1,600}?)(?<=\S)\1(?![\w*])")
_EMPTY = re.compile(r"[\[(][\s|,/·-]{0,9}[\])]")
_ESCAPE = re.compile(r"\\([\[\]()_*#`|!&])|\s#+$")
_LABEL = re.compile(
    r"[^\w\[*]{0,20}+(?P<open>[*_]{0,3}+)(?:[^\w\[*]){0,9}+(?P<name>[^\W_](?:[^:：*_`\n]|_(?=\w)){0,42}?)[.\s]{0,3}"
    r"(?:(?P<tail>[:：][*_]{0,3}|[*_)]{1,4}\s?[:：]|[*_]{1,3}(?=[\s.—–-]|$)[\s.—–-]{0,3})(?P<rest>.*)|$)"
)
_LEAD = re.compile(r"[\W_]{0,20}+(?:Abstract|ABSTRACT)\s?[.—–-][*_]{0,3}\s{0,2}(?=\S)")
_KINDS = {
    "abstract": r"(?:(?:show|see|view|read|full|english|original|paper|the|click|for|to|toggle) )*"
    r"abstracts?(?: (?:click|to|expand|here|english|original|en|text|show|hide))*|(?:英文|原文|论文)?摘要",
    "summary": r"summary",
    "title": r"(?:paper )?title",
    "authors": r"(?:paper )?authors?(?: s)?|作者",
    "venue": r"venue|conference|journal|booktitle|published (?:in|at)|proceedings",
    "year": r"year|date|published(?: on| date)?|publi(?:sh|cation) date|submitted(?: on)?",
    "keywords": r"(?:author )?key ?words?",
    "primary_area": r"primary (?:subject )?area",
    "topic": r"topic",
    "text": r"english|original|en|details|content"
    r"|background|introduction|objectives?|aims?|motivation|problem|methods?|approach|results?|conclusions?",
    "aside": r"(?:.{1,20} )?tl ?;? ?dr(?: .{1,20})?|.{1,30} summary|.{0,20}translation.{0,20}|.{0,9}chinese.{0,9}"
    r"|highlights?|key ?points?|takeaways?|insights?|reviews?|comments?|notes?|annotations?|remarks?",
    "other": r"affiliations?|institut\w+|(?:\w+ )?(?:links?|urls?|pages?)|pdf|papers?|arxiv.{0,12}|codes?|github"
    r"|projects?|(?:web)?sites?|homepage|data|datasets?|models?|demo|videos?|slides?|posters?|doi|openreview|html|here"
    r"|cite|citations?|bibtex|references?|(?:main )?categor(?:y|ies)|subjects?|areas?|tracks?|decision|status|supp"
    r"|ratings?|awards?|id|license|(?:table of )?contents|contributing|acknowledge?ments?|news|\d[\d v]*",
}
TEXTS = ("abstract", "summary", "text")
_WORD = re.compile(r"[^\W\d_][\w'’-]*")
_FOREIGN = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_LATIN = re.compile("[A-Za-z]+")
_COMMON = frozenset(
    (
        *(
            "the",
            "of",
            "and",
            "to",
            "in",
            "a",
            "an",
            "is",
            "we",
            "that",
            "for",
            "with",
            "are",
            "this",
            "on",
            "by",
            "as",
        ),
        *("our", "it", "be", "from", "can", "which", "has", "have"),
    )
)


class Line(NamedTuple):
    """A line, or a part of one: blank, rule, head, item, text, fold (a summary), close (of a fold), header or row.

    ``indent`` is where the sign of an item or the text begins; ``level`` is that of a head, 1 to 6.
    """

    number: int
    indent: int
    kind: str
    text: str = ""
    level: int = 0


def scan(text: str) -> Iterator[Line]:
    """Yield the lines of a markdown text; front matter, comments and blocks of program code are left out."""
    for pattern, new in _HTML:
        text = re.sub(pattern, new, text, flags=re.IGNORECASE | re.DOTALL)
    rows, table = [*text.split("\n"), ""], ""
    for number, (raw, below) in enumerate(pairwise(rows), 1):
        is_header = "|" in below and _DELIMITERS.fullmatch(below.strip())
        table = ("row" if table else "header" if is_header else "") if "|" in raw else ""
        if not table:
            yield from _parts(raw, number)
        elif not _DELIMITERS.fullmatch(raw.strip()):
            yield Line(number, 0, table, raw)


def cells(row: str) -> list[str]:
    """Return the cells of a table row, without the summaries of folds."""
    row = re.sub(f"{_FOLD}[^{_CUT}]*", "", row).replace(_CLOSE, "").replace(_CUT, " ")
    row = row.strip().removeprefix("|").removesuffix("|")
    return [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", row)]


def bare(text: str) -> str:
    """Return a title or a value without numbers before it, links, emphasis and images."""
    text = _IMAGE.sub("", " ".join(text[:2000].split()))
    text = _EMPTY.sub("", LINK.sub(lambda link: "" if is_link_text(link[1]) else link[1], text))
    text = _EMPHASIS.sub(r"\2", _EMPHASIS.sub(r"\2", text)).strip(" |·,–—")
    return " ".join(_ESCAPE.sub(r"\1", _NUMBER.sub("", text)).split())


def is_link_text(text: str) -> bool:
    """Return whether the text of a link says only where it leads: "PDF", "arXiv 2401.00001", an address."""
    return text.startswith("http") or kind_of(text) == "other"


def kind_of(name: str) -> str | None:
    """Return the kind of a label, taken as a whole; None if it is not known."""
    plain = " ".join(re.sub(r"[^\w;]|_", " ", name[:100].casefold()).split())
    return next((kind for kind, pattern in _KINDS.items() if re.fullmatch(pattern, plain)), None)


def label(line: str) -> tuple[str, str] | None:
    """Return the kind of a line's label and what follows; up to 3 unknown bold words with a colon are "other"."""
    lead, found = _LEAD.match(line), _LABEL.match(line)
    if lead or not found:
        return ("abstract", line[lead.end() :]) if lead else None
    kind, mark, tail, rest = kind_of(found["name"]), found["open"], found["tail"] or "", (found["rest"] or "").strip()
    colon, closed = ":" in tail or "：" in tail, bool(mark) and ("*" in tail or "_" in tail)
    rest = rest.rstrip("*_ ") if mark and not closed else rest
    if kind is None and closed and colon and len(found["name"].split()) <= 3:
        kind = "other"
    if kind == "text":
        return None if rest else ("text", "")
    if kind == "other" and colon and mark[:2] in ("**", "__") and not closed:
        return None  # a bold line with a colon in it
    short = not rest or (closed and (kind in (*TEXTS, "aside") or len(rest.split()) < 12))
    return (kind, rest) if kind and (colon or short) else None


def is_text(line: str) -> bool:
    """Return whether a line holds three words beside links and code, most of them with a small letter."""
    words = _WORD.findall(_CODE.sub("", LINK.sub("", _IMAGE.sub("", line))))
    return len(words) >= 3 and sum(word[0].islower() for word in words) * 2 >= len(words)


def is_prose(text: str) -> bool:
    """Return whether a paragraph is text of 20 words, or 8 with a full stop."""
    words = len(_WORD.findall(text))
    return is_text(text) and (words >= 20 or (words >= 8 and END.search(text) is not None))


def is_foreign(text: str) -> bool:
    """Return whether a text is written in Chinese, Japanese or Korean, English words inside it or not."""
    return not text.isascii() and len(_FOREIGN.findall(text)) * 8 > sum(map(len, _LATIN.findall(text)))


@lru_cache(maxsize=256)  # asked of each paragraph a dozen times
def is_english(text: str) -> bool:
    """Return whether a text is English by its commonest words; a few words are, unless they are in another script."""
    words = _LATIN.findall(text.lower())
    common = sum(map(_COMMON.__contains__, words))
    return not is_foreign(text) and (len(words) < 12 or common * 8 > len(words))


def _parts(raw: str, number: int) -> Iterator[Line]:
    raw = raw.expandtabs(4)
    indent, text = len(raw) - len(raw.lstrip()), _QUOTE.sub("", raw).strip()
    item = None if RULE.fullmatch(text) else _ITEM.match(text)
    for at, part in enumerate(map(str.strip, (text[item.end() :] if item else text).split(_CUT))):
        if at == 0 and item:
            yield _line(part, number, indent, "item")
        elif at == 0 or part:
            yield _line(part, number, indent + bool(item), "text" if part.strip("`~") else "blank")


def _line(text: str, number: int, indent: int, kind: str) -> Line:
    if heading := re.match(r"(#{1,6})\s+(.*)", text):
        return Line(number, indent, "head", heading[2], len(heading[1]))
    if text.startswith(_FOLD):
        return Line(number, indent, "fold", text.removeprefix(_FOLD))
    marked = "close" if text == _CLOSE else "rule" if RULE.fullmatch(text) else kind
    return Line(number, indent, marked, text)
