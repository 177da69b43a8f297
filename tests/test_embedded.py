"""The cards of the embedded corpus and of the label facts tell the truth about them."""

import csv
import json
import re
from collections import Counter
from typing import Any

import numpy as np
import pytest

from abstag.duplicates import group
from abstag.resources import resource
from abstag.taxonomy import load_taxonomy

AREAS = load_taxonomy().ids
LABELS = ("iclr_read_labels.csv", "arxiv_read_labels.csv")


@pytest.fixture(scope="module")
def papers() -> list[dict[str, Any]]:
    lines = resource("data/corpus/abstracts.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def looks_alike(paper: dict[str, Any]) -> bool:
    return str(paper["kind"]).startswith("look-alike")


def test_card_counts_are_those_of_the_file(papers: list[dict[str, Any]]) -> None:
    counts = Counter(area for paper in papers for area in paper["areas"])
    card = resource("data/corpus/README.md").read_text(encoding="utf-8")
    rows = {f"`{area}`": counts[area] for area in AREAS} | {
        "of these with two areas": sum(len(paper["areas"]) == 2 for paper in papers),
        "none of the areas": sum(not paper["areas"] for paper in papers),
        "of these look-alikes": sum(looks_alike(paper) for paper in papers),
        "marked `sure: false`": sum(not paper["sure"] for paper in papers),
        "all": len(papers),
    }
    for name, count in rows.items():
        assert f"| {name} | {count} |" in card
    words = [len(paper["abstract"].split()) for paper in papers]
    years = [paper["year"] for paper in papers]
    assert f"{min(words)} to {max(words)} words each; years {min(years)} to {max(years)}" in card
    assert f"{len(papers)} abstracts with titles" in card


def test_corpus_is_as_large_and_varied_as_promised(papers: list[dict[str, Any]]) -> None:
    assert len(papers) >= 480
    assert all(sum(area in paper["areas"] for paper in papers) >= 90 for area in AREAS)
    assert sum(len(paper["areas"]) == 2 for paper in papers) >= 50
    assert sum(not paper["areas"] for paper in papers) >= 140
    assert sum(looks_alike(paper) and not paper["areas"] for paper in papers) >= 80
    assert all(120 <= len(paper["abstract"].split()) <= 220 for paper in papers)
    pairs = {tuple(paper["areas"]) for paper in papers if len(paper["areas"]) == 2}
    assert len(pairs) == len(AREAS) * (len(AREAS) - 1) / 2


def test_every_paper_stands_once_and_repeats_no_other(papers: list[dict[str, Any]]) -> None:
    assert len({paper["id"] for paper in papers}) == len({paper["title"] for paper in papers}) == len(papers)
    assert len(np.unique(group([None] * len(papers), [paper["abstract"] for paper in papers]))) == len(papers)
    seen: dict[tuple[str, ...], str] = {}
    for paper in papers:
        words = re.findall(r"[a-z0-9]+", paper["abstract"].lower())
        for start in range(len(words) - 8):
            nine = tuple(words[start : start + 9])
            assert seen.setdefault(nine, paper["id"]) == paper["id"], " ".join(nine)


@pytest.mark.parametrize("column", range(2), ids=LABELS)
def test_label_card_counts_are_those_of_the_files(column: int) -> None:
    with resource(f"data/labels/{LABELS[column]}").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    areas = [[area for area in row["areas"].split(";") if area] for row in rows]
    counts = {
        "papers": len(rows),
        **{f"`{area}`": sum(area in own for own in areas) for area in AREAS},
        "two areas or more": sum(len(own) > 1 for own in areas),
        "none of the areas": areas.count([]),
        **{f"part `{part}`": sum(row["part"] == part for row in rows) for part in ("train", "test", "random", "hard")},
        "`random` = 1": sum(row["random"] == "1" for row in rows),
        "`sure` = 0": sum(row["sure"] == "0" for row in rows),
        "a masked area": sum(bool(row["masked"]) for row in rows),
        "two readers": sum(row["readers"] == "2" for row in rows),
    }
    card = resource("data/labels/README.md").read_text(encoding="utf-8")
    table = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in card.splitlines() if line.startswith("|")
    ]
    shown = {row[0]: int(row[1 + column]) for row in table[2:]}
    assert shown == counts
    assert rows == sorted(rows, key=lambda row: row["key"])
    assert set(rows[0]) == {"key", "venue", "year", "part", "random", "areas", "judged", "sure", "readers", "masked"}
    assert {row["judged"] for row in rows} == {";".join(AREAS)}
