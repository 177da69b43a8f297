"""Runs on the same papers → paired differences and verdicts."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations
from math import lcm
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abstag import metrics, statistics
from abstag.errors import ArtifactError, DataError
from abstag.evaluation import scored_rows
from abstag.files import canonical_hash
from abstag.progress import progress
from abstag.records import BoolArray, FloatArray, IntArray
from abstag.results import RunResult, ScoreTable, flat
from abstag.store import Store, load_result, read_scores, rows_fingerprint

DRAWS = 10_000
MIN_POSITIVES = 10
LEVEL = 0.05
METRICS: Mapping[str, Callable[[NDArray[Any]], FloatArray]] = {
    "macro_f1": metrics.macro_f1,
    "micro_f1": metrics.micro_f1,
}


class Configuration(NamedTuple):
    """Runs that differ in nothing but the seed, with their per-paper scores."""

    name: str
    runs: list[RunResult]
    scores: list[ScoreTable]


def compare(folders: Sequence[Path], *, part: str | None = None) -> dict[str, Any]:
    """Compare runs pair by pair on the same papers; seeds of one configuration are averaged.

    Parameters
    ----------
    folders
        Run folders.
    part
        Name of the part to compare on; None is each first run's own metric part.

    Returns
    -------
    dict
        ``runs`` (results) and ``pairs``, as docs/contracts.md says.

    Raises
    ------
    DataError
        Fewer than two configurations, a run that is not done, runs on other papers, truth or areas, no such part.
    """
    loaded = load_alike(folders)
    if len(set(configuration_names([result for result, _ in loaded]))) < 2:
        raise _too_few(folders)
    return compare_loaded(loaded, part=part)


def compare_loaded(loaded: Sequence[tuple[RunResult, ScoreTable]], *, part: str | None) -> dict[str, Any]:
    """Compare runs of two configurations or more that `load_alike` has loaded (see `compare`)."""
    configurations = _configurations(loaded)
    chosen, rows = chosen_part(configurations[0].runs[0], configurations[0].scores[0], part)
    pairs = list(progress(_pairs(configurations, chosen, rows), "comparing", "pairs"))
    adjusted = statistics.holm([pair["p"] for pair in pairs])
    verdicts = [{**pair, "p_holm": p} | _verdict(pair, p) for pair, p in zip(pairs, adjusted, strict=True)]
    runs = [run for configuration in configurations for run in configuration.runs]
    return {"runs": runs, "pairs": [{k: v for k, v in pair.items() if k != "scarce"} for pair in verdicts]}


def _too_few(folders: Sequence[Path]) -> DataError:
    stores = [Store(root) for root in sorted({folder.parent for folder in folders})]
    known = [result.id for store in stores for result in store.results() if result.status == "done"]
    return DataError(
        "a comparison needs two different configurations",
        where=", ".join(folder.name for folder in folders) or "no run",
        remedy=f"finished runs: {', '.join(known)}" if known else "`abstag runs` lists the runs",
    )


def chosen_part(result: RunResult, scores: ScoreTable, part: str | None) -> tuple[str, BoolArray]:
    """Return the part asked for, or else the run's own, and its (n,) rows; raises DataError when there is none."""
    chosen, parts = part or result.metric_part, scores.named_parts()
    if chosen not in parts:
        raise DataError(f"no part {chosen!r}", where=result.id, remedy=f"parts: {', '.join(parts)}")
    return chosen, parts[chosen]


def load_alike(folders: Sequence[Path]) -> list[tuple[RunResult, ScoreTable]]:
    """Load runs on the same papers with their scores, papers in the order of their ids.

    Raises
    ------
    DataError
        A run that is not done; runs on other papers, truth, masks, areas or taxonomy.
    ArtifactError
        A result or scores are missing or damaged.
    """
    found: list[tuple[RunResult, ScoreTable]] = []
    for folder in folders:
        result = load_result(folder)
        if result.status != "done":
            raise DataError(f"the run is {result.status}, not done", where=result.id, remedy="run it again")
        if any(result.id == other.id for other, _ in found):
            raise DataError("the run is given twice", where=result.id, remedy="name it once")
        scores = _in_order(read_scores(folder))
        if result.rows["fingerprint"] != rows_fingerprint(scores):
            raise ArtifactError("scores and result are not of one run", where=folder, remedy="run it again")
        found.append((result, scores))
        _refuse_unlike(*found[0], result, scores)
    return found


def configuration_names(results: Sequence[RunResult]) -> list[str]:
    """Return the name of each run's configuration: the classifier, or the configuration's first run where several fit.

    Runs that differ in nothing but the seed have the same configuration.
    """
    first: dict[str, RunResult] = {}
    keys = [canonical_hash(_without_seed(result)) for result in results]
    for key, result in zip(keys, results, strict=True):
        first.setdefault(key, result)
    classifiers = [result.classifier for result in first.values()]
    return [first[key].classifier if classifiers.count(first[key].classifier) == 1 else first[key].id for key in keys]


