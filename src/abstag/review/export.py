"""Which tagged papers are most worth a look, as a sheet to fill in."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from math import ceil
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from abstag import readers
from abstag.decision import Decision
from abstag.errors import AbstagError, ArtifactError, DataError
from abstag.ingest import CleanRecord, UniqueIds, cleaned
from abstag.labels import SCORED, LabelTable
from abstag.progress import progress
from abstag.records import BoolArray, FloatArray, Record, Reject, title_key
from abstag.review import DIFFER, DRIFT, RANDOM, REST, SHEET, UNSURE, check_of
from abstag.sheets import write_sheet
from abstag.taxonomy import Taxonomy

_WIDTHS = (12, 10, 40, 90, 16, 16, 20, 20, 7, 7, 12, 12, 30, 10)
_RANDOM_SHARE = 0.1
_UNLIKE = "unlike"  # in the reason of a line: the paper is unlike the training papers
_MARGIN = 1e-6


class Exported(NamedTuple):
    """How many papers went out of how many, and for which reasons; a paper may have several."""

    papers: int
    among: int
    reasons: Counter[str]

    def __str__(self) -> str:
        reasons = ", ".join(f"{count} {reason}" for reason, count in self.reasons.most_common())
        return f"{self.papers} of {self.among} papers: {reasons}"


class Tagged(NamedTuple):
    """What a tagger said of n papers × k areas: lines of `abstag tag` but rejects, and a decision that agrees."""

    path: str
    lines: Sequence[Mapping[str, Any]]
    probabilities: FloatArray
    decision: Decision

    @property
    def tags(self) -> BoolArray:
        """(n, k) bool: the areas, where unsure as the decision has it."""
        return self.decision.tags(self.probabilities)


def export_sheet(  # noqa: PLR0913
    paths: Sequence[str],
    tags: Sequence[str],
    out: Path,
    *,
    taxonomy: Taxonomy,
    top: int = 200,
    seed: int = 0,
    labels: Sequence[str] = (),
    format: str | None = None,  # noqa: A002
    mapping: Mapping[str, str] | None = None,
    force: bool = False,
) -> Exported:
    """Write the tagged papers most worth a look into a sheet, each title once.

    Parameters
    ----------
    paths
        The dumps that were tagged.
    tags
        Output of `abstag tag`. The first suggests the areas; where others differ, the paper is worth a look.
    top
        Number of papers, ≥ 1. A tenth is drawn at random; the others are in turn those on which taggers differ, those
        said to be unlike the training papers, and those of which the first tagger is least sure.
    labels
        Label files; papers with a read or review label are left out.

    Raises
    ------
    DataError
        A file cannot be read, dumps or tags are not of the same papers, tags have other areas, or no paper is left.
    ArtifactError
        ``out`` is one of the inputs, exists (without ``force``) or cannot be written.
    """
    files = readers.expand(paths)
    if out.exists() and any(name != "-" and out.samefile(name) for name in (*files, *tags, *labels)):
        raise ArtifactError("is one of the inputs", where=out, remedy="choose another name")
    if top < 1:
        raise DataError(f"{top} papers are none", where="--top", remedy="ask for 1 or more")
    first, *others = (_read_tags(path, taxonomy) for path in tags)
    taggers = [first, *(_aligned(other, first) for other in others)]
    records = _records(files, readers.brought(files, paths), first, format=format, mapping=mapping)
    rows = _distinct(records, LabelTable(labels, taxonomy))
    if not rows:
        raise DataError("no paper is left: all are labelled", where=tags[0], remedy="tag more papers")
    chosen = choose(taggers, rows, top=top, seed=seed, drawn=REST if labels else RANDOM)
    sheet = [_exported_row(row, why, taggers, records[row], taxonomy.ids) for row, why in chosen.items()]
    write_sheet(out, [SHEET, *sheet], _WIDTHS, force=force)
    return Exported(len(chosen), len(rows), Counter(reason for why in chosen.values() for reason in why))


def _read_tags(path: str, taxonomy: Taxonomy) -> Tagged:
    lines, seen = [], set()
    try:
        with Path(path).open(encoding="utf-8") as stream:
            for number, text in enumerate(stream, start=1):
                line = _tag_line(text, f"{path}:{number}", taxonomy)
                if line["scores"] is None:
                    continue
                if line["id"] in seen:
                    remedy = "tag all dumps in one call"
                    raise DataError(f"the id {line['id']!r} stands twice", where=f"{path}:{number}", remedy=remedy)
                seen.add(line["id"])
                lines.append(line)
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"cannot read the tags: {error}", where=path) from error
    if not lines:
        raise DataError("no tagged paper", where=path, remedy="give the output of `abstag tag`")
    probabilities = np.array([[line["scores"][area] for area in taxonomy.ids] for line in lines], dtype=np.float64)
    yes, doubtful = (np.array([taxonomy.encode(line[name]) for line in lines]) for name in ("areas", "uncertain"))
    return Tagged(path, lines, probabilities, decision_of(probabilities, yes, ~yes & ~doubtful))


def _tag_line(text: str, where: str, taxonomy: Taxonomy) -> dict[str, Any]:
    try:
        line: dict[str, Any] = json.loads(text)
        areas = None if line["scores"] is None else {*line["scores"], *line["areas"], *line["uncertain"]}
        [line[name] for name in ("id", "file", "n", "title", "reason")]
        [float(score) for score in (line["scores"] or {}).values()]
    except (ValueError, KeyError, TypeError) as error:
        raise DataError("is no line of `abstag tag`", where=where, remedy="give its output as it is") from error
    if areas is not None and areas != set(taxonomy.ids):
        what = f"the areas are {', '.join(sorted(areas))}, the taxonomy has {', '.join(taxonomy.ids)}"
        raise DataError(what, where=where, remedy="name the tagger's taxonomy with --taxonomy")
    return line


def decision_of(probabilities: FloatArray, yes: BoolArray, no: BoolArray) -> Decision:
    """Return a decision that explains of which areas a tagger was sure; calibration is left out.

    A tagger is sure from the probability t + c (1 - t) on, and up to t (1 - c), where t is the threshold and c the
    review line (see `decision.Decision.confidence`): what lies between spans c for every area, so that the widest span
    of unsure probabilities estimates it, or the narrowest gap between sure ones if that is less. Of the thresholds that
    fit, t is the nearest to 0.5.

    Parameters
    ----------
    probabilities
        (n, k) float64 in [0, 1].
    yes, no
        (n, k) bool: the area was given, was denied; neither where the tagger was unsure.
    """
    high, low = np.where(yes, probabilities, 1.0).min(axis=0), np.where(no, probabilities, 0.0).max(axis=0)
    unsure = ~yes & ~no
    span = np.where(unsure, probabilities, 0.0).max(axis=0) - np.where(unsure, probabilities, 1.0).min(axis=0)
    line = np.clip(min(span.max(), (high - low).min()), 0.0, 1 - _MARGIN)
    thresholds = np.clip(0.5, low / (1 - line), (high - line) / (1 - line))
    ones = np.ones_like(thresholds)
    return Decision(ones, 0 * ones, np.clip(thresholds, _MARGIN, 1 - _MARGIN), np.inf)


def _places(lines: Sequence[Mapping[str, Any]]) -> dict[tuple[Any, ...], int]:
    """Return the numbers of papers by title and place in a dump, and by title and id."""
    places = {(line["title"], line["file"], line["n"]): number for number, line in enumerate(lines)}
    return places | {(line["title"], line["id"]): number for number, line in enumerate(lines)}


def _aligned(other: Tagged, first: Tagged) -> Tagged:
    """Return the other tagger's lines in the order of the first one's."""
    places = _places(other.lines)
    names = [((line["title"], line["id"]), (line["title"], line["file"], line["n"])) for line in first.lines]
    rows = [places.get(by_id, places.get(by_place, -1)) for by_id, by_place in names]
    if min(rows) < 0:
        what = f"lacks {rows.count(-1)} of the {len(rows)} papers of the first tags"
        raise DataError(what, where=other.path, remedy="tag the same dumps with each")
    return other._replace(lines=[other.lines[row] for row in rows], probabilities=other.probabilities[rows])


def _records(
    files: Sequence[str],
    brought: set[str],
    tagged: Tagged,
    *,
    format: str | None,  # noqa: A002
    mapping: Mapping[str, str] | None,
) -> list[CleanRecord]:
    """Return the records that were tagged, in the order of the tags."""
    places, unique = _places(tagged.lines), UniqueIds()
    found: dict[int, CleanRecord] = {}
    for item in _read(files, brought, format, mapping):
        record = cleaned(item) if isinstance(item, Record) else item
        if isinstance(record, CleanRecord):
            record = record._replace(id=unique(record.id))
            title = record.title or None
            place = places.get((title, record.id), places.get((title, item.file, item.n)))
            if place is not None:
                found.setdefault(place, record)
    missing = len(tagged.lines) - len(found)
    if missing:
        what = f"{missing} of {len(tagged.lines)} tagged papers are not in the dumps"
        raise DataError(what, where=tagged.path, remedy="give the dumps that were tagged, as they were")
    return [found[place] for place in sorted(found)]


def _read(
    files: Sequence[str],
    brought: set[str],
    format: str | None,  # noqa: A002
    mapping: Mapping[str, str] | None,
) -> Iterator[Record | Reject]:
    for name in files:
        try:
            dump = readers.open_dump(name, format=format, mapping=mapping)
            yield from progress(dump.items, f"reading {name}")
        except AbstagError:
            if name not in brought:
                raise


def _distinct(records: Sequence[CleanRecord], table: LabelTable) -> list[int]:
    """Return the rows of papers that are not labelled by reading or review, each title once."""
    rows: dict[str, int] = {}
    for row, record in enumerate(records):
        key = title_key(record.raw.title)
        if not any(label.source in SCORED for label in table.find(id=record.id, key=key)):
            rows.setdefault(key or f"id:{record.id}", row)
    return list(rows.values())


def choose(
    taggers: Sequence[Tagged], rows: Sequence[int], *, top: int, seed: int, drawn: str
) -> dict[int, tuple[str, ...]]:
    """Return the chosen rows with their reasons, in the order of the sheet: the best first, the random ones between.

    The random ones are drawn before the others, from all rows, so that how often they are wrong tells it of all.
    """
    size = min(top, len(rows))
    count = ceil(size * _RANDOM_SHARE)
    random = set(np.random.default_rng(seed).choice(np.asarray(rows), count, replace=False).tolist())
    gap, drifting, confidence = _signs(taggers)
    sure = sorted(rows, key=lambda row: confidence[row])
    differ = sorted((row for row in rows if gap[row] >= 0), key=lambda row: -gap[row])
    turns = zip_longest(differ, [row for row in sure if drifting[row]], sure)
    ranked = dict.fromkeys(row for turn in turns for row in turn if row is not None)
    best = [row for row in ranked if row not in random][: size - count]
    places = {row: (place + 0.5) / len(part) for part in (best, random) for place, row in enumerate(part)}

    def why(row: int) -> tuple[str, ...]:
        flags = {drawn: row in random, DIFFER: gap[row] >= 0, DRIFT: drifting[row]}
        flags[UNSURE] = bool(taggers[0].lines[row]["uncertain"]) or not any(flags.values())
        return tuple(reason for reason, holds in flags.items() if holds)

    return {row: why(row) for row in sorted(places, key=places.__getitem__)}


def _signs(taggers: Sequence[Tagged]) -> tuple[FloatArray, list[bool], FloatArray]:
    """Return of each paper: how far taggers are apart where they differ (else -1), drift, the first's confidence."""
    first = taggers[0]
    differing = np.any([tagger.tags != first.tags for tagger in taggers], axis=0)
    apart = np.ptp([tagger.probabilities for tagger in taggers], axis=0)
    drifting = [_UNLIKE in (line["reason"] or "") for line in first.lines]
    confidence = first.decision.confidence(first.probabilities).min(axis=1)
    return np.where(differing, apart, -1.0).max(axis=1), drifting, confidence


def _exported_row(
    row: int, why: Sequence[str], taggers: Sequence[Tagged], record: CleanRecord, areas: Sequence[str]
) -> list[str]:
    uncertain = taggers[0].lines[row]["uncertain"]
    tags = [area for area, holds in zip(areas, taggers[0].tags[row], strict=True) if holds]
    suggested = ";".join(f"{area}?" if area in uncertain else area for area in tags)
    cells = {
        "id": record.id,
        "key": title_key(record.raw.title) or "",
        "title": record.title,
        "abstract": record.abstract,
        "suggested": suggested or ("none?" if uncertain else "none"),
        "why": "; ".join(why),
        "scores": "\n".join(_scores(tagger, row, areas, named=len(taggers) > 1) for tagger in taggers),
    }
    cells["check"] = check_of(cells)
    return [cells.get(name, "") for name in SHEET]


def _scores(tagger: Tagged, row: int, areas: Sequence[str], *, named: bool) -> str:
    scores = [f"{area} {score:.2f}" for area, score in zip(areas, tagger.probabilities[row], strict=True)]
    return (f"{Path(tagger.path).stem}: " if named else "") + "; ".join(scores)
