"""Ingest end to end on small dumps: columns, counts, ids, groups, labels, fingerprint; and the corpus read back."""

import csv
import errno
import json
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from abstag.corpus import load_corpus
from abstag.errors import AbstagError, ArtifactError, DataError
from abstag.ingest import ingest, manifest_summary
from abstag.records import content_id, title_key
from abstag.taxonomy import Taxonomy, load_taxonomy, parse_taxonomy

TAXONOMY = load_taxonomy()
ALL = ["llm", "graphs", "diffusion", "optimization"]
WALKS = "We shorten random walks on large graphs and show that node features barely suffer from it."
HEAT = "A sampler that cools its noise more slowly draws sharper pictures of bridges, at twice the cost."
STEPS = "Gradient descent with two step sizes in turn reaches the valley sooner than with either one alone."
TALK = "Language models asked the same question on two days give two answers; we measure how far apart."
STONES = "Sorting pebbles by colour with a robot arm needs fewer camera views than had been assumed so far."
VERSION_1 = (
    "Many city gardens record rainfall by hand, and the notebooks disagree. We ask whether a small recurrent network "
    "can reconcile neighbouring notebooks without any gauge as reference. On eleven gardens over nine years the "
    "network halves the disagreement, and its corrections match the three gauges that were installed later. The "
    "method needs one evening of computing on a laptop and no tuning by the gardeners."
)
VERSION_2 = VERSION_1.replace("halves the disagreement", "cuts the disagreement by 54%") + " Our code is public."


class Ingested(NamedTuple):
    """What one ingest gave."""

    manifest: dict[str, Any]
    rows: list[dict[str, Any]]
    rejects: list[dict[str, Any]]
    folder: Path

    def column(self, name: str) -> list[Any]:
        return [row[name] for row in self.rows]


Ingest = Callable[..., Ingested]


@pytest.fixture
def run(tmp_path: Path) -> Ingest:
    """Write a dump (papers as JSON Lines, or text) and label rows, and ingest them."""
    number = iter(range(100))

    def call(
        content: str | Sequence[Mapping[str, Any]],
        labels: Sequence[Mapping[str, object]] = (),
        *,
        name: str = "dump.jsonl",
        taxonomy: Taxonomy = TAXONOMY,
    ) -> Ingested:
        place = tmp_path / f"ingest-{next(number)}"
        place.mkdir()
        text = content if isinstance(content, str) else "".join(json.dumps(paper) + "\n" for paper in content)
        (place / name).write_text(text, encoding="utf-8")
        files = [write_labels(place / "labels.csv", labels)] if labels else []
        manifest = ingest([str(place / name)], place / "out", taxonomy=taxonomy, labels=files)
        return read_back(manifest, place / "out")

    return call


def write_labels(path: Path, rows: Sequence[Mapping[str, object]]) -> str:
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, sorted({key for row in rows for key in row}))
        writer.writeheader()
        writer.writerows(rows)
    return str(path)


def read_back(manifest: dict[str, Any], folder: Path) -> Ingested:
    rejects = [json.loads(line) for line in (folder / "rejects.jsonl").read_text(encoding="utf-8").splitlines()]
    return Ingested(manifest, pq.read_table(folder / "records.parquet").to_pylist(), rejects, folder)


def paper(id: str, abstract: str, **more: Any) -> dict[str, Any]:  # noqa: A002
    return {"id": id, "abstract": abstract} | more


def test_columns_and_types_are_those_of_the_contract(run: Ingest) -> None:
    found = run([paper("p", WALKS)])
    schema = pq.read_schema(found.folder / "records.parquet")
    assert {
        name: str(kind).replace("element: ", "item: ") for name, kind in zip(schema.names, schema.types, strict=True)
    } == {
        "id": "string",
        "key": "string",
        "title": "string",
        "abstract": "string",
        "title_raw": "string",
        "abstract_raw": "string",
        "venue": "string",
        "venue_raw": "string",
        "year": "int32",
        "part": "string",
        "random": "bool",
        "areas": "list<item: string>",
        "known": "list<item: string>",
        "label_source": "string",
        "sure": "bool",
        "group": "int64",
        "file": "string",
        "line": "int64",
        "n": "int64",
    }
    assert sorted(path.name for path in found.folder.iterdir()) == ["manifest.json", "records.parquet", "rejects.jsonl"]


