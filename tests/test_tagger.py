"""Tagging: every record comes out once, in order, whole or not at all; and eval leaves training papers out."""

import gzip
import io
import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from abstag.bundle import Bundle
from abstag.corpus import Corpus, load_corpus
from abstag.decision import Decision
from abstag.errors import ArtifactError, DataError
from abstag.evaluation import evaluate_bundle
from abstag.ingest import ingest
from abstag.tagger import DECISIONS, Choice, summary_path, tag_dumps
from abstag.taxonomy import load_taxonomy, parse_taxonomy
from tests.conftest import Go, write_dump

KEYS = ["id", "file", "n", "title", "areas", "uncertain", "scores", "decision", "reason"]
IDS = load_taxonomy().ids
GOOD = {"title": "Bees", "abstract": "A microphone hears whether a hive of bees has lost its queen."}
BAD = {"title": "No text", "abstract": "Too short."}


def decided(bundle: Bundle, *, review: float = 0.2, threshold: float = 0.05) -> Bundle:
    """Return the bundle with a decision that gives every kind of line."""
    ones = np.ones(len(IDS))
    decision = Decision(bundle.decision.slope, bundle.decision.offset, threshold * ones, review)
    return Bundle("x", bundle.scorer, decision, bundle.taxonomy, bundle.training_keys)


PLAIN = Choice(adjust=False)


def tag_lines(paths: list[str], bundle: Bundle, out: Path, choice: Choice = PLAIN) -> list[dict[str, Any]]:
    """Tag dumps into a file, and return its lines."""
    tag_dumps(paths, bundle, out, choice=choice, force=True)
    return lines_of(out.read_text(encoding="utf-8"))


