"""The only module that knows Hydra and OmegaConf: schema, composition, building, launching."""

import difflib
import importlib
import inspect
import logging
import math
import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, fields, replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, cast, get_origin, get_type_hints

import hydra
from hydra.core.config_store import ConfigStore
from hydra.core.hydra_config import HydraConfig
from hydra.errors import HydraException
from hydra.types import RunMode
from omegaconf import MISSING, DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from abstag import __version__
from abstag.child import Child, ChildError
from abstag.classifiers.base import Classifier
from abstag.corpus import EMBEDDED, Corpus, embedded_folder, load_corpus
from abstag.decision import Policy
from abstag.environment import code_digest
from abstag.errors import AbstagError, ArtifactError, ConfigError, DataError, MissingExtraError, near, refused
from abstag.files import canonical_hash, file_hash, is_folder, read_json
from abstag.ingest import ingest
from abstag.labels import RANK
from abstag.resources import resource
from abstag.results import RunResult, fits
from abstag.runner import Experiment, Training, run
from abstag.store import Store
from abstag.sweep import Job, Sweep, Watch, job_key
from abstag.taxonomy import load_taxonomy
from abstag.tracking import connect, log_run

_LOG = logging.getLogger(__name__)


@dataclass
class DataConfig:
    """Schema of ``data``."""

    path: str | None = None
    taxonomy: str | None = None
    weights: dict[str, float] = field(default_factory=dict)
    declared_negatives: float = 0.0
    without_parts: list[str] = field(default_factory=list)
    limit: int | None = None


@dataclass
class DecisionConfig:
    """Schema of ``decision``."""

    method: str = MISSING
    folds: int = MISSING
    holdout: float = MISSING
    smoothing: float = MISSING
    right: float = MISSING
    calibrate: bool = MISSING


@dataclass
class Config:
    """Schema of the root; ``split`` and ``classifier`` are checked against the constructors that they name."""

    data: DataConfig = field(default_factory=DataConfig)
    split: Any = MISSING
    classifier: Any = MISSING
    decision: DecisionConfig = field(default_factory=DecisionConfig)
    name: str = MISSING
    seed: int = MISSING
    metric_part: str = MISSING
    keep_bundle: bool = MISSING
    fit_all: bool = MISSING
    runs_dir: str = MISSING
    mlflow: str | None = None
    timeout: float | None = None
    plugins: list[str] = field(default_factory=list)


_LAUNCHERS = {"joblib": "joblib", "submitit_local": "submitit", "submitit_slurm": "submitit"}
_FOLDERS = frozenset({"data.path", "classifier.encoder"})
_PLACES = ("data.path", "data.taxonomy", "classifier.path", "classifier.encoder", "plugins")
_NOT_OF_A_RUN = frozenset({"runs_dir", "timeout", "mlflow", "plugins", "keep_bundle", "fit_all"})
_NESTED = (("data", DataConfig), ("decision", DecisionConfig))


@dataclass(slots=True)
class Launched:
    """What a launch gave.

    Attributes
    ----------
    results
        The finished jobs.
    failures
        What went wrong in each other job, one line each; shown at once when there are many jobs.
    """

    results: list[RunResult] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    store: Store | None = None
    many: bool = False

    def looks(self) -> int:
        """Return how many runs have scored the test rows of these results, as the store knows now."""
        rows = {result.rows["fingerprint"] for result in self.results}
        return max((self.store.looks(fingerprint) for fingerprint in rows), default=0) if self.store else 0


class _Order(NamedTuple):
    """A job as Hydra composed it: what a process needs to do it."""

    config: DictConfig
    label: str
    overrides: list[str]
    sweep: Sweep | None
    composed: str
    retry: bool

    def watch(self) -> Watch | None:
        """Return what notes the job's fate; None for a single one, which belongs to no sweep."""
        if self.sweep is None:
            return None
        job = self.sweep.job(job_key(self.overrides), _command(self.overrides))
        data = self.config.data.path, self.config.data.taxonomy
        return Watch(self.sweep, replace(job, label=self.label, data=data, composed=self.composed))


