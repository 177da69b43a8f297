"""Run folders keyed by content: written whole, read back, never done twice."""

import json
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import yaml

from abstag.errors import ArtifactError, refused
from abstag.files import canonical_hash, new_folder, read_json, write_json
from abstag.records import Documents
from abstag.results import RunResult, ScoredDocuments, ScoreTable

if TYPE_CHECKING:
    import pyarrow as pa

_RESULT, _SCORES, _DOCUMENTS, _LOOKS = "result.json", "scores.parquet", "documents.parquet", "looks.jsonl"
_LOCKS, _POLL = ".locks", 0.2
_LOG = logging.getLogger(__name__)


class Store:
    """The folder ``runs_dir``: one folder a run, and the ledger of looks at test rows."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def folder(self, run: str) -> Path:
        """Return the folder of a run id, whether it exists or not."""
        return self.root / run

    def kept(self, run: str) -> RunResult | None:
        """Return the result of a run, done or failed; None when it is missing."""
        return load_result(self.folder(run)) if (self.folder(run) / _RESULT).is_file() else None

    def done(self, run: str) -> RunResult | None:
        """Return the result of a finished run, None when it is missing or failed."""
        result = self.kept(run)
        return result if result is not None and result.status == "done" else None

    @contextmanager
    def lock(self, run: str, *, wait: bool) -> Iterator[bool]:
        """Keep all other processes from doing a run while the block lasts; the system frees the lock of a dead one.

        Gives False when another process has the lock and ``wait`` is false.

        Raises
        ------
        ArtifactError
            The disk refuses the lock.
        """
        from filelock import FileLock, Timeout

        path = self.root / _LOCKS / run
        lock = FileLock(path)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                lock.acquire(blocking=False)
            except Timeout:
                if wait:
                    _LOG.info("%s: another process is at it, waiting", run)
                    lock.acquire(poll_interval=_POLL)
        except OSError as error:
            raise refused(error, "cannot be written", path) from error
        try:
            yield lock.is_locked
        finally:
            lock.release()

    def busy(self, run: str) -> bool:
        """Whether a process is doing a run now."""
        if not (self.root / _LOCKS / run).exists():
            return False
        try:
            with self.lock(run, wait=False) as ours:
                return not ours
        except ArtifactError:  # one may look at a store into which one may not write
            return False

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
            fitting = [folder for folder, result in _sound(fitting) if result.status == "done"] or fitting
        if len(fitting) != 1:
            known = ", ".join(path.name for path in fitting) or "`abstag runs` lists them"
            raise ArtifactError(
                f"{'several runs begin' if fitting else 'no run begins'} with {name!r}", where=self.root, remedy=known
            )
        return fitting[0]

    def results(self) -> list[RunResult]:
        """Return all results, oldest first; a damaged one is left out with a warning."""
        folders = sorted(path.parent for path in self.root.glob(f"*/{_RESULT}") if path.parent.name[0] != ".")
        return sorted((result for _, result in _sound(folders)), key=lambda result: (result.started, result.id))

    def of_experiment(self, name: str) -> list[RunResult]:
        """Return the finished runs of an experiment on the papers of its newest run, oldest first.

        Runs on other papers (a corpus that has changed since) are left out with a warning.

        Raises
        ------
        ArtifactError
            There is none.
        """
        results = self.results()
        found = [result for result in results if result.experiment == name and result.status == "done"]
        if not found:
            known = sorted({result.experiment for result in results if result.status == "done"})
            remedy = f"known: {', '.join(known)}" if known else f"abstag run +experiment={name}"
            if any(result.experiment == name for result in results):
                remedy = "all its runs failed, see `abstag runs --failed`"
            raise ArtifactError(f"no finished run of experiment {name!r}", where=self.root, remedy=remedy)
        same = [result for result in found if result.rows.get("fingerprint") == found[-1].rows.get("fingerprint")]
        if len(same) < len(found):
            _LOG.warning("%s: %d older runs on other papers left out", name, len(found) - len(same))
        return same

    def save(
        self,
        result: RunResult,
        *,
        scores: ScoreTable | None = None,
        documents: ScoredDocuments | None = None,
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
            if scores is not None and documents is not None:
                _write_documents(folder / _DOCUMENTS, documents, scores.areas)
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
            raise refused(error, "cannot be written", self.root / _LOOKS) from error
        return self.looks(rows)

    def looks(self, rows: str) -> int:
        """Return how many different runs have scored the test rows with this fingerprint."""
        if not (self.root / _LOOKS).is_file():
            return 0
        try:
            lines = (self.root / _LOOKS).read_text(encoding="utf-8").splitlines()
            entries: list[dict[str, Any]] = [json.loads(line) for line in lines if line.strip()]
            return len({entry["run"] for entry in entries if entry["rows"] == rows})
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            what, remedy = f"the ledger of looks is damaged: {error}", "take the damaged line out"
            raise ArtifactError(what, where=self.root / _LOOKS, remedy=remedy) from error


def row(result: RunResult) -> dict[str, Any]:
    """Return what lists of runs show of a result, as docs/contracts.md says."""
    names = ("id", "status", "experiment", "classifier", "seed", "corpus", "metric_part", "metrics", "parts")
    costs = ("fit_seconds", "texts_per_second", "peak_mb", "looks", "error")
    return {name: getattr(result, name) for name in (*names, *costs)}


def load_result(folder: Path) -> RunResult:
    """Read a run's result; raises ArtifactError when it is missing or damaged."""
    return read_result(folder / _RESULT)


