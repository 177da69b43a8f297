"""The prevalence of a dump and the probabilities that know it: against closed forms, another optimiser, simulations."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.optimize import minimize_scalar
from scipy.special import expit, logit

from abstag.errors import DataError
from abstag.prevalence import STRENGTH, adjusted, estimate
from abstag.records import BoolArray, FloatArray

TRAINED = 0.3


def draw(n: int, prevalence: float, *, seed: int, gap: float = 3.0) -> tuple[FloatArray, BoolArray]:
    """Return (n, 1) probabilities, exactly calibrated at the training prevalence, and the truth at another one."""
    rng = np.random.default_rng(seed)
    truth = rng.random((n, 1)) < prevalence
    signal = rng.normal(size=(n, 1)) + gap * truth
    return expit(gap * signal - gap**2 / 2 + logit(TRAINED)), truth


def posterior_mode(probabilities: FloatArray, trained: float, strength: float) -> float:
    """Return the mode by another way: a scalar search on the posterior itself."""

    def loss(share: float) -> float:
        ratio = probabilities * share / trained + (1 - probabilities) * (1 - share) / (1 - trained)
        prior = strength * (trained * np.log(share) + (1 - trained) * np.log1p(-share))
        return -float(np.log(ratio).sum() + prior)

    found = minimize_scalar(loss, bounds=(1e-9, 1 - 1e-9), method="bounded", options={"xatol": 1e-9})
    return float(found.x)


def f1(tags: BoolArray, truth: BoolArray) -> float:
    return float(2 * (tags & truth).sum() / (tags.sum() + truth.sum()))


@pytest.mark.parametrize("strength", [1.0, 30.0, STRENGTH])
@pytest.mark.parametrize("prevalence", [0.02, 0.3, 0.8])
def test_the_estimate_is_the_mode_of_the_posterior(strength: float, prevalence: float) -> None:
    probabilities, _ = draw(400, prevalence, seed=1, gap=2.0)
    found = estimate(probabilities, np.array([TRAINED]), strength=strength)
    assert found[0] == pytest.approx(posterior_mode(probabilities, TRAINED, strength), abs=2e-5)


def test_areas_do_not_touch_each_other() -> None:
    columns = [draw(200, share, seed=seed)[0] for seed, share in enumerate((0.05, 0.5, 0.9))]
    together = estimate(np.hstack(columns), np.full(3, TRAINED))
    for number, column in enumerate(columns):
        np.testing.assert_allclose(together[number], estimate(column, np.array([TRAINED]))[0], atol=1e-5)


def test_certain_papers_are_counted_beside_those_of_the_prior() -> None:
    trained = np.array([0.25])
    for n, positives in ((1, 0), (1, 1), (50, 50), (300, 0), (300, 90)):
        certain = (np.arange(n) < positives).astype(np.float64)[:, None]
        expected = (positives + STRENGTH * 0.25) / (n + STRENGTH)
        assert estimate(certain, trained)[0] == pytest.approx(expected, abs=1e-6)


def test_without_papers_and_without_information_nothing_moves() -> None:
    trained = np.array([0.1, 0.4])
    np.testing.assert_array_equal(estimate(np.zeros((0, 2)), trained), trained)
    np.testing.assert_allclose(estimate(np.tile(trained, (500, 1)), trained), trained, atol=1e-12)
    probabilities = np.random.default_rng(0).random((20, 2))
    np.testing.assert_allclose(adjusted(probabilities, trained, trained), probabilities, atol=1e-12)


def test_adjusted_is_bayes_rule() -> None:
    signal, gap, share = np.linspace(-3, 6, 50)[:, None], 2.0, 0.05
    at = [expit(gap * signal - gap**2 / 2 + logit(prior)) for prior in (TRAINED, share)]
    np.testing.assert_allclose(adjusted(at[0], np.array([TRAINED]), np.array([share])), at[1], rtol=1e-9)


@given(
    hnp.arrays(np.float64, (12, 1), elements=st.floats(0, 1)),
    st.floats(1e-6, 1 - 1e-6),
    st.floats(1e-6, 1 - 1e-6),
)
def test_always_inside_and_in_order(probabilities: FloatArray, trained: float, found: float) -> None:
    before = np.array([trained])
    share = estimate(probabilities, before)
    assert 0 < share[0] < 1
    for target in (share, np.array([found])):
        after = adjusted(probabilities, before, target)
        assert ((after > 0) & (after < 1)).all()
        order = np.argsort(probabilities[:, 0])
        assert (np.diff(after[order, 0]) >= 0).all()


@pytest.mark.parametrize("bad", [np.nan, -0.1, 1.1])
def test_what_is_no_probability_is_refused(bad: float) -> None:
    good, share = np.array([[0.2], [0.4]]), np.array([0.3])
    with pytest.raises(DataError, match="probability is NaN or not in"):
        estimate(np.array([[0.2], [bad]]), share)
    with pytest.raises(DataError, match="prevalence is NaN or not strictly"):
        estimate(good, np.array([bad]))
    with pytest.raises(DataError, match="prevalence is NaN or not strictly"):
        adjusted(good, share, np.array([bad]))
    with pytest.raises(DataError, match="papers × areas"):
        estimate(good, np.array([0.3, 0.3]))
    with pytest.raises(DataError, match="strength"):
        estimate(good, share, strength=0.0)


def standard_error(probabilities: FloatArray, share: float) -> float:
    """Return the standard error of the likelihood's maximum, from the information in the papers."""
    inside, outside = probabilities / TRAINED, (1 - probabilities) / (1 - TRAINED)
    slope = (inside - outside) / (share * inside + (1 - share) * outside)
    return float(1 / np.sqrt((slope**2).sum()))


