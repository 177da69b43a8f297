"""Linear classifiers on TF-IDF of title and abstract: logistic regression, support vectors, naive Bayes."""

import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import ComplementNB
from sklearn.svm import LinearSVC

from abstag.classifiers.base import Classifier
from abstag.classifiers.scorers import LinearScorer, terms
from abstag.errors import DataError
from abstag.records import BoolArray, Documents, FloatArray, Targets
from abstag.taxonomy import Taxonomy

_CACHE_SIZE = 12


class Features(NamedTuple):
    """TF-IDF of the training papers: (n, v) matrix, v terms, (v,) idf."""

    matrix: csr_matrix
    vocabulary: list[str]
    idf: FloatArray


class Plane(NamedTuple):
    """One area's separating plane: (v,) coefficients and the intercept."""

    coef: FloatArray
    intercept: float


class Linear(Classifier, BaseEstimator):
    """Base of the linear classifiers: one plane an area, fitted on its known cells with their weights.

    Parameters
    ----------
    min_df
        A term stands in at least this many training papers.
    """

    def __init__(self, min_df: int = 2) -> None:
        self.min_df = min_df

    def _fit(self, documents: Documents, targets: Targets, taxonomy: Taxonomy) -> None:
        features = tfidf(documents.texts, min_df=self.min_df)
        planes = [self._fit_area(features.matrix, targets, area) for area in range(len(taxonomy.areas))]
        self.scorer_ = LinearScorer(
            features.vocabulary,
            features.idf,
            np.stack([plane.coef for plane in planes]),
            np.array([plane.intercept for plane in planes]),
        )

    def _fit_area(self, matrix: csr_matrix, targets: Targets, area: int) -> Plane:
        rows = np.flatnonzero(targets.known[:, area] & (targets.weight[:, area] > 0))
        return self._fit_plane(matrix[rows], targets.values[rows, area], targets.weight[rows, area])

    def _fit_plane(self, matrix: csr_matrix, values: BoolArray, weight: FloatArray) -> Plane:
        raise NotImplementedError


class LogReg(Linear):
    """Logistic regression, L2.

    Parameters
    ----------
    C
        Inverse strength of the penalty, > 0.
    balanced
        Weigh positives and negatives of an area equally in total.
    min_df
        A term stands in at least this many training papers.
    """

    def __init__(self, C: float = 30.0, balanced: bool = True, min_df: int = 2) -> None:  # noqa: FBT001, FBT002, N803
        super().__init__(min_df)
        self.C, self.balanced = C, balanced

    def _fit_plane(self, matrix: csr_matrix, values: BoolArray, weight: FloatArray) -> Plane:
        model = LogisticRegression(
            C=self.C, class_weight="balanced" if self.balanced else None, solver="liblinear", random_state=0
        )
        model.fit(matrix, values, sample_weight=weight)
        return Plane(model.coef_[0], float(model.intercept_[0]))


class SVM(Linear):
    """Linear support vector machine, squared hinge loss, L2; parameters as for `LogReg`."""

    def __init__(self, C: float = 3.0, balanced: bool = True, min_df: int = 2) -> None:  # noqa: FBT001, FBT002, N803
        super().__init__(min_df)
        self.C, self.balanced = C, balanced

    def _fit_plane(self, matrix: csr_matrix, values: BoolArray, weight: FloatArray) -> Plane:
        model = LinearSVC(C=self.C, class_weight="balanced" if self.balanced else None, random_state=0)
        model.fit(matrix, values, sample_weight=weight)
        return Plane(model.coef_[0], float(model.intercept_[0]))


class NaiveBayes(Linear):
    """Complement naive Bayes (Rennie et al. 2003), one area against the rest.

    Parameters
    ----------
    alpha
        Additive smoothing, > 0.
    norm
        Normalise the weights, as in the paper's last step.
    min_df
        A term stands in at least this many training papers.
    """

    def __init__(self, alpha: float = 0.05, norm: bool = False, min_df: int = 2) -> None:  # noqa: FBT001, FBT002
        super().__init__(min_df)
        self.alpha, self.norm = alpha, norm

    def _fit_plane(self, matrix: csr_matrix, values: BoolArray, weight: FloatArray) -> Plane:
        model = ComplementNB(alpha=self.alpha, norm=self.norm).fit(matrix, values, sample_weight=weight)
        weights = model.feature_log_prob_
        return Plane(weights[1] - weights[0], 0.0)


_cache: OrderedDict[tuple[Any, ...], Features] = OrderedDict()


def tfidf(texts: Sequence[str], *, min_df: int) -> Features:
    """Fit TF-IDF on words and word pairs; the last few fits are kept, since classifiers of one sweep share folds.

    Raises
    ------
    DataError
        When no term stands in ``min_df`` papers.
    """
    key = (_digest(texts), min_df)
    if key not in _cache:
        _cache[key] = _fit_tfidf(texts, min_df)
        while len(_cache) > _CACHE_SIZE:
            _cache.popitem(last=False)
    _cache.move_to_end(key)
    return _cache[key]


def _fit_tfidf(texts: Sequence[str], min_df: int) -> Features:
    vectorizer = TfidfVectorizer(analyzer=terms, min_df=min_df, sublinear_tf=True)
    try:
        matrix = vectorizer.fit_transform(texts)
    except ValueError as error:
        raise DataError(f"no term stands in {min_df} of {len(texts)} training papers: {error}") from error
    return Features(matrix, list(vectorizer.get_feature_names_out()), vectorizer.idf_)


def _digest(texts: Sequence[str]) -> str:
    digest = hashlib.sha256()
    for text in texts:
        digest.update(text.encode("utf-8", "surrogatepass"))
        digest.update(b"\0")
    return digest.hexdigest()
