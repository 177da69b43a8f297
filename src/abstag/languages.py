"""Languages: the words of a text, its English part, and what other language it is in."""

import re
from functools import cache
from typing import Any

LANGUAGES = {
    "ar": "Arabic",
    "bg": "Bulgarian",
    "bn": "Bengali",
    "ca": "Catalan",
    "cs": "Czech",
    "da": "Danish",
    "de": "German",
    "el": "Greek",
    "es": "Spanish",
    "et": "Estonian",
    "fa": "Persian",
    "fi": "Finnish",
    "fr": "French",
    "he": "Hebrew",
    "hi": "Hindi",
    "hr": "Croatian",
    "hu": "Hungarian",
    "id": "Indonesian",
    "it": "Italian",
    "ja": "Japanese",
    "ko": "Korean",
    "lt": "Lithuanian",
    "lv": "Latvian",
    "nl": "Dutch",
    "no": "Norwegian",
    "pl": "Polish",
    "pt": "Portuguese",
    "ro": "Romanian",
    "ru": "Russian",
    "sk": "Slovak",
    "sl": "Slovenian",
    "sr": "Serbian",
    "sv": "Swedish",
    "th": "Thai",
    "tr": "Turkish",
    "uk": "Ukrainian",
    "ur": "Urdu",
    "vi": "Vietnamese",
    "zh": "Chinese",
}
_COMMONEST = " the ", " of ", " and "
_CHARACTERS = 400  # of English hold one of these
_ENGLISH = re.compile(
    r"\b(?:an?|and|are|as|at|be|been|but|by|can|do|for|from|ha[sv]e?|how|in|into|is|its?|may|more|not|of|on|or|our|such"
    r"|tha[nt]|the|their|these|this|to|was|we|were|when|where|which|while|with)\b"
)
_OTHER = re.compile(
    r"\b(?:der|die|das|und|eine?|einer|mit|für|von|den|dem|des|wir|ist|sind|auf|im|zu|nicht|wird|werden|l[eao]|les|une?|du"
    r"|et|est|dans|pour|qu[ei]|sur|avec|nous|cette|ces|par|el|l[oa]s|una|del|en|con|por|para|se|es|y|como|más|este|est[ao]"
    r"|os?|um|uma|d[aei]|em|com|não|ao|na|no|il|gli|che|per|sono|della|nel|dan|yang|untuk|pada|dengan|ini|dari|adalah|het"
    r"|een|van|op|bir|ve|bu|ile|için|olarak|w|z|się|jest|oraz|och|att|som|är|av|på|med|og|af|til|i)\b"
)
_SCRIPT = (
    "\u0370-\u03ff\u0400-\u052f\u0590-\u05ff\u0600-\u06ff\u0900-\u0dff\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff"
    "\uac00-\ud7af"
)
_OTHER_SCRIPT, _NOT_ENGLISH = re.compile(f"[{_SCRIPT}]"), re.compile(r"[^\W\d_a-zA-Z]")
_UNSPACED = re.compile("[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff]")
_HEADING = (
    r"(?:Abstrak|R[ée]sum[ée]|RÉSUMÉ|Resumen|Resumo|RESUM[EO]N?|Zusammenfassung|Riassunto|Özet|Streszczenie)"
    r"\s?[\]】):.—–]"
)
_OTHER_HEADING = re.compile(rf"\W{{0,5}}{_HEADING}")
_PIECE = re.compile(  # where a sentence, a labelled part or another script begins
    rf"\n+|(?<=[.!?])\s+(?=[^\sa-z])|(?<=[。！？])|(?=[\[【(]?\b(?:{_HEADING}|A(?:bstract|BSTRACT)\s?[\]】):.—–]))"
    rf"|(?<=[0-9A-Za-z.,;:!?)\]])\s*(?=[\[【(]?[{_SCRIPT}]{{2}})"
)
_ENOUGH, _LETTERS = 20, 3
_SHARE, _SURE, _DOUBT, _LONGEST = 0.2, 0.5, 0.05, 2000


def foreign(text: str) -> str | None:
    """Return the code of the language (a key of `LANGUAGES`) of a clean text; None for English, code and formulas."""
    if text.count(" the ") * _CHARACTERS > len(text) or sum(map(text.count, _COMMONEST)) * _CHARACTERS > len(text):
        return None
    if text.isascii() and len(_ENGLISH.findall(text.lower())) > _SHARE * words(text):
        return None
    if sum(map(str.isalpha, text)) * 2 < len(text):  # code, formulas
        return None
    ranked: list[tuple[str, float]] = _identifier().rank(text[:_LONGEST])
    (best, share), shares = ranked[0], dict(ranked)
    return best if best in LANGUAGES and share > _SURE and shares["en"] < _DOUBT else None


def words(text: str) -> int:
    """Return the number of words; of a script without blanks two signs count as one."""
    return len(text.split()) + (0 if text.isascii() else len(_UNSPACED.findall(text)) // 2)


def english(text: str) -> str:
    """Return the English part of a raw text in two languages, any other text as it is.

    Sentences in another script, or of another language's commonest words, are dropped where both they and the others
    have 20 words.
    """
    if text.isascii() or len(_NOT_ENGLISH.findall(text)) < _LETTERS:
        return text
    ours, theirs = list[str](), list[str]()
    own = ours
    for piece in _PIECE.split(text):
        kind = _is_english(piece)
        own = own if kind is None else ours if kind else theirs
        own.append(piece)
    kept, left = "\n".join(ours), "\n".join(theirs)
    return kept if words(kept) >= _ENOUGH and words(left) >= _ENOUGH else text


def _is_english(piece: str) -> bool | None:
    """Return whether a sentence is English, None where it does not tell."""
    low = piece.lower()
    if _OTHER_HEADING.match(piece) or len(_OTHER_SCRIPT.findall(low)) * 3 > sum(map(str.isalpha, low)):
        return False
    ours, theirs = len(_ENGLISH.findall(low)), len(_OTHER.findall(low))
    return None if ours == theirs or max(ours, theirs) < 2 else ours > theirs


@cache
def _identifier() -> Any:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    identifier.set_languages([*LANGUAGES, "en", "zxx"])
    return identifier
