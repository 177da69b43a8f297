"""Labels from files and records: read, ranked, and resolved cell by cell."""

import csv
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from abstag.errors import DataError
from abstag.records import BoolArray, IntArray
from abstag.taxonomy import Taxonomy

RANK = {"review": 0, "read": 1, "declared": 2, "rule": 3}
SCORED = ("review", "read")
_COLUMNS = ("id", "key", "areas", "source", "sure", "masked", "judged", "part", "random")
_TRUE = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}


@dataclass(frozen=True, slots=True)
class Label:
    """One statement about one paper.

    Attributes
    ----------
    values, judged, masked
        (k,) bool: the areas that hold, those decided on, and those on which readers differed.
    """

    source: str
    values: BoolArray
    judged: BoolArray
    masked: BoolArray
    sure: bool = True
    part: str | None = None
    random: bool | None = None


class Resolved(NamedTuple):
    """A paper's label after precedence; ``source`` None means unlabelled, ``conflicts`` counts differing cells."""

    source: str | None
    values: BoolArray
    known: BoolArray
    sure: bool
    conflicts: int


def resolve(labels: Iterable[Label], size: int) -> Resolved:
    """Join the labels of one paper: the highest rank counts; two of that rank that differ mask the cell."""
    ranked = sorted(labels, key=lambda label: RANK[label.source])
    best = [label for label in ranked if label.source == ranked[0].source]
    if not best:
        nothing = np.zeros(size, dtype=np.bool_)
        return Resolved(None, nothing, nothing, sure=True, conflicts=0)
    yes = np.any([label.values & label.judged for label in best], axis=0)
    no = np.any([~label.values & label.judged for label in best], axis=0)
    masked = np.any([label.masked for label in best], axis=0)
    known = (yes | no) & ~(yes & no) & ~masked
    return Resolved(
        best[0].source,
        yes & known,
        known,
        sure=all(label.sure for label in best),
        conflicts=int((yes & no & ~masked).sum()),
    )


class Agreement:
    """How labels of two sources agree on the same papers, area by area."""

    def __init__(self, taxonomy: Taxonomy) -> None:
        self._areas = taxonomy.ids
        self._papers: Counter[tuple[str, str]] = Counter()
        self._cells: dict[tuple[str, str], IntArray] = {}

    def add(self, labels: Sequence[Label]) -> None:
        """Count the labels of one paper; what a declared label does not name counts as denied by it."""
        sources = sorted({label.source for label in labels}, key=RANK.__getitem__)
        for pair in combinations(sources, 2):
            sides = [
                resolve([label for label in labels if label.source == source], len(self._areas)) for source in pair
            ]
            judged = [side.known | (side.source not in SCORED) for side in sides]
            counted = self._cells.setdefault(pair, np.zeros((len(self._areas), 2, 2), dtype=np.intp))
            for area in np.flatnonzero(judged[0] & judged[1]):
                counted[area, int(sides[0].values[area]), int(sides[1].values[area])] += 1
            self._papers[pair] += 1

    def to_json(self) -> list[dict[str, Any]]:
        """Return, for each pair of sources, ``a, b, papers`` and of each area ``both, only_a, only_b, neither``."""
        names = ("neither", "only_b", "only_a", "both")
        return [
            {
                "a": pair[0],
                "b": pair[1],
                "papers": self._papers[pair],
                "areas": {
                    area: dict(zip(names, cells.ravel().tolist(), strict=True))
                    for area, cells in zip(self._areas, self._cells[pair], strict=True)
                },
            }
            for pair in sorted(self._cells)
        ]


