"""Review round-trips: out goes what is worth a look, back comes what the reviewer wrote, or it is refused."""

import codecs
import csv
import json
from collections.abc import Callable, Mapping
from datetime import date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import openpyxl
import pyarrow.parquet as pq
import pytest

from abstag.bundle import Bundle
from abstag.cleaning import clean
from abstag.decision import Decision
from abstag.errors import ArtifactError, DataError
from abstag.labels import LabelTable
from abstag.readers import open_dump
from abstag.records import title_key
from abstag.review import DIFFER, DRIFT, RANDOM, REST, SHEET, UNSURE, check_of
from abstag.review.answers import COLUMNS, Imported, import_sheet
from abstag.review.export import decision_of, export_sheet
from abstag.sheets import protected, read_sheet, unprotected, write_sheet
from abstag.tagger import Choice, Tagger, tag_dumps
from abstag.taxonomy import load_taxonomy, parse_taxonomy
from tests.conftest import SHORT, Go, write_dump

TAXONOMY = load_taxonomy()
IDS = TAXONOMY.ids
TODAY = date(2026, 11, 30)
Row = dict[str, str]
Write = Callable[[Path, list[Row]], Path]


@pytest.fixture(scope="session")
def tags(dump: Path, bundle: Bundle, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The 80 papers, tagged by naive Bayes, with a review line that leaves some sure and some doubtful."""
    decision = Decision(bundle.decision.slope, bundle.decision.offset, np.full(4, 0.5), 0.9)
    out = tmp_path_factory.mktemp("tags") / "nb.jsonl"
    tagger = Bundle("x", bundle.scorer, decision, bundle.taxonomy, bundle.training_keys)
    tag_dumps([str(dump)], tagger, out, choice=Choice(adjust=False))
    return out


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def changed(tags: Path, out: Path, changes: Mapping[int, Mapping[str, Any]]) -> Path:
    return write_dump(out, [{**line, **changes.get(number, {})} for number, line in enumerate(lines_of(tags))])


def rows_of(path: Path) -> list[Row]:
    header, *rows = read_sheet(path)
    assert tuple(header) == SHEET
    return [dict(zip(header, row, strict=True)) for row in rows]


def as_csv(path: Path, rows: list[Row]) -> Path:
    write_sheet(path.with_suffix(".csv"), [SHEET, *([row[name] for name in SHEET] for row in rows)], (), force=True)
    return path.with_suffix(".csv")


def as_xlsx(path: Path, rows: list[Row]) -> Path:
    """Fill in as a person does in a spreadsheet: cells of an exported file are changed in place."""
    file = path.with_suffix(".xlsx")
    write_sheet(file, [SHEET, *([row[name] for name in SHEET] for row in rows)], [9] * len(SHEET), force=True)
    return file


@pytest.fixture
def exported(dump: Path, tags: Path, tmp_path: Path) -> list[Row]:
    export_sheet([str(dump)], [str(tags)], tmp_path / "sheet.csv", taxonomy=TAXONOMY, top=20)
    return rows_of(tmp_path / "sheet.csv")


def take(path: Path, out: Path, *, by: str | None = "Ann", on: str | None = "2026-11-02") -> Imported:
    return import_sheet(path, out, taxonomy=TAXONOMY, by=by, on=on, today=TODAY)


def labels_of(path: Path) -> list[Row]:
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def filled(rows: list[Row], *answers: Mapping[str, str]) -> list[Row]:
    """Return the rows, the first ones with these cells filled in."""
    return [row | dict(answers[n]) if n < len(answers) else row for n, row in enumerate(rows)]


class TestExport:
    def test_nothing_is_filled_in_and_the_text_is_that_of_the_dump(
        self, exported: list[Row], papers: list[dict[str, Any]]
    ) -> None:
        by_id = {paper["id"]: paper for paper in papers}
        assert len(exported) == 20
        for row in exported:
            assert not any(row[name] for name in ("areas", "none", "sure", "reviewer", "date", "comment"))
            paper = by_id[row["id"]]
            assert (row["title"], row["abstract"]) == (clean(paper["title"]), clean(paper["abstract"]))
            assert row["key"] == title_key(paper["title"])
            assert set(row["why"].split("; ")) <= {RANDOM, UNSURE}

    def test_the_least_sure_come_first_and_a_tenth_is_random(
        self, exported: list[Row], dump: Path, bundle: Bundle
    ) -> None:
        lines = list(Tagger(bundle).tag_stream(open_dump(str(dump)).items))
        sure = [min(abs(2 * score - 1) for score in line["scores"].values()) for line in lines]
        least = dict(zip((line["id"] for line in lines), sure, strict=True))
        random = [RANDOM in row["why"].split("; ") for row in exported]
        assert random.count(True) == 2
        chosen = [row["id"] for row, drawn in zip(exported, random, strict=True) if not drawn]
        assert set(chosen) <= set(sorted(least, key=least.__getitem__)[:20])
        assert chosen == sorted(chosen, key=least.__getitem__)
        assert np.flatnonzero(random).tolist() == [5, 15], "random papers stand together, or at an end"

    def test_decision_is_found_from_what_a_tagger_was_sure_of(self) -> None:
        rng = np.random.default_rng(0)
        truth = Decision(np.ones(3), np.zeros(3), np.array([0.15, 0.5, 0.8]), 0.3)
        scores = rng.random((400, 3))
        sure, tagged = truth.confidence(scores) >= truth.review, truth.tags(scores)
        found = decision_of(scores, tagged & sure, ~tagged & sure)
        assert found.thresholds == pytest.approx(truth.thresholds, abs=0.02)
        assert (found.tags(scores) == tagged)[sure].all()
        assert np.abs(found.confidence(scores) - truth.confidence(scores)).max() < 0.03
        none = np.zeros_like(sure)
        assert decision_of(scores, none, none).thresholds == pytest.approx([0.5] * 3)
        assert decision_of(scores, none, scores < 0.7).thresholds.min() > 0.65

    def test_taggers_that_differ_and_papers_unlike_training_go_before(
        self, dump: Path, tags: Path, tmp_path: Path
    ) -> None:
        lines = lines_of(tags)
        sure = [n for n, line in enumerate(lines) if not line["uncertain"]]
        sides = [{area: high if area == "graphs" else 0.0 for area in IDS} for high in (0.9, 1.0, 0.95)]
        others = [n for n in sure if not lines[n]["areas"]][:3]
        other = changed(
            tags,
            tmp_path / "other.jsonl",
            {n: {"areas": ["graphs"], "uncertain": [], "scores": side} for n, side in zip(others, sides, strict=True)},
        )
        drifting = changed(tags, tmp_path / "nb.jsonl", {sure[-1]: {"reason": "unlike the training papers"}})
        out = tmp_path / "sheet.xlsx"
        exported = export_sheet([str(dump)], [str(drifting), str(other)], out, taxonomy=TAXONOMY, top=10)
        rows = rows_of(out)
        assert exported.papers == len(rows) == 10
        assert exported.among == 80
        whys = {row["id"]: row["why"] for row in rows}
        assert DRIFT in whys[lines[sure[-1]]["id"]]
        differing, wanted = [row for row in rows if DIFFER in row["why"]], ("1.00", "0.95", "0.90")
        assert len(differing) == exported.reasons[DIFFER] == 3
        assert all(DIFFER in row["why"] or RANDOM in row["why"] for row in rows[:1])
        apart = [row["scores"].splitlines()[1] for row in differing if RANDOM not in row["why"]]
        assert apart == [f"other: llm 0.00; graphs {high}; diffusion 0.00; optimization 0.00" for high in wanted]

    def test_suggestion_says_what_is_doubtful(self, exported: list[Row], tags: Path) -> None:
        lines = {line["id"]: line for line in lines_of(tags)}
        for row in exported:
            line = lines[row["id"]]
            named = row["suggested"].split(";")
            assert {area for area in named if area in IDS} == set(line["areas"])
            assert {area[:-1] for area in named if area.endswith("?")} <= {*line["uncertain"], "none"}
        assert any(row["suggested"].endswith("?") for row in exported)

    def test_a_seed_gives_the_same_sheet_and_another_seed_other_random_papers(
        self, dump: Path, tags: Path, tmp_path: Path
    ) -> None:
        outs = [tmp_path / f"{n}.csv" for n in range(3)]
        for out, seed in zip(outs, (0, 0, 1), strict=True):
            export_sheet([str(dump)], [str(tags)], out, taxonomy=TAXONOMY, top=20, seed=seed)
        assert outs[0].read_bytes() == outs[1].read_bytes() != outs[2].read_bytes()
        assert outs[0].read_bytes().startswith(codecs.BOM_UTF8)

    def test_labelled_papers_and_second_copies_stay_out(
        self, dump: Path, tags: Path, papers: list[dict[str, Any]], bundle: Bundle, tmp_path: Path
    ) -> None:
        labels = tmp_path / "labels.csv"
        keys = [title_key(paper["title"]) for paper in papers[:30]]
        sources = ["read", "review", "declared"] * 10
        lines = [f"{key},llm,{source}" for key, source in zip(keys, sources, strict=True)]
        labels.write_text("\n".join(["key,areas,source", *lines]) + "\n", encoding="utf-8")
        copies = write_dump(tmp_path / "copies.jsonl", [paper | {"id": f"c-{paper['id']}"} for paper in papers])
        both = tmp_path / "both.jsonl"
        tag_dumps([str(dump), str(copies)], bundle, both)
        out = tmp_path / "sheet.csv"
        exported = export_sheet(
            [str(copies), str(dump)], [str(both)], out, taxonomy=TAXONOMY, top=500, labels=[str(labels)]
        )
        rows = rows_of(out)
        assert exported.papers == exported.among == len(rows) == 80 - 20
        assert len({row["key"] for row in rows}) == 60
        assert not {row["key"] for row in rows} & {k for k, s in zip(keys, sources, strict=True) if s != "declared"}
        assert exported.reasons[REST] == 6
        assert not exported.reasons[RANDOM]

    def test_papers_are_found_under_another_path_and_id(self, dump: Path, tags: Path, tmp_path: Path) -> None:
        moved = tmp_path / "moved.jsonl"
        moved.write_bytes(dump.read_bytes())
        export_sheet([str(moved)], [str(tags)], tmp_path / "a.csv", taxonomy=TAXONOMY)
        renamed = changed(tags, tmp_path / "renamed.jsonl", {n: {"id": f"other-{n}"} for n in range(80)})
        export_sheet([str(dump)], [str(renamed)], tmp_path / "b.csv", taxonomy=TAXONOMY)
        assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()

    def test_what_does_not_belong_together_is_refused(self, dump: Path, tags: Path, tmp_path: Path) -> None:
        out = tmp_path / "sheet.csv"
        short, few = tmp_path / "short.jsonl", tmp_path / "few.jsonl"
        short.write_text("".join(dump.read_text(encoding="utf-8").splitlines(keepends=True)[:77]), encoding="utf-8")
        few.write_text("".join(tags.read_text(encoding="utf-8").splitlines(keepends=True)[:70]), encoding="utf-8")
        twice = tmp_path / "twice.jsonl"
        twice.write_text(tags.read_text(encoding="utf-8") * 2, encoding="utf-8")
        source = TAXONOMY.source
        five = parse_taxonomy({**source, "areas": [*source["areas"], {"id": "robots"}]})

        def refusal(paths: Path, *given: Path, **options: Any) -> str:
            options = {"taxonomy": TAXONOMY} | options
            with pytest.raises((DataError, ArtifactError)) as caught:
                export_sheet([str(paths)], [str(name) for name in given], out, **options)
            assert not out.exists()
            return str(caught.value)

        assert "3 of 80 tagged papers are not in the dumps" in refusal(short, tags)
        assert "few.jsonl: lacks 10 of the 80 papers of the first tags" in refusal(dump, tags, few)
        assert "twice.jsonl:81: the id 'abstag-001' stands twice" in refusal(dump, twice)
        assert "the taxonomy has llm, graphs, diffusion, optimization, robots" in refusal(dump, tags, taxonomy=five)
        assert f"{dump}:1: is no line of `abstag tag`" in refusal(dump, dump)
        assert "0 papers are none" in refusal(dump, tags, top=0)
        assert "cannot read the tags" in refusal(dump, tmp_path / "nowhere.jsonl")

    def test_output_is_never_an_input_and_not_overwritten_unasked(self, dump: Path, tags: Path, tmp_path: Path) -> None:
        out = tmp_path / "sheet.csv"
        out.write_bytes(tags.read_bytes())
        with pytest.raises(ArtifactError, match="is one of the inputs"):
            export_sheet([str(dump)], [str(out)], out, taxonomy=TAXONOMY, force=True)
        with pytest.raises(ArtifactError, match="exists already"):
            export_sheet([str(dump)], [str(tags)], out, taxonomy=TAXONOMY)
        with pytest.raises(DataError, match="only CSV and XLSX are written; name it"):
            export_sheet([str(dump)], [str(tags)], tmp_path / "sheet.ods", taxonomy=TAXONOMY)


class TestImport:
    def test_untouched_rows_are_no_label_and_counts_add_up(self, exported: list[Row], tmp_path: Path) -> None:
        rows = filled(exported, {"areas": "llm"}, {"none": "x", "sure": "no"}, {"areas": "lmm"}, {"comment": "later"})
        found = take(as_csv(tmp_path / "filled", rows), tmp_path / "labels.csv")
        assert str(found).splitlines()[:2] == [
            "rows 20 = 2 imported + 17 untouched + 1 refused",
            "imported: 2 new, 0 replaced, 0 as they were",
        ]
        first, second = labels_of(tmp_path / "labels.csv")
        assert tuple(first) == COLUMNS
        keys = {"source": "review", "masked": "", "judged": ";".join(IDS), "part": "", "id": ""}
        assert first == first | keys | {"areas": "llm", "sure": "1", "reviewer": "Ann", "date": "2026-11-02"}
        assert second == second | keys | {"areas": "", "sure": "0", "key": exported[1]["key"]}

    def test_a_sheet_without_answers_makes_no_file(self, exported: list[Row], tmp_path: Path) -> None:
        with pytest.raises(DataError, match="no row is filled in; write areas, or tick none"):
            take(as_csv(tmp_path / "filled", exported), tmp_path / "labels.csv")
        found = take(as_csv(tmp_path / "filled", filled(exported, {"areas": "lmm"})), tmp_path / "labels.csv")
        assert len(found.refused) == 1
        assert not (tmp_path / "labels.csv").exists()

    @pytest.mark.parametrize(
        ("cells", "what"),
        [
            ({"areas": "graphs;lmm"}, "unknown area 'lmm'; did you mean 'llm'?"),
            ({"areas": "llm?"}, "unknown area 'llm?'; did you mean 'llm'?"),
            ({"areas": "llm", "none": "x"}, "areas are given, and none is ticked; empty one of the two"),
            ({"areas": "none;llm"}, "unknown area 'none'"),
            ({"none": "perhaps"}, "none is 'perhaps'; write 1 or 0, or leave it empty"),
            ({"areas": "llm", "sure": "50 %"}, "sure is '50 %'; write 1 or 0, or leave it empty"),
            ({"sure": "x"}, "sure is filled in, but no answer; write areas, or tick none"),
            ({"areas": "llm", "id": "abstag-999"}, "id, key, title, suggested, why or check are not those"),
            ({"areas": "llm", "key": "1.2E+15"}, "id, key, title, suggested, why or check are not those"),
            ({"areas": "llm", "title": "Another"}, "id, key, title, suggested, why or check are not those"),
            ({"suggested": "llm;graphs"}, "and answer in the column areas"),
            ({"areas": "llm", "check": ""}, "id, key, title, suggested, why or check are not those"),
            ({"areas": "llm", "date": "05/11/2026"}, "the date '05/11/2026' may be of two months; write it as"),
            ({"areas": "llm", "date": "last week"}, "cannot read the date 'last week'; write it as YYYY-MM-DD"),
            ({"areas": "llm", "date": "2026-02-30"}, "there is no day '2026-02-30'"),
            ({"areas": "llm", "date": "30/11/26"}, "cannot read the date '30/11/26'"),
            ({"areas": "llm", "date": "2062-11-30"}, "the date '2062-11-30' is to come; check it"),
        ],
    )
    def test_nonsense_is_refused_by_row_and_good_rows_are_kept(
        self, cells: Row, what: str, exported: list[Row], tmp_path: Path
    ) -> None:
        for write in (as_csv, as_xlsx):
            file = write(tmp_path / "filled", filled(exported, {"areas": "graphs"}, {}, cells))
            found = take(file, tmp_path / f"{file.suffix}.csv")
            (refusal,) = found.refused
            assert str(refusal).startswith(f"{file}: row 4: ")
            assert what in str(refusal)
            assert refusal.remedy
            assert (sum(found.imported.values()), found.untouched) == (1, 18)
            assert [row["areas"] for row in labels_of(tmp_path / f"{file.suffix}.csv")] == ["graphs"]

    def test_a_row_that_was_not_exported_is_refused(self, exported: list[Row], tmp_path: Path) -> None:
        own = dict.fromkeys(SHEET, "") | {"id": "mine", "title": "My own paper", "areas": "llm"}
        found = take(as_csv(tmp_path / "filled", [own, *filled(exported, {"areas": "llm"})]), tmp_path / "labels.csv")
        assert [str(refusal).count("row 2: ") for refusal in found.refused] == [1]

    def test_someone_must_have_reviewed_it(self, exported: list[Row], tmp_path: Path) -> None:
        rows = filled(exported, {"areas": "llm"}, {"areas": "llm", "reviewer": " Ben  Roe "})
        found = take(as_csv(tmp_path / "filled", rows), tmp_path / "labels.csv", by=None)
        assert "row 2: who reviewed it?; fill in the column reviewer, or give --by" in str(found.refused[0])
        assert [row["reviewer"] for row in labels_of(tmp_path / "labels.csv")] == ["Ben Roe"]

    def test_two_answers_of_one_reviewer_are_refused_and_equal_ones_count_once(
        self, exported: list[Row], tmp_path: Path
    ) -> None:
        llm, graphs = {"areas": "llm"}, {"areas": "graphs"}
        rows = [exported[0] | llm, exported[0] | graphs, exported[1] | llm, exported[1] | llm]
        rows += [exported[2] | llm, exported[2] | graphs | {"reviewer": "Ben"}]
        found = take(as_csv(tmp_path / "filled", rows), tmp_path / "labels.csv")
        what = "Ann answers differently on the same paper in another row; keep one of them"
        assert [str(refusal).partition("filled.csv: ")[2] for refusal in found.refused] == [
            f"row 2: {what}",
            f"row 3: {what}",
        ]
        assert found.imported == {"new": 3, "as they were": 1}
        table = LabelTable([str(tmp_path / "labels.csv")], TAXONOMY)
        assert len(table.find(id="", key=exported[2]["key"])) == 2

    def test_importing_twice_changes_nothing_and_a_later_review_replaces(
        self, exported: list[Row], tmp_path: Path
    ) -> None:
        out = tmp_path / "labels.csv"
        first = as_csv(tmp_path / "first", filled(exported, {"areas": "llm", "comment": "=sure"}, {"none": "1"}))
        take(first, out)
        content = out.read_bytes()
        assert b"'=sure" in content
        assert take(first, out).imported == {"as they were": 2}
        assert take(first, out, on="2026-11-09").imported == {"as they were": 2}
        assert take(first, out, on=None).imported == {"as they were": 2}
        assert out.read_bytes() == content
        later = as_csv(tmp_path / "later", filled(exported, {"areas": "graphs", "date": "2026-11-20"}))
        assert take(later, out, by="ann").imported == {"replaced": 1}
        assert take(first, out).imported == {"as they were": 2}, "an older review replaces a later one"
        assert [(row["areas"], row["date"]) for row in labels_of(out)] == [("graphs", "2026-11-20"), ("", "2026-11-02")]
        assert take(later, out, by="Ben").imported == {"new": 1}
        assert len(labels_of(out)) == 3

    def test_only_files_of_an_import_are_added_to(self, exported: list[Row], tmp_path: Path) -> None:
        sheet = as_csv(tmp_path / "filled", filled(exported, {"areas": "llm"}))
        other = tmp_path / "read.csv"
        other.write_text("key,areas\n0123456789abcdef,llm\n", encoding="utf-8")
        for out in (other, sheet, as_xlsx(tmp_path / "book", exported)):
            before = out.read_bytes()
            with pytest.raises(DataError, match="is no label file of `abstag review import`"):
                take(sheet, out)
            assert out.read_bytes() == before
        out = tmp_path / "labels.csv"
        take(sheet, out)
        out.write_text(out.read_text(encoding="utf-8") + "damaged\n", encoding="utf-8")
        with pytest.raises(DataError, match=r"labels\.csv:3: the row has more or fewer cells"):
            take(sheet, out)

    def test_a_paper_without_title_is_known_by_its_id(self, bundle: Bundle, tmp_path: Path) -> None:
        papers = [{"abstract": f"A microphone hears whether hive number {n} has lost its queen."} for n in range(3)]
        dump, tagged, out = write_dump(tmp_path / "d.jsonl", papers), tmp_path / "t.jsonl", tmp_path / "s.csv"
        tag_dumps([str(dump)], bundle, tagged)
        export_sheet([str(dump)], [str(tagged)], out, taxonomy=TAXONOMY)
        rows = rows_of(out)
        take(as_csv(tmp_path / "filled", filled(rows, {"none": "x"})), tmp_path / "labels.csv")
        (label,) = labels_of(tmp_path / "labels.csv")
        assert (label["id"], label["key"]) == (rows[0]["id"], "")

    def test_random_rows_tell_how_often_the_tagger_is_right(self, exported: list[Row], tmp_path: Path) -> None:
        rows = [dict(row) for row in exported]
        drawn = [row for row in rows if RANDOM in row["why"]]
        for row in drawn:
            said = row["suggested"].replace("?", "")
            row.update({"none": "x"} if said == "none" else {"areas": said})
        drawn[1] |= {"areas": "llm;graphs;diffusion;optimization", "none": ""}
        found = take(as_csv(tmp_path / "filled", rows), tmp_path / "labels.csv")
        assert str(found).splitlines()[-1] == (
            "random rows: 2 imported, 1 exactly as suggested (95 % interval 9% to 91%)"
        )
        assert [row["random"] for row in labels_of(tmp_path / "labels.csv")] == ["1", "1"]
        again = drawn[0] | {"why": UNSURE, "areas": "llm", "none": "", "date": "2026-11-20"}
        again["check"] = check_of(again)
        take(as_csv(tmp_path / "again", [again]), tmp_path / "labels.csv")
        assert next((row["areas"], row["random"]) for row in labels_of(tmp_path / "labels.csv")) == ("llm", "1")
        plain = [row | {"areas": "llm"} for row in exported if RANDOM not in row["why"]]
        take(as_csv(tmp_path / "plain", plain), tmp_path / "plain-labels.csv")
        assert {row["random"] for row in labels_of(tmp_path / "plain-labels.csv")} == {""}

    def test_columns_must_be_there_once(self, exported: list[Row], tmp_path: Path) -> None:
        file = as_csv(tmp_path / "filled", filled(exported, {"areas": "llm"}))
        text = file.read_text(encoding="utf-8-sig")
        file.write_text(text.replace("areas,none", "tags,none", 1), encoding="utf-8")
        with pytest.raises(DataError, match="there is no column 'areas'; keep the columns"):
            take(file, tmp_path / "labels.csv")
        file.write_text(text.replace("areas,none", "areas,areas", 1).replace("comment", "none", 1), encoding="utf-8")
        with pytest.raises(DataError, match="two columns are called 'areas'"):
            take(file, tmp_path / "labels.csv")
        lean = [name for name in SHEET if name not in {"abstract", "scores", "sure", "reviewer", "date", "comment"}]
        rows = filled(exported, {"areas": "llm"})
        write_sheet(
            file, [[name.upper() for name in lean], *([row[name] for name in lean] for row in rows)], (), force=True
        )
        assert take(file, tmp_path / "labels.csv").imported == {"new": 1}


class TestTouchedBySpreadsheets:
    @pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252", "utf-16"])
    @pytest.mark.parametrize("delimiter", [",", ";", "\t"])
    def test_encodings_and_delimiters(self, encoding: str, delimiter: str, exported: list[Row], tmp_path: Path) -> None:
        rows = filled(exported, {"areas": "LLM, Learning on Graphs", "reviewer": "Zoë Müller", "comment": "déjà vu"})
        text = [dict.fromkeys(SHEET, "") | row for row in rows]
        file = tmp_path / "filled.csv"
        with file.open("w", encoding=encoding, errors="replace", newline="") as stream:
            writer = csv.DictWriter(stream, SHEET, delimiter=delimiter)
            writer.writeheader()
            writer.writerows({name: protected(cell) for name, cell in row.items()} for row in text)
        found = take(file, tmp_path / "labels.csv")
        assert not found.refused
        (label,) = labels_of(tmp_path / "labels.csv")
        assert (label["areas"], label["reviewer"], label["comment"]) == ("llm;graphs", "Zoë Müller", "déjà vu")

    @pytest.mark.parametrize(
        ("cells", "areas", "sure", "day"),
        [
            ({"areas": "llm; GRAPHS"}, "llm;graphs", "1", "2026-11-02"),
            ({"areas": "graphs,llm,graphs"}, "llm;graphs", "1", "2026-11-02"),
            ({"areas": "mathematical  optimisation;Diffusion Models"}, "diffusion;optimization", "1", "2026-11-02"),
            ({"areas": "None"}, "", "1", "2026-11-02"),
            ({"none": "VRAI", "sure": "FAUX"}, "", "0", "2026-11-02"),
            ({"none": "TRUE", "sure": "Yes"}, "", "1", "2026-11-02"),
            ({"none": "1"}, "", "1", "2026-11-02"),
            ({"areas": "llm", "none": "FALSE", "date": "30/11/2026"}, "llm", "1", "2026-11-30"),
            ({"areas": "llm", "date": "11/30/2026"}, "llm", "1", "2026-11-30"),
            ({"areas": "llm", "date": "30.11.2026"}, "llm", "1", "2026-11-30"),
            ({"areas": "llm", "date": "11/11/2026"}, "llm", "1", "2026-11-11"),
            ({"areas": "llm", "date": "2026-11-05 00:00:00"}, "llm", "1", "2026-11-05"),
            ({"areas": "llm", "date": "2026/11/5"}, "llm", "1", "2026-11-05"),
        ],
    )
    def test_ways_to_write_areas_ticks_and_days(
        self, cells: Row, areas: str, sure: str, day: str, exported: list[Row], tmp_path: Path
    ) -> None:
        for write in (as_csv, as_xlsx):
            out = tmp_path / f"{write.__name__}.csv"
            assert not take(write(tmp_path / "filled", filled(exported, cells)), out).refused
            (label,) = labels_of(out)
            assert (label["areas"], label["sure"], label["date"]) == (areas, sure, day)

    def test_typed_cells_of_a_workbook(self, exported: list[Row], tmp_path: Path) -> None:
        file = as_xlsx(tmp_path / "filled", exported)
        book = openpyxl.load_workbook(file)
        sheet = book.worksheets[0]
        assert sheet.freeze_panes == "A2"
        assert {cell.number_format for row in sheet.iter_rows() for cell in row} == {"@"}
        place = {name: number for number, name in enumerate(SHEET, start=1)}
        cells: dict[str, Any] = {"none": True, "sure": 0.0, "date": datetime(2026, 11, 5)}
        for name, value in cells.items():
            sheet.cell(row=3, column=place[name]).value = value
        sheet.cell(row=5, column=place["none"]).value = False
        book.save(file)
        found = take(file, tmp_path / "labels.csv")
        assert not found.refused
        (label,) = labels_of(tmp_path / "labels.csv")
        assert (label["key"], label["areas"], label["sure"]) == (exported[1]["key"], "", "0")
        assert label["date"] == "2026-11-05"

    @pytest.mark.parametrize("suffix", [".csv", ".xlsx"])
    def test_formulas_and_numbers_come_back_as_they_were(self, suffix: str, bundle: Bundle, tmp_path: Path) -> None:
        tail = "hears whether a hive of bees has lost its queen."
        papers = [
            {"id": "2501.01230", "title": '=HYPERLINK("http://x")', "abstract": f"+1 A microphone {tail}"},
            {"id": "-7e3", "title": "@SUM(A1)", "abstract": f"-2 A microphone {tail}"},
            {"id": "'=x", "title": "2048", "abstract": f"''+A microphone {tail}"},
        ]
        dump, tagged = write_dump(tmp_path / "d.jsonl", papers), tmp_path / "t.jsonl"
        tag_dumps([str(dump)], bundle, tagged)
        out = tmp_path / f"sheet{suffix}"
        export_sheet([str(dump)], [str(tagged)], out, taxonomy=TAXONOMY)
        if suffix == ".csv":
            with out.open(encoding="utf-8-sig", newline="") as stream:
                cells = [cell for row in csv.reader(stream) for cell in row]
        else:
            sheet = openpyxl.load_workbook(out).worksheets[0]
            cells = [str(cell.value or "") for found in sheet.iter_rows() for cell in found]
            assert {cell.data_type for found in sheet.iter_rows() for cell in found} <= {"s", "inlineStr"}
        assert not [cell for cell in cells if cell[:1] in {*"=+-@"}]
        assert "'2501.01230" in cells
        rows = rows_of(out)
        for name in ("id", "title", "abstract"):
            assert sorted(row[name] for row in rows) == sorted(paper[name] for paper in papers)
        filled_in = (as_csv if suffix == ".csv" else as_xlsx)(
            tmp_path / "filled", [row | {"none": "x"} for row in rows]
        )
        assert take(filled_in, tmp_path / "labels.csv").imported == {"new": 3}

    @pytest.mark.parametrize(
        "text", ["", "a", "'", "'a", "=1", "'=1", "''=1", "-", "1e5", "12", "'12", "a=1", "\t", "3D"]
    )
    def test_protection_is_undone(self, text: str) -> None:
        assert unprotected(protected(text)) == text
        assert (protected(text) == text) == (text in {"", "a", "'", "'a", "a=1", "3D"})

    def test_other_files_are_named(self, exported: list[Row], tmp_path: Path) -> None:
        whole = as_xlsx(tmp_path / "filled", exported).read_bytes()
        contents = {
            "is an Excel file of the old kind; save it as .xlsx": b"\xd0\xcf\x11\xe0" + bytes(100),
            "cannot be read as XLSX": whole[:-200],
            "the sheet is empty": b"\xef\xbb\xbf",
            "cannot be read as CSV": b'id,key\n"open',
        }
        for what, content in contents.items():
            (tmp_path / "x.csv").write_bytes(content)
            with pytest.raises(DataError, match=what):
                take(tmp_path / "x.csv", tmp_path / "labels.csv")
        with pytest.raises(ArtifactError, match="cannot be read"):
            take(tmp_path / "nowhere.csv", tmp_path / "labels.csv")


@pytest.mark.parametrize("suffix", [".csv", ".xlsx"])
def test_round_trip_from_tags_to_labels_that_win(
    suffix: str, go: Go, embedded: Path, dump: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    go("run", "classifier=logreg", f"data.path={embedded}", *SHORT, code=0)
    go("tag", dump, "--bundle", "logreg", "-o", "tags.jsonl", code=0)
    sheet = f"sheet{suffix}"
    ran = go("review", "export", dump, "--tags", "tags.jsonl", "-o", sheet, "--top", 30, code=0)
    assert ran.out.startswith("30 of 80 papers: ")
    assert "3 random" in ran.out
    go("ingest", dump, "-o", "before", code=0)
    before = {row["id"]: row for row in pq.read_table("before/records.parquet").to_pylist()}

    rows = rows_of(Path(sheet))
    turned = [area for area in IDS if area not in before[rows[0]["id"]]["areas"]]
    rows = filled(rows, {"areas": "; ".join(turned)}, {"none": "x"}, {"areas": "nonsense"})
    write: Write = as_csv if suffix == ".csv" else as_xlsx
    write(Path(sheet), rows)
    ran = go("review", "import", sheet, "-o", "labels.csv", "--by", "Ann", "--date", "2026-11-02", code=1)
    assert "row 4: unknown area 'nonsense'" in ran.err
    assert ran.out.startswith("rows 30 = 2 imported + 27 untouched + 1 refused\n")
    write(Path(sheet), [row | {"areas": ""} if row["areas"] == "nonsense" else row for row in rows])
    assert "2 as they were" in go("review", "import", sheet, "-o", "labels.csv", "--by", "Ann", code=0).out

    go("ingest", dump, "-o", "after", "--labels", "labels.csv", code=0)
    manifest = json.loads(Path("after/manifest.json").read_text(encoding="utf-8"))
    assert manifest["labelled"] == {"review": 2, "read": 78}
    assert manifest["unmatched_labels"] == 0
    after = {row["id"]: row for row in pq.read_table("after/records.parquet").to_pylist()}
    assert after[rows[0]["id"]]["areas"] == turned
    assert after[rows[1]["id"]]["areas"] == []
    assert {row["label_source"] for row in (after[rows[0]["id"]], after[rows[1]["id"]])} == {"review"}
    assert after[rows[2]["id"]]["areas"] == before[rows[2]["id"]]["areas"]

    write(Path(sheet), filled(rows_of(Path(sheet)), {"areas": "", "none": "x", "reviewer": "Ben"}))
    go("review", "import", sheet, "-o", "labels.csv", "--by", "Ann", "--date", "2026-11-02", code=0)
    ran = go("ingest", dump, "-o", "differing", "--labels", "labels.csv", code=0)
    assert f"cells on which labels differ: {len(turned)}" in ran.out
