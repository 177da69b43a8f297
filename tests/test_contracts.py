"""Real output is held against the JSON schemas of docs/schemas."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pyarrow.parquet as pq
import pytest

from abstag.cli import main
from abstag.resources import resource

SCHEMAS = Path(__file__).parents[1] / "docs" / "schemas"
COLUMNS = [
    *("id", "key", "title", "abstract", "title_raw", "abstract_raw", "venue", "venue_raw", "year", "part", "random"),
    *("areas", "known", "label_source", "sure", "group", "file", "line", "n"),
]


def check(name: str, value: Any) -> None:
    schema = json.loads((SCHEMAS / f"{name}.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(schema).validate(value)


def output(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    assert main(["--quiet", *arguments]) == code
    return capsys.readouterr().out


@pytest.mark.slow
def test_output_of_every_verb_fits_its_schema(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dump, corpus, runs = str(resource("data/corpus/abstracts.jsonl")), str(tmp_path / "corpus"), str(tmp_path / "runs")
    check("manifest", json.loads(output(capsys, "ingest", dump, "-o", corpus, "--json")))
    assert pq.read_schema(tmp_path / "corpus" / "records.parquet").names == COLUMNS
    check("describe", json.loads(output(capsys, "describe", corpus, "--json")))

    output(
        capsys,
        "run",
        "-m",
        "classifier=prior,nb",
        f"data.path={corpus}",
        f"runs_dir={runs}",
        "split.folds=2",
        "name=two",
    )
    output(capsys, "run", "split=fixed", f"runs_dir={runs}", code=1)
    listed = json.loads(output(capsys, "runs", "--json", "--runs-dir", runs))
    assert sorted(run["status"] for run in listed) == ["done", "done", "failed"]
    check("runs", listed)
    compared = json.loads(output(capsys, "compare", "--experiment", "two", "--json", "--runs-dir", runs))
    assert compared["pairs"]
    check("compare", compared)

    other = tmp_path / "other.jsonl"
    papers = [
        {
            "title": "Steps",
            "abstract": "Step sizes of descent methods decide how fast they converge.",
            "areas": ["optimization"],
        },
        {"title": "Bees", "abstract": "A microphone hears whether a hive of bees has lost its queen.", "areas": []},
        {"title": "No text", "abstract": None},
    ]
    other.write_text("\n".join(map(json.dumps, papers)), encoding="utf-8")
    lines = [
        json.loads(line)
        for line in output(capsys, "tag", str(other), "--bundle", "nb", "--runs-dir", runs).splitlines()
    ]
    assert [line["decision"] == "reject" for line in lines] == [False, False, True]
    for line in lines:
        check("tag", line)
    output(capsys, "ingest", str(other), "-o", str(tmp_path / "measured"))
    check("eval", json.loads(output(capsys, "eval", "nb", str(tmp_path / "measured"), "--json", "--runs-dir", runs)))
