"""Tags without dashes: Web of Science, RefWorks, Refer (EndNote's .enw), Ovid's names, Scopus, AMiner, arXiv."""

import io
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from abstag.errors import DataError
from abstag.readers._fields import Place, doi, headless, item, linked_id, year
from abstag.readers._mapping import refuse_mapping
from abstag.records import Record, Reject
from abstag.syntax.tagged import Dialect, Entry, entries

NAME = "tagged"
SUFFIXES = (".ciw", ".enw", ".rfw")


class _Kind(NamedTuple):
    """How a dump begins, its grammar, which tags hold what, and whether a keyword may go over the end of a line.

    ``title`` are the lines of its tag that are the title; ``venue`` is the venue of all entries.

    Of the tags of a field the first that is there counts. "link" may hold a DOI or a link, "own" an id of the source.
    """

    beginning: re.Pattern[str]
    dialect: Dialect
    tags: Mapping[str, tuple[str, ...]]
    is_wrapped: bool = False
    title: slice = slice(None)
    venue: str | None = None


_WEB_OF_SCIENCE = _Kind(
    re.compile(r"\A[\s\ufeff]*+(?:FN [^\r\n]{1,200}+[\r\n]+VR \d|PT [A-Z][\r\n]+[A-Z][A-Z0-9] )"),
    Dialect(re.compile(r"\ufeff?([A-Z][A-Z0-9])(?: |\s*+\Z)"), "PT", ("ER", "EF", "FN", "VR"), is_loose=True),
    {  # ID holds keywords that a machine made
        "title": ("TI",),
        "abstract": ("AB",),
        "venue": ("SO", "CT"),
        "year": ("PY", "EY", "EA"),
        "keywords": ("DE",),
        "link": ("DI",),
        "own": ("UT",),
    },
    is_wrapped=True,
)
_REFWORKS = _Kind(
    re.compile(r"\A[\s\ufeff]*+(?:(?i:RefWorks Export)|RT [A-Z][^\r\n]{1,60}+[\r\n]+[A-Z][A-Z0-9] )"),
    Dialect(
        re.compile(
            r"\ufeff?(RT|SR|ID|A[1-6BDNV]|T[1-3]|J[FO]|YR|FD|VO|IS|SP|OP|K1|NO|ED|P[BPN]|SN|LA|CL|SF|O[LT]|L[KL]"
            r"|D[OBS]|CN|IP|RD|ST|U\d{1,2}|UL|SL|CR|W[TVP]|PMC?ID|ER)(?: |\s*+\Z)"
        ),
        "RT",
        ("ER",),
    ),
    {
        "title": ("T1",),
        "abstract": ("AB",),
        "venue": ("JF", "T2", "JO"),
        "year": ("YR", "FD"),
        "keywords": ("K1",),
        "link": ("DO", "UL", "LK"),
        "own": ("PMID", "AN", "ID"),
    },
)
_REFER = _Kind(
    re.compile(r"\A[\s\ufeff]*+%[0A-Z] [^\r\n]{1,2000}+[\r\n]+%[^\s%] "),
    Dialect(re.compile(r"\ufeff?%([^\s%])(?: |\s*+\Z)"), "0", is_loose=True),
    {
        "title": ("T",),
        "abstract": ("X",),
        "venue": ("J", "B", "S"),
        "year": ("D", "8"),
        "keywords": ("K",),
        "link": ("R", "U"),
        "own": ("M",),
    },
)
_OVID = _Kind(
    re.compile(r"(?:\A|[\r\n])<\s?\d{1,7}\s?\.?\s?>\s{1,4}[A-Z][A-Za-z ]{3,40}[\r\n]{1,4} {1,8}\S"),
    Dialect(
        re.compile(r"(<(?=\s?\d{1,7}\s?\.?\s?>\s*+\Z)|[A-Z][a-zA-Z/&()-]*+(?: [a-zA-Z/&()-]++){0,6}+(?=\s*+\Z))"), "<"
    ),
    {
        "title": ("Title",),
        "abstract": ("Abstract",),
        "venue": ("Journal Name", "Source"),
        "year": ("Year of Publication", "Publication Year", "Date of Publication", "Source"),
        "keywords": ("Keyword Heading", "Author Keywords", "Keywords"),
        "link": ("Digital Object Identifier", "DOI"),
        "own": ("Unique Identifier", "Accession Number"),
    },
)
_SCOPUS = _Kind(
    re.compile(r"\A[\s\ufeff]*+Scopus[\r\n]+EXPORT DATE:[^\r\n]*+[\r\n]+[^\r\n]++[\r\n]+AUTHOR FULL NAMES: "),
    Dialect(
        re.compile(
            r"(\((?=\d{4}\) )|AUTHOR FULL NAMES|DOI|AFFILIATIONS|ABSTRACT|(?:AUTHOR|INDEX) KEYWORDS"
            r"|FUNDING [A-Z]+(?: \d+)?|CHEMICALS/CAS|REFERENCES|CORRESPONDENCE ADDRESS|EDITORS?|SPONSORS"
            r"|PUBLISHER|ISSN|ISBN|CODEN|PUBMED ID|CONFERENCE [A-Z]+"
            r"|LANGUAGE OF [A-Z ]+|ABBREVIATED [A-Z ]+|DOCUMENT TYPE|PUBLICATION STAGE|OPEN ACCESS"
            r"|SOURCE)(?:(?<=\()|: )"
        ),
        "AUTHOR FULL NAMES",
        ("SOURCE",),
    ),
    {
        "title": ("AUTHOR FULL NAMES",),  # the last line below the names, without a tag
        "abstract": ("ABSTRACT",),
        "venue": ("(",),
        "year": ("(",),
        "keywords": ("AUTHOR KEYWORDS",),
        "link": ("DOI",),
        "own": ("PUBMED ID",),
    },
    title=slice(-1, None),
)
_AMINER = _Kind(
    re.compile(r"\A[\s\ufeff]*+(?:\d{1,9}\s{1,4})?#\*[^\r\n]{1,2000}+[\r\n]+#[@tcyi%!]"),
    Dialect(re.compile(r"#(\*|@|index|arnetid|citation|year|conf|t(?=\s?\d{4}\s*\Z)|[co%!])"), "*"),
    {
        "title": ("*",),
        "abstract": ("!",),
        "venue": ("c", "conf"),
        "year": ("t", "year"),
        "keywords": (),
        "link": (),
        "own": ("index",),
    },
)
_AMINER_INDEXED = _AMINER._replace(
    beginning=re.compile(r"\A[\s\ufeff]*+#index \d{1,12}[\r\n]+#[*@]"),
    dialect=_AMINER.dialect._replace(first="index"),
)
_MAILING = _Kind(  # the daily e-mail
    re.compile(r"(?:\A|[\r\n])\\\\[\r\n]{1,4}arXiv:[^\r\n]{1,80}[\r\n]{1,4}(?:Date: |replaced with )"),
    Dialect(
        re.compile(
            r"(arXiv(?=:[\w./-]{6,40}(?: \(\*cross-listing\*\))?\s*\Z)|Date|Title|Authors?|Categories|Comments|Proxy"
            r"|License|(?:MSC|ACM)-class|Journal-ref|Report-no|DOI|\\\\(?=\s*\Z)|\\\\ \(|-(?=-{60})|%(?=[-%]{60}))"
            r"(?::\s|:|(?<=\W))"
        ),
        "arXiv",
        ("\\\\ (", "-", "%"),
    ),
    {
        "title": ("Title",),
        "abstract": ("\\\\",),
        "venue": (),
        "year": ("Date",),
        "keywords": (),
        "link": (),
        "own": (),
    },
    venue="arXiv",
)
_LISTING = _Kind(  # pages of new papers, copied from a browser
    re.compile(
        r"(?:\A|[\r\n])\s{0,8}(?:\[\d{1,5}\]\s{1,4})?arXiv:[^\r\n\[]{6,80}\[[^\r\n]{1,80}[\r\n]{1,4}\s{0,8}Title:"
    ),
    Dialect(
        re.compile(
            r"\s*+(?:\[\d{1,5}\]\s{1,4})?(arXiv(?=:[\w./-]{6,40}[^\[]{0,60}\[(?:pdf|ps|html|other))|Title|Authors|Comments"
            r"|Journal-ref|Subjects|(?:MSC|ACM) classes|Report number|(?:Related )?DOI|Abstract"
            r"|(?:New|Cross|Replacement) submissions (?=\()|Total of (?=\d)|Showing (?=up to))(?::\s|:|(?<= ))"
        ),
        "arXiv",
        ("New submissions ", "Cross submissions ", "Replacement submissions ", "Total of ", "Showing "),
    ),
    {
        "title": ("Title",),
        "abstract": ("Abstract",),
        "venue": (),
        "year": (),
        "keywords": (),
        "link": (),
        "own": (),
    },
    title=slice(1),  # the authors are below it
    venue="arXiv",
)
_IN_SCOPUS = re.compile(r"\d{4}\) (.{1,300}?)(?:, (?:\d|pp\.|p\.|art\.|Article|Cited)|\.?\Z)")


