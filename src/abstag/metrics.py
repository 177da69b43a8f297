"""A table of metric functions. Cells that are not known are left out; undefined is NaN (docs/metrics.md)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abstag.records import BoolArray, FloatArray, IntArray

Weighted = Callable[[FloatArray], FloatArray]  # takes weights (draws, n) of the papers, gives (draws,)
BINS = 10
RIGHT = 0.95


@dataclass(frozen=True, slots=True)
class Scored:
    """n papers × k areas with truth, probabilities and tags.

    Attributes
    ----------
    gold, known, tags
        (n, k) bool.
    scores
        (n, k) float64 probabilities.
    confidence
        (n,) float64: how sure the decision is of a paper's tags.
    """

    gold: BoolArray
    known: BoolArray
    scores: FloatArray
    tags: BoolArray
    confidence: FloatArray

    def __getitem__(self, rows: IntArray | BoolArray) -> "Scored":
        return Scored(self.gold[rows], self.known[rows], self.scores[rows], self.tags[rows], self.confidence[rows])

    def __len__(self) -> int:
        return len(self.gold)


def evaluate(scored: Scored, areas: Sequence[str]) -> dict[str, Any]:
    """Return all metrics.

    Parameters
    ----------
    areas
        Names of the k areas.

    Returns
    -------
    dict
        ``n`` papers, every name of `METRICS`, ``macro_f1_areas`` (how many areas the macro-F1 averages), and
        ``areas``: for each area ``n`` known cells, ``positives``, ``predicted`` and every name of `AREA_METRICS`.
    """
    numbers = range(scored.gold.shape[1])
    per_area = {area: _evaluate_area(scored, number) for area, number in zip(areas, numbers, strict=True)}
    return {
        "n": len(scored),
        **{name: metric(scored) if len(scored) else float("nan") for name, metric in METRICS.items()},
        "macro_f1_areas": sum(not np.isnan(row["f1"]) for row in per_area.values()),
        "areas": per_area,
    }


def counts(scored: Scored) -> NDArray[np.int64]:
    """Return (n, k, 3) int: true positives, false positives and false negatives of each paper and area."""
    cells = (scored.gold & scored.tags, ~scored.gold & scored.tags, scored.gold & ~scored.tags)
    return np.stack([cell & scored.known for cell in cells], axis=-1).astype(np.int64)


def f1(counted: NDArray[Any]) -> FloatArray:
    """Return F1 = 2TP / (2TP + FP + FN) over the last axis (TP, FP, FN); NaN where the denominator is 0."""
    hits = 2.0 * counted[..., 0]
    total = hits + counted[..., 1] + counted[..., 2]
    return _divide(hits, total)


def macro_f1(counted: NDArray[Any]) -> FloatArray:
    """Return the mean over areas of F1, from summed counts (..., k, 3); NaN areas are left out."""
    return mean_defined(f1(counted))


def micro_f1(counted: NDArray[Any]) -> FloatArray:
    """Return F1 of the counts added over areas, from summed counts (..., k, 3)."""
    return f1(counted.sum(axis=-2))


def mean_defined(values: FloatArray) -> FloatArray:
    """Return the mean over the last axis of what is not NaN; NaN where nothing is left."""
    defined = ~np.isnan(values)
    total, number = np.where(defined, values, 0.0).sum(axis=-1), defined.sum(axis=-1)
    return _divide(total, number)


def _divide(part: NDArray[Any], whole: NDArray[Any]) -> FloatArray:
    result: FloatArray = np.divide(part, whole, out=np.full(np.shape(whole), np.nan), where=whole > 0)
    return result


def average_precision(gold: BoolArray, scores: FloatArray) -> float:
    """Return Σ (R_i − R_{i−1}) P_i over distinct scores, as scikit-learn; NaN without a positive."""
    return _once(_average_precision, gold, scores)


def precision_recall(gold: BoolArray, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return precision and recall at each distinct score, highest first; recall is NaN without a positive."""
    hits, taken = (cumulated[0] for cumulated in _cumulated(gold, scores)(np.ones((1, len(gold)))))
    return hits / taken, _divide(hits, np.full(len(hits), gold.sum()))


