"""Figures as SVG whose colours are CSS variables, so that one drawing serves light, dark and printed pages."""

import io
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from abstag import metrics, statistics
from abstag.evaluation import scored_rows
from abstag.records import BoolArray, FloatArray
from abstag.report.learning import by_size, curves
from abstag.report.rank import Ranked
from abstag.results import RunResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CURVES = 12  # areas with a precision–recall curve, those with most positives
COLOURS = 8  # series colours in page.css; further series repeat them with another line
_INK, _MUTED, _GRID, _FILL = "#abc0f0", "#abc0f1", "#abc0f2", "#abc0f3"
_NAMED = {_INK: "ink", _MUTED: "muted", _GRID: "grid", _FILL: "heat"}
_MARKERS, _DASHES = "osD^vPX*", ("-", (0, (5, 2)), (0, (1, 1.5)))
_POINTS = 120
_NEAR = 0.3  # differences beyond it would hide the others
_STYLE: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "abstag",
    "font.family": "sans-serif",
    "font.size": 11,
    "axes.edgecolor": _MUTED,
    "axes.labelcolor": _INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.unicode_minus": False,
    "text.parse_math": False,
    "grid.color": _GRID,
    "grid.linewidth": 0.8,
    "text.color": _INK,
    "xtick.color": _MUTED,
    "ytick.color": _MUTED,
    "xtick.labelcolor": _INK,
    "ytick.labelcolor": _INK,
    "legend.frameon": False,
    "lines.linewidth": 1.8,
}


