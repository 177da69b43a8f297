"""The tidy table: a row a run and part, settings that vary as columns, the same in every format."""

import io
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from abstag.cli import main
from abstag.report.runs import FORMATS
from abstag.store import Store
from abstag.tidy import rows
from tests.conftest import Go, make_result

BRIEF = {"n": 80, "macro_f1": 0.5, "micro_f1": 0.5}


def configured(run: str, **changes: Any) -> Any:
    config = {"classifier": {"_target_": "x", "C": 1.0}, "name": "demo", "seed": 0, "data": {"limit": None}}
    return make_result(run, config=config | changes)


def test_a_row_for_each_run_and_part() -> None:
    part = make_result().parts["all"]
    table = rows([make_result("a-1", parts={"all": part, "test": part | {"n": 7}}), make_result("b-1")])
    assert [(row["run"], row["part"], row["n"]) for row in table] == [
        ("a-1", "all", 80),
        ("a-1", "test", 7),
        ("b-1", "all", 80),
    ]
    assert (table[0]["macro_f1_low"], table[0]["macro_f1_high"]) == (0.4, 0.6)
    assert (table[0]["fit_seconds"], table[0]["peak_mb"], table[0]["training_papers"]) == (1.5, 200.0, 10)


def test_settings_that_vary_are_columns_and_others_are_not() -> None:
    first = configured("svm-1")
    second = configured("svm-2", data={"limit": 50}, classifier={"_target_": "y", "C": 1})
    other = configured("nb-1", classifier={"_target_": "z", "alpha": 0.1})
    table = rows([first, second, other])
    assert {key for key in table[0] if "." in key} == {"data.limit"}
    assert [row["data.limit"] for row in table] == [None, 50, None]


@pytest.mark.parametrize(
    ("values", "cells"),
    [
        ([1, 0.5], [1, 0.5]),
        ([True, False], [True, False]),
        (["auto", 3], ["auto", "3"]),
        ([True, 1.5], ["true", "1.5"]),
        ([["nb", "svm"], []], ['["nb", "svm"]', "[]"]),
    ],
)
def test_a_column_of_settings_has_one_type(values: list[Any], cells: list[Any]) -> None:
    table = rows([configured(f"x-{place}", classifier={"C": value}) for place, value in enumerate(values)])
    assert [row["classifier.C"] for row in table] == cells
    assert len(pd.read_parquet(io.BytesIO(FORMATS["parquet"](table)))) == 2


def test_failed_and_undefined_are_empty() -> None:
    part = make_result().parts["all"] | {"macro_f1": float("nan"), "areas": {"a": {"f1": float("nan")}}}
    failed = make_result("nb-2", status="failed", parts={}, error="out of luck", fit_seconds=None)
    table = rows([make_result(parts={"all": part}), failed])
    assert (table[0]["macro_f1"], table[0]["f1_a"], table[0]["f1_b"]) == (None, None, None)
    assert (table[1]["part"], table[1]["n"], table[1]["error"]) == (None, None, "out of luck")
    frame = pd.read_csv(io.BytesIO(FORMATS["csv"](table)))
    assert frame["macro_f1"].isna().all()
    assert frame["status"].tolist() == ["done", "failed"]
    assert json.loads(FORMATS["json"](table)) == table


def test_tables_for_people_have_fewer_columns_and_none_that_is_empty() -> None:
    table = rows([configured("a_b-1"), configured("a_b-2", data={"limit": 50})])
    head, _, *lines = FORMATS["markdown"](table).decode().splitlines()
    assert "data.limit" in head
    assert not any(name in head for name in ("error", "hamming_loss", "command"))
    assert len(lines) == 2
    assert "| 50 " in lines[1]
    latex = FORMATS["latex"](table).decode()
    assert r"a\_b-1" in latex
    assert latex.count(r"\\") == 3
    assert r"\begin{tabular}" in latex


@pytest.mark.parametrize("form", FORMATS)
def test_formats_of_real_runs(form: str, demo_runs: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    assert main(["runs", "--runs-dir", str(demo_runs), "--format", form]) == 0
    out = capsysbinary.readouterr().out
    readers: dict[str, Any] = {"csv": pd.read_csv, "json": pd.read_json, "parquet": pd.read_parquet}
    if form not in readers:
        assert out.count(b"keywords-") == 1
        return
    frame = readers[form](io.BytesIO(out))
    results = Store(demo_runs).results()
    assert frame["run"].tolist() == [result.id for result in results for _ in result.parts]
    assert frame["macro_f1"].tolist() == pytest.approx([result.metrics["macro_f1"] for result in results], abs=1e-12)
    assert frame["n"].dtype == "int64"
    assert frame["f1_llm"].dtype == "float64"


def test_what_cannot_be_told_is_refused(tmp_path: Path, demo_runs: Path, go: Go) -> None:
    assert "no run to tell of" in go("runs", "--format", "csv", "--failed", "--runs-dir", demo_runs, code=1).err
    with pytest.raises(SystemExit):
        go("runs", "--format", "csv", "--json", "--runs-dir", demo_runs)
