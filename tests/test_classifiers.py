"""One contract for all classifiers of conf/classifier, and what each kind computes."""

import importlib
import inspect
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.feature_selection import chi2
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import ComplementNB
from sklearn.svm import LinearSVC

from abstag.classifiers import linear
from abstag.classifiers.base import Aid, Classifier, Member, check_both_sides, prevalence_logits
from abstag.classifiers.controls import Control
from abstag.classifiers.keywords import Keywords
from abstag.classifiers.linear import SVM, Linear, LogReg, NaiveBayes
from abstag.classifiers.prior import Prior
from abstag.classifiers.scorers import SCORERS, KeywordScorer, LinearScorer, terms, tokens
from abstag.classifiers.scores import Scores
from abstag.errors import AbstagError, ArtifactError, ConfigError, DataError, MissingExtraError
from abstag.records import Documents, FloatArray, Targets
from abstag.resources import resource
from abstag.taxonomy import Taxonomy, parse_taxonomy

CONFIGS = sorted(resource("conf/classifier").glob("*.yaml"))
WORDS = {
    "bread": "sourdough starter crumb oven loaf crust",
    "boats": "sailing keel harbour rudder mast anchor",
    "birds": "heron nest feather migration warbler song",
    "clocks": "pendulum escapement gear chime spring dial",
}
FRAMES = (
    "We compare how {0} and {1} change when the {2} is left alone.",
    "Little is known about {0}. A survey of {1} suggests that {2} matters more than {3}.",
    "This note gives a cheap recipe for {0}, based on {1} rather than {2}.",
    "Why does {3} fail? We trace it to {0} and repair the {1}.",
    "A long record of {0} shows {2} twice as often as {1} predicts.",
)


def taxonomy(size: int) -> Taxonomy:
    areas = [
        {"id": area, "keywords": words.split(), "description": f"Papers on {words}."}
        for area, words in list(WORDS.items())[:size]
    ]
    return parse_taxonomy({"name": "crafts", "areas": areas})


def papers(n: int = 40) -> tuple[Documents, np.ndarray[tuple[int, int], np.dtype[np.bool_]]]:
    """Return n invented papers, most with one of the four subjects, some with two; and their (n, 4) truth."""
    names, rng = list(WORDS), np.random.default_rng(3)
    texts, values = [], np.zeros((n, 4), dtype=np.bool_)
    for row in range(n):
        subjects = [row % 4, (row + 1) % 4][: 1 + (row % 5 == 0)]
        values[row, subjects] = True
        pool = [word for subject in subjects for word in WORDS[names[subject]].split()]
        texts.append(" ".join(frame.format(*rng.choice(pool, 4)) for frame in rng.choice(FRAMES, 3, replace=False)))
    titles = [text.split()[row % 5] if row % 3 else "" for row, text in enumerate(texts)]
    return Documents([f"p{row}" for row in range(n)], titles, texts), values


DOCUMENTS, TRUTH = papers()


def targets(size: int) -> Targets:
    """Return targets with unknown cells, cells of weight zero, and unequal weights."""
    rng = np.random.default_rng(4)
    shape = (len(DOCUMENTS), size)
    weight = rng.choice([0.0, 0.3, 1.0], shape, p=[0.1, 0.3, 0.6])
    return Targets(TRUTH[:, :size].copy(), rng.random(shape) < 0.85, weight)


def full(size: int = 4) -> Targets:
    values = TRUTH[:, :size].copy()
    return Targets(values, np.ones_like(values), np.ones(values.shape))


def score_file(folder: Path, text: str | None = None) -> str:
    rng = np.random.default_rng(1)
    rows = [f"{name},{area},{rng.normal():.4f}\n" for name in DOCUMENTS.ids for area in WORDS]
    (folder / "scores.csv").write_text(
        text if text is not None else "id,area,score\n" + "".join(rows), encoding="utf-8"
    )
    return str(folder / "scores.csv")


TINY = {"layers": 2, "frozen_layers": 1, "dimensions": 8}  # what the tiny encoder allows


