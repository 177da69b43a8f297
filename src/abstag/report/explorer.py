"""Which papers a report shows: those on which classifiers disagree, and those on which all of them are wrong."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from abstag.files import to_json
from abstag.records import BoolArray, FloatArray, IntArray
from abstag.results import ScoredDocuments, ScoreTable

MOST_PAPERS = 400
_LETTERS = 5_000  # of an abstract
_TERMS = 4
_ALL_WRONG = 0.25  # at least this share of the places is kept for papers on which all are wrong


def papers(
    tables: Sequence[ScoreTable],
    documents: Sequence[ScoredDocuments | None],
    rows: IntArray,
    *,
    text: bool,
    room: int,
) -> dict[str, Any]:
    """Return what the page's explorer shows.

    Parameters
    ----------
    tables
        Scores of the runs on the same papers, in the same order.
    documents
        What each run kept of the papers' texts and deciding terms, in any order.
    rows
        (n,) rows to choose from.
    text
        Give titles and abstracts; ids, scores and terms are given anyway.
    room
        Most bytes that the papers may take as `script_json`.

    Returns
    -------
    dict
        ``disagree`` and ``all_wrong`` (how many papers there are), and ``papers``, widest disagreement first:
        ``id, title, abstract, venue, part, fold, gold`` (an area: 1, 0, null) and, a run: ``tags, scores, terms``.
    """
    tags = np.stack([table.tags[rows] for table in tables])
    scores = np.stack([table.scores[rows] for table in tables])
    gold, known = tables[0].gold[rows], tables[0].known[rows]
    disagree = (tags != tags[0]).any(axis=(0, 2))
    all_wrong = ((tags != gold) & known).any(axis=2).all(axis=0) & ~disagree
    chosen = _chosen(disagree, all_wrong, np.asarray(scores.std(axis=0).max(axis=1)))
    places = [_places(kept) for kept in documents]
    found: list[dict[str, Any]] = []
    size = 0
    for row in chosen:
        paper = _paper(tables, documents, places, int(rows[row]), text=text)
        weight = len(script_json(paper).encode()) + 2
        if size + weight <= room:
            size += weight
            found.append(paper)
    return {"disagree": int(disagree.sum()), "all_wrong": int(all_wrong.sum()), "papers": found}


def script_json(value: Any) -> str:
    """Return JSON that may stand inside a script element."""
    return to_json(value).replace("<", "\\u003c")


def _chosen(disagree: BoolArray, all_wrong: BoolArray, spread: FloatArray) -> list[int]:
    """Return row numbers, those of the widest spread first."""
    ranked = np.argsort(-spread, kind="stable")
    first, second = (ranked[mask[ranked]].tolist() for mask in (disagree, all_wrong))
    kept = min(len(second), max(int(MOST_PAPERS * _ALL_WRONG), MOST_PAPERS - len(first)))
    return [*first[: MOST_PAPERS - kept], *second[:kept]]


def _places(kept: ScoredDocuments | None) -> dict[str, int]:
    return {name: place for place, name in enumerate(kept.documents.ids)} if kept else {}


def _paper(
    tables: Sequence[ScoreTable],
    documents: Sequence[ScoredDocuments | None],
    places: Sequence[dict[str, int]],
    row: int,
    *,
    text: bool,
) -> dict[str, Any]:
    table = tables[0]
    name = table.ids[row]
    paper: dict[str, Any] = {"id": name, "venue": table.venues[row], "part": table.parts[row]}
    paper["fold"] = [int(run.fold[row]) for run in tables]
    paper["gold"] = [
        int(value) if known else None for value, known in zip(table.gold[row], table.known[row], strict=True)
    ]
    paper["tags"] = [run.tags[row].astype(int).tolist() for run in tables]
    paper["scores"] = [np.round(run.scores[row], 3).tolist() for run in tables]
    paper["terms"] = [_terms(kept, place.get(name)) for kept, place in zip(documents, places, strict=True)]
    for kept, place in zip(documents, places, strict=True):
        if text and kept and name in place:
            texts = kept.documents
            title, abstract = texts.titles[place[name]], texts.abstracts[place[name]]
            paper |= {"title": _cut(title), "abstract": _cut(abstract)}
            break
    return paper


def _cut(text: str) -> str:
    return text if len(text) <= _LETTERS else f"{text[:_LETTERS]} …"


def _terms(kept: ScoredDocuments | None, place: int | None) -> list[list[tuple[str, float]]] | None:
    if kept is None or kept.evidence is None or place is None:
        return None
    return [[(term, round(share, 2)) for term, share in area[:_TERMS]] for area in kept.evidence[place]]
