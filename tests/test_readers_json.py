"""Papers inside JSON: where they stand, which of their texts is the abstract, and what damage or hostility costs."""

import io
import json
import re
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from abstag.readers import _json_papers, jsontext, open_dump
from abstag.records import Record, Reject

A = "We fold a letter into a boat and ask how far down the brook it will carry its own text."
_ESCAPES = ["\\ud83d\\ude00", "\\uD86A", "\\uDE12", r"\\", r"\"", r"\n", r"\u00e9", "a", "ud83d"]
PAPER = {"title": "Boats", "abstract": A}


def read(dump: object, **mapping: str) -> list[Record | Reject]:
    data = dump if isinstance(dump, str) else json.dumps(dump)
    stream = cast("io.BufferedReader", io.BufferedReader(io.BytesIO(data.encode())))
    return list(jsontext.read(stream, "x", mapping))


def told(dump: object, **mapping: str) -> list[str | None]:
    """Return the title of each record, the reason of each reject."""
    return [item.reason if isinstance(item, Reject) else item.title for item in read(dump, **mapping)]


def one(paper: dict[str, Any]) -> Record:
    (record,) = read([paper])
    assert isinstance(record, Record)
    return record


@pytest.mark.parametrize(
    "dump",
    [
        PAPER,
        {"message": PAPER, "status": "ok"},
        {"count": 1, "results": [PAPER], "facets": [{"name": "year", "buckets": [1]}]},
        {"response": {"numFound": 1, "docs": [PAPER]}},
        {"authors": [{"name": "Fog"}], "title": "Boats", "abstract": A},
        {"references": [{"title": "Older", "abstract": A}], "title": "Boats", "abstract": A},
        {"id": "b", "title": "Boats", "extra": {"abstract": A}},
        {"x": [[PAPER]]},
        [[PAPER]],
        {"title": "A session", "summary": "What is in it.", "papers": [PAPER]},
        {"a": {"b": {"c": {"boat": PAPER}}}},
        {"papers": [PAPER], "notes": []},
    ],
)
def test_one_paper_wherever_it_stands(dump: object) -> None:
    assert told(dump) == told(json.dumps(dump, indent=1)) == ["Boats"]


def test_elements_of_a_list_of_papers_are_never_lost() -> None:
    bad: list[object] = [{"title": "T"}, None, 3, [], {}]
    reasons = ["no abstract", *["not an object"] * 3, "no abstract"]
    assert told({"data": [*bad, PAPER]}) == told([*bad, PAPER]) == told({"odd": [*bad, PAPER]}) == [*reasons, "Boats"]


def test_an_empty_page_has_no_papers() -> None:
    assert told([{"meta": {"count": 0}, "results": []}]) == told({"data": [], "total": 0}) == []


@pytest.mark.parametrize("abstract", ["text", "text.inner"])
def test_a_mapped_abstract_shows_where_papers_stand(abstract: str) -> None:
    paper = {"text": {"inner": A} if "." in abstract else A, "title": "Boats"}
    assert told({"odd": [paper, paper]}, abstract=abstract) == ["Boats", "Boats"]


@pytest.mark.parametrize(
    "name", ["tldr", "TL;DR", "ai_summary", "gpt_summary", "abstract_zh", "translation", "summary"]
)
def test_what_others_wrote_is_no_abstract(name: str) -> None:
    assert one({name: "What a machine made of it, in some words.", **PAPER}).abstract == A
    assert told([{"title": "Boats", name: A}]) == ["no abstract"]


@pytest.mark.parametrize(
    "about",
    [
        {"id": "http://arxiv.org/abs/2312.00001v1"},
        {"entry_id": "http://arxiv.org/abs/2312.00001v1"},
        {"arxiv_id": "2312.00001"},
        {"id": "2312.00001"},
        {"pdf_url": "https://arxiv.org/pdf/2312.00001"},
    ],
)
def test_a_summary_is_the_abstract_of_an_arxiv_entry_alone(about: dict[str, str]) -> None:
    assert one({"title": "Boats", "summary": A, **about}).abstract == A
    assert told([{"title": "Boats", "summary": A, "abstract": None, **about}]) == ["no abstract"]


