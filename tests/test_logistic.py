"""Log odds and probabilities are scipy's, to rounding and at both ends."""

import numpy as np
import pytest
from scipy import special

from abstag.logistic import expit, logit


def test_expit_agrees_with_scipy() -> None:
    scores = np.concatenate([np.linspace(-40, 40, 4001), [-800.0, -700.0, 700.0, 800.0, -np.inf, np.inf]])
    np.testing.assert_allclose(expit(scores), special.expit(scores), rtol=1e-14, atol=0)
    assert np.isnan(expit(np.array([np.nan]))).all()
    assert expit(np.zeros((2, 3))).shape == (2, 3)


def test_logit_agrees_with_scipy() -> None:
    probabilities = np.concatenate([[0.0, 1.0, 1e-300, 1e-9, 1 - 1e-9], np.linspace(0.001, 0.999, 999)])
    np.testing.assert_allclose(logit(probabilities), special.logit(probabilities), rtol=1e-12, atol=1e-15)
    assert expit(logit(np.array([0.3]))) == pytest.approx(0.3)
