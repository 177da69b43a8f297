"""Runs on the same papers → paired differences and verdicts."""

import os
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import combinations
from math import lcm
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abstag import __version__, metrics, statistics
from abstag.bundle import training_keys
from abstag.errors import ArtifactError, DataError
from abstag.evaluation import part_metrics, scored_rows
from abstag.files import canonical_hash
from abstag.progress import progress
from abstag.records import BoolArray, FloatArray, IntArray
from abstag.results import VERDICT_PART, RunResult, ScoreTable, settings
from abstag.store import Store, load_result, read_scores, rows_fingerprint

DRAWS = 10_000
DRAWS_OF_SCORES = 1_000  # of metrics that are no function of counts: a draw of them costs a hundred times more
MIN_POSITIVES = 10
FAR_MORE = 100  # a plan for so many times the papers is none
ENOUGH_POSITIVES = 200  # from so many on the percentile interval of an area's F1 covers 0.95 (docs/statistics.md)
SEEDS = 5  # so many of each configuration, and the difference between seeds can be tested
LEVEL = 0.05
FEW_DISCORDANT = 10  # groups that two systems tag differently: with fewer, intervals and power mean little
DRAWS_A_TEST = 50  # at least so many for each test of a family, else Holm's factor leaves nothing to be proven
OF_SAMPLE = ("ece", "automation_95")  # told of the plain random sample where there is one: enriched papers mislead
PRIMARY = "macro_f1"
FOREIGN = "abstag.classifiers.scores.Scores"


class Configuration(NamedTuple):
    """Runs that differ in nothing but the seed, with their per-paper scores."""

    name: str
    runs: list[RunResult]
    scores: list[ScoreTable]


class Drawn(NamedTuple):
    """A measure of every configuration: its value for each seed, and its bootstrap draws averaged over seeds."""

    measure: str
    part: str
    values: list[FloatArray]
    draws: list[FloatArray]


def compare(folders: Sequence[Path], *, part: str | None = None, all_intervals: bool = False) -> dict[str, Any]:
    """Compare runs pair by pair on the same papers; seeds of one configuration are averaged.

    Parameters
    ----------
    folders
        Run folders.
    part
        Name of the part to compare on; None is the plain random sample and part ``test`` where the papers have them
        beside a stress set, else the first run's own metric part.
    all_intervals
        Give intervals of average precision, ROC AUC, ECE and the automation share too.

    Returns
    -------
    dict
        ``runs`` (results), ``pairs`` and ``configurations``, as docs/contracts.md says.

    Raises
    ------
    DataError
        Fewer than two configurations, a run that is not done, runs on other papers, truth or areas, no such part.
    """
    loaded = load_alike(folders)
    if len(set(configuration_names([result for result, _ in loaded]))) < 2:
        raise _too_few(folders)
    return compare_loaded(loaded, part=part, cache=folders[0].parent / ".draws" if all_intervals else None)


def compare_loaded(
    loaded: Sequence[tuple[RunResult, ScoreTable]], *, part: str | None, cache: Path | None = None
) -> dict[str, Any]:
    """Compare runs of two configurations or more that `load_alike` has loaded (see `compare`).

    Parameters
    ----------
    cache
        Folder for draws of metrics that are no function of counts, which are dear; None leaves these metrics out.
    """
    chosen, rows = chosen_part(*loaded[0], part)
    configurations = _configurations([(on_part(result, chosen, scores, rows), scores) for result, scores in loaded])
    counted = [[metrics.counts(scored_rows(scores, rows)) for scores in item.scores] for item in configurations]
    table = configurations[0].scores[0]
    tested = _drawn_counts(configurations, counted, chosen, rows)
    untested = _drawn_scores(configurations, chosen, rows, cache) if cache else []
    pairs = [
        {"part": chosen, "n": int(rows.sum())} | pair
        for pair in _pairs(configurations, counted, tested, untested, table.groups[rows])
    ]
    return {
        "runs": [run for configuration in configurations for run in configuration.runs],
        "pairs": _with_verdicts(pairs, table, rows),
        "configurations": _summaries(configurations, counted, [*tested, *untested], table.groups[rows]),
    }


def _too_few(folders: Sequence[Path]) -> DataError:
    stores = [Store(root) for root in sorted({folder.parent for folder in folders})]
    known = [result.id for store in stores for result in store.results() if result.status == "done"]
    alike = "; these are one, they differ in nothing but the seed or the version" if len(folders) > 1 else ""
    return DataError(
        f"a comparison needs two different configurations{alike}",
        where=", ".join(folder.name for folder in folders) or "no run",
        remedy=f"finished runs: {', '.join(known)}" if known else "`abstag runs` lists the runs",
    )


