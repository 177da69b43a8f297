"""BibTeX in which the areas stand among the keywords; an entry that was BibTeX is otherwise left as it is."""

import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, BinaryIO

from abstag.records import Record, Reject
from abstag.syntax.bibtex import Block, Field, entries, escaped, plain
from abstag.writers._entries import DOI, write_entries

SUFFIXES = (".bib", ".bibtex")
NEEDS_RECORDS = True

_KEYWORDS = ("keywords", "keyword")
_READ = (*_KEYWORDS, "author_keywords")
_SEPARATORS = re.compile("[,;]")
_UNSAFE = re.compile(r"[^\w.:/+-]", re.ASCII)
_ARXIV = re.compile(r"\d{4}\.\d{4,5}|[a-z-]+(?:\.[A-Z]{2})?/\d{7}")
_EQUALS = re.compile(r"([ \t]*)=([ \t]*)")
_COMMA = re.compile(r"\s*,")


def write(
    tagged: Iterable[tuple[Record | Reject, Mapping[str, Any]]], out: BinaryIO, *, names: Mapping[str, str]
) -> None:
    """Write entries in the order given, as UTF-8, at constant memory.

    The areas of which a paper is sure are added to its keywords, with the separator that stands there, or else as a new
    field; none that is there already. Rejects and papers without an area stay as they are. A paper from another format
    becomes a new entry; a reject from there is left out. In a name, "," and ";" become spaces: they separate keywords.

    Parameters
    ----------
    tagged
        Each record or reject with its output line (docs/contracts.md, ``abstag tag``).
    names
        Name of each area, by id.
    """
    write_entries(tagged, out, names, _changed, _made)


def _changed(raw: str, areas: Sequence[str]) -> str | None:
    entry = next(entries(io.StringIO(raw, newline="")), None)
    if entry is None or entry.block.fault:
        return entry and raw
    fields = [field for field in entry.block.fields if field.name in _KEYWORDS]
    there = {_folded(word) for field in entry.block.fields if field.name in _READ for word in _words(field)}
    words = {_folded(word): word for word in map(_keyword, areas)}
    new = [word for folded, word in words.items() if folded not in there]
    if not new:
        return raw
    field = next((field for field in fields if field.value.strip()), next(iter(fields), None))
    at, text = _longer(raw, field, new) if field else _added(raw, entry.block, ", ".join(new))
    return raw[:at] + text + raw[at:]


def _keyword(name: str) -> str:
    return escaped(_SEPARATORS.sub(" ", name))


def _folded(keyword: str) -> str:
    return plain(keyword).casefold()


def _words(field: Field) -> Iterator[str]:
    text = plain(field.value)
    return map(str.strip, text.split(";" if ";" in text else ","))


def _longer(raw: str, field: Field, new: Sequence[str]) -> tuple[int, str]:
    """Return where in the text what is to be inserted so that the field has more keywords."""
    sign = ";" if ";" in field.value else ","
    glue = sign if sign in field.value and not re.search(rf"{sign}\s", field.value) else f"{sign} "
    words, before = glue.join(new), field.value.rstrip()
    lead = "" if not before else " " if before.endswith(sign) else glue
    start, end = field.parts[-1]
    if raw[start:end][:1] not in ("{", '"'):
        return end, f" # {{{lead}{words}}}" if end > start else f"{{{words}}}"
    if raw[start] == '"':
        words = words.replace('"', '{"}')
    return start + 1 + len(raw[start + 1 : end - 1].rstrip()), lead + words


def _added(raw: str, block: Block, words: str) -> tuple[int, str]:
    """Return where in the text what is to be inserted so that the entry has keywords, laid out like its last field."""
    if not block.fields:
        head = raw[: block.end - 1].rstrip()
        return len(head), f"{'' if head.endswith(',') else ','} keywords = {{{words}}}"
    last = block.fields[-1]
    before, end = raw[block.start : last.start], last.parts[-1][1]
    equals = _EQUALS.fullmatch(raw, last.start + len(last.name), last.parts[0][0])
    left, right = equals.groups() if equals else (" ", " ")
    left = left if len(left) < 2 else " " * max(1, len(last.name) + len(left) - len("keywords"))
    text = f"{before[len(before.rstrip()) :]}keywords{left}={right}{{{words}}}"
    comma = _COMMA.match(raw, end)
    return (comma.end(), f"{text},") if comma else (end, f",{text}")


def _made(record: Record, name: str, areas: Sequence[str]) -> str:
    keywords = {_folded(word): word for word in map(_keyword, (*record.declared, *areas))}
    is_arxiv = record.id is not None and _ARXIV.fullmatch(record.id) is not None
    venue = None if is_arxiv and record.venue == "arXiv" else record.venue
    fields = {
        "title": escaped(record.title or ""),
        "abstract": escaped(record.abstract),
        "booktitle": escaped(venue or ""),
        "year": str(record.year or ""),
        "doi": escaped(record.id) if record.id and DOI.fullmatch(record.id) else "",
        "eprint": record.id if record.id and is_arxiv else "",
        "archiveprefix": "arXiv" if is_arxiv else "",
        "keywords": ", ".join(keywords.values()),
    }
    lines = [f"@{'inproceedings' if venue else 'misc'}{{{_UNSAFE.sub('_', name)}"]
    lines += [f"  {kind} = {{{value}}}" for kind, value in fields.items() if value]
    return ",\n".join(lines) + "\n}\n"
