"""Ingest: dumps and labels → the folder of a corpus; every record is kept or rejected with a reason."""

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from abstag import __version__, readers
from abstag.abstracts import Fault, fault, own
from abstag.cleaning import clean
from abstag.corpus import MANIFEST, RECORDS, REJECTS, content_fingerprint, schema
from abstag.duplicates import group
from abstag.errors import AbstagError, ArtifactError, DataError
from abstag.files import new_folder, read_json, storable, to_json, write_json
from abstag.labels import RANK, Agreement, Label, LabelTable, resolve
from abstag.languages import LANGUAGES, english, foreign, words
from abstag.progress import progress
from abstag.records import BoolArray, Record, Reject, content_id, title_key
from abstag.taxonomy import Taxonomy

MIN_WORDS = 5


class CleanRecord(NamedTuple):
    """A record that has passed cleaning, with its id, and the code of its language where that is not English."""

    id: str
    title: str
    abstract: str
    raw: Record
    language: str | None = None


def cleaned(record: Record) -> CleanRecord | Reject:
    """Return the record with clean texts and the id that it brings, else that of its texts; a reject of no abstract.

    The abstract is the author's English one, without copyright, keywords and what else dumps put around it.
    """
    title, abstract = clean(record.title or ""), own(clean(english(record.abstract)))
    found = _fault(title, abstract)
    if found:
        return Reject(record.file, record.n, record.line, *found, record.title, record.id, record.raw)
    return CleanRecord(record.id or content_id(title, abstract), title, abstract, record, foreign(abstract))


def _fault(title: str, abstract: str) -> Fault | None:
    if not abstract:
        return Fault("no abstract", "nothing but markup, a heading or a notice")
    if len(abstract) <= len(title) + 20 and title_key(abstract) == title_key(title):
        return Fault("title only", abstract[:100])
    if words(abstract) < MIN_WORDS:
        return fault(abstract) or Fault(
            "too short", f"{words(abstract)} words after cleaning, at least {MIN_WORDS} needed"
        )
    return fault(abstract)


class UniqueIds:
    """Gives each name in turn an id of its own: a repeated one gets ``-2``, then ``-3``."""

    def __init__(self) -> None:
        self._seen: Counter[str] = Counter()

    def __call__(self, name: str) -> str:
        """Return the id of the next record of this name."""
        unique = name
        while self._seen[unique]:
            self._seen[name] += 1
            unique = f"{name}-{self._seen[name]}"
        self._seen[unique] += 1
        return unique


@dataclass(slots=True)
class _Gathered:
    """What ingest has read so far."""

    records: list[CleanRecord] = field(default_factory=list)
    rejects: list[Reject] = field(default_factory=list)
    sources: list[dict[str, Any]] = field(default_factory=list)


def ingest(  # noqa: PLR0913
    paths: Sequence[str],
    out: Path,
    *,
    taxonomy: Taxonomy,
    labels: Sequence[str] = (),
    format: str | None = None,  # noqa: A002
    mapping: Mapping[str, str] | None = None,
    force: bool = False,
) -> dict[str, Any]:
    """Read dumps into the folder ``out`` and return its manifest.

    Parameters
    ----------
    paths
        Files, folders, globs, or "-" for standard input.
    labels
        Label files (see `labels.read_labels`).
    format
        Name of a format, instead of looking at the content.
    mapping
        Column or key that holds a field of ours, by field (see `readers.parse_mapping`).

    Raises
    ------
    DataError
        A dump or label file cannot be read, or no record is left. Of several dumps that a folder, glob or archive
        brought along, one that cannot be read is a reject.
    ArtifactError
        ``out`` exists (without ``force``) or cannot be written; nothing half-written stays.
    """
    files = readers.expand(paths)
    _refuse_loss(out, [*files, *labels])
    with new_folder(out, force=force) as folder:
        table = LabelTable(labels, taxonomy)
        gathered = _gather(files, readers.brought(files, paths), format, mapping)
        if not gathered.records:
            raise _unusable(gathered.rejects, paths)
        agreement = Agreement(taxonomy)
        columns, conflicts = _columns(gathered.records, table, taxonomy, agreement)
        _write_records(folder / RECORDS, columns)
        with (folder / REJECTS).open("w", encoding="utf-8") as stream:
            for reject in gathered.rejects:
                stream.write(to_json(_reject_row(reject)) + "\n")
        manifest = _manifest(gathered, columns, taxonomy) | {
            "unmatched_labels": table.unmatched,
            "label_conflicts": conflicts,
            "label_agreement": agreement.to_json(),
        }
        write_json(folder / MANIFEST, manifest)
    return manifest


