"""One experiment in, one stored result out: repeatable, honest about what was seen, and failures are kept."""

import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from sklearn.base import BaseEstimator

from abstag.bundle import load_bundle
from abstag.classifiers.base import Aid, Classifier
from abstag.classifiers.keywords import Keywords
from abstag.classifiers.linear import NaiveBayes
from abstag.classifiers.prior import Prior
from abstag.classifiers.scorers import PriorScorer
from abstag.classifiers.scores import Scores
from abstag.corpus import Corpus, load_corpus
from abstag.decision import Policy
from abstag.files import without_nan
from abstag.ingest import ingest
from abstag.records import Documents, FloatArray, Targets
from abstag.results import RunResult
from abstag.runner import Experiment, Training, fit_tagger, run, score_splits
from abstag.splits import ByVenue, ByYear, Fixed, HoldOut, KFold
from abstag.store import Store, load_result, read_documents, read_scores
from abstag.taxonomy import Taxonomy, load_taxonomy, parse_taxonomy
from tests.conftest import Go, part_of, write_dump

READ = Training({"review": 1.0, "read": 1.0})
FAST = Policy(folds=2)
TEST = Fixed(("test", "random"))


class Counting(Keywords):
    """Keywords that note which papers they were fitted on and asked for."""

    fits: ClassVar[list[list[str]]] = []
    asked: ClassVar[list[list[str]]] = []

    def _fit(self, documents: Documents, targets: Targets, taxonomy: Taxonomy) -> None:
        self.fits.append(list(documents.ids))
        super()._fit(documents, targets, taxonomy)

    def decision_function(self, documents: Documents) -> FloatArray:
        self.asked.append(list(documents.ids))
        return super().decision_function(documents)


class Raising(Keywords):
    """Cannot be fitted."""

    def _fit(self, documents: Documents, targets: Targets, taxonomy: Taxonomy) -> None:
        raise RuntimeError("the dog ate the gradient")


class Seeded(Classifier, BaseEstimator):
    """Takes a seed and scores by it."""

    seeds: ClassVar[list[int]] = []

    def __init__(self, seed: int = 99) -> None:
        self.seed = seed

    def _fit(self, documents: Documents, targets: Targets, taxonomy: Taxonomy) -> None:
        self.seeds.append(self.seed)
        self.scorer_ = PriorScorer(np.random.default_rng(self.seed).normal(size=len(taxonomy.areas)))


@pytest.fixture(autouse=True)
def forgotten() -> None:
    for notes in (Counting.fits, Counting.asked, Seeded.seeds):
        notes.clear()


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "runs")


@pytest.fixture(scope="module")
def parts(parted: Path) -> Corpus:
    return load_corpus(parted)


def make(corpus: Corpus, **changes: Any) -> Experiment:
    classifier = changes.get("classifier", Prior())
    values: dict[str, Any] = {
        "name": "trial",
        "label": type(classifier).__name__.lower(),
        "corpus": corpus,
        "splitter": KFold(2),
        "classifier": classifier,
        "policy": FAST,
        "training": READ,
        "config": {"classifier": classifier.get_params(), "changes": sorted(map(str, changes))},
    }
    return Experiment(**(values | changes))


def keys_of(store: Store, result: RunResult) -> frozenset[str]:
    return load_bundle(store.folder(result.id) / "bundle").training_keys


def test_same_experiment_twice_is_skipped_and_equal(corpus: Corpus, store: Store) -> None:
    first = run(make(corpus, classifier=Counting()), store)
    fits = len(Counting.fits)
    second = run(make(corpus, classifier=Counting()), store)
    assert fits > 0
    assert len(Counting.fits) == fits
    assert without_nan(second.to_json()) == without_nan(first.to_json())
    assert first.looks == second.looks == 1
    assert len(store.results()) == 1


def test_fresh_store_gives_bit_identical_scores(corpus: Corpus, tmp_path: Path) -> None:
    stores = [Store(tmp_path / "a"), Store(tmp_path / "b")]
    results = [run(make(corpus, classifier=NaiveBayes()), store) for store in stores]
    assert results[0].id == results[1].id
    assert results[0].parts == results[1].parts
    folders = [store.folder(results[0].id) for store in stores]
    assert folders[0].joinpath("scores.parquet").read_bytes() == folders[1].joinpath("scores.parquet").read_bytes()
    names = ("bundle.json", "weights.safetensors", "strings.json", "keys.json", "README.md")
    assert all(
        (folders[0] / "bundle" / name).read_bytes() == (folders[1] / "bundle" / name).read_bytes() for name in names
    )


