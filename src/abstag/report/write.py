"""Runs on the same papers → a folder with report.md, report.html, table.csv and table.tex."""

from collections.abc import Sequence
from pathlib import Path

from abstag import __version__
from abstag.files import new_files
from abstag.report.learning import learning_table
from abstag.report.page import page
from abstag.report.rank import Ranked, commands, headline, lines, rank, title
from abstag.report.table import csv_table, latex_tabular, markdown, number, pairs_table, runs_table, tex

FILES = ("report.md", "report.html", "table.csv", "table.tex")
BIBTEX = f"""@software{{abstag,
  title   = {{abstag: a benchmark of classifiers that tag machine-learning abstracts}},
  author  = {{{{The abstag authors}}}},
  version = {{{__version__}}},
  year    = {{2026}}
}}"""


def write_report(
    folders: Sequence[Path], out: Path, *, part: str | None = None, text: bool = True, force: bool = False
) -> Path:
    """Write the report of runs on the same papers.

    Parameters
    ----------
    folders
        Run folders.
    part
        Part whose figures rank the runs; None is the first run's own.
    text
        Show titles and abstracts in the page.

    Returns
    -------
    Path
        The HTML page.

    Raises
    ------
    DataError
        No run, runs on other papers, a run that is not done, no such part.
    ArtifactError
        Scores are missing or damaged; a file of the report exists (without ``force``) or cannot be written.
    """
    with new_files(out, FILES, force=force) as texts:
        texts.update(contents(rank(folders, part), text=text))
    return out / "report.html"


def contents(ranked: Ranked, *, text: bool) -> dict[str, str]:
    """Return the files of a report by name."""
    return {
        "report.md": report_markdown(ranked),
        "table.csv": table_csv(ranked),
        "table.tex": table_latex(ranked),
        "report.html": page(ranked, bibtex=BIBTEX, text=text),
    }


def report_markdown(ranked: Ranked) -> str:
    """Return the report as Markdown: headline, tables, pairs, commands."""
    areas = markdown(
        ["classifier", *ranked.areas],
        [
            [name, *(number(result.metrics["areas"][area]["f1"]) for area in ranked.areas)]
            for name, result in zip(ranked.names, ranked.results, strict=True)
        ],
    )
    blocks = [
        f"# {title(ranked)}",
        headline(ranked),
        runs_table(ranked.results),
        f"F1 by area ({ranked.part}):\n\n{areas}",
        *filter(None, [learning_table(ranked.results, ranked.part)]),
        *([f"## Pairs on `{ranked.part}`", pairs_table(ranked.pairs)] if ranked.pairs else []),
        "## Commands",
        "With the corpus in a folder of that name, and run where the runs are kept:",
        "```sh\n" + "\n".join(commands(ranked)) + "\n```",
        "## Cite",
        f"```bibtex\n{BIBTEX}\n```",
    ]
    return "\n\n".join(blocks) + "\n"


def table_csv(ranked: Ranked) -> str:
    """Return one row for each part and run; undefined is empty."""
    return csv_table(lines(ranked))


def table_latex(ranked: Ranked) -> str:
    """Return the ranked table for LaTeX's booktabs package."""
    heads = ["Classifier", "Macro-F1", "95 % interval", *ranked.areas, "AP", "ECE"]
    corpus, part = ranked.results[0].corpus, ranked.part
    caption = (
        rf"Macro-F1 with 95\,\% bootstrap intervals, and F1 by area, on {ranked.parts[part]} papers "
        rf"(part {tex(part)}) of {tex(corpus['name'])} ({tex(corpus['fingerprint'])})."
    )
    rows = [
        [
            row["classifier"],
            number(row["macro-F1"]),
            f"[{number(row['low'])}, {number(row['high'])}]",
            *(number(row[name]) for name in (*(f"F1 {area}" for area in ranked.areas), "AP", "ECE")),
        ]
        for row in lines(ranked)
        if row["part"] == part
    ]
    return "\n".join(
        [
            f"% abstag {__version__}; needs \\usepackage{{booktabs}}",
            *(f"% {command}" for command in commands(ranked)),
            r"\begin{table}",
            rf"\caption{{{caption}}}",
            r"\centering",
            latex_tabular(heads, rows),
            r"\end{table}",
            "",
        ]
    )
