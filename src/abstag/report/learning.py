"""What more training papers are worth, from runs of one classifier on several numbers of them."""

from collections.abc import Mapping, Sequence

import numpy as np

from abstag.files import canonical_hash
from abstag.report.table import markdown, number
from abstag.results import RunResult, settings

_FITTED = 4  # largest sizes, through which the curve is laid
_VARIES = {"seed", "name", "data.limit"}
GAIN = 0.01
_FLAT = 0.01  # of a power: a tenth of the error would take so many papers that the number means nothing


def curves(results: Sequence[RunResult]) -> dict[str, list[RunResult]]:
    """Return the configurations of which only `data.limit` varies, over three numbers of papers or more, by number.

    They are named by the classifier, and by a run where several have the same.
    """
    found: dict[str, list[RunResult]] = {}
    for result in sorted(results, key=trained_on):
        kept = {key: value for key, value in settings(result.config).items() if key not in _VARIES}
        found.setdefault(canonical_hash([result.classifier, kept]), []).append(result)
    several = [runs for runs in found.values() if len({run.config.get("data", {}).get("limit") for run in runs}) > 2]
    classifiers = [runs[0].classifier for runs in several]
    return {runs[0].classifier if classifiers.count(runs[0].classifier) == 1 else runs[0].id: runs for runs in several}


def trained_on(result: RunResult) -> float:
    """Return the mean number of training papers of a run's splits."""
    return float(np.mean(result.rows.get("train") or [0]))


def by_size(runs: Sequence[RunResult], part: str) -> dict[float, list[float]]:
    """Return the macro-F1 of each run on a part, by the number of training papers."""
    found: dict[float, list[float]] = {}
    for run in runs:
        value = run.parts[part]["macro_f1"]
        found.setdefault(trained_on(run), []).append(np.nan if value is None else value)
    return found


def papers_for(curve: Mapping[float, Sequence[float]], gain: float = GAIN) -> float:
    """Return how many more papers would raise macro-F1 by ``gain``; NaN when the curve is as good as flat.

    The error 1 − F1 is taken as a power of the number of papers (Hestness et al. 2017), fitted by least squares on the
    logarithms of the largest four sizes.
    """
    sizes = sorted(curve)[-_FITTED:]
    errors = np.array([1 - np.mean(curve[size]) for size in sizes])
    if not (errors > 0).all():
        return float("nan")
    slope, offset = np.polyfit(np.log(sizes), np.log(errors), 1)
    now = float(np.exp(offset + slope * np.log(sizes[-1])))
    if slope > -_FLAT or now <= gain:
        return float("nan")
    return float(sizes[-1] * ((now - gain) / now) ** (1 / slope) - sizes[-1])


def learning_table(results: Sequence[RunResult], part: str) -> str:
    """Return the mean over seeds at each size, and what 0.01 more would take, as Markdown; "" without a curve."""
    found = {name: by_size(runs, part) for name, runs in curves(results).items()}
    if not found:
        return ""
    sizes = sorted({size for curve in found.values() for size in curve})
    heads = ["classifier", *(f"{size:,.0f} papers" for size in sizes), f"more papers for +{GAIN}"]
    rows = [
        [
            name,
            *(number(float(np.mean(curve[size])) if size in curve else None) for size in sizes),
            number(papers_for(curve), digits=0),
        ]
        for name, curve in found.items()
    ]
    return f"Macro-F1 on part {part} by number of training papers, mean of the seeds:\n\n{markdown(heads, rows)}"
