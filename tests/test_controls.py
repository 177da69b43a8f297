"""Controls: what labels without meaning, texts without keywords, and titles alone are worth."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.metrics import average_precision_score

from abstag.classifiers.base import Aid
from abstag.classifiers.controls import Control, Masked, Shuffled, TitleOnly
from abstag.classifiers.linear import Linear, LogReg
from abstag.classifiers.scorers import KeywordScorer, terms
from abstag.errors import ConfigError, DataError
from abstag.records import Documents, FloatArray, Targets
from abstag.store import Store, read_documents, read_scores
from abstag.taxonomy import Taxonomy, parse_taxonomy
from tests.conftest import SHORT, Go

CONTROLS = (Shuffled, Masked, TitleOnly)
NAMES = ("shuffled", "masked", "title_only")
AREAS = {
    "ferns": (["frond", "spore case", "case study"], "moss shade humid forest soil leaf"),
    "looms": (["warp", "weft", "jacquard"], "shuttle yarn pattern cloth wool heddle"),
    "glaciers": (["moraine", "ice tongue", "C++"], "valley meltwater crevasse winter slope stone"),
}
FRAMES = (
    "We followed {0} and {1} over nine years.",
    "Little was known of {0}; we measured {1} instead.",
    "A cheap way to sort {0} by {1} is shown.",
    "Where {0} fails, {1} still works.",
)


def taxonomy(*, bare: bool = False) -> Taxonomy:
    areas = [{"id": area, "keywords": [] if bare else keywords} for area, (keywords, _) in AREAS.items()]
    return parse_taxonomy({"name": "walks", "areas": areas})


def corpus(n: int = 240) -> tuple[Documents, Targets]:
    """Return n invented papers, a few with two areas, told apart by keywords and by other words, title and abstract."""
    rng, areas = np.random.default_rng(8), list(AREAS.values())
    values = rng.random((n, 3)) < (0.2, 0.3, 0.4)
    values[~values.any(axis=1), 2] = True
    titles, abstracts = [], []
    for row in values:
        words = [word for area in np.flatnonzero(row) for word in (*areas[area][0][:2], *areas[area][1].split())]
        titles.append(f"On {' and '.join(rng.choice(words, 2))}")
        abstracts.append(" ".join(frame.format(*rng.choice(words, 2)) for frame in rng.permutation(FRAMES)))
    return Documents([f"p{row}" for row in range(n)], titles, abstracts), whole(values)


def whole(values: Any) -> Targets:
    return Targets(np.asarray(values), np.ones_like(values), np.ones(np.shape(values)))


PAPERS, TARGETS = corpus()
TRAIN, TEST = np.arange(120), np.arange(120, 240)


def fitted(model: LogReg, *, seed: int = 0, papers: Documents = PAPERS[TRAIN], bare: bool = False) -> LogReg:
    copy: LogReg = clone(model)
    return copy.fit(papers, TARGETS[np.arange(len(papers))], taxonomy=taxonomy(bare=bare), aid=Aid(seed=seed))


def precision(model: LogReg) -> FloatArray:
    """Return the (k,) average precision on the test papers."""
    scores, values = model.decision_function(PAPERS[TEST]), TARGETS.values[TEST]
    return np.array([average_precision_score(values[:, area], scores[:, area]) for area in range(3)])


def one(title: str, abstract: str) -> Documents:
    return Documents(["p"], [title], [abstract])


def test_logistic_regression_is_nearly_perfect_on_these_papers() -> None:
    assert precision(fitted(LogReg())).min() > 0.98


def test_labels_without_meaning_give_the_prevalence() -> None:
    found = np.mean([precision(fitted(Shuffled(), seed=seed)) for seed in range(24)], axis=0)
    np.testing.assert_allclose(found, TARGETS.values[TEST].mean(axis=0), atol=0.08)


class Dealt:
    """What a fit was given."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.documents: list[Documents] = []
        self.targets: list[Targets] = []
        base = Linear._fit

        def noting(model: Linear, documents: Documents, targets: Targets, areas: Taxonomy) -> None:
            self.documents.append(documents)
            self.targets.append(targets)
            base(model, documents, targets, areas)

        monkeypatch.setattr(Linear, "_fit", noting)


