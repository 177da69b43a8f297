"""Dumps → a file of tags: scored part by part, then adjusted, decided and written, every record once and in order."""

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO, NamedTuple

from abstag import __version__, drift, readers, writers
from abstag.bundle import Bundle
from abstag.drift import Shift
from abstag.errors import AbstagError, DataError
from abstag.files import file_hash, refuse_existing, storable, write_json
from abstag.ingest import UniqueIds
from abstag.progress import progress
from abstag.records import Record, Reject
from abstag.tagger.lines import DECISIONS, Choice, Decided, Rule, Scored, named, score
from abstag.tagger.output import dumps, parts_path, put, read_once, remove_unfinished, summary_path
from abstag.tagger.parts import Parts, kept_parts, read_part
from abstag.tagger.workers import Workers, workers

_BATCH = 512
Item = Record | Reject


class Reading(NamedTuple):
    """How dumps are read: the name of a format, and the column or key of each field, where they are not to be found."""

    format: str | None = None
    mapping: Mapping[str, str] | None = None


AS_FOUND, ADJUSTED = Reading(), Choice()


@dataclass(slots=True)
class Summary:
    """What became of the records of a job; the counts add up to the records read.

    Attributes
    ----------
    decisions, areas
        How many records came to which decision, and to which area.
    files_given
        Number of files.
    files
        The decisions, file by file.
    failed
        Files that could not be read, or not to their end, with the reason.
    trained_on
        Number of papers that the tagger has learnt from.
    prevalence
        Of each area its share among the tagger's training papers ("trained"), and that estimated for the dumps
        ("found"); empty when probabilities are not adjusted.
    right
        Share of the papers decided that is expected to have all areas right; None when these dumps are not asked.
    shift
        How the dumps differ from the training papers; None where the tagger cannot tell.
    """

    bundle: str
    files_given: int
    decisions: Counter[str] = field(default_factory=Counter)
    areas: Counter[str] = field(default_factory=Counter)
    files: dict[str, Counter[str]] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    trained_on: int = 0
    prevalence: dict[str, dict[str, float]] = field(default_factory=dict)
    right: float | None = None
    shift: Shift | None = None

    @property
    def read(self) -> int:
        """Number of records read."""
        return sum(self.decisions.values())

    def added(self, line: dict[str, Any]) -> dict[str, Any]:
        """Count an output line, and return it."""
        self.decisions[line["decision"]] += 1
        self.files.setdefault(line["file"], Counter())[line["decision"]] += 1
        self.areas.update(line["areas"])
        return line

    def to_json(self) -> dict[str, Any]:
        """Return what is written beside the output."""
        return {
            "bundle": self.bundle,
            "read": self.read,
            **_counts(self.decisions),
            "areas": dict(self.areas),
            "files": [{"file": name, "read": count.total(), **_counts(count)} for name, count in self.files.items()],
            "failed": self.failed,
            "trained_on": self.trained_on,
            "prevalence": self.prevalence,
            "right": self.right,
            "shift": self.shift and self.shift.to_dict(),
        }

    def __str__(self) -> str:
        parts = " + ".join(f"{self.decisions[name]} {name}" for name in DECISIONS)
        areas = ", ".join(f"{area} {count}" for area, count in self.areas.most_common()) or "none"
        lines = [f"read {self.read} = {parts}; areas: {areas}"]
        if self.prevalence:
            found = (f"{area} {share['found']:.1%} ({share['trained']:.1%})" for area, share in self.prevalence.items())
            lines.append(f"estimated prevalence (of training papers): {', '.join(found)}; --no-adjust leaves it out")
        if self.right and self.decisions["review"]:
            lines.append(f"without those for review, {self.right:.0%} are expected to have all areas right")
        if self.shift and self.shift.papers:
            lines.append(self.shift.sentence)
        if self.trained_on:
            lines.append(
                f"{self.trained_on} papers were in the training set of {self.bundle}: on new ones it errs more"
            )
        return "\n".join(lines)


def _counts(decisions: Counter[str]) -> dict[str, int]:
    return {name: decisions[name] for name in DECISIONS}