class Task:
    """What Hydra calls for each job: in this process, or in those of its launchers, to which pickle carries it.

    The jobs of a sweep, and those with a ``timeout``, are done in a child process, so that one which hangs, exits or is
    killed is one failed job.
    """

    def __init__(self, arguments: Sequence[str], *, retry: bool) -> None:
        self.arguments, self.retry = list(arguments), retry
        self.sweep: Sweep | None = None
        self.composed = ""
        self.single = Launched()
        self.told: set[str] = set()

    def left(self, config: DictConfig, search_path: Iterable[Path], jobs: Sequence[list[str]]) -> list[list[str]]:
        """Announce the jobs of a sweep, given as overrides, and return those that may have something to do."""
        self.sweep, self.composed = (
            Sweep(Store(Path(_folder(config.runs_dir))), str(config.name)),
            _composed(search_path),
        )
        known = [self.sweep.job(job_key(words), _command(words)) for words in jobs]
        self.sweep.announce(known)
        settled = [  # MLflow may not have what is done
            not config.mlflow and self.sweep.settled(job, self.composed, retry=self.retry) for job in known
        ]
        for job, done in zip(known, settled, strict=True):
            if done and job.state == "failed":
                self._tell(job.key, _failure(job, before=True))
        return [words for words, done in zip(jobs, settled, strict=True) if not done]

    def __call__(self, config: DictConfig) -> None:
        """Do a job. What goes wrong in one of many is logged and noted, and none of the others' business."""
        overrides: Any = OmegaConf.to_container(HydraConfig.get().overrides.task, resolve=False)
        sweep = self.sweep if HydraConfig.get().mode == RunMode.MULTIRUN else None
        label = str(HydraConfig.get().runtime.choices.get("classifier", "classifier"))
        order = _Order(config, label, overrides, sweep, self.composed, self.retry)
        try:
            outcome = self._outcome(order)
        except AbstagError as error:
            outcome = error
        if sweep is None:
            self.single.store = Store(Path(config.runs_dir))
            self._keep(outcome)
        elif isinstance(outcome, AbstagError):
            self._tell(job_key(overrides), f"{label}: {outcome}")
        elif outcome.status == "failed":
            self._tell(job_key(overrides), f"{outcome.id}: {outcome.error}")

    def _outcome(self, order: _Order) -> RunResult | AbstagError:
        timeout = order.config.timeout
        if timeout is not None and not timeout > 0:
            raise ConfigError(f"{timeout} is out of range", where="timeout", remedy="more than 0 seconds, or null")
        if (order.sweep is None and timeout is None) or "WORLD_SIZE" in os.environ:  # partners wait for this process
            return _attempt(order)
        try:
            outcome: RunResult | AbstagError = _child().call(_attempt, order, timeout=timeout)
        except ChildError as error:
            try:
                return _note_death(order, str(error))  # before it ends and frees the lock, else another would try
            finally:
                _child().stop()
        return outcome

    def _tell(self, key: str, failure: str) -> None:
        self.told.add(key)
        _LOG.error("%s", failure)

    def _keep(self, outcome: RunResult | AbstagError) -> None:
        if isinstance(outcome, RunResult) and outcome.status == "done":
            self.single.results.append(outcome)
        else:
            failed = f"{outcome.id}: {outcome.error}" if isinstance(outcome, RunResult) else str(outcome)
            self.single.failures.append(failed)

    def wait(self) -> bool:
        """Wait for the runs of this sweep that other processes are at; whether there were any.

        What has failed by then is not tried again.
        """
        self.retry = False
        if self.sweep is None:
            return False
        busy = [str(job.run) for job in self.sweep.jobs() if self.sweep.running(job)]
        for name in busy:
            with self.sweep.store.lock(name, wait=True):
                pass
        return bool(busy)

    def launched(self) -> Launched:
        """Return what came of it all; failures that this process has not told are told now."""
        if self.sweep is None:
            return self.single
        launched = Launched(store=self.sweep.store, many=True)
        for job in self.sweep.jobs():
            result = self.sweep.store.done(job.run) if job.run else None
            if result is not None:
                launched.results.append(result)
            if result is None or job.error:
                launched.failures.append(_failure(job))
                if job.key not in self.told:  # by the process of a launcher, perhaps on another machine
                    self._tell(job.key, _failure(job))
        return launched


def _failure(job: Job, *, before: bool = False) -> str:
    hint = " (failed before; --retry tries again)" if before else ""
    return f"{job.run or job.label or job.command}: {job.error or 'no result was kept'}{hint}"


