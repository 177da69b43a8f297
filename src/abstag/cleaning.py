"""Raw dump text → plain text on one line, by ftfy and pylatexenc; each is used only where its signs appear."""

import html
import re
from functools import cache, lru_cache
from typing import Any

_MAX_SIGNS = 2000
_ENTITY = re.compile(r"&(?:#\d{1,7}|#x[0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
_BLOCK_TAGS = "p|br|div|li|ul|ol|title|sec|table|tr|td|h[1-6]"
_INLINE_TAGS = "i|b|u|em|strong|sub|sup|span|a|tt|code|italic|bold|underline|sc|font|small|xref|ext-link"
_BLOCK_TAG = re.compile(rf"</?(?:jats:|ns\d:)?(?:{_BLOCK_TAGS})(?:\s[^<>]{{0,500}})?/?>", re.IGNORECASE)
_INLINE_TAG = re.compile(rf"</?(?:jats:|ns\d:)?(?:{_INLINE_TAGS})(?:\s[^<>]{{0,500}})?/?>", re.IGNORECASE)
_NAMESPACED_TAG = re.compile(r"</?(?:jats|mml|tex-math):?[\w-]*(?:\s[^<>]{0,500})?/?>", re.IGNORECASE)
_CONTROL = dict.fromkeys((*range(9), 11, 12, *range(14, 32), 127, 0xAD, 0x200B, 0x2060, 0xFEFF))
_SURROGATES = re.compile("[\ud800-\udfff]")
_BROKEN_WORD = re.compile(r"(?<![\w-])([^\W\d_]{2,})-[ \t]*\r?\n\s*([a-z]{2,})")
_GROUP = r"\{[^{}]{0,500}(?:\{[^{}]{0,200}\}[^{}]{0,500}){0,20}\}"
_DROPPED = re.compile(
    r"~?\\(?:cite|ref|eqref|label|footnote|begin|end)[a-zA-Z]{0,12}\*?(?:\[[^\[\]{}]{0,200}\]){0,2}\{[^{}]{0,500}\}"
)
_FORMULA = r"\$\$?(?!\d[\d.,]*[kKMB]?\s+[a-z]{2,})[^$]{1,800}\$\$?"
_COMMAND = rf"\\[a-zA-Z]+\*?(?:{_GROUP}){{0,3}}|\\[^a-zA-Z\s](?:{_GROUP}|\w)?"
_ISLAND = re.compile(rf"{_FORMULA}|\{{\\[^{{}}]{{1,200}}(?:{_GROUP})?\}}|{_COMMAND}", re.DOTALL)
_BOLD = re.compile(r"\*\*(?=\S)([^*\n]+?)(?<=\S)\*\*|(?<!\w)__(?=\S)([^_\n]+?)(?<=\S)__(?!\w)")
_EMPHASIS = re.compile(
    r"(?<![\w*])\*(?=[^\W\d_])([^*\n]+?)(?<=\w)\*(?![\w*])|(?<![\w_])_(?=[^\W\d_])([^_\n]+?)(?<=\w)_(?!\w)"
)
_LINK = re.compile(r"\[([^\[\]\n]{1,300})\]\(https?://[^()\s]{1,500}\)")


def clean(text: str) -> str:
    r"""Return plain text on one line: mojibake, entities, tags, LaTeX, markdown emphasis and broken words mended.

    Formulas become readable text (``$O(1/\sqrt{T})$`` → O(1/√T)), citations are dropped, unknown LaTeX commands keep
    their name. No input raises; a text with more than 2,000 LaTeX signs is left as it stands.
    """
    text = _SURROGATES.sub("\ufffd", text)
    if not text.isascii():
        text = _fixed(text)
    text = text.translate(_CONTROL)
    if "&" in text:
        text = _unescaped(text)
    if "<" in text:
        text = _NAMESPACED_TAG.sub(" ", _INLINE_TAG.sub("", _BLOCK_TAG.sub(" ", text)))
    if "-" in text:
        text = _BROKEN_WORD.sub(r"\1\2", text)
    if "\\" in text or "$" in text:
        text = _without_latex(text)
    if "*" in text or "_" in text:
        text = _EMPHASIS.sub(_inner, _BOLD.sub(_inner, text))
    if "](" in text:
        text = _LINK.sub(r"\1", text)
    return " ".join(text.split())


def _fixed(text: str) -> str:
    import ftfy

    return ftfy.fix_text(text, unescape_html=False, uncurl_quotes=False, explain=False)


def _unescaped(text: str) -> str:
    for _ in range(3):
        found = _ENTITY.sub(lambda match: html.unescape(match.group()), text)
        if found == text:
            break
        text = found
    return text.translate(_CONTROL)


def _inner(match: re.Match[str]) -> str:
    return match.group(1) or match.group(2)


def _without_latex(text: str) -> str:
    if text.count("{") + text.count("\\") + text.count("$") > _MAX_SIGNS:
        return text
    return _ISLAND.sub(lambda island: _converted(island.group()), _DROPPED.sub(" ", text))


@lru_cache(maxsize=4096)
def _converted(island: str) -> str:
    try:
        text: str = _latex().latex_to_text(island.replace("&", r"\&").replace("#", r"\#").replace("%", r"\%"))
    except Exception:  # the library raises many kinds on what is no LaTeX; the text then stays as it is
        return island
    return text


@cache
def _latex() -> Any:
    from pylatexenc.latex2text import LatexNodes2Text, MacroTextSpec, get_default_latex_context_db

    context = get_default_latex_context_db()
    context.set_unknown_macro_spec(MacroTextSpec("", simplify_repl=lambda node: f"{node.macroname} "))
    context.add_context_category(
        "kept", prepend=True, macros=[MacroTextSpec("href", simplify_repl="%(2)s"), MacroTextSpec("url", "%s")]
    )
    return LatexNodes2Text(latex_context=context, math_mode="text", keep_comments=True, strict_latex_spaces=True)
