"""Compiled scoring is that of the plain path, on any text; and the plain path is taken where there is no numba."""

import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from abstag.classifiers.scorers import Compiled, LinearScorer, terms
from abstag.records import Documents, FloatArray

TEXTS = [
    "The Keel-less boats of 7B (7 B) na\u00efve_ones, gas and glass; a bus on this axis is on buses",
    "A corpus, a virus and a chorus; an oasis, a crisis; moss and brass; corpuses, tis, ties, mus, muss",
    "Sailing keels and rudders; the keel keel KEEL of harbours. x_1 __ _ 42 4.2 s ss sss boss boys",
    "\u0130stanbul stra\u00dfe STRASSE \u00df \u1e9e \u03a3\u03a3\u03a3 \u039f\u0394\u039f\u03a3. \u039f\u03a3'A",
    "n\u0303andu\u0301 \u00f1and\u00fas \u0661\u0662 \u00bd\u00b2 \u6f22\u5b57",
    "\U0001d4d0\U0001d4d1 \U0001f600\u200d\U0001f600 keel_\U0001f600oven",
    "lone \ud800\udc00 surrogates a\udfffb \ud83d keel",
    "",
    "  ...  ",
]
VOCABULARY = sorted({term for text in TEXTS for term in terms(text)})


def scorer(vocabulary: Sequence[str] = VOCABULARY, title_weight: int = 3, areas: int = 3) -> LinearScorer:
    rng, size = np.random.default_rng(5), len(vocabulary)
    coef = rng.normal(size=(areas, size))
    return LinearScorer(vocabulary, rng.uniform(1, 6, size), coef, rng.normal(size=areas), title_weight)


def papers(texts: Sequence[str], titles: Sequence[str] | None = None) -> Documents:
    return Documents([f"p{number}" for number in range(len(texts))], titles or [""] * len(texts), texts)


def by(model: LinearScorer, documents: Documents, *, fast: bool) -> FloatArray:
    model.fast_from = 0 if fast else np.inf
    return model(documents)


def assert_equal_scores(model: LinearScorer, documents: Documents) -> None:
    pytest.importorskip("numba")
    plain, known = by(model, documents, fast=False), model.coverage(documents)
    fast = by(model, documents, fast=True)
    assert model._fast is not None
    np.testing.assert_array_equal(model.coverage(documents), known)
    np.testing.assert_allclose(fast, plain, rtol=0, atol=1e-9)
    sure = np.abs(plain) > 1e-9
    np.testing.assert_array_equal((fast > 0)[sure], (plain > 0)[sure])


@pytest.mark.parametrize("title_weight", [-1, 0, 1, 3])
def test_scores_are_those_of_the_plain_path(title_weight: int) -> None:
    for titles in (None, TEXTS[::-1]):
        assert_equal_scores(scorer(title_weight=title_weight), papers(TEXTS, titles))


def test_every_part_of_the_scores_counts() -> None:
    """So that equality above is not that of zeros: another text, title, weight or order moves the scores."""
    pytest.importorskip("numba")
    model = scorer(["keel", "oven", "keel oven", "oven keel"], areas=1)
    titles = ["", "keel", "", "", "keel", ""]
    found = by(model, papers(["keel oven", "oven", "oven keel", "keel keel oven", "keel oven", ""], titles), fast=True)
    assert len(set(np.round(found[:, 0], 9))) == 6
    assert found[5] == model.intercept


LETTERS = "sSuUiIaAkKeE_0\u0661\u00df\u0130\u0131\u03a3\u0301\u00ad\u200d' .\n-\ud800\udc00\U0001d4d0"
ANY = st.text(alphabet=st.characters(exclude_categories=[]), max_size=40)
WORDS = st.lists(st.sampled_from([*VOCABULARY, "the", "of", "is", "s", "Boats", "KEELS"]), max_size=30).map(" ".join)
TEXT = st.one_of(ANY, st.text(alphabet=LETTERS, max_size=40), WORDS)


@given(st.lists(st.tuples(TEXT, TEXT), max_size=6))
@example([("", "")])
@settings(max_examples=200)
def test_any_text_has_the_scores_of_the_plain_path(pairs: list[tuple[str, str]]) -> None:
    own = sorted({term for pair in pairs for text in pair for term in terms(text)})[::2]  # half of them unknown
    documents = papers([abstract for _, abstract in pairs], [title for title, _ in pairs])
    for vocabulary in (VOCABULARY, own):
        assert_equal_scores(scorer(vocabulary), documents)


