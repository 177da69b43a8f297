"""A fine-tuned encoder: its upper layers and a linear head learn from the labels together."""

import importlib.metadata
import sys

from abstag.classifiers.base import Labelled
from abstag.classifiers.embeddings import Embedding
from abstag.classifiers.encoder import (
    Encoder,
    EncoderScorer,
    encoder_config,
    find_encoder,
    refuse_more_layers,
    resolve_device,
)
from abstag.classifiers.linear import LogReg
from abstag.errors import ConfigError
from abstag.records import Documents, Targets
from abstag.taxonomy import Taxonomy

_LOWEST = {"layers": 0, "frozen_layers": 0, "epochs": 1, "patience": 1, "batch_size": 1, "weight_decay": 0}


class FineTuned(Embedding):
    """Encoder and linear head, fine-tuned for many labels or none; the head starts as logistic regression.

    On the papers that the policy "holdout" keeps, the best epoch is chosen, by average precision; with the policy
    "folds" nothing is kept, and all epochs are trained.

    Parameters
    ----------
    encoder, max_tokens, device
        As for `Embedding`; on CUDA the training runs in bfloat16.
    layers
        Use so many of the encoder's lowest layers; 0 uses all.
    frozen_layers
        So many of the lowest layers keep their weights, and their outputs are computed once a paper. The token
        embeddings always keep theirs.
    learning_rate
        The highest, > 0; it rises from 0 over a share ``warmup`` of the steps and falls to 0, both linearly.
    epochs
        At most so many passes over the training papers, ≥ 1.
    patience
        Stop after so many epochs without a better average precision on held-out papers, ≥ 1.
    batch_size
        Papers in a step, ≥ 1, of like length.
    warmup
        In [0, 1).
    weight_decay
        Of AdamW, ≥ 0; gradients are clipped to length 1.
    dropout
        Of the embedding before the head, in [0, 1).
    balanced
        Weigh positives and negatives of an area equally in total.
    C
        Inverse strength of the L2 penalty on the head that the training starts from, > 0.
    """

    def __init__(  # noqa: PLR0913
        self,
        encoder: str = "all-minilm-l6-v2",
        max_tokens: int = 256,
        *,
        layers: int = 0,
        frozen_layers: int = 4,
        learning_rate: float = 1e-4,
        epochs: int = 3,
        patience: int = 2,
        batch_size: int = 16,
        warmup: float = 0.1,
        weight_decay: float = 0.01,
        dropout: float = 0.1,
        balanced: bool = False,
        C: float = 30.0,  # noqa: N803
        device: str = "auto",
    ) -> None:
        super().__init__(encoder, max_tokens, device)
        self.layers, self.frozen_layers, self.learning_rate, self.epochs = layers, frozen_layers, learning_rate, epochs
        self.patience, self.batch_size, self.warmup, self.weight_decay = patience, batch_size, warmup, weight_decay
        self.dropout, self.balanced, self.C = dropout, balanced, C

    def check(self) -> None:
        self.check_ranges(lowest=_LOWEST, positive=("learning_rate", "C"), shares=("warmup", "dropout"))
        super().check()
        there = int(encoder_config(find_encoder(self.encoder)).get("num_hidden_layers", sys.maxsize))
        refuse_more_layers(self.layers, there, "classifier.layers")
        if self.frozen_layers > (self.layers or there):
            what = f"{self.frozen_layers} layers cannot be frozen, {self.layers or there} are used"
            raise ConfigError(what, where="classifier.frozen_layers", remedy=f"0 to {self.layers or there}")

    def fingerprint(self) -> str:
        precision = "bfloat16" if resolve_device(self.device) == "cuda" else "float32"
        return f"{super().fingerprint()} {precision} accelerate {importlib.metadata.version('accelerate')}"

    def load(self) -> Encoder:
        """Return the encoder, as it is before the fit."""
        return self._load(self.layers)

    def _fit(self, documents: Documents, targets: Targets, taxonomy: Taxonomy) -> None:  # noqa: ARG002
        from abstag.classifiers._training import fine_tune

        encoder = self.load()
        coef, intercept = fine_tune(
            encoder,
            Labelled(documents, targets),
            lambda matrix: LogReg(C=self.C, balanced=self.balanced).fit_planes(matrix, targets),
            self,
            self.aid,
        )
        self.scorer_ = EncoderScorer(encoder, coef, intercept)
