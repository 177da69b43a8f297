"""Bootstrap, randomisation and Holm: against closed forms and enumeration, by seed, by group."""

import itertools
import json
import math
import re
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from abstag import metrics, statistics
from abstag.compare import ENOUGH_POSITIVES
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
@pytest.mark.parametrize("name", ["alike, 100 positives an area", "alike, 100 positives an area, every paper twice"])
def test_simulated_false_alarms_and_coverage(name: str) -> None:
    """1,000 trials: the standard error of a share of 0.05 is 0.007."""
    coverage = runpy.run_path(str(DOCS.parent / "benchmarks" / "coverage.py"))
    shares = coverage["simulate"](coverage["SETTINGS"][name], trials=1000, draws=500, seed=1)
    for share, value in shares.items():
        low, high = (0.03, 0.07) if share.startswith("p below") else (0.93, 0.97)
        assert low <= value <= high, share


def test_committed_coverage_is_as_promised() -> None:
    """Intervals of an area with few positives are the posterior's; the others the bootstrap's."""
    found = json.loads((DOCS.parent / "benchmarks" / "results" / "coverage.json").read_text(encoding="utf-8"))
    assert found["trials"] >= 1000
    for setting in found["settings"].values():
        shares, few = setting["shares"], setting["positives"] < ENOUGH_POSITIVES
        used = {"posterior interval of an area's F1" if few else "interval of an area's F1"}
        used |= {"interval of macro-F1", "interval of the difference of macro-F1"}
        assert all(0.93 <= shares[name] <= 0.97 for name in used)
        if setting["recall"][0] == setting["recall"][1]:
            assert 0.03 <= shares["p below 0.05, macro-F1"] <= 0.07


def test_weights_resample_as_counts_do() -> None:
    """F1 written as a function of weights has the very draws that F1 of counts has, duplicates drawn whole."""
    counted, groups = make_counts(1), np.repeat([7, 3, 5, 1], 50)
    (expected,) = statistics.bootstrap([counted], groups, metrics.macro_f1, draws=300, seed=2)
    (found,) = statistics.bootstrap_weights(
        [lambda weights: metrics.macro_f1(np.tensordot(weights, counted, axes=1))], groups, draws=300, seed=2
    )
    np.testing.assert_allclose(found, expected)


@given(seed=st.integers(0, 10_000), digits=st.integers(1, 3))
def test_weighted_metrics_are_those_of_repeated_papers(seed: int, digits: int) -> None:
    rng = np.random.default_rng(seed)
    gold, known = rng.random((40, 3)) < 0.3, rng.random((40, 3)) < 0.9
    scores = np.round(rng.random((40, 3)), digits)
    scored = metrics.Scored(gold, known, scores, scores >= 0.5, np.round(rng.random(40), digits))
    drawn = rng.integers(40, size=40)
    weights = np.bincount(drawn, minlength=40)[None].astype(np.float64)
    for name, metric in metrics.RESAMPLED.items():
        assert metric(scored)(weights)[0] == pytest.approx(metrics.METRICS[name](scored[drawn]), abs=1e-12, nan_ok=True)


def test_sums_beyond_the_exact_range_of_float32_are_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    counted, groups = make_counts(1) * 1_000_003, np.arange(200)
    draws = statistics.bootstrap([counted], groups, hits, draws=50, seed=0)[0]
    monkeypatch.setattr(statistics, "_EXACT", 0)
    np.testing.assert_array_equal(draws, statistics.bootstrap([counted], groups, hits, draws=50, seed=0)[0])


def test_posterior_of_f1_is_that_of_sampled_gammas() -> None:
    """Goutte & Gaussier (2005): F1 = U / (U + V), U ~ Gamma(TP + prior, 2), V ~ Gamma(FP + FN + 2 prior, 1)."""
    rng = np.random.default_rng(0)
    u, v = rng.gamma(20.5, 2, 400_000), rng.gamma(8.0, 1, 400_000)
    assert statistics.f1_posterior(20, 7) == pytest.approx(tuple(np.quantile(u / (u + v), [0.025, 0.975])), abs=2e-3)
    low, high = statistics.f1_posterior(0, 3)
    assert 0 == low < high < 0.7
    assert statistics.f1_posterior(3, 0).high == 1
    assert np.isnan(statistics.f1_posterior(0, 0)).all()