def tag_dumps(  # noqa: PLR0913
    paths: Sequence[str],
    bundle: Bundle,
    out: Path | None = None,
    *,
    reading: Reading = AS_FOUND,
    choice: Choice = ADJUSTED,
    threads: int | None = None,
    restart: bool = False,
    force: bool = False,
) -> Summary:
    """Tag dumps into a file, or as JSON Lines on standard output.

    Where an interrupted process has left its parts beside ``out``, their papers are not scored again; the file is the
    same as if nothing had happened. A dump that cannot be read to its end is noted, and the others are tagged.

    Parameters
    ----------
    out
        The file to make, whole or absent; its suffix tells the format (see `writers.writer_for`).
    threads
        How many processes clean, score and decide, ≥ 1, beside the one that reads and writes where it is not one; or
        how many threads an encoder has. None is one process, and of an encoder as many threads as it takes by itself.
    restart
        Throw away what an interrupted process has left.

    Raises
    ------
    DataError
        No dump can be read, or there is no such format, column or area.
    ArtifactError
        ``out`` is one of the dumps, exists (without ``force``) or cannot be written; another job has begun it.
    """
    files = dumps(paths, out)
    summary, brought = Summary(bundle.name, len(files)), readers.brought(files, paths)
    bundle.taxonomy.encode(choice.areas)
    name = out or Path("-.jsonl")
    needs_records = writers.writer_for(name).NEEDS_RECORDS
    if needs_records and read_once(files):
        what = f"can be read but once, and {name.suffix} takes it twice"
        raise DataError(what, where=read_once(files)[0], remedy="save it to a file, or write .jsonl")

    def write(decided: Iterable[Decided], stream: BinaryIO) -> None:
        told = choice.areas or bundle.taxonomy.ids
        areas = {area.id: area.name for area in bundle.taxonomy.areas if area.id in told}
        records = _items(files, brought, reading, {}) if needs_records else None
        writers.write(_pairs(_counted(decided, bundle, summary), records), stream, name, names=areas)

    items = _items(files, brought, reading, summary.failed)
    with workers(bundle, threads) as pool:
        if out is None and not choice.looks_ahead:
            write(pool.map(Rule(choice).decide, _scored(items, pool, choice, UniqueIds())), sys.stdout.buffer)
            return summary
        with _parts(files, bundle, out, reading=reading, choice=choice, restart=restart, force=force) as parts:
            unique = UniqueIds()
            for batch in parts:
                named(batch, unique)
            for batch in _scored(islice(items, parts.size, None), pool, choice, unique):
                parts.append(batch)
            if not parts.size and summary.failed:
                raise DataError("; ".join(summary.failed.values()))
            rule = Rule.fitted(parts, bundle, choice)
            summary.prevalence = rule.prevalence(bundle)
            summary.right = bundle.decision.right if choice.adjust else None
            decided = pool.map(partial(_decided, rule=rule), parts.files)
            if out is None:
                write(decided, sys.stdout.buffer)
                return summary
            with put(out, force=force) as stream:
                write(decided, stream)
                write_json(summary_path(out), summary.to_json())
    return summary


def _decided(part: Path, bundle: Bundle, *, rule: Rule) -> Decided:
    return rule.decide(read_part(part), bundle)


def _counted(decided: Iterable[Decided], bundle: Bundle, summary: Summary) -> Iterator[dict[str, Any]]:
    """Yield the output lines; once they are all taken the summary holds what they add up to."""
    dump = drift.Dump(bundle.reference) if bundle.reference else None
    for batch in decided:
        summary.trained_on += batch.trained_on
        if dump is not None:
            dump.add(batch.probabilities, batch.tags, batch.confidence, batch.coverage)
        yield from map(summary.added, batch.lines)
    summary.shift = None if dump is None else drift.shift(dump)


def _pairs(
    lines: Iterable[dict[str, Any]], records: Iterator[Item] | None
) -> Iterator[tuple[Item | None, dict[str, Any]]]:
    """Yield each line with the record that it is of; raises DataError when a dump was changed since it was scored."""
    for line in lines:
        item = None if records is None else next(records, None)
        if records is not None and (
            item is None or (storable(item.file), item.n) != (storable(line["file"]), line["n"])
        ):
            raise DataError("was changed while it was tagged", where=line["file"], remedy="tag it again with --restart")
        yield item, line


@contextmanager
def _parts(  # noqa: PLR0913
    files: Sequence[str],
    bundle: Bundle,
    out: Path | None,
    *,
    reading: Reading,
    choice: Choice,
    restart: bool,
    force: bool,
) -> Iterator[Parts]:
    """Give the parts of the job; without a file to make, or of what is read but once, none outlive the process."""
    made = () if out is None else (out, summary_path(out))
    once = bool(read_once(files))
    if once or restart:
        for path in made:
            refuse_existing(path, force=force)
    if out is None or once:
        with TemporaryDirectory(prefix="abstag-") as folder:
            yield Parts(Path(folder))
        return
    hashes = {place: file_hash(place) for place in set(map(readers.place, files))}
    job = {
        "abstag": __version__,
        "bundle": bundle.digest,
        "dumps": [[name, hashes[readers.place(name)]] for name in files],
        "reading": [reading.format, dict(reading.mapping or {})],
        "explain": choice.explain,
    }
    with kept_parts(parts_path(out), job, restart=restart) as parts:
        for path in made:
            refuse_existing(path, force=force or parts.resumed)
        remove_unfinished(out)
        yield parts


def _items(files: Sequence[str], brought: set[str], reading: Reading, failed: dict[str, str]) -> Iterator[Item]:
    """Yield the records of files; one that cannot be read, or not to its end, is noted, and if not named a reject."""
    for name in files:
        n = 0
        try:
            dump = readers.open_dump(name, format=reading.format, mapping=reading.mapping)
            for item in progress(dump.items, f"tagging {name}"):
                n = item.n
                yield item
        except AbstagError as error:
            failed[name] = str(error)
            if name in brought:
                yield readers.unreadable(name, n + 1, error)


def _scored(items: Iterator[Item], pool: Workers, choice: Choice, unique: UniqueIds) -> Iterator[list[Scored]]:
    """Yield records scored in batches, in their order, papers with an id of their own."""
    batches = iter(lambda: list(islice(items, _BATCH)), [])
    for batch in pool.map(partial(score, explain=choice.explain), batches):
        yield named(batch, unique)