def test_a_full_row(run: Ingest) -> None:
    whole = paper(
        "p1", f"  <p>{WALKS}</p>", title="Short \\emph{Walks}", venue="ICLR 2024 poster", part="test", areas=["graphs"]
    )
    found = run([whole])
    assert found.rows == [
        {
            "id": "p1",
            "key": title_key("Short \\emph{Walks}"),
            "title": "Short Walks",
            "abstract": WALKS,
            "title_raw": "Short \\emph{Walks}",
            "abstract_raw": f"<p>{WALKS}</p>",
            "venue": "ICLR",
            "venue_raw": "ICLR 2024 poster",
            "year": 2024,
            "part": "test",
            "random": None,
            "areas": ["graphs"],
            "known": ALL,
            "label_source": "read",
            "sure": True,
            "group": 0,
            "file": str(found.folder.parent / "dump.jsonl"),
            "line": 1,
            "n": 1,
        }
    ]


def test_a_bare_row(run: Ingest) -> None:
    (row,) = run([{"abstract": WALKS}]).rows
    assert row["id"] == content_id(None, WALKS)
    assert {key for key, value in row.items() if value is not None} == {
        *("id", "abstract", "abstract_raw", "group", "file", "line", "n")
    }


def test_every_item_is_a_record_or_a_reject_and_both_are_numbered(run: Ingest) -> None:
    lines = [
        json.dumps(paper("p1", WALKS)),
        json.dumps(paper("p2", "")),
        "{broken",
        "",
        json.dumps(paper("p3", "Too <b>few</b> words left.")),
        json.dumps("no object"),
        json.dumps(paper("p4", HEAT)),
    ]
    found = run("\n".join(lines) + "\n")
    assert [(row["id"], row["n"], row["line"]) for row in found.rows] == [("p1", 1, 1), ("p4", 6, 7)]
    assert [(row["n"], row["line"], row["reason"]) for row in found.rejects] == [
        (2, 2, "no abstract"),
        (3, 3, "bad JSON"),
        (4, 5, "too short"),
        (5, 6, "not an object"),
    ]
    assert all(list(row) == ["file", "line", "n", "reason", "detail"] for row in found.rejects)
    assert found.rejects[2]["detail"] == "4 words after cleaning, at least 5 needed"
    manifest = found.manifest
    assert (manifest["read"], manifest["records"], manifest["rejects"]) == (6, 2, 4)
    assert manifest["reject_reasons"] == {"no abstract": 1, "bad JSON": 1, "too short": 1, "not an object": 1}
    (source,) = manifest["sources"]
    assert source == {
        "file": found.rows[0]["file"],
        "format": "json",
        "why": "content and suffix",
        **{name: manifest[name] for name in ("read", "records", "rejects", "duplicates")},
        "reasons": manifest["reject_reasons"],
        "encoding": "utf-8",
        "repaired": 0,
    }
    assert manifest == json.loads((found.folder / "manifest.json").read_text(encoding="utf-8"))


def test_a_table(run: Ingest) -> None:
    text = (
        "id,title,abstract,venue,year,areas\n"
        f'p1,"Walks, Shortened","{WALKS}",NeurIPS2023,,graphs; llm\n'
        f'p2,,"{HEAT}",Invented Letters,2021.0,none\np3,Steps,{STEPS},,,\np4,ragged\n'
    )
    found = run(text, name="dump.csv")
    assert [(row["venue"], row["venue_raw"], row["year"]) for row in found.rows] == [
        ("NeurIPS", "NeurIPS2023", 2023),
        ("Invented Letters", "Invented Letters", 2021),
        (None, None, None),
    ]
    assert found.column("areas") == [["llm", "graphs"], [], None]
    assert found.column("known") == [ALL, ALL, None]
    assert [row["reason"] for row in found.rejects] == ["ragged row"]
    assert found.manifest["sources"][0]["format"] == "table"


