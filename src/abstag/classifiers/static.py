"""Static embeddings: one vector a token, distilled from an encoder and fine-tuned with a linear head."""

import sys
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import PCA

from abstag.classifiers.base import Labelled
from abstag.classifiers.embeddings import Embedding, average_precision, cells
from abstag.classifiers.encoder import Encoder, encoder_config, find_encoder
from abstag.classifiers.scorers import StaticScorer, token_ids
from abstag.errors import ConfigError
from abstag.progress import progress
from abstag.records import BoolArray, Documents, FloatArray, Targets
from abstag.taxonomy import Taxonomy

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from torch import Tensor

_BATCH = 512  # tokens that are run through the encoder together, each alone in its text


class Static(Embedding):
    """Mean of static token vectors, of length 1, times a linear head.

    The vectors are what the encoder gives for each token of its vocabulary alone, by principal components (Model2Vec;
    Tulkens and van Dongen 2024); vectors and head are then fine-tuned on the labels, with Adam. The best epoch is
    chosen, by average precision, on the papers that the policy "holdout" keeps, else on a tenth of the training papers.

    Parameters
    ----------
    encoder, device
        As for `Embedding`; tagging needs neither the encoder nor PyTorch.
    dimensions
        Length of the vectors, ≥ 1, at most the encoder's.
    title_weight
        How often a token of the title counts, ≥ 0, against once in the abstract.
    learning_rate, head_learning_rate
        Of the vectors, and of the head, > 0.
    epochs
        At most so many passes over the training papers, ≥ 1.
    patience
        Stop after so many epochs without a better average precision on held-out papers, ≥ 1.
    batch_size
        Papers in a step, ≥ 1.
    dropout
        Of the mean vector before the head, in [0, 1).
    """

    dear: ClassVar[bool] = False

    def __init__(  # noqa: PLR0913
        self,
        encoder: str = "all-minilm-l6-v2",
        dimensions: int = 256,
        *,
        title_weight: int = 3,
        learning_rate: float = 0.002,
        head_learning_rate: float = 0.01,
        epochs: int = 40,
        patience: int = 4,
        batch_size: int = 32,
        dropout: float = 0.2,
        device: str = "auto",
    ) -> None:
        super().__init__(encoder, device=device)
        self.dimensions, self.title_weight, self.epochs, self.batch_size = dimensions, title_weight, epochs, batch_size
        self.learning_rate, self.head_learning_rate = learning_rate, head_learning_rate
        self.dropout, self.patience = dropout, patience

    def check(self) -> None:
        lowest = {"dimensions": 1, "title_weight": 0, "epochs": 1, "patience": 1, "batch_size": 1}
        self.check_ranges(lowest=lowest, positive=("learning_rate", "head_learning_rate"), shares=("dropout",))
        super().check()
        there = int(encoder_config(find_encoder(self.encoder)).get("hidden_size", sys.maxsize))
        if self.dimensions > there:
            what = f"the encoder's vectors have {there} dimensions, not {self.dimensions}"
            raise ConfigError(what, where="classifier.dimensions", remedy=f"1 to {there}")

    def _fit(self, documents: Documents, targets: Targets, taxonomy: Taxonomy) -> None:  # noqa: ARG002
        tokenizer, vectors = _distilled(self.encoder, self.device)
        tokenizer.no_truncation()
        held = self.aid.held_out
        if held is None:
            tenth = _tenth(targets, self.aid.seed)
            chosen, rest = np.flatnonzero(tenth), np.flatnonzero(~tenth)
            held = Labelled(documents[chosen], targets[chosen])
            documents, targets = documents[rest], targets[rest]
        sets = [
            _Set(token_ids(tokenizer, papers, self.title_weight), labels)
            for papers, labels in ((documents, targets), held)
        ]
        components: FloatArray = PCA(self.dimensions, random_state=0).fit_transform(vectors)
        table, coef, intercept = self._tuned(components, sets)
        self.scorer_ = StaticScorer(tokenizer.to_str(), table.astype(np.float16), coef, intercept, self.title_weight)

    def _tuned(self, vectors: FloatArray, sets: list["_Set"]) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the (v, d) vectors, (k, d) coefficients and (k,) intercepts of the best epoch on the second set."""
        import torch
        from torch import nn
        from torch.nn.functional import binary_cross_entropy_with_logits, dropout, normalize

        torch.manual_seed(self.aid.seed)
        order = np.random.default_rng(self.aid.seed)
        table = nn.EmbeddingBag.from_pretrained(
            torch.from_numpy(vectors).float(), freeze=False, mode="mean", sparse=True
        )
        head = nn.Linear(vectors.shape[1], sets[0].targets.values.shape[1])
        optimizers = (
            torch.optim.SparseAdam(table.parameters(), lr=self.learning_rate),
            torch.optim.Adam(head.parameters(), lr=self.head_learning_rate),
        )

        def logits(ids: list[list[int]], *, training: bool) -> "Tensor":
            starts = torch.tensor([0, *map(len, ids[:-1])]).cumsum(0)
            mean = normalize(table(torch.tensor(list(chain.from_iterable(ids)), dtype=torch.long), starts), dim=1)
            found: Tensor = head(dropout(mean, self.dropout, training))
            return found

        def state() -> tuple[FloatArray, ...]:
            return tuple(value.detach().double().numpy().copy() for value in (table.weight, head.weight, head.bias))

        best, found, waited = -1.0, state(), 0
        for _ in progress(range(self.epochs), "fine-tuning", "epochs"):
            rows = order.permutation(len(sets[0].ids))
            for begin in range(0, len(rows), self.batch_size):
                batch = rows[begin : begin + self.batch_size]
                labels, weights = (torch.from_numpy(cells[batch]) for cells in sets[0].cells)
                losses = binary_cross_entropy_with_logits(
                    logits([sets[0].ids[row] for row in batch], training=True), labels, weight=weights, reduction="sum"
                )
                for optimizer in optimizers:
                    optimizer.zero_grad()
                (losses / weights.sum().clamp(min=1e-6)).backward()  # type: ignore[no-untyped-call]
                for optimizer in optimizers:
                    optimizer.step()  # type: ignore[no-untyped-call]
            with torch.no_grad():
                reached = average_precision(logits(sets[1].ids, training=False).numpy(), *sets[1].cells)
            waited += 1
            if reached > best:
                best, found, waited = reached, state(), 0
            if waited == self.patience:
                break
        vectors, coef, intercept = found
        return vectors, coef, intercept


class _Set(NamedTuple):
    """Papers as token ids, with their targets."""

    ids: list[list[int]]
    targets: Targets

    @property
    def cells(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        return cells(self.targets)


def _tenth(targets: Targets, seed: int) -> BoolArray:
    """Return (n,) bool: a tenth of the rows of each combination of areas, at random."""
    positive = targets.values & targets.known & (targets.weight > 0)
    order = np.lexsort([np.random.default_rng(seed).random(len(positive)), *positive.T])
    chosen = np.zeros(len(order), dtype=np.bool_)
    chosen[order[5::10]] = True
    return chosen


@lru_cache(maxsize=1)
def _distilled(name: str, device: str) -> tuple["Tokenizer", FloatArray]:
    """Return an encoder's tokenizer and token vectors; kept, since the jobs of a sweep share them."""
    encoder = Encoder.load(find_encoder(name), max_tokens=8, device=device)
    return encoder.tokenizer, token_vectors(encoder)


def token_vectors(encoder: Encoder) -> FloatArray:
    """Return (v, d): the mean hidden state of each token of the vocabulary, alone between the special tokens."""
    import torch

    around = encoder.tokenizer.encode("").ids
    size = encoder.tokenizer.get_vocab_size()
    found = np.zeros((size, encoder.model.config.hidden_size))
    with torch.inference_mode():
        for begin in progress(range(0, size, _BATCH), "distilling", "batches"):
            tokens = range(begin, min(size, begin + _BATCH))
            ids = torch.tensor([[*around[:1], token, *around[1:]] for token in tokens], device=encoder.device)
            hidden = encoder.model(input_ids=ids, attention_mask=torch.ones_like(ids)).last_hidden_state
            found[begin : begin + _BATCH] = hidden.mean(1).cpu().numpy()
    return found
