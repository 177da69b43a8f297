"""What of a text is the author's English abstract, and why a text is none."""

import re
from typing import NamedTuple

_PUBLISHERS = (
    r"Springer|Elsevier|IEEE|ACM|Wiley|John Wiley|Taylor (?:&|and) Francis|SAGE|MDPI|IOP|Oxford University Press"
    r"|Cambridge University Press|Association for Computing Machinery|Institute of Electrical|Informa|Inderscience"
    r"|World Scientific|Emerald|Hindawi|Frontiers Media|Public Library of Science|IOS Press|AIP|SPIE|Optica|IET"
    r"|The Authors?\b|Author\(s\)|The Institution of|Society for Industrial"
)
_YEAR = r"(?:19|20)\d\d"
_MARK = rf"(?:[Cc]opyright[\s,:]{{0,3}})?(?:©|ⓒ|\([cC]\)(?=\s?(?:{_YEAR}|{_PUBLISHERS}))|�{{1,2}}(?=\s?{_YEAR}))"
_OPENING = (
    rf"(?:{_MARK}|(?:Copyright|COPYRIGHT)[,:]?\s(?:(?:by\s)?(?:{_YEAR}|{_PUBLISHERS})|for this paper by"
    r"|(?:is )?held by (?:the )?(?:owner|author)|of [^.]{1,150} is the property of))"
)
_LICENCE = (
    r"(?:This (?:article|paper|work|chapter|is)|These materials|The article)[^.]{0,60}?(?:is|are|an) (?:an )?"
    r"(?:protected by copyright|open[- ]access (?:article|paper)|licensed under"
    r"|(?:distributed|published|made available) under (?:the terms|an? |the |CC|Creative))"
    r"|(?:Licensed|Distributed|Published|Open access) under (?:a |an |the )?(?:CC|Creative Commons|licen[cs]e|terms)"
    r"|Personal use of this material is permitted|Permission to make digital or hard copies|Use permitted under"
    r"|Publication rights licensed to"
)
_PUBLISHED = (
    rf"Published (?:in \d{{4}} )?by (?:{_PUBLISHERS}"
    r"|[A-Z][\w.&'’-]{1,30}(?: [A-Z&][\w.&'’-]{0,30}){0,6}[.\s]*\Z)"
)
_NAME = (
    rf"(?:{_YEAR},?\s)?(?:Springer|Elsevier|IEEE|ACM|Wiley|John Wiley)"
    r"(?:[\s,.&()/-]{1,3}(?:[A-Z][\w.]{0,30}|\d{4}|and|of|the|for|on|behalf))*+[\s.]*\Z"
)
_ENDED = r"(?:(?<=[.!?)\]\"”])\s{0,2}|\A)"  # where a sentence may begin; Scopus leaves no blank
_AUTHOR = re.compile(r"\b(?:[Ww]e|[Oo]ur|propose[sd]?|achieves?|outperforms?)\b")
_KEYWORDS = (
    rf"{_ENDED}[*_#\[]{{0,3}}(?:(?:Author )?Key[ -]?[Ww]ords?(?: and [Pp]hrases)?|KEY ?WORDS(?: AND PHRASES)?"
    r"|Index [Tt]erms|INDEX TERMS|CCS C(?:oncepts|ONCEPTS)|Categories and Subject Descriptors|General Terms)"
    r"[*_\]]{0,3}\s?(?:[:：.;•–—-]|(?=[^.]{1,200}·))"
)
_COMMENTS = (
    rf"{_ENDED}(?:Comments?\s?:\s(?=.{{0,120}}(?:\d (?:pages?|[Ff]igures?)\b|[Aa]ccepted|[Tt]o appear|[Ss]ubmitted"
    r"|[Pp]ublished))|Subjects: |Cite as: |Journal[- ]ref: |ACM Reference Format:)"
)
_NOTICES = rf"{_ENDED}(?:{_OPENING}|{_LICENCE}|{_PUBLISHED}|{_NAME}|All [Rr]ights [Rr]eserved|\(PsycINFO)"
_TAILS = tuple(map(re.compile, (_NOTICES, rf"(?<=[a-z\d])\s?©\s?(?={_YEAR})", _KEYWORDS, _COMMENTS)))
_TAIL = 800  # characters, at most
_BODY = re.compile(
    rf"{_ENDED}(?:(?:1\.?|I\.)\s(?:Introduction|INTRODUCTION)\b[.:]?(?=\s[A-Z])"
    r"|(?:References|REFERENCES|Bibliography)\s?:?\s(?=\[1\]|1\.\s|[A-Z][\w-]{1,30},? (?:[A-Z]\.|et al)))"
)
_BODY_WORDS = 40
_SIGNS = (  # without any of them nothing is cut at the end
    *("©", "ⓒ", "(c)", "\ufffd", "opyright", "rights", "published", "licen", "open access", "permission", "permitted"),
    *("springer", "elsevier", "ieee", "acm", "wiley", "keyword", "key word", "key-word", "index terms", "ccs concepts"),
    *("general terms", "categories and", "comment", "subjects: ", "cite as: ", "journal-ref", "journal ref"),
    *("reference format", "introduction", "references", "bibliography"),
)