class Series(NamedTuple):
    """A run that is drawn: its name, colour and line by its place, its result, and its scores of the part shown."""

    place: int
    name: str
    result: RunResult
    scored: metrics.Scored

    @property
    def colour(self) -> str:
        """A stand-in that becomes the CSS variable of the series' colour."""
        return f"#abc0{self.place % COLOURS:02x}"

    @property
    def marker(self) -> str:
        """The marker of the series."""
        return _MARKERS[self.place % len(_MARKERS)]

    @property
    def line(self) -> Any:
        """The dashes of the series."""
        return _DASHES[self.place // COLOURS % len(_DASHES)]


class Figure(NamedTuple):
    """A drawing: what it is about, what it shows in words, and the SVG element."""

    title: str
    caption: str
    svg: str


def figures(series: Sequence[Series], ranked: Ranked) -> Iterator[Figure]:
    """Yield all figures of a part.

    Parameters
    ----------
    series
        The runs to draw, best first.
    ranked
        All runs, their pairs, and the part.
    """
    table, rows, part = ranked.tables[0], ranked.rows, ranked.part
    yield _intervals(series, part)
    against_best = [
        pair for pair in ranked.pairs if pair["metric"] == "macro_f1" and ranked.best["name"] in _sides(pair)
    ]
    if against_best:
        yield _differences(against_best, ranked.best["name"])
        yield _power(against_best, ranked.best["name"])
    several = curves(ranked.results)
    if several:
        yield _learning_curves(several, part)
    yield _three_ways(series, part)
    yield _thresholds(series, table.areas)
    yield _area_bars(series, table.areas, part)
    positives = (table.gold & table.known)[rows].sum(axis=0)
    for number in sorted(np.argsort(-positives, kind="stable")[:CURVES].tolist()):
        yield _precision_recall(series, number, table.areas[number])
    sample = table.named_parts().get("random")
    yield _reliability(series, ranked, rows if sample is None else sample, part if sample is None else "random")
    yield _cost(series, part, "fit_seconds", "training seconds")
    yield _cost(series, part, "texts_per_second", "texts per second")
    yield _co_occurrence(scored_rows(table, rows), table.areas)


def swatch(item: Series) -> str:
    """Return the colour, marker and line of a series as an SVG element."""
    with _drawing(f"key{item.place}", 0.42, 0.2) as (axes, drawn):
        axes.set_axis_off()
        axes.set(xlim=(0, 1), ylim=(-1, 1))
        axes.plot([0.05, 0.95], [0, 0], color=item.colour, ls=item.line)
        axes.plot([0.5], [0], item.marker, color=item.colour, ms=7)
    return drawn[0]


def _intervals(series: Sequence[Series], part: str) -> Figure:
    with _drawing("intervals", 4.6, 0.9 + 0.36 * len(series)) as (axes, drawn):
        for height, item in enumerate(reversed(series)):
            values = item.result.parts[part]
            axes.plot(_defined(values["interval"]), [height] * 2, color=item.colour, lw=2.4, solid_capstyle="butt")
            axes.plot(_defined([values["macro_f1"]]), [height], item.marker, color=item.colour, ms=8)
        axes.set_yticks(range(len(series)), [_short(item.name) for item in reversed(series)])
        axes.set_ylim(-0.6, len(series) - 0.4)
        axes.grid(visible=False, axis="y")
        axes.set_xlabel("macro-F1")
    return Figure("Macro-F1 with 95 % intervals", "Bootstrap over duplicate groups; unadjusted.", drawn[0])


def _sides(pair: Mapping[str, Any]) -> tuple[str, str]:
    return pair["a"], pair["b"]


def _other(pair: Mapping[str, Any], best: str) -> tuple[str, float]:
    """Return the other side of a pair, and the sign that makes its difference that of the best."""
    return (pair["b"], 1.0) if pair["a"] == best else (pair["a"], -1.0)


def _differences(pairs: Sequence[Mapping[str, Any]], best: str) -> Figure:
    near = [pair for pair in pairs if not abs(pair["difference"]) > _NEAR] or pairs
    far = [_other(pair, best)[0] for pair in pairs if pair not in near]
    with _drawing("differences", 4.6, 1.0 + 0.36 * len(near)) as (axes, drawn):
        axes.axvline(0, color=_MUTED, lw=1, ls=(0, (2, 2)))
        for height, pair in enumerate(reversed(near)):
            sign = _other(pair, best)[1]
            ends = np.sort(sign * _defined([pair["low"], pair["high"]]))
            inside = _INK if pair["decides"] and pair["verdict"] in {"a_better", "b_better"} else "none"
            axes.plot(ends, [height] * 2, color=_INK, lw=2.4, solid_capstyle="butt")
            axes.plot(sign * _defined([pair["difference"]]), [height], "o", color=_INK, ms=8, mfc=inside)
        axes.set_yticks(range(len(near)), [_short(_other(pair, best)[0]) for pair in reversed(near)])
        axes.set_ylim(-0.6, len(near) - 0.4)
        axes.grid(visible=False, axis="y")
        axes.set_xlabel(f"macro-F1 of {_short(best)} − that of the row")
    caption = "Paired, 95 % intervals, unadjusted. A filled marker: proven at 0.05 by Holm over the pairs compared."
    caption += f" More than {_NEAR} away, and not drawn: {', '.join(far)}." if far else ""
    return Figure("Paired differences", caption, drawn[0])


def _power(pairs: Sequence[Mapping[str, Any]], best: str) -> Figure:
    differing = [pair for pair in pairs if pair["detectable"] > 0]
    true = np.linspace(0, 2 * max((pair["detectable"] for pair in differing), default=0.5), _POINTS)
    with _drawing("power", 4.6, 3.2) as (axes, drawn):
        axes.axhline(statistics.POWER, color=_MUTED, lw=1, ls=(0, (2, 2)))
        for number, pair in enumerate(differing):
            error = pair["detectable"] / statistics.detectable(1.0, level=pair["level"])
            found, shade = statistics.power(true, error, level=pair["level"]), 1 - 0.7 * number / len(differing)
            style, label = _DASHES[number % len(_DASHES)], _short(_other(pair, best)[0], 20)
            axes.plot(true, found, color=_INK, alpha=shade, ls=style, label=label)
        axes.set(ylim=(0, 1.03), xlim=(0, true[-1]), xlabel=f"true difference from {_short(best)}")
        axes.set_ylabel("chance to find it")
        if differing:
            axes.legend(fontsize=9)
    caption = f"Power on these {pairs[0]['n']:,} papers, at the level that Holm gives each pair. Dashed: 4 times in 5."
    return Figure("What could have been found", caption, drawn[0])


def _learning_curves(several: Mapping[str, Sequence[RunResult]], part: str) -> Figure:
    with _drawing("learning", 4.6, 3.4) as (axes, drawn):
        for number, (name, runs) in enumerate(several.items()):
            colour, curve = f"#abc0{number % COLOURS:02x}", by_size(runs, part)
            style, marker = _DASHES[number // COLOURS % len(_DASHES)], _MARKERS[number % len(_MARKERS)]
            means = [np.mean(values) for values in curve.values()]
            axes.plot(list(curve), means, color=colour, ls=style, label=name)
            for size, values in curve.items():
                axes.plot([size] * len(values), values, marker, color=colour, ms=5)
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.10g}")
        axes.xaxis.set_minor_formatter("")
        axes.set(xlabel="training papers", ylabel="macro-F1")
        axes.legend(fontsize=9)
    return Figure("Learning curves", "A marker is a run; the line goes through the mean of the seeds.", drawn[0])


def _three_ways(series: Sequence[Series], part: str) -> Figure:
    with _drawing("ways", 4.6, 1.2 + 0.36 * len(series)) as (axes, drawn):
        for height, item in enumerate(reversed(series)):
            values = item.result.parts[part]
            axes.plot(_defined([values["macro_f1"]]), [height], "o", color=item.colour, ms=9)
            axes.plot(_defined([values["macro_average_precision"]]), [height], "D", color=item.colour, mfc="none", ms=9)
            axes.plot(_defined([values["at_half"]["macro_f1"]]), [height], "|", color=_INK, ms=14, mew=2.2)
        axes.set_yticks(range(len(series)), [_short(item.name) for item in reversed(series)])
        axes.set_ylim(-0.6, len(series) - 0.4)
        axes.grid(visible=False, axis="y")
        axes.set_xlabel("macro-F1, macro average precision")
    caption = (
        "Dot: macro-F1 at thresholds chosen on training papers; bar: at 0.5; diamond: average precision, without any."
    )
    return Figure("With, without, and free of thresholds", caption, drawn[0])


def _thresholds(series: Sequence[Series], areas: Sequence[str]) -> Figure:
    with _drawing("thresholds", 4.6, 0.9 + len(areas) * (0.25 + 0.12 * len(series))) as (axes, drawn):
        step = 0.8 / len(series)
        for order, item in enumerate(series):
            found = item.result.decision.get("thresholds", {})
            for place, area in enumerate(areas):
                values = _defined(found.get(area, []))
                height = place + (order - (len(series) - 1) / 2) * step
                axes.plot(values, np.full(len(values), height), item.marker, color=item.colour, ms=5, alpha=0.8)
        axes.set_yticks(range(len(areas)), [_short(area) for area in areas])
        axes.invert_yaxis()
        axes.set_xlim(0, 1)
        axes.grid(visible=False, axis="y")
        axes.set_xlabel("threshold")
    return Figure(
        "Chosen thresholds", "One marker a split, chosen on its training papers; in the order of the key.", drawn[0]
    )


def _area_bars(series: Sequence[Series], areas: Sequence[str], part: str) -> Figure:
    with _drawing("areas", 4.6, 0.9 + len(areas) * (0.25 + 0.12 * len(series))) as (axes, drawn):
        thick = 0.8 / len(series)
        for order, item in enumerate(series):
            f1 = [item.result.parts[part]["areas"][area]["f1"] for area in areas]
            places = np.arange(len(areas)) + (order - (len(series) - 1) / 2) * thick
            axes.barh(places, _defined(f1), height=thick * 0.86, color=item.colour)
        axes.set_yticks(range(len(areas)), [_short(area) for area in areas])
        axes.invert_yaxis()
        axes.set_xlim(0, 1)
        axes.grid(visible=False, axis="y")
        axes.set_xlabel("F1")
    return Figure("F1 by area", "In the order of the key, best first; a missing bar is undefined.", drawn[0])


def _precision_recall(series: Sequence[Series], number: int, area: str) -> Figure:
    positives = int((series[0].scored.gold & series[0].scored.known)[:, number].sum())
    with _drawing(f"curve{number}", 4.6, 3.4) as (axes, drawn):
        for item in series:
            known = item.scored.known[:, number]
            gold, scores = item.scored.gold[known, number], item.scored.scores[known, number]
            if gold.any():
                precision, recall = metrics.precision_recall(gold, scores)
                shown = np.unique(np.linspace(0, len(recall) - 1, _POINTS).astype(np.intp))
                axes.plot(recall[shown], precision[shown], color=item.colour, ls=item.line)
                tags = item.scored.tags[known, number]
                hits = (gold & tags).sum()
                if tags.any():
                    axes.plot(hits / gold.sum(), hits / tags.sum(), item.marker, color=item.colour, ms=7)
        _unit_square(axes, "recall", "precision")
    caption = (
        f"{positives} positives. The marker is where thresholds chosen on training papers put the classifier; with one "
        "threshold a fold it may lie beside the curve."
    )
    return Figure(f"Precision and recall: {area}", caption, drawn[0])


def _reliability(series: Sequence[Series], ranked: Ranked, rows: BoolArray, part: str) -> Figure:
    with _drawing("reliability", 4.6, 3.4) as (axes, drawn):
        axes.plot([0, 1], [0, 1], color=_MUTED, lw=1, ls=(0, (2, 2)))
        for item in series:
            bins = metrics.reliability(scored_rows(ranked.tables[item.place], rows))
            some = bins.cells > 0
            shares = bins.expected[some] / bins.cells[some], bins.positives[some] / bins.cells[some]
            axes.plot(*shares, marker=item.marker, ms=5, color=item.colour, ls=item.line)
        _unit_square(axes, "probability given", "share that holds")
    caption = "All areas together, ten bins; below the diagonal probabilities are too high."
    caption += "" if part == "random" else " Papers that were chosen, and are no random sample, mislead here."
    return Figure(f"Reliability on part {part}", caption, drawn[0])


def _cost(series: Sequence[Series], part: str, cost: str, label: str) -> Figure:
    with _drawing(cost, 4.6, 3.2) as (axes, drawn):
        for item in series:
            value = getattr(item.result, cost)
            if value:
                f1 = _defined([item.result.parts[part]["macro_f1"]])
                axes.plot([value], f1, item.marker, color=item.colour, ms=9)
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.10g}")
        axes.xaxis.set_minor_formatter("")
        axes.margins(0.12)
        axes.set(xlabel=label, ylabel="macro-F1")
    return Figure(
        f"Cost: macro-F1 against {label}",
        "All fits of a run, and scoring, as measured on the machine that ran it.",
        drawn[0],
    )