def roc_auc(gold: BoolArray, scores: FloatArray) -> float:
    """Return P(positive above negative) + ½ P(tie) (Mann & Whitney 1947); NaN when a side is missing."""
    return _once(_roc_auc, gold, scores)


def _once(metric: Callable[[BoolArray, FloatArray], Weighted], gold: BoolArray, scores: FloatArray) -> float:
    return float(metric(gold, scores)(np.ones((1, len(gold))))[0]) if len(gold) else float("nan")


def _average_precision(gold: BoolArray, scores: FloatArray) -> Weighted:
    cumulated = _cumulated(gold, scores)

    def weighted(weights: FloatArray) -> FloatArray:
        hits, taken = cumulated(weights)
        precision = np.divide(hits, taken, out=np.zeros_like(hits), where=taken > 0)
        return _divide((np.diff(hits, prepend=0) * precision).sum(axis=1), hits[:, -1])

    return weighted


def _roc_auc(gold: BoolArray, scores: FloatArray) -> Weighted:
    cumulated = _cumulated(gold, scores)

    def weighted(weights: FloatArray) -> FloatArray:
        hits, taken = cumulated(weights)
        false = taken - hits
        heights = hits - np.diff(hits, prepend=0) / 2
        return _divide((heights * np.diff(false, prepend=0)).sum(axis=1), hits[:, -1] * false[:, -1])

    return weighted


