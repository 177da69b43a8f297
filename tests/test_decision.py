"""Calibration, thresholds and the review line are what their definitions say, found by brute force here."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.special import expit, logit
from sklearn.linear_model import LogisticRegression

from abstag.decision import Decision, Policy, best_threshold, fit_decision, platt, review_line
from abstag.errors import ConfigError, DataError
from abstag.records import BoolArray, FloatArray

GRID = st.sampled_from([0.02, 0.1, 0.25, 0.3, 0.5, 0.55, 0.7, 0.9, 0.99])
RANKED = st.lists(st.tuples(GRID, st.booleans()), min_size=1, max_size=14)


def draw(*, n: int = 120, k: int = 3, noise: float = 1.0, seed: int = 0) -> tuple[FloatArray, BoolArray]:
    rng = np.random.default_rng(seed)
    values = rng.random((n, k)) < np.linspace(0.15, 0.5, k)
    return 3.0 * values + rng.normal(scale=noise, size=(n, k)) - 1.0, values


def smoothed(values: BoolArray) -> FloatArray:
    """Platt's targets, written anew."""
    yes = int(values.sum())
    no = len(values) - yes
    return np.array([(yes + 1) / (yes + 2) if value else 1 / (no + 2) for value in values])


def log_loss(scores: FloatArray, targets: FloatArray, slope: float, offset: float) -> float:
    logits = slope * scores + offset
    return float(np.logaddexp(0, logits).sum() - targets @ logits)


def f1(tags: BoolArray, values: BoolArray) -> float:
    return float(2 * (tags & values).sum() / (tags.sum() + values.sum()))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("scale", "shift"), [(1.0, 0.0), (1e-4, 3.0), (250.0, -1e3)])
def test_platt_is_logistic_regression_on_smoothed_targets(seed: int, scale: float, shift: float) -> None:
    scores, values = draw(k=1, seed=seed)
    column, truth = scores[:, 0], values[:, 0]
    targets = smoothed(truth)
    model = LogisticRegression(C=1e9, tol=1e-10, max_iter=2000)
    both = np.concatenate([column, column])[:, None]
    model.fit(both, np.repeat([True, False], len(column)), sample_weight=np.concatenate([targets, 1 - targets]))
    expected = model.predict_proba(column[:, None])[:, 1]
    moved = scale * column + shift
    slope, offset = platt(moved, truth)
    np.testing.assert_allclose(expit(slope * moved + offset), expected, atol=1e-4)


@given(
    hnp.arrays(np.float64, 20, elements=st.floats(-50, 50, width=32)),
    hnp.arrays(np.bool_, 20).filter(lambda values: 0 < values.sum() < 20),
)
@settings(max_examples=30)
def test_no_rising_plane_fits_better_than_platt(scores: FloatArray, values: BoolArray) -> None:
    targets = smoothed(values)
    slope, offset = platt(scores, values)
    assert slope > 0
    assert np.isfinite(offset)
    best = log_loss(scores, targets, slope, offset)
    for factor in (0.5, 0.95, 1.05, 2.0):
        for shift in (-0.5, -0.02, 0.0, 0.02, 0.5):
            turned = factor * slope  # about the mean, so that a steeper plane is not only a shifted one
            moved = offset + (slope - turned) * float(scores.mean()) + shift
            assert log_loss(scores, targets, turned, moved) >= best - 1e-4


@pytest.mark.parametrize("seed", range(4))
def test_inverted_scores_are_flattened_not_turned_over(seed: int) -> None:
    scores, values = draw(k=1, seed=seed)
    slope, offset = platt(-scores[:, 0], values[:, 0])
    probabilities = expit(-slope * scores[:, 0] + offset)
    assert slope > 0
    np.testing.assert_allclose(probabilities, smoothed(values[:, 0]).mean(), atol=1e-4)


@pytest.mark.parametrize("n", [7, 41, 100])
def test_constant_scores_give_the_share_of_positives(n: int) -> None:
    values = np.arange(n) < n // 3
    for constant in np.linspace(-3, 3, 31):
        slope, offset = platt(np.full(n, constant), values)
        assert slope > 0
        assert expit(slope * constant + offset) == pytest.approx(smoothed(values).mean(), abs=1e-4)


def test_separable_scores_stay_finite() -> None:
    slope, offset = platt(np.linspace(-1, 1, 40), np.linspace(-1, 1, 40) > 0)
    assert 0 < slope < np.inf
    assert 0.9 < expit(slope + offset) < 1