@pytest.fixture(params=CONFIGS, ids=lambda path: path.stem)
def classifier(request: pytest.FixtureRequest, tmp_path: Path, tiny_encoder: Path) -> Classifier:
    """An unfitted classifier as its YAML file builds it, on a tiny encoder if on any."""
    node = yaml.safe_load(request.param.read_text(encoding="utf-8"))
    module, _, name = node.pop("_target_").rpartition(".")
    try:
        kind = getattr(importlib.import_module(module), name)
    except MissingExtraError as error:
        pytest.skip(str(error))
    if kind is Scores:
        path = tmp_path / "crafts"
        path.mkdir()
        rows = "".join(f"{paper},{area},{len(paper) - len(area)}.5\n" for paper in DOCUMENTS.ids for area in WORDS)
        node["path"] = score_file(path, "id,area,score\n" + rows)
    if "encoder" in node:
        node["encoder"] = str(tiny_encoder)
    node |= {key: value for key, value in TINY.items() if key in node}
    found: Classifier = kind(**node)
    return found


def fitted(classifier: Classifier, given: Targets | None = None, size: int = 4) -> Classifier:
    copy: Classifier = clone(classifier)
    known = taxonomy(size)
    if isinstance(copy, Scores):  # its file names all four
        known = taxonomy(4)
    return copy.fit(DOCUMENTS, given if given is not None else targets(size), taxonomy=known, aid=aid(copy, size))


def aid(classifier: Classifier, size: int = 4) -> Aid:
    """Return the taggers that a classifier asks for: naive Bayes of different strength."""
    members = []
    for number, _ in enumerate(classifier.member_names()):
        scorer = NaiveBayes(alpha=0.1 + number).fit(DOCUMENTS, full(size), taxonomy=taxonomy(size)).scorer_
        members.append(Member(scorer, np.full(size, 0.1), np.zeros(size)))
    return Aid(members=members)


def test_there_are_configurations() -> None:
    assert len(CONFIGS) >= 6


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_a_configuration_shows_every_parameter(path: Path) -> None:
    node = yaml.safe_load(path.read_text(encoding="utf-8"))
    module, _, name = node.pop("_target_").rpartition(".")
    parameters = inspect.signature(getattr(importlib.import_module(module), name)).parameters
    assert set(node) == set(parameters)
    assert all(parameter.default is not parameter.empty for parameter in parameters.values())


def test_a_clone_has_the_same_parameters_and_nothing_learnt(classifier: Classifier) -> None:
    before: dict[str, Any] = classifier.get_params()  # type: ignore[attr-defined]
    model = fitted(classifier)
    copy = clone(model)
    assert copy.get_params() == before == model.get_params()  # type: ignore[attr-defined]
    assert [name for name in vars(copy) if name.endswith("_")] == []
    assert type(classifier)(**before).get_params() == before  # type: ignore[attr-defined]
    for name, value in before.items():
        assert getattr(copy, name) is value or getattr(copy, name) == value


@pytest.mark.parametrize("size", [2, 4])
def test_scores_are_finite_float64_of_papers_times_areas(classifier: Classifier, size: int) -> None:
    model = fitted(classifier, size=size)
    scores = model.decision_function(DOCUMENTS)
    assert scores.shape == (len(DOCUMENTS), 4 if isinstance(model, Scores) else size)
    assert scores.dtype == np.float64
    assert np.isfinite(scores).all()
    rows = np.array([5, 0, 7])
    np.testing.assert_allclose(model.decision_function(DOCUMENTS[rows]), scores[rows], rtol=1e-12, atol=1e-12)


def test_fit_returns_itself_and_is_bit_identical_each_time(classifier: Classifier) -> None:
    copy: Classifier = clone(classifier)
    assert copy.fit(DOCUMENTS, targets(4), taxonomy=taxonomy(4), aid=aid(copy)) is copy
    first = copy.decision_function(DOCUMENTS)
    linear._cache.clear()
    second = fitted(classifier).decision_function(DOCUMENTS)
    again = copy.fit(DOCUMENTS, targets(4), taxonomy=taxonomy(4), aid=aid(copy)).decision_function(DOCUMENTS)
    assert first.tobytes() == second.tobytes() == again.tobytes()


