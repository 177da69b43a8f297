"""Raw dump text → plain text on one line, by ftfy and pylatexenc; each is used only where its signs appear."""

import html
import logging
import re
import unicodedata
from functools import cache, lru_cache
from typing import Any

_MAX_PASSES = 8
_MAX_SIGNS = 2000

_SURROGATES = re.compile("[\ud800-\udfff]")
_CONTROL = re.compile(
    "\xad\\s*\n\\s*|[\0-\x08\x0b\x0c\x0e-\x1f\x7f\xad\u034f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]+"
)
_DOTLESS = re.compile("ı(?=[\u0300-\u036f])")
_LONE = "–—…‘’“”×αβγδεζηθικλμνξοπρστυφχψωΓΔΘΛΠΣΦΨΩàáâãäåçèéêëìíîïñòóôõöøùúûüß→←∞∈≤≥≈√∼"  # no mojibake unless two meet
_SUSPECT = re.compile(f"[^\t\n\r -~{_LONE}]|[{_LONE}]{{2}}")
_MATH_LETTER = re.compile("[\u2100-\u214f\U0001d400-\U0001d7ff]")
_MATH_LETTERS = {
    code: plain
    for code in (*range(0x2100, 0x2150), *range(0x1D400, 0x1D800))
    if len(plain := unicodedata.normalize("NFKC", chr(code))) == 1 and plain.isalnum()
}
_ENTITY = re.compile(r"&(?:amp;)*(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")

_ATTRIBUTES = r"(?:\s+[\w:-]{1,40}\s*=\s*(?:\"[^<>\"]{0,300}+\"|'[^<>']{0,300}+'|[^\s<>\"'=]{1,300}+)){0,9}+\s*/?>"
_MATH_TAG = "math|semantics|m(?:i|o|n|row|sup|sub|subsup|frac|sqrt|over|under|text|style|fenced|space)"
_BLOCK = "p|br|div|li|ul|ol|title|sec|table|tr|td|h[1-6]|abstract"
_INLINE = "i|b|u|em|strong|sub|sup|span|a|tt|code|italic|bold|underline|sc|font|small|xref|ext-link|inline-formula"
_INLINE += "|inf|scp|roman|monospace|tex-math|alternatives"
_BLOCK_TAG = re.compile(
    rf"</?(?:(?:ns\d:)?(?:{_BLOCK})|(?:jats|mml|tex)[:-][\w-]{{1,40}}+){_ATTRIBUTES}", re.IGNORECASE
)
_INLINE_TAG = re.compile(rf"</?(?:(?:jats|mml|ns\d):)?(?:{_INLINE}|{_MATH_TAG}){_ATTRIBUTES}", re.IGNORECASE)
_NO_TEXT = re.compile(
    r"<!--(?:(?!<!--).){0,9999}?-->|<(script|style)(?:\s[^<>]{0,300})?>[^<]{0,9999}</\1\s{0,9}>|<img\s[^<>]{0,999}>"
    r"|<!\[CDATA\[|\]\]>",
    re.IGNORECASE | re.DOTALL,
)

_APART = "and|or|to|but|nor|vs|versus|than|that|which|the|is|are|we|by|for|with|in|on|as|it|from"
_COMPOUND = (
    "making|world|time|out|of|art|end|word|rank|level|scale|wise|shot|order|based|aware|specific|agnostic|driven"
    "|free|guided|conditioned|dependent|efficient|dimensional|observable|readable|tun(?:ed|ing)|train(?:ed|ing)"
)
_BROKEN_WORD = re.compile(rf"(?<![\w-])([^\W\d_]{{2,60}}+)-\s++(?!(?:{_APART})\b)(?=[a-z]{{2}})(({_COMPOUND})\b)?")
_HYPHEN_SPACE = re.compile(r"-\s")
_DASHES = re.compile(r"(?<=\s)-{2,3}(?=\s)|(?<=[\w%)])-{2,3}(?=[\w(])")

_FLAT = r"\{(?:[^{}\\]|\\.){0,500}+\}"
_GROUP = _FLAT
for _ in range(3):
    _GROUP = rf"\{{(?:[^{{}}\\]|\\.|{_GROUP}){{0,500}}+\}}"
