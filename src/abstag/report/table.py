"""Runs and pairs as Markdown tables."""

import csv
import io
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from abstag.files import without_nan
from abstag.labels import SCORED
from abstag.results import RunResult, settings

_COLUMNS = ("classifier", "seed", "macro-F1", "95 % interval", "at 0.5", "micro-F1", "AP")
_OF_SAMPLE = ("ECE", "auto 95 %")  # of the plain random sample where there is one: enriched papers mislead
_COST = ("fit s", "texts/s", "MB", "run")
_SAMPLE = (
    "Only part random is a plain sample and stands for a venue as it comes: calibration (ECE) and the share that can "
    "be tagged unread (auto 95 %) are of it; the other parts were enriched."
)
_NO_SAMPLE = (
    "No paper is marked as one of a plain random sample: ECE and auto 95 % need not carry over to a venue as it comes."
)
_FEW = 10
_DUMPS = 40
_DAGGER = f"†: an area has fewer than {_FEW} positives there, so that macro-F1 hangs on a few papers."
_MEASURES = {
    "macro_f1": "macro-F1",
    "micro_f1": "micro-F1",
    "macro_average_precision": "AP",
    "macro_roc_auc": "ROC AUC",
    "ece": "ECE",
    "automation_95": "auto 95 %",
}


def runs_table(results: Sequence[RunResult], *, looks: int | None = None) -> str:
    """Return finished runs, best macro-F1 first, and beneath them macro-F1 of every part, as Markdown.

    Parameters
    ----------
    looks
        How many runs have scored these test rows by now; None takes the highest number that a result carries.
    """
    done = sorted(
        (result for result in results if result.status == "done"),
        key=lambda result: sortable(result.metrics.get("macro_f1")),
        reverse=True,
    )
    if not done:
        return "no finished run"
    names = run_names(done)
    sampled = all("random" in result.parts for result in done)
    heads = [f"{head} (random)" if sampled else head for head in _OF_SAMPLE]
    rows = [[name, *_run_row(result, sampled=sampled)] for name, result in zip(names, done, strict=True)]
    blocks = [markdown([*_COLUMNS, *heads, *_COST], rows)]
    trained = [result.training_papers for result in done]
    if len(set(trained)) > 1:
        told = ", ".join(f"{name} {number(size, digits=0)}" for name, size in zip(names, trained, strict=True))
        blocks.append(f"Trained on unlike numbers of papers: {told}.")
    shared = [name for name in done[0].parts if name != "all" and all(name in result.parts for result in done)]
    sizes = {name: done[0].parts[name]["n"] for name in shared}
    few = False
    if sizes:
        rows = [[name, *(_part_cell(result, part) for part in sizes)] for name, result in zip(names, done, strict=True)]
        heads = [f"{part} (n={size})" for part, size in sizes.items()]
        blocks.append("macro-F1 by part:\n\n" + markdown(["classifier", *heads], rows))
        few = any("†" in cell for row in rows for cell in row)
    notes = [_footnote(done, looks), _SAMPLE if sampled else _NO_SAMPLE, *([_DAGGER] if few else [])]
    return "\n\n".join([*blocks, " ".join(notes)])


def failures(results: Sequence[RunResult]) -> str:
    """Return failed runs with what went wrong."""
    return "\n".join(f"{result.id}: {result.error}" for result in results) or "no failed run"


def sweep_table(found: Mapping[str, Any]) -> str:
    """Return how a sweep stands (see `sweep.status`), with what failed, and what is stale and why."""
    counts = ", ".join(f"{found[name]} {name}" for name in ("done", "running", "failed", "left"))
    seconds = found["seconds_left"]
    lines = [f"{found['sweep']}: {counts}" + ("" if seconds is None else f", about {_duration(seconds)} to go")]
    lines += [f"{job['run'] or job['command']}: {job['error']}" for job in found["jobs"] if job["state"] == "failed"]
    lines += [f"{job['run']} is stale: {'; '.join(job['stale'])}" for job in found["jobs"] if job["stale"]]
    return "\n".join(lines)


def _duration(seconds: float) -> str:
    minutes = round(seconds / 60)
    return f"{seconds:.0f} s" if seconds < 90 else f"{minutes} min" if minutes < 90 else f"{minutes / 60:.1f} h"