def test_every_character_is_a_letter_or_not_as_for_python() -> None:
    pytest.importorskip("numba")
    from abstag.classifiers._fast import _letters

    expected = [chr(code).isalnum() or chr(code) == "_" for code in range(sys.maxunicode + 1)]
    np.testing.assert_array_equal(_letters(), expected)
    singles = papers([f"{chr(code)}{chr(code)}" for code in range(0, sys.maxunicode + 1, 61)])
    assert_equal_scores(scorer(sorted({term for text in singles.abstracts for term in terms(text)})), singles)


def test_a_long_text_and_more_texts_than_are_held_together() -> None:
    rng = np.random.default_rng(0)
    words = np.array([f"w{number}" for number in range(5000)])
    long = " ".join(words[rng.zipf(1.3, 200_000) % 5000])
    assert len(long) > 6e5
    short = [" ".join(words[rng.zipf(1.3, 30) % 5000]) for _ in range(600)]
    assert_equal_scores(scorer(sorted(set(terms(long)))[::3]), papers([*short, long, "s" * 1_000_000, *short]))


def test_no_papers_no_terms_and_no_areas() -> None:
    assert_equal_scores(scorer(), papers([]))
    assert_equal_scores(scorer([]), papers(TEXTS))
    assert_equal_scores(scorer(areas=0), papers(TEXTS))


def test_terms_that_no_text_has_are_found_in_none() -> None:
    assert_equal_scores(
        scorer(["", " ", "keel ", " keel", "a b c", "keel keel keel", "Keel", "a-b", "the", "keels"]), papers(TEXTS)
    )


def test_terms_with_one_hash_are_scored_by_the_plain_path() -> None:
    pytest.importorskip("numba")
    model = scorer(["keel", "oven", "keel"])
    plain = by(model, papers(TEXTS), fast=False)
    np.testing.assert_array_equal(by(model, papers(TEXTS), fast=True), plain)
    assert model._fast is None


def test_arrays_that_do_not_fit_are_refused() -> None:
    pytest.importorskip("numba")
    model = scorer()
    model.vocabulary = [*VOCABULARY, "more", "than", "weights"]
    with pytest.raises(ValueError, match="broadcast"):
        by(model, papers(TEXTS), fast=True)


def test_without_numba_the_plain_path_gives_the_scores(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = by(scorer(), papers(TEXTS), fast=False)
    monkeypatch.delitem(sys.modules, "abstag.classifiers._fast", raising=False)
    monkeypatch.delattr("abstag.classifiers._fast", raising=False)
    monkeypatch.setitem(sys.modules, "numba", None)
    model = scorer()
    np.testing.assert_array_equal(by(model, papers(TEXTS), fast=True), plain)
    assert model._fast is None


def test_compiled_code_takes_over_after_many_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    model = scorer()
    used: list[int] = []

    def fast(documents: Documents) -> FloatArray:
        used.append(len(documents))
        return np.zeros((len(documents), 3))

    monkeypatch.setitem(model.__dict__, "_fast", Compiled(fast, fast))
    model.fast_from = 10
    for size in (4, 5, 1, 6):
        model(papers(["keel"] * size))
    assert used == [1, 6]


def test_few_texts_import_no_numba() -> None:
    code = (
        "import sys, numpy as np; from abstag.classifiers.scorers import LinearScorer; "
        "from abstag.records import Documents; "
        "model = LinearScorer(['keel'], np.ones(1), np.ones((1, 1)), np.zeros(1), 1); "
        "[model(Documents(['p'] * 256, ['keel'] * 256, [''] * 256)) for _ in range(4)]; "
        "print('numba' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "False\n"


def test_code_is_compiled_where_no_folder_can_keep_it() -> None:
    pytest.importorskip("numba")
    code = (
        "from numba.core import caching\n"
        "def refuse(self): raise PermissionError(self.get_cache_path())\n"
        "caching._CacheLocator.ensure_cache_path = refuse\n"
        "from abstag.classifiers import _fast\n"
        "print(_fast._step(_fast._START, _fast._PAIR) > 0)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.stdout == "True\n", ran.stderr


def test_threads_share_a_scorer() -> None:
    pytest.importorskip("numba")
    model, documents = scorer(), papers(TEXTS * 50)
    expected = by(model, documents, fast=True)
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(model, [documents] * 12):
            np.testing.assert_array_equal(found, expected)