def chosen_part(result: RunResult, scores: ScoreTable, part: str | None) -> tuple[str, BoolArray]:
    """Return the part asked for and its (n,) rows (default: see `compare`); raises DataError when there is none."""
    parts = scores.named_parts()
    own = VERDICT_PART if result.metric_part == "all" and VERDICT_PART in parts else result.metric_part
    chosen = part or own
    if chosen not in parts:
        raise DataError(f"no part {chosen!r}", where=result.id, remedy=f"parts: {', '.join(parts)}")
    return chosen, parts[chosen]


def on_part(result: RunResult, part: str, scores: ScoreTable, rows: BoolArray) -> RunResult:
    """Return the result with the figures of a part as its own; runs of older versions lack those of "test+random"."""
    parts = result.parts if part in result.parts else {**result.parts, part: part_metrics(scores, rows)}
    return replace(result, parts=parts, metric_part=part)


def looks(folders: Sequence[Path]) -> int:
    """Return how many runs have scored the test papers of runs by now, by the ledgers of their stores."""
    rows = {(folder.parent, load_result(folder).rows["fingerprint"]) for folder in folders}
    return max((Store(root).looks(fingerprint) for root, fingerprint in rows), default=0)


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
        if not found and result.rows["fingerprint"] != rows_fingerprint(scores):
            raise _of_two_runs(folder)
        found.append((result, replace(scores, groups=_renumbered(scores.groups))))
        _refuse_unlike(*found[0], result, scores)
        if result.rows["fingerprint"] != found[0][0].rows["fingerprint"]:
            raise _of_two_runs(folder)
        _refuse_leak(folder, result, scores)
    return found


def _of_two_runs(folder: Path) -> ArtifactError:
    return ArtifactError("scores and result are not of one run", where=folder, remedy="run it again")


def _refuse_leak(folder: Path, result: RunResult, scores: ScoreTable) -> None:
    """Refuse a run whose tagger has learnt from the papers that it is scored on, where that can be known.

    With several splits the tagger that is kept has learnt from all papers, while the scores are of others.
    """
    if len(result.rows.get("train", ())) != 1 or not (folder / "bundle").is_dir():
        return
    known = training_keys(folder / "bundle")
    leaked = [name for name in scores.ids if name in known]
    if leaked:
        raise DataError(
            f"{len(leaked)} of its {len(scores)} test papers were trained on: {', '.join(leaked[:3])}"
            + (" …" if len(leaked) > 3 else ""),
            where=result.id,
            remedy="its scores cannot be compared; run it on a split that keeps them apart",
        )


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
    first: dict[tuple[str, int], str] = {}
    for name, (result, _) in zip(names, loaded, strict=True):
        if first.setdefault((name, result.seed), result.id) != result.id:
            what = f"{result.id} and {first[name, result.seed]} are one configuration with one seed"
            raise DataError(what, where=name, remedy="name the runs to compare, and one of these two")
    found: dict[str, list[tuple[RunResult, ScoreTable]]] = defaultdict(list)
    for name, entry in zip(names, loaded, strict=True):
        found[name].append(entry)
    return [Configuration(name, *map(list, zip(*found[name], strict=True))) for name in found]


def _without_seed(result: RunResult) -> dict[str, Any]:
    kept = {key: value for key, value in settings(result.config).items() if key not in {"seed", "name"}}
    return {"classifier": result.classifier, "config": kept, "data": result.corpus["fingerprint"]}


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
        reasons["gold labels"] = bool(((known.gold != scores.gold) & known.known & scores.known).any())
        reasons["duplicate groups"] = not np.array_equal(_renumbered(known.groups), _renumbered(scores.groups))
    differing = [name for name, differs in reasons.items() if differs]
    if differing:
        remedy = "only runs on the same papers can be compared"
        if reasons["test papers"] and first.seed != result.seed:
            remedy += "; with split.seed=0, or split=fixed, they stay the same while the seed varies"
        raise DataError(f"other {' and '.join(differing)} than {first.id}", where=result.id, remedy=remedy)


def _renumbered(groups: IntArray) -> IntArray:
    """Return group numbers by first member, so that equal partitions are equal arrays."""
    _, first, member = np.unique(groups, return_index=True, return_inverse=True)
    return np.asarray(first[member], dtype=np.intp)


def measures(counted: NDArray[Any]) -> FloatArray:
    """Return macro-F1, micro-F1 and each area's F1, (..., 2 + k), from summed counts (..., k, 3)."""
    f1 = metrics.f1(counted)
    return np.concatenate([metrics.mean_defined(f1)[..., None], metrics.micro_f1(counted)[..., None], f1], axis=-1)