def evaluation_table(found: Mapping[str, Any]) -> str:
    """Return what `tagger.evaluate_bundle` found, area by area."""
    metrics = found["metrics"]
    heads = ["area", "n", "positives", "precision", "recall", "F1", "AP"]
    names = ("precision", "recall", "f1", "average_precision")
    rows = [
        [area, str(row["n"]), str(row["positives"]), *(number(row[name]) for name in names)]
        for area, row in metrics["areas"].items()
    ]
    low, high = metrics["interval"]
    summary = (
        f"macro-F1 {number(metrics['macro_f1'])} [{number(low)}, {number(high)}], ECE {number(metrics['ece'])}; "
        f"{found['scored']} papers scored, {found['left_out']} left out because the bundle was trained on them"
    )
    return f"{markdown(heads, rows)}\n\n{summary}"


def pairs_table(pairs: Sequence[Mapping[str, Any]]) -> str:
    """Return paired differences as Markdown: macro-F1 with verdicts, and beneath it all other measures."""
    primary = [pair for pair in pairs if pair["metric"] == "macro_f1"]
    heads = ["a", "b", "part", "n", "differ on", "a − b", "95 % interval", "p (Holm)", "detectable", "verdict"]
    rows = [
        [
            *(str(pair[key]) for key in ("a", "b", "part", "n", "discordant")),
            number(pair["difference"], sign=True),
            _signed(pair),
            _chance(pair["p_holm"]),
            number(pair["detectable"]),
            pair["text"],
        ]
        for pair in primary
    ]
    blocks = ["Macro-F1:", markdown(heads, rows)]
    cells = {(pair["a"], pair["b"], pair["metric"]): _cell(pair) for pair in pairs if pair["metric"] != "macro_f1"}
    for pair in primary:
        cells |= {(pair["a"], pair["b"], name): _plain_cell(own) for name, own in pair["untested"].items()}
    others = list(dict.fromkeys(measure for _, _, measure in cells))
    if others:
        rows = [[pair["a"], pair["b"], *(cells[pair["a"], pair["b"], name] for name in others)] for pair in primary]
        blocks += [
            "Other measures, a − b; micro-F1 and the F1 of areas are tested (* p < 0.05 by Holm over all of these):"
        ]
        blocks += [markdown(["a", "b", *map(measure_name, others)], rows)]
    return "\n\n".join([*blocks, _conditions(primary)])


def _chance(p: float | None) -> str:
    """Return a p-value; one that is rounded to 0 is told as small."""
    return "< 0.0001" if p is not None and p < 0.0001 else number(p, digits=4)


def _signed(pair: Mapping[str, Any]) -> str:
    return f"[{number(pair['low'], sign=True)}, {number(pair['high'], sign=True)}]"


def _cell(pair: Mapping[str, Any]) -> str:
    if pair["verdict"] == "too_few":
        return "too few"
    proven = "*" if pair["decides"] and pair["verdict"] != "no_difference" else ""
    return _plain_cell(pair) + proven


def _plain_cell(pair: Mapping[str, Any]) -> str:
    return f"{number(pair['difference'], sign=True)} {_signed(pair)}"


def measure_name(measure: str) -> str:
    """Return the name of a measure as tables show it."""
    area = measure.removeprefix("f1/")
    return _MEASURES.get(measure, measure) if area == measure else f"F1 {area}"


def _conditions(primary: Sequence[Mapping[str, Any]]) -> str:
    text = (
        "Intervals are unadjusted; verdicts follow the p-values adjusted by Holm over the pairs. Conditional on these "
        "trained models and this training set. Differ on: papers that both do not tag alike. Detectable: a true "
        "difference that would be found 4 times in 5, with so many pairs."
    )
    lines = [text]
    for pair in primary:
        seeds = pair["seeds"]
        if seeds:
            lines.append(
                f"Over the luck of training alone, on these very training and test papers: {pair['a']} − {pair['b']} "
                f"{number(seeds['difference'], sign=True)} {_signed(seeds)}, p {_chance(seeds['p'])} ({seeds['test']}, "
                "unadjusted)."
            )
    return "\n\n".join(lines)