def read_result(path: Path) -> RunResult:
    """Read a file ``result.json``, of whatever name; raises ArtifactError as `load_result`."""
    value = read_json(path)
    try:
        return RunResult.from_json(value)
    except (TypeError, AttributeError) as error:
        remedy = "delete the folder of the run and run it again"
        raise ArtifactError(f"this is no run result: {error}", where=path, remedy=remedy) from error


def _sound(folders: Iterable[Path]) -> Iterator[tuple[Path, RunResult]]:
    """Yield the folders whose result can be read, with it; warn of the others."""
    for folder in folders:
        try:
            yield folder, load_result(folder)
        except ArtifactError as error:
            _LOG.warning("left out: %s", error)


def rows_fingerprint(scores: ScoreTable) -> str:
    """Return the fingerprint of test rows: ids and known truth, in any order."""
    cells = np.where(scores.known, scores.gold.astype(int), -1).tolist()
    return canonical_hash(sorted(zip(scores.ids, cells, strict=True)))[:16]


def write_scores(path: Path, scores: ScoreTable) -> None:
    """Write scores paper by paper as Parquet: ``score.A``, ``tag.A``, ``gold.A`` (null: unknown) for each area A."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns: dict[str, Any] = {
        "id": list(scores.ids),
        "group": scores.groups,
        "venue": scores.venues,
        "part": scores.parts,
        "random": scores.random,
        "sure": scores.sure,
        "fold": scores.fold,
        "confidence": scores.confidence,
    }
    for number, area in enumerate(scores.areas):
        columns[f"score.{area}"] = scores.scores[:, number]
        columns[f"tag.{area}"] = scores.tags[:, number]
        columns[f"gold.{area}"] = pa.array(scores.gold[:, number], mask=~scores.known[:, number])
    pq.write_table(pa.table(columns, schema=_scores_schema(scores.areas)), path, compression="zstd")


def _scores_schema(areas: Sequence[str]) -> "pa.Schema":
    import pyarrow as pa

    text, flag, count, real = pa.string(), pa.bool_(), pa.int64(), pa.float64()
    plain = {"id": text, "group": count, "venue": text, "part": text, "random": flag, "sure": flag, "fold": count}
    kinds = [
        (f"{kind}.{area}", real if kind == "score" else flag) for area in areas for kind in ("score", "tag", "gold")
    ]
    return pa.schema([*plain.items(), ("confidence", real), *kinds])


def has_scores(folder: Path) -> bool:
    """Whether a run has kept its scores paper by paper."""
    return (folder / _SCORES).is_file()


def read_scores(folder: Path) -> ScoreTable:
    """Read a run's scores back; raises ArtifactError when they are missing or damaged."""
    path = folder / _SCORES
    with _readable(path):
        return _score_table(_typed(path, lambda names: _scores_schema(_areas(names, "score."))))


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    import pyarrow as pa

    try:
        yield
    except (OSError, KeyError, TypeError, ValueError, IndexError, pa.ArrowException) as error:
        remedy = "delete the folder of the run and run it again"
        raise ArtifactError(f"cannot be read: {error}", where=path, remedy=remedy) from error