@given(RANKED.filter(lambda rows: any(value for _, value in rows)))
def test_best_threshold_has_the_highest_f1_of_all(rows: list[tuple[float, bool]]) -> None:
    probabilities, values = np.array([p for p, _ in rows]), np.array([v for _, v in rows])
    threshold = best_threshold(probabilities, values)
    levels = sorted({0.0, *probabilities.tolist()})
    reached = {level: f1(probabilities >= level, values) for level in levels[1:]}
    best = max(reached.values())
    assert f1(probabilities >= threshold, values) == best
    upper = max(level for level, value in reached.items() if value == best)  # of several, the one with fewest tags
    assert threshold == pytest.approx((upper + levels[levels.index(upper) - 1]) / 2)
    assert 0 < threshold < 1


@given(RANKED)
def test_a_threshold_is_always_inside(rows: list[tuple[float, bool]]) -> None:
    probabilities, values = np.array([p for p, _ in rows]), np.array([v for _, v in rows])
    assert 0 < best_threshold(probabilities, values) < 1
    assert best_threshold(np.round(probabilities), values) in {1e-9, 0.5, 1 - 1e-9}


def test_a_threshold_lies_between_even_the_nearest_probabilities() -> None:
    for upper in (0.3, 0.5, np.nextafter(0.5, 1), 0.7, 0.9):
        probabilities, values = np.array([upper, np.nextafter(upper, 0)]), np.array([True, False])
        threshold = best_threshold(probabilities, values)
        assert (probabilities >= threshold).tolist() == [True, False]


@given(st.lists(st.tuples(GRID, st.booleans()), max_size=14), st.sampled_from([0.5, 2 / 3, 0.75, 0.95]))
def test_review_line_is_the_lowest_that_keeps_the_share(rows: list[tuple[float, bool]], right: float) -> None:
    confidence = np.array([c for c, _ in rows], dtype=np.float64)
    exact = np.array([e for _, e in rows], dtype=np.bool_)
    lines = [line for line in set(confidence.tolist()) if exact[confidence >= line].mean() >= right]
    assert review_line(confidence, exact, right) == min(lines, default=np.inf)


def test_review_line_without_papers_is_infinite() -> None:
    assert review_line(np.array([0.9, 0.1]), np.array([False, True]), 0.6) == np.inf


def known_all(values: BoolArray) -> BoolArray:
    return np.ones_like(values)


def parts(scores: FloatArray, values: BoolArray, known: BoolArray) -> tuple[list[float], float]:
    """Each area's own best threshold, and the pooled one."""
    planes = [platt(scores[known[:, a], a], values[known[:, a], a]) for a in range(scores.shape[1])]
    probabilities = np.stack([expit(s * scores[:, a] + o) for a, (s, o) in enumerate(planes)], axis=1)
    own = [best_threshold(probabilities[known[:, a], a], values[known[:, a], a]) for a in range(scores.shape[1])]
    return own, best_threshold(probabilities[known], values[known])


@pytest.mark.parametrize("seed", range(3))
def test_thresholds_shrink_from_own_to_pooled(seed: int) -> None:
    scores, values = draw(noise=2.0, seed=seed)
    known = np.random.default_rng(seed).random(values.shape) < 0.8
    own, pooled = parts(scores, values, known)
    none = fit_decision(scores, values, known, Policy(smoothing=0.0))
    huge = fit_decision(scores, values, known, Policy(smoothing=1e15))
    np.testing.assert_allclose(none.thresholds, own, rtol=1e-9)
    np.testing.assert_allclose(huge.thresholds, pooled, rtol=1e-9)
    positives = int((values & known)[:, 1].sum())
    half = fit_decision(scores, values, known, Policy(smoothing=positives))
    assert logit(half.thresholds[1]) == pytest.approx((logit(own[1]) + logit(pooled)) / 2)


def test_unknown_values_do_not_influence_the_decision() -> None:
    scores, values = draw(noise=2.0)
    known = np.random.default_rng(5).random(values.shape) < 0.7
    first = fit_decision(scores, values, known, Policy())
    second = fit_decision(scores, values ^ ~known, known, Policy())
    assert same(first, second)


def same(first: Decision, second: Decision) -> bool:
    arrays = ("slope", "offset", "thresholds")
    return first.review == second.review and all(
        np.array_equal(getattr(first, name), getattr(second, name)) for name in arrays
    )


