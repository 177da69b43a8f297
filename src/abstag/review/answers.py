"""A filled sheet → a label file; nonsense is refused row by row."""

import csv
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from math import sqrt
from pathlib import Path
from typing import NamedTuple

from abstag.errors import AbstagError, DataError, near
from abstag.files import new_file
from abstag.labels import read_labels
from abstag.review import RANDOM, REST, SHEET, check_of
from abstag.sheets import protected, read_sheet, unprotected
from abstag.taxonomy import Taxonomy

COLUMNS = ("id", "key", "areas", "source", "sure", "masked", "judged", "part", "random", "reviewer", "date", "comment")
_FREE = ("reviewer", "comment")  # free text in a label file, which a spreadsheet may open too
_NEEDED = ("id", "key", "title", "suggested", "why", "areas", "none", "check")
_TICKS = {
    **dict.fromkeys(("1", "x", "✓", "✔", "y", "yes", "true", "vrai", "oui", "wahr", "ja", "si", "sí"), True),
    **dict.fromkeys(("0", "n", "no", "false", "faux", "non", "falsch", "nein", "falso"), False),
}
_YEAR_FIRST = re.compile(r"(\d{4})([-/.])(\d{1,2})\2(\d{1,2})(?:[T ]00:00(?::00)?)?")
_YEAR_LAST = re.compile(r"(\d{1,2})([-/.])(\d{1,2})\2(\d{4})")
_ISO = "write it as YYYY-MM-DD"


@dataclass(slots=True)
class Imported:
    """What became of the rows of a filled sheet; imported + untouched + refused are all of them.

    Attributes
    ----------
    imported
        Counts of labels "new", "replaced" and "as they were".
    refused
        One error for each row that was left out.
    random
        Random rows that were imported: "answered", and answered "exact"ly as suggested.
    """

    imported: Counter[str] = field(default_factory=Counter)
    untouched: int = 0
    refused: list[AbstagError] = field(default_factory=list)
    random: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        done, refused = sum(self.imported.values()), len(self.refused)
        rows = done + self.untouched + refused
        kinds = ", ".join(f"{self.imported[kind]} {kind}" for kind in ("new", "replaced", "as they were"))
        lines = [
            f"rows {rows} = {done} imported + {self.untouched} untouched + {refused} refused",
            f"imported: {kinds}",
        ]
        if self.random["answered"]:
            low, high = _wilson(self.random["exact"], self.random["answered"])
            share = f"{self.random['exact']} exactly as suggested (95 % interval {low:.0%} to {high:.0%})"
            lines.append(f"random rows: {self.random['answered']} imported, {share}")
        return "\n".join(lines)


def _wilson(hits: int, n: int, z: float = 1.96) -> tuple[float, float]:
    """Return the score interval of a share (Wilson 1927)."""
    centre, width = (hits + z * z / 2) / (n + z * z), z * sqrt(hits * (n - hits) / n + z * z / 4) / (n + z * z)
    return max(0.0, centre - width), min(1.0, centre + width)


class _Answer(NamedTuple):
    """A label from a row, and whether its day was written in the sheet."""

    where: str
    row: Mapping[str, str]
    label: dict[str, str]
    dated: bool

    @property
    def name(self) -> tuple[str, str]:
        return _name(self.label)

    @property
    def counts(self) -> Counter[str]:
        """Of a random row: 1 answer, and 1 if it is what was suggested."""
        exact = (self.label["areas"] or "none") == self.row["suggested"].replace("?", "")
        return Counter(answered=1, exact=int(exact)) if {RANDOM, REST} & set(_reasons(self.row)) else Counter()


def _name(label: Mapping[str, str]) -> tuple[str, str]:
    """Return by what a later review replaces an earlier one: paper and reviewer."""
    return label["key"] or f"id:{label['id']}", label["reviewer"].casefold()


