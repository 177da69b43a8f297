"""Scores paper by paper → the metrics of a part, with interval, figures at 0.5, and on sure labels alone."""

from dataclasses import replace
from typing import Any

import numpy as np

from abstag import metrics, statistics
from abstag.bundle import Bundle
from abstag.corpus import Corpus
from abstag.decision import Decision
from abstag.errors import DataError
from abstag.records import BoolArray, FloatArray, IntArray
from abstag.results import ScoreTable

_DRAWS = 2000


def score_table(
    corpus: Corpus, rows: IntArray, probabilities: FloatArray, decision: Decision, *, fold: int = 0
) -> ScoreTable:
    """Return the score table of some rows of a corpus.

    Parameters
    ----------
    rows
        (n,) row numbers.
    probabilities
        (n, k) float64.
    fold
        Number of the split that scored them.
    """

    def cells(name: str) -> list[Any]:
        column = corpus.column(name)
        return [column[row] for row in rows]

    return ScoreTable(
        areas=corpus.taxonomy.ids,
        ids=cells("id"),
        groups=corpus.groups[rows],
        venues=cells("venue"),
        parts=cells("part"),
        random=np.array([bool(cell) for cell in cells("random")], dtype=np.bool_),
        sure=np.array(cells("sure"), dtype=np.bool_),
        fold=np.full(len(rows), fold, dtype=np.intp),
        gold=corpus.values[rows],
        known=corpus.known[rows],
        scores=probabilities,
        tags=decision.tags(probabilities),
        confidence=decision.confidence(probabilities).min(axis=1),
    )


def scored_rows(scores: ScoreTable, rows: BoolArray) -> metrics.Scored:
    """Return the rows of a score table in the form that metrics take."""
    return metrics.Scored(scores.gold, scores.known, scores.scores, scores.tags, scores.confidence)[rows]


def part_metrics(scores: ScoreTable, rows: BoolArray) -> dict[str, Any]:
    """Return the metrics of some rows of a score table.

    Returns
    -------
    dict
        What `metrics.evaluate` gives; ``interval``, the 95 % interval of macro-F1 (2,000 draws of duplicate groups);
        ``at_half`` and ``sure``: n, macro- and micro-F1 at threshold 0.5, and on labels marked sure.
    """
    scored = scored_rows(scores, rows)
    interval = [float("nan"), float("nan")]
    if len(scored):
        counted = metrics.counts(scored)
        draws = statistics.bootstrap([counted], scores.groups[rows], metrics.macro_f1, draws=_DRAWS, seed=0)
        interval = list(statistics.interval(draws[0]))
    return metrics.evaluate(scored, scores.areas) | {
        "interval": interval,
        "at_half": _brief(scored_rows(replace(scores, tags=scores.scores >= 0.5), rows)),
        "sure": _brief(scored_rows(scores, rows & scores.sure)),
    }


def _brief(scored: metrics.Scored) -> dict[str, Any]:
    total = metrics.counts(scored).sum(axis=0)
    return {
        "n": len(scored),
        "macro_f1": float(metrics.macro_f1(total)),
        "micro_f1": float(metrics.micro_f1(total)),
    }


def evaluate_bundle(bundle: Bundle, corpus: Corpus) -> dict[str, Any]:
    """Measure a bundle on the read and review labels of a corpus, without the papers that it was trained on.

    Returns
    -------
    dict
        ``bundle``, ``corpus``, ``scored`` and ``left_out`` (numbers of papers), ``left_out_ids``, and ``metrics`` (see
        `evaluation.part_metrics`).

    Raises
    ------
    DataError
        Other areas, or no labelled paper is left.
    """
    if bundle.taxonomy.ids != corpus.taxonomy.ids:
        raise DataError(
            f"the bundle tags {', '.join(bundle.taxonomy.ids)}, the corpus has {', '.join(corpus.taxonomy.ids)}",
            where=corpus.name,
        )
    labelled = np.flatnonzero(corpus.scorable)
    names = list(zip(corpus.column("id"), corpus.column("key"), strict=True))
    seen = np.array([bundle.trained_on(*names[row]) for row in labelled], dtype=np.bool_)
    rows = labelled[~seen]
    if not len(rows):
        raise DataError(
            f"no paper to score: {len(labelled)} are labelled, {int(seen.sum())} of them trained the bundle",
            where=corpus.name,
        )
    probabilities = bundle.probabilities(corpus.documents[rows])
    scores = score_table(corpus, rows, probabilities, bundle.decision)
    return {
        "bundle": bundle.name,
        "corpus": {"name": corpus.name, "fingerprint": corpus.fingerprint},
        "scored": len(rows),
        "left_out": int(seen.sum()),
        "left_out_ids": [names[row][0] for row in labelled[seen]],
        "metrics": part_metrics(scores, np.ones(len(rows), dtype=np.bool_)),
    }
