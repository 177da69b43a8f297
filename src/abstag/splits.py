"""Ways to part a corpus into training and test rows: stratified, by fixed part, year or venue; groups never straddle.

Only scorable rows (read or review labels) are tested. Every other labelled row may train, unless it lies on the test
side of the criterion or shares a duplicate group with a tested row.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from abstag.errors import ConfigError
from abstag.records import BoolArray, FloatArray, IntArray, Split

_TIE = 1e-9


@dataclass(frozen=True, slots=True)
class Rows:
    """What a splitter may look at, for n rows.

    Attributes
    ----------
    positive
        (n, k) bool: known positives, balanced over folds.
    scorable
        (n,) bool: may be tested.
    groups
        (n,) int: duplicate groups.
    parts, years, venues
        n values or None.
    """

    positive: BoolArray
    scorable: BoolArray
    groups: IntArray
    parts: Sequence[str | None]
    years: Sequence[int | None]
    venues: Sequence[str | None]

    def take(self, rows: IntArray) -> "Rows":
        """Return the rows with these numbers, renumbered from 0."""
        return Rows(
            self.positive[rows],
            self.scorable[rows],
            self.groups[rows],
            *([column[row] for row in rows] for column in (self.parts, self.years, self.venues)),
        )


class Splitter(Protocol):
    """Parts rows into one or more splits."""

    def split(self, rows: Rows, *, seed: int) -> list[Split]:
        """Return splits with ascending row numbers; raises ConfigError when a side would be empty."""
        ...


@dataclass(frozen=True, slots=True)
class KFold:
    """Multi-label stratified k-fold (Sechidis et al. 2011): every scorable row is tested once.

    Attributes
    ----------
    folds
        ≥ 2.
    seed
        Deals the rows; None takes the run's seed, so that runs with other seeds have other folds.
    """

    folds: int = 5
    seed: int | None = None

    def __post_init__(self) -> None:
        if self.folds < 2:
            raise ConfigError(f"{self.folds} folds", where="folds", remedy="at least 2")

    def split(self, rows: Rows, *, seed: int) -> list[Split]:
        """Return ``folds`` splits."""
        fold = stratify(rows, [1 / self.folds] * self.folds, seed=seed if self.seed is None else self.seed)
        return [_split(f"fold-{n}", rows, fold != n, fold == n) for n in range(self.folds)]


@dataclass(frozen=True, slots=True)
class HoldOut:
    """A multi-label stratified share of the scorable rows is tested.

    Attributes
    ----------
    share
        In (0, 1).
    seed
        As of `KFold`.
    """

    share: float = 0.15
    seed: int | None = None

    def __post_init__(self) -> None:
        if not 0 < self.share < 1:
            raise ConfigError(f"share {self.share}", where="share", remedy="between 0 and 1")

    def split(self, rows: Rows, *, seed: int) -> list[Split]:
        """Return one split."""
        fold = stratify(rows, [1 - self.share, self.share], seed=seed if self.seed is None else self.seed)
        return [_split("holdout", rows, fold != 1, fold == 1)]


@dataclass(frozen=True, slots=True)
class Fixed:
    """The corpus's own parts: rows of ``test_parts`` are tested, all others train."""

    test_parts: Sequence[str] = ("test", "random", "hard")

    def split(self, rows: Rows, *, seed: int) -> list[Split]:  # noqa: ARG002
        """Return one split; the seed plays no role."""
        test = np.array([part in set(self.test_parts) for part in rows.parts], dtype=np.bool_)
        if not test.any():
            raise ConfigError(
                f"no row has a part among {', '.join(self.test_parts)}",
                where="split.test_parts",
                remedy=f"parts in this corpus: {_present(rows.parts)}; none is needed with split=kfold metric_part=all",
            )
        return [_split("fixed", rows, ~test, test)]


@dataclass(frozen=True, slots=True)
class ByYear:
    """Train on earlier years, test from ``test_from`` on; rows without a year are left out.

    Attributes
    ----------
    train_before
        Train on years before this one, at most ``test_from``; None is ``test_from``. Years between are left out.
    """

    test_from: int
    train_before: int | None = None

    def __post_init__(self) -> None:
        if self.train_before is not None and self.train_before > self.test_from:
            what = f"{self.train_before} is after the tested years begin ({self.test_from})"
            raise ConfigError(what, where="train_before", remedy=f"at most {self.test_from}")

    def split(self, rows: Rows, *, seed: int) -> list[Split]:  # noqa: ARG002
        """Return one split; the seed plays no role."""
        years = np.array([np.nan if year is None else year for year in rows.years], dtype=np.float64)
        before = self.test_from if self.train_before is None else self.train_before
        early, late = years < before, years >= self.test_from
        for key, side, mask in (
            ("train_before", f"before {before}", early),
            ("test_from", f"from {self.test_from}", late),
        ):
            if not mask.any():
                raise ConfigError(
                    f"no row has a year {side}",
                    where=f"split.{key}",
                    remedy=f"years in this corpus: {_present(rows.years)}",
                )
        return [_split(f"from-{self.test_from}", rows, early, late)]