def _drawn_counts(
    configurations: Sequence[Configuration], counted: Sequence[Sequence[NDArray[Any]]], part: str, rows: BoolArray
) -> list[Drawn]:
    table = configurations[0].scores[0]
    systems = [counts for seeds in counted for counts in seeds]
    drawn = iter(statistics.bootstrap(systems, table.groups[rows], measures, draws=DRAWS, seed=0))
    draws = [np.mean([next(drawn) for _ in seeds], axis=0) for seeds in counted]
    values = [np.stack([measures(counts.sum(axis=0)) for counts in seeds]) for seeds in counted]
    names = [PRIMARY, "micro_f1", *(f"f1/{area}" for area in table.areas)]
    return [
        Drawn(name, part, [own[:, number] for own in values], [own[:, number] for own in draws])
        for number, name in enumerate(names)
    ]


def _drawn_scores(configurations: Sequence[Configuration], part: str, rows: BoolArray, cache: Path) -> list[Drawn]:
    sample = configurations[0].scores[0].named_parts().get("random")
    found = []
    for number, name in enumerate(metrics.RESAMPLED):
        of_sample = name in OF_SAMPLE and sample is not None
        papers = sample if of_sample and sample is not None else rows
        drawn = [
            np.stack([_cached(cache, *job, papers)[number] for job in zip(item.runs, item.scores, strict=True)])
            for item in progress(configurations, f"drawing {name}", "configurations")
        ]
        values, draws = [own[:, 0] for own in drawn], [own[:, 1:].mean(axis=0) for own in drawn]
        found.append(Drawn(name, "random" if of_sample else part, values, draws))
    return found


def _cached(cache: Path, run: RunResult, scores: ScoreTable, rows: BoolArray) -> FloatArray:
    """Return each metric of `metrics.RESAMPLED` (m, 1 + draws): its value, then its draws."""
    arrays = (scores.scores, scores.gold, scores.known, scores.tags, scores.confidence, scores.groups, rows)
    content = [*scores.ids, *(array.tobytes().hex() for array in arrays)]
    key = canonical_hash([__version__, DRAWS_OF_SCORES, *metrics.RESAMPLED, *content])[:16]
    path = cache / f"{run.id}-{key}.npy"
    with suppress(OSError, ValueError, EOFError):
        return np.asarray(np.load(path), dtype=np.float64)
    scored = scored_rows(scores, rows)
    weighted = [metric(scored) for metric in metrics.RESAMPLED.values()]
    once = np.array([of(np.ones((1, len(scored)))) for of in weighted])
    drawn = statistics.bootstrap_weights(weighted, scores.groups[rows], draws=DRAWS_OF_SCORES, seed=0)
    found = np.concatenate([once, np.stack(list(drawn))], axis=1)
    with suppress(OSError):  # a store that cannot be written is slower, no worse
        cache.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(f".{os.getpid()}.npy")
        np.save(part, found)
        part.replace(path)
    return found


def _pairs(
    configurations: Sequence[Configuration],
    counted: Sequence[Sequence[NDArray[Any]]],
    tested: Sequence[Drawn],
    untested: Sequence[Drawn],
    groups: IntArray,
) -> Iterator[dict[str, Any]]:
    numbers = list(combinations(range(len(configurations)), 2))
    draws = max(DRAWS, DRAWS_A_TEST * len(numbers) * (len(tested) - 1))
    p_values, discordant = {}, {}
    for a, b in progress(numbers, "comparing", "pairs"):
        first, second = _same_number(counted[a], counted[b])
        p_values[a, b] = statistics.randomization_test(first, second, groups, _over_seeds, draws=draws, seed=0)
        discordant[a, b] = _discordant(first, second, groups)
    for number, drawn in enumerate(tested):
        for a, b in numbers:
            primary = drawn.measure == PRIMARY
            yield {
                "a": configurations[a].name,
                "b": configurations[b].name,
                "metric": drawn.measure,
                **_difference(drawn, a, b),
                "p": float(p_values[a, b][number]),
                "discordant": int(discordant[a, b][number]),
                "error": _spread(drawn.draws[a] - drawn.draws[b]),
                "untested": {other.measure: _difference(other, a, b) for other in untested} if primary else {},
                "seeds": _between_seeds(configurations, drawn, a, b) if primary else None,
                "differs_in": _differs_in(configurations[a], configurations[b]),
                "unknown_training": [configurations[n].name for n in (a, b) if _is_foreign(configurations[n])],
            }


