"""The nouns that leave an experiment: the result of one run, and its scores paper by paper."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal, Self

import numpy as np

from abstag.records import BoolArray, FloatArray, IntArray

Status = Literal["done", "failed", "running"]


@dataclass(frozen=True, slots=True)
class RunResult:
    """What a run found; its JSON form is fixed in docs/contracts.md.

    Attributes
    ----------
    corpus
        ``name`` and ``fingerprint``.
    parts
        Metrics of each part of the test rows, as `metrics.evaluate` gives them, with the interval of macro-F1, the
        figures at threshold 0.5 (``at_half``) and of sure labels alone (``sure``).
    fit_seconds
        Wall time of all fits: those for out-of-fold scores and the final one.
    texts_per_second
        Test papers scored in a second, features included.
    peak_mb
        Highest resident memory of the process during the run, MiB.
    looks
        How many different runs, this one included, had scored these test rows in this store when this one ended.
    """

    id: str
    status: Status
    experiment: str
    classifier: str
    seed: int
    corpus: dict[str, str]
    areas: list[str] = field(default_factory=list)
    taxonomy: dict[str, Any] = field(default_factory=dict)
    metric_part: str = "all"
    parts: dict[str, dict[str, Any]] = field(default_factory=dict)
    decision: dict[str, Any] = field(default_factory=dict)
    rows: dict[str, Any] = field(default_factory=dict)
    fit_seconds: float | None = None
    texts_per_second: float | None = None
    peak_mb: float | None = None
    looks: int | None = None
    config: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    started: str = ""
    error: str | None = None

    @property
    def metrics(self) -> dict[str, Any]:
        """The metrics of ``metric_part``; empty when the run failed."""
        return self.parts.get(self.metric_part, {})

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form (NaN not yet null)."""
        return asdict(self) | {"metrics": self.metrics}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Self:
        """Rebuild from the JSON form; unknown keys of newer versions are ignored."""
        names = {item.name for item in fields(cls)}
        return cls(**{key: item for key, item in value.items() if key in names})


def flat(value: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return a nested configuration with dotted keys."""
    found: dict[str, Any] = {}
    for key, item in value.items():
        found |= flat(item, f"{prefix}{key}.") if isinstance(item, Mapping) else {f"{prefix}{key}": item}
    return found


@dataclass(frozen=True, slots=True)
class ScoreTable:
    """Scores of n test papers for k areas: what any two runs on the same papers are compared by.

    Attributes
    ----------
    groups
        (n,) duplicate groups: the unit of resampling.
    venues, parts
        n strings or None.
    random, sure
        (n,) bool: belongs to the plain random sample; the label is marked sure.
    fold
        (n,) int: the split that scored the paper.
    gold, known, tags
        (n, k) bool.
    scores
        (n, k) float64, calibrated probabilities.
    confidence
        (n,) float64 in [0, 1].
    """

    areas: tuple[str, ...]
    ids: Sequence[str]
    groups: IntArray
    venues: Sequence[str | None]
    parts: Sequence[str | None]
    random: BoolArray
    sure: BoolArray
    fold: IntArray
    gold: BoolArray
    known: BoolArray
    scores: FloatArray
    tags: BoolArray
    confidence: FloatArray

    def __len__(self) -> int:
        return len(self.ids)

    def take(self, rows: IntArray) -> "ScoreTable":
        """Return the rows with these numbers, in that order."""
        columns: list[Any] = [self.areas]
        for item in fields(self)[1:]:
            value = getattr(self, item.name)
            columns.append(value[rows] if isinstance(value, np.ndarray) else [value[row] for row in rows])
        return ScoreTable(*columns)

    @classmethod
    def join(cls, tables: "Sequence[ScoreTable]") -> "ScoreTable":
        """Return the rows of several tables of the same areas, one after the other."""
        columns: list[Any] = [tables[0].areas]
        for item in fields(cls)[1:]:
            values = [getattr(table, item.name) for table in tables]
            whole = isinstance(values[0], np.ndarray)
            columns.append(np.concatenate(values) if whole else [cell for value in values for cell in value])
        return cls(*columns)

    def named_parts(self) -> dict[str, BoolArray]:
        """Return the (n,) bool rows of every part with a name.

        "all"; each part; each venue's part as "iclr-test" (or the venue alone, where no part is given); "random"
        is the plain random sample: the part of that name and all rows marked as random.
        """
        names = [_venue_part(venue, part) for venue, part in zip(self.venues, self.parts, strict=True)]
        found = {"all": np.ones(len(self), dtype=np.bool_)}
        for column in (self.parts, names):
            for name in sorted({name for name in column if name}):
                rows = np.array([item == name for item in column], dtype=np.bool_)
                found[name] = rows | found.get(name, False)
        if self.random.any():
            found["random"] = self.random | found.get("random", False)
        return found


def _venue_part(venue: str | None, part: str | None) -> str | None:
    return "-".join(name for name in (venue.casefold().replace(" ", "-") if venue else None, part) if name) or None
