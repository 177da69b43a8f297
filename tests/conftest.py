"""Fixtures that every test module may use."""

import io
import json
import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import hypothesis
import numpy as np
import pytest

from abstag.bundle import Bundle, load_bundle
from abstag.cli import main
from abstag.corpus import Corpus, load_corpus
from abstag.ingest import ingest
from abstag.resources import resource
from abstag.results import RunResult, ScoreTable
from abstag.store import Store
from abstag.taxonomy import load_taxonomy

os.environ["HF_HUB_OFFLINE"] = "1"
hypothesis.settings.register_profile("untimed", deadline=None)  # machines are shared: time is measured in benchmarks/
hypothesis.settings.load_profile("untimed")
logging.getLogger().addHandler(logging.NullHandler())  # else `main` binds logging to the captured stream of one test

SHORT = ("split.folds=2", "decision.folds=2")


class Ran(NamedTuple):
    """What a command line gave."""

    code: int
    out: str
    err: str


Go = Callable[..., Ran]


@pytest.fixture
def go(capsys: pytest.CaptureFixture[str]) -> Iterator[Go]:
    """Run the command line in this process; the logging that Hydra sets up for ``--info`` is undone."""
    root = logging.getLogger()
    kept, level = list(root.handlers), root.level

    def call(*arguments: object, code: int | None = None) -> Ran:
        capsys.readouterr()
        found = main([str(argument) for argument in arguments])
        ran = Ran(found, *capsys.readouterr())
        assert code is None or found == code, ran.err
        return ran

    yield call
    root.handlers[:] = kept
    root.setLevel(level)