def configurations_table(configurations: Sequence[Mapping[str, Any]]) -> str:
    """Return each configuration's measures with intervals, and how far its seeds spread, as Markdown."""
    measures = configurations[0]["metrics"]
    rows = []
    for item in configurations:
        primary = item["metrics"]["macro_f1"]
        seeds = f"{len(item['runs'])}: " + "–".join(number(value) for value in primary["seeds"])
        shown = [item["metrics"][measure] for measure in measures]
        cells = [f"{number(own['value'])} [{number(own['low'])}, {number(own['high'])}]" for own in shown]
        rows.append([item["name"], seeds if len(item["runs"]) > 1 else "1", *cells])
    heads = [f"{measure_name(measure)} ({own['part']})" for measure, own in measures.items()]
    table = markdown(["configuration", "seeds", *heads], rows)
    return f"{table}\n\nIntervals of an area's F1 are posterior ones where it has few positives (docs/statistics.md)."


def description(found: Mapping[str, Any]) -> str:
    """Return what `describe.describe` found."""
    words = [
        [kind, *(number(row[name], digits=0) for name in ("min", "p5", "median", "mean", "p95", "max"))]
        for kind, row in found["words"].items()
    ]
    blocks = [
        f"{found['name']} {found['fingerprint']}",
        f"read {found['read']} = {found['records']} records + {found['rejects']} rejects",
        *([f"rejected: {_counts(found['reject_reasons'])}"] if found["rejects"] else []),
        f"formats: {_counts(found['formats'])}; without title: {found['without_title']}",
        f"duplicates: {found['duplicates']} ({found['groups']['several']} groups of several)",
        *(f"{name}: {_counts(found[name])}" for name in ("years", "venues", "parts")),
        f"plain random sample: {found['random']}",
        "\n" + markdown(["words", "least", "5 %", "median", "mean", "95 %", "most"], words) + "\n",
        f"label sources: {_counts(found['sources'])}",
        f"label rows without a record: {found['unmatched_labels']}",
        f"cells on which labels of one source differ: {found['label_conflicts']}",
        *(_source_areas(source, row) for source, row in found["areas"].items()),
        *(_agreement(pair) for pair in found["agreement"]),
    ]
    return "\n".join(blocks)


def sources_table(sources: Sequence[Mapping[str, Any]]) -> str:
    """Return a table of the dumps that ingest read; of more than 40 those with most rejects and repaired bytes."""
    shown = sources
    if len(sources) > _DUMPS:
        shown = sorted(sources, key=lambda source: (-source["rejects"], -source["repaired"]))[:_DUMPS]
    rows = [_source_row(source) for source in shown]
    table = markdown(["dump", "format", "taken by", "records", "rejects", "duplicates", "encoding"], rows)
    left = len(sources) - len(shown)
    return f"{table}\n{left} more are in manifest.json" if left else table


def _source_row(source: Mapping[str, Any]) -> list[str]:
    reasons = f" ({_counts(source['reasons'])})" if source["rejects"] else ""
    repaired = f" ({source['repaired']} bytes repaired)" if source["repaired"] else ""
    counts = str(source["records"]), f"{source['rejects']}{reasons}", str(source["duplicates"])
    return [source["file"], source["format"], source["why"], *counts, f"{source['encoding'] or '–'}{repaired}"]


def _counts(counted: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counted.items()) or "none"


def _source_areas(source: str, found: Mapping[str, Any]) -> str:
    rows = [[area, str(count), str(found["unknown"][area])] for area, count in found["positives"].items()]
    rows += [["none of the areas", str(found["none"]), ""], ["several areas", str(found["several"]), ""]]
    table = markdown(["area", "papers", "unknown"], rows)
    sure = f", {found['sure']} of them sure" if source in SCORED else ""
    return f"\n{source} labels: {found['papers']} papers{sure}\n\n{table}"


def _agreement(pair: Mapping[str, Any]) -> str:
    names = ("both", "only_a", "only_b", "neither")
    rows = [
        [area, *(str(row[name]) for name in names), number(row["f1"]), number(row["kappa"])]
        for area, row in pair["areas"].items()
    ]
    a, b = pair["a"], pair["b"]
    table = markdown(["area", "both", f"{a} only", f"{b} only", "neither", f"F1 of {b}", "kappa"], rows)
    return f"\n{a} and {b} labels of the same {pair['papers']} papers\n\n{table}"


