"""Runs on the same papers, in order, and what a report says of them in words."""

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from abstag.compare import chosen_part, compare_loaded, configuration_names, load_alike, looks, on_part
from abstag.errors import ArtifactError, DataError
from abstag.records import BoolArray
from abstag.report.table import number, run_names, sortable
from abstag.results import RunResult, ScoreTable, fits

COMPARED = 8  # best configurations that are compared, best runs that are drawn; the tables hold all
MEASURES: Mapping[str, Callable[[Mapping[str, Any]], float | None]] = {
    "at 0.5": lambda values: values["at_half"]["macro_f1"],
    "micro-F1": lambda values: values["micro_f1"],
    "AP": lambda values: values["macro_average_precision"],
    "ECE": lambda values: values["ece"],
    "auto 95 %": lambda values: values["automation_95"],
}


@dataclass(frozen=True, slots=True)
class Ranked:
    """Runs on the same papers, best macro-F1 on the part first.

    Attributes
    ----------
    part
        The part that ranks.
    parts
        Parts that all runs have, with their number of papers, the chosen one first.
    rows
        (n,) bool: of the score tables, those of the part.
    names
        Of the runs, each once.
    pairs
        Paired differences on the part among the runs `compared`; empty with one configuration.
    verdicts
        Of macro-F1, between the best configuration and each other one; empty with one configuration.
    best
        The configuration with the highest mean macro-F1, with its measures (see `compare.compare`).
    looks
        How many runs have scored the test papers by now.
    compared
        Ids of the runs that the pairs are of: the best `COMPARED` configurations, with all their seeds.
    """

    part: str
    parts: Mapping[str, int]
    rows: BoolArray
    names: Sequence[str]
    results: Sequence[RunResult]
    tables: Sequence[ScoreTable]
    folders: Sequence[Path]
    pairs: Sequence[Mapping[str, Any]]
    verdicts: Mapping[str, str]
    best: Mapping[str, Any]
    looks: int
    compared: Sequence[str]

    @property
    def areas(self) -> tuple[str, ...]:
        """Names of the areas."""
        return self.tables[0].areas


def rank(folders: Sequence[Path], part: str | None) -> Ranked:
    """Load runs and put them in order.

    Parameters
    ----------
    part
        Part whose figures rank the runs; default as in `compare.compare`.

    Raises
    ------
    DataError
        No run, runs on other papers, a run that is not done, no such part.
    ArtifactError
        Scores are missing or damaged.
    """
    if not folders:
        raise DataError("a report needs a run", remedy="`abstag runs` lists them")
    loaded = load_alike(folders)
    chosen, rows = chosen_part(*loaded[0], part)
    parts = loaded[0][1].named_parts()
    loaded = [(on_part(result, chosen, scores, rows), scores) for result, scores in loaded]
    for result, _ in loaded:
        _refuse_incomplete(result, chosen, loaded[0][1].areas)
    order = sorted(range(len(loaded)), key=lambda run: -sortable(loaded[run][0].metrics["macro_f1"]))
    best_first = [loaded[run] for run in order]
    results = [result for result, _ in best_first]
    shared = [chosen, *(name for name in parts if name != chosen and all(name in run.parts for run in results))]
    shown, kept = run_names(results), _best_configurations(best_first)
    names = [name for name, stays in zip(configuration_names(results), kept, strict=True) if stays]
    asked = [run for run, stays in zip(best_first, kept, strict=True) if stays]
    compared = compare_loaded(asked, part=chosen)
    pairs = compared["pairs"]
    best = max(compared["configurations"], key=lambda item: sortable(item["metrics"]["macro_f1"]["value"]))
    alone = {
        name: run
        for name, run in zip(names, [run for run, stays in zip(shown, kept, strict=True) if stays], strict=True)
        if names.count(name) == 1
    }
    return Ranked(
        part=chosen,
        parts={name: int(parts[name].sum()) for name in shared},
        rows=rows,
        names=shown,
        results=results,
        tables=[scores for _, scores in best_first],
        folders=[folders[run] for run in order],
        pairs=pairs,
        best=best,
        looks=looks(folders),
        compared=[result.id for result, _ in asked],
        verdicts=_verdicts(pairs, best["name"], alone),
    )


def _best_configurations(loaded: Sequence[tuple[RunResult, ScoreTable]]) -> list[bool]:
    """Return which runs belong to the `COMPARED` configurations of the highest mean macro-F1, with all their seeds.

    Of configurations that tag alike, paper by paper and seed by seed, the first alone is one.
    """
    names = configuration_names([run for run, _ in loaded])
    means, seen = {}, set()
    for name in dict.fromkeys(names):
        own = [pair for pair, its in zip(loaded, names, strict=True) if its == name]
        tags = tuple(sorted((run.seed, scores.tags.tobytes()) for run, scores in own))
        if tags not in seen:
            means[name] = np.mean([sortable(run.metrics["macro_f1"]) for run, _ in own])
        seen.add(tags)
    best = set(sorted(means, key=lambda name: -means[name])[:COMPARED])
    return [name in best for name in names]


