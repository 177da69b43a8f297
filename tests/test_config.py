"""Every configuration composes and builds; whatever is misspelt is named, with the remedy."""

import inspect
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hydra import compose, initialize_config_dir
from hydra.core.config_store import ConfigStore

from abstag.classifiers.base import Classifier
from abstag.config import Config, DataConfig, build, embedded_corpus, launch
from abstag.decision import Policy
from abstag.errors import AbstagError, ConfigError
from abstag.files import read_json, write_json
from abstag.resources import resource
from abstag.runner import Experiment
from abstag.store import Store
from tests.conftest import SHORT, Go

CONF = resource("conf")
GROUPS = {
    group: sorted(path.stem for path in (CONF / group).glob("*.yaml"))
    for group in ("data", "split", "classifier", "decision", "experiment")
}
OPTIONS = [(group, name) for group, names in GROUPS.items() for name in names if group != "experiment"]


def yaml_of(group: str, name: str) -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load((CONF / group / f"{name}.yaml").read_text(encoding="utf-8"))
    return content


def target_of(group: str, name: str) -> Any:
    module, _, attribute = yaml_of(group, name)["_target_"].rpartition(".")
    return getattr(__import__(module, fromlist=[attribute]), attribute)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("config") / "runs"


@pytest.fixture(scope="module")
def scores_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("scores") / "s.csv"
    path.write_text("id,area,score\n", encoding="utf-8")
    return path


def built(*overrides: object) -> Experiment:
    ConfigStore.instance().store(name="schema", node=Config)
    with initialize_config_dir(str(CONF), version_base="1.3"):
        config = compose("config", [str(override) for override in overrides])
    return build(config, "x")


def refusal(*arguments: object) -> str:
    """Return the one line with which a launch is refused."""
    try:
        launched = launch([str(argument) for argument in arguments])
    except AbstagError as error:
        line = str(error)
    else:
        assert not launched.results
        (line,) = launched.failures
    assert "\n" not in line
    return line


def test_groups_are_there() -> None:
    folders = {path.name for path in CONF.iterdir() if path.is_dir()}
    assert folders == {*GROUPS, "hydra"}
    assert all(GROUPS.values())


@pytest.mark.parametrize(("group", "name"), OPTIONS, ids=lambda value: value)
def test_every_option_composes_and_builds(group: str, name: str, embedded: Path, runs: Path, scores_file: Path) -> None:
    extra = [f"classifier.path={scores_file}"] if name == "scores" else []
    experiment = built(f"{group}={name}", f"data.path={embedded}", f"runs_dir={runs}", *extra)
    assert isinstance(experiment.classifier, Classifier)
    if group in {"classifier", "split"}:
        found = experiment.classifier if group == "classifier" else experiment.splitter
        assert type(found) is target_of(group, name)


@pytest.mark.parametrize(("group", "name"), [pair for pair in OPTIONS if pair[0] in {"split", "classifier"}])
def test_keys_are_the_parameters_of_the_constructor(group: str, name: str) -> None:
    parameters = inspect.signature(target_of(group, name)).parameters
    assert yaml_of(group, name).keys() - {"_target_"} == set(parameters)


@pytest.mark.parametrize("name", GROUPS["decision"])
def test_keys_of_decisions_are_those_of_the_policy(name: str) -> None:
    assert yaml_of("decision", name).keys() == set(inspect.signature(Policy).parameters)


def test_keys_of_data_and_of_the_root_are_those_of_the_schema() -> None:
    assert yaml_of("data", "read").keys() == set(inspect.signature(DataConfig).parameters)
    root = yaml.safe_load((CONF / "config.yaml").read_text(encoding="utf-8")).keys() - {"defaults", "hydra"}
    assert root | {"data", "split", "classifier", "decision"} == set(inspect.signature(Config).parameters)


def test_declared_data_override_only_what_differs(embedded: Path) -> None:
    training = built("data=declared", f"data.path={embedded}").training
    own = yaml_of("data", "declared")
    assert training.weights == yaml_of("data", "read")["weights"] | own["weights"]
    assert training.weights["declared"] == own["weights"]["declared"] > 0
    assert training.declared_negatives == own["declared_negatives"]


@pytest.mark.parametrize("name", GROUPS["experiment"])
def test_every_experiment_runs_cut_short(name: str, parted: Path, runs: Path) -> None:
    chosen = [] if name == "choose" else ["classifier=prior"]
    folded = str(yaml_of("experiment", name).get("defaults")).count("split") == 0 or name == "choose"
    short = [word for word in SHORT if (folded and name != "ladder") or not word.startswith("split.")]
    swept = yaml_of("experiment", name)["hydra"].get("sweeper", {}).get("params", {})
    extra = [f"{key}={values.split(',')[-1]}" for key, values in swept.items() if key != "classifier"]
    extra += ["classifier=prior"] if name == "choose" else []
    launched = launch([f"+experiment={name}", *chosen, *extra, *short, f"data.path={parted}", f"runs_dir={runs}"])
    assert launched.failures == []
    assert launched.many
    assert [(result.experiment, result.classifier) for result in launched.results] == [(name, "prior")]


