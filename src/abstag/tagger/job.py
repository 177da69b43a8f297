"""Dumps → a file of tags: scored part by part, then adjusted, decided and written, every record once and in order."""

import filecmp
import os
import re
import sys
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO, NamedTuple

from abstag import __version__, drift, readers, writers
from abstag.bundle import Bundle
from abstag.drift import Shift
from abstag.errors import AbstagError, ArtifactError, DataError
from abstag.files import file_hash, is_folder, new_binary_file, refuse_existing, storable, write_json
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
    files = _dumps(paths, out)
    summary = Summary(bundle.name, len(files))
    bundle.taxonomy.encode(choice.areas)
    name = out or Path("-.jsonl")
    needs_records = writers.writer_for(name).NEEDS_RECORDS
    if needs_records and _read_once(files):
        what = f"can be read but once, and {name.suffix} takes it twice"
        raise DataError(what, where=_read_once(files)[0], remedy="save it to a file, or write .jsonl")

    def write(batches: Iterable[Sequence[Scored]], rule: Rule, stream: BinaryIO) -> None:
        told = choice.areas or bundle.taxonomy.ids
        areas = {area.id: area.name for area in bundle.taxonomy.areas if area.id in told}
        dump = drift.Dump(bundle.reference) if bundle.reference else None
        lines = (summary.added(*found) for found in rule.stream(batches, dump))
        records = _items(files, reading, {}) if needs_records else None
        writers.write(_pairs(lines, records), stream, name, names=areas)
        summary.shift = None if dump is None else drift.shift(dump)

    items = _items(files, reading, summary.failed)
    if out is None and not choice.looks_ahead:
        write(_scored(items, bundle, choice, workers), Rule(bundle, choice), sys.stdout.buffer)
        return summary
    with _parts(files, bundle, out, reading=reading, choice=choice, restart=restart, force=force) as parts:
        for batch in _scored(islice(items, parts.size, None), bundle, choice, workers):
            parts.append(batch)
        if not parts.size and summary.failed:
            raise DataError("; ".join(summary.failed.values()))
        rule = Rule.fitted(parts, bundle, choice)
        summary.prevalence = rule.prevalence
        if out is None:
            write(parts, rule, sys.stdout.buffer)
            return summary
        with _put(out, force=force) as stream:
            write(parts, rule, stream)
            write_json(summary_path(out), summary.to_json())
    return summary


def summary_path(out: Path) -> Path:
    """Return where the summary of a job stands: beside its output."""
    return out.with_name(f"{out.name}.summary.json")


def _parts_path(out: Path) -> Path:
    return out.with_name(f"{out.name}.parts")


def _dumps(paths: Sequence[str], out: Path | None) -> list[str]:
    """Return the files to tag; what an earlier attempt at the same output has left among them is none."""
    files = readers.expand(paths)
    if out is None:
        return files
    if not out.name:
        raise ArtifactError("is no name of a file", where=out, remedy="name a file")
    parts, summary = (os.path.realpath(path) for path in (_parts_path(out), summary_path(out)))
    begun = is_folder(parts)
    places = {file: os.path.realpath(file) for file in files if file != "-"}
    own = {file for file, place in places.items() if Path(place).is_relative_to(parts) or (begun and place == summary)}
    for made in (out, summary_path(out)):
        if any(_is_file(file, made) for file in files if file not in own):
            raise ArtifactError("is one of the dumps to be tagged", where=made, remedy="choose another name")
    if own == set(files):
        raise DataError("holds only what an interrupted run has left", where=", ".join(paths))
    return [file for file in files if file not in own]


def _is_file(file: str, made: Path) -> bool:
    """Whether a dump, or what standard input is read from, is a file that is to be made."""
    try:
        return os.path.samestat(os.fstat(sys.stdin.fileno()), made.stat()) if file == "-" else made.samefile(file)
    except (OSError, ValueError, AttributeError):  # standard input may be no file at all
        return False


def _read_once(files: Sequence[str]) -> list[str]:
    """Return the dumps that cannot be read a second time: standard input, pipes."""
    return [file for file in files if file == "-" or not Path(file).is_file()]


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
def _put(out: Path, *, force: bool) -> Iterator[BinaryIO]:
    """Give a file to fill that becomes ``out``; one that is there without ``force`` must be what is written."""
    if force or not out.exists():
        with new_binary_file(out, force=force) as stream:
            yield stream
        return
    with TemporaryDirectory(prefix="abstag-") as folder:
        again = Path(folder) / "again"
        with again.open("w+b") as stream:
            yield stream
        if not filecmp.cmp(again, out, shallow=False):
            refuse_existing(out)


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
    once = bool(_read_once(files))
    if once or restart:
        for path in made:
            refuse_existing(path, force=force)
    if out is None or once:
        with TemporaryDirectory(prefix="abstag-") as folder:
            yield Parts(Path(folder))
        return
    job = {
        "abstag": __version__,
        "bundle": bundle.digest,
        "dumps": [[name, file_hash(Path(name))] for name in files],
        "reading": [reading.format, dict(reading.mapping or {})],
        "explain": choice.explain,
    }
    with kept_parts(_parts_path(out), job, restart=restart) as parts:
        for path in made:
            refuse_existing(path, force=force or parts.resumed)
        _remove_unfinished(out)
        yield parts


def _remove_unfinished(out: Path) -> None:
    """Remove what a killed process left of the output; its parts are locked, so that no other is writing it."""
    name = re.compile(rf"\.{re.escape(out.name[:50])}\.\d+\.part")
    for path in out.parent.iterdir():
        if name.fullmatch(path.name) and path.is_file():
            path.unlink()


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
    try:
        with ProcessPoolExecutor(workers, get_context("spawn"), _adopt, (bundle, choice.explain)) as pool:
            for batch in batches:
                waiting.append(pool.submit(_score, batch))
                if len(waiting) > 2 * workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
    except BrokenExecutor as error:
        remedy = "give the command again, with fewer --threads where memory is short"
        raise ArtifactError("a process that scored was killed", remedy=remedy) from error


_adopted: list[tuple[Bundle, bool]] = []  # what a worker process scores with


def _adopt(bundle: Bundle, explain: bool) -> None:  # noqa: FBT001
    _adopted[:] = [(bundle, explain)]


def _score(batch: Sequence[Item]) -> list[Scored]:
    ((bundle, explain),) = _adopted
    return score(batch, bundle, explain=explain)
