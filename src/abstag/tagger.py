"""Stream dumps through a bundle: every record is tagged, left without a tag, put up for review, or rejected."""

import logging
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from abstag import readers
from abstag.bundle import Bundle
from abstag.corpus import Corpus
from abstag.errors import ArtifactError, DataError
from abstag.evaluation import part_metrics, score_table
from abstag.files import new_file, to_json
from abstag.ingest import Cleaner, CleanRecord
from abstag.progress import progress
from abstag.records import Documents, FloatArray, Record, Reject, title_key

_LOG = logging.getLogger(__name__)
_BATCH = 256
DECISIONS = ("tag", "none", "review", "reject")


@dataclass(slots=True)
class Tally:
    """How many records came to which decision; the counts add up to the records read."""

    decisions: Counter[str] = field(default_factory=Counter)
    areas: Counter[str] = field(default_factory=Counter)

    @property
    def read(self) -> int:
        """Number of records read."""
        return sum(self.decisions.values())

    def __str__(self) -> str:
        parts = " + ".join(f"{self.decisions[name]} {name}" for name in DECISIONS)
        areas = ", ".join(f"{area} {count}" for area, count in self.areas.most_common()) or "none"
        return f"read {self.read} = {parts}; areas: {areas}"


def tag(
    paths: Sequence[str],
    bundle: Bundle,
    out: TextIO,
    *,
    format: str | None = None,  # noqa: A002
    mapping: Mapping[str, str] | None = None,
) -> Tally:
    """Tag dumps and write one JSON line a record, in the order read, at constant memory; warn of training papers.

    Raises
    ------
    DataError
        A dump cannot be read.
    """
    tally, seen = Tally(), 0
    for item, line in _tagged(paths, bundle, format, mapping):
        out.write(to_json(line) + "\n")
        tally.decisions[line["decision"]] += 1
        tally.areas.update(line["areas"])
        seen += isinstance(item, CleanRecord) and bundle.trained_on(item.id, title_key(item.raw.title))
    if seen:
        text = "%d of %d papers were in the training set of %s: on new papers it errs more often"
        _LOG.warning(text, seen, tally.read - tally.decisions["reject"], bundle.name)
    return tally


def tag_to_file(
    paths: Sequence[str],
    bundle: Bundle,
    out: Path,
    *,
    format: str | None = None,  # noqa: A002
    mapping: Mapping[str, str] | None = None,
    force: bool = False,
) -> Tally:
    """Tag dumps into a file that is whole or absent; see `tag`.

    Raises
    ------
    DataError
        A dump cannot be read.
    ArtifactError
        ``out`` is one of the dumps, exists (without ``force``) or cannot be written.
    """
    if out.exists() and any(name != "-" and out.samefile(name) for name in readers.expand(paths)):
        raise ArtifactError("is one of the dumps to be tagged", where=out, remedy="choose another name")
    with new_file(out, force=force) as stream:
        return tag(paths, bundle, stream, format=format, mapping=mapping)


def tag_lines(
    paths: Sequence[str],
    bundle: Bundle,
    *,
    format: str | None = None,  # noqa: A002
    mapping: Mapping[str, str] | None = None,
) -> Iterator[dict[str, Any]]:
    """Yield the output line of each record, as docs/contracts.md says."""
    return (line for _, line in _tagged(paths, bundle, format, mapping))


def _tagged(
    paths: Sequence[str],
    bundle: Bundle,
    format: str | None,  # noqa: A002
    mapping: Mapping[str, str] | None,
) -> Iterator[tuple[CleanRecord | Reject, dict[str, Any]]]:
    cleaner = Cleaner()
    for name in readers.expand(paths):
        dump = readers.open_dump(name, format=format, mapping=mapping)
        items = iter(progress(dump.items, f"tagging {name}"))
        while batch := list(islice(items, _BATCH)):
            cleaned = [cleaner(item) if isinstance(item, Record) else item for item in batch]
            yield from zip(cleaned, _lines(cleaned, bundle), strict=True)


def evaluate_bundle(bundle: Bundle, corpus: Corpus) -> dict[str, Any]:
    """Measure a bundle on the read and review labels of a corpus, without the papers that it was trained on.

    Returns
    -------
    dict
        ``bundle``, ``corpus``, ``scored`` and ``left_out`` (numbers of papers), ``left_out_ids``, and ``metrics`` (see
        `evaluation.part_metrics`).

    Raises
    ------
    DataError
        Other areas, or no labelled paper is left.
    """
    if bundle.taxonomy.ids != corpus.taxonomy.ids:
        raise DataError(
            f"the bundle tags {', '.join(bundle.taxonomy.ids)}, the corpus has {', '.join(corpus.taxonomy.ids)}",
            where=corpus.name,
        )
    labelled = np.flatnonzero(corpus.scorable)
    names = list(zip(corpus.column("id"), corpus.column("key"), strict=True))
    seen = np.array([bundle.trained_on(*names[row]) for row in labelled], dtype=np.bool_)
    rows = labelled[~seen]
    if not len(rows):
        raise DataError(
            f"no paper to score: {len(labelled)} are labelled, {int(seen.sum())} of them trained the bundle",
            where=corpus.name,
        )
    probabilities = bundle.probabilities(corpus.documents[rows])
    scores = score_table(corpus, rows, probabilities, bundle.decision)
    return {
        "bundle": bundle.name,
        "corpus": {"name": corpus.name, "fingerprint": corpus.fingerprint},
        "scored": len(rows),
        "left_out": int(seen.sum()),
        "left_out_ids": [names[row][0] for row in labelled[seen]],
        "metrics": part_metrics(scores, np.ones(len(rows), dtype=np.bool_)),
    }


def _lines(batch: Sequence[CleanRecord | Reject], bundle: Bundle) -> Iterator[dict[str, Any]]:
    records = [item for item in batch if isinstance(item, CleanRecord)]
    documents = Documents(*([getattr(item, name) for item in records] for name in ("id", "title", "abstract")))
    scored = iter(bundle.probabilities(documents))
    for item in batch:
        yield _reject_line(item) if isinstance(item, Reject) else _line(item, next(scored), bundle)


def _reject_line(reject: Reject) -> dict[str, Any]:
    reason = f"{reject.reason}: {reject.detail}" if reject.detail else reject.reason
    return {
        "id": reject.id,
        "file": reject.file,
        "n": reject.n,
        "title": reject.title,
        "areas": [],
        "uncertain": [],
        "scores": None,
        "decision": "reject",
        "reason": reason,
    }


def _line(item: CleanRecord, probabilities: FloatArray, bundle: Bundle) -> dict[str, Any]:
    decision, ids = bundle.decision, bundle.taxonomy.ids
    tags = decision.tags(probabilities)
    doubtful = decision.confidence(probabilities) < decision.review
    areas = bundle.taxonomy.decode(tags & ~doubtful)
    uncertain = bundle.taxonomy.decode(doubtful)
    return {
        "id": item.id,
        "file": item.raw.file,
        "n": item.raw.n,
        "title": item.title or None,
        "areas": areas,
        "uncertain": uncertain,
        "scores": dict(zip(ids, np.round(probabilities, 4).tolist(), strict=True)),
        "decision": "review" if uncertain else "tag" if areas else "none",
        "reason": f"unsure of {', '.join(uncertain)}" if uncertain else None,
    }
