"""Runs in MLflow: what is logged, once, and what is said when MLflow is not there."""

import sys
from pathlib import Path

import pytest

from abstag.files import read_json
from abstag.store import Store
from tests.conftest import SHORT, Go


def test_missing_mlflow_is_said_before_anything_runs(
    embedded: Path, tmp_path: Path, go: Go, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "mlflow", None)
    runs = tmp_path / "runs"
    place = ("classifier=prior", f"data.path={embedded}", f"runs_dir={runs}")
    assert "mlflow is not installed; pip install 'abstag[mlflow]'" in go("run", *place, "mlflow=x", code=1).err
    assert not Store(runs).results()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of MLflow and SQLAlchemy
def test_runs_are_logged_once(parted: Path, tmp_path: Path, go: Go, monkeypatch: pytest.MonkeyPatch) -> None:
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.chdir(tmp_path)
    place = ("split=fixed", "decision.folds=2", f"data.path={parted}", "metric_part=random", "name=kept")
    ran = go("run", "classifier=keywords", *place, "mlflow=sqlite:///m.db", code=0)
    go("run", "-m", "classifier=keywords,prior", *place, "mlflow=sqlite:///m.db", code=0)
    assert "keywords" in ran.out
    client = mlflow.MlflowClient(tracking_uri="sqlite:///m.db")
    experiment = client.get_experiment_by_name("kept")
    logged = {run.data.tags["classifier"]: run for run in client.search_runs([experiment.experiment_id])}
    assert len(client.search_runs([experiment.experiment_id])) == 2
    assert logged.keys() == {"keywords", "prior"}
    folder = Store(tmp_path / "runs").find("keywords")
    result, run = read_json(folder / "result.json"), logged["keywords"]
    assert run.info.run_name == run.data.tags["abstag.run"] == folder.name
    assert run.info.status == "FINISHED"
    assert run.data.params["seed"] == "0"
    assert run.data.params["decision.folds"] == "2"
    assert run.data.tags["corpus.fingerprint"] == result["corpus"]["fingerprint"]
    assert run.data.metrics["macro_f1"] == result["metrics"]["macro_f1"]
    assert run.data.metrics["fit_seconds"] == result["fit_seconds"]
    assert run.data.metrics["test/f1_llm"] == result["parts"]["test"]["areas"]["llm"]["f1"]
    assert "test+random/macro_f1" not in run.data.metrics
    file = client.download_artifacts(run.info.run_id, "result.json")
    assert read_json(Path(file)) == result


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_unreachable_store_is_named_before_anything_runs(embedded: Path, tmp_path: Path, go: Go) -> None:
    pytest.importorskip("mlflow")
    runs = tmp_path / "runs"
    ran = go(
        "run", "classifier=prior", f"data.path={embedded}", f"runs_dir={runs}", *SHORT, "mlflow=gopher://x", code=1
    )
    assert "abstag: gopher://x: MLflow: " in ran.err
    assert "mlflow=sqlite:///mlflow.db" in ran.err
    assert not Store(runs).results()
