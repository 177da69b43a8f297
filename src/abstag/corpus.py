"""An ingested corpus: a folder with cleaned, grouped, labelled records and a manifest, as `ingest` writes it."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from abstag.errors import ArtifactError, DataError
from abstag.files import file_hash, read_json
from abstag.labels import RANK, SCORED
from abstag.records import BoolArray, Documents, IntArray, Targets
from abstag.resources import resource
from abstag.results import fits
from abstag.taxonomy import Taxonomy, load_taxonomy, parse_taxonomy

if TYPE_CHECKING:
    import pyarrow as pa

EMBEDDED = "data/corpus/abstracts.jsonl"
MANIFEST, RECORDS, REJECTS = "manifest.json", "records.parquet", "rejects.jsonl"
_KEYS: Mapping[str, Any] = {
    **dict.fromkeys(("read", "records", "rejects", "duplicates", "unmatched_labels", "label_conflicts"), int),
    **dict.fromkeys(("reject_reasons", "labelled"), dict[str, int]),
    "fingerprint": str,
    "taxonomy": dict[str, Any],
    "sources": list[dict[str, Any]],
}
_CONTENT = (
    "id",
    "title",
    "abstract",
    "venue",
    "year",
    "part",
    "random",
    "areas",
    "known",
    "label_source",
    "sure",
    "group",
)


@dataclass(frozen=True)
class Corpus:
    """An ingested corpus, one row a duplicate group: the row with the strongest label, then the first.

    Attributes
    ----------
    name
        The folder's name.
    fingerprint
        Hash of content and taxonomy, the path left out.
    table
        The rows kept, as a `datasets.Dataset` with the columns of ``records.parquet``.
    """

    name: str
    fingerprint: str
    taxonomy: Taxonomy
    table: Any

    def __len__(self) -> int:
        return len(self.table)

    def column(self, name: str) -> list[Any]:
        """Return one column as a list."""
        return list(self.table.data.column(name).to_pylist())

    @cached_property
    def documents(self) -> Documents:
        """The texts; a missing title is empty."""
        return Documents(self.column("id"), [title or "" for title in self.column("title")], self.column("abstract"))

    @cached_property
    def sources(self) -> list[str | None]:
        """The label source of each row."""
        return self.column("label_source")

    @cached_property
    def values(self) -> BoolArray:
        """(n, k) bool: the area holds, where known."""
        return self._cells("areas")

    @cached_property
    def known(self) -> BoolArray:
        """(n, k) bool: the label says something of the cell."""
        return self._cells("known")

    @cached_property
    def scorable(self) -> BoolArray:
        """(n,) bool: labelled by reading or review, with at least one known cell."""
        read = np.array([source in SCORED for source in self.sources], dtype=np.bool_)
        return np.asarray(read & self.known.any(axis=1), dtype=np.bool_)

    @cached_property
    def groups(self) -> IntArray:
        """(n,) duplicate group numbers."""
        return np.array(self.column("group"), dtype=np.intp)

    def targets(self, weights: Mapping[str, float], declared_negatives: float = 0.0) -> Targets:
        """Return values, known cells and weights for training.

        Parameters
        ----------
        weights
            Weight ≥ 0 of each label source.
        declared_negatives
            Weight ≥ 0 of the areas that a paper whose authors declared anything does not declare; 0 leaves them
            unknown.
        """
        row_weight = np.array([weights.get(source or "", 0.0) for source in self.sources])
        weight = np.where(self.known, row_weight[:, None], 0.0)
        declared = np.array([source == "declared" for source in self.sources], dtype=np.bool_)
        assumed = declared[:, None] & ~self.known & (declared_negatives > 0)
        return Targets(self.values, self.known | assumed, np.where(assumed, declared_negatives, weight))

    def _cells(self, column: str) -> BoolArray:
        rows = [self.taxonomy.encode(areas or ()) for areas in self.column(column)]
        return np.array(rows, dtype=np.bool_).reshape(len(self), len(self.taxonomy.areas))


def load_corpus(folder: Path, taxonomy: Taxonomy | None = None) -> Corpus:
    """Load an ingested corpus.

    Parameters
    ----------
    folder
        What `ingest` wrote.
    taxonomy
        Used for its names, keywords and descriptions; its areas must be the corpus's. None is the one in the manifest.

    Raises
    ------
    ArtifactError
        The folder is missing, no corpus, or damaged.
    DataError
        The taxonomy has other areas.
    """
    manifest, own, table = read_ingested(folder)
    if taxonomy is not None and taxonomy.ids != own.ids:
        raise DataError(
            f"the corpus was ingested with the areas {', '.join(own.ids)}, the taxonomy has {', '.join(taxonomy.ids)}",
            where=folder,
            remedy="ingest again with --taxonomy",
        )
    chosen = taxonomy or own
    fingerprint = _fingerprint(manifest, own.digest, chosen.digest)
    return Corpus(folder.resolve().name, fingerprint, chosen, _representatives(table))


def identity(folder: Path, taxonomy: str | None = None) -> tuple[str, str]:
    """Return the fingerprint that `load_corpus` would give, and the taxonomy's digest, by the manifest alone.

    Raises
    ------
    ArtifactError, ConfigError
        The corpus, or the file ``taxonomy``, is missing or damaged.
    """
    manifest = _read_manifest(folder)
    own = parse_taxonomy({k: v for k, v in manifest["taxonomy"].items() if k != "digest"}, where=str(folder)).digest
    chosen = load_taxonomy(taxonomy).digest if taxonomy else own
    return _fingerprint(manifest, own, chosen), chosen


def _fingerprint(manifest: Mapping[str, Any], own: str, chosen: str) -> str:
    fingerprint: str = manifest["fingerprint"]
    return fingerprint if own == chosen else f"{fingerprint}-{chosen}"


def embedded_folder(runs_dir: Path) -> Path:
    """Return the folder below ``runs_dir`` for the embedded corpus as it ships now, whether it exists or not."""
    return runs_dir / ".corpus" / f"{file_hash(resource(EMBEDDED))[:12]}-{load_taxonomy().digest}" / "embedded"


def read_ingested(folder: Path) -> tuple[dict[str, Any], Taxonomy, "pa.Table"]:
    """Return manifest, taxonomy and all records of an ingested corpus; raises ArtifactError as `load_corpus`."""
    manifest = _read_manifest(folder)
    taxonomy = parse_taxonomy({k: v for k, v in manifest["taxonomy"].items() if k != "digest"}, where=str(folder))
    table = _read_records(folder / RECORDS)
    if (
        content_fingerprint({name: table.column(name).to_pylist() for name in _CONTENT}, taxonomy)
        != manifest["fingerprint"]
    ):
        raise ArtifactError("changed since ingest", where=folder, remedy="ingest again")
    return manifest, taxonomy, table


def _read_manifest(folder: Path) -> dict[str, Any]:
    if not (folder / MANIFEST).is_file():
        raise ArtifactError(
            "no ingested corpus here", where=folder, remedy="make one with `abstag ingest PATH... -o DIR`"
        )
    manifest = read_json(folder / MANIFEST)
    if not isinstance(manifest, dict) or not all(fits(manifest.get(key, ...), kind) for key, kind in _KEYS.items()):
        raise ArtifactError("the manifest lacks keys", where=folder / MANIFEST, remedy="ingest again")
    return manifest


def _read_records(path: Path) -> "pa.Table":
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path, schema=schema())
        table.validate(full=True)
    except (OSError, pa.ArrowException) as error:
        raise ArtifactError(f"cannot be read: {error}", where=path, remedy="ingest again") from error
    return table


def _representatives(table: "pa.Table") -> Any:
    from datasets import Dataset

    best: dict[int, tuple[int, int]] = {}
    columns = zip(table.column("group").to_pylist(), table.column("label_source").to_pylist(), strict=True)
    for row, (number, source) in enumerate(columns):
        rank = (RANK.get(source, len(RANK)), row)
        best[number] = min(best.get(number, rank), rank)
    return Dataset(table.take(sorted(row for _, row in best.values())))


def content_fingerprint(columns: Mapping[str, list[Any]], taxonomy: Taxonomy) -> str:
    """Return the hash of the records' content and of the taxonomy."""
    digest = hashlib.sha256(taxonomy.digest.encode())
    for row in zip(*(columns[name] for name in _CONTENT), strict=True):
        digest.update(json.dumps(row, ensure_ascii=True).encode())
    return digest.hexdigest()[:16]


def schema() -> "pa.Schema":
    """Return the columns of ``records.parquet`` with their types."""
    import pyarrow as pa

    texts = ("id", "key", "title", "abstract", "title_raw", "abstract_raw", "venue", "venue_raw")
    return pa.schema(
        [
            *((name, pa.string()) for name in texts),
            ("year", pa.int32()),
            ("part", pa.string()),
            ("random", pa.bool_()),
            ("areas", pa.list_(pa.string())),
            ("known", pa.list_(pa.string())),
            ("label_source", pa.string()),
            ("sure", pa.bool_()),
            ("group", pa.int64()),
            ("file", pa.string()),
            ("line", pa.int64()),
            ("n", pa.int64()),
        ]
    )
