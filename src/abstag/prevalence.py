"""Areas are rarer or commoner in a dump than in the training papers: how common, and probabilities that know it."""

import numpy as np

from abstag.errors import DataError
from abstag.logistic import expit, logit
from abstag.records import FloatArray

STRENGTH = 100.0  # papers; chosen on training papers alone (docs/statistics.md)
STEPS = 1000
_TOLERANCE = 1e-6
_LOWEST, _HIGHEST = float(np.finfo(np.float64).tiny), float(np.nextafter(1.0, 0.0))


def estimate(probabilities: FloatArray, trained: FloatArray, *, strength: float = STRENGTH) -> FloatArray:
    """Estimate how common each area is in a dump, area by area, by EM (Saerens, Latinne & Decaestecker 2002).

    The mean of the probabilities, adjusted to the estimate so far, is the next estimate, from the training prevalence
    on. It takes for granted that papers of an area, and papers outside it, look as in training: only their
    shares may differ. The prior Beta(1 + strength · t, 1 + strength · (1 − t)), t being the training prevalence,
    counts as ``strength`` papers as common as in training, so that a dump of ``strength`` papers moves at most half of
    the way, one paper hardly, and no paper not at all. The posterior is concave, so that its mode is the only limit.

    Parameters
    ----------
    probabilities
        (n, k) float64 in [0, 1], calibrated at the training prevalence; n may be 0.
    trained
        (k,) float64 in (0, 1): prevalence of each area in the papers on which the calibration was fitted.
    strength
        Papers that the prior counts as, > 0.

    Returns
    -------
    FloatArray
        (k,) float64 in (0, 1), after at most `STEPS` steps, or when no area moves by 1e-6 in a step.

    Raises
    ------
    DataError
        A probability, a prevalence or the strength is out of range or NaN, or the shapes differ.
    """
    _check(probabilities, trained)
    if not 0 < strength < np.inf:
        raise DataError(f"a prior of strength {strength} is out of range")
    odds, papers = _logits(probabilities) - logit(trained), len(probabilities)
    found = trained
    for _ in range(STEPS):
        before, found = found, (expit(odds + logit(found)).sum(axis=0) + strength * trained) / (papers + strength)
        found = np.clip(found, _LOWEST, _HIGHEST)
        if np.abs(found - before).max(initial=0.0) < _TOLERANCE:
            break
    return found


def adjusted(probabilities: FloatArray, trained: FloatArray, found: FloatArray) -> FloatArray:
    """Return probabilities for papers of which areas have another prevalence (Saerens et al. 2002, eq. 2.4).

    The odds of an area are multiplied by the ratio of its odds in the dump and in training, so that papers keep their
    order within an area.

    Parameters
    ----------
    probabilities
        (n, k) float64 in [0, 1], calibrated at the training prevalence.
    trained, found
        (k,) float64 in (0, 1): prevalence in training, and among these papers.

    Returns
    -------
    FloatArray
        (n, k) float64 in (0, 1).

    Raises
    ------
    DataError
        A probability or a prevalence is out of range or NaN, or the shapes differ.
    """
    _check(probabilities, trained, found)
    return np.clip(expit(_logits(probabilities) + (logit(found) - logit(trained))), _LOWEST, _HIGHEST)


def _logits(probabilities: FloatArray) -> FloatArray:
    """Return log odds; those of 0 and 1 are finite, as if the last digit were missing."""
    return np.asarray(logit(np.clip(probabilities, _LOWEST, _HIGHEST)), dtype=np.float64)


def _check(probabilities: FloatArray, *prevalences: FloatArray) -> None:
    if probabilities.ndim != 2 or any(column.shape != probabilities.shape[1:] for column in prevalences):
        shapes = ", ".join(str(array.shape) for array in (probabilities, *prevalences))
        raise DataError(f"probabilities are papers × areas, prevalences one an area, not {shapes}")
    if not ((probabilities >= 0) & (probabilities <= 1)).all():
        raise DataError("a probability is NaN or not in [0, 1]")
    for column in prevalences:
        if not ((column > 0) & (column < 1)).all():
            raise DataError("a prevalence is NaN or not strictly between 0 and 1")
