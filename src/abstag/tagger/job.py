"""Dumps → a file of tags: scored part by part, then adjusted, decided and written, every record once and in order."""

import sys
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from itertools import islice, repeat
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO, NamedTuple

from abstag import __version__, drift, readers, writers
from abstag.bundle import Bundle
from abstag.drift import Shift
from abstag.errors import AbstagError, ArtifactError, DataError
from abstag.files import file_hash, new_binary_file, refuse_existing, write_json
from abstag.progress import progress
from abstag.records import Record, Reject
from abstag.tagger.lines import DECISIONS, Choice, Rule, Scored, score
from abstag.tagger.parts import Parts, kept_parts

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
    shift: Shift | None = None

    @property
    def read(self) -> int:
        """Number of records read."""
        return sum(self.decisions.values())

    def added(self, scored: Scored, line: dict[str, Any]) -> dict[str, Any]:
        """Count an output line, and return it."""
        self.decisions[line["decision"]] += 1
        self.files.setdefault(line["file"], Counter())[line["decision"]] += 1
        self.areas.update(line["areas"])
        self.trained_on += scored.trained_on
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
            "shift": self.shift and self.shift.to_dict(),
        }

    def __str__(self) -> str:
        parts = " + ".join(f"{self.decisions[name]} {name}" for name in DECISIONS)
        areas = ", ".join(f"{area} {count}" for area, count in self.areas.most_common()) or "none"
        lines = [f"read {self.read} = {parts}; areas: {areas}"]
        if self.prevalence:
            found = (f"{area} {share['found']:.1%} ({share['trained']:.1%})" for area, share in self.prevalence.items())
            lines.append(f"estimated prevalence (of training papers): {', '.join(found)}; --no-adjust leaves it out")
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
    workers: int = 1,
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
    workers
        Number of processes that clean and score, ≥ 1.
    restart
        Throw away what an interrupted process has left.

    Raises
    ------
    DataError
        No dump can be read, or there is no such format, column or area.
    ArtifactError
        ``out`` is one of the dumps, exists (without ``force``) or cannot be written; another job has begun it.
    """
    files = readers.expand(paths)
    summary = Summary(bundle.name, len(files))
    bundle.taxonomy.encode(choice.areas)
    name = out or Path("-.jsonl")
    for made in () if out is None else (out, summary_path(out)):
        if made.exists() and any(file != "-" and made.samefile(file) for file in files):
            raise ArtifactError("is one of the dumps to be tagged", where=made, remedy="choose another name")
    needs_records = writers.writer_for(name).NEEDS_RECORDS

    def write(batches: Iterable[Sequence[Scored]], rule: Rule) -> None:
        records: Iterator[Item | None] = _items(files, reading, {}) if needs_records else repeat(None)
        areas = {
            area.id: area.name for area in bundle.taxonomy.areas if area.id in (choice.areas or bundle.taxonomy.ids)
        }
        dump = drift.Dump(bundle.reference) if bundle.reference else None
        with _opened(out) as stream:
            lines = (summary.added(*found) for found in rule.stream(batches, dump))
            writers.write(zip(records, lines, strict=False), stream, name, names=areas)
        summary.shift = None if dump is None else drift.shift(dump)

    items = _items(files, reading, summary.failed)
    if out is None and not choice.looks_ahead:
        write(_scored(items, bundle, choice, workers), Rule(bundle, choice))
    else:
        with _parts(files, bundle, out, reading=reading, choice=choice, restart=restart, force=force) as parts:
            for batch in _scored(islice(items, parts.size, None), bundle, choice, workers):
                parts.append(batch)
            if not parts.size and summary.failed:
                raise DataError("; ".join(summary.failed.values()))
            rule = Rule.fitted(parts, bundle, choice)
            summary.prevalence = rule.prevalence
            write(parts, rule)
            if out is not None:
                write_json(summary_path(out), summary.to_json())
    return summary


def summary_path(out: Path) -> Path:
    """Return where the summary of a job stands: beside its output."""
    return out.with_name(f"{out.name}.summary.json")


def _opened(out: Path | None) -> AbstractContextManager[BinaryIO]:
    return nullcontext(sys.stdout.buffer) if out is None else new_binary_file(out, force=True)


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
    """Give the parts of the job; without a file to make, or from standard input, none outlive the process."""
    if out is None or "-" in files:
        if out is not None:
            refuse_existing(out, force=force)
        with TemporaryDirectory(prefix="abstag-") as folder:
            yield Parts(Path(folder))
        return
    job = {
        "abstag": __version__,
        "bundle": bundle.digest,
        "dumps": {name: file_hash(Path(name)) for name in files if Path(name).is_file()},
        "reading": [reading.format, dict(reading.mapping or {})],
        "explain": choice.explain,
    }
    with kept_parts(out.with_name(f"{out.name}.parts"), job, restart=restart) as parts:
        if not parts.resumed:
            refuse_existing(out, force=force)
        yield parts


def _items(files: Sequence[str], reading: Reading, failed: dict[str, str]) -> Iterator[Item]:
    """Yield the records of files; one that cannot be read, or not to its end, is noted and left."""
    for name in files:
        try:
            dump = readers.open_dump(name, format=reading.format, mapping=reading.mapping)
            yield from progress(dump.items, f"tagging {name}")
        except AbstagError as error:
            failed[name] = str(error)


def _scored(items: Iterator[Item], bundle: Bundle, choice: Choice, workers: int) -> Iterator[list[Scored]]:
    """Yield records scored in batches, in their order."""
    batches = iter(lambda: list(islice(items, _BATCH)), [])
    if workers == 1:
        yield from (score(batch, bundle, explain=choice.explain) for batch in batches)
        return
    waiting: deque[Future[list[Scored]]] = deque()
    with ProcessPoolExecutor(workers, get_context("spawn"), _adopt, (bundle, choice.explain)) as pool:
        for batch in batches:
            waiting.append(pool.submit(_score, batch))
            if len(waiting) > 2 * workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


_adopted: list[tuple[Bundle, bool]] = []  # what a worker process scores with


def _adopt(bundle: Bundle, explain: bool) -> None:  # noqa: FBT001
    _adopted[:] = [(bundle, explain)]


def _score(batch: Sequence[Item]) -> list[Scored]:
    ((bundle, explain),) = _adopted
    return score(batch, bundle, explain=explain)
