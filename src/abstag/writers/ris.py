"""RIS in which the areas stand among the keywords; an entry that was RIS is otherwise left as it is."""

import io
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, BinaryIO

from abstag.records import Record, Reject
from abstag.syntax.ris import entries
from abstag.writers._entries import DOI, one_line, write_entries

SUFFIXES = (".ris",)
NEEDS_RECORDS = True

_BREAK = re.compile(r"\r\n|\r|\n")


def write(
    tagged: Iterable[tuple[Record | Reject, Mapping[str, Any]]], out: BinaryIO, *, names: Mapping[str, str]
) -> None:
    """Write entries in the order given, as UTF-8, at constant memory.

    The areas of which a paper is sure are added before ER as lines KW (OT where PubMed's PMID begins the entry); none
    that is there already. Rejects and papers without an area stay as they are. A paper from another format becomes a
    new entry; a reject from there is left out. In a name, ";" becomes ",": it separates keywords.

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
    if entry is None:
        return None
    new = _distinct(areas, (word for line in entry.keywords for word in line.split(";")))
    gap = entry.gap if entry.keyword_tag == "KW" else "  "
    found, head = _BREAK.search(raw), raw[: entry.end]
    end = found[0] if found else "\n"
    lines = [f"{entry.keyword_tag}{gap}- {name}" for name in new]
    if head.endswith(("\n", "\r")):
        return head + "".join(line + end for line in lines) + raw[entry.end :]
    return head + "".join(end + line for line in lines) + raw[entry.end :]


def _distinct(names: Iterable[str], there: Iterable[str] = ()) -> list[str]:
    """Return the names on one line each, without those that are there and without repeats, be they in capitals."""
    known, new = {one_line(word).casefold() for word in there}, list[str]()
    for name in (one_line(name.replace(";", ",")) for name in names):
        if name.casefold() not in known:
            known.add(name.casefold())
            new.append(name)
    return new


def _made(record: Record, name: str, areas: Sequence[str]) -> str:
    fields = [
        ("TY", "CONF" if record.venue else "GEN"),
        ("TI", one_line(record.title)),
        ("AB", one_line(record.abstract)),
        ("T2", one_line(record.venue)),
        ("PY", str(record.year or "")),
        ("DO", record.id if record.id and DOI.fullmatch(record.id) else ""),
        ("ID", one_line(name)),
        *(("KW", word) for word in _distinct([*record.declared, *areas])),
    ]
    return "".join(f"{tag}  - {value}\n" for tag, value in fields if value) + "ER  - \n"
