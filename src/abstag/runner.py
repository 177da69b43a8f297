"""One experiment: built parts in, a stored result out. Knows nothing of Hydra."""

import logging
import shlex
import shutil
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from abstag import splits
from abstag.bundle import Bundle, load_bundle, save_bundle
from abstag.classifiers.base import Aid, Classifier, Evidence, Labelled, Member, check_both_sides
from abstag.corpus import Corpus
from abstag.decision import Decision, Policy, fit_decision
from abstag.drift import Reference, fit_reference
from abstag.environment import code_digest, numeric_versions, peak_memory, versions
from abstag.errors import AbstagError, ConfigError, DataError
from abstag.evaluation import part_metrics, score_table
from abstag.files import canonical_hash
from abstag.labels import SCORED
from abstag.records import BoolArray, Documents, FloatArray, IntArray, Split, Targets
from abstag.results import RunResult, ScoredDocuments, ScoreTable, named_parts, settings
from abstag.store import Store, rows_fingerprint

_LOG = logging.getLogger(__name__)
_RUN = ("abstag", "run")


@dataclass(frozen=True, slots=True)
class Training:
    """Which labels a classifier learns from.

    Attributes
    ----------
    weights
        Weight ≥ 0 of each label source; 0 leaves it out.
    declared_negatives
        Weight ≥ 0 of areas that a paper whose authors declared anything does not declare; 0 leaves them unknown.
    without_parts
        Parts of the corpus that the experiment must not see at all.
    limit
        Train on at most so many papers, drawn at random by the seed, ≥ 1; None is all.
    """

    weights: Mapping[str, float]
    declared_negatives: float = 0.0
    without_parts: Sequence[str] = ()
    limit: int | None = None


@dataclass(frozen=True)
class Experiment:
    """Everything one run needs, built and validated.

    Attributes
    ----------
    config
        What the run's identity is made of, without paths.
    label
        The classifier's name in tables.
    metric_part
        The part whose metrics stand for the run.
    keep_bundle
        Fit a tagger on all training rows and keep it.
    fit_all
        Fit that tagger on all rows with labels, those tested included: for use, not for comparison.
    command
        The command line that gives this run again, for the result.
    members
        Finished runs whose taggers the classifier needs, with their folders (see `with_members`).
    """

    name: str
    label: str
    corpus: Corpus
    splitter: splits.Splitter
    classifier: Classifier
    policy: Policy
    training: Training
    config: Mapping[str, Any]
    seed: int = 0
    metric_part: str = "all"
    keep_bundle: bool = True
    fit_all: bool = False
    command: str = ""
    members: Sequence[tuple[RunResult, Path]] = ()

    @cached_property
    def id(self) -> str:
        """The run's id: the classifier's name and 12 hex digits of the identity."""
        identity = {
            "config": self.config,
            "data": self.corpus.fingerprint,
            "input": " ".join([self.classifier.fingerprint(), *(result.id for result, _ in self.members)]).strip(),
            "bundle": "all" if self.keep_bundle and self.fit_all else self.keep_bundle,
            "versions": numeric_versions(),
        }
        return f"{self.label.replace('/', '-')}-{canonical_hash(identity)[:12]}"

    @cached_property
    def targets(self) -> Targets:
        """Values, known cells and weights of all rows of the corpus."""
        return self.corpus.targets(self.training.weights, self.training.declared_negatives)

    @cached_property
    def read_targets(self) -> Targets:
        """Targets of which only read and review labels are known: what thresholds and scores rest on."""
        known = self.corpus.known & self.corpus.scorable[:, None]
        return Targets(self.corpus.values, known, known.astype(np.float64))

    @cached_property
    def rows(self) -> splits.Rows:
        """What splitters see of all rows of the corpus."""
        corpus = self.corpus
        return splits.Rows(
            positive=corpus.values & self.read_targets.known,
            scorable=corpus.scorable & self.visible,
            groups=corpus.groups,
            parts=corpus.column("part"),
            years=corpus.column("year"),
            venues=corpus.column("venue"),
        )

    @cached_property
    def splits(self) -> list[Split]:
        """Training and test rows of each split; raises ConfigError when a side would be empty."""
        return self.splitter.split(self.rows, seed=self.seed)

    @cached_property
    def bundles(self) -> list[Bundle]:
        """The taggers of the members."""
        return [load_bundle(folder / "bundle") for _, folder in self.members]

    @cached_property
    def visible(self) -> BoolArray:
        """(n,) bool: rows that the experiment may see."""
        parts = self.corpus.column("part")
        return np.array([part not in self.training.without_parts for part in parts], dtype=np.bool_)

    @cached_property
    def trainable(self) -> BoolArray:
        """(n,) bool: visible rows with a known cell of some weight."""
        usable = (self.targets.known & (self.targets.weight > 0)).any(axis=1)
        return np.asarray(self.visible & usable, dtype=np.bool_)

    def training_rows(self, rows: IntArray) -> IntArray:
        """Return those of ``rows`` that are trained on: the trainable ones, at most ``training.limit``."""
        usable, limit = rows[self.trainable[rows]], self.training.limit
        if limit is None or limit >= len(usable):
            return usable
        return np.sort(np.random.default_rng(self.seed).choice(usable, limit, replace=False))