def _refuse_loss(out: Path, inputs: Sequence[str]) -> None:
    """Raise ArtifactError when ``--force`` would replace an input, or something that ingest has not made."""
    names = {path.name for path in out.iterdir()} if out.is_dir() else set()
    other = sorted(names - {MANIFEST, RECORDS, REJECTS})
    if other or (names and not _is_manifest(out / MANIFEST)) or (out.exists() and not out.is_dir()):
        what = f"exists and is no corpus{': it holds ' + other[0] if other else ''}"
        raise ArtifactError(what, where=out, remedy="choose another name")
    place = os.path.realpath(out)
    inside = [name for name in inputs if Path(os.path.realpath(name)).is_relative_to(place)]
    if inside:
        raise ArtifactError(
            "lies in the folder to be made", where=inside[0], remedy="choose another name for the folder"
        )


def _is_manifest(path: Path) -> bool:
    try:
        return {"fingerprint", "taxonomy", "sources"} <= set(read_json(path))
    except (ArtifactError, TypeError):
        return False


def _unusable(rejects: Sequence[Reject], paths: Sequence[str]) -> DataError:
    counted = Counter(reject.reason for reject in rejects).most_common(3)
    reasons = ", ".join(f"{count} {reason}" for reason, count in counted) or "none read"
    unread = next((f" ({reject.detail})" for reject in rejects if reject.reason == "unreadable file"), "")
    bare = {reject.reason for reject in rejects} == {"no abstract"}
    remedy = "export it with abstracts" if bare else "check the dump"
    return DataError(
        f"no usable record among {len(rejects)}: {reasons}{unread}",
        where=", ".join(paths),
        remedy=f"{remedy}, or name its format with --format",
    )


def _gather(
    files: Sequence[str],
    brought: set[str],
    format: str | None,  # noqa: A002
    mapping: Mapping[str, str] | None,
) -> _Gathered:
    gathered, unique = _Gathered(), UniqueIds()
    for name in files:
        before, dump = (len(gathered.records), len(gathered.rejects)), None
        try:
            dump = readers.open_dump(name, format=format, mapping=mapping)
            for item in progress(dump.items, f"reading {Path(name).name}"):
                item = replace(item, raw=None)  # noqa: PLW2901  # a corpus does not keep it
                found = cleaned(item) if isinstance(item, Record) else item
                if isinstance(found, Reject):
                    gathered.rejects.append(found)
                else:
                    gathered.records.append(found._replace(id=unique(found.id)))
        except AbstagError as error:
            if name not in brought:
                raise
            n = len(gathered.records) + len(gathered.rejects) - sum(before) + 1
            gathered.rejects.append(readers.unreadable(name, n, error))
        records, rejects = len(gathered.records) - before[0], gathered.rejects[before[1] :]
        gathered.sources.append(_source(name, dump, records, rejects))
    return gathered


def _source(name: str, dump: readers.Dump | None, records: int, rejects: Sequence[Reject]) -> dict[str, Any]:
    encoding = dump.encoding if dump else None
    return {
        "file": name,
        "format": dump.format if dump else "unknown",
        "why": dump.why if dump else "",
        "read": records + len(rejects),
        "records": records,
        "rejects": len(rejects),
        "reasons": dict(Counter(reject.reason for reject in rejects)),
        "encoding": encoding and encoding.name,
        "repaired": encoding.repaired if encoding else 0,
    }


