"""Classifiers on frozen embeddings: logistic regression on them, and area descriptions without any label."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.metrics import average_precision_score

from abstag.classifiers.base import Aid, Classifier
from abstag.classifiers.encoder import (
    DEVICES,
    Encoder,
    EncoderScorer,
    encoder_fingerprint,
    encoder_notice,
    find_encoder,
    resolve_device,
)
from abstag.classifiers.linear import LogReg
from abstag.errors import ConfigError, DataError
from abstag.records import Documents, Targets
from abstag.taxonomy import Taxonomy


class Embedding(Classifier, BaseEstimator):
    """Base of classifiers that start from an encoder.

    Parameters
    ----------
    encoder
        Name of an installed encoder, a folder, or a hub id (see `encoder.find_encoder`).
    max_tokens
        Tokens kept of a paper, > 2.
    device
        auto, cpu, cuda or mps.
    """

    dear: ClassVar[bool] = True

    def __init__(self, encoder: str = "all-minilm-l6-v2", max_tokens: int = 256, device: str = "auto") -> None:
        self.encoder, self.max_tokens, self.device = encoder, max_tokens, device

    def check(self) -> None:
        if self.max_tokens <= 2:
            raise ConfigError(f"{self.max_tokens} is out of range", where="classifier.max_tokens", remedy="above 2")
        if self.device not in DEVICES:
            raise ConfigError(
                f"there is no device {self.device!r}", where="classifier.device", remedy=", ".join(DEVICES)
            )
        find_encoder(self.encoder)
        if self.device != "auto":
            resolve_device(self.device)

    def check_ranges(self, *, lowest: Mapping[str, int], positive: Sequence[str], shares: Sequence[str]) -> None:
        """Raise ConfigError unless parameters are finite and at least their ``lowest``, above 0, or in [0, 1)."""
        right = {name: least <= getattr(self, name) < np.inf for name, least in lowest.items()}
        right |= {name: 0 < getattr(self, name) < np.inf for name in positive}
        right |= {name: 0 <= getattr(self, name) < 1 for name in shares}
        for name, inside in right.items():
            if not inside:
                least = f"a finite number, at least {lowest[name]}" if name in lowest else "a finite number above 0"
                remedy = "in [0, 1)" if name in shares else least
                raise ConfigError(f"{getattr(self, name)} is out of range", where=f"classifier.{name}", remedy=remedy)

    def fingerprint(self) -> str:
        return encoder_fingerprint(find_encoder(self.encoder))

    def fit(self, documents: Documents, targets: Targets, *, taxonomy: Taxonomy, aid: Aid | None = None) -> Self:
        super().fit(documents, targets, taxonomy=taxonomy, aid=aid)
        self.scorer_.notice = encoder_notice(self.encoder)
        return self

    def _load(self, layers: int = 0) -> Encoder:
        folder = find_encoder(self.encoder)
        return Encoder.load(folder, max_tokens=self.max_tokens, layers=layers, device=self.device)


class EmbedLogReg(Embedding):
    """Logistic regression, L2, on sentence embeddings.

    Parameters
    ----------
    C
        Inverse strength of the penalty, > 0.
    encoder, max_tokens, device
        As for `Embedding`.
    """

    def __init__(
        self,
        encoder: str = "all-minilm-l6-v2",
        C: float = 30.0,  # noqa: N803
        max_tokens: int = 256,
        device: str = "auto",
    ) -> None:
        super().__init__(encoder, max_tokens, device)
        self.C = C

    def check(self) -> None:
        if not 0 < self.C < np.inf:
            raise ConfigError(f"{self.C} is out of range", where="classifier.C", remedy="above 0 is allowed")
        super().check()

    def _fit(self, documents: Documents, targets: Targets, taxonomy: Taxonomy) -> None:  # noqa: ARG002
        encoder = self._load()
        coef, intercept = LogReg(C=self.C).fit_planes(encoder.embed(documents), targets)
        self.scorer_ = EncoderScorer(encoder, coef, intercept)


class ZeroShot(Embedding):
    """Cosine of a paper's embedding with that of each area's name and description; learns from no label.

    Calibration and thresholds, which the decision layer fits for every classifier, still take labels.
    """

    needs_labels: ClassVar[bool] = False

    def _fit(self, documents: Documents, targets: Targets, taxonomy: Taxonomy) -> None:  # noqa: ARG002
        encoder = self._load()
        names = [area.name for area in taxonomy.areas]
        silent = [area.id for area in taxonomy.areas if not area.description]
        if silent:
            raise DataError(f"area {silent[0]!r} has no description", remedy="write one into the taxonomy")
        described = Documents(list(taxonomy.ids), names, [area.description for area in taxonomy.areas])
        self.scorer_ = EncoderScorer(encoder, encoder.embed(described), np.zeros(len(names)))


Cells = tuple[NDArray[np.float32], NDArray[np.float32]]


def cells(targets: Targets) -> Cells:
    """Return (n, k) float32 labels, and weights ≥ 0 that leave the unknown cells out."""
    labels = (targets.values & targets.known).astype(np.float32)
    return labels, np.where(targets.known, targets.weight, 0.0).astype(np.float32)


def average_precision(scores: NDArray[Any], labels: NDArray[Any], weights: NDArray[Any]) -> float:
    """Return the mean over areas of the weighted average precision; areas without a positive are left out.

    Parameters
    ----------
    scores, labels, weights
        (n, k) floats; labels are 0 or 1.
    """
    areas = np.flatnonzero((labels * weights).any(axis=0))
    found = [average_precision_score(labels[:, a], scores[:, a], sample_weight=weights[:, a]) for a in areas]
    return float(np.mean(found)) if found else 0.0
