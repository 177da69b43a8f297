"""Run folders keyed by content: written whole, read back, never done twice."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from abstag.errors import ArtifactError
from abstag.files import new_folder, read_json, write_json
from abstag.results import RunResult, ScoreTable

_RESULT, _SCORES, _LOOKS = "result.json", "scores.parquet", "looks.jsonl"


class Store:
    """The folder ``runs_dir``: one folder a run, and the ledger of looks at test rows."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def folder(self, run: str) -> Path:
        """Return the folder of a run id, whether it exists or not."""
        return self.root / run

    def done(self, run: str) -> RunResult | None:
        """Return the result of a finished run, None when it is missing or failed."""
        if not (self.folder(run) / _RESULT).is_file():
            return None
        result = load_result(self.folder(run))
        return result if result.status == "done" else None

    def find(self, name: str) -> Path:
        """Return the folder of a run given by id, unique prefix of an id, or folder.

        Raises
        ------
        ArtifactError
            None or several fit.
        """
        for folder in (self.folder(name), Path(name)):
            if (folder / _RESULT).is_file():
                return folder
        fitting = sorted(path.parent for path in self.root.glob(f"*/{_RESULT}") if path.parent.name.startswith(name))
        if len(fitting) > 1:
            fitting = [folder for folder in fitting if load_result(folder).status == "done"] or fitting
        if len(fitting) != 1:
            known = ", ".join(path.name for path in fitting) or "`abstag runs` lists them"
            raise ArtifactError(
                f"{'several runs begin' if fitting else 'no run begins'} with {name!r}", where=self.root, remedy=known
            )
        return fitting[0]

    def results(self) -> list[RunResult]:
        """Return all results, oldest first."""
        found = [load_result(path.parent) for path in self.root.glob(f"*/{_RESULT}") if path.parent.name[0] != "."]
        return sorted(found, key=lambda result: (result.started, result.id))

    def of_experiment(self, name: str) -> list[RunResult]:
        """Return the finished runs of an experiment, oldest first; raises ArtifactError when there is none."""
        found = [result for result in self.results() if result.experiment == name and result.status == "done"]
        if not found:
            known = sorted({result.experiment for result in self.results()})
            remedy = f"known: {', '.join(known)}" if known else f"abstag run +experiment={name}"
            raise ArtifactError(f"no finished run of experiment {name!r}", where=self.root, remedy=remedy)
        return found

    def save(
        self,
        result: RunResult,
        *,
        scores: ScoreTable | None = None,
        bundle: Callable[[Path], None] | None = None,
        log: str = "",
    ) -> Path:
        """Write a run's folder whole; one that failed before is replaced.

        Raises
        ------
        ArtifactError
            The disk refuses it; nothing half-written stays.
        """
        with new_folder(self.folder(result.id), force=True) as folder:
            (folder / "config.yaml").write_text(yaml.safe_dump(result.config, sort_keys=True), encoding="utf-8")
            (folder / "log").write_text(log, encoding="utf-8")
            if scores is not None:
                write_scores(folder / _SCORES, scores)
            if bundle is not None:
                (folder / "bundle").mkdir()
                bundle(folder / "bundle")
            write_json(folder / _RESULT, result.to_json())
        return self.folder(result.id)

    def look(self, rows: str, run: str) -> int:
        """Note that a run scores the test rows with this fingerprint; return how many different runs have done so."""
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            with (self.root / _LOOKS).open("a", encoding="utf-8") as stream:
                when = datetime.now(UTC).isoformat(timespec="seconds")
                stream.write(json.dumps({"rows": rows, "run": run, "when": when}) + "\n")
        except OSError as error:
            raise ArtifactError(f"cannot be written: {error.strerror}", where=self.root / _LOOKS) from error
        return self.looks(rows)

    def looks(self, rows: str) -> int:
        """Return how many different runs have scored the test rows with this fingerprint."""
        if not (self.root / _LOOKS).is_file():
            return 0
        lines = (self.root / _LOOKS).read_text(encoding="utf-8").splitlines()
        try:
            entries: list[dict[str, Any]] = [json.loads(line) for line in lines if line.strip()]
            return len({entry["run"] for entry in entries if entry["rows"] == rows})
        except (ValueError, KeyError, TypeError) as error:
            raise ArtifactError(f"the ledger of looks is damaged: {error}", where=self.root / _LOOKS) from error


def row(result: RunResult) -> dict[str, Any]:
    """Return what lists of runs show of a result, as docs/contracts.md says."""
    names = ("id", "status", "experiment", "classifier", "seed", "corpus", "metric_part", "metrics", "parts")
    costs = ("fit_seconds", "texts_per_second", "peak_mb", "looks", "error")
    return {name: getattr(result, name) for name in (*names, *costs)}


def load_result(folder: Path) -> RunResult:
    """Read a run's result; raises ArtifactError when it is missing or damaged."""
    value = read_json(folder / _RESULT)
    try:
        return RunResult.from_json(value)
    except (TypeError, AttributeError) as error:
        raise ArtifactError(f"this is no run result: {error}", where=folder / _RESULT) from error


def write_scores(path: Path, scores: ScoreTable) -> None:
    """Write scores paper by paper as Parquet: ``score.A``, ``tag.A``, ``gold.A`` (null: unknown) for each area A."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns: dict[str, Any] = {
        "id": list(scores.ids),
        "group": scores.groups,
        "venue": pa.array(scores.venues, pa.string()),
        "part": pa.array(scores.parts, pa.string()),
        "random": scores.random,
        "sure": scores.sure,
        "fold": scores.fold,
        "confidence": scores.confidence,
    }
    for number, area in enumerate(scores.areas):
        columns[f"score.{area}"] = scores.scores[:, number]
        columns[f"tag.{area}"] = scores.tags[:, number]
        columns[f"gold.{area}"] = pa.array(scores.gold[:, number], mask=~scores.known[:, number])
    pq.write_table(pa.table(columns), path, compression="zstd")


def read_scores(folder: Path) -> ScoreTable:
    """Read a run's scores back; raises ArtifactError when they are missing or damaged."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return _score_table(pq.read_table(folder / _SCORES))
    except (OSError, KeyError, pa.ArrowException) as error:
        raise ArtifactError(f"cannot be read: {error}", where=folder / _SCORES) from error


def _score_table(table: Any) -> ScoreTable:
    areas = tuple(name.removeprefix("score.") for name in table.column_names if name.startswith("score."))

    def cells(kind: str) -> Any:
        return [table.column(f"{kind}.{area}").to_pylist() for area in areas]

    gold = cells("gold")
    return ScoreTable(
        areas=areas,
        ids=table.column("id").to_pylist(),
        groups=np.array(table.column("group").to_pylist(), dtype=np.intp),
        venues=table.column("venue").to_pylist(),
        parts=table.column("part").to_pylist(),
        random=np.array(table.column("random").to_pylist(), dtype=np.bool_),
        sure=np.array(table.column("sure").to_pylist(), dtype=np.bool_),
        fold=np.array(table.column("fold").to_pylist(), dtype=np.intp),
        gold=np.array([[bool(cell) for cell in column] for column in gold], dtype=np.bool_).T,
        known=np.array([[cell is not None for cell in column] for column in gold], dtype=np.bool_).T,
        scores=np.array(cells("score"), dtype=np.float64).T,
        tags=np.array(cells("tag"), dtype=np.bool_).T,
        confidence=np.array(table.column("confidence").to_pylist(), dtype=np.float64),
    )