@dataclass(frozen=True, slots=True)
class ByVenue:
    """Test the named venues, train on the others; rows without a venue are left out."""

    test_venues: Sequence[str]

    def split(self, rows: Rows, *, seed: int) -> list[Split]:  # noqa: ARG002
        """Return one split; the seed plays no role."""
        absent = sorted(set(self.test_venues) - set(rows.venues))
        if absent:
            raise ConfigError(
                f"no row has the venue {' or '.join(absent)}",
                where="split.test_venues",
                remedy=f"venues in this corpus: {_present(rows.venues)}",
            )
        named = np.array([venue is not None for venue in rows.venues], dtype=np.bool_)
        test = np.array([venue in set(self.test_venues) for venue in rows.venues], dtype=np.bool_)
        return [_split("-".join(self.test_venues), rows, named & ~test, test)]


def stratify(rows: Rows, shares: Sequence[float], *, seed: int) -> IntArray:
    """Deal scorable rows to subsets so that each area's positives are spread by the shares.

    Iterative stratification (Sechidis, Tsoumakas & Vlahavas 2011) over duplicate groups, where a group holds an area
    if one of its rows does, and "none of the areas" counts as one more area. A tie for the rarest area
    goes to the subset that lacks most positives of all the group's areas, then to the one with most room.

    Parameters
    ----------
    shares
        Positive numbers that sum to 1.

    Returns
    -------
    IntArray
        (n,) subset number of every scorable row, -1 for the others.

    Raises
    ------
    ConfigError
        When there are fewer groups than subsets.
    """
    names, member = np.unique(rows.groups[rows.scorable], return_inverse=True)
    if len(names) < len(shares):
        raise ConfigError(
            f"{len(names)} labelled papers (duplicates are one) cannot be dealt to {len(shares)} subsets",
            where="split",
            remedy="fewer folds, or more labels",
        )
    positive = np.zeros((len(names), rows.positive.shape[1] + 1), dtype=np.bool_)
    np.logical_or.at(positive[:, :-1], member, rows.positive[rows.scorable])
    positive[:, -1] = ~positive[:, :-1].any(axis=1)
    dealt = np.full(len(rows.groups), -1, dtype=np.intp)
    dealt[rows.scorable] = _deal(positive, np.asarray(shares), np.random.default_rng(seed))[member]
    return dealt


def _deal(positive: BoolArray, shares: FloatArray, rng: np.random.Generator) -> IntArray:
    room = shares * len(positive)
    wanted = shares[:, None] * positive.sum(axis=0)
    subset = np.full(len(positive), -1, dtype=np.intp)
    order = rng.permutation(len(positive))
    while (open_rows := order[subset[order] < 0]).size:
        left = positive[open_rows].sum(axis=0)
        rarest = int(np.argmin(np.where(left > 0, left, np.iinfo(np.intp).max)))
        for row in open_rows[positive[open_rows, rarest]]:
            best = np.arange(len(shares))
            for need in (wanted[:, rarest], wanted[:, positive[row]].sum(axis=1), room):
                best = best[need[best] > need[best].max() - _TIE]
            chosen = rng.choice(best)
            subset[row] = chosen
            room[chosen] -= 1
            wanted[chosen] -= positive[row]
    return subset


def _present(values: Sequence[str | int | None]) -> str:
    return ", ".join(map(str, sorted({value for value in values if value is not None}))) or "none"


def _split(name: str, rows: Rows, train: BoolArray, test: BoolArray) -> Split:
    tested = test & rows.scorable
    kept = train & ~np.isin(rows.groups, rows.groups[tested])
    for side, mask in (("test", tested), ("train", kept)):
        if not mask.any():
            raise ConfigError(
                f"split {name!r} leaves nothing to {side}",
                where="split",
                remedy=f"{int(rows.scorable.sum())} of {len(rows.scorable)} rows have a read or review label",
            )
    return Split(name, np.flatnonzero(kept), np.flatnonzero(tested))