def import_sheet(
    sheet: Path, out: Path, *, taxonomy: Taxonomy, by: str | None, on: str | None, today: date
) -> Imported:
    """Read a filled sheet into a label file of source review, new or made by an earlier import; refuse row by row.

    Parameters
    ----------
    by, on
        Reviewer and day of rows that do not say them; without ``on`` it is ``today``.
    today
        Reviews of later days are refused.

    Raises
    ------
    DataError
        No sheet of `export_sheet`, nothing filled in, an unreadable day ``on``, or ``out`` is no file of an import.
    ArtifactError
        ``out`` cannot be written.
    """
    day = _day(on, today, "--date") if on else today
    kept = {_name(label): label for label in _kept(out, taxonomy)}
    found, answers = Imported(), []
    for where, row in _rows(sheet):
        try:
            answer = _answer(row, where, taxonomy, by, day, today)
        except DataError as error:
            found.refused.append(error)
            continue
        if answer:
            answers.append(answer)
        else:
            found.untouched += 1
    agreeing = list(_agreeing(answers, found.refused))
    for answer in agreeing:
        found.imported[_merge(answer, kept)] += 1
        found.random += answer.counts
    if not (agreeing or found.refused):
        raise DataError("no row is filled in", where=sheet, remedy="write areas, or tick none")
    if agreeing:
        with new_file(out, force=True) as stream:
            rows = csv.DictWriter(stream, COLUMNS, lineterminator="\n")
            rows.writeheader()
            rows.writerows(label | {name: protected(label[name]) for name in _FREE} for label in kept.values())
    return found


def _kept(path: Path, taxonomy: Taxonomy) -> list[dict[str, str]]:
    """Return the rows of the label file of an earlier import, none when there is no file yet."""
    if not path.exists():
        return []
    with path.open(encoding="utf-8", errors="replace") as stream:
        if stream.readline().rstrip() != ",".join(COLUMNS):
            raise DataError("is no label file of `abstag review import`", where=path, remedy="choose another name")
    for _ in read_labels(str(path), taxonomy):
        pass  # raises where the file is damaged
    with path.open(encoding="utf-8", newline="") as stream:
        return [row | {name: unprotected(row[name]) for name in _FREE} for row in csv.DictReader(stream)]


