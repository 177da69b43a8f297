"""Committed reports are what their committed results give, byte for byte, and README shows the same figures."""

import runpy
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = sorted(path.parent for path in ROOT.glob("experiments/*/results"))


@pytest.fixture(scope="module")
def make_report() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "experiments" / "make_report.py"))


def test_there_are_experiments() -> None:
    assert {"baselines", "choose"} <= {folder.name for folder in FOLDERS}


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_report_is_regenerated_byte_for_byte(folder: Path, make_report: dict[str, Any]) -> None:
    assert (folder / "report.md").read_text(encoding="utf-8") == make_report["report"](folder)


def test_readme_shows_the_committed_figures(make_report: dict[str, Any]) -> None:
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    assert make_report["readme_table"]() in page
    assert make_report["with_table"](page) == page


def test_baselines_ran_the_configurations_that_choose_chose(make_report: dict[str, Any]) -> None:
    """The best configuration of each classifier in cross-validation is the one whose test figures are shown."""
    chosen: dict[str, Any] = {}
    for run in make_report["runs_of"](ROOT / "experiments" / "choose"):
        if run.classifier not in chosen or run.metrics["macro_f1"] > chosen[run.classifier].metrics["macro_f1"]:
            chosen[run.classifier] = run
    shown = {run.classifier: run for run in make_report["runs_of"](ROOT / "experiments" / "baselines")}
    for classifier, run in chosen.items():
        assert run.config["classifier"] == shown[classifier].config["classifier"]
        assert run.config["data"]["weights"] == shown[classifier].config["data"]["weights"]
        assert run.corpus["fingerprint"] == shown[classifier].corpus["fingerprint"]


def test_embedded_corpus_is_as_hard_as_its_readme_says(make_report: dict[str, Any]) -> None:
    """Keyword rules good enough on ICLR are not here, and the best linear classifier leaves room."""
    here = {run.classifier: run for run in make_report["runs_of"](ROOT / "experiments" / "embedded")}
    there = {run.classifier: run for run in make_report["runs_of"](ROOT / "experiments" / "baselines")}
    assert here["keywords"].config["classifier"] == there["keywords"].config["classifier"]
    assert here["keywords"].taxonomy == there["keywords"].taxonomy
    iclr, keywords = there["keywords"].parts["iclr-test"]["macro_f1"], here["keywords"].metrics["macro_f1"]
    best = max(here[name].metrics["macro_f1"] for name in ("nb", "svm", "logreg"))
    assert iclr >= 0.70
    assert keywords <= 0.80
    assert best <= 0.95
    page = (ROOT / "experiments" / "embedded" / "README.md").read_text(encoding="utf-8")
    for figure in (iclr, keywords, best):
        assert f"{figure:.3f}" in page


def test_benchmark_tables_show_the_committed_results() -> None:
    made = runpy.run_path(str(ROOT / "benchmarks" / "make_tables.py"))
    for path in made["PAGES"]:
        assert path.read_text(encoding="utf-8") == made["page"](path)
