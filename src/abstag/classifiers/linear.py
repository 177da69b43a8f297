"""Linear classifiers on TF-IDF of title and abstract: logistic regression, support vectors, naive Bayes."""

import hashlib
from collections import OrderedDict
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.feature_selection import chi2
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import ComplementNB
from sklearn.svm import LinearSVC

from abstag.classifiers.base import Classifier
from abstag.classifiers.scorers import LinearScorer, single_precision, weighted_terms
from abstag.errors import ConfigError, DataError
from abstag.records import BoolArray, Documents, FloatArray, IntArray, Targets
from abstag.taxonomy import Taxonomy

_CACHE_SIZE = 12
_MAY_BE_ZERO = frozenset({"balanced", "norm", "title_weight", "best_terms"})


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
    title_weight
        How often a term of the title counts, ≥ 0, against once in the abstract.
    min_df
        A term stands in at least this many training papers, ≥ 1.
    """

    def __init__(self, title_weight: int = 3, min_df: int = 2) -> None:
        self.title_weight, self.min_df = title_weight, min_df

    def check(self) -> None:
        numbers = {name: value for name, value in self.get_params().items() if not isinstance(value, str)}
        for name, value in numbers.items():
            lowest = "at least" if name in _MAY_BE_ZERO else "above"
            if not 0 <= value < np.inf or (value == 0 and lowest == "above"):
                raise ConfigError(
                    f"{value} is out of range", where=f"classifier.{name}", remedy=f"{lowest} 0 is allowed"
                )

    def _fit(self, documents: Documents, targets: Targets, taxonomy: Taxonomy) -> None:  # noqa: ARG002
        features = tfidf(documents, title_weight=self.title_weight, min_df=self.min_df)
        coef, intercept = self.fit_planes(features.matrix, targets)
        coef = single_precision(coef)
        self.scorer_ = LinearScorer(features.vocabulary, features.idf, coef, intercept, self.title_weight)

    def fit_planes(self, matrix: Any, targets: Targets) -> tuple[FloatArray, FloatArray]:
        """Return (k, v) coefficients and (k,) intercepts of the areas' planes on (n, v) features, sparse or dense."""
        planes = [self._fit_area(matrix, targets, area) for area in range(targets.values.shape[1])]
        return np.stack([plane.coef for plane in planes]), np.array([plane.intercept for plane in planes])

    def _fit_area(self, matrix: Any, targets: Targets, area: int) -> Plane:
        rows = np.flatnonzero(targets.known[:, area] & (targets.weight[:, area] > 0))
        return self._fit_plane(matrix[rows], targets.values[rows, area], targets.weight[rows, area])

    def _fit_plane(self, matrix: Any, values: BoolArray, weight: FloatArray) -> Plane:
        raise NotImplementedError


class LogReg(Linear):
    """Logistic regression, L2.

    Parameters
    ----------
    C
        Inverse strength of the penalty, > 0.
    balanced
        Weigh positives and negatives of an area equally in total.
    title_weight, min_df
        As for `Linear`.
    """

    def __init__(self, C: float = 30.0, balanced: bool = False, title_weight: int = 3, min_df: int = 2) -> None:  # noqa: FBT001, FBT002, N803
        super().__init__(title_weight, min_df)
        self.C, self.balanced = C, balanced

    def _fit_plane(self, matrix: Any, values: BoolArray, weight: FloatArray) -> Plane:
        class_weight = "balanced" if self.balanced else None
        model = LogisticRegression(C=self.C, class_weight=class_weight, solver="liblinear", random_state=0)
        model.fit(matrix, values, sample_weight=weight)
        return Plane(model.coef_[0], float(model.intercept_[0]))


class SVM(Linear):
    """Linear support vector machine, squared hinge loss, L2; parameters as for `LogReg`."""

    def __init__(self, C: float = 0.5, balanced: bool = False, title_weight: int = 3, min_df: int = 2) -> None:  # noqa: FBT001, FBT002, N803
        super().__init__(title_weight, min_df)
        self.C, self.balanced = C, balanced

    def _fit_plane(self, matrix: Any, values: BoolArray, weight: FloatArray) -> Plane:
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
    best_terms
        Use this many terms an area, those with the highest chi-squared; 0 uses all.
    title_weight, min_df
        As for `Linear`.
    """

    def __init__(
        self,
        alpha: float = 0.1,
        norm: bool = False,  # noqa: FBT001, FBT002
        best_terms: int = 2000,
        title_weight: int = 3,
        min_df: int = 2,
    ) -> None:
        super().__init__(title_weight, min_df)
        self.alpha, self.norm, self.best_terms = alpha, norm, best_terms

    def _fit_plane(self, matrix: Any, values: BoolArray, weight: FloatArray) -> Plane:
        columns = self._best_columns(matrix, values)
        model = ComplementNB(alpha=self.alpha, norm=self.norm).fit(
            matrix.tocsc()[:, columns], values, sample_weight=weight
        )
        coef = np.zeros(matrix.shape[1])
        coef[columns] = model.feature_log_prob_[1] - model.feature_log_prob_[0]
        return Plane(coef, 0.0)

    def _best_columns(self, matrix: csr_matrix, values: BoolArray) -> IntArray:
        if not 0 < self.best_terms < matrix.shape[1]:
            return np.arange(matrix.shape[1])
        order = np.argsort(-np.nan_to_num(chi2(matrix, values)[0]), kind="stable")
        return np.sort(order[: self.best_terms])


_cache: OrderedDict[tuple[str, int, int], Features] = OrderedDict()


def tfidf(documents: Documents, *, title_weight: int, min_df: int) -> Features:
    """Fit TF-IDF; the last few fits are kept, since the classifiers of one sweep share folds.

    Raises
    ------
    DataError
        When no term stands in ``min_df`` papers.
    """
    key = (_digest(documents), title_weight, min_df)
    if key not in _cache:
        _cache[key] = _fit_tfidf(documents, title_weight, min_df)
        while len(_cache) > _CACHE_SIZE:
            _cache.popitem(last=False)
    _cache.move_to_end(key)
    return _cache[key]


def _fit_tfidf(documents: Documents, title_weight: int, min_df: int) -> Features:
    vectorizer = TfidfVectorizer(analyzer=list, min_df=min_df, sublinear_tf=True)
    try:
        matrix = vectorizer.fit_transform(weighted_terms(documents, title_weight))
    except ValueError as error:
        raise DataError(f"no term stands in {min_df} of the {len(documents)} training papers: {error}") from error
    return Features(matrix, list(vectorizer.get_feature_names_out()), vectorizer.idf_)


def _digest(documents: Documents) -> str:
    digest = hashlib.sha256()
    for text in (*documents.titles, *documents.abstracts):
        digest.update(text.encode("utf-8", "surrogatepass") + b"\0")
    return digest.hexdigest()
