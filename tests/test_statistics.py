"""Bootstrap, randomisation and Holm: against closed forms and enumeration, by seed, by group."""

import itertools
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from abstag import metrics, statistics
from abstag.records import FloatArray

DOCS = Path(__file__).parents[1] / "docs"


def make_counts(seed: int, *, n: int = 200, wrong: float = 0.1) -> NDArray[np.int64]:
    """Return counts (n, 2, 3) of a system that gets a share of the cells wrong; the truth does not vary."""
    gold = np.random.default_rng(0).random((n, 2)) < 0.3
    tags = gold ^ (np.random.default_rng(seed).random((n, 2)) < wrong)
    ones = np.ones_like(gold)
    return metrics.counts(metrics.Scored(gold, ones, tags.astype(np.float64), tags, np.ones(n)))


def hits(counted: NDArray[Any]) -> FloatArray:
    """Return the true positives of the first area: a sum, whose bootstrap has a closed form."""
    return np.asarray(counted[..., 0, 0], dtype=np.float64)


def test_bootstrap_has_the_spread_of_theory() -> None:
    counted = make_counts(1)
    (draws,) = statistics.bootstrap([counted], np.arange(200), hits, draws=20_000, seed=0)
    cells = counted[:, 0, 0]
    assert draws.mean() == pytest.approx(cells.sum(), abs=0.2)
    assert draws.std() == pytest.approx(math.sqrt(200) * cells.std(), rel=0.03)


