"""Intervals, paired tests and power (docs/statistics.md): they take functions and arrays only."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, ndtr, ndtri

from abstag.records import FloatArray, IntArray

Statistic = Callable[[NDArray[Any]], FloatArray]
DRAWS = 10_000
POWER = 0.8
_CELLS = 2_000_000  # of a chunk's weights: bounds memory to about 80 MB
_EXACT = 2**24  # whole numbers below it are exact in float32
_TIE = 1e-12


class Interval(NamedTuple):
    """Ends of a percentile interval; NaN when undefined."""

    low: float
    high: float


def by_group(counted: NDArray[Any], groups: IntArray) -> NDArray[np.float64]:
    """Add the counts (n, ...) of the papers of each duplicate group: (g, ...) float64, groups in ascending order."""
    order = np.argsort(groups, kind="stable")
    starts = np.flatnonzero(np.diff(groups[order], prepend=groups[order][:1] - 1))
    if not len(starts):
        return np.zeros(counted.shape)
    return np.add.reduceat(counted[order].astype(np.float64), starts, axis=0)


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
        Takes summed counts (draws, systems, k, 3), gives (draws, systems, ...).

    Returns
    -------
    list
        The statistic of every draw, an array (draws, ...) a system; subtract two of them for a difference.
    """
    counted = by_group(np.stack(systems, axis=1), groups)
    drawn = [statistic(_sums(weights, counted)) for weights in _weights(len(counted), draws, seed)]
    return list(np.moveaxis(np.concatenate(drawn), 1, 0))


def bootstrap_weights(
    statistics: Sequence[Statistic], groups: IntArray, *, draws: int, seed: int
) -> Iterator[FloatArray]:
    """Draw groups as `bootstrap` does, for statistics that are no function of summed counts.

    Parameters
    ----------
    statistics
        Each takes weights (draws, n), how often each paper is drawn, and gives (draws,).
    groups
        (n,) int.

    Yields
    ------
    FloatArray
        (draws,) of each statistic.
    """
    _, member = np.unique(groups, return_inverse=True)
    found: list[list[FloatArray]] = [[] for _ in statistics]
    for weights in _weights(int(member.max(initial=-1)) + 1, draws, seed):
        papers = weights[:, member].astype(np.float64)
        for number, statistic in enumerate(statistics):
            found[number].append(statistic(papers))
    yield from (np.concatenate(values) for values in found)


def _weights(size: int, draws: int, seed: int) -> Iterator[IntArray]:
    """Yield (some draws, size): how often each group is drawn. Several times faster than ``rng.multinomial``."""
    rng = np.random.default_rng(seed)
    for chunk in _chunks(draws, size):
        drawn = rng.integers(max(size, 1), size=(chunk, size))
        drawn += size * np.arange(chunk)[:, None]
        yield np.bincount(drawn.ravel(), minlength=chunk * size).reshape(chunk, size)