def test_shuffled_labels_are_a_permutation_of_whole_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    dealt, rng = Dealt(monkeypatch), np.random.default_rng(2)
    weight = 1.0 + np.arange(120)[:, None] + np.array([0.0, 0.1, 0.2])  # a row is known by its weights
    own = Targets(TARGETS.values[TRAIN], rng.random((120, 3)) < 0.9, weight)
    for seed in (0, 0, 1):
        Shuffled().fit(PAPERS[TRAIN], own, taxonomy=taxonomy(), aid=Aid(seed=seed))
    orders = [np.round(targets.weight[:, 0] - 1).astype(int) for targets in dealt.targets]
    for order, targets in zip(orders, dealt.targets, strict=True):
        assert sorted(order) == list(range(120))
        assert (order == np.arange(120)).mean() < 0.1
        for ours, theirs in ((targets.values, own.values), (targets.known, own.known), (targets.weight, own.weight)):
            np.testing.assert_array_equal(ours, theirs[order])
    assert orders[0].tolist() == orders[1].tolist() != orders[2].tolist()
    assert all(documents == PAPERS[TRAIN] for documents in dealt.documents)


@pytest.mark.parametrize("control", CONTROLS)
def test_the_seed_decides_what_is_shuffled_and_nothing_else(control: type[Control]) -> None:
    first, again, other = (fitted(control(), seed=seed).decision_function(PAPERS).tobytes() for seed in (0, 0, 1))
    assert first == again
    assert (first == other) == (control is not Shuffled)


FORMS = [
    ("warp", ""),
    ("WARP", ""),
    ("Warps", ""),
    ("warp-like", "-like"),
    ("two-warp", "two-"),
    ("warp's", "'s"),
    ("(warp)", "()"),
    ("spore cases", ""),
    ("spore case study", ""),  # two keywords share a word
    ("C++", ""),
    ("warped", "warped"),
    ("unwarp", "unwarp"),
    ("warp_line", "warp_line"),
    ("spore-case", "spore-case"),
    ("spore  case", "spore  case"),
    ("warpss", "warpss"),
]


@pytest.fixture(scope="module")
def reader() -> Masked:
    """Masked, fitted on papers in which all forms stand."""
    forms = " ".join(form for form, _ in FORMS)
    papers = PAPERS.joined(Documents(["x", "y"], ["", ""], [forms, forms]))
    return Masked().fit(papers, TARGETS[np.append(np.arange(len(PAPERS)), [0, 1])], taxonomy=taxonomy())


@pytest.mark.parametrize(("form", "left"), FORMS)
@pytest.mark.parametrize("place", ["title", "abstract"])
def test_a_masked_keyword_is_as_if_it_were_not_there(form: str, left: str, place: str, reader: Masked) -> None:
    def scores(word: str) -> bytes:
        text = f"We saw {word} in the winter valley."
        return reader.decision_function(one(text, "") if place == "title" else one("", text)).tobytes()

    assert scores(form) == scores(left)
    assert (scores(form) == scores("")) == (terms(left) == [])


KEYWORDS = [phrase for keywords, _ in AREAS.values() for phrase in keywords]
SPOTTER = KeywordScorer([keywords for keywords, _ in AREAS.values()], title_weight=1.0)
WORD = st.sampled_from(["moss", "Warped", "cases", "tongue", "studies", "ice", "CC", "Étude", "don't", "3", "İ"])
KEYWORD = st.sampled_from(
    [
        spelt + plural
        for keyword in (*KEYWORDS, "spore case study")
        for spelt in (keyword, keyword.upper(), keyword.title())
        for plural in ("", "s")
    ]
)
PIECES = st.lists(st.tuples(st.just("word"), WORD) | st.tuples(st.just("keyword"), KEYWORD), max_size=8)
BETWEEN = st.sampled_from([", ", "; ", "/", " (", ")\n", " - "])  # no two pieces become one keyword