def sniff(head: str, mapping: Mapping[str, str]) -> int:
    """Return 2 when the text begins as one of the kinds do, and none is mapped."""
    return 2 if not mapping and _kind(head) else 0


def read(stream: io.BufferedReader, file: str, mapping: Mapping[str, str]) -> Iterator[Record | Reject]:
    """Yield one item an entry, whatever stands between them left out; keywords are those that authors gave.

    The id is the DOI, else the arXiv or OpenReview id of a link, else that of the source.

    Raises
    ------
    DataError
        There is a mapping, or the text begins like none of the kinds.
    """
    refuse_mapping(mapping, file, NAME)
    kind = _kind(stream.peek().decode(errors="ignore"))
    if kind is None:
        what = "begins like no text of Web of Science, RefWorks, EndNote (Refer), Ovid, Scopus, AMiner or arXiv"
        raise DataError(what, where=file, remedy="name another format with --format")
    for n, entry in enumerate(entries(io.TextIOWrapper(stream, encoding="utf-8"), kind.dialect), 1):
        yield item(_fields(entry, kind), Place(file, n, entry.line))


def _kind(head: str) -> _Kind | None:
    kinds = (_WEB_OF_SCIENCE, _REFWORKS, _REFER, _OVID, _SCOPUS, _AMINER, _AMINER_INDEXED, _MAILING, _LISTING)
    return next((kind for kind in kinds if kind.beginning.search(head)), None)


