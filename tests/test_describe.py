"""A description adds up, and says how label sources agree."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from abstag.describe import agreement_of, describe
from abstag.errors import ArtifactError
from abstag.ingest import ingest
from abstag.report.table import description
from abstag.taxonomy import load_taxonomy
from tests.conftest import Go, write_dump

TEXT = "We look at how {} behave when many of them are put into one room for a day."


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six records, one of them a copy and one too short: read, declared, both, and without any label."""
    place = tmp_path_factory.mktemp("described")
    things = ("bees", "clocks", "stones", "kettles", "ladders")
    papers: list[dict[str, Any]] = [
        {"id": name, "title": f"On {name}", "abstract": TEXT.format(name), "year": 2020 + number, "venue": "ICLR 2021"}
        for number, name in enumerate(things)
    ]
    papers[0]["keywords"] = ["graph neural networks"]
    papers[1]["keywords"] = ["graph neural networks"]
    papers[2]["keywords"] = ["language models"]
    papers[3] |= {"title": None, "year": None, "venue": None}
    papers += [papers[4] | {"id": "copy"}, {"id": "short", "abstract": "Too short."}]
    labels = place / "labels.csv"
    labels.write_text("id,areas,random,sure\nbees,graphs,1,1\nclocks,,0,0\nstones,llm;graphs,0,1\n", encoding="utf-8")
    file = write_dump(place / "papers.jsonl", papers)
    ingest([str(file)], place / "corpus", taxonomy=load_taxonomy(), labels=[str(labels)])
    return place / "corpus"


def test_counts(folder: Path) -> None:
    found = describe(folder)
    assert (found["read"], found["records"], found["rejects"], found["duplicates"]) == (7, 6, 1, 1)
    assert found["reject_reasons"] == {"too short": 1}
    assert found["groups"] == {"all": 5, "several": 1}
    assert found["without_title"] == 1
    assert found["formats"] == {"json": 1}
    assert found["years"] == {"2020": 1, "2021": 1, "2022": 1, "2024": 2, "unknown": 1}
    assert found["venues"] == {"ICLR": 5, "unknown": 1}
    assert found["random"] == 1
    assert found["sources"] == {"read": 3, "unlabelled": 3}
    assert found["words"]["abstract"] == {"min": 18, "p5": 18, "median": 18, "p95": 18, "max": 18, "mean": 18.0}
    assert found["words"]["title"]["max"] == 2


def test_areas_by_source(folder: Path) -> None:
    read = describe(folder)["areas"]["read"]
    assert read["positives"] == {"llm": 1, "graphs": 2, "diffusion": 0, "optimization": 0}
    assert (read["papers"], read["none"], read["several"], read["sure"]) == (3, 1, 1, 2)
    assert describe(folder)["together"]["llm"] == {"llm": 1, "graphs": 1, "diffusion": 0, "optimization": 0}


def test_agreement_of_read_and_declared(folder: Path) -> None:
    (pair,) = describe(folder)["agreement"]
    assert (pair["a"], pair["b"], pair["papers"]) == ("read", "declared", 3)
    graphs = pair["areas"]["graphs"]
    assert {name: graphs[name] for name in ("both", "only_a", "only_b", "neither")} == {
        "both": 1,
        "only_a": 1,
        "only_b": 1,
        "neither": 0,
    }
    assert graphs["f1"] == 0.5
    assert graphs["kappa"] == pytest.approx(-0.5)
    assert pair["areas"]["llm"]["f1"] == 1.0
    assert math.isnan(pair["areas"]["diffusion"]["f1"])
    assert math.isnan(pair["areas"]["diffusion"]["kappa"])


def test_kappa_is_scikit_learns() -> None:
    from sklearn.metrics import cohen_kappa_score, f1_score

    cells = {"both": 20, "only_a": 5, "only_b": 10, "neither": 65}
    a = [1] * 25 + [0] * 75
    b = [1] * 20 + [0] * 5 + [1] * 10 + [0] * 65
    found = agreement_of({"areas": {"x": cells}})["areas"]["x"]
    assert found["kappa"] == pytest.approx(cohen_kappa_score(a, b))
    assert found["f1"] == pytest.approx(f1_score(a, b))


def test_command_line(go: Go, folder: Path) -> None:
    assert json.loads(go("describe", folder, "--json", code=0).out)["records"] == 6
    text = go("describe", folder, code=0).out
    assert text.strip() == description(describe(folder))
    assert "read and declared labels of the same 3 papers" in text
    assert "read 7 = 6 records + 1 rejects\nrejected: too short 1\n" in text


def test_no_corpus_here(go: Go, tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="no ingested corpus"):
        describe(tmp_path)
    assert go("describe", tmp_path, code=1).err.count("\n") == 1


def test_unlabelled_corpus(tmp_path: Path) -> None:
    file = write_dump(tmp_path / "papers.jsonl", [{"abstract": TEXT.format("bees")}])
    ingest([str(file)], tmp_path / "corpus", taxonomy=load_taxonomy())
    found = describe(tmp_path / "corpus")
    assert (found["areas"], found["agreement"], found["sources"]) == ({}, [], {"unlabelled": 1})
    assert "label sources: unlabelled 1" in description(found)
