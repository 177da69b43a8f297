"""PubMed's "Abstract (text)": numbered records, in each a paragraph for citation, title, authors, abstract and ids."""

import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from abstag.readers._fields import Place, doi, item, year
from abstag.readers._mapping import refuse_mapping
from abstag.records import Record, Reject

NAME = "pubmed"
SUFFIXES = (".txt",)

_FIRST = re.compile(r"[\s\ufeff]*+1[.:] [^\r\n]{4,200}?\. \d{4}\b")
_ID = re.compile(r"(?m)^PMID: (\d{1,9})\b")
_NUMBER = re.compile(r"(\d{1,7})[.:] (?=\S)")
_JOURNAL = re.compile(r"(?:\d{1,7}[.:] )(.{2,200}?)\. (?=\d{4}\b)")
_NAMES = re.compile(r"[^\d().,;]{2,60} [^\W\d_a-z]{1,4}(?: (?:Jr|Sr|\d\w\w))?(?:\(\d{1,4}\))*(?:[,;]\s|\.\Z)")
_ASIDE = re.compile(
    r"(?:Author information|Collaborators|(?:Comment|Erratum|Update|Retraction|Republished|Expression of concern) "
    r"(?:in|on|of|for|from)|Plain Language Summary):?|\[[^]]{3,60}\]\Z|©|\(c\) \d{4}|Copyright ",
    re.IGNORECASE,
)
_IDS = re.compile(r"(?:DOI|PMCID|PMID): ")


def sniff(head: str, mapping: Mapping[str, str]) -> int:
    """Return 2 for a citation under the number 1 and a PubMed id below, if none is mapped."""
    return 2 if not mapping and _FIRST.match(head) and _ID.search(head) else 0


def read(stream: io.BufferedReader, file: str, mapping: Mapping[str, str]) -> Iterator[Record | Reject]:
    """Yield one item a record; the id is the DOI, else PubMed's.

    Raises
    ------
    DataError
        There is a mapping: nothing here has a name.
    """
    refuse_mapping(mapping, file, NAME)
    for n, (line, paragraphs) in enumerate(_records(io.TextIOWrapper(stream, encoding="utf-8")), 1):
        yield item(_fields(paragraphs), Place(file, n, line))


def _records(lines: Iterable[str]) -> Iterator[tuple[int, list[str]]]:
    """Yield the physical line and the paragraphs of each record.

    The next number begins one after two blank lines, or before what reads as a citation.
    """
    wanted, start, paragraphs, blanks = 1, 0, list[list[str]](), 2
    for at, raw in enumerate(lines, 1):
        text = raw.strip()
        number = _NUMBER.match(text) if blanks else None
        if number and int(number[1]) == wanted and (blanks > 1 or _JOURNAL.match(text)):
            if paragraphs:
                yield start, ["\n".join(one) for one in paragraphs]
            wanted, start, paragraphs = wanted + 1, at, [[]]
        elif text and blanks and paragraphs:
            paragraphs.append([])
        if text and paragraphs:
            paragraphs[-1].append(text)
        blanks = 0 if text else blanks + 1
    if paragraphs:
        yield start, ["\n".join(one) for one in paragraphs]


def _fields(paragraphs: Sequence[str]) -> dict[str, object]:
    cited, title, *rest = [*paragraphs, ""]
    end = next((at for at, text in enumerate(rest) if _IDS.match(text)), len(rest))
    ids = "\n".join(rest[end : end + 1])
    found, journal = _ID.search(ids), _JOURNAL.match(cited)
    texts = [
        text for at, text in enumerate(rest[:end]) if not _ASIDE.match(text) and not (at < 2 and _NAMES.match(text))
    ]
    return {
        "abstract": "\n".join(texts) or None,
        "title": title,
        "id": doi(ids) or doi(cited) or (found[1] if found else None),
        "venue": journal[1] if journal else None,
        "year": year(cited),
    }