def _note_death(order: _Order, reason: str) -> RunResult | AbstagError:
    watch = order.watch()
    if watch is not None:
        watch.fail(reason)
        found = watch.sweep.store.kept(watch.job.run) if watch.job.run else None
        if found is not None:
            return found
    return ArtifactError(reason, where="the job")


@cache
def _child() -> Child:
    return Child(__name__)


def _composed(search_path: Iterable[Path]) -> str:
    """Return the hash of all that a configuration is composed from and by."""
    files = sorted(file for folder in search_path for file in folder.rglob("*.yaml"))
    return canonical_hash([code_digest(__name__), *([str(file), file_hash(file)] for file in files)])


def _attempt(order: _Order) -> RunResult | AbstagError:
    """Do a job; a mistake in it is returned, and noted where it is one of a sweep."""
    watch = None
    try:
        try:
            watch = order.watch()
            if watch is not None:
                watch.job = replace(watch.job, started=None)  # of an attempt that was killed
            experiment = replace(build(order.config, order.label), command=_command(order.overrides))
            store = Store(Path(order.config.runs_dir))
            client = connect(order.config.mlflow) if order.config.mlflow else None
            if watch is None:
                return _logged(client, run(experiment, store), store)
            reads = bool(experiment.classifier.fingerprint() or experiment.classifier.member_names())
            watch.job = replace(watch.job, reads=reads)
            result = run(experiment, store, again=order.retry, wait=False, begin=watch.begin)
            watch.end(result)
            try:
                return _logged(client, result, store)
            except AbstagError as error:
                watch.complain(str(error))
                return error
        except SystemExit as error:
            raise ConfigError(f"the code of a class calls sys.exit({error.code!r})", remedy="mend the class") from error
    except (AbstagError, OmegaConfBaseException, OSError) as error:
        failure = _one_line(error, order.overrides)
        if watch is not None:
            with suppress(ArtifactError):  # it may be the disk that failed
                watch.fail(str(failure))
        return failure


def _logged(client: Any, result: RunResult, store: Store) -> RunResult:
    """Return the result, which MLflow has when there is a client and it is done."""
    if client is not None and result.status == "done":
        log_run(client, result, store.folder(result.id) / "result.json")
    return result


def launch(arguments: Sequence[str]) -> Launched:
    """Compose, build and run what Hydra arguments ask for, one job or many.

    Of several processes that ``torchrun`` or ``accelerate launch`` starts, the first does this, and has the others help
    it to fine-tune; these return nothing.

    The jobs of a sweep that are done are not done again, nor those that have failed; those that another process is at
    are left to it, and waited for at the end.

    Parameters
    ----------
    arguments
        Hydra's own: overrides, ``-m``, ``--cfg job``, ``--info``, ``--config-dir``; and ``--retry``, to try failed jobs
        again.

    Raises
    ------
    ConfigError
        The configuration cannot be composed: a wrong key, type, or name.
    """
    if "WORLD_SIZE" not in os.environ:  # PyTorch takes seconds to import
        return _launch(arguments)
    from abstag.classifiers import _partners

    if not _partners.launched():
        return _launch(arguments)
    with _partners.joined() as group:
        if group.rank == 0:
            return _launch(arguments)
        group.follow()
        return Launched()


def _launch(arguments: Sequence[str]) -> Launched:
    ConfigStore.instance().store(name="schema", node=Config)
    OmegaConf.register_new_resolver("folder", _folder, replace=True)
    words = [word for word in arguments if word != "--retry"]
    task = Task(words, retry=len(words) < len(arguments))
    with _hydra_arguments(words):
        main = hydra.main(version_base="1.3", config_path=str(resource("conf")), config_name="config")(task)
        try:
            main()
            while task.wait():
                main()
        except (HydraException, OmegaConfBaseException, ValueError) as error:
            raise _one_line(error, arguments) from error
        finally:
            _child().stop()
    return task.launched()


@contextmanager
def _hydra_arguments(arguments: Sequence[str]) -> Iterator[None]:
    """Hand arguments to Hydra, which reads ``sys.argv``, and have it raise what it would otherwise print."""
    kept, full = list(sys.argv), os.environ.get("HYDRA_FULL_ERROR")
    many = [word for word in arguments if word in {"-m", "--multirun"}]  # argparse wants them before the overrides
    sys.argv = ["abstag run", *many, *(word for word in arguments if word not in many)]
    os.environ["HYDRA_FULL_ERROR"] = "1"
    try:
        yield
    finally:
        sys.argv = kept
        del os.environ["HYDRA_FULL_ERROR"]
        if full is not None:
            os.environ["HYDRA_FULL_ERROR"] = full


