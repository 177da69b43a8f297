"""A report as one HTML page that needs nothing else: no network, no other file."""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np

from abstag.evaluation import scored_rows
from abstag.files import to_json
from abstag.report import explorer
from abstag.report.figures import Series, figures, swatch
from abstag.report.rank import MEASURES, Ranked, commands, headline, lines, title
from abstag.report.table import number
from abstag.results import ScoreTable
from abstag.store import read_documents

if TYPE_CHECKING:
    from jinja2 import Template

DRAWN = 8  # best runs in figures and explorer; the table holds all
_DIGITS = {"fit s": 1, "texts/s": 0, "MB": 0}
_COSTS = ("ECE", "fit s", "MB")  # the less the better


def page(ranked: Ranked, *, bibtex: str, text: bool) -> str:
    """Return the page.

    Parameters
    ----------
    text
        Show titles and abstracts in the explorer of papers.
    """
    drawn = [
        Series(place, name, result, scored_rows(table, ranked.rows))
        for place, (name, result, table) in enumerate(zip(ranked.names, ranked.results, ranked.tables, strict=True))
    ][:DRAWN]
    columns = ["macro-F1", *MEASURES, *(f"F1 {area}" for area in ranked.areas), *_DIGITS]
    return _template().render(
        title=title(ranked),
        headline=headline(ranked),
        ranked=ranked,
        corpus=ranked.results[0].corpus,
        columns=columns,
        costs=_COSTS,
        lines=lines(ranked),
        cell=_cell,
        number=number,
        drawn=len(drawn),
        key=[(item.name, swatch(item)) for item in drawn],
        figures=list(figures(drawn, ranked.tables[0], ranked.rows, ranked.part)),
        papers=_papers(ranked, drawn, text=text),
        commands=commands(ranked),
        bibtex=bibtex,
        style=_asset("page.css"),
        script=_asset("page.js"),
    )


def _papers(ranked: Ranked, drawn: list[Series], *, text: bool) -> Mapping[str, Any]:
    """Return the explorer's papers; runs whose scores do not depend on the paper disagree with all: left out."""
    places = [item.place for item in drawn if _depends_on_paper(ranked.tables[item.place])] or [0]
    found = explorer.papers(
        [ranked.tables[place] for place in places],
        [read_documents(ranked.folders[place], ranked.areas) for place in places],
        np.flatnonzero(ranked.rows),
        text=text,
    )
    names, hidden = ([item.name for item in drawn if (item.place in places) is shown] for shown in (True, False))
    thresholds = [ranked.results[place].decision.get("thresholds") for place in places]
    data = {"areas": ranked.areas, "runs": names, "thresholds": thresholds, "papers": found["papers"]}
    return found | {"runs": names, "hidden": hidden, "text": text, "data": to_json(data).replace("<", "\\u003c")}


def _depends_on_paper(table: ScoreTable) -> bool:
    return len(np.unique(table.scores, axis=0)) > len(np.unique(table.fold))


def _cell(line: Mapping[str, Any], column: str) -> dict[str, str]:
    """Return what a cell shows, and by what it sorts."""
    value = line[column]
    shown = number(value, digits=_DIGITS.get(column, 3))
    if column == "macro-F1":
        shown += f" [{number(line['low'])}, {number(line['high'])}]"
    return {"shown": shown, "key": "" if value is None or np.isnan(value) else repr(float(value))}


@cache
def _template() -> "Template":
    from jinja2 import Environment, StrictUndefined

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(_asset("page.html"))


def _asset(name: str) -> str:
    return (files(__package__) / name).read_text(encoding="utf-8")