def _co_occurrence(scored: metrics.Scored, areas: Sequence[str]) -> Figure:
    gold = (scored.gold & scored.known).astype(np.intp)
    together = gold.T @ gold
    size = len(areas)
    with _drawing("together", 1.6 + 0.75 * size, 0.9 + 0.5 * size) as (axes, drawn):
        share = together / np.maximum(np.diag(together)[:, None], 1)
        for row in range(size):
            for column in range(size):
                sides, depth = [column, column + 1, column + 1, column], [row, row, row + 1, row + 1]
                axes.fill(sides, depth, color=_FILL, alpha=float(0.06 + 0.6 * share[row, column]), lw=0)
                axes.text(column + 0.5, row + 0.5, str(together[row, column]), ha="center", va="center")
        names = [_short(area, 12) for area in areas]
        axes.set_xticks(np.arange(size) + 0.5, names, rotation=30, ha="right")
        axes.set_yticks(np.arange(size) + 0.5, names)
        axes.set(xlim=(0, size), ylim=(size, 0))
        axes.grid(visible=False)
        axes.tick_params(length=0)
    judged = scored.known.all(axis=1)
    none = int((judged & ~scored.gold.any(axis=1)).sum())
    caption = f"Papers by read labels; shade: share of the row's papers. {none} papers have none of the areas."
    return Figure("Areas that occur together", caption, drawn[0])