def test_experiment_demo_names_its_classifiers_and_the_command_line_replaces_them(go: Go) -> None:
    written = yaml_of("experiment", "demo")["hydra"]["sweeper"]["params"]["classifier"]
    assert set(written.split(",")) <= set(GROUPS["classifier"])


@pytest.mark.parametrize(
    "arguments",
    [
        ("-m", "classifier=prior", "seed=0,1"),
        ("classifier=prior", "-m", "seed=0,1"),
        ("classifier=prior", "seed=0,1", "--multirun"),
    ],
    ids=["first", "between", "last"],
)
def test_sweep_with_its_flag_in_any_place(arguments: tuple[str, ...], embedded: Path, runs: Path) -> None:
    launched = launch([*arguments, *SHORT, f"data.path={embedded}", f"runs_dir={runs}"])
    assert launched.many
    assert [result.seed for result in launched.results] == [0, 1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["classifer=nb"], "unknown key 'classifer'; did you mean 'classifier'?"),
        (["data.pth=x"], "unknown key 'data.pth'; did you mean 'data.path'?"),
        (["decision.fold=3"], "unknown key 'decision.fold'; did you mean 'decision.folds'?"),
        (["zzz=1"], "unknown key 'zzz'; `abstag run --cfg job` shows all keys"),
        (["+classifier.CC=1"], "classifier: unknown key 'CC'; did you mean 'C'?"),
        (["classifier=forest"], "there is no classifier 'forest'; known: distilled, embed_logreg, ensemble, keywords"),
        (["split=kfolds"], "there is no split 'kfolds'; known: fixed, holdout, kfold, venue, year"),
        (["+experiment=foo"], "there is no experiment 'foo'; known: baselines, calibration, choose, demo"),
        (["seed=abc"], "seed: Value 'abc' of type 'str' could not be converted to Integer"),
        (["data.weights.read=much"], "data.weights.read: Value 'much' of type 'str' could not be converted to Float"),
        (["data.weights.read=-1"], "data.weights.read: -1.0 is no weight; a finite number, at least 0, is"),
        (["data.weights.read=inf"], "data.weights.read: inf is no weight"),
        (["data.declared_negatives=-1"], "data.declared_negatives: -1.0 is no weight"),
        (["data.declared_negatives=nan"], "data.declared_negatives: nan is no weight"),
        (["~split"], "split: Missing mandatory value: split"),
        (["~seed"], "seed: Missing mandatory value: seed"),
        (["seed=${foo}"], "seed: Interpolation key 'foo' not found"),
        (["data.path=" + "x" * 300], "x/manifest.json: cannot be used: File name too long; choose a shorter name"),
        (["+data.weights.rumour=1"], "data.weights: unknown label source 'rumour'; known: review, read, "),
        (["split.folds=two"], "split.folds: 'two' is not of type int"),
        (["split.folds=2.5"], "split.folds: 2.5 is not of type int"),
        (["classifier.C=true"], "classifier.C: True is not of type float"),
        (["classifier.balanced=1"], "classifier.balanced: 1 is not of type bool"),
        (["split=fixed", "split.test_parts=test"], "split.test_parts: 'test' is not of type sequence"),
        (["decision.folds=1"], "decision.folds: 1 is out of range"),
        (["decision.method=guess"], "decision.method: 'guess' is out of range"),
        (["~split.test_from", "split=year"], "split: 'test_from' is missing"),
        (["~classifier._target_"], "classifier: a mapping with `_target_` is needed"),
        (["classifier._target_=os.system"], "classifier._target_: 'os.system' is outside abstag; add its package"),
        (["split._target_=abstagx.Split"], "split._target_: 'abstagx.Split' is outside abstag; add its package"),
        (["classifier=prior", "classifier._target_=abstag.splits.KFold"], "KFold is no abstag Classifier"),
        (["data.path=nowhere"], "nowhere: no ingested corpus here; make one with `abstag ingest PATH... -o DIR`"),
        (["data.taxonomy=no.yaml"], "no.yaml: "),
        (["classifier=scores"], "classifier.path: no file is named; classifier.path=SCORES.csv"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)  # fmt: skip