class LabelTable:
    """The rows of label files, found by a record's id or title key; remembers which were used."""

    def __init__(self, paths: Sequence[str], taxonomy: Taxonomy) -> None:
        self._rows: list[Label] = []
        self._found: dict[tuple[str, str], list[int]] = defaultdict(list)
        self._used: set[int] = set()
        for path in paths:
            for names, label in read_labels(path, taxonomy):
                for name in names:
                    self._found[name].append(len(self._rows))
                self._rows.append(label)

    def find(self, *, id: str, key: str | None) -> list[Label]:  # noqa: A002
        """Return the labels of the record with this id or title key."""
        rows = {*self._found.get(("id", id), ()), *(self._found.get(("key", key), ()) if key else ())}
        self._used |= rows
        return [self._rows[row] for row in sorted(rows)]

    @property
    def unmatched(self) -> int:
        """Number of label rows that no record has asked for."""
        return len(self._rows) - len(self._used)


def read_labels(path: str, taxonomy: Taxonomy) -> Iterator[tuple[list[tuple[str, str]], Label]]:
    """Read a label file: CSV with ``key`` or ``id``, ``areas`` (``;``-joined, empty is none) and optional columns.

    Optional: ``source`` (read), ``sure`` (1), ``masked`` and ``judged`` (``;``-joined areas; judged empty is all),
    ``part``, ``random``. A label of source declared or rule makes only its positives known.

    Raises
    ------
    DataError
        Names file and line: an unknown area or source, a missing column, a column twice, a value that is neither
        0 nor 1.
    """
    try:
        with Path(path).open(encoding="utf-8-sig", newline="") as stream:
            rows = csv.DictReader(stream, strict=True)
            names = rows.fieldnames or ()
            columns = set(names)
            if "areas" not in columns or not columns & {"id", "key"}:
                raise DataError(
                    f"a label file needs the columns areas and key or id, found {', '.join(sorted(columns)) or 'none'}",
                    where=path,
                )
            repeated = [name for name in _COLUMNS if names.count(name) > 1]
            if repeated:
                raise DataError(f"two columns are called {repeated[0]}", where=path, remedy="rename one")
            try:
                for row in rows:
                    yield _label(row, taxonomy, f"{path}:{rows.line_num}")
            except csv.Error as error:
                raise DataError(f"cannot read the labels: {error}", where=f"{path}:{rows.line_num + 1}") from error
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"cannot read the labels: {error}", where=path) from error


def _label(row: dict[str, str], taxonomy: Taxonomy, where: str) -> tuple[list[tuple[str, str]], Label]:
    if None in row or None in row.values():
        raise DataError("the row has more or fewer cells than the header", where=where)
    names = [(column, row[column].strip()) for column in ("id", "key") if (row.get(column) or "").strip()]
    if not names:
        raise DataError("the row has neither id nor key", where=where)
    source = (row.get("source") or "read").strip()
    if source not in RANK:
        raise DataError(f"unknown label source {source!r}", where=where, remedy=f"known: {', '.join(RANK)}")
    values, judged = (_areas(row, column, taxonomy, where) for column in ("areas", "judged"))
    if source not in SCORED:
        judged = values
    elif judged.any() and (values & ~judged).any():
        raise DataError("an area is given that is not among those judged", where=where)
    return names, Label(
        source=source,
        values=values,
        judged=judged if judged.any() or source not in SCORED else np.ones_like(judged),
        masked=_areas(row, "masked", taxonomy, where),
        sure=_flag(row, "sure", where) is not False,
        part=(row.get("part") or "").strip() or None,
        random=_flag(row, "random", where),
    )


def _areas(row: dict[str, str], column: str, taxonomy: Taxonomy, where: str) -> BoolArray:
    names = [name.strip() for name in (row.get(column) or "").split(";")]
    try:
        return taxonomy.encode(name for name in names if name)
    except DataError as error:
        raise DataError(error.what, where=f"{where}, column {column}", remedy=error.remedy) from error


def _flag(row: dict[str, str], column: str, where: str) -> bool | None:
    text = (row.get(column) or "").strip().lower()
    if text and text not in _TRUE:
        raise DataError(f"{column} must be 0 or 1, not {text!r}", where=where)
    return _TRUE.get(text)