def test_one_abstract_changed_is_another_id(corpus: Corpus, papers: list[dict[str, Any]], tmp_path: Path) -> None:
    changed = [dict(paper) for paper in papers]
    changed[7]["abstract"] += " Indeed."
    ingest([str(write_dump(tmp_path / "p.jsonl", changed))], tmp_path / "embedded", taxonomy=load_taxonomy())
    other = load_corpus(tmp_path / "embedded")
    assert other.name == corpus.name
    assert make(other).id != make(corpus).id


def test_copy_elsewhere_is_the_same_id(corpus: Corpus, embedded: Path, tmp_path: Path) -> None:
    copy = load_corpus(Path(shutil.copytree(embedded, tmp_path / "renamed")))
    assert make(copy).id == make(corpus).id


def test_id_depends_on_config_input_and_no_folder(corpus: Corpus, tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text("id,area,score\n")
    first = make(corpus, classifier=Scores(str(tmp_path / "s.csv")), config={}).id
    (tmp_path / "s.csv").write_text("id,area,score\nabstag-001,llm,1\n")
    assert first != make(corpus, classifier=Scores(str(tmp_path / "s.csv")), config={}).id
    assert make(corpus, config={"a": 1}).id == make(corpus, config={"a": 1.0}).id
    assert make(corpus, config={"a": 1}).id != make(corpus, config={"a": 2}).id


def test_label_with_a_slash_stays_one_folder(corpus: Corpus) -> None:
    assert "/" not in make(corpus, label="mine/nb").id


def test_every_paper_is_scored_once_by_a_model_that_has_not_seen_it(corpus: Corpus, store: Store) -> None:
    outcome = score_splits(make(corpus, classifier=Counting(), splitter=KFold(3)))
    assert Counter(outcome.scores.ids) == Counter(corpus.column("id"))
    for fold, fitted in enumerate(outcome.fitted):
        tested = {name for name, number in zip(outcome.scores.ids, outcome.scores.fold, strict=True) if number == fold}
        assert not tested & {corpus.column("id")[row] for row in fitted.rows}


def test_no_test_row_or_copy_of_one_is_in_the_training_keys(parts: Corpus, parted: Path, store: Store) -> None:
    result = run(make(parts, splitter=TEST), store)
    scores, keys = read_scores(store.folder(result.id)), keys_of(store, result)
    key_of = dict(zip(parts.column("id"), parts.column("key"), strict=True))
    tested = set(scores.ids) | {key_of[name] for name in scores.ids}
    assert len(scores) == 30
    assert not keys & tested
    assert not keys & {"copy-0", "copy-4"}
    assert len(keys) == 2 * result.rows["train"][0] == 2 * 50
    trained = {row for row, name in enumerate(parts.column("id")) if name in keys}
    assert not {parts.groups[row] for row in trained} & set(scores.groups.tolist())


def test_kfold_bundle_is_trained_on_all_and_fixed_only_on_its_side(corpus: Corpus, store: Store) -> None:
    result = run(make(corpus), store)
    assert keys_of(store, result) == {*corpus.column("id"), *corpus.column("key")}
    assert result.rows == {"train": [40, 40], "test": 80, "fingerprint": result.rows["fingerprint"]}


def test_classifier_that_raises_is_kept_with_its_traceback(corpus: Corpus, store: Store) -> None:
    result = run(make(corpus, classifier=Raising()), store)
    assert result.status == "failed"
    assert result.error == "RuntimeError('the dog ate the gradient')"
    log = (store.folder(result.id) / "log").read_text()
    assert "Traceback (most recent call last)" in log
    assert "in _fit" in log
    assert load_result(store.folder(result.id)) == result
    assert {path.name for path in store.folder(result.id).iterdir()} == {"config.yaml", "log", "result.json"}
    assert store.looks("any") == 0


def test_failed_run_is_done_again_and_replaced(corpus: Corpus, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    experiment = make(corpus, classifier=Raising())
    assert run(experiment, store).status == "failed"
    monkeypatch.setattr(Raising, "_fit", Keywords._fit)
    assert run(experiment, store).status == "done"
    assert (store.folder(experiment.id) / "log").read_text() == ""


def five(folder: Path, papers: list[dict[str, Any]], judged: list[str]) -> Corpus:
    """Return the corpus with a fifth area of which no paper is a positive."""
    taxonomy = load_taxonomy()
    areas = [*taxonomy.source["areas"], {"id": "robots", "name": "Robots", "keywords": ["robot"]}]
    rows = [paper | {"judged": [*taxonomy.ids, *judged]} for paper in papers]
    file = write_dump(folder / "five.jsonl", rows)
    ingest([str(file)], folder / "five", taxonomy=parse_taxonomy({**taxonomy.source, "areas": areas}))
    return load_corpus(folder / "five")


@pytest.mark.parametrize("classifier", [Prior(), Keywords()], ids=["learns", "rule"])
@pytest.mark.parametrize("judged", [["robots"], []], ids=["all negative", "unknown"])
def test_area_without_positives_fails_with_one_clear_line(
    classifier: Classifier, judged: list[str], papers: list[dict[str, Any]], store: Store, tmp_path: Path
) -> None:
    result = run(make(five(tmp_path, papers, judged), classifier=classifier), store)
    assert result.status == "failed"
    assert result.error is not None
    assert "positive" in result.error
    assert "label" in result.error
    assert "\n" not in result.error
    assert "'robots'" in result.error


def test_corpus_without_read_labels_fails_with_one_clear_line(
    papers: list[dict[str, Any]], store: Store, tmp_path: Path
) -> None:
    rows = [{"title": paper["title"], "abstract": paper["abstract"], "keywords": paper["areas"]} for paper in papers]
    ingest([str(write_dump(tmp_path / "p.jsonl", rows))], tmp_path / "unread", taxonomy=load_taxonomy())
    for classifier in (Prior(), Keywords()):
        result = run(make(load_corpus(tmp_path / "unread"), classifier=classifier), store)
        assert result.status == "failed"
        assert result.error == (
            "unread: no paper has a read or review label, so nothing can be scored and no threshold fitted; "
            "ingest with --labels FILE"
        )


def test_holdout_decision_fits_once_and_never_on_the_papers_held_out(parts: Corpus, store: Store) -> None:
    policy = Policy(method="holdout", holdout=0.3)
    result = run(make(parts, classifier=Counting(), splitter=TEST, policy=policy), store)
    assert result.status == "done", result.error
    assert len(Counting.fits) == 1
    fitted, (held, tested) = set(Counting.fits[0]), map(set, Counting.asked)
    assert not fitted & held
    assert not fitted & tested
    assert not held & tested
    assert len(fitted) + len(held) == 50
    assert 10 <= len(held) <= 20
    assert len(tested) == result.rows["test"] == 30


def test_folds_decision_fits_a_model_a_fold_and_one_on_all(parts: Corpus, store: Store) -> None:
    run(make(parts, classifier=Counting(), splitter=TEST, policy=Policy(folds=3)), store)
    assert [len(ids) for ids in Counting.fits[-1:]] == [50]
    assert len(Counting.fits) == 4
    held = [name for ids in Counting.asked[:3] for name in ids]
    assert sorted(held) == sorted(Counting.fits[-1])


def test_kfold_with_a_bundle_fits_once_more_and_without_one_not(corpus: Corpus, store: Store) -> None:
    policy = Policy(method="holdout", holdout=0.3)
    run(make(corpus, classifier=Counting(), policy=policy), store)
    assert len(Counting.fits) == 3
    Counting.fits.clear()
    run(make(corpus, classifier=Counting(), policy=policy, keep_bundle=False, config={"other": 1}), store)
    assert len(Counting.fits) == 2


def test_named_parts_and_their_figures(parts: Corpus, store: Store) -> None:
    result = run(make(parts, splitter=TEST, metric_part="iclr-test"), store)
    expected = Counter()  # type: Counter[str]
    for number in range(80):
        part, venue = part_of(number), ("iclr", "icml", None)[number % 3]
        if part == "train":
            continue
        expected["all"] += 1
        expected[part] += part != "random"
        expected[f"{venue}-{part}"] += venue is not None
        expected["random"] += part == "random" or number % 16 == 0
    assert {name: part["n"] for name, part in result.parts.items()} == {k: v for k, v in expected.items() if v}
    assert result.metrics == result.parts["iclr-test"]
    for found in result.parts.values():
        low, high = found["interval"]
        assert low <= found["macro_f1"] <= high
        assert found["at_half"].keys() == found["sure"].keys() == {"n", "macro_f1", "micro_f1"}
        assert found["at_half"]["n"] == found["n"] >= found["sure"]["n"]


def test_sure_leaves_unsure_labels_out_and_at_half_ignores_thresholds(corpus: Corpus, store: Store) -> None:
    result = run(make(corpus), store)
    assert result.metrics["n"] == 80
    assert result.metrics["sure"]["n"] == 76
    assert result.metrics["at_half"]["micro_f1"] == 0.0
    assert result.metrics["micro_f1"] > 0.3


def test_unknown_metric_part_fails_and_names_the_parts(parts: Corpus, store: Store) -> None:
    result = run(make(parts, splitter=TEST, metric_part="dev"), store)
    assert result.status == "failed"
    assert (result.error or "").startswith("metric_part: no test paper is in part 'dev'; parts: all, ")
    assert not (store.root / "looks.jsonl").exists()


@pytest.mark.parametrize(
    ("splitter", "column", "tested"),
    [
        (ByYear(2025), "year", lambda value: value >= 2025),
        (ByVenue(("ICML",)), "venue", lambda value: value == "ICML"),
    ],
    ids=["year", "venue"],
)
def test_split_by_year_and_venue(
    splitter: ByYear | ByVenue, column: str, tested: Callable[[Any], bool], parts: Corpus, store: Store
) -> None:
    result = run(make(parts, splitter=splitter), store)
    assert result.status == "done", result.error
    value = dict(zip(parts.column("id"), parts.column(column), strict=True))
    scored, keys = read_scores(store.folder(result.id)).ids, keys_of(store, result)
    assert all(tested(value[name]) for name in scored)
    trained = [name for name in value if name in keys]
    assert trained
    assert not any(value[name] is None or tested(value[name]) for name in trained)


def test_parts_that_must_not_be_seen_are_neither_scored_nor_trained_on(parts: Corpus, store: Store) -> None:
    hidden = Training(READ.weights, without_parts=("test", "random"))
    result = run(make(parts, classifier=Counting(), training=hidden), store)
    seen = {name for ids in [*Counting.fits, *Counting.asked] for name in ids}
    part = dict(zip(parts.column("id"), parts.column("part"), strict=True))
    assert result.metrics["n"] == 50
    assert {part[name] for name in seen} == {"train"}


def test_no_bundle_when_none_is_wanted_or_possible(corpus: Corpus, store: Store, tmp_path: Path) -> None:
    result = run(make(corpus, keep_bundle=False), store)
    assert not (store.folder(result.id) / "bundle").exists()
    rows = [f"{name},{area},{row % 7}" for row, name in enumerate(corpus.column("id")) for area in corpus.taxonomy.ids]
    (tmp_path / "s.csv").write_text("\n".join(["id,area,score", *rows]))
    result = run(make(corpus, classifier=Scores(str(tmp_path / "s.csv"))), store)
    assert result.status == "done", result.error
    assert not (store.folder(result.id) / "bundle").exists()


def test_bundle_asked_for_later_is_made(corpus: Corpus, store: Store) -> None:
    first = run(make(corpus, keep_bundle=False, config={}), store)
    second = run(make(corpus, keep_bundle=True, config={}), store)
    assert (store.folder(second.id) / "bundle").exists()
    assert first.metrics == second.metrics


def test_seed_reaches_classifier_and_folds(corpus: Corpus, store: Store) -> None:
    first = run(make(corpus, classifier=Seeded(), seed=3, config={"seed": 3}), store)
    assert set(Seeded.seeds) == {3}
    second = run(make(corpus, classifier=Seeded(), seed=4, config={"seed": 4}), store)
    folds = [read_scores(store.folder(result.id)) for result in (first, second)]
    fold_of = [dict(zip(table.ids, table.fold.tolist(), strict=True)) for table in folds]
    assert fold_of[0] != fold_of[1]
    assert (first.seed, second.seed) == (3, 4)


def test_looks_count_other_runs_on_the_same_test_rows(parts: Corpus, store: Store) -> None:
    looks = [
        run(make(parts, splitter=splitter, config={"n": number}), store).looks
        for number, splitter in enumerate((TEST, TEST, HoldOut(0.3)))
    ]
    assert looks == [1, 2, 1]
    assert run(make(parts, splitter=TEST, config={"n": 0}), store).looks == 1


def test_result_holds_costs_versions_and_thresholds(corpus: Corpus, store: Store) -> None:
    result = run(make(corpus), store)
    assert (result.fit_seconds or 0) > 0
    assert (result.texts_per_second or 0) > 0
    assert (result.peak_mb or 0) > 50
    assert result.versions["scikit-learn"]
    assert result.areas == list(corpus.taxonomy.ids)
    assert result.decision["thresholds"].keys() == set(corpus.taxonomy.ids)
    assert all(len(values) == 2 for values in result.decision["thresholds"].values())
    assert len(result.decision["review"]) == 2


def test_declared_labels_train_and_are_never_scored(papers: list[dict[str, Any]], tmp_path: Path) -> None:
    names = {"llm": "large language models", "graphs": "graph neural networks", "diffusion": "diffusion models"}
    rows = [dict(paper) for paper in papers]
    for row in rows[:30]:
        row["keywords"] = [names.get(area, "convex optimization") for area in row["areas"]] or ["bees"]
        del row["areas"], row["judged"]
    ingest([str(write_dump(tmp_path / "p.jsonl", rows))], tmp_path / "c", taxonomy=load_taxonomy())
    corpus = load_corpus(tmp_path / "c")
    assert {source: corpus.sources.count(source) for source in ("declared", "read")} == {"declared": 30, "read": 50}
    both = make(corpus, training=Training({"read": 1.0, "declared": 1.0}, declared_negatives=0.3))
    outcome = score_splits(both)
    assert len(outcome.scores) == 50
    assert all(corpus.sources[corpus.column("id").index(name)] == "read" for name in outcome.scores.ids)
    assert len(outcome.fitted[0].rows) == 55
    alone = fit_tagger(make(corpus), np.flatnonzero(make(corpus).trainable))
    assert len(alone.rows) == 50


def test_scored_papers_are_kept_with_the_terms_of_the_model_that_scored_them(corpus: Corpus, store: Store) -> None:
    result = run(make(corpus, classifier=Keywords()), store)
    scores = read_scores(store.folder(result.id))
    kept = read_documents(store.folder(result.id), scores.areas)
    assert kept is not None
    assert kept.evidence is not None
    texts = dict(zip(corpus.documents.ids, corpus.documents.abstracts, strict=True))
    assert list(kept.documents.ids) == list(scores.ids)
    assert [texts[name] for name in scores.ids] == list(kept.documents.abstracts)
    hits = np.array([[bool(area) for area in paper] for paper in kept.evidence])
    assert hits.any()
    phrases = {phrase.casefold() for area in corpus.taxonomy.areas for phrase in area.keywords}
    assert {term.casefold() for paper in kept.evidence for area in paper for term, _ in area} <= phrases


class Aided(Keywords):
    """Keywords that note what a fit was given: its papers, and what it may use beside them."""

    given: ClassVar[list[tuple[list[str], Aid]]] = []

    def _fit(self, documents: Documents, targets: Targets, taxonomy: Taxonomy) -> None:
        self.given.append((list(documents.ids), self.aid))
        super()._fit(documents, targets, taxonomy)


HOLDOUT = Policy(method="holdout", holdout=0.3)


def test_a_limit_leaves_training_papers_out_and_no_test_paper(corpus: Corpus) -> None:
    whole = score_splits(make(corpus, splitter=HoldOut(0.3)))
    trained = {}
    for limit, seed in ((30, 0), (30, 1), (1000, 0)):
        outcome = score_splits(make(corpus, splitter=HoldOut(0.3), training=replace(READ, limit=limit), seed=seed))
        (fitted,) = outcome.fitted
        trained[limit, seed] = set(fitted.rows.tolist())
        if seed == 0:
            assert outcome.scores.ids == whole.scores.ids
            assert trained[limit, seed] <= set(whole.fitted[0].rows.tolist())
    assert [len(rows) for rows in trained.values()] == [30, 30, len(whole.fitted[0].rows)]
    assert trained[30, 0] != trained[30, 1]
    again = score_splits(make(corpus, splitter=HoldOut(0.3), training=replace(READ, limit=30)))
    assert set(again.fitted[0].rows.tolist()) == trained[30, 0]


def test_a_limit_holds_in_every_fold_and_for_the_tagger_that_is_kept(corpus: Corpus, store: Store) -> None:
    result = run(make(corpus, training=replace(READ, limit=25)), store)
    assert result.rows["train"] == [25, 25]
    assert len(keys_of(store, result)) == 2 * 25


@pytest.mark.parametrize("limit", [0, -3])
def test_a_limit_below_1_is_one_line(limit: int, go: Go, embedded: Path, tmp_path: Path) -> None:
    ran = go("run", f"data.limit={limit}", f"data.path={embedded}", f"runs_dir={tmp_path}", code=1)
    assert ran.err == f"abstag: data.limit: {limit} is out of range; at least 1, or null\n"


@pytest.mark.parametrize("policy", [HOLDOUT, FAST], ids=["holdout", "folds"])
def test_held_out_papers_are_given_where_the_policy_keeps_some(policy: Policy, parts: Corpus, store: Store) -> None:
    Aided.given.clear()
    run(make(parts, classifier=Aided(), splitter=TEST, policy=policy, seed=5), store)
    assert len(Aided.given) == (1 if policy.method == "holdout" else 3)
    folders = {aid.workdir for _, aid in Aided.given}
    assert len(folders) == len(Aided.given)
    assert {aid.seed for _, aid in Aided.given} == {5}
    for ids, aid in Aided.given:
        assert (aid.held_out is not None) == (policy.method == "holdout")
        if aid.held_out is not None:
            names = aid.held_out.documents.ids
            rows = np.array([parts.documents.ids.index(name) for name in names])
            assert not set(names) & set(ids)
            assert len(names) + len(ids) == 50
            np.testing.assert_array_equal(aid.held_out.targets.values, parts.values[rows])


@pytest.mark.parametrize("policy", [HOLDOUT, FAST], ids=["holdout", "folds"])
@pytest.mark.parametrize("limit", [None, 30])
def test_papers_without_labels_are_neither_trained_on_nor_held_out_nor_tested(
    policy: Policy, limit: int | None, parts: Corpus
) -> None:
    Aided.given.clear()
    training = replace(READ, limit=limit)
    outcome = score_splits(make(parts, classifier=Aided(), splitter=TEST, policy=policy, training=training))
    (fitted,) = outcome.fitted
    trained = {parts.documents.ids[row] for row in fitted.rows}
    for ids, aid in Aided.given:
        unlabelled = set(aid.unlabelled().ids)
        held = set(aid.held_out.documents.ids if aid.held_out else ())
        assert not unlabelled & (trained | held | set(ids) | set(outcome.scores.ids))
        assert len(unlabelled) >= (50 - limit if limit else 0)


def test_papers_without_labels_are_of_parts_that_may_be_seen(parts: Corpus) -> None:
    Aided.given.clear()
    training = replace(READ, without_parts=("random",), limit=20)
    score_splits(make(parts, classifier=Aided(), training=training))
    part = dict(zip(parts.documents.ids, parts.column("part"), strict=True))
    found = {part[name] for _, aid in Aided.given for name in aid.unlabelled().ids}
    assert "train" in found
    assert "random" not in found


class Dear(Keywords):
    """Takes long to fit, it says."""

    dear = True


@pytest.mark.parametrize(("policy", "warned"), [(FAST, True), (Policy("holdout"), False)])
def test_many_long_fits_are_warned_of(
    policy: Policy, warned: bool, corpus: Corpus, caplog: pytest.LogCaptureFixture
) -> None:
    score_splits(make(corpus, classifier=Dear(), policy=policy))
    assert ("dear takes long to fit, and is fitted 3 times on each split" in caplog.text) == warned