def _unit_square(axes: "Axes", across: str, up: str) -> None:
    axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.04), xlabel=across, ylabel=up)


def _defined(values: Sequence[float | None]) -> FloatArray:
    return np.array(values, dtype=np.float64)


def _short(name: str, size: int = 26) -> str:
    return name if len(name) <= size else f"{name[: size - 1]}…"


@contextmanager
def _drawing(name: str, width: float, height: float) -> Iterator[tuple["Axes", list[str]]]:
    """Give axes of so many inches and a list that holds the SVG element afterwards."""
    import matplotlib as mpl
    from matplotlib.figure import Figure as Canvas

    drawn: list[str] = []
    with mpl.rc_context(_STYLE):
        canvas = Canvas(figsize=(width, height), layout="constrained")
        yield canvas.add_subplot(), drawn
        out = io.StringIO()
        canvas.savefig(out, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    drawn.append(_styled(out.getvalue(), name))


def _styled(svg: str, name: str) -> str:
    """Keep the element alone, its ids unique on the page, its colours and font left to the page."""
    element = re.sub(r"<metadata>.*?</metadata>\s*", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    element = re.sub(r'((?:\bid|xlink:href)="#?|url\(#)', rf"\g<1>{name}-", element)
    element = re.sub(r"#abc0(f\d|0\d)", _variable, element)
    element = re.sub(r"font: ([\d.]+px)[^;\"]*", r"font-size: \1", element)
    return element.replace("<svg ", '<svg aria-hidden="true" focusable="false" ', 1).strip()


def _variable(found: re.Match[str]) -> str:
    stand_in = found[0]
    return f"var(--{_NAMED[stand_in]})" if stand_in in _NAMED else f"var(--series-{int(found[1], 16)})"