def markdown(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table with padded columns; bars and line breaks inside a cell are made harmless."""
    heads, *rows = [[" ".join(cell.replace("|", "\\|").split()) for cell in row] for row in (heads, *rows)]
    widths = [max(len(row[column]) for row in [heads, *rows]) for column in range(len(heads))]
    lines = [" | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in [heads, *rows]]
    lines.insert(1, " | ".join("-" * width for width in widths))
    return "\n".join(f"| {line} |" for line in lines)


def csv_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return rows of the same keys as CSV with a header; what is undefined is empty."""
    out = io.StringIO()
    writer = csv.DictWriter(out, rows[0], lineterminator="\n")
    writer.writeheader()
    writer.writerows(without_nan(rows))
    return out.getvalue()


def latex_tabular(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table for LaTeX's booktabs package, the first column to the left; cells are plain text."""
    lines = [" & ".join(map(tex, row)) + r" \\" for row in (heads, *rows)]
    begin = rf"\begin{{tabular}}{{l{'r' * (len(heads) - 1)}}}"
    return "\n".join([begin, r"\toprule", lines[0], r"\midrule", *lines[1:], r"\bottomrule", r"\end{tabular}"])


def tex(text: str) -> str:
    """Return plain text as LaTeX shows it."""
    special = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    return "".join(special.get(letter, rf"\{letter}" if letter in "&%$#_{}" else letter) for letter in text)


def number(value: float | None, *, digits: int = 3, sign: bool = False) -> str:
    """Return a number with fixed digits, "–" where it is undefined."""
    if value is None or math.isnan(value):
        return "–"
    return f"{value:{'+' if sign else ''}.{digits}f}"


def run_names(results: Sequence[RunResult]) -> list[str]:
    """Return each run's classifier with the settings in which its runs differ; then seed, corpus or id, if need be."""
    known = [settings(result.config) for result in results]
    names = []
    for result, own in zip(results, known, strict=True):
        alike = [other for run, other in zip(results, known, strict=True) if run.classifier == result.classifier]
        keys = sorted(key for key in own if any(other.get(key) != own[key] for other in alike))
        shown = [f"{key.rpartition('.')[2]}={own[key]}" for key in keys if key not in {"seed", "name"}]
        names.append(" ".join([result.classifier, *shown]))
    for mark in (lambda run: f"seed={run.seed}", lambda run: f"on {run.corpus['name']}", lambda run: run.id):
        names = _told_apart(names, [mark(result) for result in results])
    return names


def _told_apart(names: Sequence[str], marks: Sequence[str]) -> list[str]:
    """Add its mark to each name that stands for several marks."""
    meant = defaultdict(set)
    for name, mark in zip(names, marks, strict=True):
        meant[name].add(mark)
    return [f"{name} {mark}" if len(meant[name]) > 1 else name for name, mark in zip(names, marks, strict=True)]


def _run_row(result: RunResult, *, sampled: bool) -> list[str]:
    metrics, sample = result.metrics, result.parts["random"] if sampled else result.metrics
    low, high = metrics.get("interval") or (None, None)
    return [
        str(result.seed),
        number(metrics["macro_f1"]),
        f"[{number(low)}, {number(high)}]",
        number(metrics["at_half"]["macro_f1"]),
        *(number(metrics[name]) for name in ("micro_f1", "macro_average_precision")),
        *(number(sample[name]) for name in ("ece", "automation_95")),
        number(result.fit_seconds, digits=1),
        number(result.texts_per_second, digits=0),
        number(result.peak_mb, digits=0),
        result.id,
    ]


def _part_cell(result: RunResult, part: str) -> str:
    metrics = result.parts.get(part, {})
    low, high = metrics.get("interval") or (None, None)
    few = any(area["positives"] < _FEW for area in (metrics.get("areas") or {}).values())
    return f"{number(metrics.get('macro_f1'))} [{number(low)}, {number(high)}]{' †' if few else ''}"


def _footnote(done: Sequence[RunResult], looks: int | None) -> str:
    seen = max(result.looks or 0 for result in done) if looks is None else looks
    scored = {
        (result.metrics["n"], result.metric_part, result.rows["fingerprint"]): (
            f"{result.metrics['n']} papers (part {result.metric_part}) of {result.corpus['name']} "
            f"{result.corpus['fingerprint']}"
        )
        for result in done
    }
    warning = "These runs were NOT scored on the same papers. " if len(scored) > 1 else ""
    return (
        f"{warning}{'; '.join(scored.values())}; looks at these test rows so far: {seen}. "
        "Intervals: bootstrap over duplicate groups."
    )


def sortable(value: float | None) -> float:
    """Return the value, −∞ where it is undefined."""
    return -math.inf if value is None or math.isnan(value) else value