@pytest.fixture(scope="session")
def dump(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The first 80 papers of the embedded corpus, as a file."""
    lines = resource("data/corpus/abstracts.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    file = tmp_path_factory.mktemp("dump") / "abstracts.jsonl"
    file.write_text("".join(lines[:80]), encoding="utf-8")
    return file


@pytest.fixture(scope="session")
def papers(dump: Path) -> list[dict[str, Any]]:
    """The first 80 papers of the embedded corpus, as they stand in the file."""
    return [json.loads(line) for line in dump.read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="session")
def embedded(dump: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of 80 papers of the embedded corpus, ingested."""
    folder = tmp_path_factory.mktemp("corpus") / "embedded"
    ingest([str(dump)], folder, taxonomy=load_taxonomy())
    return folder


@pytest.fixture(scope="session")
def corpus(embedded: Path) -> Corpus:
    """80 papers of the embedded corpus."""
    return load_corpus(embedded)


@pytest.fixture(scope="session")
def tiny_encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a random encoder of two layers that knows single letters and a few words."""
    return make_encoder(tmp_path_factory.mktemp("encoder"))


def make_encoder(folder: Path, *, tokens: int = 64, known: int | None = None) -> Path:
    """Write a random BERT of two layers; ``known`` is the vocabulary that the model claims."""
    import torch
    from tokenizers import BertWordPieceTokenizer
    from transformers import BertConfig, BertModel

    letters = [chr(number) for number in range(97, 123)]
    words = ["graph", "model", "noise", "language", "step", "sourdough", "heron", "keel", "gear", "survey"]
    vocabulary = [
        "[PAD]",
        "[UNK]",
        "[CLS]",
        "[SEP]",
        "[MASK]",
        *letters,
        *(f"##{letter}" for letter in letters),
        *words,
    ]
    tokenizer = BertWordPieceTokenizer({word: number for number, word in enumerate(vocabulary)})
    tokenizer.save(str(folder / "tokenizer.json"))
    size: Any = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    config = BertConfig(vocab_size=known or len(vocabulary), max_position_embeddings=tokens, **size)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        BertModel(config).save_pretrained(folder)
    return folder


def write_dump(path: Path, papers: Sequence[Mapping[str, Any]]) -> Path:
    """Write papers as JSON Lines."""
    path.write_text("".join(json.dumps(paper) + "\n" for paper in papers), encoding="utf-8")
    return path


def part_of(number: int) -> str:
    """Return the part of the paper with this number in the corpus with parts."""
    return "test" if number % 4 == 0 else "random" if number % 8 == 1 else "train"


@pytest.fixture(scope="session")
def parted(papers: list[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the 80 papers with venues, parts, rows marked random, and unread copies of two test papers."""
    folder = tmp_path_factory.mktemp("parted")
    venues = ("ICLR 2024 poster", "ICML", None)
    rows = [
        {key: paper[key] for key in ("id", "title", "abstract", "year")} | {"venue": venues[number % 3]}
        for number, paper in enumerate(papers)
    ]
    copies = [rows[number] | {"id": f"copy-{number}"} for number in (0, 4)]
    table = ["id,areas,part,random,sure"]
    for number, paper in enumerate(papers):
        cells = [paper["id"], ";".join(paper["areas"]), part_of(number), int(number % 16 == 0), int(paper["sure"])]
        table.append(",".join(map(str, cells)))
    labels = folder / "labels.csv"
    labels.write_text("\n".join(table) + "\n", encoding="utf-8")
    file = write_dump(folder / "papers.jsonl", [*copies, *rows])
    ingest([str(file)], folder / "parted", taxonomy=load_taxonomy(), labels=[str(labels)])
    return folder / "parted"


@pytest.fixture(scope="session")
def demo_runs(embedded: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with the demo experiment of three fast classifiers."""
    runs = tmp_path_factory.mktemp("demo") / "runs"
    arguments = [f"data.path={embedded}", f"runs_dir={runs}", "classifier=prior,keywords,nb", *SHORT]
    with redirect_stdout(io.StringIO()):
        assert main(["--quiet", "run", "+experiment=embedded", *arguments]) == 0
    return runs


@pytest.fixture(scope="session")
def bundle(demo_runs: Path) -> Bundle:
    """The naive Bayes tagger of the demo."""
    return load_bundle(Store(demo_runs).find("nb") / "bundle")


def make_scores(*, n: int = 80, areas: Sequence[str] = ("a", "b"), wrong: float = 0.1, seed: int = 0) -> ScoreTable:
    """Return scores of n papers with the same truth for every seed; a share ``wrong`` of the cells is tagged wrong."""
    truth, rng = np.random.default_rng(12), np.random.default_rng(seed)
    gold = truth.random((n, len(areas))) < 0.4
    tags = gold ^ (rng.random(gold.shape) < wrong)
    return ScoreTable(
        areas=tuple(areas),
        ids=[f"p{number:03d}" for number in range(n)],
        groups=np.arange(n, dtype=np.intp),
        venues=["ICLR" if number % 2 else None for number in range(n)],
        parts=["test" if number % 3 else None for number in range(n)],
        random=np.arange(n) % 5 == 0,
        sure=np.arange(n) % 7 != 0,
        fold=np.zeros(n, dtype=np.intp),
        gold=gold,
        known=np.ones_like(gold),
        scores=np.where(tags, 0.8, 0.2) + rng.uniform(-0.1, 0.1, gold.shape),
        tags=tags,
        confidence=rng.random(n),
    )


def make_result(run: str = "nb-1", **changes: Any) -> RunResult:
    """Return the result of a finished run."""
    brief = {"n": 80, "macro_f1": 0.5, "micro_f1": 0.5}
    numbers = dict.fromkeys(("sample_f1", "macro_average_precision", "ece", "automation_95"), 0.25)
    values: dict[str, Any] = {
        "id": run,
        "status": "done",
        "experiment": "demo",
        "classifier": run.partition("-")[0],
        "seed": 0,
        "corpus": {"name": "c", "fingerprint": "f00d"},
        "areas": ["a", "b"],
        "taxonomy": {"name": "t", "version": 1, "digest": "d"},
        "parts": {"all": brief | numbers | {"interval": [0.4, 0.6], "at_half": brief, "sure": brief}},
        "rows": {"train": [10], "test": 80, "fingerprint": "rows"},
        "fit_seconds": 1.5,
        "texts_per_second": 100.0,
        "peak_mb": 200.0,
        "looks": 1,
        "config": {"classifier": {"_target_": run}, "seed": 0, "name": "demo", "split": {"folds": 2}},
        "started": "2025-01-01T00:00:00.000+00:00",
    }
    return RunResult(**(values | changes))
