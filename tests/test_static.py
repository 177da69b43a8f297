"""Static embeddings: token vectors of an encoder, tuned with a head; tagged with by numpy alone."""

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tokenizers import Tokenizer

from abstag.bundle import Bundle, load_bundle, save_bundle
from abstag.classifiers import static
from abstag.classifiers.base import Aid, Labelled
from abstag.classifiers.encoder import Encoder
from abstag.classifiers.scorers import StaticScorer, token_ids
from abstag.classifiers.static import Static, token_vectors
from abstag.decision import Decision
from abstag.errors import ConfigError, MissingExtraError
from abstag.files import new_folder
from abstag.records import Documents, FloatArray, Targets
from abstag.taxonomy import parse_taxonomy
from tests.conftest import Go

AREAS = parse_taxonomy({"name": "t", "areas": [{"id": "graphs"}, {"id": "gears"}]})
ODD = Documents(
    ["none", "unknown", "title", "abstract", "long"],
    ["", "Ω ☃", "A graph", "", "graph"],
    ["", "ж Ψ", "", "noise", "heron " * 5_000],
)


def papers(n: int, seed: int) -> Labelled:
    """Return n papers; an area holds where its word stands."""
    rng = np.random.default_rng(seed)
    words = ["graph", "noise", "heron", "gear", "step", "model"]
    texts = [" ".join(rng.choice(words, rng.integers(3, 7))) for _ in range(n)]
    values = np.array([["graph" in text, "gear" in text] for text in texts])
    documents = Documents([f"p{row}" for row in range(n)], ["A survey"] * n, texts)
    return Labelled(documents, Targets(values, np.ones_like(values), np.ones(values.shape)))


TRAINING, HELD = papers(40, 1), papers(12, 2)
Make = Callable[..., Static]


@pytest.fixture
def make(tiny_encoder: Path) -> Make:
    def call(**changes: Any) -> Static:
        values: dict[str, Any] = {"encoder": str(tiny_encoder), "dimensions": 8, "learning_rate": 0.05, "device": "cpu"}
        return Static(**(values | changes))

    return call


def fitted(model: Static, targets: Targets | None = None, aid: Aid | None = None) -> Static:
    return model.fit(TRAINING.documents, targets or TRAINING.targets, taxonomy=AREAS, aid=aid)


def scores(model: Static, targets: Targets | None = None, aid: Aid | None = None) -> FloatArray:
    return fitted(model, targets, aid).decision_function(TRAINING.documents)


@pytest.fixture(scope="module")
def scorer(tiny_encoder: Path) -> StaticScorer:
    """A scorer of random vectors."""
    rng = np.random.default_rng(0)
    tokenizer = Tokenizer.from_file(str(tiny_encoder / "tokenizer.json"))
    table = rng.normal(size=(tokenizer.get_vocab_size(), 8)).astype(np.float16)
    return StaticScorer(tokenizer.to_str(), table, rng.normal(size=(2, 8)), rng.normal(size=2), title_weight=3)


def test_a_token_vector_is_the_mean_of_the_encoder_on_the_token_alone(tiny_encoder: Path) -> None:
    import torch

    encoder = Encoder.load(tiny_encoder, max_tokens=32, device="cpu")
    vectors = token_vectors(encoder)
    assert vectors.shape == (67, 16)
    for word in ("graph", "##q", "[UNK]"):
        token = encoder.tokenizer.token_to_id(word)
        ids = [encoder.tokenizer.token_to_id("[CLS]"), token, encoder.tokenizer.token_to_id("[SEP]")]
        with torch.no_grad():
            hidden = encoder.model(input_ids=torch.tensor([ids])).last_hidden_state[0]
        np.testing.assert_allclose(vectors[token], hidden.mean(0).numpy(), atol=1e-5)


