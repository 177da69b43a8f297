"""Labels before free text ("**Authors**: …", "TL;DR", "摘要：…"): what follows them."""

import re
from functools import lru_cache
from typing import NamedTuple

_LABEL = re.compile(
    r"(?P<mark>(?:[^\w\[]|_){0,20}+)(?P<name>[^\W_](?:[^:：*_`\n]|_(?=\w)){0,42}?)[.\s]{0,3}"
    r"(?:(?P<colon>(?P<closed>[*_`)]{0,4})\s{0,2}[:：])|(?P<marked>[*_`]{1,4})(?=[.\s—–-]|$)[.\s—–-]{0,3}|$)"
)
_LEAD = re.compile(r"[\W_]{0,20}+(?:Abstract|ABSTRACT)(?:[.—–]|\s[.—–-])[*_]{0,3}\s{0,2}(?=\S)")
_OPENING = re.compile(r"^[*_]{1,3}\s*")
_CLOSING = re.compile(r"\s*[*_]{1,3}$")
_KINDS = {
    kind: re.compile(pattern)
    for kind, pattern in {
        "abstract": r"(?:(?:show|see|view|read|full|english|original|paper|the|click|for|to|toggle) )*"
        r"abstracts?(?: (?:click|to|expand|here|english|original|en|text|show|hide))*"
        r"|(?:英文|原文|论文)?摘要|概要|초록",
        "summary": r"summary",
        "title": r"(?:paper )?title|英文标题",
        "authors": r"(?:paper )?authors?(?: s)?|作者.{0,4}|著者|저자",
        "venue": r"venue|conference|journal|booktitle|published (?:in|at)|proceedings|会议|期刊",
        "year": r"year|date|published(?: on| date)?|publi(?:sh|cation) date|submitted(?: on)?|.{0,2}(?:时间|日期)|年份",
        "keywords": r"(?:author )?key ?words?|关键词|キーワード",
        "primary_area": r"primary (?:subject )?area",
        "topic": r"topic",
        "text": r"english|original|en|details|content|英文|原文",
        "part": r"background|introduction|objectives?|purpose|aims?|motivation|problem|methods?|approach|results?"
        r"|findings|conclusions?|significance",
        "aside": r"(?:.{1,20} )?tl ?;? ?dr(?: .{1,20})?|.{1,30} summary|.{0,20}translation.{0,20}|highlights?"
        r"|key ?points?|takeaways?|insights?|reviews?|comments?|notes?|remarks?|.{0,9}(?:chinese|japanese|zh).{0,9}"
        r"|.{0,6}中文.{0,6}|.{0,4}翻译|译文|总结|概述|速览|备注|点评|评论|解读|和訳",
        "other": r"affiliations?|institut\w+|(?:paper |project )?(?:links?|urls?|pages?)|pdfs?|papers?|arxiv(?: id)?"
        r"|codes?|github|projects?|(?:web)?(?:site|page)s?|homepage|data(?:set)?s?|models?|demo|videos?|slides?"
        r"|posters?|blog|doi|openreview|hugging ?face|cit(?:e|ations?|ing)|bibtex|references?|tags?"
        r"|(?:main )?categor(?:y|ies)|subjects?|areas?|tracks?|decision|status|sessions?|type|presentation|ranks?"
        r"|scores?|ratings?|awards?|(?:paper )?id|number|license|(?:table of )?contents|toc|contributing"
        r"|acknowledge?ments?|star history|overview|news|(?:latest )?updates?|install(?:ation)?|(?:basic )?usage"
        r"|(?:getting|quick) ?start(?:ed)?|requirements?|setup|examples?|faqs?|todos?|changelog|contacts?|contributors?"
        r"|机构|单位|.{0,4}(?:链接|地址)|论文|代码.{0,2}|项目.{0,2}|.{0,4}标题|题目|目录",
    }.items()
}
_TEXTS, _SHORT = ("abstract", "summary", "aside"), 12


class Label(NamedTuple):
    """What a label announces, and what stands behind it on the line.

    ``kind`` is abstract, summary, title, authors, one of our fields, text (what follows is the text), aside (a summary,
    a translation, a note), or other.
    """

    kind: str
    rest: str


@lru_cache(maxsize=4096)
def kind_of(name: str) -> str | None:
    """Return the kind of a label, taken as a whole; None if it is not known. A "part" is part of the text itself."""
    if len(name) > 80:
        return None
    plain = " ".join(re.sub(r"[^\w;]|_", " ", name.casefold()).split())
    return next((kind for kind, pattern in _KINDS.items() if pattern.fullmatch(plain)), None)


def label(line: str) -> Label | None:
    """Return the label that a line begins with; an unknown one of up to three bold words with a colon is "other"."""
    lead = _LEAD.match(line)
    found = _LABEL.match(line)
    if lead or not found:
        return Label("abstract", line[lead.end() :]) if lead else None
    bold = "*" in found["mark"] or "_" in found["mark"]
    rest = line[found.end() :].strip()
    closed = bool(found["closed"]) or rest[:1] in ("*", "_")
    if bold and found["colon"] and not found["closed"]:
        rest = _OPENING.sub("", rest) if closed else _CLOSING.sub("", rest)
    kind = kind_of(found["name"])
    if kind is None and bold and found["colon"] and closed and len(found["name"].split()) <= 3:
        kind = "other"
    if kind == "part":
        return None if rest else Label("text", "")
    if kind == "other" and found["colon"] and not closed and found["mark"].strip(" ")[:2] in ("**", "__"):
        return None  # a bold line with a colon in it
    short = not rest or (bold and (kind in _TEXTS or len(rest.split()) < _SHORT))
    return Label(kind, rest) if kind and (found["colon"] or short) else None
