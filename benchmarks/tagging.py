"""Linear scoring against scikit-learn's Pipeline: texts a second with equal scores, and what a second thread brings.

usage: python -P benchmarks/tagging.py [--texts N] [--rounds R] [-o FILE]
(without -P numba takes coverage.py, beside this file, for the package of that name)

Texts are drawn from a vocabulary of made-up words by Zipf's law, half of them stop words. The pipeline is fitted on
other texts of the kind, and our scorer takes its vocabulary and weights. All variants run in turn in one thread, and
seconds are those of the processor. Two threads are measured by the clock, and beside them two threads that derive keys
(PBKDF2), which need no memory and hold no lock: what these reach is what the machine has left for a second thread.
"""

import argparse
import hashlib
import importlib.metadata
import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import Pipeline

from abstag.classifiers.scorers import _STOP_WORDS, LinearScorer, terms
from abstag.environment import versions
from abstag.records import BoolArray, Documents, FloatArray

WORDS, AREAS, TRAINING, TITLE_WEIGHT = 40_000, 4, 14_000, 3
REPEATS = 10  # of the texts, so that threads have a second of work


def made_up(size: int, rng: np.random.Generator) -> tuple[Documents, BoolArray]:
    """Return papers of about 160 words, and of which areas they are: a fifth of their words is then an area's own."""
    syllables = [a + b for a in "bcdfgklmnprstvz" for b in ("a", "e", "i", "o", "u", "an", "er", "in", "os", "al")]
    named = np.random.default_rng(1)  # the vocabulary is the same for all papers
    words = np.array(["".join(named.choice(syllables, 1 + number % 4)) for number in range(WORDS)])
    common = np.array(sorted(_STOP_WORDS))
    areas = rng.random((size, AREAS)) < 0.3
    titles, abstracts = [], []
    for own in areas:
        length = int(rng.integers(110, 210))
        drawn = words[(rng.zipf(1.15, length) - 1) % WORDS]
        for area in np.flatnonzero(own):
            places = rng.random(length) < 0.2
            drawn[places] = words[(1000 * (area + 1) + rng.zipf(1.3, int(places.sum()))) % WORDS]
        places = rng.random(length) < 0.45
        drawn[places] = rng.choice(common, int(places.sum()))
        titles.append(" ".join(drawn[:9]).title())
        abstracts.append(" ".join(drawn).capitalize() + ".")
    return Documents([str(number) for number in range(size)], titles, abstracts), areas


def analyzer(paper: tuple[str, str]) -> list[str]:
    title, abstract = paper
    return terms(title) * TITLE_WEIGHT + terms(abstract)


def fitted(documents: Documents, areas: BoolArray) -> Pipeline:
    vectorizer = TfidfVectorizer(analyzer=analyzer, min_df=2, sublinear_tf=True)
    model = OneVsRestClassifier(LogisticRegression(solver="liblinear"))
    steps = Pipeline([("tfidf", vectorizer), ("model", model)])
    return steps.fit(pairs(documents), areas.astype(int))


def pairs(documents: Documents) -> list[tuple[str, str]]:
    return list(zip(documents.titles, documents.abstracts, strict=True))


def scorer(pipeline: Pipeline, *, fast: bool) -> LinearScorer:
    vectorizer, models = pipeline["tfidf"], pipeline["model"].estimators_
    coef, intercept = (np.concatenate([getattr(one, name) for one in models]) for name in ("coef_", "intercept_"))
    made = LinearScorer(list(vectorizer.get_feature_names_out()), vectorizer.idf_, coef, intercept, TITLE_WEIGHT)
    made.fast_from = 0 if fast else np.inf
    return made


def seconds(clock: Callable[[], float], job: Callable[[], Any]) -> float:
    begun = clock()
    job()
    return clock() - begun


def gain(pool: ThreadPoolExecutor, job: Callable[[], Any]) -> float:
    """Return how many times the work of one thread two do in a second."""
    alone = seconds(time.perf_counter, job)
    both = seconds(time.perf_counter, lambda: [one.result() for one in (pool.submit(job), pool.submit(job))])
    return 2 * alone / both


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("-o", "--out", type=Path)
    given = parser.parse_args()
    pipeline = fitted(*made_up(TRAINING, np.random.default_rng(2)))
    documents, _ = made_up(given.texts, np.random.default_rng(3))
    plain, fast = scorer(pipeline, fast=False), scorer(pipeline, fast=True)
    variants: dict[str, Callable[[], FloatArray]] = {
        "scikit-learn Pipeline": lambda: pipeline.predict_proba(pairs(documents)),
        "abstag": lambda: expit(plain(documents)),
        "abstag, with numba": lambda: expit(fast(documents)),
    }
    scores = {name: job() for name, job in variants.items()}  # compiles, too
    rates: dict[str, list[float]] = {name: [] for name in variants}
    gains: dict[str, list[float]] = {"abstag, with numba": [], "deriving keys": []}
    many = documents.joined(documents)[np.tile(np.arange(len(documents)), REPEATS)]
    work = int(
        40_000 * seconds(time.process_time, lambda: fast(many)) / seconds(time.process_time, lambda: keys(40_000))
    )
    with ThreadPoolExecutor(2) as pool:
        for _ in range(given.rounds):
            for name, job in variants.items():
                rates[name].append(len(documents) / seconds(time.process_time, job))
            gains["abstag, with numba"].append(gain(pool, lambda: fast(many)))
            gains["deriving keys"].append(gain(pool, lambda: keys(work)))
            for found in (rates, gains):
                print({name: f"{values[-1]:.3g}" for name, values in found.items()}, flush=True)
    base = scores["scikit-learn Pipeline"]
    result = {
        "texts": len(documents),
        "characters_per_text": float(np.mean([len(text) for text in documents.texts])),
        "terms": len(fast.vocabulary),
        "texts_per_cpu_second": rates,
        "ratio": {
            name: median(rate / other for rate, other in zip(found, rates["scikit-learn Pipeline"], strict=True))
            for name, found in rates.items()
        },
        "largest_difference_of_probabilities": {
            name: float(np.abs(found - base).max()) for name, found in scores.items()
        },
        "other_decisions": {name: int(((found > 0.5) != (base > 0.5)).sum()) for name, found in scores.items()},
        "gain_of_two_threads": gains,
        "versions": versions() | {"numba": importlib.metadata.version("numba")},
    }
    text = json.dumps(result, indent=1)
    print(text)
    if given.out:
        given.out.write_text(text + "\n", encoding="utf-8")


def keys(iterations: int) -> bytes:
    return hashlib.pbkdf2_hmac("sha256", b"", b"", iterations)


if __name__ == "__main__":
    main()
