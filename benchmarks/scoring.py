"""Scoring on a CPU against `pipeline("text-classification")` as documented: texts a second, and equal scores.

usage: python benchmarks/scoring.py [--papers N] [--rounds R] [-o FILE]

All variants score the same papers of the embedded corpus with an untrained head, and run in turn. The ceiling is what
the matrix products of an encoder cost at the speed that PyTorch reaches on one of its largest products.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import (
    AutoTokenizer,
    BertConfig,
    BertModel,
    BertPreTrainedModel,
    TextClassificationPipeline,
)
from transformers.modeling_outputs import SequenceClassifierOutput

from abstag.classifiers.encoder import Encoder, EncoderScorer, find_encoder
from abstag.config import embedded_corpus
from abstag.corpus import load_corpus
from abstag.environment import versions
from abstag.records import Documents, FloatArray

ENCODER, TOKENS, AREAS = "all-minilm-l6-v2", 256, 4
FAST = {"layers": 3, "tokens": 128}


class PooledClassifier(BertPreTrainedModel):
    """The model of `EncoderScorer` in the form that a pipeline takes."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__(config)
        self.bert = BertModel(config, add_pooling_layer=True)
        self.head = torch.nn.Linear(config.hidden_size, config.num_labels)
        self.post_init()

    def forward(self, input_ids: Any, attention_mask: Any, token_type_ids: Any = None, **_: Any) -> Any:
        hidden = self.bert(input_ids, attention_mask, token_type_ids).last_hidden_state
        mask = attention_mask[..., None].to(hidden.dtype)
        mean = torch.nn.functional.normalize((hidden * mask).sum(1) / mask.sum(1), dim=1)
        return SequenceClassifierOutput(logits=self.head(mean))


def pipelined(coef: FloatArray, intercept: FloatArray) -> TextClassificationPipeline:
    folder = find_encoder(ENCODER)
    model = PooledClassifier(BertConfig.from_pretrained(folder, num_labels=AREAS)).eval()
    model.bert = BertModel.from_pretrained(folder).eval()
    model.head.weight.data = torch.tensor(coef, dtype=torch.float32)
    model.head.bias.data = torch.tensor(intercept, dtype=torch.float32)
    return TextClassificationPipeline(model=model, tokenizer=AutoTokenizer.from_pretrained(folder), device=-1)


def through(pipeline: TextClassificationPipeline, documents: Documents, size: int) -> FloatArray:
    pairs = [{"text": t, "text_pair": a} for t, a in zip(documents.titles, documents.abstracts, strict=True)]
    kept = {"truncation": True, "max_length": TOKENS, "top_k": None, "function_to_apply": "none", "batch_size": size}
    found = [pipeline(pair, **kept) for pair in pairs] if size == 1 else pipeline(pairs, **kept)
    rows = [{one["label"]: one["score"] for one in row} for row in found]
    return np.array([[row[f"LABEL_{area}"] for area in range(AREAS)] for row in rows])


def matmul_flops() -> float:
    """Return the floating-point operations a second of a product of the size that a batch of 16 gives."""
    left, right = torch.randn(16 * 230, 384), torch.randn(384, 1536)
    for _ in range(3):
        left @ right
    begun = time.perf_counter()
    for _ in range(20):
        left @ right
    return 20 * 2 * left.shape[0] * 384 * 1536 / (time.perf_counter() - begun)


def flops(encoder: Encoder, documents: Documents) -> float:
    """Return the operations of the matrix products that a paper costs on average, without padding."""
    config, lengths = encoder.model.config, [len(one.ids) for one in encoder.encode(documents)]
    d, inner, layers = config.hidden_size, config.intermediate_size, config.num_hidden_layers
    return float(np.mean([layers * 2 * n * (4 * d * d + 2 * d * inner + 2 * n * d) for n in lengths]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--papers", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("-o", "--out", type=Path)
    given = parser.parse_args()
    documents = load_corpus(embedded_corpus(Path("runs"))).documents
    rows = np.random.default_rng(0).choice(len(documents), given.papers, replace=False)
    documents = documents[rows]
    rng = np.random.default_rng(0)
    whole = Encoder.load(find_encoder(ENCODER), max_tokens=TOKENS, device="cpu")
    fast = Encoder.load(find_encoder(ENCODER), max_tokens=FAST["tokens"], layers=FAST["layers"], device="cpu")
    coef, intercept = rng.normal(size=(AREAS, whole.model.config.hidden_size)), rng.normal(size=AREAS)
    pipeline = pipelined(coef, intercept)
    variants: dict[str, Callable[[], FloatArray]] = {
        "pipeline": lambda: through(pipeline, documents, 1),
        "pipeline, batch_size=16": lambda: through(pipeline, documents, 16),
        "abstag": lambda: EncoderScorer(whole, coef, intercept)(documents),
        "abstag, fast (3 layers, 128 tokens)": lambda: EncoderScorer(fast, coef, intercept)(documents),
    }
    found: dict[str, list[float]] = {name: [] for name in variants}
    scores: dict[str, FloatArray] = {}
    speeds = []
    for _ in range(given.rounds):
        speeds.append(matmul_flops())
        for name, job in variants.items():
            begun = time.perf_counter()
            scores[name] = job()
            found[name].append(len(documents) / (time.perf_counter() - begun))
            print(f"{name}: {found[name][-1]:.1f} texts/s", flush=True)
    base = found["pipeline"]
    ceiling = statistics.median(speeds) / flops(whole, documents)
    result = {
        "papers": len(documents),
        "threads": torch.get_num_threads(),
        "texts_per_second": found,
        "ratio": {
            name: statistics.median(rate / other for rate, other in zip(rates, base, strict=True))
            for name, rates in found.items()
        },
        "largest_difference_of_scores": float(np.abs(scores["abstag"] - scores["pipeline"]).max()),
        "matmul_gflops": [speed / 1e9 for speed in speeds],
        "gflop_per_paper": flops(whole, documents) / 1e9,
        "ceiling_texts_per_second": ceiling,
        "share_of_ceiling": statistics.median(found["abstag"]) / ceiling,
        "versions": versions(),
    }
    text = json.dumps(result, indent=1)
    print(text)
    if given.out:
        given.out.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