def test_input_is_left_alone(classifier: Classifier) -> None:
    given, documents = (
        targets(4),
        Documents(*(tuple(column) for column in (DOCUMENTS.ids, DOCUMENTS.titles, DOCUMENTS.abstracts))),
    )
    arrays = (given.values, given.known, given.weight)
    before = [array.tobytes() for array in arrays]
    for array in arrays:
        array.flags.writeable = False
    model = clone(classifier).fit(documents, given, taxonomy=taxonomy(4), aid=aid(classifier))
    model.decision_function(documents)
    assert [array.tobytes() for array in arrays] == before


def test_unknown_and_weightless_cells_do_not_influence_the_fit(classifier: Classifier) -> None:
    given = targets(4)
    unused = ~given.known | (given.weight == 0)
    assert 10 < unused.sum() < 80
    flipped = Targets(given.values ^ unused, given.known, np.where(given.known, given.weight, 99.0))
    first, second = fitted(classifier, given), fitted(classifier, flipped)
    assert first.decision_function(DOCUMENTS).tobytes() == second.decision_function(DOCUMENTS).tobytes()


def test_weights_influence_what_learns(classifier: Classifier) -> None:
    given = full()
    heavy = Targets(given.values, given.known, np.where(given.values, 1.0, 0.05))
    same = np.array_equal(
        fitted(classifier, given).decision_function(DOCUMENTS), fitted(classifier, heavy).decision_function(DOCUMENTS)
    )
    assert same == (not classifier.needs_labels or getattr(classifier, "balanced", False))


def test_a_restored_scorer_gives_the_same_scores(classifier: Classifier) -> None:
    model = fitted(classifier)
    if not hasattr(model, "scorer_"):
        assert isinstance(model, Scores | Control)
        return
    scorer = model.scorer_
    state = scorer.state()
    assert SCORERS[scorer.kind] is type(scorer)
    assert all(array.dtype != object for array in state.arrays.values())
    assert all(type(text) is str for text in state.strings)
    restored = type(scorer).restore(state)
    assert restored(DOCUMENTS).tobytes() == scorer(DOCUMENTS).tobytes() == model.decision_function(DOCUMENTS).tobytes()
    assert restored.state().strings == state.strings


def test_papers_without_known_words_and_no_papers_can_be_scored(classifier: Classifier) -> None:
    model = fitted(classifier)
    strange = Documents(list(DOCUMENTS.ids[:3]), ["", "Étude", ""], ["", "图神经网络 zyxw", "…"])
    assert np.isfinite(model.decision_function(strange)).all()
    assert model.decision_function(Documents([], [], [])).shape == (0, 4)


def test_an_area_without_both_sides_is_refused_by_what_learns(classifier: Classifier) -> None:
    given = full()
    given.values[:, 2] = False
    if not classifier.needs_labels:
        fitted(classifier, given)
        return
    with pytest.raises(DataError, match="area 'birds' has no positive example"):
        fitted(classifier, given)


@pytest.mark.parametrize(("side", "name"), [(True, "positive"), (False, "negative")])
@pytest.mark.parametrize("way", ["value", "unknown", "weight"])
def test_check_both_sides(side: bool, name: str, way: str) -> None:
    given = full()
    cells = (given.values == side) & (np.arange(4) == 1)
    if way == "value":
        given.values[cells] = not side
    elif way == "unknown":
        given.known[cells] = False
    else:
        given.weight[cells] = 0.0
    with pytest.raises(DataError) as error:
        check_both_sides(given, taxonomy(4))
    assert str(error.value) == (
        f"area 'boats' has no {name} example among the 40 training papers; "
        "label some, or take the area out of the taxonomy"
    )


def test_both_sides_are_enough() -> None:
    check_both_sides(full(), taxonomy(4))


