"""Intervals and paired tests on per-paper counts (docs/statistics.md): they take functions and arrays only."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abstag.records import FloatArray, IntArray

Statistic = Callable[[NDArray[Any]], FloatArray]
DRAWS = 10_000
_CELLS = 2_000_000  # of a chunk's weights: bounds memory to about 80 MB
_TIE = 1e-12


class Interval(NamedTuple):
    """Ends of a percentile interval; NaN when undefined."""

    low: float
    high: float


def by_group(counted: NDArray[Any], groups: IntArray) -> NDArray[np.float64]:
    """Add the counts (n, ...) of the papers of each duplicate group: (g, ...) float64, groups in ascending order."""
    names, member = np.unique(groups, return_inverse=True)
    summed = np.zeros((len(names), *counted.shape[1:]))
    np.add.at(summed, member, counted)
    return summed


def bootstrap(
    systems: Sequence[NDArray[Any]], groups: IntArray, statistic: Statistic, *, draws: int = DRAWS, seed: int
) -> list[FloatArray]:
    """Draw duplicate groups with replacement, the same for every system (Efron 1979; paired).

    The draws depend on the seed and the number of groups alone, so they pair across calls on the same papers too.

    Parameters
    ----------
    systems
        Per-paper counts (n, k, 3) of each system on the same papers.
    groups
        (n,) int.
    statistic
        Takes summed counts (draws, k, 3), gives (draws, ...).

    Returns
    -------
    list
        The statistic of every draw, an array (draws, ...) a system; subtract two of them for a difference.
    """
    summed = [by_group(counted, groups) for counted in systems]
    size = len(summed[0])
    rng = np.random.default_rng(seed)
    found: list[list[FloatArray]] = [[] for _ in systems]
    for chunk in _chunks(draws, size):
        weights = _weights(rng, chunk, size)
        for system, counted in enumerate(summed):
            found[system].append(statistic(np.tensordot(weights, counted, axes=1)))
    return [np.concatenate(values) for values in found]


def _weights(rng: np.random.Generator, draws: int, size: int) -> FloatArray:
    """Return (draws, size) float64: how often each group is drawn. Several times faster than ``rng.multinomial``."""
    drawn = rng.integers(max(size, 1), size=(draws, size))
    drawn += size * np.arange(draws)[:, None]
    return np.bincount(drawn.ravel(), minlength=draws * size).reshape(draws, size).astype(np.float64)


def interval(values: FloatArray, *, level: float = 0.95) -> Interval:
    """Return the percentile interval of draws (d,) (Efron 1979); draws that are NaN are left out."""
    defined = values[~np.isnan(values)]
    if not len(defined):
        return Interval(float("nan"), float("nan"))
    low, high = np.quantile(defined, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(low), float(high))


def randomization_test(
    first: NDArray[Any],
    second: NDArray[Any],
    groups: IntArray,
    statistic: Statistic,
    *,
    draws: int = DRAWS,
    seed: int,
) -> float:
    """Return the two-sided p of "both systems are alike": outputs swapped group by group (Noreen 1989; Yeh 2000).

    p = (extreme draws + 1) / (draws + 1), never 0; NaN when the statistic of a system is undefined. A draw whose
    difference is undefined counts as extreme.

    Parameters
    ----------
    first, second
        Per-paper counts (n, k, 3).
    statistic
        Takes summed counts (..., k, 3), gives one number each.
    """
    a, b = (by_group(counted, groups) for counted in (first, second))
    total_a, total_b = a.sum(axis=0), b.sum(axis=0)
    observed = abs(float(statistic(total_a) - statistic(total_b)))
    if np.isnan(observed):
        return float("nan")
    gap = b - a
    moving = gap[gap.any(axis=tuple(range(1, gap.ndim)))]
    rng = np.random.default_rng(seed)
    extreme = 0
    for chunk in _chunks(draws, len(moving)):
        swapped = rng.integers(0, 2, size=(chunk, len(moving))).astype(np.float64)
        moved = np.tensordot(swapped, moving, axes=1)
        difference = statistic(total_a + moved) - statistic(total_b - moved)
        extreme += int((~(np.abs(difference) < observed - _TIE)).sum())
    return (extreme + 1) / (draws + 1)


def holm(p: Sequence[float]) -> list[float]:
    """Return p-values adjusted for their number (Holm 1979), in the given order; NaN stays and is not counted."""
    defined = [number for number, value in enumerate(p) if not np.isnan(value)]
    adjusted = [float("nan")] * len(p)
    highest = 0.0
    for rank, number in enumerate(sorted(defined, key=lambda number: p[number])):
        highest = max(highest, min(1.0, (len(defined) - rank) * p[number]))
        adjusted[number] = highest
    return adjusted


def _chunks(draws: int, size: int) -> list[int]:
    step = max(1, _CELLS // max(size, 1))
    return [min(step, draws - start) for start in range(0, draws, step)]