def test_mistakes_are_named_in_one_line(
    arguments: list[str], message: str, runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = refusal(*arguments, f"runs_dir={runs}")
    assert message in line
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("sweep", [(), ("-m",)], ids=["one", "many"])
@pytest.mark.parametrize(("value", "message"), [("", "is empty; name a folder"), ("file", "file is no folder; choose")])
def test_runs_dir_that_can_be_no_folder_is_refused_before_anything_is_made(
    sweep: tuple[str, ...], value: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    assert refusal(*sweep, "classifier=prior", f"runs_dir={value}").startswith(f"runs_dir: {message}")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize(
    ("argument", "near"),
    [("classifier.balance=true", "balanced"), ("classifier.c=1", "C"), ("split.fold=3", "folds")],
)
def test_misspelt_keys_below_classifier_and_split_get_the_key_suggested(argument: str, near: str, runs: Path) -> None:
    assert f"{near}'?" in refusal(argument, f"runs_dir={runs}")


@pytest.mark.parametrize("word", ["split=null", "=3"])
def test_overrides_that_hydra_chokes_on_are_one_line(word: str, runs: Path) -> None:
    assert refusal(word, f"runs_dir={runs}")


@pytest.mark.parametrize(
    "target",
    ["abstag.classifiers.linear", "abstag.__version__", "abstag.classifiers.base.Classifier", "abstag.cli.main"],
)
def test_targets_that_are_no_classifier_class_are_refused_unopened(target: str, embedded: Path, runs: Path) -> None:
    line = refusal("classifier=prior", f"classifier._target_={target}", f"data.path={embedded}", f"runs_dir={runs}")
    assert line.startswith("classifier._target_: ")


def test_target_that_is_no_splitter_is_refused(embedded: Path, runs: Path) -> None:
    arguments = ("split=fixed", "split._target_=abstag.classifiers.prior.Prior", "~split.test_parts")
    assert refusal(*arguments, f"data.path={embedded}", f"runs_dir={runs}").startswith("split._target_: ")


@pytest.mark.parametrize("words", [("split=fixed", "split.test_parts=[1]"), ("split=venue", "split.test_venues=[1]")])
def test_list_items_of_the_wrong_type_are_named(words: tuple[str, ...], embedded: Path, runs: Path) -> None:
    line = refusal(*words, f"data.path={embedded}", f"runs_dir={runs}")
    assert words[1].partition("=")[0] in line
    assert "TypeError" not in line


@pytest.mark.parametrize("word", ["seed=-1", "split.folds=1", "classifier.C=-1", "classifier.min_df=-1"])
def test_values_out_of_range_name_their_key(word: str, embedded: Path, runs: Path) -> None:
    line = refusal(
        word, *(short for short in SHORT if short[:5] != word[:5]), f"data.path={embedded}", f"runs_dir={runs}"
    )
    assert word.partition("=")[0] in line


def test_identity_knows_numbers_and_seed_but_no_paths(embedded: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(embedded, tmp_path / "copy")
    same = [
        ("classifier.C=1", f"data.path={embedded}"),
        ("classifier.C=1.0", f"data.path={embedded}"),
        ("classifier.C=1", f"data.path={copy}", f"runs_dir={tmp_path}/other"),
        ("classifier.C=1", f"data.path={embedded}", f"data.taxonomy={resource('data/taxonomy.yaml')}"),
        ("classifier.C=1", f"data.path={embedded}", "plugins=[x]"),
    ]
    assert len({built(*overrides).id for overrides in same}) == 1
    others = [
        "seed=1",
        "classifier.C=2",
        "split.folds=3",
        "decision.right=0.9",
        "name=other",
        "metric_part=x",
        "data=declared",
    ]
    ids = {built("classifier.C=1", f"data.path={embedded}", other).id for other in others}
    assert len(ids | {built(*same[0]).id}) == len(others) + 1


def test_launch_leaves_arguments_and_environment_as_they_were(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    before = list(sys.argv)
    monkeypatch.delenv("HYDRA_FULL_ERROR", raising=False)
    refusal("zzz=1", f"runs_dir={runs}")
    assert sys.argv == before
    assert "HYDRA_FULL_ERROR" not in os.environ
    monkeypatch.setenv("HYDRA_FULL_ERROR", "0")
    refusal("zzz=1", f"runs_dir={runs}")
    assert os.environ["HYDRA_FULL_ERROR"] == "0"


def test_embedded_corpus_of_another_version_is_ingested_again(tmp_path: Path) -> None:
    folder = embedded_corpus(tmp_path)
    assert folder.is_relative_to(tmp_path)
    manifest = read_json(folder / "manifest.json")
    write_json(folder / "manifest.json", manifest | {"version": "0.0.0", "fingerprint": "stale"})
    assert read_json(embedded_corpus(tmp_path) / "manifest.json") == manifest
    for damage in ("[]", "{", "[" * 100_000):
        (folder / "manifest.json").write_text(damage)
        assert read_json(embedded_corpus(tmp_path) / "manifest.json") == manifest


PLUGIN = '''
from abstag.classifiers.keywords import Keywords


class Mine(Keywords):
    """Keywords by another name."""

    def __init__(self, title_weight: float = 3.0, broken: bool = False) -> None:
        super().__init__(title_weight)
        self.broken = broken

    def _fit(self, documents, targets, taxonomy):
        if self.broken:
            raise RuntimeError("boom")
        super()._fit(documents, targets, taxonomy)
'''


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package on the path with a classifier, and the folder of its configurations."""
    import sys

    package = tmp_path / "path" / "myplugin"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "mine.py").write_text(PLUGIN)
    conf = tmp_path / "myconf"
    (conf / "classifier").mkdir(parents=True)
    for name, broken in (("mine", "false"), ("broken", "true")):
        text = f"_target_: myplugin.mine.Mine\ntitle_weight: 2\nbroken: {broken}\n"
        (conf / "classifier" / f"{name}.yaml").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path / "path"))
    yield conf
    for name in [name for name in sys.modules if name.partition(".")[0] == "myplugin"]:
        del sys.modules[name]


def test_plugin_is_refused_until_named(plugin: Path, embedded: Path, runs: Path) -> None:
    arguments = ["--config-dir", str(plugin), "classifier=mine", f"data.path={embedded}", f"runs_dir={runs}", *SHORT]
    assert "'myplugin.mine.Mine' is outside abstag; add its package to plugins" in refusal(*arguments)
    launched = launch([*arguments, "plugins=[myplugin]"])
    assert [result.classifier for result in launched.results] == ["mine"]
    assert launched.results[0].config["classifier"]["title_weight"] == 2


@pytest.mark.parametrize("where", ["__init__", "check", "fingerprint", "module"])
def test_plugin_that_cannot_be_built_is_named_in_one_line(
    where: str, plugin: Path, runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    raising = 'raise OSError(5, "boom")' if where == "check" else 'raise RuntimeError("boom")'
    method = f"\n    def {where}(self, title_weight=3.0, broken=False):\n        {raising}\n"
    module = plugin.parent / "path" / "myplugin" / "mine.py"
    module.write_text(PLUGIN + (f"\n{raising}\n" if where == "module" else method))
    line = refusal("--config-dir", plugin, "classifier=mine", "plugins=[myplugin]", f"runs_dir={runs}")
    assert line.startswith("classifier")
    assert "myplugin.mine.Mine cannot be built: " in line
    assert "boom" in line
    assert capsys.readouterr() == ("", "")


def test_job_that_raises_leaves_the_others_alone(plugin: Path, go: Go, embedded: Path, tmp_path: Path) -> None:
    arguments = ("classifier=prior,broken,keywords", "plugins=[myplugin]", f"data.path={embedded}", *SHORT)
    ran = go("run", "--config-dir", plugin, "-m", *arguments, f"runs_dir={tmp_path}/runs", code=1)
    assert "prior" in ran.out
    assert "keywords" in ran.out
    assert "broken" not in ran.out
    assert ran.err.splitlines()[-1] == "abstag: 1 of 3 jobs failed, see above"
    results = {result.classifier: result for result in Store(tmp_path / "runs").results()}
    assert {name: result.status for name, result in results.items()} == {
        "prior": "done",
        "broken": "failed",
        "keywords": "done",
    }
    assert results["broken"].error == "RuntimeError('boom')"
    log = tmp_path / "runs" / results["broken"].id / "log"
    assert 'raise RuntimeError("boom")' in log.read_text()


def test_unknown_name_in_a_sweep_does_not_hide_what_was_done(go: Go, embedded: Path, tmp_path: Path) -> None:
    arguments = ("-m", "classifier=prior,forest", f"data.path={embedded}", f"runs_dir={tmp_path}/runs", *SHORT)
    ran = go("run", *arguments, code=1)
    assert "no classifier 'forest'" in ran.err
    done = Store(tmp_path / "runs").results()
    assert not done or done[0].id in ran.out, "a job ran and was kept, but is not shown"


def test_config_error_is_raised_not_printed(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ConfigError):
        launch(["zzz=1", f"runs_dir={runs}"])
    assert capsys.readouterr() == ("", "")


def test_result_says_the_command_without_folders(go: Go, embedded: Path, runs: Path) -> None:
    words = ("+experiment=embedded", "classifier=prior,keywords", f"data.path={embedded}", f"runs_dir={runs}", "seed=3")
    go("run", *words, code=0)
    assert {result.command for result in Store(runs).results() if result.seed == 3} == {
        f"abstag run classifier={name} +experiment=embedded data.path=embedded seed=3" for name in ("prior", "keywords")
    }
