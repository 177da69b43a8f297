"""Log odds and probabilities with numpy alone: importing scipy.special takes longer than tagging twenty papers."""

import numpy as np
from numpy.typing import ArrayLike

from abstag.records import FloatArray


def expit(scores: ArrayLike) -> FloatArray:
    """Return 1 / (1 + exp(−score)), in [0, 1], with full precision at both ends; any shape, NaN stays NaN."""
    values = np.asarray(scores, dtype=np.float64)
    small = np.exp(-np.abs(values))
    return np.asarray(np.where(values >= 0, 1.0, small) / (1.0 + small), dtype=np.float64)


def logit(probabilities: ArrayLike) -> FloatArray:
    """Return log(p / (1 − p)); −∞ and ∞ for 0 and 1, any shape."""
    values = np.asarray(probabilities, dtype=np.float64)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(values) - np.log1p(-values), dtype=np.float64)