def test_prevalence_is_the_weighted_share_with_half_a_count() -> None:
    values = np.array([[True], [True], [False], [True]])
    given = Targets(values, np.array([[True], [True], [True], [False]]), np.array([[2.0], [0.5], [1.0], [9.0]]))
    assert prevalence_logits(given).tolist() == pytest.approx([np.log(3.0 / 1.5)])
    model = Prior().fit(DOCUMENTS, full(), taxonomy=taxonomy(4))
    counts = TRUTH.sum(axis=0)
    np.testing.assert_allclose(model.decision_function(DOCUMENTS)[9], np.log((counts + 0.5) / (40 - counts + 0.5)))


def test_tokens_and_terms() -> None:
    text = "The Keel-less boats of 7B (7 B) naïve_ones, gas and glass; a bus on this axis is on buses"
    words = ["keel", "less", "boat", "7b", "naïve_one", "gas", "glass", "bus", "axis", "buse"]
    assert tokens(text) == [word for word in words if word != "less"]
    assert terms("Keels of Oak, oars") == ["keel", "oak", "oar", "keel oak", "oak oar"]
    assert terms("") == terms("a b of the") == []


EXTRA = Documents(["x", "y", "z"], ["", "Keel", ""], ["", "keel keel KEEL, oven crust; keel oven", "unseen syllables"])


def term_lists(documents: Documents, title_weight: int) -> list[list[str]]:
    pairs = zip(documents.titles, documents.abstracts, strict=True)
    return [[*terms(abstract), *(terms(title) * title_weight)] for title, abstract in pairs]


@pytest.mark.parametrize("min_df", [1, 2, 5])
@pytest.mark.parametrize("title_weight", [0, 1, 3])
def test_features_are_those_of_scikit_learn(min_df: int, title_weight: int) -> None:
    model = LogReg(title_weight=title_weight, min_df=min_df).fit(DOCUMENTS, full(), taxonomy=taxonomy(4))
    assert isinstance(model.scorer_, LinearScorer)
    reference = TfidfVectorizer(analyzer=list, min_df=min_df, sublinear_tf=True)
    reference.fit(term_lists(DOCUMENTS, title_weight))
    assert model.scorer_.vocabulary == list(reference.get_feature_names_out())
    for documents in (DOCUMENTS, EXTRA, Documents(["e"] * 2, [""] * 2, [""] * 2)):
        found = model.scorer_.features(documents)
        expected = reference.transform(term_lists(documents, title_weight))
        assert found.shape == expected.shape
        np.testing.assert_allclose(found.toarray(), expected.toarray(), rtol=0, atol=1e-12)


@given(st.lists(st.text(alphabet="keloavn KE-\n", max_size=30), min_size=1, max_size=5))
@settings(max_examples=60)
def test_features_of_any_text_are_those_of_scikit_learn(texts: list[str]) -> None:
    reference = TfidfVectorizer(analyzer=terms, sublinear_tf=True)
    reference.fit(["keel oven", "keel loaf keel", "no en", "eve ale lo", "KEEL oven lane"])
    vocabulary, size = list(reference.get_feature_names_out()), len(reference.idf_)
    scorer = LinearScorer(vocabulary, reference.idf_, np.zeros((1, size)), np.zeros(1), 1)
    documents = Documents(["p"] * len(texts), [""] * len(texts), texts)
    expected = reference.transform(texts).toarray()
    np.testing.assert_allclose(scorer.features(documents).toarray(), expected, rtol=0, atol=1e-12)


def matrix_and_rows(given: Targets, area: int) -> tuple[Any, np.ndarray[Any, Any]]:
    vectorizer = TfidfVectorizer(analyzer=list, min_df=2, sublinear_tf=True)
    matrix = vectorizer.fit_transform(term_lists(DOCUMENTS, 3))
    return matrix, np.flatnonzero(given.known[:, area] & (given.weight[:, area] > 0))


def reference_scores(model: Any, given: Targets, area: int, weight: FloatArray | None = None) -> Any:
    """Scores of one area by a scikit-learn model fitted on its known cells."""
    matrix, rows = matrix_and_rows(given, area)
    weights = given.weight[rows, area] if weight is None else weight
    model.fit(matrix[rows], given.values[rows, area], sample_weight=weights)
    if isinstance(model, ComplementNB):
        joint = model.predict_joint_log_proba(matrix)
        return joint[:, 1] - joint[:, 0]
    return model.decision_function(matrix)


