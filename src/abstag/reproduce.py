"""A kept run done again from what it keeps: whether its figures are the same, and if not, where."""

import math
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from abstag.config import rebuild
from abstag.environment import versions
from abstag.errors import ArtifactError
from abstag.results import RunResult, ScoreTable
from abstag.runner import run, with_members
from abstag.store import Store, has_scores, load_result, read_result, read_scores

TOLERANCE = 1e-6
_SHOWN = 10
_FIGURES = ("parts", "decision", "rows")
_PER_PAPER = ("scores", "tags", "confidence")


class Difference(NamedTuple):
    """A figure that came out otherwise; ``by`` is how far, infinite where one of the two is no number."""

    where: str
    was: Any
    now: Any
    by: float

    def __str__(self) -> str:
        return f"{self.where}: was {self.was}, is {self.now}"


@dataclass(frozen=True, slots=True)
class Reproduction:
    """What doing a run again gave.

    Attributes
    ----------
    verdict
        "identical" is bitwise: metrics of every part, thresholds, and scores paper by paper where they are kept.
    differences
        The largest first.
    versions
        Versions that differ: then and now.
    """

    run: str
    verdict: Literal["identical", "within 1e-6", "different"]
    differences: Sequence[Difference]
    versions: Mapping[str, tuple[str, str | None]]

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form, fixed in docs/contracts.md (an infinity not yet null)."""
        changed = {name: {"was": was, "now": now} for name, (was, now) in self.versions.items()}
        return asdict(self) | {"differences": [item._asdict() for item in self.differences], "versions": changed}

    def __str__(self) -> str:
        lines = [f"{self.run}: {self.verdict}"]
        if self.verdict == "different":
            lines += [f"  {item}" for item in self.differences[:_SHOWN]]
            more = len(self.differences) - _SHOWN
            lines += [f"  and {more} smaller differences"] if more > 0 else []
        elif self.differences:
            lines[0] += f" (largest difference {self.differences[0].by:.1e}, {self.differences[0].where})"
        changed = ", ".join(f"{name} {was} → {now or 'none'}" for name, (was, now) in self.versions.items())
        return "\n".join([*lines, *([f"  versions that differ: {changed}"] if changed else [])])


class _Kept(NamedTuple):
    result: RunResult
    scores: ScoreTable | None


def reproduce(name: str, store: Store, places: Sequence[str] = ()) -> Iterator[Reproduction]:
    """Do a run again in a store of its own, or each run of a folder of results, and compare.

    Parameters
    ----------
    name
        A run's id, unique prefix or folder; a result file; a folder of result files (``compare-*.json`` are none).
    store
        Where ids are looked up, and the runs that a run's classifier learns from: these are not done again.
    places
        What a result does not keep, as ``data.path=DIR`` (see `config.rebuild`).

    Raises
    ------
    ArtifactError
        No such run, one that failed, a damaged one; or it cannot be done again here.
    ConfigError, DataError
        The configuration can no longer be built; the corpus is not the run's.
    """
    kept = _find(name, store)
    with tempfile.TemporaryDirectory(prefix="abstag-") as folder:
        for item in kept:
            yield _again(item, store, Store(Path(folder)), places)


def _find(name: str, store: Store) -> list[_Kept]:
    path = Path(name)
    if path.is_file():
        return [_Kept(read_result(path), None)]
    files = sorted(file for file in path.glob("*.json") if not file.name.startswith("compare-"))
    if files and not (path / "result.json").is_file():
        return [_Kept(read_result(file), None) for file in files]
    folder = store.find(name)
    return [_Kept(load_result(folder), read_scores(folder) if has_scores(folder) else None)]


def _again(kept: _Kept, store: Store, fresh: Store, places: Sequence[str]) -> Reproduction:
    result = kept.result
    if result.status != "done":
        raise ArtifactError("failed, so there is nothing to compare", where=result.id)
    experiment = rebuild(result, places, fresh.root)
    for _, folder in with_members(experiment, store).members:
        if not fresh.folder(folder.name).exists():
            fresh.folder(folder.name).symlink_to(folder.resolve(), target_is_directory=True)
    again = run(experiment, fresh)
    if again.error is not None:
        raise ArtifactError(f"cannot be done again: {again.error}", where=result.id)
    done = fresh.folder(again.id)
    scores = None if kept.scores is None else (kept.scores, read_scores(done))
    return compared(result, load_result(done), scores=scores)


def compared(was: RunResult, now: RunResult, *, scores: tuple[ScoreTable, ScoreTable] | None = None) -> Reproduction:
    """Compare a result with that of the same run done again, both as they were stored, and their scores if given.

    Figures that the older result has not, because its version did not write them, are left out.
    """
    differences: list[Difference] = []
    for name in _FIGURES:
        figures = dict(_leaves(getattr(now, name), name))
        differences += _differing((where, old, figures.get(where)) for where, old in _leaves(getattr(was, name), name))
    if scores is not None:
        differences += _differing_scores(*scores)
    current = versions() | {"code": now.versions.get("code")}
    changed = {name: (old, current.get(name)) for name, old in was.versions.items() if current.get(name) != old}
    return Reproduction(was.id, _verdict(differences), sorted(differences, key=lambda item: -item.by), changed)


def _verdict(differences: Sequence[Difference]) -> Literal["identical", "within 1e-6", "different"]:
    if not differences:
        return "identical"
    return "within 1e-6" if all(item.by <= TOLERANCE for item in differences) else "different"


def _leaves(value: Any, where: str) -> Iterator[tuple[str, Any]]:
    """Yield numbers, texts and nulls below a JSON value, each with its dotted place."""
    inner: Iterable[tuple[Any, Any]]
    if isinstance(value, Mapping):
        inner = value.items()
    elif isinstance(value, list):
        inner = enumerate(value)
    else:
        yield where, value
        return
    for key, item in inner:
        yield from _leaves(item, f"{where}.{key}")


def _differing(figures: Iterable[tuple[str, Any, Any]]) -> Iterator[Difference]:
    for where, was, now in figures:
        if was != now:
            numbers = isinstance(was, int | float) and isinstance(now, int | float)
            yield Difference(where, was, now, abs(was - now) if numbers else math.inf)


def _differing_scores(was: ScoreTable, now: ScoreTable) -> Iterator[Difference]:
    """Yield of each kind of score the paper and area that differ most."""
    if list(was.ids) != list(now.ids):
        yield Difference("scores: papers", len(was), len(now), math.inf)
        return
    for kind in _PER_PAPER:
        old, new = (getattr(table, kind).reshape(len(was), -1) for table in (was, now))
        gaps = np.abs(old.astype(np.float64) - new)
        row, column = divmod(int(gaps.argmax()), gaps.shape[1])
        if gaps[row, column] > 0:
            where = f"{kind} of paper {was.ids[row]}" + (f" in {was.areas[column]}" if gaps.shape[1] > 1 else "")
            yield Difference(where, old[row, column].item(), new[row, column].item(), float(gaps[row, column]))
