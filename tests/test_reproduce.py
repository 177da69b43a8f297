"""A run done again: identical, within rounding, or different and where; what cannot be the same is refused before."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from abstag.corpus import load_corpus
from abstag.files import read_json, write_json
from abstag.reproduce import compared
from abstag.store import Store, load_result, read_scores, write_scores
from tests.conftest import SHORT, Go, make_result, make_scores
from tests.test_contracts import check

ROOT = Path(__file__).parents[1]
COMMITTED = ROOT / "experiments" / "embedded" / "results"


@pytest.fixture
def kept(demo_runs: Path, tmp_path: Path) -> Path:
    """A copy of the run folder of the keyword rules."""
    return Path(shutil.copytree(Store(demo_runs).find("keywords"), tmp_path / "kept"))


def change(folder: Path, **values: Any) -> None:
    write_json(folder / "result.json", read_json(folder / "result.json") | values)


def with_macro_f1(folder: Path, by: float) -> dict[str, Any]:
    parts: dict[str, Any] = read_json(folder / "result.json")["parts"]
    parts["all"]["macro_f1"] += by
    return parts


@pytest.mark.parametrize("name", ["keywords", "nb"])  # other tests leave a second "prior"
def test_run_of_the_store_is_identical(name: str, demo_runs: Path, embedded: Path, go: Go) -> None:
    ran = go("reproduce", name, f"data.path={embedded}", "--runs-dir", demo_runs, code=0)
    assert ran.out == f"{Store(demo_runs).find(name).name}: identical\n"


def test_nothing_is_written_into_the_store(demo_runs: Path, embedded: Path, go: Go) -> None:
    before = {path: path.stat().st_mtime_ns for path in demo_runs.rglob("*")}
    go("reproduce", "nb", f"data.path={embedded}", "--runs-dir", demo_runs, code=0)
    assert {path: path.stat().st_mtime_ns for path in demo_runs.rglob("*")} == before


def test_within_rounding(kept: Path, embedded: Path, go: Go) -> None:
    change(kept, parts=with_macro_f1(kept, 1e-9))
    ran = go("reproduce", kept, f"data.path={embedded}", code=0)
    assert ran.out.endswith(": within 1e-6 (largest difference 1.0e-09, parts.all.macro_f1)\n")


def test_different_says_where_and_which_versions_differ(kept: Path, embedded: Path, go: Go) -> None:
    versions = load_result(kept).versions
    change(kept, parts=with_macro_f1(kept, 0.01), versions=versions | {"numpy": "1.0", "gone": "2"})
    ran = go("reproduce", kept, f"data.path={embedded}", code=1)
    assert ": different\n  parts.all.macro_f1: was 0." in ran.out
    assert ran.out.endswith(f"  versions that differ: numpy 1.0 → {np.__version__}, gone 2 → none\n")
    (found,) = json.loads(go("reproduce", kept, f"data.path={embedded}", "--json", code=1).out)
    check("reproduce", [found])
    assert found["verdict"] == "different"
    assert [item["where"] for item in found["differences"]] == ["parts.all.macro_f1"]
    assert found["differences"][0]["by"] == pytest.approx(0.01)
    assert found["versions"] == {"numpy": {"was": "1.0", "now": np.__version__}, "gone": {"was": "2", "now": None}}


def test_scores_of_papers_are_compared_where_they_are_kept(kept: Path, embedded: Path, go: Go) -> None:
    scores = read_scores(kept)
    moved = scores.scores.copy()
    moved[3, 1] = 1 - moved[3, 1]
    write_scores(kept / "scores.parquet", replace(scores, scores=moved))
    ran = go("reproduce", kept, f"data.path={embedded}", code=1)
    assert f"  scores of paper {scores.ids[3]} in {scores.areas[1]}: was " in ran.out
    (kept / "scores.parquet").unlink()
    assert ": identical" in go("reproduce", kept, f"data.path={embedded}", code=0).out


def test_folder_of_result_files(kept: Path, demo_runs: Path, embedded: Path, tmp_path: Path, go: Go) -> None:
    folder = tmp_path / "results"
    folder.mkdir()
    for name in ("nb", "keywords"):
        shutil.copy(Store(demo_runs).find(name) / "result.json", folder / f"{name}.json")
    write_json(folder / "compare-all.json", {"runs": []})
    ran = go("reproduce", folder, f"data.path={embedded}", code=0)
    assert [line.partition("-")[0] for line in ran.out.splitlines()] == ["keywords", "nb"]
    assert ": identical" in go("reproduce", folder / "nb.json", f"data.path={embedded}", code=0).out


def test_members_are_those_of_the_store(embedded: Path, tmp_path: Path, go: Go) -> None:
    runs = tmp_path / "runs"
    place = [f"data.path={embedded}", f"runs_dir={runs}", "split=holdout", "decision=holdout", "decision.holdout=0.3"]
    go("run", "-m", "classifier=prior,keywords", *place, code=0)
    go("run", "classifier=ensemble", "classifier.runs=[prior,keywords]", *place, code=0)
    ran = go("reproduce", "ensemble", f"data.path={embedded}", "--runs-dir", runs, code=0)
    assert ": identical" in ran.out
    shutil.rmtree(Store(runs).find("prior"))
    ran = go("reproduce", "ensemble", f"data.path={embedded}", "--runs-dir", runs, code=1)
    assert "no finished runs of 'prior'" in ran.err


def test_scores_file_has_to_be_the_very_one(embedded: Path, tmp_path: Path, go: Go) -> None:
    corpus = load_corpus(embedded)
    rng, file, runs = np.random.default_rng(0), tmp_path / "scores.csv", tmp_path / "runs"
    rows = [f"{name},{area},{rng.random():.3f}" for name in corpus.documents.ids for area in corpus.taxonomy.ids]
    file.write_text("\n".join(["id,area,score", *rows]) + "\n", encoding="utf-8")
    places = (f"data.path={embedded}", f"classifier.path={file}")
    go("run", "classifier=scores", *places, f"runs_dir={runs}", *SHORT, code=0)
    again = ("reproduce", "--runs-dir", runs, "scores", places[0])
    assert ": identical" in go(*again, places[1], code=0).out
    assert "no file is named; classifier.path=SCORES.csv" in go(*again, code=1).err
    file.write_text("\n".join(["id,area,score", *rows[::-1]]) + "\n", encoding="utf-8")
    assert "this file has another; name the very file" in go(*again, places[1], code=1).err


def test_other_corpus_is_refused_with_both_fingerprints(kept: Path, parted: Path, embedded: Path, go: Go) -> None:
    ran = go("reproduce", kept, f"data.path={parted}", code=1)
    for folder in (embedded, parted):
        assert read_json(folder / "manifest.json")["fingerprint"] in ran.err
    assert "data.path=DIR" in ran.err
    assert ran.out == ""


@pytest.mark.parametrize("word", ["classifier.C=1", "seed=1", "embedded"])
def test_only_places_may_be_given(word: str, kept: Path, go: Go) -> None:
    ran = go("reproduce", kept, word, code=1)
    assert f"reproduce: {word.partition('=')[0]!r} cannot be given; only data.path, data.taxonomy" in ran.err


def test_what_is_no_finished_run_is_refused(kept: Path, embedded: Path, tmp_path: Path, go: Go) -> None:
    change(kept, status="failed", parts={}, error="out of luck")
    assert "failed, so there is nothing to compare" in go("reproduce", kept, code=1).err
    assert "no run begins with 'tree'" in go("reproduce", "tree", "--runs-dir", tmp_path, code=1).err
    (tmp_path / "x.json").write_text("[]", encoding="utf-8")
    assert "this is no run result" in go("reproduce", tmp_path / "x.json", code=1).err


def test_failure_when_done_again_says_why(kept: Path, embedded: Path, go: Go) -> None:
    change(kept, metric_part="all", config=read_json(kept / "result.json")["config"] | {"metric_part": "nowhere"})
    ran = go("reproduce", kept, f"data.path={embedded}", code=1)
    assert "cannot be done again: metric_part: no test paper is in part 'nowhere'" in ran.err


def test_undefined_is_equal_to_undefined_and_infinitely_far_from_a_number() -> None:
    was, now = make_result(decision={"review": [None, None]}), make_result(decision={"review": [None, 0.5]})
    (difference,) = compared(was, now).differences
    assert (difference.where, difference.was, difference.now, difference.by) == ("decision.review.1", None, 0.5, np.inf)
    assert compared(was, was).verdict == "identical"


def test_figures_of_newer_versions_alone_are_left_out_and_lost_ones_are_not() -> None:
    old, new = make_result(), make_result(decision={"review": [0.5]})
    assert compared(old, new).verdict == "identical"
    assert compared(new, old).verdict == "different"


def test_other_papers_are_different() -> None:
    scores = make_scores()
    found = compared(make_result(), make_result(), scores=(scores, scores.take(np.arange(79))))
    assert [item.where for item in found.differences] == ["scores: papers"]
    assert found.verdict == "different"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["prior", "keywords", "title_only", "svm"])
def test_committed_results_come_out_again(name: str, go: Go) -> None:
    (path,) = COMMITTED.glob(f"{name}-*.json")
    (found,) = json.loads(go("reproduce", path, "--json").out)
    assert found["verdict"] in {"identical", "within 1e-6"}, found