def _fields(entry: Entry, kind: _Kind) -> dict[str, object]:
    found = {name: entry.values(*tags) for name, tags in kind.tags.items()}
    source = [value.split(". ")[0] for value in entry.values("Source")]
    source += [cited[1] for value in entry.values("(") if kind is _SCOPUS and (cited := _IN_SCOPUS.match(value))]
    links = [value for tag in kind.tags["link"] for value in entry.values(tag)]
    ids = [doi(link) for link in links if "doi" in link.casefold() or link.startswith("10.")]
    told = found["abstract"] or [" ".join(lines[1:]) for lines in entry.lines("Subjects")]  # arXiv's page: no label
    own = [value.split()[0] for value in entry.values("arXiv")] + found["own"]
    return {
        "abstract": headless(" ".join(told)) or None,
        "title": next((" ".join(lines[kind.title]) for lines in entry.lines(*kind.tags["title"])), None),
        "id": next(filter(None, [*ids, *map(linked_id, links), *own]), None),
        "venue": next(iter([*source, *found["venue"]]), kind.venue),
        "year": year(*found["year"], *found["venue"]),
        "keywords": _keywords(entry, kind),
    }


def _keywords(entry: Entry, kind: _Kind) -> list[str]:
    lines = [line for lines in entry.lines(*kind.tags["keywords"]) for line in lines]
    if kind.is_wrapped:
        lines = [" ".join(lines)]
    sign = "," if len(lines) == 1 and ";" not in lines[0] and not kind.is_wrapped else ";"
    return [word for line in lines for word in line.split(sign)]