def _rows(path: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield where a row stands, counted as spreadsheets do, and its cells by column; empty rows are passed over."""
    header, *rows = read_sheet(path)
    names = [name.casefold() for name in header]
    lacking = [name for name in _NEEDED if name not in names]
    repeated = [name for name in SHEET if names.count(name) > 1]
    if lacking or repeated:
        what = f"there is no column {lacking[0]!r}" if lacking else f"two columns are called {repeated[0]!r}"
        raise DataError(what, where=path, remedy="keep the columns of `abstag review export` and their names")
    for number, cells in enumerate(rows, start=2):
        if any(cells):
            padded = [*cells, *[""] * (len(names) - len(cells))]
            row = dict.fromkeys(SHEET, "") | dict(zip(names, padded, strict=False))
            yield f"{path}: row {number}", row


def _answer(
    row: Mapping[str, str], where: str, taxonomy: Taxonomy, by: str | None, day: date, today: date
) -> _Answer | None:
    """Return the label of a row, None when it is not filled in; raises DataError on nonsense."""
    if row["check"] != check_of(row):
        what = "id, key, title, suggested, why or check are not those of an exported row"
        raise DataError(what, where=where, remedy="take the row from the export again, and answer in the column areas")
    areas, sure = _areas(row, taxonomy, where), _tick(row, "sure", where)
    if areas is None:
        if sure is not None:
            raise DataError("sure is filled in, but no answer", where=where, remedy="write areas, or tick none")
        return None
    reviewer = " ".join((row["reviewer"] or by or "").split())
    if not reviewer:
        raise DataError("who reviewed it?", where=where, remedy="fill in the column reviewer, or give --by")
    label = dict.fromkeys(COLUMNS, "") | {
        "id": "" if row["key"] else row["id"],  # ids of two dumps may be the same, titles tell papers apart
        "key": row["key"],
        "areas": ";".join(areas),
        "source": "review",
        "sure": "0" if sure is False else "1",
        "judged": ";".join(taxonomy.ids),
        "random": "1" if RANDOM in _reasons(row) else "",
        "reviewer": reviewer,
        "date": (_day(row["date"], today, where) if row["date"] else day).isoformat(),
        "comment": row["comment"],
    }
    return _Answer(where, row, label, bool(row["date"]))


def _reasons(row: Mapping[str, str]) -> list[str]:
    return row["why"].split("; ")


def _areas(row: Mapping[str, str], taxonomy: Taxonomy, where: str) -> list[str] | None:
    """Return the areas of a row in the taxonomy's order, [] for none of them, None without an answer."""
    names = {area.name.casefold(): area.id for area in taxonomy.areas}
    names |= {area.id.casefold(): area.id for area in taxonomy.areas}
    words = [" ".join(word.casefold().split()) for word in re.split(r"[;\n]", row["areas"])]
    parts = [part.strip() for word in words for part in ([word] if word in names else word.split(","))]
    given = [part for part in parts if part]
    none = _tick(row, "none", where)
    if given == ["none"] and "none" not in names:
        given, none = [], True
    unknown = next((part for part in given if part not in names), None)
    if unknown:
        raise DataError(f"unknown area {unknown!r}", where=where, remedy=near(unknown, taxonomy.ids))
    if given and none:
        raise DataError("areas are given, and none is ticked", where=where, remedy="empty one of the two")
    return taxonomy.decode(taxonomy.encode(names[part] for part in given)) if given or none else None


def _tick(row: Mapping[str, str], column: str, where: str) -> bool | None:
    text = row[column].casefold()
    if text and text not in _TICKS:
        raise DataError(f"{column} is {row[column]!r}", where=where, remedy="write 1 or 0, or leave it empty")
    return _TICKS.get(text)


def _day(text: str, today: date, where: str) -> date:
    """Read a day with the year first, or last where only one order of day and month makes sense."""
    first, last = _YEAR_FIRST.fullmatch(text), _YEAR_LAST.fullmatch(text)
    if first:
        year, month, day = first[1], first[3], first[4]
    elif last:
        year, month, day = last[4], last[3], last[1]
        if int(day) <= 12 and int(month) <= 12 and int(day) != int(month):
            raise DataError(f"the date {text!r} may be of two months", where=where, remedy=_ISO)
        if int(month) > 12:
            day, month = month, day
    else:
        raise DataError(f"cannot read the date {text!r}", where=where, remedy=_ISO)
    try:
        found = date(int(year), int(month), int(day))
    except ValueError as error:
        raise DataError(f"there is no day {text!r}", where=where, remedy=_ISO) from error
    if found > today + timedelta(days=1):  # it may be tomorrow where the reviewer lives
        raise DataError(f"the date {text!r} is to come", where=where, remedy="check it")
    return found


def _agreeing(answers: Sequence[_Answer], refused: list[AbstagError]) -> Iterator[_Answer]:
    """Yield the answers but those of one reviewer who gives two on one paper, which are refused."""
    given = defaultdict(set)
    for answer in answers:
        given[answer.name].add((answer.label["areas"], answer.label["sure"]))
    for answer in answers:
        if len(given[answer.name]) == 1:
            yield answer
        else:
            what = f"{answer.label['reviewer']} answers differently on the same paper in another row"
            refused.append(DataError(what, where=answer.where, remedy="keep one of them"))


def _merge(answer: _Answer, kept: dict[tuple[str, str], dict[str, str]]) -> str:
    """Put a label among those kept, unless it says the same or is older; return what happened."""
    new, old = answer.label, kept.get(answer.name)
    if old is None:
        kept[answer.name] = new
        return "new"
    new["random"] = old["random"] = new["random"] or old["random"]  # once drawn, a paper stays in the random sample
    same = all(new[name] == old[name] for name in COLUMNS if name != "date")
    if new["date"] < old["date"] or (same and (new["date"] == old["date"] or not answer.dated)):
        return "as they were"
    kept[answer.name] = new
    return "replaced"
