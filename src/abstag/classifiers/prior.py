"""The control that looks at no text."""

from sklearn.base import BaseEstimator

from abstag.classifiers.base import Classifier, prevalence_logits
from abstag.classifiers.scorers import PriorScorer
from abstag.records import Documents, Targets
from abstag.taxonomy import Taxonomy


class Prior(Classifier, BaseEstimator):
    """Gives every paper each area's share among the labelled training papers."""

    def _fit(self, documents: Documents, targets: Targets, taxonomy: Taxonomy) -> None:  # noqa: ARG002
        self.scorer_ = PriorScorer(prevalence_logits(targets))
