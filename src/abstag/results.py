"""The nouns that leave an experiment: the result of one run, and its scores paper by paper."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from types import NoneType, UnionType
from typing import Any, Literal, NamedTuple, Self, Union, get_args, get_origin, get_type_hints

import numpy as np

from abstag.records import BoolArray, Documents, FloatArray, IntArray

Status = Literal["done", "failed", "running"]
STRESS_PART = "hard"  # papers that were chosen for being hard for one kind of classifier: shown, never judged by
VERDICT_PART = "test+random"
_PART: Mapping[str, Any] = {
    **dict.fromkeys(("macro_f1", "micro_f1", "macro_average_precision", "ece", "automation_95"), float | None),
    "n": int,
    "interval": list[float | None],
    "at_half": dict[str, float | None],
    "sure": dict[str, float | None],
}


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
    command
        The command line that gives this run again, the corpus named by its folder alone; empty when there is none.
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
    command: str = ""
    started: str = ""
    error: str | None = None

    @property
    def training_papers(self) -> int | None:
        """Number of papers trained on, in the mean of splits; None where it was not kept."""
        train = self.rows.get("train")
        return round(sum(train) / len(train)) if train else None

    @property
    def metrics(self) -> dict[str, Any]:
        """The metrics of ``metric_part``; empty when the run failed."""
        return self.parts.get(self.metric_part, {})

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form (NaN not yet null)."""
        return asdict(self) | {"metrics": self.metrics}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Self:
        """Rebuild from the JSON form; unknown keys of newer versions are ignored.

        Raises
        ------
        TypeError, AttributeError
            A key is missing, or its value is not of the annotated type.
        """
        hints = get_type_hints(cls)
        result = cls(**{key: item for key, item in value.items() if key in hints})
        wrong = [name for name, hint in hints.items() if not fits(getattr(result, name), hint)]
        wrong = wrong or [name for name, sound in result._soundness().items() if not sound]
        if wrong:
            raise TypeError(f"{wrong[0]} is not as it should be")
        return result

    def _soundness(self) -> dict[str, bool]:
        """Return whether the keys below those of the result are there."""
        done = self.status == "done"
        return {
            "corpus": {"name", "fingerprint"} <= self.corpus.keys(),
            "rows": not done or fits(self.rows.get("fingerprint"), str),
            "metric_part": not done or self.metric_part in self.parts,
            "parts": all(_is_part(part) for part in self.parts.values()),
        }


def _is_part(part: Mapping[str, Any]) -> bool:
    sound = all(fits(part.get(name, ...), hint) for name, hint in _PART.items())
    return sound and len(part["interval"]) == 2 and "macro_f1" in part["at_half"]


def fits(value: Any, hint: Any) -> bool:
    """Whether a value that JSON or YAML gave is of the annotated type, where that is one that they have.

    A whole number is a float; true and false are no numbers.
    """
    kind, inner = get_origin(hint), get_args(hint)
    if kind is Literal:
        return value in inner
    if kind in {Union, UnionType}:
        return any(fits(value, one) for one in inner)
    if kind is dict:
        return isinstance(value, dict) and all(fits(item, inner[1]) for item in value.values())
    if kind in {list, Sequence}:
        return isinstance(value, list) and all(fits(item, inner[0]) for item in value)
    if hint is float:
        return type(value) in {int, float}
    return hint not in {int, bool, str, NoneType} or type(value) is hint


def flat(value: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return a nested configuration with dotted keys."""
    found: dict[str, Any] = {}
    for key, item in value.items():
        found |= flat(item, f"{prefix}{key}.") if isinstance(item, Mapping) else {f"{prefix}{key}": item}
    return found


def settings(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return a run's configuration flat, without nulls, and with what older versions did not write."""
    return {"decision.calibrate": True} | {key: value for key, value in flat(config).items() if value is not None}


class ScoredDocuments(NamedTuple):
    """The texts of the scored papers, and for each paper and area the terms that decided with their share, if known."""

    documents: Documents
    evidence: Sequence[Sequence[Sequence[tuple[str, float]]]] | None


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
        """Return the (n,) bool rows of every part with a name (see `named_parts`)."""
        return named_parts(self.venues, self.parts, self.random)

    def stress(self) -> BoolArray:
        """Return the (n,) bool rows of the stress set (see `STRESS_PART`) that are not of the plain random sample."""
        return _stress(self.parts, self.random)


def named_parts(
    venues: Sequence[str | None], parts: Sequence[str | None], random: Sequence[bool] | BoolArray
) -> dict[str, BoolArray]:
    """Return the (n,) bool rows of every part with a name, of n papers.

    "all"; each part; each venue's part as "iclr-test" (or the venue alone, where no part is given); "random"
    is the plain random sample: the part of that name and all rows marked as random; "test+random" is what verdicts
    rest on where there is a stress set beside them.
    """
    names = [_venue_part(venue, part) for venue, part in zip(venues, parts, strict=True)]
    found = {"all": np.ones(len(parts), dtype=np.bool_)}
    for column in (parts, names):
        for name in sorted({name for name in column if name}):
            rows = np.array([item == name for item in column], dtype=np.bool_)
            found[name] = rows | found.get(name, False)
    drawn = np.array([bool(mark) for mark in random], dtype=np.bool_)
    if drawn.any():
        found["random"] = drawn | found.get("random", False)
    told = [found[name] for name in ("random", "test") if name in found]
    if _stress(parts, drawn).any() and told:
        found[VERDICT_PART] = np.logical_or.reduce(told)
    return found


def _stress(parts: Sequence[str | None], random: BoolArray) -> BoolArray:
    return np.array([part == STRESS_PART for part in parts], dtype=np.bool_) & ~random


def _venue_part(venue: str | None, part: str | None) -> str | None:
    return "-".join(name for name in (venue.casefold().replace(" ", "-") if venue else None, part) if name) or None