def _columns(
    records: Sequence[CleanRecord], table: LabelTable, taxonomy: Taxonomy, agreement: Agreement
) -> tuple[dict[str, list[Any]], int]:
    keys = [title_key(record.raw.title) for record in records]
    groups = group(keys, [record.abstract for record in records])
    rows, conflicts = [], 0
    for record, key, number in zip(records, keys, groups, strict=True):
        found = table.find(id=record.id, key=key)
        labels = [*found, *_own_labels(record.raw, taxonomy)]
        label = resolve(labels, len(taxonomy.areas))
        agreement.add(labels)
        conflicts += label.conflicts
        rows.append(
            {
                "id": record.id,
                "key": key,
                "title": record.title or None,
                "abstract": record.abstract,
                "title_raw": record.raw.title,
                "abstract_raw": record.raw.abstract,
                "venue": taxonomy.venue(record.raw.venue),
                "venue_raw": record.raw.venue,
                "year": record.raw.year,
                "part": next((label.part for label in found if label.part), record.raw.part),
                "random": next((label.random for label in found if label.random is not None), None),
                "areas": taxonomy.decode(label.values) if label.known.any() else None,
                "known": taxonomy.decode(label.known) if label.source else None,
                "label_source": label.source,
                "sure": label.sure if label.source else None,
                "group": int(number),
                "file": record.raw.file,
                "line": record.raw.line,
                "n": record.raw.n,
            }
        )
    return {name: [_stored(row[name]) for row in rows] for name in rows[0]}, conflicts


def _stored(value: Any) -> Any:
    return storable(value) if isinstance(value, str) else value


def _own_labels(record: Record, taxonomy: Taxonomy) -> Iterator[Label]:
    size = len(taxonomy.areas)
    where = f"{record.file}: record {record.n}"
    if record.areas is not None:
        judged = _encode(record.judged, taxonomy, where) if record.judged else np.ones(size, dtype=np.bool_)
        yield Label("read", _encode(record.areas, taxonomy, where), judged, np.zeros(size, dtype=np.bool_), record.sure)
    if record.declared:
        declared = taxonomy.encode(taxonomy.declared(record.declared))
        yield Label("declared", declared, declared, np.zeros(size, dtype=np.bool_))


def _encode(areas: Sequence[str], taxonomy: Taxonomy, where: str) -> BoolArray:
    try:
        return taxonomy.encode(areas)
    except DataError as error:
        raise DataError(error.what, where=where, remedy=error.remedy) from error


def _reject_row(reject: Reject) -> dict[str, Any]:
    return {name: getattr(reject, name) for name in ("file", "line", "n", "reason", "detail")}


def _manifest(gathered: _Gathered, columns: Mapping[str, list[Any]], taxonomy: Taxonomy) -> dict[str, Any]:
    records, rejects = len(gathered.records), len(gathered.rejects)
    labels = zip(columns["label_source"], columns["areas"], strict=True)
    first = dict(zip(reversed(columns["group"]), range(records - 1, -1, -1), strict=True))
    repeats = Counter(file for row, file in enumerate(columns["file"]) if first[columns["group"][row]] != row)
    counted = Counter(source for source, areas in labels if areas is not None)
    return {
        "read": records + rejects,
        "records": records,
        "rejects": rejects,
        "reject_reasons": dict(Counter(reject.reason for reject in gathered.rejects)),
        "duplicates": records - len(set(columns["group"])),
        "languages": dict(Counter(record.language for record in gathered.records if record.language).most_common()),
        "labelled": {source: counted[source] for source in RANK if counted[source]},
        "fingerprint": content_fingerprint(columns, taxonomy),
        "sources": [source | {"duplicates": repeats[_stored(source["file"])]} for source in gathered.sources],
        "taxonomy": {"digest": taxonomy.digest, **taxonomy.source},
        "version": __version__,
    }


def _write_records(path: Path, columns: Mapping[str, list[Any]]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table(dict(columns), schema=schema()), path, compression="zstd")


def manifest_summary(manifest: Mapping[str, Any]) -> str:
    """Return the manifest in a few lines for people."""
    labelled = ", ".join(f"{count} {source}" for source, count in manifest["labelled"].items()) or "none"
    reasons = ", ".join(f"{count} {reason}" for reason, count in manifest["reject_reasons"].items())
    differing, unmatched = manifest["label_conflicts"], manifest["unmatched_labels"]
    lines = [
        f"read {manifest['read']} = {manifest['records']} records + {manifest['rejects']} rejects",
        f"rejected: {reasons or 'none'}",
        f"duplicates: {manifest['duplicates']}",
        f"labelled: {labelled}",
        f"label rows without a record: {unmatched}; cells on which labels differ: {differing}",
        f"fingerprint: {manifest['fingerprint']}",
    ]
    if manifest["languages"]:
        named = ", ".join(f"{count} {LANGUAGES[code]}" for code, count in manifest["languages"].items())
        lines.insert(3, f"not English: {named}")
    return "\n".join(lines)
