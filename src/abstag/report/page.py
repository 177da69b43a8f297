"""A report as one HTML page that needs nothing else: no network, no other file."""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np

from abstag.evaluation import scored_rows
from abstag.report import explorer
from abstag.report.explorer import script_json
from abstag.report.figures import Series, figures, swatch
from abstag.report.rank import COMPARED, MEASURES, Ranked, commands, headline, lines, title
from abstag.report.table import measure_name, number
from abstag.results import ScoreTable
from abstag.store import read_documents

if TYPE_CHECKING:
    from jinja2 import Template

MOST_BYTES = 2_900_000
_PARTS = 40  # most in the table of the page; table.csv has all
_NO_PAPERS: Mapping[str, Any] = {
    "papers": [],
    "disagree": 0,
    "all_wrong": 0,
    "runs": [""],
    "hidden": [],
    "silent": 0,
    "text": True,
    "data": "",
}
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
    ][:COMPARED]
    columns = ["macro-F1", *MEASURES, *(f"F1 {area}" for area in ranked.areas), *_DIGITS]
    parts = sorted(ranked.parts, key=lambda name: (name != ranked.part, -ranked.parts[name]))[:_PARTS]
    shown: dict[str, Any] = {
        "title": title(ranked),
        "headline": headline(ranked),
        "ranked": ranked,
        "corpus": ranked.results[0].corpus,
        "columns": columns,
        "costs": _COSTS,
        "lines": [line for line in lines(ranked) if line["part"] in parts],
        "parts": [name for name in ranked.parts if name in parts],
        "cell": _cell,
        "number": number,
        "measure_name": measure_name,
        "drawn": len(drawn),
        "key": [(item.name, swatch(item)) for item in drawn],
        "figures": list(figures(drawn, ranked)),
        "commands": commands(ranked),
        "bibtex": bibtex,
        "style": _asset("page.css"),
        "script": _asset("page.js"),
    }
    room = MOST_BYTES - len(_template().render(**shown, papers=_NO_PAPERS).encode())
    return _template().render(**shown, papers=_papers(ranked, drawn, text=text, room=room))


def _papers(ranked: Ranked, drawn: list[Series], *, text: bool, room: int) -> Mapping[str, Any]:
    """Return the explorer's papers; runs whose scores do not depend on the paper disagree with all: left out."""
    places = [item.place for item in drawn if _depends_on_paper(ranked.tables[item.place])] or [0]
    found = explorer.papers(
        [ranked.tables[place] for place in places],
        [read_documents(ranked.folders[place], ranked.areas) for place in places],
        np.flatnonzero(ranked.rows),
        text=text,
        room=room,
    )
    names, hidden = ([item.name for item in drawn if (item.place in places) is shown] for shown in (True, False))
    thresholds = [ranked.results[place].decision.get("thresholds") for place in places]
    data = {"areas": ranked.areas, "runs": names, "thresholds": thresholds, "papers": found["papers"]}
    silent = sum("title" not in paper for paper in found["papers"]) if text else 0
    return found | {"runs": names, "hidden": hidden, "text": text, "silent": silent, "data": script_json(data)}


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
