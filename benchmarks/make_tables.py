"""Write the tables of benchmarks/README.md and docs/statistics.md from the committed results.

usage: python benchmarks/make_tables.py
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Any

from abstag.report.table import markdown

HERE = Path(__file__).parent
REVIEW = HERE.parent / "experiments" / "ship" / "review-line.json"
RATES = (("mb_per_cpu_second", 1), ("records_per_cpu_second", 0))
PAGES = (HERE / "README.md", HERE.parent / "docs" / "statistics.md")


def tables() -> dict[str, str]:
    """Return the text between the marks of each name in the pages."""
    tuning, scoring = (result(name) for name in ("fine_tuning", "scoring"))
    quality = {"quality": quality_line(tuning)} if "quality" in tuning else {}
    coverage = {"coverage": coverage_table(result("coverage"))}
    speed = {"scoring": scoring_table(scoring), "tagging": tagging_table(result("tagging"))}
    pages = {"review": review_table(json.loads(REVIEW.read_text(encoding="utf-8")))}
    if (HERE / "results" / "readers.json").exists():
        pages |= {"readers": readers_table(result("readers"))}
    return {"fine_tuning": training_table(tuning), **speed, **quality, **coverage, **pages}


def result(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((HERE / "results" / f"{name}.json").read_text(encoding="utf-8"))
    return found


def training_table(found: Mapping[str, Any]) -> str:
    rows = [
        [name, f"{median(variant['samples_per_second']):.1f}", f"{variant['ratio']:.2f}"]
        for name, variant in found["speed"]["variants"].items()
    ]
    return markdown(["step (each with those above it)", "samples/s", "ratio"], rows)


def quality_line(found: Mapping[str, Any]) -> str:
    one = found["quality"]
    scores = " and ".join(f"{value:.3f} ({name})" for name, value in one["macro_f1"].items())
    return (
        f"Trained on {one['trained_on']:,} papers, scored on {one['scored']:,} others of the training part: "
        f"macro-F1 {scores}; difference {one['difference']:+.3f}, one-sided 95 % bound {one['lower_bound_95']:+.3f}."
    )


def scoring_table(found: Mapping[str, Any]) -> str:
    rows = [
        [name, f"{median(rates):.1f}", f"{found['ratio'][name]:.2f}"]
        for name, rates in found["texts_per_second"].items()
    ]
    text = (
        f"Scores differ from the pipeline's by at most {found['largest_difference_of_scores']:.0e}. Matrix products "
        f"alone would allow {found['ceiling_texts_per_second']:.1f} texts/s ({median(found['matmul_gflops']):.0f} "
        f"GFLOP/s over {found['gflop_per_paper']:.1f} GFLOP a paper): {found['share_of_ceiling']:.0%} is reached."
    )
    return f"{markdown(['variant', 'texts/s', 'ratio'], rows)}\n\n{text}"


def tagging_table(found: Mapping[str, Any]) -> str:
    rows = [
        [name, f"{median(rates):,.0f}", f"{found['ratio'][name]:.1f}", f"{min(ratios(found, name)):.1f}"]
        for name, rates in found["texts_per_cpu_second"].items()
    ]
    gain, left = (median(found["gain_of_two_threads"][name]) for name in ("abstag, with numba", "deriving keys"))
    difference, others = (
        max(found[name].values()) for name in ("largest_difference_of_probabilities", "other_decisions")
    )
    text = (
        f"{found['terms']:,} terms, {found['characters_per_text']:,.0f} characters a text. Probabilities differ from "
        f"the pipeline's by at most {difference:.0e}, and {others} decisions do. By the clock, two threads that score "
        f"did {gain:.2f} times the work of one; two that derive keys, all that the machine had left, {left:.2f} times."
    )
    return f"{markdown(['variant', 'texts per CPU second', 'ratio', 'lowest'], rows)}\n\n{text}"


def review_table(found: Mapping[str, Any]) -> str:
    lines = {"own_line": "own line", "line_of_the_dump": "line of the dump", "line_of_dumps_of_20": "dumps of 20"}
    rows = [
        [part, str(one["papers"]), *(f"{one[line]['decided']:.0%} / {one[line]['right']:.1%}" for line in lines)]
        for part, one in found.items()
    ]
    return markdown(["part", "papers", *lines.values()], rows)


def ratios(found: Mapping[str, Any], name: str) -> list[float]:
    """Return the ratio of a variant to the first in each round."""
    rates = found["texts_per_cpu_second"]
    return [rate / base for rate, base in zip(rates[name], next(iter(rates.values())), strict=True)]


def readers_table(found: Mapping[str, Any]) -> str:
    rows = []
    for name, one in found["speed"].items():
        rates = [f"{median(one[key]):,.{digits}f}" for key, digits in RATES]
        peaks = [f"{sized['peak_mb']:.0f}" for sized in found["memory"].get(name, ())] or ["", ""]
        rows.append([name, *rates, f"{one['ratio_to_json_loads']:.0f}", *peaks])
    sizes = [f"MB at {sized['mb']:.0f} MB" for sized in next(iter(found["memory"].values()))]
    return markdown(["format", "MB per CPU second", "records per CPU second", "ratio", *sizes], rows)


def coverage_table(found: Mapping[str, Any]) -> str:
    settings = found["settings"]
    heads = ["share of trials", *settings]
    names = next(iter(settings.values()))["shares"]
    rows = [[name, *(f"{setting['shares'][name]:.3f}" for setting in settings.values())] for name in names]
    return f"{markdown(heads, rows)}\n\n{found['trials']:,} trials of each, {found['draws']:,} draws in each."


def page(path: Path) -> str:
    """Return a page with its tables made anew."""
    text = path.read_text(encoding="utf-8")
    for name, table in tables().items():
        pattern = rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)"
        text = re.sub(pattern, lambda found, table=table: f"{found[1]}\n{table}\n\n{found[2]}", text, flags=re.DOTALL)
    return text


if __name__ == "__main__":
    for path in PAGES:
        path.write_text(page(path), encoding="utf-8")