_FIRST = (
    "We|This|These|In|The|An?|Our|It|Recent(?:ly)?|Despite|While|Although|With|As|For|To|Many|Most|Existing|Background"
    "|Introduction|Objectives?|Purpose|Motivation|Aims?|Here|When|How|Given|Modern|Current(?:ly)?|Previous|Prior|Since"
    "|Over|Due|By|From|On|One|There|Several|Large|Deep|Machine|Neural"
)
_HEADING = re.compile(
    r"\A[\W_]{0,6}(?:Extended\s)?(?:(?:Abstract|ABSTRACT|Summary|SUMMARY)"
    r"(?:[*_\])】]{0,3}\s?[:：.—–|\]】*_](?!\d)[\s*_—–-]*|\s?-(?=[\sA-Z])\s*"
    rf"|\s(?=(?:{_FIRST})\b)|(?=[A-Z][a-z]*\s[a-z]))|ABSTRACT\s(?=[A-Z][a-z]|A\s))"
)
_HEAD_NOTICE = re.compile(
    rf"\A{_OPENING}(?![^.]{{0,200}}\b(?:we|our)\b)(?:B\.\s?V\.|S\.\s?A\.|[^.]){{2,200}}?(?:(?<=\.V\.|\.A\.)|\.)\s*(?=[A-Z\"“(])"
    r"(?:(?:All [Rr]ights [Rr]eserved|Published by (?:B\.\s?V\.|[^.]){3,80}"
    r"|Use permitted under (?:\(CC[^)]{0,30}\)|\d\.\d|[^.]){3,150})\.\s*)*"
)

_OF_WHAT = (
    r"(?: (?:is|was|are|has|been|currently|temporarily|yet|available|unavailable|provided|given|found|supplied"
    r"|submitted|present|exists?|entered|recorded|included|for|of|in|on|at|from|by|to|this|the|an?|item|article|paper"
    r"|record|document|publication|entry|title|work|time|moment|here|online|database|text|source|publisher|authors?"
    r"|English))*"
)
_PLACEHOLDER = re.compile(
    r"[\W_]*(?:n/?a|n\.a|nan|null|none|nil|empty|missing|blank|undefined|unknown|unavailable|pending|placeholder"
    r"|tb[ad]|todo|x{2,}|abstract|summary|(?:abstract )?coming soon|forthcoming"
    r"|to be (?:added|announced|determined|provided|completed|updated|done)(?: (?:soon|later))?"
    r"|(?:abstract |more |details )?(?:to|will) (?:appear|follow|come|be (?:added|announced|available|provided))"
    rf"(?: (?:soon|later|shortly))?{_OF_WHAT}"
    r"|(?:there is |sorry,? |currently,? )?(?:no|without(?: an?)?)(?: English| author)? "
    rf"(?:abstract|summary|description)s?{_OF_WHAT}"
    r"|(?:(?:an? |the |this )?(?:English |author )?(?:abstract|summary|description|content|text)s?"
    r"(?: (?:is|was|has been|are))?(?: currently| temporarily| yet)? )?"
    rf"(?:not(?: yet| currently)? |un)(?:available|provided|given|found|applicable|included){_OF_WHAT}"
    r"|(?:please |for (?:the |an )?abstract,? (?:please )?)?"
    r"(?:see|refer to|read|cf\.?|check|consult|in|download|available in) (?:the |our |attached |full |enclosed )*"
    r"(?:pdf|paper|article|text|file|document|attachment|manuscript|website|link|supplement\w*|above|below)"
    r"(?: (?:file|text))?(?: for (?:the |an |full )*(?:abstract|details|summary))?"
    r"|(?:insert |enter |type |write |put |add )?(?:your |the )?(?:abstract|text) (?:goes )?here"
    rf"|(?:this |the )?(?:article|paper|item|document|record) has no abstract{_OF_WHAT}"
    r"|暂?无(?:中文|英文)?摘要|摘要[:：]?暂?无|暂无)?[\W_]*",
    re.IGNORECASE,
)
_LOREM = re.compile(r"\W*lorem ipsum\b", re.IGNORECASE)
_LINK = re.compile(
    r"\W*(?:(?:https?://|www\.)\S+|(?:doi|arxiv)[:\s]{1,2}\S+|10\.\d{4,9}/\S+"
    r"|[\w.%+-]{1,80}\.(?:pdf|docx?|html?|txt|tex|zip))\W*",
    re.IGNORECASE,
)
_PAPER = r"(?:arxiv )?(?:paper|submission|article|manuscript|preprint|work|version|report|study|abstract)"
_GONE = r"(?:temporarily |voluntarily )?(?:withdrawn|retracted)"
_WITHDRAWN = re.compile(
    rf"\W*(?:(?:(?:this|the|our) )?{_PAPER} (?:(?:has|have)(?: now)? been|was|is(?: being)?|will be) "
    rf"(?:{_GONE}|superseded by (?:arxiv|another)|replaced by arxiv|removed by (?:the )?(?:author|arxiv))"
    rf"|(?:(?:this|the) )?{_PAPER} {_GONE}|{_GONE}(?=\W*\Z|\s*[:.;,()\]—–-]"
    r"| (?:by|due|because|from|at|on|for|since|as|temporarily|submission|until)\b)"
    r"|(?:the )?authors? (?:ha(?:s|ve) (?:decided to )?|wish(?:es)? to |(?:would like|wants?|asked) to )?"
    rf"(?:withdr[ae]wn?|retract(?:ed)?) (?:this|the|their) {_PAPER}"
    r"|(?:we|i) (?:(?:have|had|are|am|wish to|would like to|hereby|decided to) ){0,2}"
    rf"(?:withdr[ae]w(?:n|ing)?|retract(?:ed|ing)?) (?:this|the|our|my) {_PAPER})\b",
    re.IGNORECASE,
)
_WITHDRAWN_WORDS, _EXPLAINED_WORDS = 40, 100
_ERROR_PAGE = re.compile(
    r"\W*(?:(?:(?:HTTP )?(?:Error|Status)[\s:]{0,3})?(?:40[0-4]|410|429|50[0-4])[\s:–—-]{0,3}"
    r"(?:Client Error|Server Error|Forbidden|Not Found|Unauthorized|Too Many Requests|Internal Server|Bad Gateway"
    r"|(?:Service )?(?:Temporarily )?Unavailable|Gateway Time|Bad Request)|Forbidden\b(?=\W*(?:You|\Z))"
    r"|(?:Please )?(?:enable|turn on|activate) (?:JavaScript|cookies)|JavaScript (?:is|must be|has been)"
    r"|(?:You need to|Your browser|This (?:site|page) requires)[^.]{0,60}(?:JavaScript|cookies)"
    r"|Access (?:to this page )?(?:has been )?denied|Just a moment\b|Checking (?:if the site|your browser)"
    r"|You don.t have permission to access|Attention Required|Page not found|Internal Server Error|Are you a robot"
    r"|(?:The )?request(?:ed URL)? (?:was|could not be)[^.]{0,30}(?:blocked|rejected|found|satisfied)"
    r"|Service Unavailable|(?:Sign|Log) ?in to (?:view|continue|read|access))",
    re.IGNORECASE,
)
_FAULT_WORDS = 40


