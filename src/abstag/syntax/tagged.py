"""Text with tags and no dashes (Web of Science, RefWorks, Refer, Ovid, Scopus): cut into entries at constant memory."""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

_HEAD = 20  # fields of an entry among which the first tag is looked for


class Dialect(NamedTuple):
    """What makes an entry.

    Attributes
    ----------
    tag
        Matches the beginning of a line that has a tag; its group 1 is the tag.
    first
        The tag that begins an entry.
    outside
        Tags that are no entry's: one that is open ends there.
    is_loose
        Whether any tag begins an entry where none is open, and after a blank line where the open one lacks ``first``.
    """

    tag: re.Pattern[str]
    first: str
    outside: tuple[str, ...] = ()
    is_loose: bool = False


class Entry(NamedTuple):
    """An entry: the 1-based line of its first tag, and for each tag in order the lines of its value, none blank."""

    line: int
    fields: list[tuple[str, list[str]]]

    def lines(self, *tags: str) -> list[list[str]]:
        """Return the lines of all values of the first of the tags that has any."""
        for tag in tags:
            if found := [lines for name, lines in self.fields if name == tag and lines]:
                return found
        return []

    def values(self, *tags: str) -> list[str]:
        """Return the values of the first of the tags that has any, each on one line."""
        return [" ".join(lines) for lines in self.lines(*tags)]


def entries(lines: Iterable[str], dialect: Dialect) -> Iterator[Entry]:
    """Yield the entries of a text that comes in lines; a line without a tag goes on with the value above it."""
    entry, is_apart = None, True
    for number, line in enumerate(lines, 1):
        found, text = dialect.tag.match(line), line.strip()
        if found and _begins(found[1], dialect, entry, is_apart=is_apart):
            if entry:
                yield entry
            entry = Entry(number, [])
        if entry and found and found[1] in dialect.outside:
            yield entry
            entry = None
        elif entry and found:
            entry.fields.append((found[1], [value] if (value := line[found.end() :].strip()) else []))
        elif entry and text:
            entry.fields[-1][1].append(text)
        is_apart = not text
    if entry:
        yield entry


def _begins(tag: str, dialect: Dialect, entry: Entry | None, *, is_apart: bool) -> bool:
    if entry is None:
        return tag == dialect.first or (dialect.is_loose and tag not in dialect.outside)
    has_first = any(name == dialect.first for name, _ in entry.fields[:_HEAD])
    return (has_first or is_apart) if tag == dialect.first else dialect.is_loose and is_apart and not has_first
