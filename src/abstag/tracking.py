"""Finished runs in MLflow, for those who keep their experiments there."""

import logging
import re
import time
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from abstag.errors import ArtifactError, MissingExtraError
from abstag.results import RunResult, settings
from abstag.tidy import figures

if TYPE_CHECKING:
    from mlflow import MlflowClient

_LOG = logging.getLogger(__name__)
_NO_NAME = re.compile(r"[^\w\-. :/]")  # what MLflow allows in names
_LONGEST = 500
_COSTS = ("fit_seconds", "texts_per_second", "peak_mb")
_RUN = "abstag.run"


def connect(uri: str) -> "MlflowClient":
    """Return a client of the tracking server, or database, at ``uri``.

    Raises
    ------
    MissingExtraError
        MLflow is not installed.
    ArtifactError
        There is no such server or database.
    """
    try:
        from mlflow import MlflowClient
    except ImportError as error:
        raise MissingExtraError("mlflow", "mlflow") from error
    try:
        client = MlflowClient(tracking_uri=uri)
        client.search_experiments(max_results=1)
    except Exception as error:  # of the client, of the database, of the network: one family for each kind of URI
        raise _refused(error, uri, "mlflow=sqlite:///mlflow.db keeps a database here") from error
    return client


def log_run(client: "MlflowClient", result: RunResult, file: Path) -> None:
    """Log a finished run with its settings, metrics, versions and result file, unless it is there.

    Metrics of `RunResult.metric_part` have their own names, those of other parts ``PART/NAME``.

    Raises
    ------
    ArtifactError
        MLflow refuses it; a run half logged has the status FAILED there.
    """
    try:
        _log_run(client, result, file)
    except Exception as error:
        remedy = "the run is kept; the same command logs it"
        raise _refused(error, result.id, remedy) from error


def _refused(error: Exception, where: str, remedy: str) -> ArtifactError:
    return ArtifactError(f"MLflow: {str(error)[:_LONGEST] or repr(error)}", where=where, remedy=remedy)


def _log_run(client: "MlflowClient", result: RunResult, file: Path) -> None:
    known = client.get_experiment_by_name(result.experiment)
    experiment = known.experiment_id if known else client.create_experiment(result.experiment)
    if client.search_runs([experiment], f"tags.`{_RUN}` = '{result.id}' AND attributes.status = 'FINISHED'"):
        _LOG.info("%s: in MLflow already", result.id)
        return
    started = int(datetime.fromisoformat(result.started).timestamp() * 1000)
    run = client.create_run(experiment, start_time=started, run_name=result.id, tags=_tags(result)).info.run_id
    status = "FAILED"
    try:
        for name, value in settings(result.config).items():
            client.log_param(run, name, value)
        _log_metrics(client, run, result)
        client.log_artifact(run, str(file))
        status = "FINISHED"
    finally:
        client.set_terminated(run, status)


def _log_metrics(client: "MlflowClient", run: str, result: RunResult) -> None:
    from mlflow.entities import Metric

    now = int(time.time() * 1000)
    for part, values in result.parts.items():
        prefix = "" if part == result.metric_part else f"{part}/"
        found = [
            Metric(_NO_NAME.sub("_", prefix + name), value, now, 0) for name, value in _metrics(result, part, values)
        ]
        client.log_batch(run, metrics=found)


def _metrics(result: RunResult, part: str, values: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """Yield what is defined of a part's metrics, and with those of the run's own part the costs."""
    found = figures(values, result.areas)
    if part == result.metric_part:
        found |= {name: getattr(result, name) for name in _COSTS}
    for name, value in found.items():
        if value is not None and value == value:  # noqa: PLR0124  # NaN is undefined
            yield name, float(value)


def _tags(result: RunResult) -> dict[str, str]:
    corpus = {f"corpus.{name}": value for name, value in result.corpus.items()}
    versions = {f"version.{name}": value for name, value in result.versions.items()}
    own = {_RUN: result.id, "classifier": result.classifier, "metric_part": result.metric_part}
    return own | corpus | versions | {"command": result.command}