def with_members(experiment: Experiment, store: Store) -> Experiment:
    """Return the experiment with the finished runs that its classifier asks for.

    They have the same corpus, split, decision, seed and choice of papers, so that none of their taggers has learnt
    from the papers that this experiment holds out or tests.

    Raises
    ------
    ConfigError
        No run of the store, or several, fit a name; the decision is fitted on papers that the taggers know.
    """
    where, names = f"classifier {experiment.label}", experiment.classifier.member_names()
    if names and (experiment.policy.method != "holdout" or len(experiment.splits) > 1):
        what = "the runs that it asks have learnt from the papers of each fold"
        remedy = "take decision=holdout and a split with one test set, as split=holdout, for those runs too"
        raise ConfigError(what, where=where, remedy=remedy)
    found = [_member(experiment, store, name) for name in names]
    if len({result.id for result in found}) < len(found):
        raise ConfigError(f"{', '.join(names)} are not different runs", where=where)
    return replace(experiment, members=[(result, store.folder(result.id)) for result in found])


def _member(experiment: Experiment, store: Store, name: str) -> RunResult:
    where = f"classifier {experiment.label}"
    done = [run for run in store.results() if run.status == "done"]
    named = [run for run in done if name in {run.classifier, run.id}] or [
        run for run in done if run.id.startswith(name) and name.startswith(f"{run.classifier}-")
    ]
    alike = [run for run in named if not _differs(experiment, run)]
    alike = [run for run in alike if run.experiment == experiment.name] or alike
    kept = [run for run in alike if (store.folder(run.id) / "bundle").is_dir()]
    if alike and not kept:
        remedy = "a tagger is needed: delete its folder and run it again with keep_bundle=true, if it can tag at all"
        raise ConfigError(f"{alike[0].id} has kept no bundle", where=where, remedy=remedy)
    if len(kept) == 1:
        return kept[0]
    what = f"{len(alike) or 'no'} finished runs of {name!r} have this corpus, split, decision and seed"
    if len(named) == 1 and not alike:
        what = f"{named[0].id} has another {', '.join(_differs(experiment, named[0]))}"
    remedy = f"name one of {', '.join(run.id for run in alike)}" if alike else _first(experiment, named, name)
    raise ConfigError(what, where=where, remedy=remedy)


def _first(experiment: Experiment, named: Sequence[RunResult], name: str) -> str:
    """Return the command of the run that is missing: this run's own with another classifier."""
    own = [word for word in shlex.split(experiment.command) if not word.lstrip("+").startswith("classifier")]
    return f"run first: {shlex.join([*(own or _RUN), f'classifier={named[0].classifier if named else name}'])}"


def _differs(experiment: Experiment, run: RunResult) -> list[str]:
    """Return in what a run differs that decides which papers it learns from."""
    ours, theirs = experiment.config, run.config
    mine, other = settings(ours), settings(theirs)
    keys = sorted(key for key in {*mine, *other} if key.partition(".")[0] in {"split", "decision", "seed"})
    different = [key for key in keys if mine.get(key) != other.get(key)]
    papers = _papers(theirs)
    different += [f"data.{key}" for key, value in _papers(ours).items() if papers[key] != value]
    return different if run.corpus["fingerprint"] == experiment.corpus.fingerprint else ["corpus", *different]