@pytest.mark.parametrize("area", range(4))
@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (LogReg(C=2.0, balanced=False), LogisticRegression(C=2.0, solver="liblinear", random_state=0)),
        (SVM(C=0.5, balanced=False), LinearSVC(C=0.5, random_state=0)),
        (NaiveBayes(alpha=0.4, best_terms=0), ComplementNB(alpha=0.4)),
        (NaiveBayes(alpha=0.4, norm=True, best_terms=10**6), ComplementNB(alpha=0.4, norm=True)),
    ],
    ids=["logreg", "svm", "nb", "nb-norm"],
)
def test_each_area_is_the_model_of_scikit_learn_on_its_known_cells(ours: Linear, theirs: Any, area: int) -> None:
    given = targets(4)
    expected = reference_scores(theirs, given, area)
    np.testing.assert_allclose(fitted(ours, given).decision_function(DOCUMENTS)[:, area], expected, atol=1e-6)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (LogReg(C=2.0, balanced=True), LogisticRegression(C=2.0, solver="liblinear", random_state=0)),
        (SVM(C=0.5, balanced=True), LinearSVC(C=0.5, random_state=0)),
    ],
    ids=["logreg", "svm"],
)
def test_balanced_weighs_both_sides_equally_in_total(ours: Linear, theirs: Any) -> None:
    given = targets(4)
    rows = matrix_and_rows(given, 1)[1]
    values, weight = given.values[rows, 1], given.weight[rows, 1]
    side = np.where(values, weight[values].sum(), weight[~values].sum())
    expected = reference_scores(theirs, given, 1, weight * weight.sum() / (2 * side))
    np.testing.assert_allclose(fitted(ours, given).decision_function(DOCUMENTS)[:, 1], expected, atol=1e-3)


def test_what_learns_ranks_the_right_papers_first() -> None:
    for model in (LogReg(), SVM(), NaiveBayes()):
        scores = fitted(model, full()).decision_function(DOCUMENTS)
        for area in range(4):
            assert scores[TRUTH[:, area], area].mean() > scores[~TRUTH[:, area], area].mean()


def test_terms_too_rare_are_one_clear_error() -> None:
    for min_df in (41, 40):
        with pytest.raises(DataError, match=f"no term stands in {min_df} of the 40 training papers"):
            fitted(NaiveBayes(min_df=min_df), full())


def test_naive_bayes_may_use_the_best_terms_alone() -> None:
    given = targets(4)
    model = fitted(NaiveBayes(best_terms=7), given)
    assert isinstance(model.scorer_, LinearScorer)
    for area in range(4):
        matrix, rows = matrix_and_rows(given, area)
        strength = np.nan_to_num(chi2(matrix[rows], given.values[rows, area])[0])
        used = model.scorer_.coef[area] != 0
        assert used.sum() == 7
        assert strength[used].min() >= np.delete(strength, np.flatnonzero(used)).max()


def test_kept_features_are_those_of_the_papers_asked_for() -> None:
    linear._cache.clear()
    asked = [
        (DOCUMENTS[np.arange(20 + shift)], {"title_weight": shift % 3, "min_df": 1 + shift % 2}) for shift in range(16)
    ]
    first = [linear.tfidf(documents, **options) for documents, options in asked]
    assert len(linear._cache) == 12
    for (documents, options), kept in zip(asked, first, strict=True):
        again = linear.tfidf(documents, **options)
        assert again.vocabulary == kept.vocabulary
        assert again.matrix.shape[0] == len(documents)
        np.testing.assert_array_equal(again.idf, kept.idf)
        assert linear.tfidf(documents, **options) is again


def test_titles_and_abstracts_are_told_apart_in_what_is_kept() -> None:
    linear._cache.clear()
    whole = Documents(["p"] * 3, ["keel rudder mast"] * 3, ["oven"] * 3)
    parted = Documents(["p"] * 3, ["keel"] * 3, ["rudder mast oven"] * 3)
    first, second = (linear.tfidf(papers, title_weight=3, min_df=1) for papers in (whole, parted))
    assert first.matrix.shape != second.matrix.shape or not np.allclose(first.matrix.toarray(), second.matrix.toarray())


