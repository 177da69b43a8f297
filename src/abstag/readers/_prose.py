"""What a line or a paragraph reads as: prose, English, names, links."""

import re

from abstag.readers._headings import END

IMAGE = re.compile(r"!\[[^\[\]]{0,300}\]\([^()\s]{0,1000}\)")
LINK = re.compile(
    r"(?<!!)\[((?:[^\[\]]|\[[^\[\]]{0,60}\]){1,500}+)\]"
    r"\(\s{0,3}<?((?:[^()\s<>]|\([^()\s]{0,200}\)){0,1000}+)>?(?:\s{1,3}[\"'][^\"']{0,200}[\"'])?\s{0,3}\)"
)
CODE = re.compile(r"`[^`]{0,300}`")

_URL = re.compile(r"<?https?://\S+")
_WORD = re.compile(r"[^\W\d_][\w'’-]*")
_FOREIGN = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_LATIN = re.compile("[A-Za-z]+")
_COMMON = re.compile(
    r"the|of|and|to|in|an?|is|we|that|for|with|are|this|on|by|as|our|it|be|from|can|which|these|ha[sv]e?"
)
_NAME_WORD = re.compile(r"of|the|and|at|in|for|et|al|v[oa]n|de[rnl]?|d[aiou]s?|l[ae]|with")


def is_prose(text: str) -> bool:
    """Return whether a paragraph has 20 words, or 8 with a full stop, of which most begin with a small letter."""
    words = _WORD.findall(text)
    if len(words) < 8 or sum(word[0].islower() for word in words) * 2 < len(words):
        return False
    return len(words) >= 20 or END.search(text) is not None


def is_foreign(text: str) -> bool:
    """Return whether a text is written in Chinese, Japanese or Korean, English words inside it or not."""
    return len(_FOREIGN.findall(text)) * 8 > sum(map(len, _LATIN.findall(text)))


def is_english(text: str) -> bool:
    """Return whether a text is English by its commonest words; a few words are, unless they are in another script."""
    words = _LATIN.findall(text.lower())
    common = sum(_COMMON.fullmatch(word) is not None for word in words)
    return not is_foreign(text) and (len(words) < 12 or common * 8 > len(words))


def is_names(line: str) -> bool:
    """Return whether a line holds nothing but names, dates and signs: authors, institutes, a venue."""
    words = _WORD.findall(CODE.sub("", LINK.sub("", line)))
    return not is_foreign(line) and all(word[0].isupper() or _NAME_WORD.fullmatch(word) for word in words)


def is_links(line: str) -> bool:
    """Return whether a line is links and images, with code spans and at most three words between them."""
    rest = _URL.sub("", LINK.sub("", IMAGE.sub("", line)))
    return rest != line and len(_WORD.findall(CODE.sub("", rest))) <= 3
