"""One record → its scores → its output line."""

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, NamedTuple, Self

import numpy as np

from abstag.bundle import Bundle
from abstag.decision import review_line
from abstag.errors import ConfigError
from abstag.ingest import CleanRecord, UniqueIds, cleaned
from abstag.languages import LANGUAGES
from abstag.prevalence import adjusted, estimate
from abstag.records import BoolArray, Documents, FloatArray, IntArray, Record, Reject, title_key

_DIGITS = 9  # fewer than two ways to the same score may differ in
DECISIONS = ("tag", "none", "review", "reject")


@dataclass(frozen=True, slots=True)
class Choice:
    """What is told of the scores.

    Attributes
    ----------
    areas
        Areas to tell of; empty: all.
    min_precision
        Expected share of right tags, in (0, 1), that the tags of each area must reach; None: tags as the thresholds
        give them. Tags that would bring an area below it are left to review.
    adjust
        Adjust probabilities to the areas' prevalence in the dumps, and leave to review what keeps the others from being
        right as often as asked; else both are as the training papers had it.
    explain
        Tell of each area which terms moved its score most.
    """

    areas: Sequence[str] = ()
    min_precision: float | None = None
    adjust: bool = True
    explain: bool = False

    def __post_init__(self) -> None:
        if self.min_precision is not None and not 0 < self.min_precision < 1:
            raise ConfigError(f"{self.min_precision} is out of range", where="min_precision", remedy="between 0 and 1")

    @property
    def looks_ahead(self) -> bool:
        """Whether the first line depends on all records."""
        return self.adjust or self.min_precision is not None


class Scored(NamedTuple):
    """A record as it was scored: a paper with (k,) calibrated probabilities, or a reject with a reason.

    ``trained_on`` says that the tagger has learnt from the paper, ``coverage`` which share of its terms it knows (None
    where it has no vocabulary), ``terms`` which moved the scores most, ``language`` the code of another than English.
    """

    id: str | None
    file: str
    n: int
    title: str | None
    probabilities: list[float] | None = None
    trained_on: bool = False
    coverage: float | None = None
    terms: list[list[tuple[str, float]]] | None = None
    reason: str | None = None
    language: str | None = None


def score(items: Sequence[Record | Reject], bundle: Bundle, *, explain: bool = False) -> list[Scored]:
    """Clean and score records, in their order; those of too little text become rejects, and ids may repeat."""
    found = [cleaned(item) if isinstance(item, Record) else item for item in items]
    papers = [item for item in found if isinstance(item, CleanRecord)]
    documents = Documents(*([getattr(paper, name) for paper in papers] for name in ("id", "title", "abstract")))
    terms = bundle.scorer.explain(documents) if explain else [None] * len(papers)
    known = [None if np.isnan(share) else share for share in bundle.scorer.coverage(documents).tolist()]
    columns = np.round(bundle.probabilities(documents), _DIGITS).tolist(), known, terms
    scored = zip(papers, *columns, strict=True)
    return [_rejected(item) if isinstance(item, Reject) else _scored(*next(scored), bundle) for item in found]


def _rejected(item: Reject) -> Scored:
    reason = f"{item.reason}: {item.detail}" if item.detail else item.reason
    return Scored(item.id, item.file, item.n, item.title, reason=reason)


def _scored(
    paper: CleanRecord, probabilities: list[float], coverage: float | None, terms: Any, bundle: Bundle
) -> Scored:
    raw = paper.raw
    trained_on = bundle.trained_on(paper.id, title_key(raw.title))
    scored = Scored(paper.id, raw.file, raw.n, paper.title or None, probabilities, trained_on, coverage, terms)
    return scored._replace(language=paper.language)


class Decided(NamedTuple):
    """A batch of scored records as it is told: its output lines, and what `drift.Dump` counts of its m papers.

    ``probabilities`` (adjusted) and ``tags`` are (m, k), ``confidence``, that of a paper's least sure area, and
    ``coverage``, NaN where there is none, (m,).
    """

    lines: list[dict[str, Any]]
    trained_on: int
    probabilities: FloatArray
    tags: BoolArray
    confidence: FloatArray
    coverage: FloatArray