@pytest.fixture(scope="module")
def masked() -> Masked:
    return Masked().fit(PAPERS, TARGETS, taxonomy=taxonomy())


@given(title=PIECES, abstract=PIECES, between=BETWEEN)
@settings(max_examples=150)
def test_masked_takes_out_what_the_keyword_classifier_finds_and_no_more(
    title: list[tuple[str, str]], abstract: list[tuple[str, str]], between: str, masked: Masked
) -> None:
    paper = one(*(between.join(text for _, text in pieces) for pieces in (title, abstract)))
    rest = [between.join(text for kind, text in pieces if kind == "word") for pieces in (title, abstract)]
    seen = masked._seen(paper)
    assert [terms(text) for text in (*seen.titles, *seen.abstracts)] == [terms(text) for text in rest]
    assert SPOTTER(seen).sum() == 0
    spotted = any(kind == "keyword" for kind, _ in title + abstract)
    assert (SPOTTER(paper).sum() > 0) == (seen != paper) == spotted


def test_masked_tells_papers_apart_by_other_words_alone() -> None:
    model = fitted(Masked())
    assert isinstance(model, Masked)
    assert precision(model).min() > 0.9
    known = model.control_.state().strings
    assert "meltwater" in known
    assert not set(known) & {term for keyword in KEYWORDS for term in terms(keyword)}


def test_papers_that_differ_in_keywords_alone_are_all_one_to_masked() -> None:
    areas = np.arange(60) % 3
    words = ["fronds", "Jacquard", "moraine"]
    papers = Documents(
        [f"p{row}" for row in range(60)],
        [f"Notes on {words[area]}" for area in areas],
        [f"We measured {words[area].upper()} in autumn and report its width." for area in areas],
    )
    truth = areas[:, None] == np.arange(3)
    spotting = LogReg().fit(papers, whole(truth), taxonomy=taxonomy()).decision_function(papers)
    masked = Masked().fit(papers, whole(truth), taxonomy=taxonomy()).decision_function(papers)
    assert (spotting.argmax(axis=1) == areas).all()
    assert len(np.unique(masked, axis=0)) == 1


def test_masked_without_keywords_is_refused() -> None:
    with pytest.raises(ConfigError, match="no area has keywords to mask; add some"):
        fitted(Masked(), bare=True)


def test_title_only_ignores_abstracts() -> None:
    other = replace(PAPERS, abstracts=["Warp and weft and nothing else."] * len(PAPERS))
    empty = replace(PAPERS, abstracts=[""] * len(PAPERS))
    model = fitted(TitleOnly())
    first = model.decision_function(PAPERS[TEST])
    assert model.decision_function(other[TEST]).tobytes() == first.tobytes()
    assert fitted(TitleOnly(), papers=other[TRAIN]).decision_function(PAPERS[TEST]).tobytes() == first.tobytes()
    assert fitted(LogReg(), papers=empty[TRAIN]).decision_function(empty[TEST]).tobytes() == first.tobytes()


def test_title_only_sees_titles() -> None:
    model = fitted(TitleOnly())
    assert precision(model).min() > 0.8
    untitled = model.decision_function(replace(PAPERS, titles=[""] * len(PAPERS)))
    assert len(np.unique(untitled, axis=0)) == 1
    assert len(np.unique(model.decision_function(PAPERS), axis=0)) > 20