def test_plain_text(run: Ingest) -> None:
    long = [f"{text} {more}" for text, more in zip((WALKS, HEAT), (STEPS, STONES), strict=True)]
    found = run(f"ICML 2022 papers\n\n{long[0]}\n\n\n{long[1]}\n\nOnly a few words.\n", name="dump.txt")
    assert [(row["abstract"], row["venue"], row["year"], row["title"], row["key"]) for row in found.rows] == [
        (text, "ICML", 2022, None, None) for text in long
    ]
    assert found.column("id") == [content_id(None, text) for text in long]
    assert (found.column("line"), found.column("n")) == ([3, 6], [1, 2])
    assert found.manifest["rejects"] == 1


def test_several_files_are_one_corpus(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(json.dumps(paper("p", WALKS)) + "\n{}\n", encoding="utf-8")
    (tmp_path / "b.csv").write_text(f'id,abstract\np,"{HEAT}"\n', encoding="utf-8")
    manifest = ingest([str(tmp_path)], tmp_path / "out", taxonomy=TAXONOMY)
    found = read_back(manifest, tmp_path / "out")
    assert [(source["format"], source["records"], source["rejects"]) for source in manifest["sources"]] == [
        ("json", 1, 1),
        ("table", 1, 0),
    ]
    assert found.column("id") == ["p", "p-2"]
    assert found.column("n") == [1, 1]
    assert manifest["read"] == sum(source["read"] for source in manifest["sources"]) == 3


def test_repeated_ids_are_told_apart(run: Ingest) -> None:
    texts = (WALKS, HEAT, STEPS, TALK, STONES)
    found = run([paper(name, text) for name, text in zip(("p", "p", "p", "p-2", "q"), texts, strict=True)])
    assert found.column("id") == ["p", "p-2", "p-3", "p-2-2", "q"]
    assert run([paper(name, text) for name, text in zip(("p-2", "p", "p"), texts, strict=False)]).column("id") == [
        "p-2",
        "p",
        "p-3",
    ]
    assert run([{"abstract": WALKS}] * 2).column("id") == [content_id(None, WALKS), f"{content_id(None, WALKS)}-2"]


def test_a_rejected_record_does_not_use_up_an_id(run: Ingest) -> None:
    assert run([{"id": "p", "abstract": "Too short."}, {"id": "p", "abstract": WALKS}]).column("id") == ["p"]


def test_duplicates_share_a_group_and_are_kept(run: Ingest) -> None:
    found = run(
        [
            paper("walks", WALKS, title="Short Walks"),
            paper("preprint", VERSION_1, title="Rain in Notebooks"),
            paper("same title", HEAT, title="SHORT WALKS!"),
            paper("camera-ready", VERSION_2, title="Reconciling Rainfall Notebooks"),
            paper("same abstract", WALKS.upper()),
            paper("no title", STEPS),
            paper("no title either", TALK),
        ]
    )
    assert found.column("group") == [0, 1, 0, 1, 0, 2, 3]
    assert (found.manifest["records"], found.manifest["duplicates"]) == (7, 3)


def test_unlabelled_is_not_none_of_the_areas(run: Ingest) -> None:
    found = run(
        [paper("open", WALKS), paper("none", HEAT, areas=[]), paper("null", STEPS, areas=None), paper("x", TALK)],
        [{"id": "x", "areas": ""}],
    )
    assert found.column("areas") == [None, [], None, []]
    assert found.column("known") == [None, ALL, None, ALL]
    assert found.column("label_source") == [None, "read", None, "read"]
    assert found.manifest["labelled"] == {"read": 2}


def test_what_authors_declare_makes_only_positives_known(run: Ingest) -> None:
    found = run(
        [
            paper("p1", WALKS, keywords=["graph neural networks", "random walks"]),
            paper("p2", HEAT, keywords="bridges; pictures"),
            paper("p3", STEPS, primary_area="convex optimization", areas=["llm"]),
        ]
    )
    assert found.column("areas") == [["graphs"], None, ["llm"]]
    assert found.column("known") == [["graphs"], [], ALL]
    assert found.column("label_source") == ["declared", "declared", "read"]
    assert found.manifest["labelled"] == {"read": 1, "declared": 1}


def test_a_declared_label_file_makes_only_positives_known(run: Ingest) -> None:
    found = run([paper("p", WALKS)], [{"id": "p", "areas": "graphs", "source": "declared"}])
    assert (found.rows[0]["areas"], found.rows[0]["known"]) == (["graphs"], ["graphs"])


def test_labels_join_by_id_and_key_with_part_random_and_sure(run: Ingest) -> None:
    found = run(
        [paper("p1", WALKS, title="Short Walks", areas=["llm"], part="train"), paper("p2", HEAT), paper("p3", STEPS)],
        [
            {
                "id": "",
                "key": title_key("short walks"),
                "areas": "graphs",
                "source": "review",
                "part": "test",
                "sure": 0,
            },
            {"id": "p2", "key": "", "areas": "diffusion", "random": 1, "masked": "llm"},
            {"id": "gone", "key": "0" * 16, "areas": "llm"},
        ],
    )
    rows = [
        {key: row[key] for key in ("areas", "known", "label_source", "sure", "part", "random")} for row in found.rows
    ]
    assert [list(row.values()) for row in rows] == [
        [["graphs"], ALL, "review", False, "test", None],
        [["diffusion"], ALL[1:], "read", True, None, True],
        [None, None, None, None, None, None],
    ]
    assert (found.manifest["unmatched_labels"], found.manifest["label_conflicts"]) == (1, 0)
    assert found.manifest["labelled"] == {"review": 1, "read": 1}


def test_a_record_and_a_label_file_that_differ_mask_the_cell(run: Ingest) -> None:
    found = run([paper("p", WALKS, areas=["graphs", "llm"])], [{"id": "p", "areas": "graphs;diffusion"}])
    assert (found.rows[0]["areas"], found.rows[0]["known"]) == (["graphs"], ["graphs", "optimization"])
    assert found.manifest["label_conflicts"] == 2


def test_a_record_may_judge_some_areas(run: Ingest) -> None:
    (row,) = run([paper("p", WALKS, areas=["graphs"], judged=["graphs", "llm"])]).rows
    assert (row["areas"], row["known"]) == (["graphs"], ["llm", "graphs"])


def test_an_unknown_area_in_a_record_is_named(run: Ingest, tmp_path: Path) -> None:
    with pytest.raises(DataError) as error:
        run([paper("p", WALKS), paper("q", HEAT, areas=["graph"])])
    where = tmp_path / "ingest-0" / "dump.jsonl"
    assert str(error.value).startswith(f"{where}: record 2: unknown area 'graph'; the taxonomy 'ml-areas' has llm, ")
    assert not (tmp_path / "ingest-0" / "out").exists()


def test_a_taxonomy_of_five_areas(run: Ingest) -> None:
    five = parse_taxonomy({**TAXONOMY.source, "areas": [*TAXONOMY.source["areas"], {"id": "robots"}]})
    found = run([paper("p", STONES, areas=["robots"])], taxonomy=five)
    assert (found.rows[0]["areas"], found.rows[0]["known"]) == (["robots"], [*ALL, "robots"])
    assert load_corpus(found.folder).values.tolist() == [[False] * 4 + [True]]


def test_the_fingerprint_is_that_of_content_and_taxonomy(run: Ingest) -> None:
    papers = [paper("p1", WALKS, title="Short Walks", areas=["graphs"]), paper("p2", HEAT)]
    table = f'id,title,abstract,areas\np1,Short Walks,"{WALKS}",graphs\np2,,"{HEAT}",\n'
    fingerprint = run(papers).manifest["fingerprint"]
    assert run(papers, name="elsewhere.json").manifest["fingerprint"] == fingerprint
    assert run(table, name="dump.csv").manifest["fingerprint"] == fingerprint
    renamed = parse_taxonomy({**TAXONOMY.source, "name": "renamed"})
    others = [
        run([papers[0], paper("p2", STEPS)]),
        run([papers[0], paper("p3", HEAT)]),
        run([papers[0] | {"areas": []}, papers[1]]),
        run([papers[0] | {"title": "Longer Walks"}, papers[1]]),
        run([papers[0] | {"year": 2020}, papers[1]]),
        run(papers[::-1]),
        run(papers, taxonomy=renamed),
    ]
    assert len({fingerprint, *(other.manifest["fingerprint"] for other in others)}) == len(others) + 1


def test_ingest_twice_is_identical(run: Ingest) -> None:
    papers = [paper("p1", VERSION_1), paper("p2", VERSION_2), paper("p3", HEAT, keywords=["diffusion models"])]
    first, second = run(papers), run(papers)
    assert [row | {"file": ""} for row in first.rows] == [row | {"file": ""} for row in second.rows]


def test_an_existing_folder_is_replaced_only_with_force(tmp_path: Path) -> None:
    for name, text in (("a", WALKS), ("b", HEAT)):
        (tmp_path / f"{name}.jsonl").write_text(json.dumps(paper(name, text)) + "\n", encoding="utf-8")
    out = tmp_path / "out"
    ingest([str(tmp_path / "a.jsonl")], out, taxonomy=TAXONOMY)
    with pytest.raises(ArtifactError, match=f"{out}: exists already; .*--force"):
        ingest([str(tmp_path / "b.jsonl")], out, taxonomy=TAXONOMY)
    assert load_corpus(out).column("id") == ["a"]
    with pytest.raises(DataError, match="no such file"):
        ingest([str(tmp_path / "c.jsonl")], out, taxonomy=TAXONOMY, force=True)
    assert load_corpus(out).column("id") == ["a"]
    ingest([str(tmp_path / "b.jsonl")], out, taxonomy=TAXONOMY, force=True)
    assert load_corpus(out).column("id") == ["b"]
    assert {path.name for path in tmp_path.iterdir()} == {"a.jsonl", "b.jsonl", "out"}


def test_no_usable_record_is_an_error_that_leaves_nothing(tmp_path: Path) -> None:
    dump = tmp_path / "dump.jsonl"
    dump.write_text('{"abstract": null}\n{"abstract": "Too short."}\n', encoding="utf-8")
    with pytest.raises(DataError) as error:
        ingest([str(dump)], tmp_path / "out", taxonomy=TAXONOMY)
    reasons, remedy = "1 no abstract, 1 too short", "check the dump, or name its format with --format"
    assert str(error.value) == f"{dump}: no usable record among 2: {reasons}; {remedy}"
    assert list(tmp_path.iterdir()) == [dump]


def test_bad_labels_leave_nothing(tmp_path: Path) -> None:
    dump, labels = tmp_path / "dump.jsonl", tmp_path / "labels.csv"
    dump.write_text(json.dumps(paper("p", WALKS)), encoding="utf-8")
    labels.write_text("id,areas\np,zoology\n", encoding="utf-8")
    with pytest.raises(DataError, match=rf"{labels}:2, column areas: unknown area 'zoology'"):
        ingest([str(dump)], tmp_path / "out", taxonomy=TAXONOMY, labels=[str(labels)])
    assert set(tmp_path.iterdir()) == {dump, labels}


def test_a_full_disk_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    dump = tmp_path / "dump.jsonl"
    dump.write_text(json.dumps(paper("p", WALKS)), encoding="utf-8")
    monkeypatch.setattr(pq, "write_table", full)
    with pytest.raises(ArtifactError) as error:
        ingest([str(dump)], tmp_path / "out", taxonomy=TAXONOMY)
    assert str(error.value).startswith(f"{tmp_path / 'out'}: cannot be written: No space left on device; make room")
    assert list(tmp_path.iterdir()) == [dump]


@pytest.mark.parametrize("abstract", ["\ud800", "Withdrawn by the authors \udfff."])
def test_a_lone_surrogate_in_a_reject_is_no_failure(run: Ingest, abstract: str) -> None:
    found = run([paper("p", WALKS), paper("q", abstract)])
    assert (found.manifest["records"], found.manifest["rejects"]) == (1, 1)


def test_a_file_whose_name_is_not_utf8_is_read_or_refused(tmp_path: Path) -> None:
    dump = tmp_path / os.fsdecode(b"d\xff.jsonl")
    try:
        dump.write_text(json.dumps(paper("p", WALKS)), encoding="utf-8")
    except (OSError, UnicodeError):
        pytest.skip("this file system takes no such name")
    try:
        assert ingest([str(dump)], tmp_path / "out", taxonomy=TAXONOMY)["records"] == 1
    except AbstagError:
        assert not (tmp_path / "out").exists()


def test_the_summary_says_what_happened(run: Ingest) -> None:
    found = run([paper("p", WALKS, areas=["graphs"]), paper("p", WALKS), paper("q", "")], [{"id": "x", "areas": ""}])
    assert manifest_summary(found.manifest).splitlines() == [
        "read 3 = 2 records + 1 rejects",
        "rejected: 1 no abstract",
        "duplicates: 1",
        "labelled: 1 read",
        "label rows without a record: 1; cells on which labels differ: 0",
        f"fingerprint: {found.manifest['fingerprint']}",
    ]


def test_the_row_with_the_strongest_label_stands_for_its_group(run: Ingest) -> None:
    found = run(
        [
            paper("unlabelled", WALKS),
            paper("declared", WALKS, keywords=["graph neural networks"]),
            paper("read", WALKS, areas=["graphs"]),
            paper("read too", WALKS, areas=["graphs"]),
            paper("alone", HEAT),
            paper("first", STEPS),
            paper("second", STEPS),
            paper("by reading", TALK, areas=["llm"]),
            paper("by review", TALK),
        ],
        [{"id": "by review", "areas": "llm", "source": "review"}],
    )
    corpus = load_corpus(found.folder)
    assert corpus.column("id") == ["read", "alone", "first", "by review"]
    assert corpus.sources == ["read", None, None, "review"]
    assert corpus.scorable.tolist() == [True, False, False, True]
    assert corpus.groups.tolist() == [0, 1, 2, 3]
    assert len(corpus) == 4
    assert (corpus.name, corpus.fingerprint) == ("out", found.manifest["fingerprint"])


def test_a_loaded_corpus_gives_documents_and_cells(run: Ingest) -> None:
    papers = [paper("p1", WALKS, title="Short Walks", areas=["graphs"], judged=["graphs", "llm"]), paper("p2", HEAT)]
    corpus = load_corpus(run(papers).folder)
    assert corpus.documents.texts == [f"Short Walks\n{WALKS}", f"\n{HEAT}"]
    assert list(corpus.documents.ids) == ["p1", "p2"]
    assert corpus.values.tolist() == [[False, True, False, False], [False] * 4]
    assert corpus.known.tolist() == [[True, True, False, False], [False] * 4]
    assert corpus.values.dtype == corpus.known.dtype == np.bool_


def test_a_wholly_masked_label_is_not_scorable(run: Ingest) -> None:
    found = run([paper("p", WALKS)], [{"id": "p", "areas": "graphs", "masked": ";".join(ALL)}])
    assert (found.rows[0]["areas"], found.rows[0]["known"], found.rows[0]["label_source"]) == (None, [], "read")
    assert found.manifest["labelled"] == {}
    assert load_corpus(found.folder).scorable.tolist() == [False]


def test_targets_weigh_sources_and_declared_negatives(run: Ingest) -> None:
    found = run(
        [
            paper("review", WALKS),
            paper("read", HEAT, areas=["diffusion"], judged=["diffusion", "llm"]),
            paper("declared", STEPS, keywords=["convex optimization"]),
            paper("declared none", TALK, keywords=["opinions"]),
            paper("unlabelled", STONES),
        ],
        [{"id": "review", "areas": "graphs", "source": "review"}],
    )
    corpus = load_corpus(found.folder)
    targets = corpus.targets({"review": 3.0, "read": 2.0, "declared": 0.5}, declared_negatives=0.25)
    assert targets.weight.tolist() == [[3] * 4, [2, 0, 2, 0], [0.25, 0.25, 0.25, 0.5], [0.25] * 4, [0] * 4]
    assert targets.known.tolist() == (targets.weight > 0).tolist()
    assert (targets.values & targets.known).tolist() == (corpus.values & corpus.known).tolist()
    assert targets.weight.dtype == np.float64

    strict = corpus.targets({"review": 3.0, "read": 0.0, "declared": 0.5})
    assert strict.weight.tolist() == [[3] * 4, [0] * 4, [0, 0, 0, 0.5], [0] * 4, [0] * 4]
    assert strict.known.tolist() == corpus.known.tolist()


def test_a_taxonomy_with_other_areas_is_refused(run: Ingest) -> None:
    folder = run([paper("p", WALKS)]).folder
    other = parse_taxonomy({"name": "two", "areas": [{"id": "llm"}, {"id": "graphs"}]})
    with pytest.raises(DataError) as error:
        load_corpus(folder, other)
    assert str(error.value) == (
        f"{folder}: the corpus was ingested with the areas llm, graphs, diffusion, optimization, the taxonomy has llm, "
        "graphs; ingest again with --taxonomy"
    )
    turned = parse_taxonomy({**TAXONOMY.source, "areas": TAXONOMY.source["areas"][::-1]})
    with pytest.raises(DataError, match="ingest again"):
        load_corpus(folder, turned)


def test_a_taxonomy_with_other_words_changes_the_fingerprint(run: Ingest) -> None:
    found = run([paper("p", WALKS)])
    fingerprint = found.manifest["fingerprint"]
    assert load_corpus(found.folder, TAXONOMY).fingerprint == fingerprint
    areas = [area | {"keywords": ["walk"]} for area in TAXONOMY.source["areas"]]
    other = parse_taxonomy({**TAXONOMY.source, "areas": areas})
    corpus = load_corpus(found.folder, other)
    assert corpus.fingerprint == f"{fingerprint}-{other.digest}"
    assert corpus.taxonomy.areas[0].keywords == ("walk",)


def test_the_taxonomy_comes_back_from_the_manifest(run: Ingest) -> None:
    found = run([paper("p", WALKS)])
    assert load_corpus(found.folder).taxonomy.digest == TAXONOMY.digest == found.manifest["taxonomy"]["digest"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("manifest.json", None, "no ingested corpus here; make one with `abstag ingest PATH... -o DIR`"),
        ("manifest.json", b"{", "cannot be read"),
        ("manifest.json", b"[]", "the manifest lacks keys"),
        ("manifest.json", b'{"fingerprint": "f"}', "the manifest lacks keys"),
        ("manifest.json", b'{"fingerprint": "f", "taxonomy": null}', ""),
        ("records.parquet", None, "cannot be read"),
        ("records.parquet", b"PAR1 is not enough", "cannot be read"),
    ],
)
def test_a_damaged_corpus_is_one_error(run: Ingest, name: str, content: bytes | None, message: str) -> None:
    folder = run([paper("p", WALKS)]).folder
    if content is None:
        (folder / name).unlink()
    else:
        (folder / name).write_bytes(content)
    with pytest.raises(AbstagError) as error:
        load_corpus(folder)
    assert str(error.value).startswith(str(folder))
    assert message in str(error.value)


