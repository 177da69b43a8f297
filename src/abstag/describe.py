"""What is in an ingested corpus: sizes, areas, years, lengths, duplicates, label sources and how they agree."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from abstag.corpus import read_ingested
from abstag.labels import SCORED

_QUANTILES = {"min": 0.0, "p5": 0.05, "median": 0.5, "p95": 0.95, "max": 1.0}


def describe(folder: Path) -> dict[str, Any]:
    """Describe all records of an ingested corpus, duplicates included.

    Returns
    -------
    dict
        ``name, fingerprint, read, records, rejects, reject_reasons, duplicates, groups, without_title, formats, years,
        venues, parts, random, words`` (of abstracts and titles), ``sources`` (of labels; "unlabelled" too), ``areas``
        (by source: ``papers``, ``positives`` and ``unknown`` cells of each area, ``none``, ``several``, ``sure``),
        ``together`` (areas × areas, by read and review labels), ``label_conflicts, unmatched_labels`` and ``agreement``
        (see `agreement_of`).

    Raises
    ------
    ArtifactError
        No corpus, or a damaged one.
    """
    manifest, taxonomy, table = read_ingested(folder)
    columns = {name: table.column(name).to_pylist() for name in table.column_names}
    groups = Counter(columns["group"])
    return {
        "name": folder.resolve().name,
        "fingerprint": manifest["fingerprint"],
        **{name: manifest[name] for name in ("read", "records", "rejects", "reject_reasons", "duplicates")},
        "groups": {"all": len(groups), "several": sum(size > 1 for size in groups.values())},
        "without_title": columns["title"].count(None),
        "formats": dict(Counter(source["format"] for source in manifest["sources"])),
        "years": _counted(columns["year"]),
        "venues": _counted(columns["venue"]),
        "parts": _counted(columns["part"]),
        "random": columns["random"].count(True),
        "words": {
            "abstract": _lengths(columns["abstract"]),
            "title": _lengths([title for title in columns["title"] if title]),
        },
        "sources": _counted(columns["label_source"], missing="unlabelled"),
        "areas": {source: _areas(columns, source, taxonomy.ids) for source in manifest["labelled"]},
        "together": _together(columns, taxonomy.ids),
        "label_conflicts": manifest["label_conflicts"],
        "unmatched_labels": manifest["unmatched_labels"],
        "agreement": [agreement_of(pair) for pair in manifest.get("label_agreement", [])],
    }


def agreement_of(pair: Mapping[str, Any]) -> dict[str, Any]:
    """Return the counts of a pair of label sources, with F1 of ``b`` against ``a`` and kappa (Cohen 1960) by area."""
    areas = {}
    for area, cells in pair["areas"].items():
        both, only_a, only_b = cells["both"], cells["only_a"], cells["only_b"]
        n = sum(cells.values())
        positive = (both + only_a) * (both + only_b)
        chance = (positive + (n - both - only_a) * (n - both - only_b)) / n**2 if n else float("nan")
        agreed = (both + cells["neither"]) / n if n else float("nan")
        found = 2 * both + only_a + only_b
        areas[area] = {
            **cells,
            "f1": 2 * both / found if found else float("nan"),
            "kappa": (agreed - chance) / (1 - chance) if chance < 1 else float("nan"),
        }
    return {**pair, "areas": areas}


def _counted(values: Sequence[Any], missing: str = "unknown") -> dict[str, int]:
    counted = Counter(missing if value is None else str(value) for value in values)
    return {name: counted[name] for name in sorted(counted, key=lambda name: (name == missing, name))}


def _lengths(texts: Sequence[str]) -> dict[str, float]:
    words = [len(text.split()) for text in texts]
    if not words:
        return dict.fromkeys((*_QUANTILES, "mean"), float("nan"))
    quantiles = np.quantile(words, list(_QUANTILES.values()), method="inverted_cdf")
    return dict(zip(_QUANTILES, map(int, quantiles), strict=True)) | {"mean": float(np.mean(words))}


def _areas(columns: Mapping[str, list[Any]], source: str, ids: Sequence[str]) -> dict[str, Any]:
    rows = [row for row, own in enumerate(columns["label_source"]) if own == source]
    labels = [(columns["areas"][row] or [], columns["known"][row] or []) for row in rows]
    return {
        "papers": len(rows),
        "positives": {area: sum(area in areas for areas, _ in labels) for area in ids},
        "unknown": {area: sum(area not in known for _, known in labels) for area in ids},
        "none": sum(not areas and len(known) == len(ids) for areas, known in labels),
        "several": sum(len(areas) > 1 for areas, _ in labels),
        "sure": sum(columns["sure"][row] is True for row in rows),
    }


def _together(columns: Mapping[str, list[Any]], ids: Sequence[str]) -> dict[str, dict[str, int]]:
    read = [
        set(areas)
        for areas, source in zip(columns["areas"], columns["label_source"], strict=True)
        if areas and source in SCORED
    ]
    return {area: {other: sum({area, other} <= areas for areas in read) for other in ids} for area in ids}