def _cumulated(gold: BoolArray, scores: FloatArray) -> Callable[[FloatArray], tuple[FloatArray, FloatArray]]:
    """Return a function of weights (draws, n): weight of positives, and of all, from the highest score down."""
    order = np.argsort(-scores, kind="stable")
    ends, positive = _ends(scores[order]), gold[order]

    def cumulated(weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        ranked = weights[:, order]
        return np.cumsum(ranked * positive, axis=1)[:, ends], np.cumsum(ranked, axis=1)[:, ends]

    return cumulated


def _ends(ranked: FloatArray) -> IntArray:
    """Return the places at which runs of equal values end."""
    return np.flatnonzero(np.append(np.diff(ranked), 1.0)[: len(ranked)])


def _precision(gold: BoolArray, scores: FloatArray, tags: BoolArray) -> float:  # noqa: ARG001
    return _ratio((gold & tags).sum(), tags.sum())


def _recall(gold: BoolArray, scores: FloatArray, tags: BoolArray) -> float:  # noqa: ARG001
    return _ratio((gold & tags).sum(), gold.sum())


def _f1(gold: BoolArray, scores: FloatArray, tags: BoolArray) -> float:  # noqa: ARG001
    return _ratio(2 * (gold & tags).sum(), gold.sum() + tags.sum())


def _ratio(part: float, whole: float) -> float:
    return float(part / whole) if whole else float("nan")


def _mean(values: NDArray[Any]) -> float:
    return float(values.mean()) if values.size else float("nan")


AREA_METRICS: Mapping[str, Callable[[BoolArray, FloatArray, BoolArray], float]] = {
    "precision": _precision,
    "recall": _recall,
    "f1": _f1,
    "average_precision": lambda gold, scores, tags: average_precision(gold, scores),  # noqa: ARG005
    "roc_auc": lambda gold, scores, tags: roc_auc(gold, scores),  # noqa: ARG005
    "brier": lambda gold, scores, tags: _mean((scores - gold) ** 2),  # noqa: ARG005
}


def _evaluate_area(scored: Scored, area: int) -> dict[str, Any]:
    known = scored.known[:, area]
    gold, scores, tags = scored.gold[known, area], scored.scores[known, area], scored.tags[known, area]
    return {
        "n": int(known.sum()),
        "positives": int(gold.sum()),
        "predicted": int(tags.sum()),
        **{name: metric(gold, scores, tags) for name, metric in AREA_METRICS.items()},
    }


def _over_areas(metric: Callable[[BoolArray, FloatArray], Weighted]) -> Callable[[Scored], Weighted]:
    def of(scored: Scored) -> Weighted:
        rows = [np.flatnonzero(known) for known in scored.known.T]
        columns = [
            metric(scored.gold[own, area], scored.scores[own, area]) if len(own) else None
            for area, own in enumerate(rows)
        ]

        def weighted(weights: FloatArray) -> FloatArray:
            undefined = np.full(len(weights), np.nan)
            found = [undefined if of is None else of(weights[:, own]) for of, own in zip(columns, rows, strict=True)]
            return mean_defined(np.stack(found, axis=-1))

        return weighted

    return of


def sample_f1(scored: Scored) -> float:
    """Return the mean F1 of papers with a known cell; rightly left untagged counts as 1.

    That is scikit-learn's ``f1_score(average="samples", zero_division=1)``.
    """
    counted = counts(scored)
    per_paper = f1(counted.sum(axis=1))
    per_paper[(counted.sum(axis=(1, 2)) == 0) & scored.known.any(axis=1)] = 1.0
    return float(mean_defined(per_paper))


def exact(scored: Scored) -> BoolArray:
    """Return (n,) bool: all known cells are right."""
    return np.asarray(((scored.gold == scored.tags) | ~scored.known).all(axis=1), dtype=np.bool_)


def _ece(scored: Scored) -> Weighted:
    """Return the expected calibration error of all known cells, 10 bins of equal width (Naeini et al. 2015)."""
    bins = np.minimum((scored.scores * BINS).astype(np.intp), BINS - 1)
    excess = np.where(scored.known, scored.gold - scored.scores, 0.0)
    by_bin = np.stack([(excess * (bins == number)).sum(axis=1) for number in range(BINS)], axis=1)
    cells = scored.known.sum(axis=1)
    return lambda weights: _divide(np.abs(weights @ by_bin).sum(axis=1), weights @ cells)


class Reliability(NamedTuple):
    """Known cells by probability, in `BINS` bins of equal width: how many, how many hold, how many should hold."""

    cells: FloatArray
    positives: FloatArray
    expected: FloatArray


def reliability(scored: Scored) -> Reliability:
    """Return counts of each bin (BINS,): cells, cells that hold, and the sum of their probabilities."""
    gold, scores = scored.gold[scored.known], scored.scores[scored.known]
    bins = np.minimum((scores * BINS).astype(np.intp), BINS - 1)
    cells, positives, expected = (
        np.bincount(bins, weights=weights, minlength=BINS).astype(np.float64)
        for weights in (np.ones(len(gold)), gold, scores)
    )
    return Reliability(cells, positives, expected)


def _automation_95(scored: Scored) -> Weighted:
    """Return the largest share of papers, surest first, of which 95 % are exactly right; 0 when there is none.

    Papers of equal confidence are taken together; papers without a known cell are left out.
    """
    judged = np.flatnonzero(scored.known.any(axis=1))
    order = judged[np.argsort(-scored.confidence[judged], kind="stable")]
    ends, right = _ends(scored.confidence[order]), exact(scored)[order]

    def weighted(weights: FloatArray) -> FloatArray:
        ranked = weights[:, order]
        taken, good = (np.cumsum(column, axis=1)[:, ends] for column in (ranked, ranked * right))
        most = np.where(_divide(good, taken) >= RIGHT, taken, 0.0).max(axis=1, initial=0.0)
        return _divide(most, ranked.sum(axis=1))

    return weighted


RESAMPLED: Mapping[str, Callable[[Scored], Weighted]] = {
    "macro_average_precision": _over_areas(_average_precision),
    "macro_roc_auc": _over_areas(_roc_auc),
    "ece": _ece,
    "automation_95": _automation_95,
}


def _plain(metric: Callable[[Scored], Weighted]) -> Callable[[Scored], float]:
    return lambda scored: float(metric(scored)(np.ones((1, len(scored))))[0])


METRICS: Mapping[str, Callable[[Scored], float]] = {
    "macro_f1": lambda scored: float(macro_f1(counts(scored).sum(axis=0))),
    "micro_f1": lambda scored: float(micro_f1(counts(scored).sum(axis=0))),
    "sample_f1": sample_f1,
    "subset_accuracy": lambda scored: _mean(exact(scored)[np.flatnonzero(scored.known.any(axis=1))]),
    "hamming_loss": lambda scored: _mean((scored.gold != scored.tags)[scored.known]),
    "brier": lambda scored: _mean(((scored.scores - scored.gold) ** 2)[scored.known]),
    **{name: _plain(metric) for name, metric in RESAMPLED.items()},
}