def _sums(weights: NDArray[Any], counted: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return weights (draws, g) · counts (g, ...), float64; weights of a draw add up to at most g.

    It is computed in float32, at twice the speed, where whole numbers cannot leave its exact range.
    """
    kind = np.float32 if np.abs(counted).max(initial=0) * len(counted) < _EXACT else np.float64
    return np.tensordot(weights.astype(kind), counted.astype(kind), axes=1).astype(np.float64)


def interval(values: FloatArray, *, level: float = 0.95) -> Interval:
    """Return the percentile interval of draws (d,) (Efron 1979); draws that are NaN are left out."""
    defined = values[~np.isnan(values)]
    if not len(defined):
        return Interval(float("nan"), float("nan"))
    low, high = np.quantile(defined, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(low), float(high))


def f1_posterior(hits: float, errors: float, *, prior: float = 0.5, level: float = 0.95) -> Interval:
    """Return the equal-tailed posterior interval of F1 (Goutte & Gaussier 2005), for areas with few positives.

    F1 = 2x / (1 + x) with x = TP / (TP + errors) ~ Beta(TP + prior, errors + 2 prior). Papers are taken as
    independent.

    Parameters
    ----------
    hits
        True positives, ≥ 0.
    errors
        False positives and false negatives together, ≥ 0.
    prior
        Pseudo-counts of precision's and recall's Beta prior, > 0; ½ is Jeffreys's.

    Returns
    -------
    Interval
        NaN when F1 is undefined.
    """
    if not hits + errors:
        return Interval(float("nan"), float("nan"))
    tails = np.array([(1 - level) / 2, (1 + level) / 2])
    share = betaincinv(hits + prior, errors + 2 * prior, tails)
    low, high = 2 * share / (1 + share)
    return Interval(float(low) if hits else 0.0, float(high) if errors else 1.0)


def randomization_test(
    first: NDArray[Any],
    second: NDArray[Any],
    groups: IntArray,
    statistic: Statistic,
    *,
    draws: int = DRAWS,
    seed: int,
) -> FloatArray:
    """Return the two-sided p of "both systems are alike": outputs swapped group by group (Noreen 1989; Yeh 2000).

    p = (extreme draws + 1) / (draws + 1), never 0; NaN when the statistic of a system is undefined. A draw whose
    difference is undefined counts as extreme.

    Parameters
    ----------
    first, second
        Per-paper counts (n, ..., k, 3).
    statistic
        Takes summed counts (draws, ..., k, 3), gives (draws, ...): any number of measures.

    Returns
    -------
    FloatArray
        A p for each measure that the statistic gives.
    """
    a, b = (by_group(counted, groups) for counted in (first, second))
    total_a, total_b = a.sum(axis=0), b.sum(axis=0)
    observed = np.abs(statistic(total_a[None]) - statistic(total_b[None]))[0]
    gap = b - a
    moving = gap[gap.any(axis=tuple(range(1, gap.ndim)))]
    rng = np.random.default_rng(seed)
    extreme = np.zeros(np.shape(observed))
    for chunk in _chunks(draws, len(moving)):
        bits = np.frombuffer(rng.bytes(chunk * (-(-len(moving) // 8))), dtype=np.uint8).reshape(chunk, -1)
        moved = _sums(np.unpackbits(bits, axis=1, count=len(moving)), moving)
        difference = statistic(total_a + moved) - statistic(total_b - moved)
        extreme += (~(np.abs(difference) < observed - _TIE)).sum(axis=0)
    return np.asarray(np.where(np.isnan(observed), np.nan, (extreme + 1) / (draws + 1)))


def power(difference: NDArray[Any] | float, error: float, *, level: float = 0.05) -> FloatArray:
    """Return the chance that a two-sided test at a level finds a true difference, by the normal approximation.

    Parameters
    ----------
    difference
        True differences, any shape.
    error
        Standard error of the difference, > 0, e.g. the standard deviation of its bootstrap draws.
    """
    shift, line = np.abs(difference) / error, -ndtri(level / 2)
    return np.asarray(ndtr(shift - line) + ndtr(-shift - line))


def detectable(error: float, *, level: float = 0.05, chance: float = POWER) -> float:
    """Return the smallest true difference that a two-sided test at a level finds with a chance (Cohen 1988).

    It is (z(1 − level/2) + z(chance)) · error, where the far tail does not matter. For one of m tests that are
    adjusted by Holm, level / m is what the first of them has to pass.
    """
    return float((ndtri(chance) - ndtri(level / 2)) * error)


class MeanDifference(NamedTuple):
    """Difference of two means with its 95 % interval and two-sided p."""

    difference: float
    low: float
    high: float
    p: float


def welch(first: FloatArray, second: FloatArray) -> MeanDifference:
    """Compare the means of two independent samples of two values or more, e.g. one a seed (Welch 1947).

    Samples that do not vary at all are what they are: p is 1 when they are equal, else 0.
    """
    from scipy.stats import ttest_ind

    if not np.ptp(first) and not np.ptp(second):
        difference = float(first[0] - second[0])
        return MeanDifference(difference, difference, difference, float(difference == 0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # one side does not vary: scipy fears for its precision
        found = ttest_ind(first, second, equal_var=False)
    low, high = found.confidence_interval(0.95)
    return MeanDifference(float(first.mean() - second.mean()), float(low), float(high), float(found.pvalue))


def paired_t(differences: FloatArray) -> MeanDifference:
    """Compare two means by the differences of two values or more that belong together (Student 1908).

    Differences that do not vary at all are what they are: p is 1 when they are 0, else 0.
    """
    from scipy.stats import ttest_1samp

    mean = float(differences.mean())
    if not np.ptp(differences):
        return MeanDifference(mean, mean, mean, float(mean == 0))
    found = ttest_1samp(differences, 0.0)
    low, high = found.confidence_interval(0.95)
    return MeanDifference(mean, float(low), float(high), float(found.pvalue))


def holm_factors(p: Sequence[float]) -> list[int]:
    """Return by how much `holm` multiplies each p, from their number down to 1; 0 for NaN."""
    ranked = sorted((number for number, value in enumerate(p) if not np.isnan(value)), key=lambda number: p[number])
    factors = {number: len(ranked) - rank for rank, number in enumerate(ranked)}
    return [factors.get(number, 0) for number in range(len(p))]


def holm(p: Sequence[float]) -> list[float]:
    """Return p-values adjusted for their number (Holm 1979), in the given order; NaN stays and is not counted."""
    factors, adjusted, highest = holm_factors(p), [float("nan")] * len(p), 0.0
    for number in sorted(np.flatnonzero(factors).tolist(), key=lambda number: -factors[number]):
        highest = max(highest, min(1.0, factors[number] * p[number]))
        adjusted[number] = highest
    return adjusted


def _chunks(draws: int, size: int) -> list[int]:
    step = max(1, _CELLS // max(size, 1))
    return [min(step, draws - start) for start in range(0, draws, step)]
