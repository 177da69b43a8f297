"""The store: runs are found, replaced when they failed, and looks at test rows are counted."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from abstag.errors import ArtifactError
from abstag.records import Documents
from abstag.results import RunResult, ScoredDocuments, ScoreTable
from abstag.store import Store, load_result, read_documents, read_scores, row, write_scores
from tests.conftest import make_result, make_scores


def same(first: ScoreTable, second: ScoreTable) -> bool:
    return all(
        np.array_equal(a, b) and a.dtype == b.dtype if isinstance(a, np.ndarray) else list(a) == list(b)
        for a, b in ((getattr(first, item.name), getattr(second, item.name)) for item in dataclasses.fields(ScoreTable))
    )


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = Store(tmp_path / "runs")
    for run in ("nb-11aa", "nb-12bb", "svm-11aa"):
        store.save(make_result(run), log="log of it")
    return store


@pytest.mark.parametrize("name", ["nb-11aa", "nb-11", "svm"])
def test_found_by_id_and_by_unique_prefix(name: str, store: Store) -> None:
    assert store.find(name).name.startswith(name)
    assert store.find(name).parent == store.root


def test_found_by_folder(store: Store, tmp_path: Path) -> None:
    moved = store.folder("svm-11aa").rename(tmp_path / "elsewhere")
    assert store.find(str(moved)) == moved


def test_whole_id_wins_over_longer_ids(store: Store) -> None:
    store.save(make_result("nb-11aabb"))
    assert store.find("nb-11aa").name == "nb-11aa"


def test_ambiguous_or_unknown_prefix_is_an_error(store: Store) -> None:
    with pytest.raises(ArtifactError, match=r"several runs begin with 'nb-1'; nb-11aa, nb-12bb"):
        store.find("nb-1")
    with pytest.raises(ArtifactError, match=r"no run begins with 'tree'; `abstag runs` lists them"):
        store.find("tree")
    with pytest.raises(ArtifactError, match="no run begins"):
        Store(store.root / "missing").find("nb")


def test_run_folder_holds_what_the_contract_says(store: Store) -> None:
    folder = store.save(make_result("x-1"), scores=make_scores(), bundle=lambda path: None, log="said")
    assert {path.name for path in folder.iterdir()} == {"config.yaml", "result.json", "scores.parquet", "bundle", "log"}
    assert (folder / "log").read_text() == "said"
    assert not list(store.root.glob(".*"))


def test_result_survives_and_ignores_keys_of_newer_versions(store: Store) -> None:
    folder = store.folder("nb-11aa")
    assert load_result(folder) == make_result("nb-11aa")
    newer = json.loads((folder / "result.json").read_text()) | {"mood": "good"}
    (folder / "result.json").write_text(json.dumps(newer))
    assert load_result(folder) == make_result("nb-11aa")


def test_done_failed_and_missing(store: Store) -> None:
    store.save(make_result("failed-1", status="failed", parts={}, error="boom"))
    assert store.done("nb-11aa") == make_result("nb-11aa")
    assert store.done("failed-1") is None
    assert store.done("missing-1") is None
    assert [result.status for result in store.results()] == ["failed", "done", "done", "done"]


def test_failed_run_is_replaced_whole_by_a_later_success(store: Store) -> None:
    store.save(make_result("svm-2", status="failed", error="boom"), log="Traceback")
    store.save(make_result("svm-2"), scores=make_scores())
    found = store.done("svm-2")
    assert found is not None
    assert found.error is None
    assert (store.folder("svm-2") / "log").read_text() == ""


def test_nothing_half_written_when_saving_fails(store: Store) -> None:
    def fail(folder: Path) -> None:
        (folder / "weights").write_text("half")
        raise ArtifactError("no")

    before = sorted(store.root.rglob("*"))
    for run in ("new-1", "nb-11aa"):
        with pytest.raises(ArtifactError, match="no"):
            store.save(make_result(run), bundle=fail)
    assert sorted(store.root.rglob("*")) == before


def test_results_oldest_first_and_by_experiment(store: Store) -> None:
    store.save(make_result("a-1", started="2024-01-01", experiment="old"))
    store.save(make_result("a-2", started="2026-01-01", status="failed"))
    assert [result.id for result in store.results()] == ["a-1", "nb-11aa", "nb-12bb", "svm-11aa", "a-2"]
    assert [result.id for result in store.of_experiment("old")] == ["a-1"]
    assert "a-2" not in [result.id for result in store.of_experiment("demo")]
    with pytest.raises(ArtifactError, match=r"no finished run of experiment 'new'; known: demo, old"):
        store.of_experiment("new")
    with pytest.raises(ArtifactError, match=r"abstag run \+experiment=new"):
        Store(store.root / "empty").of_experiment("new")


def test_looks_are_counted_once_a_run_and_test_rows(tmp_path: Path) -> None:
    store = Store(tmp_path / "runs")
    assert store.looks("r1") == 0
    assert [store.look("r1", run) for run in ("a", "a", "b", "a", "c")] == [1, 1, 2, 2, 3]
    assert store.look("r2", "a") == 1
    assert (store.looks("r1"), store.looks("r2"), store.looks("r3")) == (3, 1, 0)


def test_damaged_ledger_is_one_clear_error(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.look("r1", "a")
    with (tmp_path / "looks.jsonl").open("a") as stream:
        stream.write('{"rows": "r1", "ru')
    with pytest.raises(ArtifactError, match=r"looks\.jsonl"):
        store.looks("r1")
    (tmp_path / "looks.jsonl").write_bytes(b"\xff\n")
    with pytest.raises(ArtifactError, match=r"looks\.jsonl"):
        store.looks("r1")


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"id": 1', "[" * 100_000])
def test_damaged_result_is_one_clear_error(content: str, store: Store) -> None:
    (store.folder("nb-11aa") / "result.json").write_text(content)
    with pytest.raises(ArtifactError, match=r"result\.json") as caught:
        load_result(store.folder("nb-11aa"))
    assert "\n" not in str(caught.value)


WRONG: list[dict[str, Any]] = [
    *({name: value} for name in ("corpus", "parts", "config", "areas") for value in (7, None)),
    *({name: ["x"]} for name in ("id", "status", "experiment", "seed", "started", "looks", "fit_seconds")),
    {"corpus": {"name": "c"}},
    {"corpus": {"name": "c", "fingerprint": 7}},
    {"rows": {"test": 80}},
    {"metric_part": "dev"},
    {"parts": {"all": 7}},
    *(
        {"parts": {"all": make_result().parts["all"] | {name: "x"}}}
        for name in ("n", "macro_f1", "interval", "at_half")
    ),
    {"parts": {"all": {name: cell for name, cell in make_result().parts["all"].items() if name != "macro_f1"}}},
    {"parts": {"all": make_result().parts["all"] | {"interval": [0.5], "at_half": {}}}},
]


@pytest.mark.parametrize("wrong", WRONG, ids=str)
def test_result_with_a_wrong_value_is_one_clear_error(wrong: dict[str, Any], store: Store) -> None:
    path = store.folder("nb-11aa") / "result.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | wrong))
    with pytest.raises(ArtifactError, match=rf"{path}: this is no run result: {next(iter(wrong))} is not as"):
        store.done("nb-11aa")


def test_damaged_result_hides_no_other(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    (store.folder("nb-11aa") / "result.json").write_text("{}")
    assert [result.id for result in store.results()] == ["nb-12bb", "svm-11aa"]
    assert "left out: " in caplog.text
    assert store.find("nb").name == "nb-12bb"


def test_scores_round_trip(tmp_path: Path) -> None:
    table = make_scores(areas=("llm", "x-y_2"))
    known = table.known.copy()
    known[::9, 0] = False
    table = dataclasses.replace(table, known=known, gold=table.gold & known, groups=table.groups // 2)
    write_scores(tmp_path / "scores.parquet", table)
    assert same(read_scores(tmp_path), table)


def test_damaged_scores_are_one_clear_error(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    with pytest.raises(ArtifactError, match=r"scores\.parquet"):
        read_scores(tmp_path)
    write_scores(tmp_path / "scores.parquet", make_scores())
    content = (tmp_path / "scores.parquet").read_bytes()
    (tmp_path / "scores.parquet").write_bytes(content[: len(content) // 2])
    with pytest.raises(ArtifactError, match=r"scores\.parquet"):
        read_scores(tmp_path)
    pq.write_table(pa.table({"id": ["a"], "score.x": [0.5]}), tmp_path / "scores.parquet")
    with pytest.raises(ArtifactError, match=r"scores\.parquet"):
        read_scores(tmp_path)


@pytest.mark.parametrize(
    ("column", "value"), [("group", "x"), ("fold", None), ("score.a", "x"), ("confidence", "x"), ("id", None)]
)
def test_scores_with_a_wrong_column_are_one_clear_error(column: str, value: Any, tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    write_scores(tmp_path / "scores.parquet", make_scores())
    table = pq.read_table(tmp_path / "scores.parquet")
    place = table.column_names.index(column)
    for wrong in (table.set_column(place, column, pa.array([value] * len(table))), table.slice(0, 0)):
        pq.write_table(wrong, tmp_path / "scores.parquet")
        with pytest.raises(ArtifactError, match=r"scores\.parquet: cannot be read: .*; delete the folder of the run"):
            read_scores(tmp_path)


def test_take_and_join_are_inverse() -> None:
    table = make_scores()
    halves = [table.take(np.arange(0, 80, 2)), table.take(np.arange(1, 80, 2))]
    joined = ScoreTable.join(halves)
    assert len(joined) == 80
    assert list(joined.ids) == [*halves[0].ids, *halves[1].ids]
    assert same(joined.take(np.argsort(np.array(joined.ids))), table)
    assert same(ScoreTable.join([table]), table)


def test_named_parts_are_unions_of_their_rows() -> None:
    table = make_scores()
    parts, venues = np.array(table.parts, dtype=object), np.array(table.venues, dtype=object)
    found = table.named_parts()
    assert set(found) == {"all", "test", "iclr", "iclr-test", "random"}
    assert found["all"].all()
    assert np.array_equal(found["iclr-test"], (parts == "test") & (venues == "ICLR"))
    assert np.array_equal(found["random"], table.random)
    assert np.array_equal(found["test"], parts == "test"), "papers with a venue have left the part"


def test_part_random_joins_the_part_and_rows_marked_random() -> None:
    table = dataclasses.replace(make_scores(), parts=["random" if number < 30 else "test" for number in range(80)])
    assert np.array_equal(table.named_parts()["random"], table.random | (np.arange(80) < 30))


def test_row_has_the_keys_of_the_contract() -> None:
    keys = "id status experiment classifier seed corpus metric_part metrics parts fit_seconds texts_per_second peak_mb"
    found = row(make_result())
    assert [*found][:13] == [*keys.split(), "looks"]
    assert found["metrics"] == found["parts"]["all"]
    failed = RunResult("a", "failed", "e", "c", 0, {"name": "n", "fingerprint": "f"}, error="boom")
    assert row(failed)["metrics"] == {}


def test_documents_round_trip_with_and_without_terms(tmp_path: Path) -> None:
    scores = make_scores(n=2)
    texts = Documents(scores.ids, ["Élan", ""], ["We look.", "</script>"])
    store = Store(tmp_path)
    told: Any = [[[("look", -0.5)], []], [[], []]]
    for run, evidence in (("nb-1", told), ("nb-2", None)):
        folder = store.save(make_result(run), scores=scores, documents=ScoredDocuments(texts, evidence))
        found = read_documents(folder, scores.areas)
        assert found is not None
        assert (found.documents, found.evidence) == (texts, evidence)
    assert read_documents(store.save(make_result("nb-3"), scores=scores), scores.areas) is None


def test_damaged_documents_are_one_clear_error(tmp_path: Path) -> None:
    scores = make_scores(n=2)
    texts = Documents(scores.ids, ["", ""], ["One.", "Two."])
    folder = Store(tmp_path).save(make_result(), scores=scores, documents=ScoredDocuments(texts, None))
    (folder / "documents.parquet").write_bytes((folder / "scores.parquet").read_bytes())
    with pytest.raises(ArtifactError, match=r"documents\.parquet"):
        read_documents(folder, scores.areas)


def test_an_experiment_is_its_runs_on_the_newest_papers(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    store = Store(tmp_path)
    for day, (run, rows) in enumerate([("a-1", "old"), ("b-1", "old"), ("a-2", "new"), ("b-2", "new")], 1):
        store.save(make_result(run, rows={"fingerprint": rows}, started=f"2025-01-0{day}"))
    assert [result.id for result in store.of_experiment("demo")] == ["a-2", "b-2"]
    assert "demo: 2 older runs on other papers left out" in caplog.text


@pytest.mark.parametrize("score", [1.5, -0.1, float("nan"), None])
def test_scores_that_are_no_probabilities_are_refused(score: float | None, tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    write_scores(tmp_path / "scores.parquet", make_scores())
    table = pq.read_table(tmp_path / "scores.parquet")
    column = pa.array([score, *table.column("score.a").to_pylist()[1:]], pa.float64())
    place = table.column_names.index("score.a")
    pq.write_table(table.set_column(place, "score.a", column), tmp_path / "scores.parquet")
    with pytest.raises(ArtifactError, match=r"scores\.parquet: cannot be read"):
        read_scores(tmp_path)
