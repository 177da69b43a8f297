"""A report holds every run and part, says which command gave each number, and refuses what cannot be compared."""

import csv
import io
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from abstag.compare import compare
from abstag.errors import ArtifactError, DataError
from abstag.evaluation import part_metrics, scored_rows
from abstag.records import Documents
from abstag.report import explorer
from abstag.report.figures import COLOURS, Series, figures, swatch
from abstag.report.learning import learning_table, papers_for
from abstag.report.rank import COMPARED, Ranked, commands, headline, lines, rank
from abstag.report.write import contents, table_csv, table_latex, write_report
from abstag.results import RunResult, ScoredDocuments, ScoreTable
from abstag.store import Store, load_result, read_scores, rows_fingerprint, write_scores
from tests.conftest import Go, make_result, make_scores

FILES = {"report.md", "report.html", "table.csv", "table.tex"}
SCRIPT = "</script><script>document.title = 'broken'</script><img src=x onerror=alert(1)>"


def documents_of(scores: ScoreTable, title: str = "On things", *, terms: bool = True) -> ScoredDocuments:
    """Return texts for scores, with one deciding term an area."""
    texts = Documents(scores.ids, [f"{title} {name}" for name in scores.ids], ["We study widgets."] * len(scores))
    return ScoredDocuments(texts, [[[("widget", 0.5)] for _ in scores.areas]] * len(scores) if terms else None)


def save(store: Store, scores: ScoreTable, run: str, documents: ScoredDocuments | None = None, **changes: Any) -> Path:
    """Save a finished run with these scores and its true metrics."""
    parts = {name: part_metrics(scores, rows) for name, rows in scores.named_parts().items()}
    values: dict[str, Any] = {
        "areas": list(scores.areas),
        "parts": parts,
        "rows": {"fingerprint": rows_fingerprint(scores)},
        "command": f"abstag run classifier={run}",
    }
    return store.save(make_result(run, **(values | changes)), scores=scores, documents=documents)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "runs")


@pytest.fixture
def folders(store: Store) -> list[Path]:
    """Two runs, the second one better."""
    runs = [("poor-1", 0.3), ("good-1", 0.02)]
    made = []
    for seed, (run, wrong) in enumerate(runs):
        scores = make_scores(wrong=wrong, seed=seed)
        made.append(save(store, scores, run, documents_of(scores)))
    return made


