"""Metrics: agreement with scikit-learn, unknown cells, undefined values."""

import math
from collections.abc import Callable
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn import metrics as sk

from abstag import metrics
from abstag.metrics import AREA_METRICS, METRICS, Scored, evaluate
from abstag.records import BoolArray, IntArray

AREAS = ("vision", "language", "theory")


def make_scored(seed: int, *, n: int = 60, known: float = 1.0, digits: int = 1) -> Scored:
    """Return random papers; scores of few digits have ties."""
    rng = np.random.default_rng(seed)
    gold = rng.random((n, 3)) < 0.3
    scores = np.round(0.4 * gold.astype(np.float64) + 0.6 * rng.random((n, 3)), digits)
    tags = scores >= 0.5
    return Scored(gold, rng.random((n, 3)) < known, scores, tags, np.abs(scores - 0.5).min(axis=1))


def single(gold: list[int], tags: list[int]) -> Scored:
    """Return papers of one area, all known, most confident first."""
    truth, tagged = np.array(gold, dtype=np.bool_)[:, None], np.array(tags, dtype=np.bool_)[:, None]
    confidence = np.linspace(1, 0, len(gold))
    return Scored(truth, np.ones_like(truth), tagged.astype(np.float64), tagged, confidence)


SKLEARN: dict[str, Callable[[Scored], float]] = {
    "macro_f1": lambda s: sk.f1_score(s.gold, s.tags, average="macro", zero_division=np.nan),
    "micro_f1": lambda s: sk.f1_score(s.gold, s.tags, average="micro", zero_division=np.nan),
    "sample_f1": lambda s: sk.f1_score(s.gold, s.tags, average="samples", zero_division=1),
    "macro_average_precision": lambda s: sk.average_precision_score(s.gold, s.scores, average="macro"),
    "macro_roc_auc": lambda s: sk.roc_auc_score(s.gold, s.scores, average="macro"),
    "subset_accuracy": lambda s: sk.accuracy_score(s.gold, s.tags),
    "hamming_loss": lambda s: sk.hamming_loss(s.gold, s.tags),
    "brier": lambda s: sk.brier_score_loss(s.gold.ravel(), s.scores.ravel()),
}


@pytest.mark.parametrize("name", SKLEARN)
@settings(max_examples=25)
@given(seed=st.integers(0, 10_000))
def test_agrees_with_scikit_learn(name: str, seed: int) -> None:
    scored = make_scored(seed)
    assume(scored.gold.any(axis=0).all())
    assert METRICS[name](scored) == pytest.approx(SKLEARN[name](scored), abs=1e-12)


def test_only_the_two_of_our_own_are_not_compared_with_scikit_learn() -> None:
    assert set(METRICS) - set(SKLEARN) == {"ece", "automation_95"}


@settings(max_examples=25)
@given(seed=st.integers(0, 10_000), digits=st.integers(0, 3))
def test_area_metrics_agree_with_scikit_learn_on_known_cells(seed: int, digits: int) -> None:
    scored = make_scored(seed, known=0.7, digits=digits)
    for number, row in enumerate(evaluate(scored, AREAS)["areas"].values()):
        known = scored.known[:, number]
        gold, scores, tags = (cells[known, number] for cells in (scored.gold, scored.scores, scored.tags))
        assume(bool(gold.any() and not gold.all() and tags.any()))
        expected = {
            "n": known.sum(),
            "positives": gold.sum(),
            "predicted": tags.sum(),
            "precision": sk.precision_score(gold, tags),
            "recall": sk.recall_score(gold, tags),
            "f1": sk.f1_score(gold, tags),
            "average_precision": sk.average_precision_score(gold, scores),
            "roc_auc": sk.roc_auc_score(gold, scores),
            "brier": sk.brier_score_loss(gold, scores),
        }
        assert row == pytest.approx(expected, abs=1e-12)


@settings(max_examples=25)
@given(seed=st.integers(0, 10_000), known=st.sampled_from([0.0, 0.3, 0.9]))
def test_unknown_cells_change_nothing(seed: int, known: float) -> None:
    scored = make_scored(seed, known=known)
    other = np.random.default_rng(seed + 1).random(scored.gold.shape)
    disturbed = replace(
        scored,
        gold=np.where(scored.known, scored.gold, other < 0.5),
        tags=np.where(scored.known, scored.tags, other > 0.3),
        scores=np.where(scored.known, scored.scores, other),
    )
    np.testing.assert_equal(evaluate(disturbed, AREAS), evaluate(scored, AREAS))


@pytest.mark.parametrize("name", METRICS)
def test_papers_without_a_known_cell_change_nothing(name: str) -> None:
    scored = make_scored(3, known=0.5)
    judged = np.flatnonzero(scored.known.any(axis=1))
    assert len(judged) < len(scored)
    assert METRICS[name](scored) == pytest.approx(METRICS[name](scored[judged]), abs=1e-12)


@pytest.mark.parametrize("name", METRICS)
@settings(max_examples=25)
@given(seed=st.integers(0, 10_000))
def test_the_order_of_papers_changes_nothing(name: str, seed: int) -> None:
    scored = make_scored(seed, known=0.8)
    order = np.random.default_rng(seed).permutation(len(scored))
    assert METRICS[name](scored[order]) == pytest.approx(METRICS[name](scored), abs=1e-12, nan_ok=True)


@pytest.mark.parametrize("name", METRICS)
def test_ranges_and_perfection(name: str) -> None:
    scored = make_scored(1)
    perfect = replace(scored, tags=scored.gold, scores=scored.gold.astype(np.float64))
    best = 0.0 if name in {"hamming_loss", "brier", "ece"} else 1.0
    assert METRICS[name](perfect) == best
    assert 0 <= METRICS[name](scored) <= 1


