"""A tagging job: interrupted anywhere it goes on and gives the same bytes; what is asked for is told."""

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from abstag.bundle import Bundle
from abstag.errors import ArtifactError, ConfigError, DataError
from abstag.tagger import Choice, Tagger, job, lines, summary_path, tag_dumps
from abstag.tagger.lines import Scored
from tests.conftest import Go, write_dump
from tests.test_tagger import BAD, GOOD, IDS, PLAIN, decided, lines_of

SCIENCES = Path(__file__).parent / "dumps" / "other_sciences.jsonl"


class Stop(Exception):  # noqa: N818
    """Stands for the death of a process."""


@pytest.fixture
def many(tmp_path: Path, papers: list[dict[str, Any]]) -> Path:
    """A dump of 400 papers and rejects, ids repeated."""
    return write_dump(tmp_path / "many.jsonl", [*papers, BAD, *papers, *papers, BAD, *papers, *papers[:78]])


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job, "_BATCH", 32)


@pytest.mark.parametrize("suffix", ["jsonl", "csv", "parquet", "md"])
@pytest.mark.parametrize("after", [0, 1, 5, 12])
def test_an_interrupted_job_goes_on_and_gives_the_same_bytes(
    suffix: str, after: int, many: Path, bundle: Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, out = tmp_path / f"whole.{suffix}", tmp_path / f"out.{suffix}"
    tag_dumps([str(many)], bundle, whole)
    scored: list[int] = []

    def score(*arguments: Any, **options: Any) -> Any:
        if len(scored) == after:
            raise Stop
        scored.append(1)
        return real(*arguments, **options)

    real = lines.score
    monkeypatch.setattr(job, "score", score)
    with pytest.raises(Stop):
        tag_dumps([str(many)], bundle, out)
    assert not out.exists()
    assert (tmp_path / f"out.{suffix}.parts").exists() == (after > 0)
    scored.clear()
    after = 10**6
    tag_dumps([str(many)], bundle, out)
    assert out.read_bytes() == whole.read_bytes()
    assert not (tmp_path / f"out.{suffix}.parts").exists()


def test_parts_are_not_scored_again(
    many: Path, bundle: Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(Stop):
        interrupted(many, bundle, tmp_path / "out.jsonl", monkeypatch, after=9)
    seen: list[int] = []

    def score(items: Sequence[Any], *rest: Any, **more: Any) -> list[Scored]:
        seen.append(len(items))
        return lines.score(items, *rest, **more)

    monkeypatch.setattr(job, "score", score)
    tag_dumps([str(many)], bundle, tmp_path / "out.jsonl")
    assert sum(seen) == 400 - 9 * 32


def interrupted(many: Path, bundle: Bundle, out: Path, monkeypatch: pytest.MonkeyPatch, *, after: int) -> None:
    """Tag until so many batches are scored."""
    with monkeypatch.context() as patch:
        left, real = iter(range(after)), lines.score

        def score(*arguments: Any, **options: Any) -> Any:
            if next(left, None) is None:
                raise Stop
            return real(*arguments, **options)

        patch.setattr(job, "score", score)
        tag_dumps([str(many)], bundle, out)


def test_a_job_of_other_dumps_or_another_tagger_is_refused_unless_restarted(
    many: Path, bundle: Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out.jsonl"
    with pytest.raises(Stop):
        interrupted(many, bundle, out, monkeypatch, after=3)
    many.write_text(many.read_text() + json.dumps(GOOD) + "\n")
    with pytest.raises(ArtifactError, match=r"out.jsonl.parts: holds an unfinished run with other dumps; .*--restart"):
        tag_dumps([str(many)], bundle, out)
    assert len(list((tmp_path / "out.jsonl.parts").glob("part-*"))) == 3
    tag_dumps([str(many)], bundle, out, restart=True)
    assert len(lines_of(out.read_text())) == 401
    with pytest.raises(Stop):
        interrupted(many, bundle, tmp_path / "o2", monkeypatch, after=3)
    other = Bundle(bundle.name, bundle.scorer, bundle.decision, bundle.taxonomy, bundle.training_keys, digest="other")
    with pytest.raises(ArtifactError, match="an unfinished run with other bundle"):
        tag_dumps([str(many)], other, tmp_path / "o2")


def test_only_one_process_writes_an_output(many: Path, bundle: Bundle, tmp_path: Path) -> None:
    from filelock import FileLock

    folder = tmp_path / "out.jsonl.parts"
    folder.mkdir()
    with FileLock(folder / "lock"), pytest.raises(ArtifactError, match="another process is writing it"):
        tag_dumps([str(many)], bundle, tmp_path / "out.jsonl")


def test_a_strange_folder_of_parts_is_left_alone(many: Path, bundle: Bundle, tmp_path: Path) -> None:
    folder = tmp_path / "out.jsonl.parts"
    folder.mkdir()
    (folder / "diary.txt").write_text("mine")
    with pytest.raises(ArtifactError, match=r"holds diary.txt, which is not abstag's"):
        tag_dumps([str(many)], bundle, tmp_path / "out.jsonl", restart=True)
    assert (folder / "diary.txt").read_text() == "mine"


def test_death_between_the_output_and_the_end_is_mended(
    many: Path, bundle: Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out.jsonl"

    def die(*_: object, **__: object) -> None:
        raise Stop

    with monkeypatch.context() as patch:
        patch.setattr("abstag.tagger.parts.shutil.rmtree", die)
        with pytest.raises(Stop):
            tag_dumps([str(many)], bundle, out)
    before = out.read_bytes()
    tag_dumps([str(many)], bundle, out)
    assert out.read_bytes() == before
    assert summary_path(out).exists()
    assert not (tmp_path / "out.jsonl.parts").exists()


def test_an_output_that_came_meanwhile_is_not_overwritten(
    many: Path, bundle: Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out.jsonl"
    with pytest.raises(Stop):
        interrupted(many, bundle, out, monkeypatch, after=3)
    out.write_text("mine")
    with pytest.raises(ArtifactError, match="exists already"):
        tag_dumps([str(many)], bundle, out)
    with pytest.raises(ArtifactError, match="exists already"):
        tag_dumps([str(many)], bundle, out, restart=True)
    assert out.read_text() == "mine"
    assert list((tmp_path / "out.jsonl.parts").glob("part-*")), "the parts of a long job are gone"
    tag_dumps([str(many)], bundle, out, force=True)
    assert len(lines_of(out.read_text())) == 400


def test_a_summary_that_is_there_is_not_overwritten(many: Path, bundle: Bundle, tmp_path: Path) -> None:
    summary_path(tmp_path / "out.jsonl").write_text("mine")
    with pytest.raises(ArtifactError, match=r"out.jsonl.summary.json: exists already"):
        tag_dumps([str(many)], bundle, tmp_path / "out.jsonl")
    assert summary_path(tmp_path / "out.jsonl").read_text() == "mine"
    assert not (tmp_path / "out.jsonl").exists()


def test_dumps_in_another_order_are_other_dumps(
    many: Path, dump: Path, bundle: Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out.jsonl"
    with monkeypatch.context() as patch, contextlib.suppress(Stop):
        left, real = iter(range(3)), lines.score

        def score(*arguments: Any, **options: Any) -> Any:
            if next(left, None) is None:
                raise Stop
            return real(*arguments, **options)

        patch.setattr(job, "score", score)
        tag_dumps([str(many), str(dump)], bundle, out)
    with pytest.raises(ArtifactError, match="an unfinished run with other dumps"):
        tag_dumps([str(dump), str(many)], bundle, out)


def test_a_folder_that_holds_the_output_goes_on(
    many: Path, bundle: Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "dumps"
    folder.mkdir()
    many.rename(folder / "many.jsonl")
    out = folder / "tags.jsonl"
    with pytest.raises(Stop):
        interrupted(folder, bundle, out, monkeypatch, after=3)
    assert tag_dumps([str(folder)], bundle, out).read == 400


@pytest.mark.parametrize("damage", ["", '{"id": 1', "[]\n"])
def test_a_damaged_part_is_named_and_loses_nothing(
    damage: str, many: Path, bundle: Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out.jsonl"
    with pytest.raises(Stop):
        interrupted(many, bundle, out, monkeypatch, after=3)
    first = min((tmp_path / "out.jsonl.parts").glob("part-*"))
    first.write_text(damage)
    with pytest.raises(ArtifactError, match=f"{first.name}: .*; start anew with --restart"):
        tag_dumps([str(many)], bundle, out)
    (tmp_path / "out.jsonl.parts" / "job.json").write_text("")
    with pytest.raises(ArtifactError, match=r"job.json: .*; start anew with --restart"):
        tag_dumps([str(many)], bundle, out)
    assert tag_dumps([str(many)], bundle, out, restart=True).read == 400


def test_what_can_be_read_but_once_is_kept_whole(many: Path, bundle: Bundle, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(DataError, match=r"pipe: can be read but once, and .md takes it twice"):
        tag_dumps([str(pipe)], bundle, tmp_path / "out.md")
    writer = threading.Thread(target=lambda: pipe.write_bytes(many.read_bytes()))
    writer.start()
    summary = tag_dumps([str(pipe)], bundle, tmp_path / "out.jsonl")
    writer.join()
    assert summary.read == len(lines_of((tmp_path / "out.jsonl").read_text())) == 400


def test_a_dump_that_changes_while_it_is_tagged_is_refused(
    many: Path, bundle: Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = lines.Rule.fitted

    def fitted(*arguments: Any) -> Any:
        many.write_text("\n".join(many.read_text().splitlines()[:50]))
        return real(*arguments)

    monkeypatch.setattr(lines.Rule, "fitted", fitted)
    with pytest.raises(DataError, match="was changed while it was tagged"):
        tag_dumps([str(many)], bundle, tmp_path / "out.md")
    assert not (tmp_path / "out.md").exists()


def test_a_dump_named_twice_is_tagged_once(dump: Path, bundle: Bundle, tmp_path: Path) -> None:
    (tmp_path / "link.jsonl").symlink_to(dump)
    assert tag_dumps([str(dump), str(tmp_path / "link.jsonl")], bundle, tmp_path / "o").read == 80
    with pytest.raises(ArtifactError, match="is no name of a file"):
        tag_dumps([str(dump)], bundle, Path())


@pytest.mark.slow
def test_killed_at_any_moment_it_continues_to_the_same_bytes(
    go: Go, demo_runs: Path, papers: list[dict[str, Any]], tmp_path: Path
) -> None:
    dump = write_dump(tmp_path / "dump.jsonl", [*papers, BAD] * 40)
    words = ["tag", str(dump), "--bundle", "nb", "--runs-dir", str(demo_runs), "-o"]
    go(*words, tmp_path / "whole.jsonl", code=0)
    command = [sys.executable, "-m", "abstag", *words, str(tmp_path / "out.jsonl")]
    begun = time.perf_counter()
    subprocess.run([*command[:-1], str(tmp_path / "timed.jsonl")], check=True, capture_output=True)
    whole, moments, kills = time.perf_counter() - begun, random.Random(0), 0
    for _ in range(20):
        process = subprocess.Popen(command, stderr=subprocess.PIPE)
        try:
            _, error = process.communicate(timeout=moments.uniform(0.2, 1.0) * whole)
            assert process.returncode in {0, 1}, error
        except subprocess.TimeoutExpired:
            os.kill(process.pid, signal.SIGKILL)
            process.communicate()
            kills += 1
            continue
        for made in (tmp_path / "out.jsonl", summary_path(tmp_path / "out.jsonl")):
            made.unlink(missing_ok=True)  # it came to the end, or a killed one had: anew
    assert kills >= 5
    subprocess.run([*command, "--force"], check=True, capture_output=True)
    assert (tmp_path / "out.jsonl").read_bytes() == (tmp_path / "whole.jsonl").read_bytes()


def test_worker_processes_give_the_same_bytes(many: Path, bundle: Bundle, tmp_path: Path) -> None:
    tag_dumps([str(many)], bundle, tmp_path / "one.jsonl")
    tag_dumps([str(many)], bundle, tmp_path / "two.jsonl", threads=2)
    assert (tmp_path / "one.jsonl").read_bytes() == (tmp_path / "two.jsonl").read_bytes()
    one, two = (summary_path(tmp_path / name).read_bytes() for name in ("one.jsonl", "two.jsonl"))
    assert one == two


def test_areas_are_chosen(many: Path, bundle: Bundle, tmp_path: Path) -> None:
    tag_dumps([str(many)], decided(bundle), tmp_path / "o", choice=Choice(("graphs",), adjust=False))
    lines = [line for line in lines_of((tmp_path / "o").read_text()) if line["scores"]]
    assert {tuple(line["scores"]) for line in lines} == {("graphs",)}
    assert {area for line in lines for area in line["areas"] + line["uncertain"]} == {"graphs"}
    with pytest.raises(DataError, match="unknown area 'robots'"):
        tag_dumps([str(many)], bundle, tmp_path / "p", choice=Choice(("robots",)))


def test_tags_below_the_least_precision_are_left_to_review(many: Path, bundle: Bundle, tmp_path: Path) -> None:
    bold = decided(bundle, review=0.0)
    tag_dumps([str(many)], bold, tmp_path / "o1", choice=PLAIN)
    tag_dumps([str(many)], bold, tmp_path / "o2", choice=Choice(min_precision=0.9, adjust=False))
    loose, strict = (lines_of((tmp_path / name).read_text()) for name in ("o1", "o2"))
    found: list[float] = []
    for area in IDS:
        sure = [line["scores"][area] for line in strict if area in line["areas"]]
        left = [line["scores"][area] for line in strict if area in line["uncertain"]]
        assert len(sure) + len(left) == sum(area in line["areas"] for line in loose)
        found += left
        assert np.mean(sure) >= 0.9 - 1e-4
        if left:
            more = [*sure, *(score for score in left if score == max(left))]
            assert np.mean(more) < 0.9 + 1e-4
    assert found
    with pytest.raises(ConfigError, match=r"min_precision: 1\.5 is out of range"):
        Choice(min_precision=1.5)


def test_papers_are_reviewed_until_the_others_are_as_right_as_asked(many: Path, bundle: Bundle, tmp_path: Path) -> None:
    """The probability that all tags of a paper are right; its doubtful areas are the fewest that must be left out."""
    tag_dumps([str(many)], bundle, tmp_path / "o")
    lines = [line for line in lines_of((tmp_path / "o").read_text()) if line["scores"]]
    rows = np.array([[line["scores"][area] for area in IDS] for line in lines])
    right = np.where(rows >= bundle.decision.thresholds, rows, 1 - rows)
    reviewed = np.array([line["decision"] == "review" for line in lines])
    sure = right.prod(axis=1)
    assert 0 < reviewed.sum() < len(lines)
    assert sure[reviewed].max() <= sure[~reviewed].min() + 1e-3
    assert sure[~reviewed].mean() >= 0.95 - 1e-3
    assert np.sort(np.append(sure[~reviewed], sure[reviewed].max())).mean() < 0.95 + 1e-3
    for line, cells in zip(lines, right, strict=True):
        doubtful = np.isin(IDS, line["uncertain"])
        if doubtful.any():
            assert cells[doubtful].max() <= cells[~doubtful].min(initial=1.0) + 1e-3
            assert cells[~doubtful].prod() * cells[doubtful].max() < sure[~reviewed].min() + 1e-3
    assert json.loads(summary_path(tmp_path / "o").read_text())["right"] == 0.95


def test_a_dump_of_one_doubtful_paper_leaves_what_is_sure(many: Path, bundle: Bundle, tmp_path: Path) -> None:
    tag_dumps([str(many)], bundle, tmp_path / "o")
    reviewed = next(line["n"] for line in lines_of((tmp_path / "o").read_text()) if line["decision"] == "review")
    paper = json.loads(many.read_text().splitlines()[reviewed - 1])
    tag_dumps([str(write_dump(tmp_path / "one.jsonl", [paper]))], bundle, tmp_path / "one")
    (line,) = lines_of((tmp_path / "one").read_text())
    assert line["decision"] == "review"
    assert 0 < len(line["uncertain"]) < len(IDS)


def test_areas_that_are_not_told_bring_no_paper_to_review(many: Path, bundle: Bundle, tmp_path: Path) -> None:
    tag_dumps([str(many)], bundle, tmp_path / "o")
    tag_dumps([str(many)], bundle, tmp_path / "one", choice=Choice(("graphs",)))
    every, one = (lines_of((tmp_path / name).read_text()) for name in ("o", "one"))
    assert sum(line["decision"] == "review" for line in one) < sum(line["decision"] == "review" for line in every)
    assert {area for line in one for area in line["uncertain"]} <= {"graphs"}


def test_terms_that_decided_are_told(many: Path, bundle: Bundle, tmp_path: Path) -> None:
    tag_dumps([str(many)], bundle, tmp_path / "o", choice=Choice(explain=True))
    line = lines_of((tmp_path / "o").read_text())[0]
    assert [*line["terms"]] == list(IDS)
    assert all(isinstance(term, str) and share for terms in line["terms"].values() for term, share in terms)


def test_prevalence_is_estimated_shown_and_switched_off(
    go: Go, demo_runs: Path, papers: list[dict[str, Any]], tmp_path: Path
) -> None:
    """Of a dump without graphs the graphs' prevalence falls, and with it every probability of the area."""
    without = write_dump(tmp_path / "d.jsonl", [paper for paper in papers if "graphs" not in paper["areas"]] * 5)
    words = ("tag", without, "--bundle", "nb", "--runs-dir", demo_runs, "-o")
    told = go(*words, tmp_path / "a", code=0).err
    assert "estimated prevalence (of training papers): llm " in told
    assert "prevalence" not in go(*words, tmp_path / "b", "--no-adjust", code=0).err
    adjusted, plain = (lines_of((tmp_path / name).read_text()) for name in "ab")
    shares = json.loads(summary_path(tmp_path / "a").read_text())["prevalence"]["graphs"]
    assert shares["found"] < shares["trained"] / 1.5
    assert json.loads(summary_path(tmp_path / "b").read_text())["prevalence"] == {}
    scores = np.array([[line["scores"]["graphs"] for line in lines] for lines in (adjusted, plain)])
    assert (scores[0] <= scores[1]).all()
    assert scores[0].mean() < scores[1].mean()


def test_a_dump_of_other_sciences_is_told_and_its_papers_are_for_review(
    go: Go, demo_runs: Path, tmp_path: Path
) -> None:
    ran = go("tag", SCIENCES, "--bundle", "nb", "--runs-dir", demo_runs, "-o", tmp_path / "o", code=0)
    assert "These papers are unlike the training papers: " in ran.err
    lines = lines_of((tmp_path / "o").read_text())
    far = [line for line in lines if "unlike the training papers" in (line["reason"] or "")]
    assert all(line["decision"] == "review" and line["areas"] == [] for line in far)
    assert len(far) >= 10  # of 32: 80 papers teach few words, so that far off is very far
    assert json.loads(summary_path(tmp_path / "o").read_text())["shift"]["verdict"] == "unlike"


class TestTagger:
    def test_texts(self, bundle: Bundle) -> None:
        tagger = Tagger(bundle)
        texts: list[str | tuple[str | None, str]] = [
            GOOD["abstract"],
            (GOOD["title"], GOOD["abstract"]),
            "Too short.",
        ]
        scores = tagger.scores(texts)
        assert scores.shape == (3, len(IDS))
        assert np.isnan(scores[2]).all()
        assert ((scores[:2] >= 0) & (scores[:2] <= 1)).all()
        lines = tagger.tag(texts)
        assert [line["decision"] == "reject" for line in lines] == [False, False, True]
        assert [*lines[0]["scores"].values()] == pytest.approx(scores[0], abs=5e-5)
        assert tagger.scores([]).shape == (0, len(IDS))
        assert tagger.tag([]) == []

    def test_stream_is_that_of_the_verb_and_lazy(
        self, bundle: Bundle, papers: list[dict[str, Any]], many: Path, tmp_path: Path
    ) -> None:
        tag_dumps([str(many)], bundle, tmp_path / "o", choice=PLAIN)
        records = [
            {"id": p["id"], "title": p["title"], "abstract": p["abstract"]}
            for p in lines_of(many.read_text())
            if "id" in p
        ]
        expected = [line["scores"] for line in lines_of((tmp_path / "o").read_text()) if line["scores"]]
        assert [line["scores"] for line in Tagger(bundle).tag_stream(records)] == expected
        endless = ({"abstract": GOOD["abstract"]} for _ in iter(int, 1))
        assert next(Tagger(bundle).tag_stream(endless))["n"] == 1

    def test_stream_that_would_have_to_look_ahead_is_refused(self, bundle: Bundle) -> None:
        with pytest.raises(ConfigError, match="a stream has no end to look at"):
            Tagger(bundle).tag_stream([], Choice())

    def test_threads_may_share_it(self, bundle: Bundle, papers: list[dict[str, Any]]) -> None:
        from concurrent.futures import ThreadPoolExecutor

        tagger, texts = Tagger(bundle), [paper["abstract"] for paper in papers]
        expected = tagger.scores(texts)
        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(lambda _: tagger.scores(texts), range(8)))
        assert all(np.array_equal(expected, scores) for scores in found)
