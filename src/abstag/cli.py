"""The command line: a verb is parse, one call, print. Heavy modules are imported by the verb that needs them."""

import argparse
import logging
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any

from abstag import __version__
from abstag.errors import AbstagError, ArtifactError, ConfigError, DataError, refused

if TYPE_CHECKING:
    from abstag.results import RunResult

_EPILOG = """examples:
  abstag ingest icml2025.txt iclr.jsonl.gz --labels read.csv -o corpus
  abstag run -m classifier=prior,svm,logreg data.path=corpus name=mine
  abstag compare --experiment mine
  abstag tag icml2025.txt -o tags.jsonl --bundle logreg-1a2b3c
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code: 0, 1 (an `AbstagError`, one line on stderr), 2 (usage)."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    verb_at = next((place for place, word in enumerate(given) if not word.startswith("-")), len(given))
    takes_all = given[verb_at : verb_at + 1] == ["run"]
    options = _parser().parse_args(given[: verb_at + 1] if takes_all else given)
    options.rest = given[verb_at + 1 :]
    _prepare_streams()
    _set_up_logging(quiet=options.quiet)
    try:
        if sys.stdout is None:
            raise ArtifactError("is closed", where="standard output", remedy="redirect it to a file or /dev/null")
        code = int(options.verb(options))
        sys.stdout.flush()
        return code
    except (AbstagError, OSError, UnicodeError) as error:
        if options.debug and not isinstance(error, BrokenPipeError):
            raise
        print(f"abstag: {_line(error)}", file=sys.stderr)
    except KeyboardInterrupt:
        print("abstag: interrupted; what was done stands", file=sys.stderr)
        return 130
    return 1


def _prepare_streams() -> None:
    if sys.stderr is None:  # closed with 2>&-: print would take standard output instead
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # a terminal that is not UTF-8 shows what it cannot as \u2013
            stream.reconfigure(errors="backslashreplace")


def _line(error: Exception) -> str:
    """Return what happened in a line; after an error of standard output nothing more goes there."""
    if isinstance(error, BrokenPipeError):
        _give_up_stdout()
        return "the reader of the output went away; what it read stands"
    if isinstance(error, OSError):
        if error.filename is None:
            _give_up_stdout()
        return str(refused(error, "cannot be used", error.filename or "standard output"))
    if isinstance(error, UnicodeError):
        return f"a name or text is not UTF-8: {error}; choose another name"
    return str(error)


def _give_up_stdout() -> None:
    """Throw away what is still to be written, else Python tries again at its end and fails loudly."""
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _set_up_logging(*, quiet: bool) -> None:
    logging.basicConfig(level=logging.ERROR if quiet else logging.WARNING, format="%(message)s", stream=sys.stderr)
    logging.getLogger("abstag").setLevel(logging.ERROR if quiet else logging.INFO)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="abstag",
        description="Tag machine-learning abstracts by research area, and say honestly which classifier to trust.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"abstag {__version__}")
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
    parser.add_argument("--quiet", action="store_true", help="no progress on stderr, errors only")
    verbs = parser.add_subparsers(title="verbs", metavar="VERB", required=True)
    _add_fetch(verbs)
    _add_ingest(verbs)
    _add_describe(verbs)
    _add_run(verbs)
    _add_status(verbs)
    _add_runs(verbs)
    _add_reproduce(verbs)
    _add_compare(verbs)
    _add_report(verbs)
    _add_tag(verbs)
    _add_eval(verbs)
    _add_review(verbs)
    return parser


def _verb(verbs: Any, name: str, call: Callable[[argparse.Namespace], int], text: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = verbs.add_parser(name, help=text, description=text)
    parser.set_defaults(verb=call)
    return parser


def _add_paths(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paths", nargs="+", metavar="PATH", help="file, folder, glob, or - for standard input")
    parser.add_argument("--format", metavar="F", help="format of all PATHs, instead of looking at the content")
    parser.add_argument(
        "--map",
        action="append",
        default=[],
        metavar="K=V,...",
        help="column or JSON key V that holds the field K, e.g. title='Paper name',abstract=content.text",
    )
    parser.add_argument("--force", action="store_true", help="overwrite what exists")


def _add_strict(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--strict", action="store_true", help="exit code 1 when any record was rejected")


def _refuse_rejects(rejects: int, where: object) -> None:
    if rejects:
        raise DataError(f"{rejects} rejected, and --strict allows none; the output is complete", where=where)


def _add_store(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--runs-dir", default="runs", metavar="DIR", help="where runs are kept (default: runs)")


def _add_fetch(verbs: Any) -> None:
    text = "fetch papers into a dump; a fetch that was cut off goes on when the same command is given again"
    sources = verbs.add_parser("fetch", help=text, description=text).add_subparsers(metavar="SOURCE", required=True)
    address = "address of a mirror, instead of the source's own"
    parser = _source(sources, "openreview", _fetch_openreview, "the public notes of a venue of OpenReview")
    parser.add_argument("venue", metavar="VENUE", help="e.g. ICLR.cc/2024/Conference, or one of its invitations")
    parser.add_argument("--url", metavar="URL", help=address)
    parser = _source(sources, "arxiv", _fetch_arxiv, "the papers of a query, or of a set, of arXiv")
    parser.add_argument("query", nargs="?", metavar="QUERY", help="in arXiv's terms, e.g. 'cat:cs.LG AND abs:graph'")
    parser.add_argument("--set", metavar="SET", help="all papers of a set, e.g. cs or cs:cs:LG, instead of QUERY")
    parser.add_argument("--from", dest="since", metavar="DATE", help="of a set: last changed on this day or later")
    parser.add_argument("--until", metavar="DATE", help="of a set: last changed on this day or before")
    parser.add_argument("--url", metavar="URL", help=address)
    parser = _source(sources, "hub", _fetch_hub, "the rows of a data set of the Hugging Face hub")
    parser.add_argument("dataset", metavar="DATASET", help="e.g. owner/name; HF_ENDPOINT names a mirror")
    parser.add_argument("--config", metavar="NAME", help="configuration, where there are several")
    parser.add_argument("--split", default="train", metavar="NAME", help="(default: train)")
    parser.add_argument("--revision", metavar="R", help="branch, tag or commit (default: the newest)")
    parser.add_argument("--columns", metavar="A,B,...", help="these columns only")


def _source(sources: Any, name: str, call: Callable[[argparse.Namespace], int], text: str) -> argparse.ArgumentParser:
    parser = _verb(sources, name, call, text)
    parser.add_argument("-o", dest="out", required=True, metavar="OUT", help="file to make (JSON Lines)")
    parser.add_argument("--restart", action="store_true", help="begin anew, where an earlier fetch was cut off")
    parser.add_argument("--force", action="store_true", help="overwrite what exists")
    return parser


def _fetch_openreview(options: argparse.Namespace) -> int:
    from abstag.sources import collect
    from abstag.sources.openreview import venue

    source = venue(options.venue, url=options.url)
    print(collect(source, Path(options.out), restart=options.restart, force=options.force))
    return 0


def _fetch_arxiv(options: argparse.Namespace) -> int:
    from abstag.sources import collect
    from abstag.sources.arxiv import search
    from abstag.sources.oai import harvest

    if (options.query is None) == (options.set is None):
        raise ConfigError("name a QUERY or a --set, one of them", where="fetch arxiv")
    if options.query is None:
        source = harvest(options.set, since=options.since, until=options.until, url=options.url)
    elif options.since or options.until:
        remedy = "in a query write AND submittedDate:[202401010000 TO 202401312359]"
        raise ConfigError("only a --set has --from and --until", where="fetch arxiv", remedy=remedy)
    else:
        source = search(options.query, url=options.url)
    print(collect(source, Path(options.out), restart=options.restart, force=options.force))
    return 0


def _fetch_hub(options: argparse.Namespace) -> int:
    from abstag.sources import collect
    from abstag.sources.hub import rows

    columns = tuple(filter(None, map(str.strip, (options.columns or "").split(","))))
    asked = {"config": options.config, "split": options.split, "revision": options.revision}
    source = rows(options.dataset, columns=columns, **asked)
    print(collect(source, Path(options.out), restart=options.restart, force=options.force))
    return 0


def _add_ingest(verbs: Any) -> None:
    parser = _verb(verbs, "ingest", _ingest, "read dumps and labels into a corpus folder")
    _add_paths(parser)
    parser.add_argument("-o", dest="out", required=True, metavar="DIR", help="folder to make")
    parser.add_argument("--labels", action="append", default=[], metavar="FILE", help="label file (CSV); repeatable")
    parser.add_argument("--taxonomy", metavar="FILE", help="areas other than the shipped ones (YAML)")
    parser.add_argument("--json", action="store_true", help="print the manifest")
    _add_strict(parser)


def _ingest(options: argparse.Namespace) -> int:
    from abstag.ingest import ingest, manifest_summary
    from abstag.readers import parse_mapping
    from abstag.report.table import sources_table
    from abstag.taxonomy import load_taxonomy

    manifest = ingest(
        options.paths,
        Path(options.out),
        taxonomy=load_taxonomy(options.taxonomy),
        labels=options.labels,
        format=options.format,
        mapping=parse_mapping(options.map),
        force=options.force,
    )
    shown = f"{manifest_summary(manifest)}\n\n{sources_table(manifest['sources'])}"
    print(_json(manifest) if options.json else shown)
    if options.strict:
        _refuse_rejects(manifest["rejects"], Path(options.out) / "rejects.jsonl")
    return 0


def _add_describe(verbs: Any) -> None:
    parser = _verb(verbs, "describe", _describe, "say what is in an ingested corpus")
    parser.add_argument("corpus", metavar="DIR", help="folder made by ingest")
    parser.add_argument("--json", action="store_true")


def _describe(options: argparse.Namespace) -> int:
    from abstag.describe import describe
    from abstag.report.table import description

    found = describe(Path(options.corpus))
    print(_json(found) if options.json else description(found))
    return 0


def _add_run(verbs: Any) -> None:
    text = "run one configuration, or many with -m or an experiment (arguments are Hydra's)"
    parser = _verb(verbs, "run", _run, text)
    parser.usage = "abstag run [+experiment=NAME] [group=value] [key=value] [-m] [--retry] [--cfg job] [--info]"


def _run(options: argparse.Namespace) -> int:
    from abstag.config import launch
    from abstag.report.table import runs_table

    launched = launch(options.rest)
    if launched.results:
        print(runs_table(launched.results, looks=launched.looks()))
    if launched.many and launched.failures:
        jobs = len(launched.results) + len(launched.failures)
        print(f"abstag: {len(launched.failures)} of {jobs} jobs failed, see above", file=sys.stderr)
    elif launched.failures:
        print(f"abstag: {launched.failures[0]}", file=sys.stderr)
    return int(bool(launched.failures))


def _add_status(verbs: Any) -> None:
    parser = _verb(verbs, "status", _status, "say how a sweep stands: done, running, failed, left, stale, time left")
    parser.add_argument("sweep", metavar="SWEEP", help="its name: that of the experiment, or what name= says")
    parser.add_argument("--json", action="store_true")
    _add_store(parser)


def _status(options: argparse.Namespace) -> int:
    from abstag.report.table import sweep_table
    from abstag.store import Store
    from abstag.sweep import Sweep, status

    found = status(Sweep(Store(Path(options.runs_dir)), options.sweep))
    print(_json(found) if options.json else sweep_table(found))
    return 0


def _add_runs(verbs: Any) -> None:
    parser = _verb(verbs, "runs", _runs, "list the runs that are kept")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true")
    text = "one tidy table on standard output, a row for each run and part: csv, parquet, json, markdown, latex"
    form.add_argument("--format", choices=("csv", "parquet", "json", "markdown", "latex"), metavar="F", help=text)
    parser.add_argument("--experiment", metavar="NAME")
    parser.add_argument("--failed", action="store_true", help="failed runs only")
    _add_store(parser)


def _runs(options: argparse.Namespace) -> int:
    from abstag.report.table import failures, runs_table
    from abstag.store import Store, row
    from abstag.sweep import stale_runs

    store = Store(Path(options.runs_dir))
    if not store.root.is_dir():
        remedy = "`abstag run` makes one, --runs-dir names another"
        raise ArtifactError("there is no folder of runs", where=store.root, remedy=remedy)
    results = [
        result
        for result in store.results()
        if options.experiment in (None, result.experiment) and (not options.failed or result.status == "failed")
    ]
    if options.json:
        print(_json([row(result) for result in results]))
    elif options.format:
        _print_table(results, options.format)
    else:
        print(failures(results) if options.failed else runs_table(results))
        failed = sum(result.status == "failed" for result in results)
        if failed and not options.failed:
            print(f"\n{failed} failed runs are not shown; --failed lists them")
        for run, reasons in stale_runs(store, results).items():
            print(f"\n{run} is stale: {'; '.join(reasons)}")
    return 0


def _print_table(results: "Sequence[RunResult]", form: str) -> None:
    from abstag.report.runs import FORMATS
    from abstag.tidy import rows

    if not results:
        raise DataError("no run to tell of", where="runs", remedy="`abstag run` makes one")
    if form == "parquet" and sys.stdout.isatty():
        raise ConfigError("a terminal shows no Parquet", where="--format", remedy="redirect it to a file")
    sys.stdout.buffer.write(FORMATS[form](rows(results)))


def _add_reproduce(verbs: Any) -> None:
    parser = _verb(verbs, "reproduce", _reproduce, "do a run again, and say whether its figures are the same")
    text = "run id, unique prefix of one, run folder, a result.json of any name, or a folder of such files"
    parser.add_argument("run", metavar="RUN", help=text)
    text = "what a run does not keep: data.path=DIR where its corpus is not the embedded one, classifier.path=FILE, ..."
    parser.add_argument("places", nargs="*", metavar="key=value", help=text)
    parser.add_argument("--json", action="store_true")
    _add_store(parser)


def _reproduce(options: argparse.Namespace) -> int:
    from abstag.reproduce import reproduce
    from abstag.store import Store

    found = []
    for reproduction in reproduce(options.run, Store(Path(options.runs_dir)), options.places):
        found.append(reproduction)
        if not options.json:
            print(reproduction, flush=True)
    if options.json:
        print(_json([reproduction.to_json() for reproduction in found]))
    return int(any(reproduction.verdict == "different" for reproduction in found))


def _add_compare(verbs: Any) -> None:
    parser = _verb(verbs, "compare", _compare, "compare runs on the same papers, pair by pair")
    _add_choice(parser)
    text = "intervals and differences of average precision, ROC AUC, ECE and the automation share too (slower)"
    parser.add_argument("--all-intervals", action="store_true", help=text)
    parser.add_argument("--json", action="store_true")


def _compare(options: argparse.Namespace) -> int:
    from abstag.compare import compare, looks
    from abstag.report.table import configurations_table, pairs_table, runs_table
    from abstag.store import row

    folders = _chosen(options)
    compared = compare(folders, part=options.part, all_intervals=options.all_intervals)
    if options.json:
        print(_json(compared | {"runs": [row(result) for result in compared["runs"]]}))
    else:
        tables = configurations_table(compared["configurations"]), pairs_table(compared["pairs"])
        print(runs_table(compared["runs"], looks=looks(folders)), *tables, sep="\n\n")
    return 0


def _add_report(verbs: Any) -> None:
    parser = _verb(verbs, "report", _report, "write runs on the same papers as Markdown, CSV, LaTeX and one HTML page")
    _add_choice(parser)
    parser.add_argument("-o", dest="out", required=True, metavar="DIR", help="folder for report.* and table.*")
    parser.add_argument(
        "--no-text", action="store_true", help="leave titles and abstracts out; ids, scores and terms stay"
    )
    parser.add_argument("--force", action="store_true", help="overwrite an earlier report")


def _report(options: argparse.Namespace) -> int:
    from abstag.report.write import write_report

    folders = _chosen(options)
    print(write_report(folders, Path(options.out), part=options.part, text=not options.no_text, force=options.force))
    return 0


def _add_choice(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", nargs="*", metavar="RUN", help="run id, unique prefix of one, or folder")
    parser.add_argument("--experiment", metavar="NAME", help="all finished runs of an experiment")
    parser.add_argument("--part", metavar="P", help="part of the test papers, e.g. iclr-test, random, all")
    _add_store(parser)


def _chosen(options: argparse.Namespace) -> list[Path]:
    """Return the folders of the runs that the arguments name, each once."""
    from abstag.store import Store

    store = Store(Path(options.runs_dir))
    folders = [store.find(run) for run in options.runs]
    if options.experiment:
        folders += [store.folder(result.id) for result in store.of_experiment(options.experiment)]
    return list({folder.resolve(): folder for folder in folders}.values())


def _add_tag(verbs: Any) -> None:
    parser = _verb(verbs, "tag", _tag, "tag every paper of a dump")
    _add_paths(parser)
    formats = ".jsonl, .csv, .tsv, .xlsx, .parquet, .md, .bib, .ris; the text ones also with .gz"
    parser.add_argument(
        "-o", dest="out", metavar="OUT", help=f"file to make: {formats} (default: JSON Lines on stdout)"
    )
    text = "run id, unique prefix, or bundle folder (default: the tagger that ships with abstag)"
    parser.add_argument("--bundle", metavar="RUN|DIR", help=text)
    parser.add_argument("--areas", metavar="A,B,...", help="tell of these areas only")
    text = "expected share of right tags that each area must reach; doubtful tags are left to review"
    parser.add_argument("--min-precision", type=float, metavar="P", help=text)
    parser.add_argument("--explain", action="store_true", help="add the terms that moved each score most")
    text = "leave probabilities as trained, do not adjust them to how common each area is in these dumps"
    parser.add_argument("--no-adjust", action="store_true", help=text)
    parser.add_argument(
        "--threads",
        type=int,
        metavar="N",
        help="processes that clean, score and decide (default: 1); of an encoder, its threads (default: all cores)",
    )
    text = "start anew, where an interrupted run with other dumps or another tagger has left its parts"
    parser.add_argument("--restart", action="store_true", help=text)
    _add_strict(parser)
    _add_store(parser)


def _tag(options: argparse.Namespace) -> int:
    from abstag.readers import parse_mapping
    from abstag.tagger import Choice, Reading, find_bundle, tag_dumps

    areas = tuple(filter(None, map(str.strip, (options.areas or "").split(","))))
    if options.areas is not None and not areas:
        raise ConfigError("no area is named", where="--areas", remedy="leave it out to be told of all")
    if options.threads is not None and options.threads < 1:
        raise ConfigError(f"{options.threads} is out of range", where="--threads", remedy="at least 1")
    summary = tag_dumps(
        options.paths,
        find_bundle(options.bundle, runs_dir=options.runs_dir),
        None if options.out in {None, "-"} else Path(options.out),
        reading=Reading(options.format, parse_mapping(options.map)),
        choice=Choice(areas, options.min_precision, not options.no_adjust, options.explain),
        threads=options.threads,
        restart=options.restart,
        force=options.force,
    )
    if not options.quiet:
        print(summary, file=sys.stderr)
    if summary.failed:
        what = f"{len(summary.failed)} of {summary.files_given} files could not be read to the end"
        raise DataError(f"{what}: {'; '.join(summary.failed.values())}")
    if summary.read == summary.decisions["reject"]:
        raise DataError(f"all {summary.read} records were rejected", where=", ".join(options.paths))
    if options.strict:
        _refuse_rejects(summary.decisions["reject"], options.out)
    return 0


def _add_eval(verbs: Any) -> None:
    parser = _verb(verbs, "eval", _eval, "measure a bundle on a labelled corpus")
    parser.add_argument("bundle", metavar="BUNDLE", help="run id, unique prefix, or bundle folder")
    parser.add_argument("corpus", metavar="CORPUS", help="folder made by ingest")
    parser.add_argument("--json", action="store_true")
    _add_store(parser)


def _eval(options: argparse.Namespace) -> int:
    from abstag.corpus import load_corpus
    from abstag.evaluation import evaluate_bundle
    from abstag.report.table import evaluation_table
    from abstag.tagger import find_bundle

    bundle = find_bundle(options.bundle, runs_dir=options.runs_dir)
    found = evaluate_bundle(bundle, load_corpus(Path(options.corpus)))
    print(_json(found) if options.json else evaluation_table(found))
    return 0


def _add_review(verbs: Any) -> None:
    text = "put tagged papers before a reviewer, and take the answers back as labels"
    steps = verbs.add_parser("review", help=text, description=text).add_subparsers(metavar="STEP", required=True)
    parser = _verb(steps, "export", _review_export, "write the tagged papers most worth a look into a sheet")
    _add_paths(parser)
    text = "output of tag on PATHs; that of other taggers on the same papers shows where they differ; repeatable"
    parser.add_argument("--tags", action="append", required=True, metavar="TAGS.jsonl", help=text)
    parser.add_argument("-o", dest="out", required=True, metavar="SHEET", help="file to make, .csv or .xlsx")
    parser.add_argument(
        "--top", type=int, default=200, metavar="N", help="papers, a tenth of them random (default: 200)"
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the random papers (default: 0)")
    text = "label file (CSV): leave out papers that were read or reviewed; repeatable"
    parser.add_argument("--labels", action="append", default=[], metavar="FILE", help=text)
    parser.add_argument("--taxonomy", metavar="FILE", help="areas other than the shipped ones (YAML)")
    parser = _verb(steps, "import", _review_import, "read a filled sheet into a label file; nonsense is refused by row")
    parser.add_argument("sheet", metavar="SHEET", help="filled sheet, as CSV or XLSX")
    text = "label file (CSV) to make, or of an earlier import, to add to"
    parser.add_argument("-o", dest="out", required=True, metavar="LABELS.csv", help=text)
    parser.add_argument("--by", metavar="NAME", help="reviewer of rows that name none")
    parser.add_argument("--date", metavar="YYYY-MM-DD", help="day of rows that say none (default: today)")
    parser.add_argument("--taxonomy", metavar="FILE", help="areas other than the shipped ones (YAML)")


def _review_export(options: argparse.Namespace) -> int:
    from abstag.readers import parse_mapping
    from abstag.review.export import export_sheet
    from abstag.taxonomy import load_taxonomy

    exported = export_sheet(
        options.paths,
        options.tags,
        Path(options.out),
        taxonomy=load_taxonomy(options.taxonomy),
        top=options.top,
        seed=options.seed,
        labels=options.labels,
        format=options.format,
        mapping=parse_mapping(options.map),
        force=options.force,
    )
    print(exported)
    return 0


def _review_import(options: argparse.Namespace) -> int:
    from datetime import date

    from abstag.review.answers import import_sheet
    from abstag.taxonomy import load_taxonomy

    answers = {"by": options.by, "on": options.date, "today": date.today()}
    imported = import_sheet(Path(options.sheet), Path(options.out), taxonomy=load_taxonomy(options.taxonomy), **answers)
    for refusal in imported.refused:
        print(f"abstag: {refusal}", file=sys.stderr)
    print(imported)
    return int(bool(imported.refused))


def _json(value: Any) -> str:
    from abstag.files import to_json

    return to_json(value, indent=2)