def test_bootstrap_draws_groups_whole() -> None:
    counted = make_counts(1)
    (draws,) = statistics.bootstrap([counted], np.arange(200) // 4, hits, draws=20_000, seed=0)
    sums = counted[:, 0, 0].reshape(50, 4).sum(axis=1)
    assert draws.std() == pytest.approx(math.sqrt(50) * sums.std(), rel=0.03)


def test_copies_of_papers_do_not_narrow_the_interval() -> None:
    counted, groups = make_counts(1), np.arange(200)
    once = statistics.bootstrap([counted], groups, metrics.macro_f1, draws=500, seed=0)
    twice = statistics.bootstrap([np.tile(counted, (2, 1, 1))], np.tile(groups, 2), metrics.macro_f1, draws=500, seed=0)
    np.testing.assert_allclose(once, twice)


def test_bootstrap_pairs_systems_within_and_across_calls() -> None:
    first, second, groups = make_counts(1), make_counts(2), np.arange(200)
    together = statistics.bootstrap([first, second, first], groups, metrics.micro_f1, draws=300, seed=4)
    np.testing.assert_array_equal(together[0], together[2])
    for system, draws in zip((first, second), together, strict=False):
        (alone,) = statistics.bootstrap([system], groups, metrics.micro_f1, draws=300, seed=4)
        np.testing.assert_array_equal(alone, draws)
    unpaired = math.hypot(together[0].std(), together[1].std())
    assert (together[0] - together[1]).std() < unpaired


def test_bootstrap_depends_on_the_seed_alone_and_not_on_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    def draw(seed: int) -> FloatArray:
        return statistics.bootstrap([make_counts(1)], np.arange(200), metrics.f1, draws=101, seed=seed)[0]

    whole = draw(0)
    assert whole.shape == (101, 2)
    assert not np.array_equal(whole, draw(1))
    monkeypatch.setattr(statistics, "_CELLS", 700)
    np.testing.assert_array_equal(draw(0), whole)


def test_bootstrap_of_nothing_is_nan() -> None:
    none = make_counts(1)[:0]
    (draws,) = statistics.bootstrap([none], np.arange(0), metrics.macro_f1, draws=7, seed=0)
    assert draws.shape == (7,)
    assert np.isnan(draws).all()


@pytest.mark.slow
def test_bootstrap_interval_of_macro_f1_covers() -> None:
    """Binomial 95 % band of 300 trials around a coverage of 0.95, widened by the percentile method's known bias."""
    population = make_counts(1, n=100_000, wrong=0.15)
    truth = float(metrics.macro_f1(population.sum(axis=0)))
    rng, inside = np.random.default_rng(0), 0
    for trial in range(300):
        sample = population[rng.integers(len(population), size=300)]
        draws = statistics.bootstrap([sample], np.arange(300), metrics.macro_f1, draws=400, seed=trial)[0]
        low, high = statistics.interval(draws)
        inside += low <= truth <= high
    assert 0.90 <= inside / 300 <= 0.98


def test_interval_is_of_percentiles_and_leaves_nan_out() -> None:
    values = np.append(np.arange(101.0), [np.nan, np.nan])
    assert statistics.interval(values) == pytest.approx((2.5, 97.5))
    assert statistics.interval(values, level=0.5) == pytest.approx((25, 75))
    assert np.isnan(statistics.interval(np.full(3, np.nan))).all()


@pytest.mark.parametrize("statistic", [metrics.macro_f1, metrics.micro_f1])
def test_identical_systems_do_not_differ(statistic: statistics.Statistic) -> None:
    counted, groups = make_counts(1), np.arange(200)
    first, second = statistics.bootstrap([counted, counted], groups, statistic, draws=200, seed=0)
    assert statistics.interval(first - second) == (0.0, 0.0)
    assert statistics.randomization_test(counted, counted, groups, statistic, draws=200, seed=0) == 1.0


@pytest.mark.parametrize("size", [1, 3], ids=["papers", "groups of 3"])
def test_randomization_agrees_with_enumeration(size: int) -> None:
    first, second = make_counts(1, n=30, wrong=0.1), make_counts(2, n=30, wrong=0.3)
    groups = np.arange(30) // size
    a, b = (statistics.by_group(counted, groups) for counted in (first, second))
    moving = (a != b).any(axis=(1, 2))
    fixed = a[~moving].sum(axis=0)
    observed = abs(metrics.macro_f1(a.sum(axis=0)) - metrics.macro_f1(b.sum(axis=0)))
    extreme = []
    for swaps in itertools.product([False, True], repeat=int(moving.sum())):
        swap = np.array(swaps)[:, None, None]
        one, other = (fixed + np.where(swap, x[moving], y[moving]).sum(axis=0) for x, y in ((a, b), (b, a)))
        extreme.append(abs(metrics.macro_f1(one) - metrics.macro_f1(other)) >= observed - 1e-12)
    p = statistics.randomization_test(first, second, groups, metrics.macro_f1, draws=20_000, seed=0)
    assert p == pytest.approx(np.mean(extreme), abs=0.012)


def test_randomization_is_symmetric_seeded_and_never_zero() -> None:
    first, second, groups = make_counts(1, wrong=0.01), make_counts(2, wrong=0.4), np.arange(200)
    p = [
        statistics.randomization_test(a, b, groups, metrics.macro_f1, draws=999, seed=3)
        for a, b in ((first, second), (second, first), (first, second))
    ]
    assert p == [0.001] * 3


def test_randomization_of_alike_systems_is_uniform() -> None:
    rng = np.random.default_rng(0)
    p = []
    for trial in range(200):
        gold = rng.random((150, 2)) < 0.4
        tags = gold ^ (rng.random((2, 150, 2)) < 0.2)
        a, b = (np.stack([gold & t, ~gold & t, gold & ~t], axis=-1).astype(np.int64) for t in tags)
        p.append(statistics.randomization_test(a, b, np.arange(150), metrics.macro_f1, draws=199, seed=trial))
    assert stats.kstest(p, "uniform").pvalue > 0.001


def test_randomization_of_an_undefined_statistic_is_nan() -> None:
    none = np.zeros((20, 2, 3), dtype=np.int64)
    assert math.isnan(statistics.randomization_test(none, none, np.arange(20), metrics.macro_f1, draws=9, seed=0))


def test_a_draw_that_is_undefined_counts_as_extreme() -> None:
    """Both systems have one false positive in an area without positives; swapped together, one has none."""
    first, second = np.zeros((2, 1, 3), dtype=np.int64), np.zeros((2, 1, 3), dtype=np.int64)
    first[0, 0, 1], second[1, 0, 1] = 1, 1
    assert statistics.randomization_test(first, second, np.arange(2), metrics.macro_f1, draws=99, seed=0) == 1.0


def test_holm_by_hand() -> None:
    adjusted = statistics.holm([0.01, math.nan, 0.04, 0.03, 0.005])
    np.testing.assert_allclose(adjusted, [0.03, np.nan, 0.06, 0.06, 0.02])
    assert statistics.holm([]) == []
    assert statistics.holm([0.6, 0.9]) == [1.0, 1.0]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_keeps_order_and_lies_between_raw_and_bonferroni(p: list[float]) -> None:
    adjusted = statistics.holm(p)
    assert all(raw <= value <= min(1.0, len(p) * raw) for raw, value in zip(p, adjusted, strict=True))
    assert [adjusted[i] for i in np.argsort(p, kind="stable")] == sorted(adjusted)


def test_the_documented_example_runs() -> None:
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / "statistics.md").read_text(encoding="utf-8"), re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, "docs/statistics.md", "exec"), {})
