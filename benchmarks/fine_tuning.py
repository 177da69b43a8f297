"""Fine-tuning on a CPU against the plain use of the Trainer: samples a second, step by step; and macro-F1 of both.

usage: python benchmarks/fine_tuning.py [CORPUS] [--papers N] [--rounds R] [--quality LIMIT] [-o FILE]

All variants take the same papers, batch size and length limit, and run in turn. With ``--quality`` both classifiers are
trained on LIMIT papers of the corpus's part "train" and compared on a quarter of that part; test parts are not seen.
"""

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from datasets import Dataset
from sklearn.base import BaseEstimator
from transformers import (
    AutoConfig,
    AutoModelForSequenceClassification,
    AutoTokenizer,
    DataCollatorWithPadding,
    PrinterCallback,
    Trainer,
    TrainingArguments,
)

from abstag import metrics
from abstag.classifiers.base import Classifier
from abstag.classifiers.embeddings import cells
from abstag.classifiers.encoder import find_encoder
from abstag.classifiers.finetuned import FineTuned
from abstag.config import embedded_corpus
from abstag.corpus import Corpus, load_corpus
from abstag.decision import Policy
from abstag.environment import versions
from abstag.evaluation import scored_rows
from abstag.records import Documents, FloatArray, Targets
from abstag.results import ScoreTable
from abstag.runner import Experiment, Training, score_splits
from abstag.splits import HoldOut
from abstag.statistics import bootstrap
from abstag.taxonomy import Taxonomy

BATCH, TOKENS, EPOCHS = 16, 256, 3
MARGIN = 0.02  # a difference of macro-F1 that does not matter


class PlainTrainer(Classifier, BaseEstimator):
    """AutoModelForSequenceClassification and Trainer as their documentation shows them, for many labels.

    The steps of the package are added one by one, in this order, up to ``steps``.
    """

    def __init__(self, epochs: int = EPOCHS, learning_rate: float = 5e-5, steps: int = 0, seed: int = 0) -> None:
        self.epochs, self.learning_rate, self.steps, self.seed = epochs, learning_rate, steps, seed

    def _fit(self, documents: Documents, targets: Targets, taxonomy: Taxonomy) -> None:  # noqa: ARG002
        self.trainer_ = self.trainer(documents, targets)
        self.trainer_.train()

    def trainer(self, documents: Documents, targets: Targets) -> Trainer:
        torch.manual_seed(self.seed)
        folder = find_encoder("all-minilm-l6-v2")
        off = {"attention_probs_dropout_prob": 0.0} if self.steps >= 2 else {}
        labels = {"num_labels": targets.values.shape[1], "problem_type": "multi_label_classification"}
        config = AutoConfig.from_pretrained(folder, **labels, **off)
        model = AutoModelForSequenceClassification.from_pretrained(folder, config=config)
        if self.steps >= 3:
            model.bert.embeddings.requires_grad_(requires_grad=False)
        if self.steps >= 4:
            model.bert.encoder.layer[:4].requires_grad_(requires_grad=False)
        self.tokenizer_ = AutoTokenizer.from_pretrained(folder)
        arguments = TrainingArguments(
            output_dir=str(Path(tempfile.gettempdir()) / "plain-trainer"),
            per_device_train_batch_size=BATCH,
            per_device_eval_batch_size=BATCH,
            num_train_epochs=self.epochs,
            learning_rate=self.learning_rate,
            train_sampling_strategy="group_by_length" if self.steps >= 1 else "random",
            save_strategy="no",
            logging_strategy="no",
            report_to="none",
            disable_tqdm=True,
            use_cpu=True,
            seed=self.seed,
        )
        rows = self._tokenized(documents)
        data = rows.add_column("labels", cells(targets)[0].tolist())
        collator = DataCollatorWithPadding(self.tokenizer_)
        trainer = Trainer(model=model, args=arguments, train_dataset=data, data_collator=collator)
        trainer.remove_callback(PrinterCallback)
        return trainer

    def _tokenized(self, documents: Documents) -> Dataset:
        encoded = self.tokenizer_(list(documents.titles), list(documents.abstracts), truncation=True, max_length=TOKENS)
        return Dataset.from_dict({**encoded, "length": [len(ids) for ids in encoded["input_ids"]]})

    def decision_function(self, documents: Documents) -> FloatArray:
        return np.asarray(self.trainer_.predict(self._tokenized(documents)).predictions, dtype=np.float64)