@pytest.mark.parametrize(
    ("index", "abstract"),
    [
        ({"b": [1], "a": [0, 2]}, "a b a"),
        ({"b": [9], "a": [3]}, "a b"),
        ({"a": [0], "b": [0], "c": [1]}, "a b c"),
        ({"a": ["x", None, True, 2], "b": 3, "c": [1]}, "c a"),
        ({"IndexLength": 2, "InvertedIndex": {"b": [1], "a": [0]}}, "a b"),
        ({}, None),
        (None, None),
    ],
)
def test_inverted_index(index: object, abstract: str | None) -> None:
    (found,) = read([{"title": "Boats", "abstract_inverted_index": index}])
    assert (found.abstract if isinstance(found, Record) else None) == abstract


@pytest.mark.parametrize(
    ("paper", "name"),
    [
        ({"id": "https://openalex.org/W1", "doi": "https://doi.org/10.9999/b"}, "10.9999/b"),
        ({"id": "https://openalex.org/W1", "doi": None}, "https://openalex.org/W1"),
        ({"id": "0704.0001", "doi": "10.9999/b"}, "0704.0001"),
        ({"paperId": "s", "externalIds": {"DOI": "10.9999/b", "ArXiv": "0704.0001"}}, "10.9999/b"),
        ({"paperId": "s", "externalIds": {"ArXiv": "0704.0001"}}, "0704.0001"),
        ({"paperId": "s", "externalIds": None}, "s"),
        ({"DOI": "10.9999/b"}, "10.9999/b"),
        ({"id": "http://arxiv.org/abs/2312.00001v2"}, "2312.00001"),
        ({}, None),
    ],
)
def test_id(paper: dict[str, Any], name: str | None) -> None:
    assert one(PAPER | paper).id == name


@pytest.mark.parametrize(
    ("paper", "venue", "year"),
    [
        ({"primary_location": {"source": {"display_name": "V"}}, "publication_year": 2001}, "V", 2001),
        ({"primary_location": {"source": None}, "publication_date": "2001-02-03"}, None, 2001),
        ({"publicationVenue": {"name": "V"}, "venue": "", "journal": {"name": "J"}}, "V", None),
        ({"container-title": ["V"], "issued": {"date-parts": [[2001, 2]]}}, "V", 2001),
        (
            {"container-title": [], "issued": {"date-parts": [[None]]}, "published": {"date-parts": [[2001]]}},
            None,
            2001,
        ),
        ({"sourceurl": "https://openreview.net/group?id=V.cc/2001/Conference"}, "V.cc/2001/Conference", 2001),
    ],
)
def test_venue_and_year(paper: dict[str, Any], venue: str | None, year: int | None) -> None:
    found = one(PAPER | paper)
    assert (found.venue, found.year) == (venue, year)


@pytest.mark.parametrize(
    "kind",
    ["Workshop", "Tutorial", "Social", "Break", "Invited Talk", "Expo Talk Panel", "Poster Session", "Town Hall"],
)
def test_events_that_are_no_papers(kind: str) -> None:
    (found,) = read([PAPER | {"eventtype": kind, "id": 3}])
    assert isinstance(found, Reject)
    assert (found.reason, found.detail, found.title, found.id) == ("not a paper", kind, "Boats", "3")


@pytest.mark.parametrize("kind", ["Poster", "{location} Poster", "Oral", "Spotlight", "Workshop Poster", "", None])
def test_events_that_are_papers(kind: str | None) -> None:
    assert told([{**PAPER, "event_type": kind}]) == ["Boats"]
    assert told([PAPER | {"type": "workshop"}]) == ["Boats"]


