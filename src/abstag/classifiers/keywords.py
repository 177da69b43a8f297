"""The control that only spots words."""

from sklearn.base import BaseEstimator

from abstag.classifiers.base import Classifier
from abstag.classifiers.scorers import KeywordScorer
from abstag.errors import ConfigError
from abstag.records import Documents, Targets
from abstag.taxonomy import Taxonomy


class Keywords(Classifier, BaseEstimator):
    """Counts the taxonomy's keyword phrases; how many make a tag is left to the decision, as for every classifier.

    Parameters
    ----------
    title_weight
        What a phrase in the title counts, against 1 in the abstract.
    """

    needs_labels = False

    def __init__(self, title_weight: float = 3.0) -> None:
        self.title_weight = title_weight

    def _fit(self, documents: Documents, targets: Targets, taxonomy: Taxonomy) -> None:  # noqa: ARG002
        empty = [area.id for area in taxonomy.areas if not area.keywords]
        if empty:
            raise ConfigError(
                f"area {empty[0]!r} has no keywords", where=f"taxonomy {taxonomy.name}", remedy="add some"
            )
        self.scorer_ = KeywordScorer([area.keywords for area in taxonomy.areas], title_weight=self.title_weight)