def test_evidence_is_of_what_was_seen() -> None:
    paper = one("Wool and warp", "The shuttle carries yarn along the warp and past the heddle.")
    shown = {}
    for control in CONTROLS:
        (areas,) = fitted(control(), papers=PAPERS).explain(paper) or []
        shown[control] = {term for area in areas for term, _ in area}
    assert "warp" in shown[Shuffled]
    assert "warp" not in shown[Masked]
    assert {"wool", "yarn"} <= shown[Masked]
    assert {"wool", "warp"} <= shown[TitleOnly] <= set(terms("Wool and warp"))


@pytest.mark.parametrize("control", CONTROLS)
def test_a_control_is_no_tagger(control: type[Control]) -> None:
    model = fitted(control())
    assert not hasattr(model, "scorer_")
    assert not hasattr(model.fit(PAPERS, TARGETS, taxonomy=taxonomy()), "scorer_")
    assert model.decision_function(PAPERS).shape == (240, 3)


@pytest.mark.parametrize("control", CONTROLS)
def test_parameters_are_those_of_logistic_regression_and_reach_it(control: type[Control]) -> None:
    assert control().get_params() == LogReg().get_params()
    weak = fitted(control(C=0.01, title_weight=1))
    assert weak.get_params() == LogReg(C=0.01, title_weight=1).get_params()
    assert np.ptp(weak.decision_function(PAPERS)) < np.ptp(fitted(control()).decision_function(PAPERS)) / 5


@pytest.mark.parametrize("control", CONTROLS)
def test_errors_are_those_of_logistic_regression(control: type[Control]) -> None:
    for model in (LogReg(C=0.0), control(C=0.0)):
        with pytest.raises(ConfigError, match=r"classifier\.C: 0\.0 is out of range"):
            model.check()
    for model in (LogReg(min_df=500), control(min_df=500)):
        with pytest.raises(DataError, match="no term stands in 500 of the 120 training papers"):
            fitted(model)
    onesided = TARGETS.values.copy()
    onesided[:, 1] = False
    for model in (LogReg(), control()):
        with pytest.raises(DataError, match="area 'looms' has no positive example"):
            model.fit(PAPERS, whole(onesided), taxonomy=taxonomy())


def test_title_only_needs_a_title_that_counts() -> None:
    with pytest.raises(DataError, match="no term stands in 2 of the 120 training papers"):
        fitted(TitleOnly(title_weight=0))


@pytest.mark.parametrize("control", CONTROLS)
def test_input_is_left_alone(control: type[Control]) -> None:
    papers, own = corpus()
    before = [list(column) for column in (papers.ids, papers.titles, papers.abstracts)]
    areas = taxonomy()
    control().fit(papers, own, taxonomy=areas).decision_function(papers)
    assert [papers.ids, papers.titles, papers.abstracts] == before
    np.testing.assert_array_equal(own.values, TARGETS.values)
    np.testing.assert_array_equal(own.weight, TARGETS.weight)
    assert own.known.all()
    assert areas == taxonomy()


@pytest.mark.parametrize("split", [("split.folds=2",), ("split=holdout",)], ids=["kfold", "holdout"])
@pytest.mark.parametrize("name", NAMES)
def test_a_run_finishes_and_keeps_no_bundle(
    name: str, split: tuple[str, ...], go: Go, dump: Path, embedded: Path, tmp_path: Path
) -> None:
    words = (f"data.path={embedded}", f"runs_dir={tmp_path}/runs", *split, SHORT[1])
    go("run", f"classifier={name}", "keep_bundle=true", *words, code=0)
    store = Store(tmp_path / "runs")
    (result,) = store.results()
    folder = store.folder(result.id)
    assert (result.status, result.classifier) == ("done", name)
    assert not (folder / "bundle").exists()
    assert len(read_scores(folder)) == result.rows["test"]
    kept = read_documents(folder, result.areas)
    assert kept is not None
    assert kept.evidence is not None
    assert "no bundle here" in go("tag", dump, "--bundle", name, "--runs-dir", tmp_path / "runs", code=1).err
