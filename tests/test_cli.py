"""The command line: exit codes, what goes to which stream, what is imported, and the whole path on a fifth area."""

import ast
import json
import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

import abstag
from abstag.cli import main
from abstag.errors import ArtifactError
from abstag.resources import resource
from abstag.store import Store
from abstag.taxonomy import load_taxonomy
from tests.conftest import SHORT, Go, make_result, write_dump

SCHEMA = json.loads((Path(__file__).parents[1] / "docs" / "schemas" / "runs.json").read_text(encoding="utf-8"))
RUN_KEYS = SCHEMA["$defs"]["run"]["required"]
CONTRACT = "id status experiment classifier seed corpus metric_part metrics parts fit_seconds texts_per_second peak_mb"
PAIR_KEYS = (
    "a b metric part n difference low high p p_holm verdict text differs_in detectable needed untested seeds decides "
    "discordant level"
)


def python(code: str, *arguments: object, cwd: Path, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, timeout=120, **options)


IMPORTED = """
import sys
from abstag.cli import main
try:
    code = main(sys.argv[1:])
except SystemExit as error:
    code = error.code
print("\\n".join(sorted({name.partition(".")[0] for name in sys.modules})), file=sys.stderr)
sys.exit(code)
"""


def test_tagging_imports_no_training_library(demo_runs: Path, dump: Path, tmp_path: Path) -> None:
    done = python(IMPORTED, "tag", dump, "--bundle", "nb", "--runs-dir", demo_runs, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 80
    assert not {"sklearn", "datasets", "torch", "hydra", "omegaconf", "pandas"} & set(done.stderr.split())
    assert not list(tmp_path.iterdir())


def test_help_imports_nothing_heavy(tmp_path: Path) -> None:
    done = python(IMPORTED, "--help", cwd=tmp_path)
    assert done.returncode == 0
    heavy = {"numpy", "scipy", "sklearn", "hydra", "omegaconf", "datasets", "pyarrow", "torch", "pandas", "yaml"}
    assert not heavy & set(done.stderr.split())
    for verb in ("fetch", "ingest", "run", "runs", "compare", "tag", "eval"):
        assert f"\n    {verb} " in done.stdout


def test_version_and_usage(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, code in ((["--version"], 0), (["run", "--help"], 0), ([], 2), (["fly"], 2), (["tag"], 2)):
        with pytest.raises(SystemExit) as caught:
            main(arguments)
        assert caught.value.code == code
        captured = capsys.readouterr()
        assert bool(captured.out) == (code == 0)
        assert bool(captured.err) == (code == 2)
    with pytest.raises(SystemExit) as caught:
        main(["run", "--no-such-flag"])
    assert caught.value.code == 2


def test_module_can_be_run_and_writes_only_below_runs_dir(embedded: Path, tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "abstag",
        "run",
        "classifier=prior",
        f"data.path={embedded}",
        *SHORT,
        "runs_dir=my/runs",
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["my"]
    assert [path.name for path in (tmp_path / "my").iterdir()] == ["runs"]
    (run,) = (path.name for path in (tmp_path / "my" / "runs").glob("prior-*"))
    assert done.stdout.startswith("| classifier ")
    assert run in done.stdout
    assert "Intervals: bootstrap over duplicate groups." in done.stdout.splitlines()[-1]
    assert done.stderr == f"{run}: running\n"


def test_runs_dir_is_runs_by_default_and_holds_the_embedded_corpus(
    go: Go, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = go("run", "classifier=prior", *SHORT, code=0)
    assert [path.name for path in tmp_path.iterdir()] == ["runs"]
    assert "528 papers (part all) of embedded " in ran.out
    assert {path.name.partition("-")[0] for path in (tmp_path / "runs").iterdir()} == {
        *(".corpus", ".hydra", ".locks", "looks.jsonl", "prior")
    }
    assert [run["classifier"] for run in json.loads(go("runs", "--json", code=0).out)] == ["prior"]


def test_configuration_and_info_are_shown_and_nothing_runs(go: Go, tmp_path: Path) -> None:
    ran = go("run", "classifier=svm", f"runs_dir={tmp_path}/runs", "--cfg", "job", code=0)
    shown = yaml.safe_load(ran.out)
    assert shown["classifier"] == yaml.safe_load(resource("conf/classifier/svm.yaml").read_text(encoding="utf-8"))
    assert "Hydra" in go("run", f"runs_dir={tmp_path}/runs", "--info", code=0).out
    assert not list(tmp_path.iterdir())


def test_second_run_is_read_back(go: Go, demo_runs: Path, embedded: Path) -> None:
    arguments = ("run", "+experiment=embedded", "classifier=prior,keywords,nb", f"data.path={embedded}", *SHORT)
    before = {path: path.stat().st_mtime_ns for path in demo_runs.glob("*-*/*")}
    ran = go(*arguments, f"runs_dir={demo_runs}", code=0)
    assert {path: path.stat().st_mtime_ns for path in demo_runs.glob("*-*/*")} == before
    assert "looks at these test rows so far: 3" in ran.out
    assert all(f"| {path.parent.name} " in ran.out for path in before)


def test_errors_are_one_line_and_exit_1_and_debug_raises(go: Go, tmp_path: Path) -> None:
    for arguments in (
        ("run", "zzz=1", f"runs_dir={tmp_path}"),
        ("compare", "a", "b", "--runs-dir", tmp_path),
        ("tag", "x.jsonl", "--bundle", "a", "--runs-dir", tmp_path),
        ("eval", "a", tmp_path, "--runs-dir", tmp_path),
        ("ingest", "nowhere", "-o", tmp_path / "c"),
    ):
        ran = go(*arguments, code=1)
        assert ran.out == ""
        assert ran.err.startswith("abstag: ")
        assert ran.err.count("\n") == 1
    with pytest.raises(ArtifactError, match="no run begins with 'a'"):
        main(["--debug", "compare", "a", "b", "--runs-dir", str(tmp_path)])


def test_failed_run_is_exit_1_and_listed(go: Go, embedded: Path, tmp_path: Path) -> None:
    ran = go(
        "run", "classifier=prior", "metric_part=dev", f"data.path={embedded}", *SHORT, f"runs_dir={tmp_path}", code=1
    )
    assert ran.out == ""
    assert "no test paper is in part 'dev'; parts: all" in ran.err
    failed = json.loads(go("runs", "--json", "--failed", "--runs-dir", tmp_path, code=0).out)
    assert [(run["status"], run["metrics"], run["parts"]) for run in failed] == [("failed", {}, {})]
    assert "no test paper is in part 'dev'" in go("runs", "--failed", "--runs-dir", tmp_path, code=0).out
    shown = go("runs", "--runs-dir", tmp_path, code=0).out
    assert shown == "no finished run\n\n1 failed runs are not shown; --failed lists them\n"
    assert json.loads(go("runs", "--json", "--experiment", "other", "--runs-dir", tmp_path, code=0).out) == []


def test_runs_have_the_keys_of_the_contract(go: Go, demo_runs: Path) -> None:
    runs = json.loads(go("runs", "--json", "--experiment", "embedded", "--runs-dir", demo_runs, code=0).out)
    assert [run["classifier"] for run in runs] == ["prior", "keywords", "nb"]
    for run in runs:
        assert set(run) == set(RUN_KEYS) >= {*CONTRACT.split(), "looks"}
        assert run["corpus"].keys() == {"name", "fingerprint"}
        assert run["metrics"] == run["parts"]["all"]
        assert run["looks"] <= 3
    assert go("runs", "--runs-dir", demo_runs, code=0).out.startswith("| classifier ")


def test_undefined_is_null(go: Go, tmp_path: Path) -> None:
    nothing = make_result("x-1").parts["all"] | {"macro_f1": float("nan"), "interval": [float("nan"), float("inf")]}
    Store(tmp_path).save(make_result("x-1", parts={"all": nothing}, fit_seconds=None))
    ran = go("runs", "--json", "--runs-dir", tmp_path, code=0)
    assert "NaN" not in ran.out
    (run,) = json.loads(ran.out)
    assert run["metrics"]["macro_f1"] is None
    assert run["metrics"]["interval"] == [None, None]
    assert "–" in go("runs", "--runs-dir", tmp_path, code=0).out


def test_compare_prints_json_and_tables(go: Go, demo_runs: Path) -> None:
    found = json.loads(go("compare", "nb", "prior", "--json", "--runs-dir", demo_runs, code=0).out)
    assert found.keys() == {"runs", "pairs", "configurations"}
    assert [set(run) for run in found["runs"]] == [set(RUN_KEYS)] * 2
    assert [(pair["a"], pair["b"]) for pair in found["pairs"]] == [("nb", "prior")] * (2 + 4)
    assert all(set(pair) == set(PAIR_KEYS.split()) for pair in found["pairs"])
    folder = next(demo_runs.glob("nb-*"))
    same = go("compare", folder, folder.name, "prior", "--json", "--runs-dir", demo_runs, code=0).out
    assert json.loads(same) == found
    table = go("compare", "nb", "prior", "--runs-dir", demo_runs, code=0).out
    assert "p (Holm)" in table
    assert "nb better" in table
    ran = go("compare", "--experiment", "none", "--runs-dir", demo_runs, code=1)
    assert "no finished run of experiment 'none'; known: embedded" in ran.err


def test_eval_prints_json_and_table(go: Go, demo_runs: Path, papers: list[dict[str, Any]], tmp_path: Path) -> None:
    new = [
        paper | {"id": f"n{n}", "title": f"New {n}", "abstract": paper["abstract"][n:400]}
        for n, paper in enumerate(papers)
    ]
    go("ingest", write_dump(tmp_path / "p.jsonl", [*new, papers[0] | {"id": "x"}]), "-o", tmp_path / "c", code=0)
    found = json.loads(go("eval", "nb", tmp_path / "c", "--json", "--runs-dir", demo_runs, code=0).out)
    assert (found["scored"], found["left_out"], found["left_out_ids"]) == (80, 1, ["x"])
    table = go("eval", "nb", tmp_path / "c", "--runs-dir", demo_runs, code=0).out
    assert "80 papers scored, 1 left out because the bundle was trained on them" in table


@pytest.mark.parametrize("small", [True, False], ids=["runs", "tag"])
def test_broken_pipe_is_no_traceback(small: bool, demo_runs: Path, dump: Path, tmp_path: Path) -> None:
    big = write_dump(tmp_path / "big.jsonl", [json.loads(line) for line in dump.read_text().splitlines()] * 5)
    arguments = ["runs"] if small else ["tag", str(big), "--bundle", "nb"]
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "abstag", *arguments, "--runs-dir", str(demo_runs)]
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    done = subprocess.run(
        command, stdout=writer, stderr=subprocess.PIPE, text=True, check=False, timeout=60, env=buffered
    )
    os.close(writer)
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr
    assert done.returncode in {0, 1}
    assert done.stderr.splitlines()[-1] == "abstag: the reader of the output went away; what it read stands"


def test_quiet_silences_what_is_no_error(go: Go, embedded: Path, demo_runs: Path) -> None:
    arguments = ("run", "classifier=prior", "name=demo", f"data.path={embedded}", *SHORT, f"runs_dir={demo_runs}")
    for words, level in ((("--quiet",), logging.ERROR), ((), logging.INFO)):
        assert go(*words, *arguments, code=0).err == ""
        assert logging.getLogger("abstag").level == level


SCIENCE = {5, 6, 8, 14, 15, 17, 26, 29, 33, 35, 36}


def test_whole_path_on_a_fifth_area(go: Go, dump: Path, tmp_path: Path) -> None:
    taxonomy = yaml.safe_load(resource("data/taxonomy.yaml").read_text(encoding="utf-8"))
    taxonomy["areas"].append({"id": "science", "name": "Science", "keywords": ["molecule", "protein", "patient"]})
    areas, labels = tmp_path / "areas.yaml", tmp_path / "science.csv"
    areas.write_text(yaml.safe_dump(taxonomy, sort_keys=False), encoding="utf-8")
    rows = [f"abstag-{n:03d},{'science' if n in SCIENCE else ''},science" for n in range(1, 51)]
    labels.write_text("\n".join(["id,areas,judged", *rows]) + "\n", encoding="utf-8")
    five, runs = tmp_path / "five", tmp_path / "runs"
    go("ingest", dump, "--taxonomy", areas, "--labels", labels, "-o", five, code=0)
    ran = go("run", f"data.path={five}", "classifier=nb", *SHORT, f"runs_dir={runs}", code=0)
    assert "80 papers" in ran.out
    (run,) = json.loads(go("runs", "--json", "--runs-dir", runs, code=0).out)
    measured = run["metrics"]["areas"]
    assert [*measured] == ["llm", "graphs", "diffusion", "optimization", "science"]
    assert (measured["science"]["n"], measured["science"]["positives"]) == (50, len(SCIENCE))
    assert {name: row["n"] for name, row in measured.items() if name != "science"} == dict.fromkeys([*measured][:4], 80)
    lines = [
        json.loads(line) for line in go("tag", dump, "--bundle", "nb", "--runs-dir", runs, code=0).out.splitlines()
    ]
    assert all([*line["scores"]] == [*measured] for line in lines)
    science = [line["scores"]["science"] for line in lines[:50]]
    inside = [score for n, score in enumerate(science, start=1) if n in SCIENCE]
    outside = [score for n, score in enumerate(science, start=1) if n not in SCIENCE]
    assert min(inside) > sum(outside) / len(outside)


def test_area_ids_stand_in_no_source_file() -> None:
    ids = set(load_taxonomy().ids)
    for path in Path(abstag.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            assert not (isinstance(node, ast.Constant) and node.value in ids), f"{path.name}:{node.lineno}"


def test_output_of_an_unknown_format_is_refused_before_anything_is_done(
    go: Go, demo_runs: Path, dump: Path, tmp_path: Path
) -> None:
    for name in ("tags.docx", "tags.parquet.gz"):
        ran = go("tag", dump, "-o", tmp_path / name, "--bundle", "nb", "--runs-dir", demo_runs, code=1)
        assert ran.err.startswith(f"abstag: {tmp_path / name}: ")
        assert ran.err.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_runs_of_a_missing_folder_are_an_error(go: Go, tmp_path: Path) -> None:
    ran = go("runs", "--runs-dir", tmp_path / "none", code=1)
    assert ran.err == (
        f"abstag: {tmp_path / 'none'}: there is no folder of runs; `abstag run` makes one, --runs-dir names another\n"
    )


def shell(line: str, *, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["bash", "-c", line], cwd=cwd, capture_output=True, text=True, check=False, timeout=120)


@pytest.mark.parametrize(
    ("redirected", "message"),
    [
        ("tag - --bundle nb <&-", "standard input: is closed; name a file, or pipe the dump in"),
        ("tag {dump} --bundle nb >&-", "standard output: is closed; redirect it to a file or /dev/null"),
        ("runs >&-", "standard output: is closed; redirect it to a file or /dev/null"),
        ("runs --json > out", "standard output: cannot be used: File too large; make room, or choose another place"),
        ("tag {dump} --bundle nb --no-adjust > out", "standard output: cannot be used: File too large; make room, or"),
        ("tag {dump} --bundle nb -o out", "out.parts/part-"),
        ("ingest {dump} -o new/out", "new/out: cannot be written: "),
    ],
)
def test_streams_that_are_closed_or_full_are_one_line(
    redirected: str, message: str, demo_runs: Path, dump: Path, tmp_path: Path
) -> None:
    store = "" if redirected.startswith("ingest") else f"--runs-dir {demo_runs}"
    command = f"{sys.executable} -m abstag --quiet {redirected.format(dump=dump)} {store}"
    done = shell(f"ulimit -f 1; {command} 2> >(cat >&2)" if "out" in redirected else command, cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    assert done.stderr.startswith(f"abstag: {message}")
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "new").exists()


def test_closed_stderr_leaves_stdout_alone(demo_runs: Path, dump: Path, tmp_path: Path) -> None:
    done = shell(f"{sys.executable} -m abstag tag {dump} --bundle nb --runs-dir {demo_runs} 2>&-", cwd=tmp_path)
    lines = [json.loads(line)["n"] for line in done.stdout.splitlines()]
    assert lines == [*range(1, len(lines) + 1)] != []


def test_name_that_is_too_long_is_one_line_with_remedy(go: Go, demo_runs: Path, dump: Path) -> None:
    long = "x" * 300
    for arguments in (
        ("tag", dump, "--bundle", long),
        ("tag", dump, "--bundle", "nb", "--runs-dir", demo_runs, "-o", long),
        ("runs", "--runs-dir", long),
        ("ingest", dump, "-o", long),
    ):
        ran = go(*arguments, code=1)
        assert ran.err.endswith(": File name too long; choose a shorter name\n")
        assert ran.err.startswith(f"abstag: {long}")


def test_a_terminal_that_is_not_utf_8_gets_escapes(embedded: Path) -> None:
    command = [sys.executable, "-m", "abstag", "describe", str(embedded)]
    ran = subprocess.run(command, capture_output=True, env=os.environ | {"PYTHONIOENCODING": "ascii"}, check=False)
    assert ran.returncode == 0
    assert b"528" not in ran.stderr
    assert b"read 80 = 80 records" in ran.stdout