def _papers(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return what decides which papers are held out; labels but read ones matter where papers are drawn at random."""
    data = config.get("data") or {}
    limit, weights = data.get("limit"), data.get("weights") or {}
    return {
        "limit": limit,
        "without_parts": data.get("without_parts"),
        "weights": {source for source, weight in weights.items() if weight > 0 and (limit or source in SCORED)},
        "declared_negatives": bool(limit and data.get("declared_negatives")),
    }


class Fitted(NamedTuple):
    """A classifier fitted on training rows; the decision and the reference are of rows that it had not seen.

    ``texts`` are further rows, whose texts alone were learnt from.
    """

    classifier: Classifier
    decision: Decision
    reference: Reference
    rows: IntArray
    seconds: float
    texts: IntArray


class Outcome(NamedTuple):
    """What the splits of an experiment gave: scores of all test rows, seconds to score them, one fit a split."""

    scores: ScoreTable
    seconds: float
    fitted: list[Fitted]
    evidence: list[Evidence] | None


def run(
    experiment: Experiment,
    store: Store,
    *,
    again: bool = True,
    wait: bool = True,
    begin: Callable[[RunResult], None] = lambda _: None,
) -> RunResult:
    """Run an experiment, or read back its result when the store has it.

    A failure is kept in the store with its traceback, and returned as a result of status "failed".

    Parameters
    ----------
    again
        Do a run that failed before once more, instead of returning its failure.
    wait
        Wait for another process that is doing this run, instead of returning a result of status "running".
    begin
        Called with the result of status "running" when the work begins.

    Raises
    ------
    ArtifactError
        The store cannot be written.
    ConfigError
        A run that the classifier needs is missing.
    """
    experiment = with_members(experiment, store)
    workdir = store.root / ".checkpoints" / experiment.id
    found = _found(experiment, store, again=again)
    if found is not None:
        return found
    with store.lock(experiment.id, wait=wait) as ours:
        found = _found(experiment, store, again=again) if ours else _started(experiment)
        if found is not None:
            return found
        started = _started(experiment)
        begin(started)
        _LOG.info("%s: running", experiment.id)
        try:
            return _run(experiment, store, started, workdir)
        except (Exception, SystemExit) as error:
            message = str(error) if isinstance(error, AbstagError) else repr(error)
            if isinstance(error, SystemExit):
                message = f"its code called sys.exit({error.code!r})"
            failed = replace(started, status="failed", error=message)
            store.save(failed, log=traceback.format_exc())
            if isinstance(error, ConfigError | DataError):  # it would fail again; anything else may be gone on from
                shutil.rmtree(workdir, ignore_errors=True)
            return failed


def _found(experiment: Experiment, store: Store, *, again: bool) -> RunResult | None:
    """Return the result that the store has and that is not to be made again."""
    found = store.kept(experiment.id)
    if found is None or (found.status != "done" and again):
        return None
    if found.status == "done":
        shutil.rmtree(store.root / ".checkpoints" / experiment.id, ignore_errors=True)
        _LOG.info("%s: done before, skipped", experiment.id)
    return found


def _started(experiment: Experiment) -> RunResult:
    code = code_digest(__name__, type(experiment.classifier).__module__)
    return RunResult(
        id=experiment.id,
        status="running",
        experiment=experiment.name,
        classifier=experiment.label,
        seed=experiment.seed,
        corpus={"name": experiment.corpus.name, "fingerprint": experiment.corpus.fingerprint},
        areas=list(experiment.corpus.taxonomy.ids),
        taxonomy={name: getattr(experiment.corpus.taxonomy, name) for name in ("name", "version", "digest")},
        metric_part=experiment.metric_part,
        config=dict(experiment.config),
        versions=versions() | {"code": code},
        command=experiment.command,
        started=datetime.now(UTC).isoformat(timespec="milliseconds"),
    )


def _run(experiment: Experiment, store: Store, started: RunResult, workdir: Path) -> RunResult:
    with peak_memory() as peak:
        outcome = score_splits(experiment, workdir)
        final = _final(experiment, outcome, workdir)
    scores = outcome.scores
    parts = {name: part_metrics(scores, rows) for name, rows in scores.named_parts().items()}
    tested = rows_fingerprint(scores)
    result = replace(
        started,
        status="done",
        parts=parts,
        decision=_decision_summary(outcome.fitted, experiment.corpus.taxonomy.ids),
        rows={"train": [len(fitted.rows) for fitted in outcome.fitted], "test": len(scores), "fingerprint": tested},
        fit_seconds=sum(fitted.seconds for fitted in outcome.fitted),
        texts_per_second=len(scores) / outcome.seconds,
        peak_mb=peak.mebibytes,
        looks=store.look(tested, experiment.id),
    )
    store.save(
        result,
        scores=scores,
        documents=_documents(experiment.corpus, outcome),
        bundle=final and _bundle_writer(experiment, final, result),
    )
    shutil.rmtree(workdir, ignore_errors=True)
    return result


def score_splits(experiment: Experiment, workdir: Path | None = None) -> Outcome:
    """Fit and score every split of an experiment; ``workdir`` takes checkpoints.

    Raises
    ------
    DataError
        No read labels, or an area without a positive or negative to learn from.
    ConfigError
        The split leaves a side empty, or a run that the classifier learns from was trained on test papers.
    """
    corpus, policy = experiment.corpus, experiment.policy
    if experiment.classifier.dear and policy.method == "folds":
        text = "%s takes long to fit, and is fitted %d times on each split; with decision=holdout once"
        _LOG.warning(text, experiment.label, policy.folds + 1)
    read = corpus.scorable & experiment.visible
    if not read.any():
        raise DataError(
            "no paper has a read or review label, so nothing can be scored and no threshold fitted",
            where=corpus.name,
            remedy="ingest with --labels FILE",
        )
    check_both_sides(experiment.read_targets[np.flatnonzero(read)], corpus.taxonomy)
    _refuse_unknown_part(experiment)
    _warn_of_no_effect(experiment)
    tables, fits, seconds, evidence = [], [], 0.0, list[Evidence]()
    sides = [
        (experiment.training_rows(split.train), usable_rows(experiment, split.train)) for split in experiment.splits
    ]
    for split, (train, usable) in zip(experiment.splits, sides, strict=True):
        _refuse_leaks(experiment, split)
        _inner_folds(experiment, train, usable)
    for number, (split, (train, usable)) in enumerate(zip(experiment.splits, sides, strict=True)):
        fitted = fit_tagger(experiment, train, usable, workdir and workdir / f"split-{number}")
        documents = corpus.documents[split.test]
        begun = time.perf_counter()
        probabilities = fitted.decision.probabilities(fitted.classifier.decision_function(documents))
        seconds += time.perf_counter() - begun
        tables.append(score_table(corpus, split.test, probabilities, fitted.decision, fold=number))
        fits.append(fitted)
        evidence += fitted.classifier.explain(documents) or []
    scores = ScoreTable.join(tables)
    return Outcome(scores, seconds, fits, evidence if len(evidence) == len(scores) else None)


def _warn_of_no_effect(experiment: Experiment) -> None:
    """Say which settings change nothing on this corpus, lest their runs are taken for a finding."""
    training, corpus = experiment.training, experiment.corpus
    fewest = min(int(experiment.trainable[split.train].sum()) for split in experiment.splits)
    if training.limit is not None and training.limit >= fewest:
        _LOG.warning("data.limit=%d changes nothing: there are %d papers to train on", training.limit, fewest)
    sources = {corpus.column("label_source")[row] for row in np.flatnonzero(experiment.visible)}
    for source in ("declared", "rule"):
        if training.weights.get(source, 0) > 0 and source not in sources:
            _LOG.warning("data.weights.%s changes nothing: %s has no %s labels", source, corpus.name, source)


def _refuse_unknown_part(experiment: Experiment) -> None:
    rows = np.concatenate([split.test for split in experiment.splits])
    columns = ([experiment.corpus.column(name)[row] for row in rows] for name in ("venue", "part", "random"))
    parts = named_parts(*columns)
    if experiment.metric_part not in parts:
        what = f"no test paper is in part {experiment.metric_part!r}"
        raise ConfigError(what, where="metric_part", remedy=f"parts: {', '.join(parts)}")


def _refuse_leaks(experiment: Experiment, split: Split) -> None:
    corpus, test = experiment.corpus, split.test
    keys, ids = corpus.column("key"), corpus.documents.ids
    copies = split.train[np.isin(corpus.groups[split.train], corpus.groups[test])]
    if len(copies):
        raise ConfigError(
            f"split {split.name!r} trains on {len(copies)} papers that it tests, or on duplicates of them: "
            f"{', '.join(ids[row] for row in copies[:3])}" + (" …" if len(copies) > 3 else ""),
            where="split",
            remedy="keep a duplicate group on one side",
        )
    for bundle in experiment.bundles:
        leaked = sum(bundle.trained_on(ids[row], keys[row]) for row in test)
        if leaked:
            raise ConfigError(
                f"{bundle.name} was trained on {leaked} of the {len(test)} test papers",
                where=f"classifier {experiment.label}",
                remedy="use a split with one fixed test set, as in split=holdout, for both runs",
            )


def fit_tagger(
    experiment: Experiment, train: IntArray, usable: IntArray | None = None, workdir: Path | None = None
) -> Fitted:
    """Fit classifier and decision on training rows of the corpus by the experiment's policy.

    Parameters
    ----------
    train
        Rows with labels to learn from.
    usable
        Rows whose texts may be used beside them; those of ``train`` in it do not matter.
    workdir
        Folder for checkpoints.

    Raises
    ------
    DataError
        An area has no positive or no negative among the rows, or among those held out.
    """
    corpus, policy = experiment.corpus, experiment.policy
    folds = _inner_folds(experiment, train, usable)
    spare = np.setdiff1d(train if usable is None else usable, np.concatenate([train, *(unseen for _, unseen in folds)]))
    texts: list[int] = []

    def unlabelled() -> Documents:
        texts[:] = spare.tolist()
        return corpus.documents[spare]

    begun = time.perf_counter()
    fitted: list[Classifier] = []
    scores: list[FloatArray] = []
    for number, (rest, unseen) in enumerate(folds):
        early = unseen if policy.method == "holdout" else None
        aid = _aid(experiment, early, unlabelled, workdir and workdir / f"fold-{number}")
        fitted.append(_fit(experiment, rest, aid))
        scores.append(fitted[-1].decision_function(corpus.documents[unseen]))
    held, raw = np.concatenate([unseen for _, unseen in folds]), np.concatenate(scores)
    decision = fit_decision(raw, corpus.values[held], corpus.known[held], policy)
    classifier = fitted[-1]
    if policy.method == "folds":
        classifier = _fit(experiment, train, _aid(experiment, None, unlabelled, workdir and workdir / "all"))
    seconds = time.perf_counter() - begun
    coverage = [own.coverage(corpus.documents[unseen]) for own, (_, unseen) in zip(fitted, folds, strict=True)]
    reference = _reference(corpus, held, decision, decision.probabilities(raw), np.concatenate(coverage))
    return Fitted(classifier, decision, reference, train, seconds, np.array(texts, dtype=np.intp))


def _reference(
    corpus: Corpus, rows: IntArray, decision: Decision, probabilities: FloatArray, coverage: FloatArray
) -> Reference:
    tags, confidence = decision.tags(probabilities), decision.confidence(probabilities).min(axis=1)
    return fit_reference(probabilities, tags, confidence, coverage, corpus.values[rows], corpus.known[rows])


def usable_rows(experiment: Experiment, rows: IntArray) -> IntArray:
    """Return those of ``rows`` that the experiment may see."""
    return rows[experiment.visible[rows]]


def _inner_folds(experiment: Experiment, train: IntArray, usable: IntArray | None) -> list[tuple[IntArray, IntArray]]:
    """Return training rows to fit on and rows to fit the decision on, of each fold.

    The decision rests on read labels: on those among the training rows, or, where none of them is trained on, on those
    of the other usable rows. What cannot be fitted is refused before anything is.
    """
    policy, scorable = experiment.policy, experiment.rows.scorable
    inner: splits.Splitter = splits.KFold(policy.folds) if policy.method == "folds" else splits.HoldOut(policy.holdout)
    pool = train
    if usable is not None and not scorable[train].any():
        pool = np.union1d(train, usable[scorable[usable]])
    remedy = "raise data.limit, or label more papers"
    try:
        folds = inner.split(experiment.rows.take(pool), seed=experiment.seed)
    except ConfigError as error:
        what = f"of {len(pool)} training papers none can be held out for calibration and thresholds"
        raise ConfigError(what, where="decision", remedy=remedy) from error
    found = [(pool[fold.train][np.isin(pool[fold.train], train)], pool[fold.test]) for fold in folds]
    held = np.concatenate([unseen for _, unseen in found])
    read = experiment.read_targets[held]
    for side, cells in (("positive", read.values & read.known), ("negative", ~read.values & read.known)):
        for number, area in enumerate(experiment.corpus.taxonomy.ids):
            if not cells[:, number].any():
                what = (
                    f"none of the {len(held)} held-out papers is a read {side} of {area}, so no threshold can be fitted"
                )
                raise DataError(what, where="decision", remedy=remedy)
    return found


def _aid(
    experiment: Experiment, held: IntArray | None, unlabelled: Callable[[], Documents], workdir: Path | None
) -> Aid:
    corpus = experiment.corpus
    held_out = None if held is None else Labelled(corpus.documents[held], experiment.read_targets[held])
    members = [Member(bundle.scorer, bundle.decision.slope, bundle.decision.offset) for bundle in experiment.bundles]
    return Aid(held_out, unlabelled, members, workdir, experiment.seed)


def _fit(experiment: Experiment, rows: IntArray, aid: Aid) -> Classifier:
    classifier = clone(experiment.classifier)
    if "seed" in classifier.get_params():
        classifier.set_params(seed=experiment.seed)
    fitted: Classifier = classifier.fit(
        experiment.corpus.documents[rows], experiment.targets[rows], taxonomy=experiment.corpus.taxonomy, aid=aid
    )
    return fitted


def _final(experiment: Experiment, outcome: Outcome, workdir: Path) -> Fitted | None:
    """Return the tagger to keep: that of the only split, or one fitted on all visible rows; None if there is none."""
    if not experiment.keep_bundle or getattr(outcome.fitted[0].classifier, "scorer_", None) is None:
        return None
    if len(outcome.fitted) == 1 and not experiment.fit_all:
        return outcome.fitted[0]
    visible = np.flatnonzero(experiment.visible)
    return fit_tagger(experiment, experiment.training_rows(visible), visible, workdir / "all")


def _bundle_writer(experiment: Experiment, final: Fitted, result: RunResult) -> Callable[[Path], None]:
    corpus = experiment.corpus
    names = [*corpus.column("key"), *corpus.column("id")]
    rows = {*final.rows.tolist(), *final.texts.tolist()}
    own = frozenset(name for number, name in enumerate(names) if name and number % len(corpus) in rows)
    keys = own.union(*(member.training_keys for member in experiment.bundles))
    bundle = Bundle(result.id, final.classifier.scorer_, final.decision, corpus.taxonomy, keys, final.reference)
    more = len(final.rows) > max(result.rows["train"])
    card = _card(result, _sources(corpus, final.rows), bundle.scorer.notice, more=more)
    return lambda folder: save_bundle(folder, bundle, card)


def _sources(corpus: Corpus, rows: IntArray) -> str:
    """Return where training papers come from, as "ICLR 2020–2024 (2,514), arXiv (12)"."""
    venues, years = corpus.column("venue"), corpus.column("year")
    found: dict[str, list[int | None]] = {}
    for row in rows:
        found.setdefault(venues[row] or "no venue", []).append(years[row])
    parts = []
    for venue, dates in sorted(found.items(), key=lambda item: -len(item[1])):
        known = sorted({date for date in dates if date is not None})
        span = "" if not known else f" {known[0]}" if len(known) == 1 else f" {known[0]}–{known[-1]}"
        parts.append(f"{venue}{span} ({len(dates):,})")
    return ", ".join(parts)


def _card(result: RunResult, sources: str, notice: str, *, more: bool) -> str:
    low, high = result.metrics["interval"]
    lines = [
        f"# {result.id}",
        "",
        f"A {result.classifier} tagger for {', '.join(result.areas)}.",
        f"Trained on papers of the corpus {result.corpus['name']} ({result.corpus['fingerprint']}): {sources}.",
        "Their texts belong to their authors and are not in the bundle.",
        f"Macro-F1 {result.metrics['macro_f1']:.3f} [{low:.3f}, {high:.3f}] on {result.metrics['n']} unseen papers",
        f"(part {result.metric_part}, experiment {result.experiment}, seed {result.seed}).",
        *(["That is of a tagger like it, trained without those papers; this one has learnt from all."] if more else []),
        "Keys of the training papers are in keys.json; `abstag eval` leaves those papers out.",
        *([notice] if notice else []),
    ]
    return "\n".join(lines) + "\n"


def _documents(corpus: Corpus, outcome: Outcome) -> ScoredDocuments:
    rows = {name: row for row, name in enumerate(corpus.documents.ids)}
    return ScoredDocuments(corpus.documents[np.array([rows[name] for name in outcome.scores.ids])], outcome.evidence)


def _decision_summary(fits: Sequence[Fitted], areas: Sequence[str]) -> dict[str, Any]:
    """Return the thresholds of each area and the review line, one value a split."""
    thresholds = np.array([fitted.decision.thresholds for fitted in fits])
    return {
        "thresholds": dict(zip(areas, thresholds.T.tolist(), strict=True)),
        "review": [fitted.decision.review for fitted in fits],
    }