def _command(overrides: Sequence[str]) -> str:
    """Return the command line that gives a job again, without ``runs_dir``, ``timeout`` and the places of folders."""
    kept = [word.partition("=") for word in overrides if not word.startswith(("runs_dir=", "timeout=", "mlflow="))]
    named = [
        f"{key}{sign}{Path(value).resolve().name if key in _FOLDERS and is_folder(value) else value}"
        for key, sign, value in kept
    ]
    return shlex.join(["abstag", "run", *named])


def _folder(runs_dir: str) -> str:
    """Return ``runs_dir`` when it can be a folder: called before Hydra makes one there."""
    if not runs_dir.strip():
        raise ConfigError("is empty", where="runs_dir", remedy="name a folder, as in runs_dir=runs")
    if os.path.lexists(runs_dir) and not Path(runs_dir).is_dir():
        raise ConfigError(f"{runs_dir} is no folder", where="runs_dir", remedy="choose another name")
    return runs_dir


def _one_line(error: Exception, overrides: Sequence[str]) -> AbstagError:
    """Return our own error, alone or wrapped by Hydra, or one that says the same as Hydra's or the system's."""
    known: BaseException | None = error
    while known is not None:
        if isinstance(known, AbstagError):
            return known
        known = known.__cause__ or known.__context__
    if isinstance(error, OSError) and not isinstance(error, HydraException):
        return refused(error, "cannot be used", error.filename or "run")
    return _readable(error, overrides)


def _readable(error: Exception, overrides: Sequence[str]) -> AbstagError:
    """Turn Hydra's message of several lines into one that names key and remedy."""
    text = f"{error}\n{error.__cause__ or ''}"
    choice = re.search(
        r"Could not find '([^']+)'(?:.*?)Available options in '[^']+':(.*?)(?:Config search|$)", text, re.DOTALL
    )
    if choice:
        group, _, name = choice.group(1).rpartition("/")
        if group == "hydra/launcher" and name in _LAUNCHERS:
            return MissingExtraError(f"hydra-{_LAUNCHERS[name]}-launcher", _LAUNCHERS[name])
        return ConfigError(f"there is no {group} {name!r}", remedy=f"known: {', '.join(choice.group(2).split())}")
    key = re.search(r"Could not override '([^']+)'", text)
    if key:
        found = difflib.get_close_matches(key.group(1), _known_keys(overrides), n=1, cutoff=0.5)
        remedy = f"did you mean {found[0]!r}?" if found else "`abstag run --cfg job` shows all keys"
        return ConfigError(f"unknown key {key.group(1)!r}", remedy=remedy)
    value = re.search(r"(\S[^\n]*)\s+full_key: (\S+)", text)
    if value:
        return ConfigError(value.group(1), where=value.group(2))
    what, remedy = text.partition("\nSet the environment variable")[0].strip(), "`abstag run --cfg job` shows all keys"
    return ConfigError(what, where="configuration", remedy=remedy)


def _known_keys(overrides: Sequence[str]) -> list[str]:
    """Return the keys of the schema, and those of the chosen classifier and split."""
    chosen = dict(word.partition("=")[::2] for word in overrides)
    known = [item.name for item in fields(Config)]
    known += [f"{group}.{item.name}" for group, schema in _NESTED for item in fields(schema)]
    for group, default in (("classifier", "logreg"), ("split", "kfold")):
        path = resource("conf") / group / f"{chosen.get(group, default)}.yaml"
        known += [f"{group}.{key!s}" for key in OmegaConf.load(path)] if path.is_file() else []
    return known