@dataclass(frozen=True, slots=True)
class Rule:
    """How scored records become output lines; the same in every process.

    Attributes
    ----------
    found
        (k,) prevalence of each area in the dumps, to which probabilities are adjusted; None: they are left as they are.
    line
        Papers whose tags are all right with a lower probability are for review; None: those below the tagger's own
        line, which is one of confidence.
    least
        (k,) lowest probability of a tag that needs no review.
    """

    choice: Choice
    found: FloatArray | None = None
    line: float | None = None
    least: FloatArray | None = None

    @classmethod
    def fitted(cls, batches: Iterable[Sequence[Scored]], bundle: Bundle, choice: Choice) -> Self:
        """Return the rule as all records of the dumps ask for.

        The line is the lowest above which all tags of a paper are expected to be right in the share of papers that the
        tagger's own line was fitted to; that share where no paper is so sure.
        """
        values = array("d", chain.from_iterable(item.probabilities or () for batch in batches for item in batch))
        scores = np.frombuffer(values, dtype=np.float64).reshape(-1, len(bundle.taxonomy.ids))
        reference, decision, rule = bundle.reference, bundle.decision, cls(choice)
        if choice.adjust and reference:
            rule = replace(rule, found=estimate(scores, reference.prevalence))
        probabilities = rule.adjusted(scores, bundle)
        if choice.adjust:
            told = bundle.taxonomy.encode(choice.areas or bundle.taxonomy.ids)
            right = _right(probabilities, decision.tags(probabilities), told).rest[:, 0]
            rule = replace(rule, line=min(review_line(right, right, decision.right), decision.right))
        if choice.min_precision is None:
            return rule
        return replace(rule, least=_least_probabilities(probabilities, decision.thresholds, choice.min_precision))

    def prevalence(self, bundle: Bundle) -> dict[str, dict[str, float]]:
        """Of each area its prevalence in training and in the dumps; empty when probabilities are left as they are."""
        if self.found is None or bundle.reference is None:
            return {}
        shares = zip(bundle.taxonomy.ids, bundle.reference.prevalence.tolist(), self.found.tolist(), strict=True)
        return {area: {"trained": before, "found": found} for area, before, found in shares}

    def adjusted(self, probabilities: FloatArray, bundle: Bundle) -> FloatArray:
        """Return (m, k) probabilities adjusted to the prevalences of the dumps."""
        if self.found is None or bundle.reference is None:
            return probabilities
        return adjusted(probabilities, bundle.reference.prevalence, self.found)

    def decide(self, batch: Sequence[Scored], bundle: Bundle) -> Decided:
        """Return the output lines of records that have an id of their own, in their order."""
        decision, taxonomy = bundle.decision, bundle.taxonomy
        told = taxonomy.encode(self.choice.areas or taxonomy.ids)
        papers = [item for item in batch if item.probabilities]
        scores = np.array([item.probabilities for item in papers], dtype=np.float64).reshape(-1, len(told))
        coverage = np.array([item.coverage for item in papers], dtype=np.float64)
        probabilities = self.adjusted(scores, bundle)
        all_tags, confidence = decision.tags(probabilities), decision.confidence(probabilities)
        tags, doubtful = all_tags & told, confidence < decision.review
        if self.line is not None:
            doubtful = _right(probabilities, all_tags, told).doubtful(self.line)
        doubtful &= told
        if self.least is not None:
            doubtful |= tags & (probabilities < self.least)
        far = bundle.reference.far_off(coverage) if bundle.reference else np.zeros(len(papers), dtype=np.bool_)
        foreign = np.array([item.language is not None for item in papers], dtype=np.bool_)
        doubtful |= tags & (far | foreign)[:, None]
        areas = [(place, taxonomy.ids[place]) for place in np.flatnonzero(told).tolist()]
        rows = zip(probabilities.tolist(), tags.tolist(), doubtful.tolist(), far.tolist(), strict=True)
        lines = [_paper(item, areas, *next(rows)) if item.probabilities else _line(item) for item in batch]
        trained_on = sum(item.trained_on for item in batch)
        return Decided(lines, trained_on, probabilities, all_tags, confidence.min(axis=1), coverage)