@pytest.mark.parametrize(
    ("model", "key"),
    [
        (LogReg(C=0.0), "C"),
        (SVM(C=-1.0), "C"),
        (NaiveBayes(alpha=0.0), "alpha"),
        (NaiveBayes(best_terms=-1), "best_terms"),
        (LogReg(min_df=0), "min_df"),
        (SVM(title_weight=-1), "title_weight"),
        (LogReg(C=float("nan")), "C"),
    ],
)
def test_a_parameter_out_of_range_names_its_key(model: Linear, key: str) -> None:
    with pytest.raises(ConfigError, match=rf"classifier\.{key}: .* is out of range"):
        model.check()


def test_parameters_in_range_pass() -> None:
    for model in (LogReg(balanced=True, title_weight=0, min_df=1), NaiveBayes(norm=True, best_terms=0), SVM()):
        model.check()


def keyword_scores(title: str, abstract: str, phrases: Sequence[str], weight: float = 3.0) -> float:
    scorer = KeywordScorer([phrases, ["never"]], title_weight=weight)
    found = scorer(Documents(["p"], [title], [abstract]))
    assert found.shape == (1, 2)
    assert found[0, 1] == 0.0
    return float(found[0, 0])


@pytest.mark.parametrize(
    ("title", "abstract", "score"),
    [
        ("", "", 0),
        ("", "One keel.", 1),
        ("", "A keel, a keel and a KEEL.", 1),
        ("", "Two keels.", 1),
        ("", "Keels' and rudder-like tail fins", 3),
        ("", "The keelson and the unkeel", 0),
        ("", "tail fins, keel, rudder", 3),
        ("", "tail  fin", 0),
        ("Keels", "nothing else", 3),
        ("Keels", "A keel again.", 3),
        ("Keel and Rudder", "A tail fin.", 7),
        ("Tail", "Fin.", 0),
    ],
)
def test_keywords_count_distinct_phrases_and_titles_more(title: str, abstract: str, score: float) -> None:
    assert keyword_scores(title, abstract, ["keel", "rudder", "tail fin"]) == score


def test_signs_in_a_keyword_are_no_pattern() -> None:
    assert keyword_scores("", "we use k.e for it", ["k.e"]) == 1
    assert keyword_scores("", "we use kxe for it", ["k.e"]) == 0
    assert keyword_scores("Keel", "", ["keel"], weight=1.5) == 1.5


@pytest.mark.parametrize("phrase", ["C++", "(1+1)-ES", "A*"])
def test_a_keyword_that_begins_or_ends_with_a_sign_is_found(phrase: str) -> None:
    assert keyword_scores("", f"Programs in {phrase} are short.", [phrase]) == 1


def test_keywords_come_from_the_taxonomy() -> None:
    scores = fitted(Keywords(title_weight=2.0)).decision_function(
        Documents(["p"], ["Sourdough on Boats"], ["The crust and the crumbs cool in the harbour, where herons wait."])
    )
    assert scores.tolist() == [[4.0, 1.0, 1.0, 0.0]]


def test_an_area_without_keywords_is_refused() -> None:
    bare = parse_taxonomy({"name": "bare", "areas": [{"id": "a", "keywords": ["x"]}, {"id": "b"}]})
    with pytest.raises(ConfigError) as error:
        Keywords().fit(DOCUMENTS, full(2), taxonomy=bare)
    assert str(error.value) == "taxonomy bare: area 'b' has no keywords; add some"


def scored(path: str, size: int = 2) -> Scores:
    return Scores(path).fit(DOCUMENTS, full(size), taxonomy=taxonomy(size))


def test_scores_are_read_by_id_and_area(tmp_path: Path) -> None:
    text = "\ufeffnote,area,score,id\nx,boats,-2e3,p1\n,bread,1,p0\n,bread,.5,p1\n,boats,0,p0\n"
    model = scored(score_file(tmp_path, text))
    assert model.decision_function(DOCUMENTS[np.array([1, 0, 1])]).tolist() == [[0.5, -2000], [1, 0], [0.5, -2000]]