def build(config: DictConfig, label: str) -> Experiment:
    """Build an experiment from a composed configuration; everything is checked before the corpus is loaded.

    Parameters
    ----------
    label
        The classifier's name in tables.

    Raises
    ------
    ConfigError
        A target outside abstag and the plugins, an unknown or missing parameter, a value of the wrong type or range.
    ArtifactError, DataError
        The corpus or the taxonomy cannot be loaded.
    """
    whole = OmegaConf.merge(OmegaConf.structured(Config), config)
    plain: Any = OmegaConf.to_container(whole, resolve=True, throw_on_missing=True)
    plugins = plain["plugins"]
    classifier = _classifier(plain["classifier"], plugins)
    splitter = _instance(plain["split"], "split", plugins)
    if not callable(getattr(splitter, "split", None)):
        raise ConfigError(f"{type(splitter).__name__} cannot split", where="split._target_")
    if plain["seed"] < 0:
        raise ConfigError(f"{plain['seed']} is negative", where="seed")
    policy = Policy(**plain["decision"])
    training = _training(plain["data"])
    return Experiment(
        name=plain["name"],
        label=label,
        corpus=_corpus(plain["data"], Path(plain["runs_dir"])),
        splitter=splitter,
        classifier=classifier,
        policy=policy,
        training=training,
        config=_identity(plain),
        seed=plain["seed"],
        metric_part=plain["metric_part"],
        keep_bundle=plain["keep_bundle"],
        fit_all=plain["fit_all"],
    )


def rebuild(result: RunResult, places: Sequence[str], runs_dir: Path) -> Experiment:
    """Build the experiment of a kept result again; no tagger will be kept.

    Parameters
    ----------
    places
        What a result does not keep, as ``key=value``: ``data.path`` (default: the embedded corpus), ``data.taxonomy``,
        ``classifier.path``, ``classifier.encoder``, ``plugins``.
    runs_dir
        Where the embedded corpus is ingested.

    Raises
    ------
    ConfigError
        Another key, a scores file that is not the run's, or whatever `build` refuses.
    DataError
        The corpus is not the run's.
    """
    for key, sign, _ in (word.partition("=") for word in places):
        if not sign or key not in _PLACES:
            remedy = f"only {', '.join(_PLACES)} may be given, as key=value: the rest is the run's"
            raise ConfigError(f"{key!r} cannot be given", where="reproduce", remedy=remedy)
    kept = {key: value for key, value in result.config.items() if key not in _NOT_OF_A_RUN}
    file = kept["classifier"].get("file")
    kept["classifier"] = {key: value for key, value in kept["classifier"].items() if key != "file"}
    own = {"runs_dir": str(runs_dir), "keep_bundle": False, "fit_all": False, "decision": {"calibrate": True}}
    config = OmegaConf.merge(own, kept, OmegaConf.from_dotlist(list(places)))
    experiment = build(cast("DictConfig", config), result.classifier)
    was, now = result.corpus["fingerprint"], experiment.corpus.fingerprint
    if now != was:
        what = f"the run is on {result.corpus['name']} {was}, this corpus is {experiment.corpus.name} {now}"
        raise DataError(what, where=result.id, remedy="name the run's corpus, as ingested then, with data.path=DIR")
    if experiment.config["classifier"].get("file") != file:
        what = f"the scores that the run read have the hash {file}, this file has another"
        raise ConfigError(what, where="classifier.path", remedy="name the very file")
    return experiment


def _classifier(node: Any, plugins: Sequence[str]) -> Classifier:
    classifier = _instance(node, "classifier", plugins)
    if not isinstance(classifier, Classifier):
        raise ConfigError(f"{type(classifier).__name__} is no abstag Classifier", where="classifier._target_")
    with _foreign(node["_target_"], "classifier"):
        classifier.check()
        classifier.fingerprint()
    return classifier


def _training(data: Mapping[str, Any]) -> Training:
    for source, weight in data["weights"].items():
        if source not in RANK:
            raise ConfigError(
                f"unknown label source {source!r}", where="data.weights", remedy=f"known: {', '.join(RANK)}"
            )
        _refuse_no_weight(weight, f"data.weights.{source}")
    _refuse_no_weight(data["declared_negatives"], "data.declared_negatives")
    if data["limit"] is not None and data["limit"] < 1:
        raise ConfigError(f"{data['limit']} is out of range", where="data.limit", remedy="at least 1, or null")
    return Training(data["weights"], data["declared_negatives"], data["without_parts"], data["limit"])


def _refuse_no_weight(weight: float, where: str) -> None:
    if not 0 <= weight < math.inf:
        raise ConfigError(f"{weight} is no weight", where=where, remedy="a finite number, at least 0, is needed")


