"""What a dump is compared with, how it is counted, and which dumps are called unlike."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import special
from scipy.stats import ks_2samp

from abstag import drift
from abstag.classifiers.base import Member
from abstag.classifiers.linear import LogReg
from abstag.classifiers.scorers import EnsembleScorer, LinearScorer, PriorScorer
from abstag.decision import Policy, fit_decision
from abstag.drift import BINS, FAR, Dump, Reference, Shift, fit_reference, shift
from abstag.errors import DataError
from abstag.records import BoolArray, Documents, FloatArray, Targets
from abstag.resources import resource
from abstag.taxonomy import load_taxonomy

OTHER = Path(__file__).parent / "dumps" / "other_sciences.jsonl"
THRESHOLDS = np.array([0.5, 0.4])


def seen(n: int, *, coverage: FloatArray | float | None = None, rate: float = 0.3, seed: int = 0) -> dict[str, Any]:
    """Return what a tagger of two areas gives for n papers, and their truth, which the probabilities describe."""
    rng = np.random.default_rng(seed)
    probabilities = np.clip(rng.beta(rate, 1 - rate, (n, 2)), 1e-6, 1 - 1e-6)
    tags = probabilities >= THRESHOLDS
    distance = np.where(
        tags, (probabilities - THRESHOLDS) / (1 - THRESHOLDS), (THRESHOLDS - probabilities) / THRESHOLDS
    )
    if coverage is None:
        coverage = rng.beta(30, 2, n)
    return {
        "probabilities": probabilities,
        "tags": tags,
        "confidence": distance.min(axis=1),
        "coverage": np.broadcast_to(coverage, (n,)).astype(np.float64),
        "values": rng.random((n, 2)) < probabilities,
        "known": rng.random((n, 2)) < 0.9,
    }


def counted(reference: Reference, papers: dict[str, Any], *, batch: int = 1000) -> Dump:
    dump = Dump(reference)
    columns = [papers[name] for name in ("probabilities", "tags", "confidence", "coverage")]
    for start in range(0, len(columns[0]), batch):
        dump.add(*(column[start : start + batch] for column in columns))
    return dump


TRAINING = seen(2000)
REFERENCE = fit_reference(**TRAINING)


def compared(**given: Any) -> Shift:
    return shift(counted(REFERENCE, seen(given.pop("n", 500), seed=7, **given)))


def test_a_reference_says_what_was_seen() -> None:
    tags, known, right = TRAINING["tags"], TRAINING["known"], TRAINING["tags"] == TRAINING["values"]
    assert REFERENCE.papers == 2000
    np.testing.assert_allclose(REFERENCE.tag_rates, tags.sum(axis=0) / 2000)
    assert REFERENCE.tagged == tags.any(axis=1).sum() / 2000
    assert REFERENCE.precision == pytest.approx((tags & known & right).sum() / (tags & known).sum())
    assert REFERENCE.coverage.mean == pytest.approx(TRAINING["coverage"].mean())
    judged = known.any(axis=1)
    exact = (right | ~known).all(axis=1)
    for number in range(BINS):
        inside = judged & (TRAINING["confidence"] >= number / BINS) & (TRAINING["confidence"] < (number + 1) / BINS)
        assert REFERENCE.right[number] == pytest.approx(exact[inside].mean())


def test_few_training_papers_are_far_off_and_no_paper_without_a_vocabulary() -> None:
    far = REFERENCE.far_off(TRAINING["coverage"])
    assert 0 < far.sum() <= FAR * 2000
    assert TRAINING["coverage"][far].max() < TRAINING["coverage"][~far].min()
    assert not REFERENCE.far_off(np.full(3, np.nan)).any()
    blind = fit_reference(**seen(100, coverage=np.nan))
    assert not blind.far_off(np.zeros(3)).any()


@pytest.mark.parametrize("coverage", [None, np.nan, 1.0])
def test_a_reference_survives_json(coverage: float | None) -> None:
    before = fit_reference(**seen(60, coverage=coverage))
    after = Reference.from_dict(json.loads(json.dumps(before.to_dict(), allow_nan=False)))
    assert after.to_dict() == before.to_dict()
    given = seen(40, seed=3, coverage=coverage)
    assert shift(counted(after, given)).to_dict() == shift(counted(before, given)).to_dict()
    assert len(json.dumps(before.to_dict())) < 20_000


@pytest.mark.parametrize("change", [{"right": [0.5]}, {"top": {}}, {"papers": None}, {"tag_rates": "many"}, {"new": 1}])
def test_a_damaged_reference_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(DataError, match="damaged"):
        Reference.from_dict(REFERENCE.to_dict() | change)
    with pytest.raises(DataError, match="damaged"):
        Reference.from_dict({name: value for name, value in REFERENCE.to_dict().items() if name != "far"})


def test_batches_do_not_matter() -> None:
    papers = seen(777, seed=5)
    whole = shift(counted(REFERENCE, papers)).to_dict()
    for batch in (1, 64):
        for name, value in shift(counted(REFERENCE, papers, batch=batch)).to_dict().items():
            assert value == (whole[name] if isinstance(value, str) else pytest.approx(whole[name], rel=1e-9)), name


@pytest.mark.parametrize("n", [30, 400])
def test_distances_are_those_of_kolmogorov_and_smirnov(n: int) -> None:
    papers = seen(n, seed=9, rate=0.2, coverage=np.random.default_rng(9).beta(20, 2, n))
    found = shift(counted(REFERENCE, papers))
    tops = [given["probabilities"].max(axis=1) for given in (papers, TRAINING)]
    for exact, distance, p in (
        (
            ks_2samp(papers["coverage"], TRAINING["coverage"], "greater", method="asymp"),
            found.coverage_distance,
            found.coverage_p,
        ),
        (ks_2samp(tops[0], tops[1], method="asymp"), found.score_distance, found.score_p),
    ):
        assert exact.statistic - 0.011 <= distance <= exact.statistic + 1e-12
        assert p >= exact.pvalue / 2  # scipy corrects the one-sided p for small samples


def test_equal_values_are_no_distance() -> None:
    reference = fit_reference(**seen(300, coverage=1.0))
    assert shift(counted(reference, seen(300, seed=1, coverage=1.0))).coverage_distance == 0
    assert shift(counted(reference, seen(300, seed=1, coverage=0.9))).coverage_distance == 1


def test_papers_like_those_of_training_are_called_alike() -> None:
    for n in (1, 5, 50, 2000):
        found = compared(n=n)
        assert found.verdict == "alike"
        assert found.sentence.startswith("These papers are like the training papers: 9")
    assert compared(n=2000, coverage=1.0).verdict == "alike"  # all words known is no worse than in training


def test_papers_with_fewer_known_words_are_shifted_then_unlike() -> None:
    rng = np.random.default_rng(2)
    shifted = compared(coverage=rng.beta(30, 2.6, 500))
    assert shifted.verdict == "shifted"
    assert "differ somewhat" in shifted.sentence
    unlike = compared(coverage=0.41)
    assert unlike.verdict == "unlike"
    assert unlike.far_off == 500
    assert "unlike the training papers: 41 % of their words are known (training: 94 %); trust the tags less" in (
        unlike.sentence
    )


def test_a_fifth_of_far_off_papers_is_enough_but_one_paper_is_not() -> None:
    few, many = (np.where(np.arange(500) < number, 0.2, REFERENCE.coverage.edges[60]) for number in (20, 100))
    assert compared(coverage=few).verdict != "unlike"
    assert compared(coverage=many).verdict == "unlike"
    assert compared(n=1, coverage=0.1).verdict == "alike"
    assert compared(n=1, coverage=0.1).far_off == 1
    assert compared(n=2, coverage=0.1).verdict == "unlike"


def test_other_scores_are_said_and_decide_nothing() -> None:
    found = compared(rate=0.05)
    assert found.verdict == "alike"
    assert found.score_distance > 0.3
    assert f"{found.tagged:.0%}".replace("%", " % of them are tagged") in found.sentence
    assert "tagged" not in compared().sentence


def test_without_a_vocabulary_or_papers_nothing_is_claimed() -> None:
    blind = shift(counted(fit_reference(**seen(200, coverage=np.nan)), seen(90, coverage=np.nan)))
    assert blind.verdict == "unknown"
    assert "no vocabulary" in blind.sentence
    nothing = shift(Dump(REFERENCE))
    assert nothing.verdict == "unknown"
    assert nothing.papers == 0
    assert "no papers" in nothing.sentence
    assert nothing.to_dict()["expected_precision"] is None


def test_expectations_come_true_where_probabilities_hold() -> None:
    papers = seen(4000, seed=11)
    found, tags = shift(counted(REFERENCE, papers)), papers["tags"]
    right = tags == papers["values"]
    assert found.expected_precision == pytest.approx((tags & right).sum() / tags.sum(), abs=0.02)
    assert found.expected_right == pytest.approx((right | ~papers["known"]).all(axis=1).mean(), abs=0.03)


def test_nan_and_nothing_are_refused() -> None:
    papers = seen(5)
    papers["probabilities"][2, 1] = np.nan
    with pytest.raises(DataError, match="NaN"):
        counted(REFERENCE, papers)
    with pytest.raises(DataError, match="NaN"):
        fit_reference(**papers)
    with pytest.raises(DataError, match="no held-out paper"):
        fit_reference(**seen(0))


def linear(words: list[str]) -> LinearScorer:
    size = len(words)
    return LinearScorer(words, np.ones(size), np.zeros((2, size)), np.zeros(2), 3)


DOCUMENTS = Documents(["a", "b", "c"], ["Sails and rudders", "", ""], ["The rudder of a keelboat.", "Mutiny", "of the"])


def test_coverage_is_the_share_of_words_that_the_vocabulary_knows() -> None:
    found = linear(["sail", "rudder", "rudder keelboat"]).coverage(DOCUMENTS)
    np.testing.assert_allclose(found, [3 / 4, 0, 0])
    assert found.dtype == np.float64
    assert linear(["sail"]).coverage(Documents([], [], [])).shape == (0,)


def test_scorers_without_a_vocabulary_know_no_coverage() -> None:
    prior, one = PriorScorer(np.zeros(2)), np.ones(2)
    assert np.isnan(prior.coverage(DOCUMENTS)).all()
    members = [Member(scorer, one, one) for scorer in (prior, linear(["sail", "rudder"]), linear(["rudder"]))]
    np.testing.assert_allclose(EnsembleScorer(members).coverage(DOCUMENTS)[0], (3 / 4 + 2 / 4) / 2)
    assert np.isnan(EnsembleScorer(members[:1]).coverage(DOCUMENTS)).all()


def read(path: Path) -> tuple[Documents, list[dict[str, Any]]]:
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return Documents(*([row[name] for row in rows] for name in ("id", "title", "abstract"))), rows


def test_abstracts_of_other_sciences_are_unlike_machine_learning_and_further_ones_are_not() -> None:
    taxonomy = load_taxonomy()
    documents, rows = read(resource("data/corpus/abstracts.jsonl"))
    order = np.random.default_rng(0).permutation(len(rows))
    train, held, fresh = np.split(order, [len(rows) // 2, len(rows) * 3 // 4])
    values = np.array([[area in row["areas"] for area in taxonomy.ids] for row in rows])
    targets = Targets(values, np.ones_like(values), np.ones(values.shape))
    scorer = LogReg().fit(documents[train], targets[train], taxonomy=taxonomy).scorer_
    scores = scorer(documents[held])
    decision = fit_decision(scores, values[held], targets.known[held], Policy())

    def given(papers: Documents) -> tuple[FloatArray, BoolArray, FloatArray, FloatArray]:
        probabilities = decision.probabilities(scorer(papers))
        confidence = decision.confidence(probabilities).min(axis=1)
        return probabilities, decision.tags(probabilities), confidence, scorer.coverage(papers)

    reference = fit_reference(*given(documents[held]), values[held], targets.known[held])
    alike, unlike = Dump(reference), Dump(reference)
    alike.add(*given(documents[fresh]))
    others, sciences = read(OTHER)
    unlike.add(*given(others))
    assert shift(alike).verdict == "alike"
    assert shift(alike).far_off <= 3  # of 132; by chance 1 of 133 lies below the lowest of 132
    assert len({row["science"] for row in sciences}) == 4
    assert shift(unlike).verdict == "unlike"
    assert shift(unlike).far_off >= 30  # of 32


@pytest.mark.parametrize("x", [0.0, 0.1, 0.2, 0.3, 0.5, 0.8, 1.0, 1.36, 2.0, 5.0])
def test_kolmogorov_distribution_agrees_with_scipy(x: float) -> None:
    assert drift._kolmogorov(x) == pytest.approx(special.kolmogorov(x), abs=1e-11)
