"""How unlike its training papers a dump is: what was seen on held-out papers, what is seen now, and a sentence.

Everything of a dump is counted batch by batch, at constant memory; everything of the training papers is a small
`Reference` that a tagger can carry.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from abstag.errors import DataError
from abstag.records import BoolArray, FloatArray

Verdict = Literal["alike", "shifted", "unlike", "unknown"]
BINS = 10
FAR = 0.005  # share of held-out training papers that count as far off
_LEVELS = np.arange(1, 100) / 100
_SHIFTED, _UNLIKE, _FAR_SHARE = 0.1, 0.5, 0.2  # distances of distributions, and share of far-off papers
_CHANCE = 0.001  # a difference that chance brings more often than so is none


@dataclass(frozen=True, slots=True)
class Spread:
    """A distribution in brief.

    Attributes
    ----------
    edges
        (99,) float64: percentiles of the values, NaN when there are none.
    below
        (99,) float64: share of the values below each edge; other than the percents where values are equal.
    mean
        Their mean.
    """

    edges: FloatArray
    below: FloatArray
    mean: float


@dataclass(frozen=True, slots=True)
class Reference:
    """What a tagger looked like on training papers that it had not seen.

    Attributes
    ----------
    papers
        Their number.
    coverage
        Spread of the share of a paper's words that the vocabulary knows; NaN for a scorer without a vocabulary.
    far
        Papers with a lower coverage are far off; NaN for a scorer without a vocabulary.
    top
        Spread of a paper's highest probability.
    tagged
        Share of papers with a tag.
    tag_rates
        (k,) float64: share of papers tagged with each area.
    prevalence
        (k,) float64 in (0, 1): share of papers of each area among those on which it is known.
    precision
        Share of the tags, on known cells, that were right; NaN without a tag.
    right
        (BINS,) float64: share of papers whose known cells were all right, by the paper's confidence in bins of equal
        width; NaN for a bin without a paper.
    """

    papers: int
    coverage: Spread
    far: float
    top: Spread
    tagged: float
    tag_rates: FloatArray
    prevalence: FloatArray
    precision: float
    right: FloatArray

    def far_off(self, coverage: FloatArray) -> BoolArray:
        """Return which papers (n,) know so few words that their tags should be reviewed; NaN is not far off."""
        return np.asarray(coverage < self.far, dtype=np.bool_)

    def to_dict(self) -> dict[str, Any]:
        """Return what JSON can hold; NaN is None."""
        return {name: _plain(value) for name, value in asdict(self).items()}

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Self:
        """Rebuild from `to_dict`.

        Raises
        ------
        DataError
            A field is missing, unknown, or of another kind or length.
        """
        try:
            spreads = {name: _spread_of(value[name]) for name in ("coverage", "top")}
            arrays = {name: _array(value[name]) for name in ("tag_rates", "prevalence", "right")}
            numbers = {name: float(_array(value[name])) for name in ("far", "tagged", "precision")}
            found = cls(**{**value, **spreads, **arrays, **numbers, "papers": int(value["papers"])})
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(f"the reference statistics of the tagger are damaged: {error!r}") from error
        if found.right.shape != (BINS,) or found.tag_rates.ndim != 1 or found.prevalence.shape != found.tag_rates.shape:
            raise DataError("the reference statistics of the tagger are damaged: a field has another shape")
        return found


def fit_reference(
    probabilities: FloatArray,
    tags: BoolArray,
    confidence: FloatArray,
    coverage: FloatArray,
    values: BoolArray,
    known: BoolArray,
) -> Reference:
    """Summarise training papers that a classifier did not see, out of fold or held out.

    Parameters
    ----------
    probabilities
        (n, k) float64 calibrated, n ≥ 1.
    tags
        (n, k) bool.
    confidence
        (n,) float64 in [0, 1]: that of a paper's least sure area.
    coverage
        (n,) float64 in [0, 1], or NaN for all papers (see `Scorer.coverage`).
    values, known
        (n, k) bool, of read labels only.

    Raises
    ------
    DataError
        There is no paper, or a probability is NaN.
    """
    if not len(probabilities):
        raise DataError("no held-out paper to take reference statistics from", remedy="label more papers")
    _refuse_nan(probabilities)
    hits, exact = (tags & values & known).sum(), ((tags == values) | ~known).all(axis=1)
    judged = known.any(axis=1)
    bins = _bins(confidence[judged])
    defined = coverage[~np.isnan(coverage)]
    return Reference(
        papers=len(probabilities),
        coverage=_spread(defined),
        far=float(np.quantile(defined, FAR, method="lower")) if len(defined) else float("nan"),
        top=_spread(probabilities.max(axis=1)),
        tagged=float(tags.any(axis=1).mean()),
        tag_rates=tags.mean(axis=0),
        prevalence=((values & known).sum(axis=0) + 0.5) / (known.sum(axis=0) + 1),  # never 0 or 1
        precision=_ratio(hits, (tags & known).sum()),
        right=_divide(np.bincount(bins, weights=exact[judged], minlength=BINS), np.bincount(bins, minlength=BINS)),
    )


@dataclass(slots=True)
class Dump:
    """Counts of the papers of a dump so far, against a reference; add batches as they are scored.

    Attributes
    ----------
    papers, tagged, far
        Numbers of papers: all, those with a tag, those that are far off.
    tags
        (k,) numbers of papers tagged with each area.
    sure
        Sum of the probabilities of the cells that are tagged.
    confidence
        (BINS,) numbers of papers by confidence.
    coverage, top
        (100,) numbers of papers between the edges of the reference's spreads.
    covered
        Sum of the coverage of papers that have one.
    """

    reference: Reference
    papers: int = 0
    tagged: int = 0
    far: int = 0
    sure: float = 0.0
    covered: float = 0.0
    tags: NDArray[np.intp] = field(init=False)
    confidence: NDArray[np.intp] = field(init=False)
    coverage: NDArray[np.intp] = field(init=False)
    top: NDArray[np.intp] = field(init=False)

    def __post_init__(self) -> None:
        self.tags = np.zeros(len(self.reference.tag_rates), dtype=np.intp)
        self.confidence = np.zeros(BINS, dtype=np.intp)
        self.coverage, self.top = (np.zeros(len(_LEVELS) + 1, dtype=np.intp) for _ in range(2))

    def add(self, probabilities: FloatArray, tags: BoolArray, confidence: FloatArray, coverage: FloatArray) -> None:
        """Count a batch of papers; parameters as for `fit_reference`, n ≥ 0.

        Raises
        ------
        DataError
            A probability is NaN.
        """
        if not len(probabilities):
            return
        _refuse_nan(probabilities)
        defined = coverage[~np.isnan(coverage)]
        self.papers += len(probabilities)
        self.tagged += int(tags.any(axis=1).sum())
        self.far += int(self.reference.far_off(coverage).sum())
        self.sure += float(probabilities[tags].sum())
        self.covered += float(defined.sum())
        self.tags += tags.sum(axis=0)
        self.confidence += np.bincount(_bins(confidence), minlength=BINS)
        self.coverage += _histogram(self.reference.coverage, defined)
        self.top += _histogram(self.reference.top, probabilities.max(axis=1))


@dataclass(frozen=True, slots=True)
class Shift:
    """How a dump differs from training papers that the tagger had not seen; NaN where it cannot be told.

    Attributes
    ----------
    papers, far_off
        Numbers of papers of the dump: all, and those far off.
    verdict
        "unlike": a fifth of the papers are far off, or the distance of coverage is 0.5. "shifted": it is 0.1. Both
        beyond chance (p < 0.001), else "alike"; "unknown" without papers or without a vocabulary.
    sentence
        The same in words.
    coverage, coverage_training
        Mean share of a paper's words that the vocabulary knows.
    coverage_distance, coverage_p
        By how much the coverage has fallen: one-sided Kolmogorov-Smirnov distance of the two samples, in [0, 1], at the
        training papers' percentiles, and its p. Words better known than in training count as no distance.
    score_distance, score_p
        Two-sided distance of a paper's highest probability, and its p.
    tagged, tagged_training
        Share of papers with a tag.
    tag_rates, tag_rates_training
        (k,) float64: share of papers tagged with each area.
    expected_precision, precision_training
        Mean probability of the tags made; share of tags that were right on training papers.
    expected_right
        Share of papers expected to have all areas right: that of training papers of the same confidence.
    """

    papers: int
    far_off: int
    verdict: Verdict
    sentence: str
    coverage: float
    coverage_training: float
    coverage_distance: float
    coverage_p: float
    score_distance: float
    score_p: float
    tagged: float
    tagged_training: float
    tag_rates: FloatArray
    tag_rates_training: FloatArray
    expected_precision: float
    precision_training: float
    expected_right: float

    def to_dict(self) -> dict[str, Any]:
        """Return what JSON can hold; NaN is None."""
        return {name: _plain(value) for name, value in asdict(self).items()}


def shift(dump: Dump) -> Shift:
    """Compare a dump with its reference (docs/statistics.md)."""
    reference = dump.reference
    counted = int(dump.coverage.sum())
    coverage_distance, coverage_p = _fallen(reference.coverage, reference.papers, dump.coverage)
    score_distance, score_p = _moved(reference.top, reference.papers, dump.top)
    papers, defined = max(dump.papers, 1), ~np.isnan(reference.right)
    found = Shift(
        papers=dump.papers,
        far_off=dump.far,
        verdict="unknown",
        sentence="",
        coverage=_ratio(dump.covered, counted),
        coverage_training=reference.coverage.mean,
        coverage_distance=coverage_distance,
        coverage_p=coverage_p,
        score_distance=score_distance,
        score_p=score_p,
        tagged=_ratio(dump.tagged, dump.papers),
        tagged_training=reference.tagged,
        tag_rates=dump.tags / papers if dump.papers else np.full(len(dump.tags), np.nan),
        tag_rates_training=reference.tag_rates,
        expected_precision=_ratio(dump.sure, dump.tags.sum()),
        precision_training=reference.precision,
        expected_right=_ratio(
            (dump.confidence * np.nan_to_num(reference.right))[defined].sum(), dump.confidence[defined].sum()
        ),
    )
    found = replace(found, verdict=_verdict(found, reference))
    return replace(found, sentence=_sentence(found))


def _verdict(found: Shift, reference: Reference) -> Verdict:
    if np.isnan(found.coverage_distance):
        return "unknown"
    many = found.far_off >= _FAR_SHARE * found.papers and _more_than_chance(found, reference)
    real = found.coverage_p < _CHANCE
    if many or (real and found.coverage_distance >= _UNLIKE):
        return "unlike"
    return "shifted" if real and found.coverage_distance >= _SHIFTED else "alike"


def _more_than_chance(found: Shift, reference: Reference) -> bool:
    from scipy.special import bdtrc

    by_chance = max(FAR, 1 / (reference.papers + 1))  # of few papers, the lowest is no rarer than this
    return bool(bdtrc(found.far_off - 1, found.papers, by_chance) < _CHANCE)


def _sentence(found: Shift) -> str:
    if not found.papers:
        return "There are no papers to compare with the training papers."
    known = f"{found.coverage:.0%} of their words are known (training: {found.coverage_training:.0%})"
    start = {
        "alike": f"These papers are like the training papers: {known}",
        "shifted": f"These papers differ somewhat from the training papers: {known}; expect more errors",
        "unlike": f"These papers are unlike the training papers: {known}; trust the tags less",
        "unknown": "This tagger has no vocabulary, so it cannot tell whether these papers are like the training papers",
    }[found.verdict]
    other = found.score_p < _CHANCE and found.score_distance >= _SHIFTED
    rate = f"; {found.tagged:.0%} of them are tagged (training: {found.tagged_training:.0%})" if other else ""
    return f"{start}{rate}.".replace("%", " %")


def _fallen(spread: Spread, papers: int, counts: NDArray[np.intp]) -> tuple[float, float]:
    """Return how far a distribution lies below a spread, in [0, 1], and its one-sided p (Smirnov 1948)."""
    excess, root = _excess(spread, papers, counts)
    distance = float(np.maximum(excess, 0.0).max())
    return distance, float(np.exp(-2 * (root * distance) ** 2))


def _moved(spread: Spread, papers: int, counts: NDArray[np.intp]) -> tuple[float, float]:
    """Return the distance of a distribution from a spread, in [0, 1], and its two-sided p (Smirnov 1948)."""
    excess, root = _excess(spread, papers, counts)
    distance = float(np.abs(excess).max())
    return distance, _kolmogorov(root * distance)


def _kolmogorov(x: float) -> float:
    """Return the chance of a larger scaled distance: 2 Σ (−1)^(j − 1) exp(−2 j² x²) (Kolmogorov 1933)."""
    if x < 0.2:
        return 1.0  # to twelve digits; the series needs ever more terms here
    terms = np.arange(1, 100)
    return float(np.clip(-2 * ((-1.0) ** terms * np.exp(-2 * (terms * x) ** 2)).sum(), 0.0, 1.0))


def _excess(spread: Spread, papers: int, counts: NDArray[np.intp]) -> tuple[FloatArray, float]:
    """Return by how much more of a dump than of the training papers lies below each edge, and √(nm / (n + m)).

    Between edges the distance may be larger by a hundredth: p errs on the large side. NaN where a side is empty.
    """
    number = int(counts.sum())
    if not number:
        return np.full(len(_LEVELS), np.nan), float("nan")
    return np.cumsum(counts)[:-1] / number - spread.below, float(np.sqrt(number * papers / (number + papers)))


def _spread(values: FloatArray) -> Spread:
    if not len(values):
        nothing = np.full(len(_LEVELS), np.nan)
        return Spread(nothing, nothing, float("nan"))
    edges = np.quantile(values, _LEVELS, method="lower")
    return Spread(edges, np.searchsorted(np.sort(values), edges) / len(values), float(values.mean()))


def _histogram(spread: Spread, values: FloatArray) -> NDArray[np.intp]:
    return np.bincount(np.searchsorted(spread.edges, values, side="right"), minlength=len(_LEVELS) + 1)


def _bins(confidence: FloatArray) -> NDArray[np.intp]:
    return np.minimum((confidence * BINS).astype(np.intp), BINS - 1)


def _divide(part: NDArray[Any], whole: NDArray[Any]) -> FloatArray:
    result: FloatArray = np.divide(part, whole, out=np.full(np.shape(whole), np.nan), where=whole > 0)
    return result


def _ratio(part: float, whole: float) -> float:
    return float(part / whole) if whole else float("nan")


def _refuse_nan(probabilities: FloatArray) -> None:
    if np.isnan(probabilities).any():
        raise DataError("a probability is NaN")


def _plain(value: Any) -> Any:
    """Return a field in JSON's own types, NaN as None."""
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, np.ndarray):
        return [_plain(item) for item in value.tolist()]
    return None if isinstance(value, float) and np.isnan(value) else value


def _array(value: Any) -> FloatArray:
    return np.array(value, dtype=np.float64)


def _spread_of(value: Mapping[str, Any]) -> Spread:
    spread = Spread(_array(value["edges"]), _array(value["below"]), float(_array(value["mean"])))
    if spread.edges.shape != _LEVELS.shape or spread.below.shape != _LEVELS.shape:
        raise ValueError(f"{len(_LEVELS)} percentiles are wanted")
    return spread
