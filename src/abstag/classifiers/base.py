"""The protocol of all classifiers, and of the scorers that they leave behind.

A classifier is a scikit-learn estimator: its constructor only stores its parameters, `fit` learns, and what it
learnt ends in an underscore. What a fitted tagger needs at tagging time is its *scorer*, which never imports
scikit-learn, and PyTorch only where it runs an encoder.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from abstag.errors import DataError
from abstag.logistic import expit
from abstag.records import Documents, FloatArray, Targets
from abstag.taxonomy import Taxonomy

TOP_TERMS = 6
Evidence = list[list[tuple[str, float]]]  # of each area, terms with their share of the score


class State(NamedTuple):
    """A scorer on disk, without pickle: named arrays and a list of strings (a vocabulary)."""

    arrays: dict[str, NDArray[Any]]
    strings: list[str]


class Scorer(ABC):
    """Scores papers by what a classifier has learnt.

    Attributes
    ----------
    notice
        Whose work it carries beside what the training papers taught, with the licence; kept with a bundle.
    """

    notice: str = ""
    kind: ClassVar[str]
    tolerance: ClassVar[float] = 1e-6  # how far a bundle's probabilities may be off on another machine

    @abstractmethod
    def __call__(self, documents: Documents) -> FloatArray:
        """Return (n, k) float64 scores on an unbounded scale, higher is surer."""

    def explain(self, documents: Documents, *, top: int = TOP_TERMS) -> list[Evidence]:  # noqa: ARG002
        """Return, for each paper and area, the ``top`` terms that moved the score most, with their share of it.

        Strongest first, a share below 0 speaks against the area; empty lists where a scorer knows no terms.
        """
        areas = self(documents[np.arange(min(1, len(documents)))]).shape[1]
        return [[[] for _ in range(areas)] for _ in range(len(documents))]

    def coverage(self, documents: Documents) -> FloatArray:
        """Return (n,) float64 in [0, 1]: share of a paper's words that the scorer knows; NaN without a vocabulary.

        A paper without a word has 0.
        """
        return np.full(len(documents), np.nan)

    def use_threads(self, number: int) -> bool:  # noqa: ARG002
        """Take so many threads, ≥ 1, for all that is scored from now on; returns whether the scorer has any."""
        return False

    @abstractmethod
    def state(self) -> State:
        """Return what `restore` needs."""

    @classmethod
    @abstractmethod
    def restore(cls, state: State) -> Self:
        """Rebuild the scorer from its state."""


class Member(NamedTuple):
    """A fitted tagger that another classifier learns from or asks: its scorer, and its (k,) calibration."""

    scorer: Scorer
    slope: FloatArray
    offset: FloatArray

    def probabilities(self, documents: Documents) -> FloatArray:
        """Return (n, k) float64 calibrated probabilities."""
        return np.asarray(expit(self.scorer(documents) * self.slope + self.offset), dtype=np.float64)


class Labelled(NamedTuple):
    """Papers with their targets."""

    documents: Documents
    targets: Targets


class Aid(NamedTuple):
    """What a fit may use beside its training papers.

    Attributes
    ----------
    held_out
        Papers that are not learnt from, for stopping early; thresholds are fitted on them later. None: there are none.
    unlabelled
        Papers without regard to labels, neither trained on, nor held out, nor to be scored later.
    members
        The fitted taggers of `Classifier.member_names`, in this order.
    workdir
        A folder for checkpoints, of this fit alone; what an interrupted fit left there is resumed. None: keep none.
    seed
        Of whatever is drawn at random.
    """

    held_out: Labelled | None = None
    unlabelled: Callable[[], Documents] = lambda: Documents([], [], [])
    members: Sequence[Member] = ()
    workdir: Path | None = None
    seed: int = 0


class Classifier(ABC):
    """Base of all classifiers: subclasses write ``_fit`` and leave ``scorer_``.

    A classifier without a scorer of its own overrides ``decision_function``; it runs and compares, but cannot be
    bundled for tagging.

    Attributes
    ----------
    needs_labels
        False for classifiers that learn nothing from targets (rules, scores from elsewhere).
    dear
        True for classifiers that take minutes to fit, so that a run warns before it fits many.
    aid
        What ``_fit`` may use beside papers and targets.
    """

    needs_labels: ClassVar[bool] = True
    dear: ClassVar[bool] = False
    scorer_: Scorer
    aid: Aid = Aid()

    def fit(self, documents: Documents, targets: Targets, *, taxonomy: Taxonomy, aid: Aid | None = None) -> Self:
        """Learn from papers and their targets.

        Parameters
        ----------
        documents
            n papers.
        targets
            (n, k) values, known cells and weights.
        taxonomy
            The k areas.
        aid
            What else the fit may use.

        Raises
        ------
        DataError
            When an area has no known positive, or no known negative, among the papers.
        """
        if self.needs_labels:
            check_both_sides(targets, taxonomy)
        self.aid = aid or Aid()
        self._fit(documents, targets, taxonomy)
        del self.aid  # texts and taggers of others are no part of what was learnt
        return self

    def decision_function(self, documents: Documents) -> FloatArray:
        """Return (n, k) float64 scores, higher is surer; not yet probabilities."""
        return self.scorer_(documents)

    def coverage(self, documents: Documents) -> FloatArray:
        """Return the (n,) share of words known (see `Scorer.coverage`), NaN for a classifier that has no scorer."""
        scorer = getattr(self, "scorer_", None)
        return scorer.coverage(documents) if isinstance(scorer, Scorer) else np.full(len(documents), np.nan)

    def explain(self, documents: Documents) -> list[Evidence] | None:
        """Return the terms that decided (see `Scorer.explain`), None for a classifier that has no scorer."""
        scorer = getattr(self, "scorer_", None)
        return scorer.explain(documents) if isinstance(scorer, Scorer) else None

    def check(self) -> None:
        """Raise ConfigError when a parameter is out of range; called before any data is read."""
        return

    def fingerprint(self) -> str:
        """Return what identifies input other than parameters and corpus, e.g. the hash of a file read by `fit`."""
        return ""

    def member_names(self) -> tuple[str, ...]:
        """Return the names of the runs whose taggers the fit needs: ids or classifiers."""
        return ()

    @abstractmethod
    def _fit(self, documents: Documents, targets: Targets, taxonomy: Taxonomy) -> None: ...


def check_both_sides(targets: Targets, taxonomy: Taxonomy) -> None:
    """Raise DataError when an area has no known positive or no known negative to learn from."""
    for side, cells in (("positive", targets.values), ("negative", ~targets.values)):
        usable = np.any(cells & targets.known & (targets.weight > 0), axis=0).tolist()
        missing = [area for area, some in zip(taxonomy.ids, usable, strict=True) if not some]
        if missing:
            raise DataError(
                f"area {missing[0]!r} has no {side} example among the {len(targets)} training papers",
                remedy="label some, or take the area out of the taxonomy",
            )


def prevalence_logits(targets: Targets) -> FloatArray:
    """Return (k,) log odds of each area among the known cells, weighted, with half a count added to each side."""
    weight = targets.weight * targets.known
    positive = (weight * targets.values).sum(axis=0) + 0.5
    negative = (weight * ~targets.values).sum(axis=0) + 0.5
    return np.asarray(np.log(positive) - np.log(negative), dtype=np.float64)