def title(ranked: Ranked) -> str:
    """Return what the report is about."""
    experiments = sorted({result.experiment for result in ranked.results})
    runs = f"{len(ranked.results)} run{'s' if len(ranked.results) > 1 else ''}"
    corpora = sorted({result.corpus["name"] for result in ranked.results})
    return f"{', '.join(experiments)}: {runs} on {', '.join(corpora)}"


def headline(ranked: Ranked) -> str:
    """Return in plain words which run leads, and which cannot be told from it."""
    values, one = ranked.best["metrics"]["macro_f1"], len(ranked.best["runs"]) == 1
    name, figures = ranked.best["name"], (values["value"], values["low"], values["high"])
    if one:
        run = next(number for number, result in enumerate(ranked.results) if result.id == ranked.best["runs"][0])
        name, own = ranked.names[run], ranked.results[run].metrics
        figures = (own["macro_f1"], *own["interval"])
    value, low, high = map(number, figures)
    highest = "the highest " if len(ranked.results) > 1 else ""
    seeds = "" if one else f", the mean of {len(ranked.best['runs'])} seeds"
    text = (
        f"{name} has {highest}macro-F1 {value} [{low}, {high}]{seeds} on part {ranked.part}, "
        f"n = {ranked.results[0].metrics['n']}."
    )
    for verdict, words in (
        ("no_difference", "Not distinguishable from it at 0.05 (Holm)"),
        ("too_few", "Too few positives to tell"),
    ):
        found = [name for name, own in ranked.verdicts.items() if own == verdict]
        text += f" {words}: {', '.join(found)}." if found else ""
    if ranked.pairs and not ranked.pairs[0]["decides"]:
        text += " A stress set is among these papers: differences on them decide nothing."
    elif ranked.verdicts and not {"no_difference", "too_few"} & set(ranked.verdicts.values()):
        others = "every other run" if len(ranked.results) <= COMPARED else "the others that were compared"
        text += f" It differs from {others} at 0.05 (Holm)."
    return f"{text} Runs scored on these papers so far: {ranked.looks}."


def commands(ranked: Ranked) -> list[str]:
    """Return the command of every number: of each run, of the pairs, of this report."""
    runs = [result.id for result in ranked.results]
    own = [" ".join(result.command.split()) or f"# {result.id} was made from Python" for result in ranked.results]
    pairs = [shlex.join(["abstag", "compare", *ranked.compared, "--part", ranked.part])] if ranked.pairs else []
    return [*own, *pairs, shlex.join(["abstag", "report", *runs, "--part", ranked.part, "-o", "report"])]


def lines(ranked: Ranked) -> list[dict[str, Any]]:
    """Return one flat row for each part and run: parts in order, the best run on the chosen part first."""
    runs = list(zip(ranked.names, ranked.results, strict=True))
    return [_line(name, result, part) for part in ranked.parts for name, result in runs]


def _line(name: str, result: RunResult, part: str) -> dict[str, Any]:
    values = result.parts[part]
    low, high = values["interval"]
    return {
        "part": part,
        "n": values["n"],
        "classifier": name,
        "macro-F1": values["macro_f1"],
        "low": low,
        "high": high,
        **{measure: function(values) for measure, function in MEASURES.items()},
        **{f"F1 {area}": row["f1"] for area, row in values["areas"].items()},
        "fit s": result.fit_seconds,
        "texts/s": result.texts_per_second,
        "MB": result.peak_mb,
        "experiment": result.experiment,
        "seed": result.seed,
        "looks": result.looks,
        "run": result.id,
        "command": result.command,
    }


def _refuse_incomplete(result: RunResult, part: str, areas: Sequence[str]) -> None:
    found = result.parts.get(part, {}).get("areas")
    if not isinstance(found, dict) or not all(
        fits(found.get(area), dict[str, Any]) and "f1" in found[area] for area in areas
    ):
        remedy = "delete the folder of the run and run it again"
        raise ArtifactError(f"the result lacks figures of part {part!r}", where=result.id, remedy=remedy)


def _verdicts(pairs: Sequence[Mapping[str, Any]], best: str, shown: Mapping[str, str]) -> dict[str, str]:
    """Return the verdicts on macro-F1 between a configuration and the others, these under the names shown."""
    found = {}
    for pair in pairs:
        if best in {pair["a"], pair["b"]} and pair["metric"] == "macro_f1":
            other = pair["b"] if pair["a"] == best else pair["a"]
            found[shown.get(other, other)] = str(pair["verdict"])
    return found