class Fault(NamedTuple):
    """Why a paper cannot be used: a fixed phrase, and detail."""

    reason: str
    detail: str = ""


def fault(abstract: object) -> Fault | None:
    """Return why this is no abstract, None if it may be one; of a text the phrases that stand for one are known."""
    if not isinstance(abstract, str) or not abstract.strip():
        kind = "missing or null" if abstract is None else "blank" if isinstance(abstract, str) else "not a text"
        return Fault("no abstract", kind)
    text = abstract[:1000].strip()
    if "  " in text or not text.isprintable():  # splitting takes longer than all that follows
        text = " ".join(text.split())
    if (len(text) <= 150 and _PLACEHOLDER.fullmatch(text)) or _LOREM.match(text):
        return Fault("placeholder abstract", text[:100])
    if len(text) <= 300 and _LINK.fullmatch(text):
        return Fault("link only", text[:100])
    count = text.count(" ") + 1
    if count <= _EXPLAINED_WORDS and _WITHDRAWN.match(text) and (count <= _WITHDRAWN_WORDS or not _AUTHOR.search(text)):
        return Fault("withdrawn", text[:100])
    if count <= _FAULT_WORDS and _ERROR_PAGE.match(text):
        return Fault("error page", text[:100])
    return None


def own(text: str) -> str:
    """Return a clean text without what is not the abstract's own: heading, copyright, keywords, what follows it.

    A sentence is cut only where it begins as such things do and what follows says nothing of the authors' work.
    """
    for head in (_HEADING, _HEAD_NOTICE, _HEADING):
        text = head.sub("", text, count=1)
    low = text.lower()
    if not any(sign in low for sign in _SIGNS):
        return text
    body = _BODY.search(text)
    if body and text.count(" ", 0, body.start()) >= _BODY_WORDS:
        text = text[: body.start()]
    for _ in range(len(_TAILS)):
        starts = [found.start() for tail in _TAILS if (found := _last(tail, text))]
        if not starts:
            break
        text = text[: min(starts)].rstrip(" *_#[(")
    return text.strip()


def _last(tail: re.Pattern[str], text: str) -> re.Match[str] | None:
    """Return the first place near the end where a tail begins that no author goes on after."""
    for found in tail.finditer(text, max(0, len(text) - _TAIL)):
        if not _AUTHOR.search(text, found.end()):
            return found
    return None