_DROPPED = re.compile(
    r"[~\s]{0,4}\\(?:cite|ref|eqref|autoref|cref|label|begin|end)[a-zA-Z]{0,12}\*?(?:\[[^\[\]{}]{0,200}+\]){0,2}+"
    r"\{[^{}]{0,500}+\}(?=(\s{0,4}[.,;:!?)])?)"
)
_BODY = r"(?:[^$\\]|\\.){1,800}?"
_FORMULA = (
    rf"\$\$?(?=\s?[\\^_{{]){_BODY}\$\$?"  # a formula beyond doubt
    rf"|\$\$?(?![\s$])(?!\d[^$\\]{{0,300}}?[a-z]{{2,}}\s+[a-z]{{2,}}){_BODY}(?<!\s)\$\$?(?!\d)"  # else like pandoc
    r"|\$(?:[A-Za-z]|[<>=~+-]{1,2})\$(?=\d)"
    rf"|\$\s(?=[^$\n]{{0,80}}?[\\=<>^_]|\S{{1,30}}\s\$){_BODY}\$(?!\d)"
    r"|\\\((?:[^\\]|\\[^()]){1,800}+\\\)|\\\[(?:[^\\]|\\[^\[\]]){1,800}+\\\]"
)
_COMMAND = rf"\\[a-zA-Z]+\*?(?:\[[^\[\]{{}}]{{0,80}}+\])?(?:{_GROUP}){{0,3}}+|\\[^a-zA-Z\s](?:{_FLAT}|\w)?|\\(?=\s)"
_ISLAND = re.compile(rf"{_FORMULA}|(?=\{{\\){_GROUP}|{_COMMAND}", re.DOTALL)
_IGNORED = re.compile(
    r"\\(?:(?:left|right|middle|[bB]igg?[lrm]?|em|it|bf|sf|rm|sc|tt|sl|cal|large|small|boldmath|displaystyle|textstyle"
    r"|limits|smash|noindent|xspace|protect|verb)(?![a-zA-Z])|(?:href|(?:text)?color)\s*\{[^{}]*\})\s*"
)
_OPERATOR = re.compile(r"((?<=[\w})]))?\\(log|ln|exp|sin|cos|min|max|sup|inf)(?![a-zA-Z])\s*((?=[^\W_]|\\))?")
_ESCAPED_BREAK = re.compile(r"(?:(?:\\[nrt]){2,9}+|(?<=[.!?:;])\\[nrt])(?=\s|\Z|[A-Z])")
_CODE_POINT = re.compile(r"\\u(?:nicode\{x([0-9a-fA-F]{2,4})\}|([0-9a-fA-F]{4}))")
_SYMBOLS = {"url": "%s", "ne": "≠", "neg": "¬", "land": "∧", "lor": "∨"}
_NAME = re.compile(r"\\([a-zA-Z]+)\*?(?=(\{[^}\s])?)")
_LETTER = re.compile(r"(\\(?:[oOlL]|ss|[ao]e|aa|A[AE]|OE))\s(?=[a-z])")
_TIE = re.compile(r"(?<=[^\s\d/(~])~(?=[^\s(~])")
_ROOT = re.compile(r"√\((\w)\)")

_STRONG = re.compile(r"(?<![\w*])(\*\*\*?)(?=\w)([^*]{1,300}?)(?<=[\w.,:;!?)])\1(?!\*)")
_EMPHASIS = re.compile(r"(?<![\w*])(\*)(?=[^\W\d_])([^*]{1,300}?)(?<=[\w.,:;!?)])\*(?![\w*])")
_UNDERLINE = re.compile(r"(?<![\w/])(__?)(?=[^\W\d_])([^_]{1,300}?)(?<=[\w.,:;!?)])\1(?!\w)")
_LINK = re.compile(r"!?\[([^\[\]]{1,300}+)\]\(https?://[^()\s]{1,500}+\)")


def clean(text: str) -> str:
    r"""Return plain text on one line: mojibake, entities, tags, LaTeX, markdown emphasis and broken words mended.

    Formulas become readable text (``$O(1/\sqrt{T})$`` → O(1/√T)) in plain letters (``\mathcal{O}`` → O), citations
    and references are dropped, unknown LaTeX commands keep their name or else their argument. Only known tags are
    tags: ``<think>`` and ``a < b`` stay. A broken word ("uncer- tainty", also at a line end) is joined; a compound
    ("real- world") keeps its hyphen, a suspended hyphen ("first- and second-order") stays as it is.

    Cleaning is repeated until nothing changes, so that ``clean(clean(x)) == clean(x)``, with at most 8 passes. No
    input raises. The time is linear: LaTeX is left as it stands in a text with more than 2,000 of its signs.
    """
    for _ in range(_MAX_PASSES):
        before, text = text, _passed(text)
        if text == before:
            break
    return text


