"""Classifiers that learn from, or ask, the taggers of finished runs: a student of one, the mean of several."""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from abstag.classifiers.base import Classifier
from abstag.classifiers.linear import LogReg, tfidf
from abstag.classifiers.scorers import EnsembleScorer, LinearScorer, single_precision
from abstag.errors import ConfigError
from abstag.records import Documents, FloatArray, Targets
from abstag.taxonomy import Taxonomy


class Distilled(LogReg):
    """Logistic regression on TF-IDF, taught by the probabilities of another run's tagger.

    It learns the labels where they are known, and the teacher's probability everywhere else: in the unknown cells of
    the training papers and in all papers that are neither held out nor tested (Hinton et al. 2015).

    Parameters
    ----------
    teacher
        A finished run on the same corpus, split, decision and seed: its id, or its classifier.
    share
        Weight of a cell that the teacher filled, > 0, against 1 of a read label.
    C, balanced, title_weight, min_df
        As for `LogReg`.
    """

    def __init__(
        self,
        teacher: str = "minilm",
        share: float = 1.0,
        C: float = 30.0,  # noqa: N803
        *,
        balanced: bool = False,
        title_weight: int = 3,
        min_df: int = 2,
    ) -> None:
        super().__init__(C, balanced, title_weight, min_df)
        self.teacher, self.share = teacher, share

    def check(self) -> None:
        if not self.teacher:
            raise ConfigError("is empty", where="classifier.teacher", remedy="name a run, by its id or classifier")
        super().check()

    def member_names(self) -> tuple[str, ...]:
        return (self.teacher,)

    def _fit(self, documents: Documents, targets: Targets, taxonomy: Taxonomy) -> None:  # noqa: ARG002
        (teacher,) = self.aid.members
        papers = documents.joined(self.aid.unlabelled())
        features = tfidf(papers, title_weight=self.title_weight, min_df=self.min_df)
        lessons = _lessons(targets, teacher.probabilities(papers), self.share)
        rows = np.concatenate([np.arange(len(documents)), np.arange(len(papers)), np.arange(len(papers))])
        coef, intercept = self.fit_planes(features.matrix[rows], lessons)
        coef = single_precision(coef)
        self.scorer_ = LinearScorer(features.vocabulary, features.idf, coef, intercept, self.title_weight)


def _lessons(labels: Targets, probabilities: FloatArray, share: float) -> Targets:
    """Return the labels of n papers, then all m ≥ n papers as positives of weight p, and as negatives of weight 1 − p.

    Both have weight 0 in the cells that a label fills.
    """
    filled = np.zeros(probabilities.shape, dtype=np.bool_)
    filled[: len(labels)] = labels.known & (labels.weight > 0)
    taught = np.where(filled, 0.0, share)
    everything = np.ones_like(filled)
    values = np.concatenate([labels.values, everything, ~everything])
    known = np.concatenate([labels.known, everything, everything])
    weight = np.concatenate([labels.weight, taught * probabilities, taught * (1 - probabilities)])
    return Targets(values, known, weight)


class Ensemble(Classifier, BaseEstimator):
    """The mean of the calibrated probabilities of other runs' taggers; it learns nothing itself.

    Parameters
    ----------
    runs
        Two or more finished runs on the same corpus, split, decision and seed: ids, or classifiers.
    """

    needs_labels: ClassVar[bool] = False

    def __init__(self, runs: Sequence[str] = ("logreg", "svm", "minilm")) -> None:
        self.runs = runs

    def check(self) -> None:
        if len(set(self.runs)) < max(2, len(self.runs)):
            raise ConfigError("two or more different runs are needed", where="classifier.runs")

    def member_names(self) -> tuple[str, ...]:
        return tuple(self.runs)

    def _fit(self, documents: Documents, targets: Targets, taxonomy: Taxonomy) -> None:  # noqa: ARG002
        self.scorer_ = EnsembleScorer(self.aid.members)
