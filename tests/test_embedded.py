"""The card of the embedded corpus tells the truth about it."""

import json
from collections import Counter

from abstag.resources import resource
from abstag.taxonomy import load_taxonomy


def test_card_counts_are_those_of_the_file() -> None:
    lines = resource("data/corpus/abstracts.jsonl").read_text(encoding="utf-8").splitlines()
    papers = [json.loads(line) for line in lines]
    counts = Counter(area for paper in papers for area in paper["areas"])
    card = resource("data/corpus/README.md").read_text(encoding="utf-8")
    rows = {f"`{area}`": counts[area] for area in load_taxonomy().ids} | {
        "of these with two areas": sum(len(paper["areas"]) == 2 for paper in papers),
        "none of the areas": sum(not paper["areas"] for paper in papers),
        "all": len(papers),
    }
    for name, count in rows.items():
        assert f"| {name} | {count} |" in card
    assert len({paper["id"] for paper in papers}) == len({paper["title"] for paper in papers}) == 80
    assert sum(not paper["sure"] for paper in papers) == 3
    words = [len(paper["abstract"].split()) for paper in papers]
    assert f"{min(words)} to {max(words)} words" in card