def test_power_is_that_of_simulated_tests() -> None:
    rng = np.random.default_rng(0)
    z = np.abs(rng.normal(0.03, 0.0125, 200_000) / 0.0125) > 1.959964
    assert statistics.power(0.03, 0.0125) == pytest.approx(z.mean(), abs=0.005)
    assert statistics.power(0.0, 0.5) == pytest.approx(0.05)
    assert statistics.power(np.array([-0.03, 0.03]), 0.0125)[0] == statistics.power(0.03, 0.0125)
    assert statistics.power(statistics.detectable(0.0125), 0.0125) == pytest.approx(0.8, abs=1e-4)


def test_welch_agrees_with_scipy_and_with_constants() -> None:
    rng = np.random.default_rng(0)
    first, second = rng.normal(0, 1, 5), rng.normal(1, 2, 7)
    found, expected = statistics.welch(first, second), stats.ttest_ind(first, second, equal_var=False)
    assert found.p == pytest.approx(expected.pvalue)
    assert (found.low, found.high) == pytest.approx(tuple(expected.confidence_interval()))
    assert found.difference == pytest.approx(first.mean() - second.mean())
    assert statistics.welch(np.full(5, 0.9), np.full(5, 0.9)) == (0, 0, 0, 1)
    assert statistics.welch(np.full(7, 0.9), np.full(5, 0.9)).p == 1
    assert statistics.welch(np.full(5, 0.9), np.full(5, 0.8)).p == 0
    assert 0 < statistics.welch(np.full(5, 0.9), first).p < 0.2


def test_bootstrap_and_randomization_agree_with_scipy() -> None:
    """scipy resamples the same statistic of sums; its permutation test of paired samples swaps as ours does."""
    first, second, groups = make_counts(1, wrong=0.1), make_counts(2, wrong=0.16), np.arange(200)

    def difference(rows: NDArray[Any], axis: int) -> FloatArray:
        return metrics.macro_f1(first[rows].sum(axis=-3)) - metrics.macro_f1(second[rows].sum(axis=-3))

    a, b = statistics.bootstrap([first, second], groups, metrics.macro_f1, seed=0)
    theirs = stats.bootstrap(
        (np.arange(200),), difference, n_resamples=9999, method="percentile", rng=np.random.default_rng(1)
    ).confidence_interval
    assert statistics.interval(a - b) == pytest.approx((theirs.low, theirs.high), abs=0.003)

    codes = (np.arange(200), np.arange(200) + 200)
    both = np.concatenate([first, second])

    def gap(x: NDArray[Any], y: NDArray[Any], axis: int) -> FloatArray:
        return metrics.macro_f1(both[x].sum(axis=-3)) - metrics.macro_f1(both[y].sum(axis=-3))

    tested = stats.permutation_test(
        codes, gap, permutation_type="samples", n_resamples=9999, rng=np.random.default_rng(2)
    )
    p = statistics.randomization_test(first, second, groups, metrics.macro_f1, seed=0)
    assert p == pytest.approx(tested.pvalue, abs=0.015)


def test_randomization_tests_several_measures_at_once() -> None:
    first, second, groups = make_counts(1), make_counts(2, wrong=0.3), np.arange(200)
    both = statistics.randomization_test(first, second, groups, metrics.f1, draws=999, seed=3)
    alone = statistics.randomization_test(first, second, groups, lambda c: metrics.f1(c)[..., 1], draws=999, seed=3)
    assert both.shape == (2,)
    assert both[1] == alone


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


def test_paired_t_agrees_with_scipy_and_with_constants() -> None:
    differences = np.array([0.01, 0.03, -0.01, 0.02, 0.04])
    found, expected = statistics.paired_t(differences), stats.ttest_rel(differences + 0.5, np.full(5, 0.5))
    assert found.p == pytest.approx(expected.pvalue)
    assert (found.low, found.high) == pytest.approx(tuple(expected.confidence_interval()))
    assert statistics.paired_t(np.zeros(5)) == (0, 0, 0, 1)
    assert statistics.paired_t(np.full(5, 0.5)).p == 0


def test_holm_multiplies_the_lowest_by_their_number_and_the_highest_by_one() -> None:
    assert statistics.holm_factors([0.01, math.nan, 0.04, 0.03, 0.005]) == [3, 0, 1, 2, 4]
    assert statistics.holm_factors([0.5, 0.5]) == [2, 1]


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
