"""From scores to probabilities, tags and abstentions: arrays in, arrays out, the same for every classifier."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from abstag.errors import ConfigError, DataError
from abstag.logistic import expit, logit
from abstag.records import BoolArray, FloatArray

RIGHT = 0.95
_MARGIN = 1e-9


@dataclass(frozen=True, slots=True)
class Policy:
    """How calibration, thresholds and the review line are fitted; one policy serves every classifier compared.

    Attributes
    ----------
    method
        "folds": on out-of-fold scores of the training papers, then fit on all of them. "holdout": on a part of the
        training papers that the classifier never sees (no refit), for classifiers that are dear to fit.
    folds
        Number of folds, ≥ 2.
    holdout
        Share of the training papers held out, in (0, 1).
    smoothing
        Pseudo-positives ≥ 0 by which an area's threshold is pulled to the one pooled over all areas: an area with
        that many positives goes half of the way.
    right
        Share of papers, in (0, 1), that must be exactly right for papers as sure as these to be tagged unreviewed.
    calibrate
        Fit probabilities to the labels (Platt 1999); else a score is taken as the logarithm of the odds as it is.
    """

    method: Literal["folds", "holdout"] = "folds"
    folds: int = 5
    holdout: float = 0.15
    smoothing: float = 30.0
    right: float = RIGHT
    calibrate: bool = True

    def __post_init__(self) -> None:
        wrong = {
            "method": self.method not in {"folds", "holdout"},
            "folds": self.folds < 2,
            "holdout": not 0 < self.holdout < 1,
            "smoothing": not 0 <= self.smoothing < np.inf,
            "right": not 0 < self.right < 1,
        }
        for key, bad in wrong.items():
            if bad:
                raise ConfigError(f"{getattr(self, key)!r} is out of range", where=f"decision.{key}")


@dataclass(frozen=True, slots=True)
class Decision:
    """A fitted decision for k areas.

    Attributes
    ----------
    slope, offset
        (k,) float64: probability = expit(slope · score + offset), slope > 0 (Platt 1999).
    thresholds
        (k,) float64 in (0, 1): an area is tagged when its probability reaches its threshold.
    review
        Papers with a confidence below this line, in [0, 1] (infinite: all papers), are for review.
    right
        Share of the papers above it, in (0, 1), that it was fitted to have exactly right (`Policy.right`).
    """

    slope: FloatArray
    offset: FloatArray
    thresholds: FloatArray
    review: float
    right: float = RIGHT

    def probabilities(self, scores: FloatArray) -> FloatArray:
        """Return (n, k) calibrated probabilities of (n, k) scores."""
        return np.asarray(expit(scores * self.slope + self.offset), dtype=np.float64)

    def tags(self, probabilities: FloatArray) -> BoolArray:
        """Return the (n, k) bool tags."""
        return np.asarray(probabilities >= self.thresholds, dtype=np.bool_)

    def confidence(self, probabilities: FloatArray) -> FloatArray:
        """Return (n, k) float64 in [0, 1]: 0 at the threshold, 1 at certainty, linear on either side."""
        above = (probabilities - self.thresholds) / (1 - self.thresholds)
        below = (self.thresholds - probabilities) / self.thresholds
        return np.where(probabilities >= self.thresholds, above, below)


def fit_decision(scores: FloatArray, values: BoolArray, known: BoolArray, policy: Policy) -> Decision:
    """Fit calibration, thresholds and the review line on scores of papers that the classifier did not see.

    Parameters
    ----------
    scores
        (n, k) float64.
    values, known
        (n, k) bool, of read labels only.

    Raises
    ------
    DataError
        When a score is not finite, or an area has no known positive or negative.
    """
    _check(scores, values, known)
    areas = range(scores.shape[1])
    slope, offset = np.ones(len(areas)), np.zeros(len(areas))
    if policy.calibrate:
        slope, offset = np.array([platt(scores[known[:, a], a], values[known[:, a], a]) for a in areas]).T
    probabilities = expit(scores * slope + offset)
    pooled = best_threshold(probabilities[known], values[known])
    thresholds = [
        _shrunk(probabilities[known[:, a], a], values[known[:, a], a], pooled, policy.smoothing) for a in areas
    ]
    decision = Decision(slope, offset, np.array(thresholds), np.inf)
    confidence = decision.confidence(probabilities).min(axis=1)
    exact = ((decision.tags(probabilities) == values) | ~known).all(axis=1)
    line = review_line(confidence, exact, policy.right)
    return Decision(slope, offset, decision.thresholds, line, policy.right)


def platt(scores: FloatArray, values: BoolArray) -> tuple[float, float]:
    """Fit P(area | score) = expit(slope · score + offset) with smoothed targets (Platt 1999).

    Parameters
    ----------
    scores
        (n,) float64.
    values
        (n,) bool with both sides present.

    Returns
    -------
    tuple
        Slope, > 0 (a score that ranks the wrong way round is flattened, not turned over), and offset.
    """
    from scipy.optimize import minimize

    positives = values.sum()
    negatives = len(values) - positives
    targets = np.where(values, (positives + 1) / (positives + 2), 1 / (negatives + 2))
    constant = float(np.ptp(scores)) == 0
    centre, spread = (float(scores[0]), 1.0) if constant else (float(scores.mean()), float(scores.std()))
    standard = (scores - centre) / spread

    def loss(plane: FloatArray) -> tuple[float, FloatArray]:
        logits = standard * plane[0] + plane[1]
        value = np.logaddexp(0, logits).sum() - targets @ logits
        residual = expit(logits) - targets
        return float(value), np.array([residual @ standard, residual.sum()])

    start = np.array([1.0, logit(targets.mean())])
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=[(1e-6, None), (None, None)])
    slope = float(found.x[0]) / spread
    return slope, float(found.x[1]) - slope * centre


def best_threshold(probabilities: FloatArray, values: BoolArray) -> float:
    """Return the threshold in (0, 1) with the highest F1, half-way to the next lower probability."""
    order = np.argsort(-probabilities, kind="stable")
    ranked = probabilities[order]
    hits = np.cumsum(values[order])
    f1 = 2 * hits / (np.arange(1, len(ranked) + 1) + values.sum())
    f1[:-1][ranked[:-1] == ranked[1:]] = -1.0
    last = int(np.argmax(f1))
    below = ranked[last + 1] if last + 1 < len(ranked) else 0.0
    middle = (ranked[last] + below) / 2
    return float(np.clip(middle if middle > below else ranked[last], _MARGIN, 1 - _MARGIN))


def review_line(confidence: FloatArray, exact: BoolArray | FloatArray, right: float) -> float:
    """Return the lowest confidence down to which a share of at least ``right`` of the papers is exactly right.

    Infinite when no number of papers, taken from the surest on, reaches the share.

    Parameters
    ----------
    confidence
        (n,) float64: that of a paper's least sure area.
    exact
        (n,) whether the paper is exactly right, or with which probability.
    """
    order = np.argsort(-confidence, kind="stable")
    ranked = confidence[order]
    share = np.cumsum(exact[order], dtype=np.float64) / np.arange(1, len(order) + 1)
    share[:-1][ranked[:-1] == ranked[1:]] = -1.0
    enough = np.flatnonzero(share >= right)
    return float(ranked[enough[-1]]) if len(enough) else float("inf")


def _shrunk(probabilities: FloatArray, values: BoolArray, pooled: float, smoothing: float) -> float:
    positives = float(values.sum())
    own = logit(best_threshold(probabilities, values))
    return float(expit((positives * own + smoothing * logit(pooled)) / (positives + smoothing)))


def _check(scores: FloatArray, values: BoolArray, known: BoolArray) -> None:
    if not np.isfinite(scores).all():
        raise DataError("the classifier gave scores that are not finite")
    for side in (values & known, ~values & known):
        if not side.any(axis=0).all():
            area = int(np.flatnonzero(~side.any(axis=0))[0])
            raise DataError(
                f"area number {area + 1} lacks a read positive or negative to fit a threshold on",
                remedy="label more papers",
            )