def _configurations(loaded: Sequence[tuple[RunResult, ScoreTable]]) -> list[Configuration]:
    names = configuration_names([result for result, _ in loaded])
    found: dict[str, list[tuple[RunResult, ScoreTable]]] = defaultdict(list)
    for name, entry in zip(names, loaded, strict=True):
        found[name].append(entry)
    return [Configuration(name, *map(list, zip(*found[name], strict=True))) for name in found]


def _without_seed(result: RunResult) -> dict[str, Any]:
    config = {key: value for key, value in result.config.items() if key not in {"seed", "name"}}
    return {"classifier": result.classifier, "config": config, "data": result.corpus["fingerprint"]}


def _in_order(scores: ScoreTable) -> ScoreTable:
    return scores.take(np.argsort(np.array(scores.ids, dtype=np.str_), kind="stable"))


def _refuse_unlike(first: RunResult, known: ScoreTable, result: RunResult, scores: ScoreTable) -> None:
    reasons = {
        "areas": known.areas != scores.areas,
        "taxonomy": first.taxonomy.get("digest") != result.taxonomy.get("digest"),
        "test papers": list(known.ids) != list(scores.ids),
    }
    if not any(reasons.values()):
        reasons["masks"] = not np.array_equal(known.known, scores.known)
        reasons["gold labels"] = not np.array_equal(known.gold & known.known, scores.gold & scores.known)
        reasons["duplicate groups"] = not np.array_equal(_renumbered(known.groups), _renumbered(scores.groups))
    differing = [name for name, differs in reasons.items() if differs]
    if differing:
        raise DataError(
            f"other {' and '.join(differing)} than {first.id}",
            where=result.id,
            remedy="only runs on the same papers can be compared",
        )


def _renumbered(groups: IntArray) -> IntArray:
    """Return group numbers by first member, so that equal partitions are equal arrays."""
    _, first, member = np.unique(groups, return_index=True, return_inverse=True)
    return np.asarray(first[member], dtype=np.intp)


def _pairs(configurations: Sequence[Configuration], part: str, rows: BoolArray) -> Iterator[dict[str, Any]]:
    table = configurations[0].scores[0]
    groups = table.groups[rows]
    counted = [[metrics.counts(scored_rows(scores, rows)) for scores in item.scores] for item in configurations]
    positives = dict(zip(table.areas, (table.gold & table.known)[rows].sum(axis=0).tolist(), strict=True))
    for name, statistic in METRICS.items():
        draws = _draws(counted, groups, statistic)
        for a, b in combinations(range(len(configurations)), 2):
            first, second = _same_number(counted[a], counted[b])
            mean = _over_seeds(statistic)
            low, high = statistics.interval(draws[a] - draws[b])
            yield {
                "a": configurations[a].name,
                "b": configurations[b].name,
                "metric": name,
                "part": part,
                "n": int(rows.sum()),
                "difference": float(mean(first.sum(axis=0)) - mean(second.sum(axis=0))),
                "low": low,
                "high": high,
                "p": statistics.randomization_test(first, second, groups, mean, draws=DRAWS, seed=0),
                "differs_in": _differs_in(configurations[a], configurations[b]),
                "scarce": {area: count for area, count in positives.items() if count < MIN_POSITIVES},
            }


def _draws(
    counted: Sequence[Sequence[NDArray[Any]]], groups: NDArray[np.intp], statistic: Callable[..., FloatArray]
) -> list[FloatArray]:
    """Return each configuration's statistic in every draw, averaged over its seeds."""
    flat = [counts for seeds in counted for counts in seeds]
    drawn = iter(statistics.bootstrap(flat, groups, statistic, draws=DRAWS, seed=0))
    return [np.mean([next(drawn) for _ in seeds], axis=0) for seeds in counted]


def _same_number(first: Sequence[NDArray[Any]], second: Sequence[NDArray[Any]]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return counts (n, seeds, k, 3) of both with as many seeds, each repeated equally often."""
    number = lcm(len(first), len(second))
    a, b = (np.stack([counts[i % len(counts)] for i in range(number)], axis=1) for counts in (first, second))
    return a, b


def _over_seeds(statistic: Callable[[NDArray[Any]], FloatArray]) -> Callable[[NDArray[Any]], FloatArray]:
    return lambda counts: np.asarray(statistic(counts).mean(axis=-1))


def _differs_in(first: Configuration, second: Configuration) -> list[str]:
    a, b = ({**flat(item.runs[0].config), "corpus": item.runs[0].corpus["fingerprint"]} for item in (first, second))
    return sorted(
        key
        for key in {*a, *b}
        if a.get(key) != b.get(key) and key.partition(".")[0] not in {"classifier", "seed", "name"}
    )


def _verdict(pair: Mapping[str, Any], p: float) -> dict[str, str]:
    scarce = ", ".join(f"{count} positives in {area}" for area, count in pair["scarce"].items())
    if scarce or np.isnan(p):
        verdict, text = "too_few", f"too few: {scarce or 'undefined'}"
    elif p >= LEVEL:
        verdict, text = "no_difference", "no difference detected"
    elif pair["difference"] > 0:
        verdict, text = "a_better", f"{pair['a']} better"
    else:
        verdict, text = "b_better", f"{pair['b']} better"
    if pair["differs_in"]:
        text += f" (they also differ in {', '.join(pair['differs_in'])})"
    return {"verdict": verdict, "text": text}