def test_a_decision_is_the_same_each_time_and_leaves_its_input() -> None:
    scores, values = draw(noise=2.0)
    known = known_all(values)
    for array in (scores, values, known):
        array.flags.writeable = False
    first = fit_decision(scores, values, known, Policy())
    assert same(first, fit_decision(scores.copy(), values.copy(), known.copy(), Policy()))
    assert first.slope.shape == first.offset.shape == first.thresholds.shape == (3,)
    assert first.slope.dtype == first.thresholds.dtype == np.float64


def test_the_order_of_papers_does_not_matter() -> None:
    scores, values = draw(noise=2.0)
    order = np.random.default_rng(1).permutation(len(scores))
    first = fit_decision(scores, values, known_all(values), Policy())
    second = fit_decision(scores[order], values[order], known_all(values), Policy())
    np.testing.assert_allclose(second.thresholds, first.thresholds, rtol=1e-4)
    assert second.review == pytest.approx(first.review, rel=1e-3)


def test_the_review_line_is_on_exact_papers() -> None:
    scores, values = draw(noise=1.5, seed=2)
    decision = fit_decision(scores, values, known_all(values), Policy(right=0.9))
    probabilities = decision.probabilities(scores)
    exact = (decision.tags(probabilities) == values).all(axis=1)
    sure = decision.confidence(probabilities).min(axis=1) >= decision.review
    assert exact[sure].mean() >= 0.9
    assert sure.any()


def test_scores_without_errors_need_no_review() -> None:
    scores, values = draw(noise=0.1)
    decision = fit_decision(scores, values, known_all(values), Policy())
    probabilities = decision.probabilities(scores)
    assert (decision.tags(probabilities) == values).all()
    assert (decision.confidence(probabilities).min(axis=1) >= decision.review).all()


def test_confidence_is_0_at_the_threshold_and_1_at_certainty() -> None:
    decision = Decision(np.ones(2), np.zeros(2), np.array([0.2, 0.5]), 0.0)
    probabilities = np.array([[0.0, 0.0], [0.1, 0.25], [0.2, 0.5], [0.6, 0.75], [1.0, 1.0]])
    expected = np.repeat([[1.0], [0.5], [0.0], [0.5], [1.0]], 2, axis=1)
    np.testing.assert_allclose(decision.confidence(probabilities), expected)
    assert decision.tags(probabilities)[:, 0].tolist() == [False, False, True, True, True]


def test_probabilities_rise_with_scores() -> None:
    scores, values = draw()
    decision = fit_decision(scores, values, known_all(values), Policy())
    found = decision.probabilities(np.linspace(-5, 5, 9)[:, None] * np.ones(3))
    assert found.shape == (9, 3)
    assert (np.diff(found, axis=0) > 0).all()
    assert decision.probabilities(np.array([[-1e6] * 3, [1e6] * 3])).tolist() == [[0.0] * 3, [1.0] * 3]
    assert decision.probabilities(np.empty((0, 3))).shape == (0, 3)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_scores_must_be_finite(bad: float) -> None:
    scores, values = draw()
    scores[7, 1] = bad
    with pytest.raises(DataError, match="the classifier gave scores that are not finite"):
        fit_decision(scores, values, known_all(values), Policy())


@pytest.mark.parametrize("side", [True, False])
def test_an_area_needs_both_sides(side: bool) -> None:
    scores, values = draw()
    known = known_all(values)
    known[values[:, 1] == side, 1] = False
    with pytest.raises(DataError) as error:
        fit_decision(scores, values, known, Policy())
    assert str(error.value) == (
        "area number 2 lacks a read positive or negative to fit a threshold on; label more papers"
    )


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("method", "loo"),
        ("folds", 1),
        ("folds", 0),
        ("holdout", 0.0),
        ("holdout", 1.0),
        ("holdout", float("nan")),
        ("smoothing", -0.1),
        ("smoothing", float("nan")),
        ("smoothing", float("inf")),
        ("right", 0.0),
        ("right", 1.0),
        ("right", float("nan")),
    ],
)
def test_a_policy_out_of_range_names_its_key(key: str, value: Any) -> None:
    with pytest.raises(ConfigError) as error:
        Policy(**{key: value})
    assert str(error.value) == f"decision.{key}: {value!r} is out of range"


def test_a_policy_in_range_is_kept() -> None:
    policy = Policy("holdout", folds=2, holdout=0.5, smoothing=0, right=0.5)
    assert (policy.method, policy.folds, policy.smoothing) == ("holdout", 2, 0)