def _discordant(first: NDArray[Any], second: NDArray[Any], groups: IntArray) -> IntArray:
    """Return for each of `measures` how many groups the systems tag differently where it looks: (2 + k,)."""
    a, b = (statistics.by_group(counts, groups) for counts in (first, second))  # (g, seeds, k, 3)
    differ = (a != b).any(axis=(1, 3))
    both = differ.any(axis=1).sum()
    return np.array([both, both, *differ.sum(axis=0)], dtype=np.intp)


def _is_foreign(configuration: Configuration) -> bool:
    """Whether scores came from elsewhere, so that nothing is known of what gave them."""
    return bool(configuration.runs[0].config.get("classifier", {}).get("_target_") == FOREIGN)


def _spread(draws: FloatArray) -> float:
    """Return the standard deviation of the draws that are defined; NaN when none is."""
    defined = draws[~np.isnan(draws)]
    return float(defined.std()) if len(defined) else float("nan")


def _difference(drawn: Drawn, a: int, b: int) -> dict[str, float]:
    low, high = statistics.interval(drawn.draws[a] - drawn.draws[b])
    return {"difference": float(drawn.values[a].mean() - drawn.values[b].mean()), "low": low, "high": high}


def _between_seeds(configurations: Sequence[Configuration], drawn: Drawn, a: int, b: int) -> dict[str, Any] | None:
    """Return the difference over seeds with its test: paired where both have the same seeds, else of two samples."""
    first, second = ({run.seed: number for number, run in enumerate(configurations[n].runs)} for n in (a, b))
    if min(len(first), len(second)) < SEEDS:
        return None
    if set(first) != set(second):
        return {"test": "Welch", **statistics.welch(drawn.values[a], drawn.values[b])._asdict()}
    paired = drawn.values[a] - drawn.values[b][[second[seed] for seed in first]]
    return {"test": "paired t", **statistics.paired_t(paired)._asdict()}