def test_missing_scores_are_counted_and_the_first_named(tmp_path: Path) -> None:
    path = score_file(tmp_path, "id,area,score\np0,bread,1\np0,boats,1\np1,bread,1\n")
    with pytest.raises(DataError) as error:
        scored(path).decision_function(DOCUMENTS[np.array([0, 1, 2])])
    assert str(error.value) == f"{path}: 3 of 6 scores are missing, first id 'p1', area 'boats'"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", ": columns id, area, score expected, found None"),
        ("id,score\np0,1\n", ": columns id, area, score expected, found ['id', 'score']"),
        ("id,area,score\np0,bread,1\np0,birds,1\n", ":3: unknown area 'birds'; known: boats, bread"),
        ("id,area,score\np0,bread,nan\n", ":2: score 'nan' is not a finite number"),
        ("id,area,score\np0,bread,-inf\n", ":2: score '-inf' is not a finite number"),
        ("id,area,score\np0,bread,\n", ":2: score '' is not a finite number"),
        ("id,area,score\np0,bread\n", ":2: the row has more or fewer cells than the header, or no id"),
        ("id,area,score\np0,bread,high\n", ":2: score 'high' is not a finite number"),
        ("id,area,score\np0,bread,1\n\np0,bread,1\n", ":4: a second score for ('p0', 'bread')"),
        ("score,area,id\n1,bread\n", ":2: "),
        ("id,area,score\np0,bread,1,5\n", ":2: "),
    ],
)
def test_a_bad_score_file_is_named_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    path = score_file(tmp_path, text)
    with pytest.raises(DataError) as error:
        scored(path)
    assert str(error.value).startswith(f"{path}{message}")


def test_a_score_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    for path in (tmp_path / "none.csv", tmp_path):
        with pytest.raises(DataError, match=f"{path}: cannot be read: "):
            scored(str(path))
        with pytest.raises(ArtifactError, match=f"{path}: cannot be read: "):
            Scores(str(path)).fingerprint()


def test_scores_are_identified_by_the_content_of_the_file(tmp_path: Path) -> None:
    first = Scores(score_file(tmp_path, "id,area,score\np0,bread,1\n")).fingerprint()
    second = Scores(score_file(tmp_path, "id,area,score\np0,bread,2\n")).fingerprint()
    assert len(first) == 64
    assert first != second
    assert LogReg().fingerprint() == Keywords().fingerprint() == ""
    with pytest.raises(AbstagError, match=r"classifier\.path: no file is named; classifier\.path=SCORES\.csv"):
        Scores().fingerprint()


def test_explained_terms_are_bounded_ranked_and_there_for_every_paper_and_area(classifier: Classifier) -> None:
    model = fitted(classifier)
    found = model.explain(DOCUMENTS)
    if found is None:
        assert isinstance(model, Scores)
        return
    assert [len(areas) for areas in found] == [4] * len(DOCUMENTS)
    for area in (area for paper in found for area in paper):
        assert len(area) <= 6
        shares = [abs(share) for _, share in area]
        assert shares == sorted(shares, reverse=True)
    assert model.explain(Documents([], [], [])) == []


def test_shares_of_all_terms_add_up_to_the_score() -> None:
    scorer = fitted(LogReg()).scorer_
    assert isinstance(scorer, LinearScorer)
    shares = [[sum(share for _, share in area) for area in paper] for paper in scorer.explain(DOCUMENTS, top=10**6)]
    np.testing.assert_allclose(np.array(shares) + scorer.intercept, scorer(DOCUMENTS), atol=1e-9)


def test_keywords_explain_by_the_phrases_found() -> None:
    scorer = KeywordScorer([["crumb", "oven"], ["keel"]], title_weight=2.0)
    (paper,) = scorer.explain(Documents(["a"], ["On ovens"], ["A CRUMB in the oven."]))
    assert paper == [[("oven", 2.0), ("crumb", 1.0)], []]