def test_the_batch_of_tokens_does_not_matter(tiny_encoder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = Encoder.load(tiny_encoder, max_tokens=32, device="cpu")
    expected = token_vectors(encoder)
    monkeypatch.setattr(static, "_BATCH", 10)
    np.testing.assert_allclose(token_vectors(encoder), expected, atol=1e-5)


@pytest.mark.parametrize("documents", [TRAINING.documents, ODD], ids=["plain", "odd"])
def test_scores_are_those_of_an_embedding_bag(documents: Documents, scorer: StaticScorer) -> None:
    import torch
    from torch.nn.functional import embedding_bag, normalize

    ids = token_ids(scorer.tokenizer, documents, 3)
    starts = torch.tensor([0, *map(len, ids[:-1])]).cumsum(0)
    flat = torch.tensor([one for row in ids for one in row])
    mean = normalize(embedding_bag(flat, torch.from_numpy(scorer.table).double(), starts, mode="mean"), dim=1)
    expected = mean.numpy() @ scorer.coef.T + scorer.intercept
    np.testing.assert_allclose(scorer(documents), expected, atol=1e-9)


def test_papers_without_tokens_score_the_intercept_and_none_is_no_row(scorer: StaticScorer) -> None:
    np.testing.assert_array_equal(scorer(ODD)[0], scorer.intercept)
    assert scorer(Documents([], [], [])).shape == (0, 2)
    assert np.isfinite(scorer(ODD)).all()


def test_a_word_of_the_title_counts_as_often_as_its_weight(scorer: StaticScorer) -> None:
    pair = Documents(["a", "b"], ["graph", ""], ["noise heron", "graph graph graph noise heron"])
    first, second = scorer(pair)
    np.testing.assert_allclose(first, second)
    assert token_ids(scorer.tokenizer, pair, 0)[0] == token_ids(scorer.tokenizer, pair, 5)[0][5:]


def test_the_whole_paper_counts(scorer: StaticScorer) -> None:
    long = Documents(["a", "b"], ["", ""], ["noise " * 3_000, "noise " * 3_000 + "graph " * 3_000])
    assert len(token_ids(scorer.tokenizer, long, 3)[1]) == 6_000
    first, second = scorer(long)
    assert not np.allclose(first, second)


def test_the_seed_decides_everything(make: Make) -> None:
    first = scores(make(), aid=Aid(seed=3))
    np.testing.assert_array_equal(scores(make(), aid=Aid(seed=3)), first)
    assert (scores(make(), aid=Aid(seed=4)) != first).any()


def test_it_learns_which_word_decides(make: Make) -> None:
    found = scores(make(epochs=60, patience=60), aid=Aid(TRAINING))
    for area in range(2):
        holds = TRAINING.targets.values[:, area]
        assert found[holds, area].min() > found[~holds, area].max()


def test_unknown_cells_and_cells_of_no_weight_do_not_count(make: Make) -> None:
    rng, shape = np.random.default_rng(5), TRAINING.targets.values.shape
    known, weight = rng.random(shape) < 0.8, rng.choice([0.0, 0.5, 1.0], shape)
    used = known & (weight > 0)
    given = Targets(TRAINING.targets.values, known, weight)
    other = Targets(given.values ^ ~used, known, np.where(known, weight, 9.0))
    np.testing.assert_array_equal(scores(make(), given), scores(make(), other))
    assert (scores(make(), given) != scores(make())).any()


def test_a_batch_without_any_known_cell_changes_nothing(make: Make) -> None:
    known = TRAINING.targets.known.copy()
    known[:20] = False
    assert np.isfinite(scores(make(batch_size=1), Targets(TRAINING.targets.values, known, known.astype(float)))).all()


@pytest.mark.parametrize(("figures", "best"), [([0.3, 0.9, 0.5], 2), ([0.9, 0.9, 0.2], 1), ([0.1, 0.2, 0.3], 3)])
def test_held_out_papers_choose_the_epoch(
    figures: Sequence[float], best: int, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    def found(figures: Sequence[float]) -> FloatArray:
        given = iter(figures)
        monkeypatch.setattr(static, "average_precision", lambda *_: next(given))
        return scores(make(epochs=len(figures)), aid=Aid(HELD))

    np.testing.assert_array_equal(found(figures), found([0.1, 0.2, 0.3][:best]))


def test_patience_ends_the_training(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[float] = []
    given = iter([0.1, 0.9, 0.8, 0.7, 0.95])

    def reached(*_: Any) -> float:
        asked.append(next(given))
        return asked[-1]

    monkeypatch.setattr(static, "average_precision", reached)
    scores(make(epochs=5, patience=2), aid=Aid(HELD))
    assert asked == [0.1, 0.9, 0.8, 0.7]


def test_without_held_out_papers_a_tenth_of_the_training_papers_chooses(make: Make) -> None:
    tenth = static._tenth(TRAINING.targets, 3)
    chosen, rest = np.flatnonzero(tenth), np.flatnonzero(~tenth)
    assert len(chosen) == 4
    assert TRAINING.targets.values[chosen].any(axis=0).all()
    held = Labelled(TRAINING.documents[chosen], TRAINING.targets[chosen])
    model = make().fit(TRAINING.documents[rest], TRAINING.targets[rest], taxonomy=AREAS, aid=Aid(held, seed=3))
    np.testing.assert_array_equal(model.decision_function(TRAINING.documents), scores(make(), aid=Aid(seed=3)))


@pytest.mark.parametrize(
    "size",
    [1, 2],
)
def test_a_paper_without_tokens_may_be_trained_on(size: int, make: Make) -> None:
    documents = Documents(TRAINING.documents.ids, [""] * 40, ["", *TRAINING.documents.abstracts[1:]])
    model = make(batch_size=size, epochs=1).fit(documents, TRAINING.targets, taxonomy=AREAS)
    assert np.isfinite(model.decision_function(documents)).all()


def saved(scorer: StaticScorer, folder: Path) -> Bundle:
    made = Bundle("s", scorer, Decision(np.ones(2), np.zeros(2), np.full(2, 0.5), 0.6), AREAS, frozenset())
    with new_folder(folder) as path:
        save_bundle(path, made, "card")
    return made


def test_round_trip_through_a_bundle(make: Make, tmp_path: Path) -> None:
    fit = fitted(make()).scorer_
    assert isinstance(fit, StaticScorer)
    assert fit.table.dtype == np.float16
    made = saved(fit, tmp_path / "bundle")
    for documents in (TRAINING.documents, ODD):
        found = load_bundle(tmp_path / "bundle").probabilities(documents)
        np.testing.assert_array_equal(found, made.probabilities(documents))


def test_tagging_imports_neither_torch_nor_transformers_nor_scikit_learn(scorer: StaticScorer, tmp_path: Path) -> None:
    saved(scorer, tmp_path / "bundle")
    (tmp_path / "p.jsonl").write_text('{"title": "A graph", "abstract": "Of noise and of a heron by a keel."}\n')
    code = (
        "import sys; from abstag.cli import main; code = main(sys.argv[1:]); "
        "print([name for name in ('torch', 'transformers', 'sklearn') if name in sys.modules], code)"
    )
    words = ["tag", str(tmp_path / "p.jsonl"), "--bundle", str(tmp_path / "bundle")]
    ran = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=True)
    tagged, imported = ran.stdout.splitlines()
    assert '"graphs"' in tagged
    assert imported == "[] 0"


def test_missing_tokenizers_name_the_extra(scorer: StaticScorer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(MissingExtraError, match=r"tokenizers is not installed; pip install 'abstag\[transformer\]'"):
        StaticScorer.restore(scorer.state())


def test_no_more_dimensions_than_the_encoder_has(make: Make) -> None:
    message = r"classifier\.dimensions: the encoder's vectors have 16 dimensions, not 17"
    with pytest.raises(ConfigError, match=message):
        make(dimensions=17).check()
    model = fitted(make(dimensions=16)).scorer_
    assert isinstance(model, StaticScorer)
    assert model.table.shape == (67, 16)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("dimensions", 0),
        ("title_weight", -1),
        ("epochs", 0),
        ("patience", 0),
        ("batch_size", 0),
        ("learning_rate", 0.0),
        ("learning_rate", float("nan")),
        ("head_learning_rate", float("inf")),
        ("dropout", 1.0),
        ("dropout", -0.1),
        ("dropout", float("nan")),
        ("device", "tpu"),
    ],
)
def test_a_parameter_out_of_range_names_its_key(name: str, value: Any, make: Make) -> None:
    with pytest.raises(ConfigError, match=rf"classifier\.{name}: "):
        make(**{name: value}).check()
    make().check()


def test_run_and_tag(go: Go, embedded: Path, dump: Path, tiny_encoder: Path, tmp_path: Path) -> None:
    words = [f"classifier.encoder={tiny_encoder}", f"data.path={embedded}", f"runs_dir={tmp_path}"]
    go("run", "classifier=static", "classifier.dimensions=8", "split=holdout", "decision=holdout", *words, code=0)
    assert go("tag", dump, "--bundle", "static", "--runs-dir", tmp_path, code=0).out.count("\n") == 80