def _same_number(first: Sequence[NDArray[Any]], second: Sequence[NDArray[Any]]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return counts (n, seeds, k, 3) of both with as many seeds, each repeated equally often."""
    number = lcm(len(first), len(second))
    a, b = (np.stack([counts[i % len(counts)] for i in range(number)], axis=1) for counts in (first, second))
    return a, b


def _over_seeds(counted: NDArray[Any]) -> FloatArray:
    return np.asarray(measures(counted).mean(axis=-2))


def _differs_in(first: Configuration, second: Configuration) -> dict[str, list[Any]]:
    """Return the settings beside classifier and seed in which configurations differ, each with both values."""
    a, b = (
        {
            **settings(item.runs[0].config),
            "corpus": item.runs[0].corpus["fingerprint"],
            "training papers": item.runs[0].training_papers,
        }
        for item in (first, second)
    )
    keys = sorted(key for key in {*a, *b} if key.partition(".")[0] not in {"classifier", "seed", "name"})
    return {key: [a.get(key), b.get(key)] for key in keys if a.get(key) != b.get(key)}


def _with_verdicts(pairs: Sequence[Mapping[str, Any]], table: ScoreTable, rows: BoolArray) -> list[dict[str, Any]]:
    """Return pairs with p adjusted by Holm and a verdict: macro-F1 is one family, all other measures another.

    Systems with the same tags are no test, and do not count among those that Holm adjusts for.
    """
    positives = dict(zip(table.areas, (table.gold & table.known)[rows].sum(axis=0).tolist(), strict=True))
    decides = not (rows & table.stress()).any()
    found: dict[int, dict[str, Any]] = {}
    for primary in (True, False):
        family = [number for number, pair in enumerate(pairs) if (pair["metric"] == PRIMARY) is primary]
        scarce = [_scarce(pairs[number]["metric"], positives) for number in family]
        tested = [pairs[number]["discordant"] > 0 and not few for number, few in zip(family, scarce, strict=True)]
        p = [pairs[number]["p"] if own else float("nan") for number, own in zip(family, tested, strict=True)]
        adjusted = statistics.holm(p)
        for number, few, own, factor in zip(family, scarce, adjusted, statistics.holm_factors(p), strict=True):
            pair = {key: value for key, value in pairs[number].items() if key not in {"error", "unknown_training"}}
            enough = pair["discordant"] >= FEW_DISCORDANT and not few
            error = pairs[number]["error"] if enough else float("nan")
            level = LEVEL / max(1, factor)
            pair |= {"level": level, "detectable": statistics.detectable(error, level=level), "p_holm": own}
            if not pair["discordant"] and not few:
                pair["p_holm"] = 1.0
            pair |= {"differs_in": [*pair["differs_in"]]}
            notes = _notes(pairs[number], decides=decides)
            found[number] = pair | _verdict(pair, few, notes) | {"decides": decides}
    return [found[number] for number in range(len(pairs))]


def _scarce(measure: str, positives: Mapping[str, int]) -> dict[str, int]:
    """Return the areas that have too few positives for a measure; pooled over areas none is needed."""
    area = measure.partition("/")[2]
    asked = positives if measure == PRIMARY else {area: positives[area]} if area else {}
    return {name: count for name, count in asked.items() if count < MIN_POSITIVES}


def _verdict(pair: Mapping[str, Any], scarce: Mapping[str, int], notes: str) -> dict[str, Any]:
    needed = None
    if scarce or np.isnan(pair["p_holm"]):
        verdict, text = "too_few", _scarcity(scarce, pair["n"]) or "too few papers: undefined"
    elif pair["p_holm"] < LEVEL:
        ahead = pair["difference"] > 0
        verdict, text = ("a_better", f"{pair['a']} better") if ahead else ("b_better", f"{pair['b']} better")
    elif not pair["discordant"]:
        verdict, text = "no_difference", f"the same tags on all {pair['n']} papers"
    elif np.isnan(pair["detectable"]):
        what = f"no difference detected: they differ on {pair['discordant']} of {pair['n']} papers, too few to tell"
        verdict, text = "no_difference", what
    else:
        verdict, text, needed = "no_difference", "no difference detected", _papers_needed(pair)
        text += f"; {pair['detectable']:.3f} would be found 4 times in 5"
        if needed:
            far = needed > FAR_MORE * pair["n"]
            papers = f"more than {FAR_MORE} times as many" if far else f"about {needed:,}"
            text += f", and {abs(pair['difference']):.3f}, if true, with {papers} papers"
    return {"verdict": verdict, "text": text + notes, "needed": needed}


def _notes(pair: Mapping[str, Any], *, decides: bool) -> str:
    """Return what a reader of the verdict must know beside it."""
    text = "" if decides else "; a stress set, which decides nothing, is among these papers"
    if pair["differs_in"]:
        both = [f"{key}: {_shown(a)} against {_shown(b)}" for key, (a, b) in pair["differs_in"].items()]
        text += f" (they also differ in {', '.join(both)})"
    if pair["unknown_training"]:
        text += f" (what {' and '.join(pair['unknown_training'])} learnt from is not known)"
    return text


def _shown(value: Any) -> str:
    return "none" if value in (None, [], ()) else str(value)


def _scarcity(scarce: Mapping[str, int], n: int) -> str:
    """Return which areas have too few positives, and how many papers would have enough of all."""
    if not scarce:
        return ""
    text = f"too few positives in {', '.join(f'{area} ({count})' for area, count in scarce.items())}"
    if not min(scarce.values()):
        return f"{text}: add papers of these areas"
    return f"{text}: about {_rounded(n * MIN_POSITIVES / min(scarce.values())):,} papers needed to test at all"


def _papers_needed(pair: Mapping[str, Any]) -> int | None:
    """Return of how many papers a difference as observed would be found 4 times in 5; None when these would do."""
    if not abs(pair["difference"]) < pair["detectable"] or not pair["difference"]:
        return None
    return _rounded(pair["n"] * (pair["detectable"] / pair["difference"]) ** 2)


def _rounded(number: float) -> int:
    """Return a number with two digits that count: it is a guess."""
    return int(float(f"{number:.1e}"))


def _summaries(
    configurations: Sequence[Configuration],
    counted: Sequence[Sequence[NDArray[Any]]],
    drawn: Sequence[Drawn],
    groups: IntArray,
) -> list[dict[str, Any]]:
    """Return of each configuration its runs and, a measure: mean over seeds, interval, least and highest seed."""
    found = []
    for number, item in enumerate(configurations):
        once = [np.minimum(statistics.by_group(counts, groups), 1).sum(axis=0) for counts in counted[number]]
        few = dict(zip(item.scores[0].areas, np.mean(once, axis=0).tolist(), strict=True))
        summary = {}
        for one in drawn:
            hits, wrong, missed = few.get(one.measure.partition("/")[2], (np.inf, 0, 0))
            plain, own = hits + missed >= ENOUGH_POSITIVES, one.values[number]
            interval = (
                statistics.interval(one.draws[number]) if plain else statistics.f1_posterior(hits, wrong + missed)
            )
            ends = {"low": interval.low, "high": interval.high, "seeds": [float(own.min()), float(own.max())]}
            summary[one.measure] = {"part": one.part, "value": float(own.mean()), **ends}
        found.append({"name": item.name, "runs": [run.id for run in item.runs], "metrics": summary})
    return found