def test_a_missing_corpus_is_one_error(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="no ingested corpus here"):
        load_corpus(tmp_path / "none")


@pytest.mark.parametrize("held", ["a file", "a folder", "a corpus and more"])
def test_force_replaces_nothing_but_a_corpus(tmp_path: Path, held: str) -> None:
    dump, out = tmp_path / "d.jsonl", tmp_path / "out"
    dump.write_text(json.dumps(paper("p", WALKS)), encoding="utf-8")
    if held == "a folder":
        out.mkdir()
    if held == "a corpus and more":
        ingest([str(dump)], out, taxonomy=TAXONOMY)
    kept = out if held == "a file" else out / "thesis.txt"
    kept.write_text("years of work", encoding="utf-8")
    with pytest.raises(ArtifactError, match="is no corpus"):
        ingest([str(dump)], out, taxonomy=TAXONOMY, force=True)
    assert kept.read_text(encoding="utf-8") == "years of work"


@pytest.mark.parametrize("given", ["a file", "a folder", "the folder above", "labels", "through a symlink"])
def test_force_never_replaces_what_is_read(tmp_path: Path, given: str) -> None:
    dump, out = tmp_path / "d.jsonl", tmp_path / "out"
    dump.write_text(json.dumps(paper("p", WALKS)), encoding="utf-8")
    ingest([str(dump)], out, taxonomy=TAXONOMY)
    (out / "rejects.jsonl").write_bytes(dump.read_bytes())
    (tmp_path / "link").symlink_to(out)
    names = {"a folder": out, "the folder above": tmp_path, "through a symlink": tmp_path / "link" / "rejects.jsonl"}
    inside = str(out / "rejects.jsonl")
    paths = [str(dump)] if given == "labels" else [str(names.get(given, inside))]
    with pytest.raises(ArtifactError, match=r"lies in the folder to be made; choose another name"):
        ingest(paths, out, taxonomy=TAXONOMY, force=True, labels=[inside] if given == "labels" else [])
    assert (out / "rejects.jsonl").read_bytes() == dump.read_bytes()