def speed(corpus: Corpus, papers: int, rounds: int) -> dict[str, Any]:
    """Return samples a second of each variant, each round, and the ratios to the first."""
    rows = np.flatnonzero(corpus.scorable)[:papers]
    documents, known = corpus.documents[rows], corpus.known[rows]
    targets = Targets(corpus.values[rows], known, known.astype(np.float64))
    names = ["plain", "like-length batches", "attention dropout off", "embeddings frozen", "four layers frozen"]
    variants: dict[str, Callable[[], tuple[int, float]]] = {
        name: plain(documents, targets, steps) for steps, name in enumerate(names)
    }
    variants["frozen layers run once (minilm)"] = ours(documents, targets, corpus.taxonomy)
    found: dict[str, list[float]] = {name: [] for name in variants}
    for _ in range(rounds):
        for name, job in variants.items():
            samples, seconds = job()
            found[name].append(samples / seconds)
            print(f"{name}: {found[name][-1]:.1f} samples/s", flush=True)
    ratios = {
        name: [rate / base for rate, base in zip(rates, found["plain"], strict=True)] for name, rates in found.items()
    }
    table = {
        name: {"samples_per_second": rates, "ratio": statistics.median(ratios[name])} for name, rates in found.items()
    }
    return {"papers": papers, "batch": BATCH, "tokens": TOKENS, "epochs": EPOCHS, "variants": table}


def plain(documents: Documents, targets: Targets, steps: int) -> Callable[[], tuple[int, float]]:
    """One epoch; loading the model is not counted."""

    def job() -> tuple[int, float]:
        trainer = PlainTrainer(epochs=1, steps=steps).trainer(documents, targets)
        begun = time.perf_counter()
        trainer.train()
        return len(documents), time.perf_counter() - begun

    return job


def ours(documents: Documents, targets: Targets, taxonomy: Taxonomy) -> Callable[[], tuple[int, float]]:
    """All of a fit of three epochs: loading, running the frozen layers, and fitting the first head are counted."""

    def job() -> tuple[int, float]:
        from abstag.classifiers._training import FrozenOutputs

        FrozenOutputs._last = None
        model = FineTuned(epochs=EPOCHS, batch_size=BATCH, max_tokens=TOKENS)
        begun = time.perf_counter()
        model.fit(documents, targets, taxonomy=taxonomy)
        return EPOCHS * len(documents), time.perf_counter() - begun

    return job


def quality(corpus: Corpus, limit: int) -> dict[str, Any]:
    """Return macro-F1 of both on a quarter of the part "train", and the one-sided bound of their paired difference."""
    hidden = sorted({part for part in corpus.column("part") if part not in {None, "train"}})
    training = Training({"read": 1.0, "review": 1.0}, without_parts=hidden, limit=limit)
    tables: dict[str, ScoreTable] = {}
    seconds: dict[str, float] = {}
    for name, classifier in (("minilm", FineTuned(epochs=EPOCHS)), ("plain", PlainTrainer())):
        experiment = Experiment(
            name="benchmark",
            label=name,
            corpus=corpus,
            splitter=HoldOut(0.25),
            classifier=classifier,
            policy=Policy("holdout"),
            training=training,
            config={},
            seed=1,  # another quarter than that on which minilm's settings were chosen
        )
        outcome = score_splits(experiment)
        tables[name], seconds[name] = outcome.scores, outcome.fitted[0].seconds
        print(f"{name}: {seconds[name]:.0f} s", flush=True)
    counted = [metrics.counts(scored_rows(table, np.ones(len(table), dtype=np.bool_))) for table in tables.values()]
    draws = bootstrap(counted, tables["minilm"].groups, metrics.macro_f1, seed=0)
    totals = [float(metrics.macro_f1(one.sum(axis=0))) for one in counted]
    bound = float(np.quantile(draws[0] - draws[1], 0.05))
    return {
        "trained_on": limit,
        "scored": len(tables["minilm"]),
        "macro_f1": dict(zip(tables, totals, strict=True)),
        "difference": totals[0] - totals[1],
        "lower_bound_95": bound,
        "not_worse_than_margin": bool(bound > -MARGIN),
        "margin": MARGIN,
        "fit_seconds": seconds,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", nargs="?", type=Path, help="a folder made by `abstag ingest`; default: the embedded")
    parser.add_argument("--papers", type=int, default=160)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quality", type=int, metavar="LIMIT")
    parser.add_argument("-o", "--out", type=Path)
    given = parser.parse_args()
    corpus = load_corpus(given.corpus or embedded_corpus(Path("runs")))
    result: dict[str, Any] = {"threads": torch.get_num_threads(), "versions": versions()}
    result["speed"] = speed(corpus, given.papers, given.rounds)
    if given.quality:
        result["quality"] = quality(corpus, given.quality)
    text = json.dumps(result, indent=1)
    print(text)
    if given.out:
        given.out.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
