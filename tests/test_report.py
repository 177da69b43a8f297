"""Tables that people read say what was measured, on what, and nothing that is not so."""

import dataclasses
import math
import re
from typing import Any

import pytest

from abstag.report.table import evaluation_table, failures, markdown, number, pairs_table, runs_table
from tests.conftest import make_result


def with_f1(run: str, value: float | None, **changes: Any) -> Any:
    result = make_result(run, **changes)
    part = result.parts["all"] | {"macro_f1": value}
    return dataclasses.replace(result, parts=dict.fromkeys(changes.get("named", ("all",)), part))


@pytest.mark.parametrize(
    ("value", "options", "text"),
    [
        (0.12345, {}, "0.123"),
        (0.5, {"sign": True}, "+0.500"),
        (-0.5, {"sign": True}, "-0.500"),
        (12.6, {"digits": 0}, "13"),
        (None, {}, "–"),
        (math.nan, {"sign": True}, "–"),
    ],
)
def test_numbers(value: float | None, options: dict[str, Any], text: str) -> None:
    assert number(value, **options) == text


def test_markdown_pads_and_rules() -> None:
    assert markdown(["a", "long"], [["xyz", "1"]]) == "| a   | long |\n| --- | ---- |\n| xyz | 1    |"
    assert markdown(["a"], []) == "| a |\n| - |"


def test_runs_best_first_undefined_last_and_unfinished_left_out() -> None:
    runs = [
        with_f1("low-1", 0.2),
        with_f1("undefined-1", None),
        with_f1("high-1", 0.9),
        make_result("broken-1", status="failed"),
    ]
    table = runs_table(runs)
    names = [line.split("|")[1].strip() for line in table.splitlines() if line.startswith("|")][2:]
    assert names == ["high", "low", "undefined"]
    assert "0.900" in table
    assert "[0.400, 0.600]" in table
    assert "–" in table
    assert "looks at these test rows so far: 1" in table
    assert "so far: 7" in runs_table(runs, looks=7)


def test_no_run_is_said() -> None:
    assert runs_table([]) == runs_table([make_result("a-1", status="failed")]) == "no finished run"
    assert failures([]) == "no failed run"
    assert failures([make_result("a-1", status="failed", error="boom")]) == "a-1: boom"


def test_parts_have_their_own_table_with_their_numbers() -> None:
    table = runs_table([with_f1("a-1", 0.7), with_f1("b-1", 0.6)])
    assert "by part" not in table
    part = make_result().parts["all"]
    parted = {"all": part, "iclr-test": part | {"n": 12, "macro_f1": 0.75}}
    table = runs_table([make_result("a-1", parts=parted), make_result("b-1", parts=parted)])
    assert "macro-F1 by part:" in table
    assert "iclr-test (n=12)" in table
    assert "0.750 [0.400, 0.600]" in table


def test_runs_of_one_classifier_are_named_by_what_differs() -> None:
    configs = [{"classifier": {"C": c, "same": 1}, "seed": c, "name": str(c)} for c in (1, 10)]
    table = runs_table([make_result(f"svm-{n}", config=config) for n, config in enumerate(configs)])
    assert "svm C=1 " in table
    assert "svm C=10 " in table
    assert "same" not in table


def test_names_show_own_settings_and_none_that_a_run_lacks() -> None:
    configs = [{"split": {"_target_": "KFold", "folds": 5}}, {"split": {"_target_": "Fixed", "test_parts": ["test"]}}]
    table = runs_table([make_result(f"svm-{n}", config=config) for n, config in enumerate(configs)])
    assert "folds=5" in table
    assert "None" not in table


def test_runs_on_other_papers_are_not_passed_off_as_runs_on_the_same() -> None:
    other = {"name": "other", "fingerprint": "beef"}
    part = make_result().parts["all"] | {"n": 999, "macro_f1": 0.1}
    table = runs_table([make_result("a-1"), make_result("b-1", corpus=other, parts={"all": part})])
    assert "f00d" in table
    assert "beef" in table, "b-1 is listed as measured on the corpus of a-1"


def test_pairs_table_says_how_to_read_it() -> None:
    pair = {
        "a": "x",
        "b": "y",
        "metric": "macro_f1",
        "part": "all",
        "n": 80,
        "difference": 0.1,
        "low": -0.05,
        "high": math.nan,
        "p": 0.01,
        "p_holm": 0.0312,
        "verdict": "a_better",
        "text": "x better",
        "differs_in": [],
        "detectable": 0.07,
        "decides": True,
        "needed": None,
        "untested": {"ece": {"difference": -0.02, "low": -0.03, "high": 0.0}},
        "discordant": 31,
        "seeds": {"test": "paired t", "difference": 0.09, "low": 0.01, "high": 0.17, "p": 0.00002},
    }
    area = pair | {"metric": "f1/b", "untested": {}, "seeds": None, "verdict": "too_few", "text": "too few: 9"}
    table = pairs_table([pair, pair | {"metric": "micro_f1", "untested": {}, "seeds": None}, area])
    assert "| x | y | all  | 80 | 31        | +0.100 | [-0.050, –]" in table
    assert "| 0.070      | x better |" in table
    assert "| a | b | micro-F1 | F1 b | ECE |" in re.sub(" +", " ", table)
    assert "| x | y | +0.100 [-0.050, –]* | too few | -0.020 [-0.030, +0.000] |" in re.sub(" +", " ", table)
    assert "test papers: x − y +0.090 [+0.010, +0.170], p < 0.0001 (paired t, unadjusted)." in table
    assert "0.0312" in table
    assert "x better" in table
    assert "Intervals are unadjusted; verdicts follow the p-values adjusted by Holm over the pairs." in table
    assert "Conditional on these trained models and this training set." in table


def test_evaluation_table() -> None:
    area = {"n": 30, "positives": 4, "precision": 0.5, "recall": math.nan, "f1": 0.25, "average_precision": 0.125}
    found = {
        "scored": 30,
        "left_out": 2,
        "metrics": {"areas": {"llm": area}, "macro_f1": 0.25, "interval": [0.1, 0.4], "ece": 0.05},
    }
    table = evaluation_table(found)
    assert "| llm  | 30 | 4         | 0.500     | –      | 0.250 | 0.125 |" in table
    assert "macro-F1 0.250 [0.100, 0.400], ECE 0.050; 30 papers scored, 2 left out because" in table