def named(batch: Iterable[Scored], unique: UniqueIds) -> list[Scored]:
    """Return the records with an id of their own for each paper."""
    return [item._replace(id=unique(str(item.id))) if item.probabilities else item for item in batch]


class _Right(NamedTuple):
    """With which probability the tags of papers, made or not, are right.

    Attributes
    ----------
    order
        (m, k) int: areas of each paper, the least sure first.
    rest
        (m, k) float64: probability that this area and all surer ones are right.
    """

    order: IntArray
    rest: FloatArray

    def doubtful(self, line: float) -> BoolArray:
        """Return the fewest areas of each paper without which all others are right with at least this probability."""
        found = np.zeros(self.order.shape, dtype=np.bool_)
        np.put_along_axis(found, self.order, self.rest < line, axis=1)
        return found


def _right(probabilities: FloatArray, tags: BoolArray, told: BoolArray) -> _Right:
    """Return how sure (m, k) tags are, those of areas that are not told beyond doubt."""
    right = np.where(told, np.where(tags, probabilities, 1 - probabilities), 1.0)
    order = np.argsort(right, axis=1, kind="stable")
    surest_first = np.take_along_axis(right, order, axis=1)[:, ::-1]
    return _Right(order, np.cumprod(surest_first, axis=1)[:, ::-1])


def _paper(
    item: Scored,
    areas: Sequence[tuple[int, str]],
    probabilities: Sequence[float],
    tags: Sequence[bool],
    doubtful: Sequence[bool],
    far: bool,  # noqa: FBT001
) -> dict[str, Any]:
    sure = [area for place, area in areas if tags[place] and not doubtful[place]]
    uncertain, reason = [area for place, area in areas if doubtful[place]], None
    if item.language:
        reason = f"not English: {LANGUAGES[item.language]}"
    elif far:
        reason = f"unlike the training papers: {item.coverage:.0%} of its terms are known"
    elif uncertain:
        reason = f"unsure of {', '.join(uncertain)}"
    found: dict[str, Any] = {
        "areas": sure,
        "uncertain": uncertain,
        "scores": {area: round(probabilities[place], 4) for place, area in areas},
        "decision": "review" if reason else "tag" if sure else "none",
        "reason": reason,
    }
    if item.terms is not None:
        found["terms"] = {area: item.terms[place] for place, area in areas}
    return _line(item, **found)


def _line(item: Scored, **found: Any) -> dict[str, Any]:
    rejected: dict[str, Any] = {
        "areas": [],
        "uncertain": [],
        "scores": None,
        "decision": "reject",
        "reason": item.reason,
    }
    return {"id": item.id, "file": item.file, "n": item.n, "title": item.title, **rejected, **found}


def _least_probabilities(probabilities: FloatArray, thresholds: FloatArray, precision: float) -> FloatArray:
    """Return the (k,) probabilities down to which an area's tags are expected to be right in a share ≥ ``precision``.

    The expected share is the mean calibrated probability of the tags. Infinite where no tag of an area reaches it.
    """
    tagged = [own[own >= line] for own, line in zip(probabilities.T, thresholds, strict=True)]
    return np.array([_least(np.sort(own)[::-1], precision) for own in tagged])


def _least(ranked: FloatArray, precision: float) -> float:
    """Return the lowest of descending probabilities down to which their mean is at least ``precision``."""
    means = np.cumsum(ranked) / np.arange(1, len(ranked) + 1)
    means[:-1][ranked[:-1] == ranked[1:]] = 0.0  # equal ones are tagged together
    enough = np.flatnonzero(means >= precision)
    return float(ranked[enough[-1]]) if len(enough) else float("inf")