@pytest.mark.parametrize("count", [1, 3000])
def test_not_a_number_is_null_wherever_a_chunk_ends(count: int) -> None:
    paper: dict[str, Any] = {
        "abstract": f'{A} "year": NaN, says the boat.',
        "year": float("nan"),
        "score": float("-inf"),
    }
    found = read(json.dumps([paper] * count, indent=1))
    assert {item.abstract for item in found if isinstance(item, Record)} == {paper["abstract"]}
    assert len(found) == count


@given(
    st.lists(
        st.sampled_from(["\\ud83d\\ude00", "\\uD86A", "\\uDE12", r"\\", r"\"", r"\n", r"\u00e9", "a", "ud83d"]),
        max_size=40,
    ),
    st.sampled_from([1, 7, 64, 100]),
)
def test_half_a_surrogate_pair_is_a_replacement_character(pieces: list[str], size: int) -> None:
    text = "".join(pieces)
    chunks = (f'["{text}"]'[at : at + size].encode() for at in range(0, len(text) + 4, size))
    (found,) = jsontext._parsed(jsontext._cleaned(chunks), frozenset(), "file")
    assert found.value == re.sub("[\ud800-\udfff]", "\ufffd", json.loads(f'"{text}"'))


def test_pages_longer_than_the_head_stand_one_a_line() -> None:
    pages = [json.dumps({"meta": {"page": page}, "results": [PAPER] * 1500}) for page in range(3)]
    assert len(pages[0]) > 1 << 17
    found = read("\n".join([pages[0], pages[1][:-5], pages[2]]))
    assert [item.line for item in found] == [1] * 1500 + [2] * 1500 + [3] * 1500
    assert [n for n, item in enumerate(found) if isinstance(item, Reject)] == [2999]


@pytest.mark.parametrize(
    "text",
    [
        "[" * 300_000,
        '{"a":' * 100_000,
        '{"data":[' * 50_000,
        '[{"abstract":' + "[" * 300_000,
        '{"x":[' + '{"a":1},' * 20_000 + "{}]}",
        "[{" + "\0" * 100_000,
        '[{"abstract_inverted_index":{' + ",".join(f'"w{n}":[{n}]' for n in range(20_000)) + "}}]",
        '[{"abstract": 1e999999}]',
        '{"x":[' + "1," * 20_000 + "1]}",
    ],
    ids=["arrays", "objects", "lists", "in an abstract", "no papers", "NULs", "index", "number", "numbers"],
)
def test_hostile_text_ends_in_one_reject(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(_json_papers, "_VALUES", 10_000)
    assert told(text) in (["bad JSON"], ["no abstract"])


def test_a_paper_too_big_to_hold_does_not_end_the_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_json_papers, "_VALUES", 10_000)
    big = {"abstract": A, "x": [0] * 10_001}
    deep = '{"title": "d", "abstract": ' + "[" * 200 + "]" * 200 + "}"
    assert told(f"[{json.dumps(PAPER)}, {json.dumps(big)}, {deep}, {json.dumps(PAPER)}]") == [
        "Boats",
        *["bad JSON"] * 2,
        "Boats",
    ]


@pytest.mark.parametrize(
    "before", ["var x = ", "window.papers=", "export default ", "module.exports = ", "f(", ")]}',\n"]
)
def test_scripts(tmp_path: Path, before: str) -> None:
    after = {"(": ");\n", "\n": ""}.get(before[-1], ";\n")
    path = tmp_path / "a.js"
    path.write_text(f"{before}{json.dumps([PAPER, PAPER], indent=1)}{after}")
    assert len([item for item in open_dump(str(path)).items if isinstance(item, Record)]) == 2


@pytest.mark.parametrize(
    "head",
    [
        "@article{x,\n title = {T},\n}\n",
        "title,abstract\nBoats,[x]\n",
        "TY  - JOUR\nAB  - x\nER  - \n",
        "ICML 2025 Papers\n\nWe set x = {1, 2} and f([1]) = 2.\n",
        "## Boats\n\nWe set f({}) = 1.\n",
        "[[Boats]]\n",
        "<feed/>",
    ],
)
def test_other_formats_are_not_json(head: str) -> None:
    assert jsontext.sniff(head, {}) == 0