def change(column: str, value: Any) -> Callable[[Path], None]:
    def edit(path: Path) -> None:
        table = pq.read_table(path)
        place = table.column_names.index(column)
        values = pa.array([value] * len(table), table.schema.field(column).type)
        pq.write_table(table.set_column(place, column, values), path)

    return edit


EDITS: Mapping[str, Callable[[Path], None]] = {
    "other abstract": change("abstract", HEAT),
    "null abstract": change("abstract", None),
    "unknown area": change("areas", ["zoology"]),
    "other part": change("part", "test"),
    "no rows": lambda path: pq.write_table(pq.read_table(path).slice(0, 0), path),
    "no id": lambda path: pq.write_table(pq.read_table(path).drop_columns(["id"]), path),
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_records_changed_since_ingest_are_refused(run: Ingest, edit: Callable[[Path], None]) -> None:
    folder = run([paper("p", WALKS, areas=["graphs"])]).folder
    edit(folder / "records.parquet")
    with pytest.raises(ArtifactError) as error:
        load_corpus(folder)
    assert str(error.value) == f"{folder}: changed since ingest; ingest again"


def test_a_column_of_another_type_is_one_error(run: Ingest) -> None:
    folder = run([paper("p", WALKS)]).folder
    pq.write_table(pa.table({"id": [["p"]]}), folder / "records.parquet")
    with pytest.raises(ArtifactError, match=r"records\.parquet: cannot be read: .*; ingest again"):
        load_corpus(folder)


def test_a_failed_ingest_takes_the_folders_away_that_it_made(tmp_path: Path) -> None:
    dump = tmp_path / "d.jsonl"
    dump.write_text('{"abstract": null}\n', encoding="utf-8")
    with pytest.raises(DataError):
        ingest([str(dump)], tmp_path / "new" / "deep" / "out", taxonomy=TAXONOMY)
    assert list(tmp_path.iterdir()) == [dump]


@pytest.mark.parametrize("name", ["manifest.json", "records.parquet", "rejects.jsonl"])
def test_a_file_that_only_has_the_name_of_ours_is_not_replaced(name: str, dump: Path, tmp_path: Path) -> None:
    place = tmp_path / "mine"
    place.mkdir()
    (place / name).write_text('{"name": "my extension"}')
    with pytest.raises(ArtifactError, match="exists and is no corpus"):
        ingest([str(dump)], place, taxonomy=load_taxonomy(), force=True)
    assert (place / name).read_text() == '{"name": "my extension"}'


def test_a_manifest_without_counts_is_refused(embedded: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(embedded, tmp_path / "copy")
    manifest = json.loads((copy / "manifest.json").read_text(encoding="utf-8"))
    (copy / "manifest.json").write_text(json.dumps({k: v for k, v in manifest.items() if k != "rejects"}))
    with pytest.raises(ArtifactError, match="the manifest lacks keys"):
        load_corpus(copy)