class TestReport:
    def test_four_files_and_the_page_named(self, folders: list[Path], tmp_path: Path) -> None:
        page = write_report(folders, tmp_path / "out")
        assert page == tmp_path / "out" / "report.html"
        assert {path.name for path in page.parent.iterdir()} == FILES

    def test_again_only_with_force_and_byte_for_byte(self, folders: list[Path], tmp_path: Path) -> None:
        write_report(folders, tmp_path)
        first = {name: (tmp_path / name).read_bytes() for name in FILES}
        with pytest.raises(ArtifactError, match="exists already"):
            write_report(folders, tmp_path)
        write_report(folders, tmp_path, force=True)
        assert {name: (tmp_path / name).read_bytes() for name in FILES} == first

    def test_best_first_and_headline_says_who_cannot_be_told_apart(self, folders: list[Path]) -> None:
        ranked = rank(folders, None)
        assert ranked.names == ["good", "poor"]
        assert headline(ranked).startswith("good has the highest macro-F1 0.9")
        assert "It differs from every other run at 0.05 (Holm)." in headline(ranked)

    def test_alike_runs_are_named_in_the_headline(self, folders: list[Path], store: Store) -> None:
        scores = make_scores(wrong=0.02, seed=1)
        tags = scores.tags.copy()
        tags[0, 0] ^= True
        third = save(store, replace(scores, tags=tags), "twin-1")
        found = rank([*folders, third], None)
        told = {pair["verdict"] for pair in found.pairs if {pair["a"], pair["b"]} == {"good", "twin"}}
        assert told == {"no_difference"}
        assert found.verdicts[found.names[1]] == "no_difference"
        assert f"Not distinguishable from it at 0.05 (Holm): {found.names[1]}." in headline(found)
        assert found.names[1] in {"good", "twin"}

    def test_pairs_are_those_of_compare_best_first(self, folders: list[Path]) -> None:
        assert rank(folders, "test").pairs == compare(folders[::-1], part="test")["pairs"]

    def test_a_part_ranks_and_shows(self, folders: list[Path]) -> None:
        ranked = rank(folders, "iclr-test")
        assert next(iter(ranked.parts)) == "iclr-test"
        assert ranked.results[0].metrics["n"] == ranked.parts["iclr-test"] == int(ranked.rows.sum())

    def test_too_few_papers_is_not_called_indistinguishable(self, store: Store) -> None:
        made = []
        for seed, wrong in ((0, 0.05), (1, 0.3)):
            scores = make_scores(wrong=wrong, seed=seed)
            gold = scores.gold.copy()
            gold[:, 1] = False
            made.append(save(store, replace(scores, gold=gold), f"nb{seed}-1", classifier=f"nb{seed}"))
        text = headline(rank(made, None))
        assert "Too few positives to tell: nb1." in text
        assert "Not distinguishable" not in text

    def test_one_run_has_no_pairs(self, folders: list[Path]) -> None:
        ranked = rank(folders[:1], None)
        assert not ranked.pairs
        assert "Holm" not in headline(ranked)
        assert 'id="pairs"' not in contents(ranked, text=True)["report.html"]

    def test_seeds_of_one_configuration_are_told_apart_but_not_compared(self, store: Store) -> None:
        config = make_result("nb-1").config
        made = [
            save(store, make_scores(seed=seed), f"nb-{seed}", seed=seed, config=config | {"seed": seed})
            for seed in (0, 1)
        ]
        ranked = rank(made, None)
        assert set(ranked.names) == {"nb seed=0", "nb seed=1"}
        assert not ranked.pairs

    def test_every_number_has_its_command(self, folders: list[Path]) -> None:
        ranked = rank(folders, "test")
        assert commands(ranked) == [
            "abstag run classifier=good-1",
            "abstag run classifier=poor-1",
            "abstag compare good-1 poor-1 --part test",
            "abstag report good-1 poor-1 --part test -o report",
        ]
        files = contents(ranked, text=True)
        for command in commands(ranked):
            assert command in files["report.md"]
            assert command in files["report.html"]
            assert f"% {command}" in files["table.tex"]
        assert "@software{abstag," in files["report.md"]
        assert "@software{abstag," in files["report.html"]

    def test_csv_has_a_row_for_each_part_and_run(self, folders: list[Path]) -> None:
        ranked = rank(folders, None)
        rows = list(csv.DictReader(io.StringIO(table_csv(ranked))))
        assert [(row["part"], row["run"]) for row in rows] == [
            (part, run) for part in ranked.parts for run in ("good-1", "poor-1")
        ]
        assert float(rows[0]["macro-F1"]) == ranked.results[0].metrics["macro_f1"]
        assert float(rows[1]["F1 a"]) == ranked.results[1].metrics["areas"]["a"]["f1"]

    def test_undefined_is_empty_in_csv_and_a_dash_elsewhere(self, store: Store) -> None:
        scores = make_scores()
        bare = replace(scores, gold=np.zeros_like(scores.gold), tags=np.zeros_like(scores.tags))
        files = contents(rank([save(store, bare, "nb-1")], None), text=True)
        assert next(csv.DictReader(io.StringIO(files["table.csv"])))["macro-F1"] == ""
        assert "nan" not in files["table.csv"] + files["table.tex"] + files["report.md"]
        assert "& – &" in files["table.tex"]

    def test_latex_escapes(self, store: Store) -> None:
        latex = table_latex(rank([save(store, make_scores(), "a_1", classifier="a_b & 50%")], None))
        assert r"a\_b \& 50\% & " in latex
        assert latex.count(r"\\") == 2
        assert latex.index(r"\toprule") < latex.index(r"\midrule") < latex.index(r"\bottomrule")


