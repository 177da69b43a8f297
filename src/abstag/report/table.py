"""Runs and pairs as Markdown tables."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from abstag.labels import SCORED
from abstag.results import RunResult, flat

_COLUMNS = ("classifier", "seed", "macro-F1", "95 % interval", "at 0.5", "micro-F1", "AP", "ECE", "auto 95 %")
_COST = ("fit s", "texts/s", "MB", "run")


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
    blocks = [
        markdown(
            [*_COLUMNS, *_COST],
            [[name, *_run_row(result)] for name, result in zip(names, done, strict=True)],
        )
    ]
    shared = [name for name in done[0].parts if name != "all" and all(name in result.parts for result in done)]
    sizes = {name: done[0].parts[name]["n"] for name in shared}
    if sizes:
        rows = [[name, *(_part_cell(result, part) for part in sizes)] for name, result in zip(names, done, strict=True)]
        heads = [f"{part} (n={size})" for part, size in sizes.items()]
        blocks.append("macro-F1 by part:\n\n" + markdown(["classifier", *heads], rows))
    return "\n\n".join([*blocks, _footnote(done, looks)])


def failures(results: Sequence[RunResult]) -> str:
    """Return failed runs with what went wrong."""
    return "\n".join(f"{result.id}: {result.error}" for result in results) or "no failed run"


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
    """Return paired differences as Markdown."""
    heads = ["a", "b", "metric", "part", "n", "a − b", "95 % interval", "p (Holm)", "verdict"]
    rows = [
        [
            *(str(pair[key]) for key in ("a", "b", "metric", "part", "n")),
            number(pair["difference"], sign=True),
            f"[{number(pair['low'], sign=True)}, {number(pair['high'], sign=True)}]",
            number(pair["p_holm"], digits=4),
            pair["text"],
        ]
        for pair in pairs
    ]
    return markdown(heads, rows) + "\n\nIntervals are unadjusted; verdicts follow the p-values adjusted by Holm."


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


def number(value: float | None, *, digits: int = 3, sign: bool = False) -> str:
    """Return a number with fixed digits, "–" where it is undefined."""
    if value is None or math.isnan(value):
        return "–"
    return f"{value:{'+' if sign else ''}.{digits}f}"


def run_names(results: Sequence[RunResult]) -> list[str]:
    """Return each run's classifier with the settings in which its runs differ; then seed, corpus or id, if need be."""
    settings = [flat(result.config) for result in results]
    names = []
    for result, own in zip(results, settings, strict=True):
        alike = [other for run, other in zip(results, settings, strict=True) if run.classifier == result.classifier]
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


def _run_row(result: RunResult) -> list[str]:
    metrics = result.metrics
    low, high = metrics.get("interval") or (None, None)
    names = ("micro_f1", "macro_average_precision", "ece", "automation_95")
    return [
        str(result.seed),
        number(metrics["macro_f1"]),
        f"[{number(low)}, {number(high)}]",
        number(metrics["at_half"]["macro_f1"]),
        *(number(metrics[name]) for name in names),
        number(result.fit_seconds, digits=1),
        number(result.texts_per_second, digits=0),
        number(result.peak_mb, digits=0),
        result.id,
    ]


def _part_cell(result: RunResult, part: str) -> str:
    metrics = result.parts.get(part, {})
    low, high = metrics.get("interval") or (None, None)
    return f"{number(metrics.get('macro_f1'))} [{number(low)}, {number(high)}]"


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