def _corpus(data: Mapping[str, Any], runs_dir: Path) -> Corpus:
    taxonomy = load_taxonomy(data["taxonomy"]) if data["taxonomy"] else None
    return load_corpus(Path(data["path"]) if data["path"] else embedded_corpus(runs_dir), taxonomy)


def embedded_corpus(runs_dir: Path) -> Path:
    """Return the folder of the ingested embedded corpus; ingest it when it is not there in this very version."""
    folder = embedded_folder(runs_dir)
    if not _of_this_version(folder):
        with Store(runs_dir).lock("corpus", wait=True):
            if not _of_this_version(folder):
                shutil.rmtree(folder, ignore_errors=True)  # ours alone: a cache under a hidden name
                ingest([str(resource(EMBEDDED))], folder, taxonomy=load_taxonomy())
    return folder


def _of_this_version(folder: Path) -> bool:
    with suppress(ArtifactError):
        manifest = read_json(folder / "manifest.json")
        return isinstance(manifest, dict) and manifest.get("version") == __version__
    return False


def _identity(plain: Mapping[str, Any]) -> dict[str, Any]:
    """Return what identifies a run: the configuration without paths and without what cannot change numbers."""
    kept = {key: value for key, value in plain.items() if key not in _NOT_OF_A_RUN}
    for group in ("data", "classifier"):
        kept[group] = {key: value for key, value in kept[group].items() if key not in {"path", "taxonomy"}}
    scores = plain["classifier"].get("path")
    if scores and Path(scores).is_file():  # two files are two classifiers, wherever they lie
        kept["classifier"]["file"] = file_hash(Path(scores))[:12]
    encoder = kept["classifier"].get("encoder")
    if encoder and is_folder(encoder):  # its content is in the fingerprint
        kept["classifier"]["encoder"] = Path(encoder).name
    return kept


def _instance(node: Any, where: str, plugins: Sequence[str]) -> Any:
    if not isinstance(node, dict) or not isinstance(node.get("_target_"), str):
        raise ConfigError("a mapping with `_target_` is needed", where=where)
    target = _target(node["_target_"], where, plugins)
    if not inspect.isclass(target) or inspect.isabstract(target):
        raise ConfigError(f"{node['_target_']!r} is no class that can be built", where=f"{where}._target_")
    with _foreign(node["_target_"], where):
        parameters, hints = inspect.signature(target).parameters, get_type_hints(target.__init__)
    values = {key: value for key, value in node.items() if key != "_target_"}
    for key in values:
        if key not in parameters:
            raise ConfigError(f"unknown key {key!r}", where=where, remedy=near(key, parameters))
    missing = [name for name, p in parameters.items() if p.default is p.empty and name not in values]
    if missing:
        raise ConfigError(f"{missing[0]!r} is missing", where=where)
    typed = {key: _typed(value, hints.get(key, Any), f"{where}.{key}") for key, value in values.items()}
    try:
        with _foreign(node["_target_"], where):
            return target(**typed)
    except ConfigError as error:
        if error.where in target.__init__.__annotations__:
            raise ConfigError(error.what, where=f"{where}.{error.where}", remedy=error.remedy) from error
        raise


def _target(name: str, where: str, plugins: Sequence[str]) -> Any:
    allowed = ["abstag", *plugins]
    if not any(name.startswith(f"{package}.") for package in allowed):
        raise ConfigError(
            f"{name!r} is outside {', '.join(allowed)}", where=f"{where}._target_", remedy="add its package to plugins"
        )
    module, _, attribute = name.rpartition(".")
    with _foreign(name, f"{where}._target_"):
        return getattr(importlib.import_module(module), attribute)


@contextmanager
def _foreign(name: str, where: str) -> Iterator[None]:
    """Turn whatever the code of a plugin raises into a ConfigError that names the class."""
    try:
        yield
    except AbstagError:
        raise
    except Exception as error:
        raise ConfigError(f"{name} cannot be built: {error!r}", where=where, remedy="mend the class") from error


def _typed(value: Any, hint: Any, where: str) -> Any:
    """Return the value as the constructor's annotation wants it; raises ConfigError when it cannot be."""
    if not fits(value, hint):
        expected = getattr(get_origin(hint) or hint, "__name__", str(hint))
        raise ConfigError(f"{value!r} is not of type {expected.lower()}", where=where)
    if hint is float:
        return float(value)
    return tuple(value) if isinstance(value, list) else value