class TestRefusals:
    def test_no_run(self) -> None:
        with pytest.raises(DataError, match="a report needs a run"):
            rank([], None)

    def test_unknown_part_lists_what_there_is(self, folders: list[Path]) -> None:
        with pytest.raises(DataError, match=r"no part 'x'.*iclr-test"):
            rank(folders, "x")

    def test_run_without_scores(self, folders: list[Path]) -> None:
        (folders[0] / "scores.parquet").unlink()
        with pytest.raises(ArtifactError, match=r"scores\.parquet"):
            rank(folders, None)

    def test_a_run_given_twice_counts_once(self, go: Go, folders: list[Path], tmp_path: Path) -> None:
        link = tmp_path / "link"
        link.symlink_to(folders[0])
        go("report", folders[0], link, folders[1], "-o", tmp_path / "out", code=0)
        page = (tmp_path / "out" / "report.md").read_text(encoding="utf-8")
        assert page.startswith("# demo: 2 runs on c")
        with pytest.raises(DataError, match="poor-1: the run is given twice"):
            rank([folders[0], folders[0]], None)

    def test_scores_of_another_run(self, folders: list[Path], store: Store) -> None:
        write_scores(folders[1] / "scores.parquet", make_scores(n=70))
        with pytest.raises(ArtifactError, match="good-1: scores and result are not of one run"):
            rank(folders[1:], None)
        with pytest.raises(DataError, match="good-1: other test papers than poor-1"):
            rank(folders, None)
        result = load_result(folders[0])
        store.save(replace(result, rows=result.rows | {"fingerprint": "beef"}), scores=read_scores(folders[0]))
        write_scores(folders[1] / "scores.parquet", make_scores(wrong=0.05))
        with pytest.raises(ArtifactError, match="poor-1: scores and result are not of one run"):
            rank(folders[::-1], None)

    @pytest.mark.parametrize("areas", [None, {}, [], {"a": {"f1": 1.0}, "b": 3}, {"a": {}, "b": {}}])
    def test_result_without_figures_of_areas(self, areas: Any, store: Store) -> None:
        scores = make_scores()
        parts = {"all": part_metrics(scores, np.ones(len(scores), dtype=np.bool_)) | {"areas": areas}}
        with pytest.raises(ArtifactError, match="lacks figures of part 'all'"):
            rank([save(store, scores, "nb-1", parts=parts)], None)

    def test_two_corpora(self, folders: list[Path], store: Store, tmp_path: Path) -> None:
        other = save(store, make_scores(n=60), "other-1")
        with pytest.raises(DataError, match=r"other-1.*other test papers than poor-1"):
            write_report([*folders, other], tmp_path / "out")
        assert not (tmp_path / "out").exists()

    def test_damaged_documents(self, folders: list[Path]) -> None:
        (folders[0] / "documents.parquet").write_bytes(b"PAR1")
        with pytest.raises(ArtifactError, match=r"documents\.parquet"):
            contents(rank(folders, None), text=True)

    def test_command_line(self, go: Go, folders: list[Path], tmp_path: Path) -> None:
        ran = go("report", *folders, "-o", tmp_path / "out", code=0)
        assert ran.out == f"{tmp_path / 'out' / 'report.html'}\n"
        assert "exists already" in go("report", *folders, "-o", tmp_path / "out", code=1).err
        go("report", *folders, "-o", tmp_path / "out", "--force", "--no-text", code=0)
        ran = go("report", "nowhere", "--runs-dir", tmp_path / "runs", "-o", tmp_path / "other", code=1)
        assert ran.err.count("\n") == 1