def _typed(path: Path, schema_of: Callable[[Sequence[str]], "pa.Schema"]) -> "pa.Table":
    """Read a Parquet file in the types that it was written in; nulls only where a venue, part or label is unknown."""
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    schema = schema_of(table.column_names)
    table = table.select(schema.names).cast(schema)
    for name in schema.names:
        if table.column(name).null_count and name.partition(".")[0] not in {"venue", "part", "gold"}:
            raise ValueError(f"{name} has nulls")
    return table


def _areas(names: Sequence[str], prefix: str) -> tuple[str, ...]:
    return tuple(name.removeprefix(prefix) for name in names if name.startswith(prefix))


def _score_table(table: "pa.Table") -> ScoreTable:
    areas = _areas(table.column_names, "score.")

    def cells(kind: str) -> Any:
        return [table.column(f"{kind}.{area}").to_pylist() for area in areas]

    gold, ids, scores = cells("gold"), table.column("id").to_pylist(), np.array(cells("score"), dtype=np.float64).T
    if not areas or not ids:
        raise ValueError("areas or ids are missing")
    if not ((scores >= 0) & (scores <= 1)).all():
        raise ValueError("scores are no probabilities")
    return ScoreTable(
        areas=areas,
        ids=ids,
        groups=np.array(table.column("group").to_pylist(), dtype=np.intp),
        venues=table.column("venue").to_pylist(),
        parts=table.column("part").to_pylist(),
        random=np.array(table.column("random").to_pylist(), dtype=np.bool_),
        sure=np.array(table.column("sure").to_pylist(), dtype=np.bool_),
        fold=np.array(table.column("fold").to_pylist(), dtype=np.intp),
        gold=np.array([[bool(cell) for cell in column] for column in gold], dtype=np.bool_).T,
        known=np.array([[cell is not None for cell in column] for column in gold], dtype=np.bool_).T,
        scores=scores,
        tags=np.array(cells("tag"), dtype=np.bool_).T,
        confidence=np.array(table.column("confidence").to_pylist(), dtype=np.float64),
    )


def _write_documents(path: Path, scored: ScoredDocuments, areas: Sequence[str]) -> None:
    """Write the scored papers as Parquet: ``id, title, abstract``, and ``terms.A`` for each area A when known."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    texts = scored.documents
    columns: dict[str, Any] = {"id": list(texts.ids), "title": list(texts.titles), "abstract": list(texts.abstracts)}
    told = areas if scored.evidence is not None else ()
    for number, area in enumerate(told):
        columns[f"terms.{area}"] = [paper[number] for paper in scored.evidence or ()]
    pq.write_table(pa.table(columns, schema=_documents_schema(told)), path, compression="zstd")


def _documents_schema(areas: Sequence[str]) -> "pa.Schema":
    import pyarrow as pa

    terms = pa.list_(pa.struct([("term", pa.string()), ("share", pa.float32())]))
    texts = [(name, pa.string()) for name in ("id", "title", "abstract")]
    return pa.schema([*texts, *((f"terms.{area}", terms) for area in areas)])


def read_documents(folder: Path, areas: Sequence[str]) -> ScoredDocuments | None:
    """Read the papers that a run has scored; None when the run kept none. Raises ArtifactError when damaged."""
    path = folder / _DOCUMENTS
    if not path.exists():
        return None
    with _readable(path):
        table = _typed(path, lambda names: _documents_schema(_areas(names, "terms.")))
        documents = Documents(*(table.column(name).to_pylist() for name in ("id", "title", "abstract")))
        if _areas(table.column_names, "terms.") != tuple(areas):
            return ScoredDocuments(documents, None)
        terms = [table.column(f"terms.{area}").to_pylist() for area in areas]
        papers = zip(*terms, strict=True)
        evidence = [
            [[(str(term["term"]), float(term["share"])) for term in cell] for cell in paper] for paper in papers
        ]
    return ScoredDocuments(documents, evidence)