def test_no_papers_are_nan_never_zero() -> None:
    values = evaluate(make_scored(0)[np.array([], dtype=np.intp)], AREAS)
    assert values["n"] == values["macro_f1_areas"] == 0
    assert all(math.isnan(values[name]) for name in METRICS)
    assert all(math.isnan(row[name]) for row in values["areas"].values() for name in AREA_METRICS)
    assert all(row["n"] == 0 for row in values["areas"].values())


def test_no_known_cells_are_nan_never_zero() -> None:
    values = evaluate(make_scored(0, known=0.0), AREAS)
    assert values["n"] == 60
    assert all(math.isnan(values[name]) for name in METRICS)


def test_evaluate_names_every_metric_and_counts_areas() -> None:
    scored = make_scored(2)
    bare = replace(scored, gold=scored.gold & [True, True, False], tags=scored.tags & [True, True, False])
    values = evaluate(bare, AREAS)
    assert set(values) == {"n", "macro_f1_areas", "areas", *METRICS}
    assert values["macro_f1_areas"] == 2
    assert values["macro_f1"] == pytest.approx(np.mean([values["areas"][area]["f1"] for area in AREAS[:2]]))
    assert all(set(row) == {"n", "positives", "predicted", *AREA_METRICS} for row in values["areas"].values())


def test_evaluate_refuses_another_number_of_areas() -> None:
    with pytest.raises(ValueError, match="zip"):
        evaluate(make_scored(2), AREAS[:2])


@pytest.mark.parametrize(
    ("gold", "tags", "expected"),
    [
        ([0, 0], [0, 0], {"precision": math.nan, "recall": math.nan, "f1": math.nan, "roc_auc": math.nan}),
        ([1, 0], [0, 0], {"precision": math.nan, "recall": 0.0, "f1": 0.0, "roc_auc": 0.5, "average_precision": 0.5}),
        ([0, 0], [1, 0], {"precision": 0.0, "recall": math.nan, "f1": 0.0, "average_precision": math.nan}),
        ([1, 1], [1, 1], {"precision": 1.0, "recall": 1.0, "f1": 1.0, "roc_auc": math.nan, "average_precision": 1.0}),
    ],
    ids=["nothing", "all missed", "only false", "all positive"],
)
def test_undefined_area_metrics(gold: list[int], tags: list[int], expected: dict[str, float]) -> None:
    row = evaluate(single(gold, tags), ["area"])["areas"]["area"]
    np.testing.assert_equal({name: row[name] for name in expected}, expected)


def test_sample_f1_of_a_paper_rightly_left_untagged_is_one() -> None:
    assert METRICS["sample_f1"](single([0, 1, 1], [0, 1, 0])) == pytest.approx(2 / 3)


@settings(max_examples=25)
@given(seed=st.integers(0, 10_000))
def test_counts_add_up_to_f1(seed: int) -> None:
    scored = make_scored(seed, known=0.7)
    counted = metrics.counts(scored)
    assert counted.shape == (60, 3, 3)
    assert not counted[~scored.known].any()
    expected = [row["f1"] for row in evaluate(scored, AREAS)["areas"].values()]
    assert metrics.f1(counted.sum(axis=0)).tolist() == pytest.approx(expected, nan_ok=True)


def test_f1_from_counts_takes_leading_axes() -> None:
    counted = np.array([[[2, 1, 1], [0, 0, 0]], [[0, 0, 3], [1, 0, 0]]])
    assert metrics.f1(counted).ravel().tolist() == pytest.approx([2 / 3, math.nan, 0, 1], nan_ok=True)
    np.testing.assert_allclose(metrics.macro_f1(counted), [2 / 3, 0.5])
    np.testing.assert_allclose(metrics.micro_f1(counted), [2 / 3, 0.4])
    assert np.isnan(metrics.macro_f1(np.zeros((2, 3))))


def test_ece_by_hand() -> None:
    gold = np.array([[1], [0], [1], [1]], dtype=np.bool_)
    scores = np.array([[0.15], [0.11], [0.95], [1.0]])
    scored = Scored(gold, np.ones_like(gold), scores, scores >= 0.5, np.ones(4))
    assert METRICS["ece"](scored) == pytest.approx(0.5 * abs(0.5 - 0.13) + 0.5 * abs(1 - 0.975))


def test_ece_of_calibrated_scores_is_small() -> None:
    rng = np.random.default_rng(0)
    scores = rng.random((20_000, 2))
    gold = rng.random(scores.shape) < scores
    assert METRICS["ece"](Scored(gold, np.ones_like(gold), scores, scores >= 0.5, scores[:, 0])) < 0.01


def test_automation_takes_the_largest_share_not_the_first_drop() -> None:
    gold = np.ones(40, dtype=int)
    tags = gold.copy()
    tags[[0, 30, 31]] = 0
    assert METRICS["automation_95"](single(gold.tolist(), tags.tolist())) == 30 / 40


def test_automation_takes_ties_together() -> None:
    scored = single([1] * 20, [1] * 10 + [0] * 10)
    assert METRICS["automation_95"](scored) == 0.5
    tied = replace(scored, confidence=np.ones(20))
    assert METRICS["automation_95"](tied) == 0.0


@pytest.mark.parametrize("rows", [np.array([4, 0]), np.arange(60) % 2 == 0], ids=["numbers", "mask"])
def test_rows_of_scored(rows: IntArray | BoolArray) -> None:
    scored = make_scored(5, known=0.8)
    taken = scored[rows]
    assert len(taken) == len(np.arange(60)[rows])
    for item in fields(Scored):
        np.testing.assert_array_equal(getattr(taken, item.name), getattr(scored, item.name)[rows])