def explorer_of(html: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', html, re.DOTALL)
    assert found
    data: dict[str, Any] = json.loads(found[1])
    return data


class TestExplorer:
    @pytest.fixture(autouse=True)
    def _without_figures(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("abstag.report.page.figures", lambda *_: [])
        monkeypatch.setattr("abstag.report.page.swatch", lambda _: "")

    def test_papers_are_those_that_divide_or_mislead(self, folders: list[Path]) -> None:
        ranked = rank(folders, None)
        good, poor = ranked.tables
        divided = {name for name, a, b in zip(good.ids, good.tags, poor.tags, strict=True) if (a != b).any()}
        wrong = [((table.tags != table.gold) & table.known).any(axis=1) for table in (good, poor)]
        alike = {name for name, both in zip(good.ids, wrong[0] & wrong[1], strict=True) if both} - divided
        data = explorer_of(contents(ranked, text=True)["report.html"])
        assert {paper["id"] for paper in data["papers"]} == divided | alike
        paper = data["papers"][0]
        row = list(good.ids).index(paper["id"])
        assert paper["gold"] == good.gold[row].astype(int).tolist()
        assert paper["tags"] == [table.tags[row].astype(int).tolist() for table in (good, poor)]
        assert paper["terms"][0][0] == [["widget", 0.5]]
        assert paper["title"] == f"On things {paper['id']}"

    def test_masked_cells_are_null_and_never_wrong(self, store: Store) -> None:
        made = []
        for seed in (0, 1):
            scores = make_scores(wrong=0.0, seed=seed)
            known = scores.known.copy()
            known[0, 0] = False
            tags = scores.tags.copy()
            tags[0, 0] ^= bool(seed)
            made.append(save(store, replace(scores, known=known, tags=tags), f"nb-{seed}", classifier=f"nb{seed}"))
        data = explorer_of(contents(rank(made, None), text=True)["report.html"])
        assert [paper["gold"][0] for paper in data["papers"]] == [None]

    def test_no_text_leaves_titles_and_abstracts_out_of_all_files(self, folders: list[Path]) -> None:
        ranked = rank(folders, None)
        told = "".join(contents(ranked, text=True).values())
        silent = "".join(contents(ranked, text=False).values())
        assert "On things" in told
        assert "We study widgets" in told
        assert "On things" not in silent
        assert "We study widgets" not in silent
        assert "were left out of this report" in silent
        assert explorer_of(contents(ranked, text=False)["report.html"])["papers"]

    def test_runs_without_kept_documents_show_ids(self, store: Store) -> None:
        made = [save(store, make_scores(seed=seed), f"nb-{seed}", classifier=f"nb{seed}") for seed in (0, 1)]
        paper = explorer_of(contents(rank(made, None), text=True)["report.html"])["papers"][0]
        assert paper["id"].startswith("p0")
        assert "title" not in paper
        assert paper["terms"] == [None, None]

    def test_scores_that_do_not_depend_on_the_paper_are_left_out(self, folders: list[Path], store: Store) -> None:
        scores = make_scores()
        flat = replace(scores, scores=np.full_like(scores.scores, 0.3), tags=np.ones_like(scores.tags))
        ranked = rank([*folders, save(store, flat, "prior-1")], None)
        assert explorer_of(contents(ranked, text=True)["report.html"])["runs"] == ["good", "poor"]

    def test_hostile_title_stays_text(self, store: Store) -> None:
        made = []
        for seed in (0, 1):
            scores = make_scores(seed=seed)
            made.append(save(store, scores, f"nb-{seed}", documents_of(scores, SCRIPT), classifier=f"nb{seed}"))
        html = contents(rank(made, None), text=True)["report.html"]
        assert "<img" not in html
        assert html.count("<script") == html.count("</script>") == 2
        assert explorer_of(html)["papers"][0]["title"].startswith(SCRIPT)

    def test_a_paper_too_long_for_the_page_hides_no_other(self, store: Store) -> None:
        made = []
        for seed in (0, 1):
            scores = make_scores(seed=seed)
            texts = documents_of(scores).documents
            long = ScoredDocuments(replace(texts, abstracts=["<" * 2_000_000] * len(scores)), None)
            made.append(save(store, scores, f"nb-{seed}", long, classifier=f"nb{seed}"))
        html = contents(rank(made, None), text=True)["report.html"]
        assert len(html.encode()) < 3_000_000
        assert len(explorer_of(html)["papers"]) > 20

    def test_hostile_names_are_escaped(self, store: Store) -> None:
        run = save(store, make_scores(), "x-1", classifier=SCRIPT, experiment=SCRIPT, command=SCRIPT)
        html = contents(rank([run], None), text=True)["report.html"]
        assert "<img" not in html
        assert html.count("<script") == 2

    def test_room_is_left_for_what_all_get_wrong(self) -> None:
        scores = make_scores(n=4000, wrong=0.5)
        other = replace(scores, tags=np.where(np.arange(4000)[:, None] % 2 == 0, scores.tags, ~scores.tags))
        found = explorer.papers([scores, other], [None, None], np.arange(4000), text=True, room=10**7)
        alike = [paper for paper in found["papers"] if paper["tags"][0] == paper["tags"][1]]
        assert len(found["papers"]) == explorer.MOST_PAPERS
        assert len(alike) == explorer.MOST_PAPERS // 4
        assert found["disagree"] == 2000
        assert found["all_wrong"] < 2000


@pytest.mark.slow
def test_fifty_thousand_papers_stay_small_and_the_page_says_what_is_missing(store: Store, tmp_path: Path) -> None:
    made = []
    for seed in (0, 1):
        scores = make_scores(n=50_000, seed=seed)
        abstracts = ["We study widgets at length. " * 60] * len(scores)
        texts = documents_of(scores)
        long = texts._replace(documents=Documents(scores.ids, texts.documents.titles, abstracts))
        made.append(save(store, scores, f"nb-{seed}", long, classifier=f"nb{seed}"))
    page = write_report(made, tmp_path / "out")
    assert page.stat().st_size < 3_000_000
    html = page.read_text(encoding="utf-8")
    kept = len(explorer_of(html)["papers"])
    assert kept <= explorer.MOST_PAPERS
    assert re.search(rf"Only {kept} of these \d{{5}} papers are kept here", html)


class TestFigures:
    def ranked(self, number: int = 3, **changes: Any) -> tuple[list[Series], Ranked]:
        """Return series and ranking of runs on the same papers, the names hostile."""
        table, names = make_scores(), [f"<n&{place}$x$>" for place in range(number)]
        rows = np.ones(len(table), dtype=np.bool_)
        thresholds = {"thresholds": {"a": [0.4, 0.5], "b": [0.6, 0.7]}}
        parts = {"all": part_metrics(table, rows)}
        results = [make_result(f"nb-{place}", parts=parts, decision=thresholds) for place in range(number)]
        pair = {"a": names[0], "metric": "macro_f1", "n": 80, "difference": 0.02, "low": -0.01, "high": 0.05}
        told = {"verdict": "no_difference", "detectable": 0.04, "level": 0.05, "decides": True}
        pairs = [pair | told | {"b": name} for name in names[1:]]
        fields: dict[str, Any] = {"part": "all", "parts": {"all": 80}, "rows": rows, "names": names, "results": results}
        fields |= {
            "tables": [table] * number,
            "folders": [],
            "pairs": pairs,
            "verdicts": {},
            "best": {"name": names[0]},
            "looks": 0,
            "compared": [],
        }
        ranked = Ranked(**(fields | changes))
        series = [
            Series(place, name, result, scored_rows(table, rows))
            for place, (name, result) in enumerate(zip(ranked.names, ranked.results, strict=True))
        ]
        return series, ranked

    def test_colours_are_variables_and_ids_are_unique(self) -> None:
        series, ranked = self.ranked(COLOURS + 1)
        drawn = list(figures(series, ranked))
        svg = "".join(figure.svg for figure in drawn) + "".join(map(swatch, series))
        assert "#abc0" not in svg
        assert "var(--series-7)" in svg
        assert "var(--series-8)" not in svg
        ids = re.findall(r'\bid="([^"]+)"', svg)
        assert len(ids) == len(set(ids))
        assert set(re.findall(r"url\(#([^)]+)\)", svg)) <= set(ids)
        assert "&lt;n&amp;0$x$&gt;" in svg
        assert len(drawn) == 6 + len(ranked.areas) + 4

    def test_the_same_again(self) -> None:
        series, ranked = self.ranked()
        assert list(figures(series, ranked)) == list(figures(series, ranked))

    def test_differences_are_those_of_the_best_whichever_side_it_is_on(self) -> None:
        series, ranked = self.ranked(2)
        (pair,) = ranked.pairs
        turned = {"a": pair["b"], "b": pair["a"], "difference": -0.02, "low": -0.05, "high": 0.01}
        drawn = [
            {figure.title: figure.svg for figure in figures(series, replace(ranked, pairs=[one]))}
            for one in (pair, {**pair, **turned})
        ]
        assert drawn[0] == drawn[1]
        elsewhere = {**pair, "a": "x", "b": "y"}
        titles = {figure.title for figure in figures(series, replace(ranked, pairs=[elsewhere]))}
        assert not {"Paired differences", "What could have been found"} & titles

    def test_identical_runs_draw(self) -> None:
        series, ranked = self.ranked(2)
        same = [{**pair} | {"difference": 0.0, "low": 0.0, "high": 0.0, "detectable": 0.0} for pair in ranked.pairs]
        assert "What could have been found" in {figure.title for figure in figures(series, replace(ranked, pairs=same))}

    def test_learning_curves_where_runs_have_several_sizes(self) -> None:
        series, ranked = self.ranked(4)

        def sized_as(*sizes: int) -> list[RunResult]:
            return [
                replace(run, rows={"train": [size]}, config={"data": {"limit": size}})
                for run, size in zip(ranked.results, sizes, strict=True)
            ]

        sized = sized_as(50, 50, 100, 200)
        titles = {figure.title: figure.svg for figure in figures(series, replace(ranked, results=sized))}
        assert "training papers" in titles["Learning curves"]
        others = [replace(run, config={"split": {"n": place}}) for place, run in enumerate(sized)]
        for none in (sized_as(50, 50, 100, 100), others):
            assert "Learning curves" not in {figure.title for figure in figures(series, replace(ranked, results=none))}
        assert learning_table(sized, "all").count("|") > 0
        assert learning_table(others, "all") == ""

    def test_more_papers_that_a_gain_takes(self) -> None:
        """Errors of 0.2 · (n / 100) ** −0.5: from 400 papers on (0.1), 0.09 is reached with 100 · (0.2 / 0.09)²."""
        curve = {float(n): [1 - 0.2 * (n / 100) ** -0.5] for n in (25, 50, 100, 200, 400)}
        assert papers_for(curve) == pytest.approx(100 * (0.2 / 0.09) ** 2 - 400)
        assert np.isnan(papers_for({n: [0.8] for n in (10.0, 20.0, 40.0)}))
        assert np.isnan(papers_for({n: [1 - n] for n in (0.001, 0.002, 0.003)}, gain=0.01))

    def test_undefined_metrics_and_areas_without_positives_draw(self) -> None:
        table = make_scores()
        bare = replace(table, gold=np.zeros_like(table.gold), tags=np.zeros_like(table.tags))
        rows = np.ones(len(bare), dtype=np.bool_)
        result = make_result("nb-1", parts={"all": part_metrics(bare, rows)}, fit_seconds=None)
        _, ranked = self.ranked(1, results=[result], tables=[bare], pairs=[])
        assert len(list(figures([Series(0, "nb", result, scored_rows(bare, rows))], ranked))) == 10


def test_more_runs_than_are_drawn(store: Store) -> None:
    made = [
        save(store, make_scores(wrong=0.05 * (seed + 1), seed=seed), f"nb-{seed}", classifier=f"nb{seed}")
        for seed in range(COMPARED + 1)
    ]
    ranked = rank(made, None)
    html = contents(ranked, text=True)["report.html"]
    assert f"The best {COMPARED} of {COMPARED + 1} runs are drawn." in html
    assert len(lines(ranked)) == (COMPARED + 1) * len(ranked.parts)