def test_a_fallen_prevalence_is_found_and_f1_gains() -> None:
    """0.3 in training, 0.05 in the dump: the estimate lies within its error, with the prior within what that pulls."""
    trained, threshold, n, share = np.array([TRAINED]), 0.5, 4000, 0.05
    off, gains = [], []
    for seed in range(20):
        probabilities, truth = draw(n, share, seed=seed, gap=2.5)
        error = standard_error(probabilities, share)
        plain, found = estimate(probabilities, trained, strength=1e-6), estimate(probabilities, trained)
        off.append(float(plain[0] - share) / error)
        pulled = STRENGTH * (TRAINED - share) / (share * (1 - share)) * error**2
        assert plain[0] < found[0] < share + 2.5 * error + pulled < 0.08
        after = adjusted(probabilities, trained, found)
        gains.append(f1(after >= threshold, truth) - f1(probabilities >= threshold, truth))
        assert abs(after.mean() - truth.mean()) < abs(probabilities.mean() - truth.mean())
    assert np.mean(np.abs(off) < 2) >= 0.9
    assert np.std(off) > 0.6  # the error is no larger than it has to be
    assert np.mean(np.array(gains) > 0) >= 0.85  # usually better, and where not, by little
    assert min(gains) > -0.03
    assert np.mean(gains) > 0.03


@pytest.mark.slow
def test_the_prior_keeps_small_dumps_from_harm_and_large_ones_from_little() -> None:
    """Why 100 papers: plain EM harms the log loss of small dumps as they are in training, the prior hardly."""
    trained = np.array([TRAINED])

    def harm(n: int, share: float, strength: float) -> float:
        """Return the mean change of log loss by the adjustment, over 300 dumps."""
        changes = []
        for seed in range(300):
            probabilities, truth = draw(n, share, seed=seed, gap=2.0)
            after = adjusted(probabilities, trained, estimate(probabilities, trained, strength=strength))
            right = [np.where(truth, given, 1 - given) for given in (probabilities, after)]
            changes.append(float(np.log(right[0]).mean() - np.log(right[1]).mean()))
        return float(np.mean(changes))

    for n in (10, 30):
        assert harm(n, TRAINED, 1e-6) > 0.01  # nothing has changed, and plain EM follows the noise
        assert harm(n, TRAINED, STRENGTH) < 0.001
    for n, kept in ((100, 0.5), (400, 0.75), (2000, 0.95)):
        whole = harm(n, 0.05, 1e-6)
        assert whole < -0.02
        assert harm(n, 0.05, STRENGTH) < kept * whole  # most of the gain stays