def _passed(text: str) -> str:
    text = _plain_characters(text)
    if "<" in text:
        text = _BLOCK_TAG.sub(" ", _INLINE_TAG.sub("", _NO_TEXT.sub(" ", text)))
    if "ı" in text:
        text = _DOTLESS.sub("i", text)
    if _HYPHEN_SPACE.search(text):
        text = _BROKEN_WORD.sub(_mended, text)
    if "--" in text:
        text = _DASHES.sub(_dash, text)
    if "\\" in text or "$" in text:
        text = _without_latex(text)
    if "~" in text:
        text = _TIE.sub(" ", text)
    if "``" in text:
        text = text.replace("``", "“").replace("''", "”")
    if "*" in text or "_" in text:
        text = _UNDERLINE.sub(r"\2", _EMPHASIS.sub(r"\2", _STRONG.sub(r"\2", text)))
    if "](" in text:
        text = _LINK.sub(r"\1", text)
    return " ".join(unicodedata.normalize("NFC", text).split())


def _plain_characters(text: str) -> str:
    if not text.isascii():
        text = _plain_letters(_fixed(_SURROGATES.sub("\ufffd", text))).replace("\u2010", "-").replace("\u2011", "-")
    if "&" in text:
        text = _ENTITY.sub(_unescaped, text)
    return _CONTROL.sub("", text)


def _plain_letters(text: str) -> str:
    return text.translate(_MATH_LETTERS) if _MATH_LETTER.search(text) else text


def _fixed(text: str) -> str:
    if not _SUSPECT.search(text):
        return text
    import ftfy

    return ftfy.fix_text(text, unescape_html=False, uncurl_quotes=False, explain=False)


def _unescaped(entity: re.Match[str]) -> str:
    return html.unescape(re.sub(r"^&(?:amp;)+(?=.)", "&", entity.group()))


def _mended(word: re.Match[str]) -> str:
    return f"{word[1]}-{word[2]}" if word[2] else word[1]


def _dash(dashes: re.Match[str]) -> str:
    return "–" if len(dashes.group()) == 2 else "—"


def _without_latex(text: str) -> str:
    if text.count("{") + text.count("\\") + text.count("$") > _MAX_SIGNS:
        return text
    text = _CODE_POINT.sub(lambda code: chr(int(code[1] or code[2], 16)), _ESCAPED_BREAK.sub(" ", text))
    text = _LETTER.sub(r"\1{}", text)
    return _ISLAND.sub(lambda island: _converted(island.group()), _DROPPED.sub(_gap, text))


@lru_cache(maxsize=4096)
def _converted(island: str) -> str:
    latex = re.sub(r"\\*([%&#])", r"\\\1", island)
    latex = re.sub(r"(\\[a-zA-Z]+)(?=[^\x00-\x7f])", r"\1 ", latex).replace("\\wide", "\\")
    latex = _OPERATOR.sub(_spaced, _IGNORED.sub("", re.sub(r"\\[cdt]frac(?![a-zA-Z])", r"\\frac", latex)))
    latex = _NAME.sub(_known_or_bare, latex)
    try:
        text: str = _converter().latex_to_text(latex, latex_context=_grammar())
    except Exception:  # the library raises many kinds on what is no LaTeX; the text then stays as it is
        return island
    if "%s" in text and "%s" not in island:  # a template that the library could not fill
        return island
    return _ROOT.sub(r"√\1", unicodedata.normalize("NFC", _plain_letters(text)))


def _gap(dropped: re.Match[str]) -> str:
    return "" if dropped[1] else " "


def _spaced(operator: re.Match[str]) -> str:
    before, name, after = operator.groups()
    return f"{'' if before is None else ' '}{name}{'' if after is None else ' '}"


def _known_or_bare(name: re.Match[str]) -> str:
    """Return an unknown command's name only where no argument follows that is the text."""
    if getattr(_converter().latex_context.get_macro_spec(name[1]), "macroname", ""):
        return name.group()
    return "" if name[2] else f"{name[1]} "


@cache
def _converter() -> Any:
    from pylatexenc.latex2text import LatexNodes2Text, MacroTextSpec, get_default_latex_context_db

    logging.getLogger("pylatexenc").setLevel(logging.ERROR)  # it warns of every ``\frac`` without two arguments
    context = get_default_latex_context_db()
    context.add_context_category("kept", prepend=True, macros=[MacroTextSpec(*item) for item in _SYMBOLS.items()])
    return LatexNodes2Text(latex_context=context, math_mode="text", keep_comments=True)


@cache
def _grammar() -> Any:
    from pylatexenc.latexwalker import get_default_latex_context_db

    return get_default_latex_context_db()
