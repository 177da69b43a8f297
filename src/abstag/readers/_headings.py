"""Lines that stand over papers: the venue and the year that they give."""

import re
from typing import NamedTuple

HASHES = re.compile(r"#{1,6}\s")
RULE = re.compile(r"([-=_*~])(?:\s*\1){2,}")
END = re.compile(r"""[.!?;,…。！？][\s"'”’)\]*_]*$""")

_LETTERS, _WORDS = 100, 12
_YEAR = re.compile(r"(?<!\d)(?:19|20)\d\d(?!\d)")
_WORD = re.compile(r"[^\W\d_][\w&'/+-]*")
_LIST_WORD = re.compile(
    r"papers?|accepted|list|abstracts?|proceedings|conference|track|orals?|posters?|spotlights?|sessions?|workshops?",
    re.IGNORECASE,
)
_LINK_WORDS = frozenset({"of", "the", "at", "from", "in", "for", "on", "and", "main"})
_LIST_SIGNS = re.compile("论文|列表|摘要")


class Heading(NamedTuple):
    """What a title line says: the venue as written there, and the year; None is not said."""

    venue: str | None
    year: int | None

    def after(self, earlier: "Heading") -> "Heading":
        """Return this heading with what it does not say taken from the earlier one."""
        return Heading(self.venue or earlier.venue, self.year or earlier.year)


def heading(text: str) -> Heading | None:
    """Return what a line says when it is a heading, else None.

    A heading begins with ``#``, or has at most 12 words and 100 characters, does not end like a sentence, and holds a
    year or a word such as "papers" or "posters".
    """
    if len(text) > _LETTERS:
        return Heading(None, None) if HASHES.match(text) and len(text) < 3 * _LETTERS else None
    if not HASHES.match(text) and (len(text.split()) > _WORDS or END.search(text)):
        return None
    years, words = _YEAR.findall(text), _words(text)
    if not (HASHES.match(text) or years or _LIST_SIGNS.search(text) or any(map(_LIST_WORD.fullmatch, words))):
        return None
    names = [word for word in words if word.isascii() and not _is_filler(word)]
    named = len(names) < len(words) or any(sum(map(str.isupper, name)) > 1 for name in names)
    if len(years) != 1 or len(names) > 4 or not (named or not names):
        return Heading(None, None)
    return Heading(" ".join(names) or None, int(years[0]))


def names_a_group(text: str) -> bool:
    """Return whether a line without hashes can only stand over several papers: "ICML 2025", "Oral papers"."""
    found = heading(text)
    return found is not None and (
        found != Heading(None, None) or not any(word.isascii() and not _is_filler(word) for word in _words(text))
    )


def _words(text: str) -> list[str]:
    return _WORD.findall(_YEAR.sub(" ", text))


def _is_filler(word: str) -> bool:
    return word.casefold() in _LINK_WORDS or _LIST_WORD.fullmatch(word) is not None