def lines_of(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.fixture
def mixed(tmp_path: Path, papers: list[dict[str, Any]]) -> Path:
    """A dump of 12 papers and a reject after every fourth."""
    rows: list[dict[str, Any]] = []
    for number, paper in enumerate(papers[:12], start=1):
        rows += [paper, BAD] if number % 4 == 0 else [paper]
    return write_dump(tmp_path / "mixed.jsonl", rows)


def test_lines_have_the_keys_of_the_contract_and_keep_the_order(mixed: Path, bundle: Bundle, tmp_path: Path) -> None:
    lines = tag_lines([str(mixed)], decided(bundle), tmp_path / "o")
    assert [line["n"] for line in lines] == list(range(1, 16))
    assert {line["file"] for line in lines} == {str(mixed)}
    assert all([*line] == KEYS for line in lines)
    assert {line["decision"] for line in lines} == set(DECISIONS)
    for line in lines:
        if line["decision"] == "reject":
            assert (line["n"] % 5, line["title"], line["areas"], line["uncertain"]) == (0, "No text", [], [])
            assert line["scores"] is None
            assert line["reason"] == "too short: 2 words after cleaning, at least 5 needed"
            continue
        assert [*line["scores"]] == list(IDS)
        assert all(0 <= score <= 1 and round(score, 4) == score for score in line["scores"].values())
        assert not set(line["areas"]) & set(line["uncertain"])
        expected = "review" if line["uncertain"] else "tag" if line["areas"] else "none"
        assert line["decision"] == expected
        assert bool(line["reason"]) == (expected == "review")


def test_scores_are_those_of_the_bundle(corpus: Corpus, dump: Path, bundle: Bundle, tmp_path: Path) -> None:
    lines = tag_lines([str(dump)], bundle, tmp_path / "o")
    assert [line["id"] for line in lines] == corpus.column("id")
    expected = np.round(bundle.probabilities(corpus.documents), 4)
    assert np.array_equal([[*line["scores"].values()] for line in lines], expected)


@pytest.mark.parametrize(("review", "decisions"), [(np.inf, {"review"}), (0.0, {"tag", "none"})])
def test_review_line_at_its_ends(
    review: float, decisions: set[str], dump: Path, bundle: Bundle, tmp_path: Path
) -> None:
    lines = tag_lines([str(dump)], decided(bundle, review=review), tmp_path / "o")
    assert {line["decision"] for line in lines} == decisions
    if review:
        assert all(line["uncertain"] == list(IDS) and line["areas"] == [] for line in lines)


def test_review_row_keeps_its_sure_areas(dump: Path, bundle: Bundle, tmp_path: Path) -> None:
    lines = tag_lines([str(dump)], decided(bundle), tmp_path / "o")
    lines = [line for line in lines if line["decision"] == "review"]
    assert any(line["areas"] for line in lines)
    for line in lines:
        assert line["reason"] == f"unsure of {', '.join(line['uncertain'])}"
        assert all(line["scores"][area] >= 0.05 for area in line["areas"])
        assert all(0.04 - 1e-3 <= line["scores"][area] <= 0.24 + 1e-3 for area in line["uncertain"])


def test_counts_add_up(mixed: Path, dump: Path, bundle: Bundle, tmp_path: Path) -> None:
    out = tmp_path / "tags.jsonl"
    summary = tag_dumps([str(mixed), str(dump)], decided(bundle), out, choice=PLAIN)
    lines = lines_of(out.read_text(encoding="utf-8"))
    assert summary.decisions == Counter(line["decision"] for line in lines)
    assert summary.areas == Counter(area for line in lines for area in line["areas"])
    assert summary.read == len(lines) == 15 + 80
    counts = [summary.decisions[name] for name in DECISIONS]
    assert str(summary).startswith("read 95 = {} tag + {} none + {} review + {} reject; areas: ".format(*counts))
    kept = json.loads(summary_path(out).read_text(encoding="utf-8"))
    assert [kept[name] for name in DECISIONS] == counts
    assert [(row["file"], row["read"]) for row in kept["files"]] == [(str(mixed), 15), (str(dump), 80)]
    for name in DECISIONS:
        assert sum(row[name] for row in kept["files"]) == kept[name]


def test_more_than_a_batch_and_a_batch_of_rejects_alone(bundle: Bundle, tmp_path: Path) -> None:
    file = write_dump(tmp_path / "long.jsonl", [*[BAD] * 600, *[GOOD] * 600])
    lines = tag_lines([str(file)], bundle, tmp_path / "o")
    assert [line["n"] for line in lines] == list(range(1, 1201))
    assert [line["decision"] == "reject" for line in lines] == [True] * 600 + [False] * 600


def test_several_files_and_unique_ids(bundle: Bundle, tmp_path: Path) -> None:
    first = write_dump(tmp_path / "a.jsonl", [GOOD | {"id": "x"}, GOOD, GOOD | {"id": "x"}])
    second = write_dump(tmp_path / "b.jsonl", [GOOD | {"id": "x-2"}, GOOD, GOOD | {"id": "x"}])
    lines = tag_lines([str(second), str(first)], bundle, tmp_path / "o")
    assert [(line["file"], line["n"]) for line in lines] == [
        (str(file), n) for file in (second, first) for n in (1, 2, 3)
    ]
    assert len({line["id"] for line in lines}) == 6
    assert {"x", "x-2", "x-3"} <= {line["id"] for line in lines}


def test_standard_input(go: Go, demo_runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = "".join(json.dumps(row) + "\n" for row in (GOOD, BAD)).encode()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    ran = go("tag", "-", "--bundle", "nb", "--runs-dir", demo_runs, code=0)
    assert [(line["file"], line["n"]) for line in lines_of(ran.out)] == [("-", 1), ("-", 2)]
    assert ran.err.startswith("read 2 = ")


def test_all_rejected_is_exit_1_and_the_output_tells_why(go: Go, demo_runs: Path, tmp_path: Path) -> None:
    file, out = write_dump(tmp_path / "bad.jsonl", [BAD, BAD]), tmp_path / "out.jsonl"
    ran = go("tag", file, "--bundle", "nb", "--runs-dir", demo_runs, code=1)
    assert ran.err.splitlines()[-1] == f"abstag: {file}: all 2 records were rejected"
    assert [line["decision"] for line in lines_of(ran.out)] == ["reject", "reject"]
    ran = go("tag", file, "--bundle", "nb", "--runs-dir", demo_runs, "-o", out, code=1)
    assert out.exists(), "the lines with the reasons are thrown away"
    assert [line["decision"] for line in lines_of(out.read_text())] == ["reject", "reject"]


def test_output_file_equals_standard_output_and_is_not_overwritten(
    go: Go, demo_runs: Path, mixed: Path, tmp_path: Path
) -> None:
    arguments = ("--quiet", "tag", mixed, "--bundle", "nb", "--runs-dir", demo_runs)
    printed, out = go(*arguments, code=0), tmp_path / "new" / "out.jsonl"
    ran = go(*arguments, "-o", out, code=0)
    assert (ran.out, ran.err, printed.err) == ("", "", "")
    assert out.read_text(encoding="utf-8") == printed.out
    again = go(*arguments, "-o", out, code=1)
    assert again.err == f"abstag: {out}: exists already; choose another name, or overwrite it with --force\n"
    go(*arguments, "-o", out, "--force", code=0)
    assert go(*arguments, "-o", "-", code=0).out == printed.out


def test_a_dump_that_breaks_off_is_named_and_the_others_are_tagged(
    go: Go, demo_runs: Path, dump: Path, mixed: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "dumps"
    folder.mkdir()
    packed = gzip.compress(dump.read_bytes() * 3)
    (folder / "a.jsonl").write_bytes(mixed.read_bytes())
    (folder / "b.jsonl.gz").write_bytes(packed[: len(packed) * 9 // 10])
    (folder / "c.jsonl").write_bytes(mixed.read_bytes())
    out = tmp_path / "tags.jsonl"
    ran = go("tag", folder, "--bundle", "nb", "--runs-dir", demo_runs, "-o", out, code=1)
    assert ran.err.splitlines()[-1].startswith("abstag: 1 of 3 files could not be read to the end: ")
    assert "b.jsonl.gz" in ran.err.splitlines()[-1]
    lines, kept = lines_of(out.read_text()), json.loads(summary_path(out).read_text())
    counted = Counter(Path(line["file"]).name for line in lines)
    assert (counted["a.jsonl"], counted["c.jsonl"]) == (15, 15)
    assert 0 < counted["b.jsonl.gz"] < 240
    assert [*kept["failed"]] == [str(folder / "b.jsonl.gz")]
    assert sum(row["read"] for row in kept["files"]) == kept["read"] == len(lines)


def test_nothing_stays_when_nothing_can_be_read(go: Go, demo_runs: Path, tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(b"\0\1" * 500)
    ran = go("tag", tmp_path / "a.bin", "--bundle", "nb", "--runs-dir", demo_runs, "-o", tmp_path / "o.jsonl", code=1)
    assert ran.err.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["a.bin"]


def test_bundle_is_found_by_prefix_run_folder_and_bundle_folder(go: Go, demo_runs: Path, mixed: Path) -> None:
    folder = next(demo_runs.glob("nb-*"))
    names = [("nb", demo_runs), (folder, "elsewhere"), (folder / "bundle", "elsewhere")]
    outputs = {go("tag", mixed, "--bundle", name, "--runs-dir", runs, code=0).out for name, runs in names}
    assert len(outputs) == 1


def test_missing_dump_or_bundle_is_one_line(go: Go, demo_runs: Path, dump: Path, tmp_path: Path) -> None:
    for arguments in (("nowhere.jsonl", "--bundle", "nb"), (dump, "--bundle", "forest")):
        ran = go("tag", *arguments, "--runs-dir", demo_runs, "-o", tmp_path / "o", code=1)
        assert ran.out == ""
        assert ran.err.startswith("abstag: ")
        assert ran.err.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_eval_leaves_training_papers_out_and_counts_them(
    papers: list[dict[str, Any]], bundle: Bundle, tmp_path: Path
) -> None:
    renamed = [paper | {"id": f"mine-{n}"} for n, paper in enumerate(papers[:5])]
    same_id = papers[5] | {"title": "Quite another title", "abstract": papers[6]["abstract"][100:] + GOOD["abstract"]}
    retitled = [
        paper | {"id": f"new-{n}", "title": f"{paper['title']} {n}", "abstract": paper["abstract"][: 300 + n]}
        for n, paper in enumerate(papers[10:40])
    ]
    unread = {"title": "Unread", "abstract": GOOD["abstract"]}
    file = write_dump(tmp_path / "p.jsonl", [*renamed, same_id, *retitled, unread])
    ingest([str(file)], tmp_path / "measured", taxonomy=load_taxonomy())
    found = evaluate_bundle(bundle, load_corpus(tmp_path / "measured"))
    assert (found["scored"], found["left_out"]) == (30, 6)
    assert found["left_out_ids"] == [*(f"mine-{n}" for n in range(5)), "abstag-006"]
    assert found["metrics"]["n"] == 30
    assert [*found] == ["bundle", "corpus", "scored", "left_out", "left_out_ids", "metrics"]
    assert found["bundle"] == bundle.name


def test_eval_without_papers_or_with_other_areas_is_refused(
    corpus: Corpus, bundle: Bundle, dump: Path, tmp_path: Path
) -> None:
    with pytest.raises(DataError, match=r"no paper to score: 80 are labelled, 80 of them trained the bundle"):
        evaluate_bundle(bundle, corpus)
    source = load_taxonomy().source
    areas = [*source["areas"], {"id": "robots"}]
    ingest([str(dump)], tmp_path / "five", taxonomy=parse_taxonomy({**source, "areas": areas}))
    with pytest.raises(DataError, match=r"the bundle tags llm, .*, the corpus has llm, .*, robots"):
        evaluate_bundle(bundle, load_corpus(tmp_path / "five"))


def test_papers_of_the_training_set_are_counted(bundle: Bundle, papers: list[dict[str, Any]], tmp_path: Path) -> None:
    same_title = GOOD | {"title": papers[0]["title"].upper()}
    new = write_dump(tmp_path / "new.jsonl", [GOOD])
    known = write_dump(tmp_path / "known.jsonl", [GOOD, same_title, papers[1], BAD])
    told = "papers were in the training set of"
    assert told not in str(tag_dumps([str(new)], bundle, tmp_path / "o1"))
    assert f"2 {told} {bundle.name}: on new ones it errs more" in str(tag_dumps([str(known)], bundle, tmp_path / "o2"))


@pytest.mark.parametrize("how", ["itself", "folder", "hard link", "symlink"])
def test_output_never_replaces_a_dump(how: str, bundle: Bundle, dump: Path, tmp_path: Path) -> None:
    source = tmp_path / "dumps" / "a.jsonl"
    source.parent.mkdir()
    source.write_bytes(dump.read_bytes())
    out = source if how in {"itself", "folder"} else tmp_path / "out.jsonl"
    if how == "hard link":
        out.hardlink_to(source)
    if how == "symlink":
        out.symlink_to(source)
    with pytest.raises(ArtifactError, match="is one of the dumps to be tagged; choose another name"):
        tag_dumps([str(source.parent if how == "folder" else source)], bundle, out, force=True)
    assert source.read_bytes() == out.read_bytes() == dump.read_bytes()
