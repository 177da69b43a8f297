"""Students and ensembles: what they learn from taggers of finished runs, and which runs they refuse."""

import io
import shlex
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from tokenizers import Tokenizer

from abstag.bundle import Bundle, load_bundle, save_bundle
from abstag.classifiers.base import Aid, Member, Scorer, State
from abstag.classifiers.distilled import Distilled, Ensemble
from abstag.classifiers.encoder import Encoder, EncoderScorer
from abstag.classifiers.linear import LogReg, tfidf
from abstag.classifiers.scorers import EnsembleScorer, LinearScorer, PriorScorer, StaticScorer
from abstag.cli import main
from abstag.corpus import load_corpus
from abstag.decision import Decision
from abstag.errors import ConfigError
from abstag.files import new_folder
from abstag.records import Documents, FloatArray, Targets
from abstag.store import Store, load_result, read_scores
from abstag.taxonomy import parse_taxonomy
from tests.conftest import Go

AREAS = parse_taxonomy({"name": "t", "areas": [{"id": "boats"}, {"id": "bread"}]})
WORDS = ["keel", "rudder", "oven", "crumb", "heron", "gear", "survey"]
RNG = np.random.default_rng(7)
TEXTS = [" ".join(RNG.choice(WORDS, RNG.integers(4, 8))) for _ in range(60)]
TRUTH = np.array([["keel" in text or "rudder" in text, "oven" in text or "crumb" in text] for text in TEXTS])
PAPERS = Documents([f"p{row}" for row in range(60)], [text.split()[0] for text in TEXTS], TEXTS)
READ, UNREAD = PAPERS[np.arange(25)], PAPERS[np.arange(25, 60)]


class Oracle(Scorer):
    """Scores papers by what it is told of each text."""

    kind: ClassVar[str] = "oracle"

    def __init__(self, told: Mapping[str, Sequence[float]]) -> None:
        self.told = told

    def __call__(self, documents: Documents) -> FloatArray:
        return np.array([self.told[text] for text in documents.abstracts], dtype=np.float64)

    def state(self) -> State:
        raise NotImplementedError

    @classmethod
    def restore(cls, state: State) -> Self:
        raise NotImplementedError


def teacher(logits: FloatArray) -> Member:
    """A tagger that gives these log odds for the papers, in their order."""
    return Member(Oracle(dict(zip(TEXTS, logits.tolist(), strict=True))), np.ones(2), np.zeros(2))


SURE = teacher(np.where(TRUTH, 60.0, -60.0))
UNSURE = teacher(np.random.default_rng(8).normal(size=TRUTH.shape) * 2)


def targets(rows: int = 25, *, known: float = 1.0, seed: int = 1) -> Targets:
    rng = np.random.default_rng(seed)
    weight = rng.choice([0.0, 0.5, 1.0], (rows, 2), p=[0.2, 0.2, 0.6]) if known < 1 else np.ones((rows, 2))
    return Targets(TRUTH[:rows], rng.random((rows, 2)) < known, weight)


def student(given: Targets, member: Member, unread: Documents | None = UNREAD, **changes: Any) -> LinearScorer:
    model = Distilled("t", min_df=1, **changes)
    aid = Aid(unlabelled=lambda: unread or Documents([], [], []), members=[member])
    scorer = model.fit(PAPERS[np.arange(len(given))], given, taxonomy=AREAS, aid=aid).scorer_
    assert isinstance(scorer, LinearScorer)
    return scorer


class TestDistilled:
    def test_a_teacher_that_knows_the_labels_gives_the_model_of_all_labels(self) -> None:
        whole = LogReg(min_df=1).fit(PAPERS, targets(60), taxonomy=AREAS).decision_function(PAPERS)
        np.testing.assert_allclose(student(targets(), SURE)(PAPERS), whole, atol=1e-2)
        some = np.random.default_rng(2).random((25, 2)) < 0.6
        np.testing.assert_allclose(
            student(Targets(TRUTH[:25], some, some.astype(float)), SURE)(PAPERS), whole, atol=1e-2
        )

    def test_where_every_cell_is_read_and_nothing_else_there_it_is_logistic_regression(self) -> None:
        alone = LogReg(min_df=1).fit(READ, targets(), taxonomy=AREAS).decision_function(PAPERS)
        np.testing.assert_allclose(student(targets(), UNSURE, None)(PAPERS), alone, atol=1e-3)

    @pytest.mark.parametrize("share", [0.3, 1.0])
    def test_it_is_scikit_learns_on_soft_labels(self, share: float) -> None:
        given, soft = targets(known=0.7), UNSURE.probabilities(PAPERS)
        found = student(given, UNSURE, share=share, C=2.0)
        matrix = tfidf(PAPERS, title_weight=3, min_df=1).matrix.toarray()
        for area in range(2):
            rows, values, weight = [], [], []
            for row in range(60):
                if row < 25 and given.known[row, area] and given.weight[row, area]:
                    lessons = [(given.values[row, area], given.weight[row, area])]
                else:
                    lessons = [(True, share * soft[row, area]), (False, share * (1 - soft[row, area]))]
                for value, heavy in lessons:
                    rows.append(row)
                    values.append(value)
                    weight.append(heavy)
            model = LogisticRegression(C=2.0, solver="liblinear", random_state=0)
            model.fit(matrix[rows], values, sample_weight=weight)
            np.testing.assert_allclose(found(PAPERS)[:, area], model.decision_function(matrix), atol=1e-3)

    def test_unknown_cells_do_not_count(self) -> None:
        given = targets(known=0.7)
        used = given.known & (given.weight > 0)
        other = Targets(given.values ^ ~used, given.known, np.where(given.known, given.weight, 9.0))
        first, second = (student(one, UNSURE)(PAPERS) for one in (given, other))
        np.testing.assert_allclose(first, second, atol=1e-3)

    def test_the_share_is_how_much_the_teacher_counts(self) -> None:
        never = teacher(np.full(TRUTH.shape, -3.0))
        means = [expit(student(targets(), never, share=share)(UNREAD)).mean() for share in (1e-6, 0.1, 10.0)]
        assert means == sorted(means, reverse=True)
        alone = LogReg(min_df=1).fit(READ, targets(), taxonomy=AREAS).decision_function(UNREAD)
        assert abs(means[0] - expit(alone).mean()) < 0.05
        assert abs(means[2] - expit(-3.0)) < 0.05

    def test_papers_without_labels_bring_their_words(self) -> None:
        assert "lighthouse" not in student(targets(), UNSURE).vocabulary
        text = "lighthouse by the keel"
        member = Member(Oracle({**dict.fromkeys(TEXTS, (0.0, 0.0)), text: (60.0, -60.0)}), np.ones(2), np.zeros(2))
        more = UNREAD.joined(Documents(["new"], [""], [text]))
        scorer = student(targets(), member, more)
        place = list(scorer.vocabulary).index("lighthouse")
        assert scorer.coef[0, place] > 0 > scorer.coef[1, place]

    @pytest.mark.parametrize(
        ("name", "value"), [("share", 0.0), ("share", float("inf")), ("C", -1.0), ("min_df", 0), ("title_weight", -1)]
    )
    def test_a_parameter_out_of_range_names_its_key(self, name: str, value: Any) -> None:
        with pytest.raises(ConfigError, match=rf"classifier\.{name}: .* is out of range"):
            Distilled(**{"teacher": "t", name: value}).check()
        Distilled("t").check()

    def test_it_asks_for_its_teacher(self) -> None:
        assert Distilled("logreg").member_names() == ("logreg",)
        assert Ensemble(["logreg", "nb-1"]).member_names() == ("logreg", "nb-1")


class TestEnsemble:
    def test_the_mean_of_calibrated_probabilities(self) -> None:
        nothing = Targets(np.zeros((0, 2), bool), np.zeros((0, 2), bool), np.zeros((0, 2)))
        members = [SURE, UNSURE, Member(PriorScorer(np.array([1.0, -2.0])), np.array([2.0, 0.5]), np.array([0.1, 0.2]))]
        model = Ensemble(["a", "b", "c"]).fit(Documents([], [], []), nothing, taxonomy=AREAS, aid=Aid(members=members))
        expected = (TRUTH + UNSURE.probabilities(PAPERS) + expit([2.1, -0.8])) / 3
        np.testing.assert_allclose(expit(model.decision_function(PAPERS)), expected, atol=1e-6)

    def test_members_that_are_all_sure_give_finite_scores(self) -> None:
        assert np.isfinite(EnsembleScorer([SURE, SURE])(PAPERS)).all()

    @pytest.mark.parametrize("runs", [[], ["a"], ["a", "a"], ["a", "b", "a"]])
    def test_two_different_runs_are_needed(self, runs: list[str]) -> None:
        with pytest.raises(ConfigError, match=r"classifier\.runs: two or more different runs are needed"):
            Ensemble(runs).check()
        Ensemble(["a", "b"]).check()

    def test_round_trip_with_members_of_every_kind(self, tiny_encoder: Path, tmp_path: Path) -> None:
        rng = np.random.default_rng(3)
        head = rng.normal(size=(2, 16)) * 3, rng.normal(size=2)
        tokenizer = Tokenizer.from_file(str(tiny_encoder / "tokenizer.json"))
        scorers: list[Scorer] = [
            LogReg(min_df=1).fit(PAPERS, targets(60), taxonomy=AREAS).scorer_,
            StaticScorer(tokenizer.to_str(), rng.normal(size=(67, 16)).astype(np.float16), *head, title_weight=2),
            EncoderScorer(Encoder.load(tiny_encoder, max_tokens=32, device="cpu"), *head),
            EnsembleScorer([Member(PriorScorer(rng.normal(size=2)), *rng.normal(size=(2, 2)))] * 2),
        ]
        members = [Member(scorer, *rng.normal(size=(2, 2))) for scorer in scorers]
        decision = Decision(np.ones(2), np.zeros(2), np.full(2, 0.5), 0.6)
        made = Bundle("ensemble-1", EnsembleScorer(members), decision, AREAS, frozenset())
        with new_folder(tmp_path / "bundle") as folder:
            save_bundle(folder, made, "card")
        loaded = load_bundle(tmp_path / "bundle")
        assert isinstance(loaded.scorer, EnsembleScorer)
        assert [type(member.scorer) for member in loaded.scorer.members] == [type(scorer) for scorer in scorers]
        np.testing.assert_array_equal(loaded.probabilities(PAPERS), made.probabilities(PAPERS))


HOLDOUT = ("split=holdout", "decision=holdout")


@pytest.fixture(scope="module")
def finished(embedded: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with a run of logistic regression and one of naive Bayes, of fixed test papers."""
    runs = tmp_path_factory.mktemp("finished") / "runs"
    with redirect_stdout(io.StringIO()):
        for name in ("logreg", "nb"):
            words = [f"classifier={name}", f"data.path={embedded}", f"runs_dir={runs}", *HOLDOUT]
            assert main(["--quiet", "run", *words]) == 0
    return runs


@pytest.fixture
def start(go: Go, finished: Path, embedded: Path, tmp_path: Path) -> Callable[..., tuple[str, Store]]:
    """Run beside the finished runs; give standard error and the store."""
    runs = Path(shutil.copytree(finished, tmp_path / "runs"))

    def call(*words: str, code: int = 0) -> tuple[str, Store]:
        return go("--quiet", "run", f"data.path={embedded}", f"runs_dir={runs}", *words, code=code).err, Store(runs)

    return call


Start = Callable[..., tuple[str, Store]]
DISTILLED = ("classifier=distilled", "classifier.teacher=logreg", *HOLDOUT)
ENSEMBLE = ("classifier=ensemble", "classifier.runs=[logreg,nb]", *HOLDOUT)


class TestRunning:
    def test_a_student_of_a_finished_run(self, start: Start) -> None:
        _, store = start(*DISTILLED)
        result = load_result(store.find("distilled"))
        assert result.rows == load_result(store.find("logreg")).rows
        assert load_bundle(store.find("distilled") / "bundle").scorer.kind == "linear"

    def test_an_ensemble_scores_the_mean_and_tags(self, start: Start, go: Go, dump: Path) -> None:
        _, store = start(*ENSEMBLE)
        bundles = [load_bundle(store.find(name) / "bundle") for name in ("ensemble", "logreg", "nb")]
        ensemble, *members = (
            bundle.probabilities(Documents(["p"], ["A graph"], ["Of a language model."])) for bundle in bundles
        )
        calibrated = bundles[0].decision.probabilities(
            np.log(np.mean(members, axis=0) / (1 - np.mean(members, axis=0)))
        )
        np.testing.assert_allclose(ensemble, calibrated, atol=1e-6)
        found, theirs = (read_scores(store.find(name)) for name in ("ensemble", "logreg"))
        assert found.ids == theirs.ids
        out = go("tag", dump, "--bundle", "ensemble", "--runs-dir", store.root, code=0).out
        assert out.count("\n") == 80

    def test_another_teacher_is_another_run(self, start: Start) -> None:
        for name in ("logreg", "nb"):
            _, store = start(*DISTILLED, f"classifier.teacher={name}")
        start(*DISTILLED)
        assert len(list(store.root.glob("distilled-*"))) == 2

    def test_a_missing_teacher_names_the_remedy(self, start: Start) -> None:
        err, store = start(*DISTILLED, "classifier.teacher=svm", code=1)
        what = "no finished runs of 'svm' have this corpus, split, decision and seed; run first: abstag run "
        assert err.startswith(f"abstag: classifier distilled: {what}")
        assert err.endswith(" classifier=svm\n")
        command = shlex.split(err.partition("run first: ")[2])
        assert set(command) >= {*HOLDOUT, "abstag", "run"}
        assert not [word for word in command if "teacher" in word or word == "classifier=distilled"]
        assert not list(store.root.glob("distilled-*"))

    @pytest.mark.parametrize("words", [DISTILLED, ENSEMBLE], ids=["distilled", "ensemble"])
    @pytest.mark.parametrize(
        ("word", "what"),
        [(f"{key}={value}", key) for key, value in (("split.share", 0.3), ("decision.holdout", 0.3), ("seed", 1))],
    )
    def test_a_run_of_other_papers_is_refused(self, words: Sequence[str], word: str, what: str, start: Start) -> None:
        err, store = start(*words, word, code=1)
        name = store.find("logreg").name
        assert err.count("\n") == 1
        assert f"{name} has another {what}; run first: abstag run " in err
        assert word in err

    def test_a_run_of_another_corpus_is_refused(self, start: Start, parted: Path) -> None:
        err, store = start(*DISTILLED, f"data.path={parted}", code=1)
        assert f"{store.find('logreg').name} has another corpus" in err

    def test_several_runs_that_fit_are_named(self, start: Start) -> None:
        _, store = start("classifier=logreg", "classifier.C=1", *HOLDOUT)
        err, _ = start(*DISTILLED, code=1)
        ids = [path.name for path in store.root.glob("logreg-*")]
        assert "2 finished runs of 'logreg'" in err
        assert err.count("\n") == 1
        assert len(ids) == 2
        assert all(name in err for name in ids)
        start(*DISTILLED, f"classifier.teacher={ids[0]}")

    def test_a_teacher_of_all_folds_has_seen_the_test_papers(self, start: Start) -> None:
        words = ("split.folds=2", "decision=holdout")
        start("classifier=logreg", *words)
        err, _ = start("classifier=distilled", "classifier.teacher=logreg", *words, code=1)
        assert "take decision=holdout and a split with one test set, as split=holdout" in err
        assert err.count("\n") == 1

    def test_a_teacher_without_a_bundle_is_one_line(self, start: Start) -> None:
        start("classifier=svm", "keep_bundle=false", *HOLDOUT)
        err, _ = start(*DISTILLED, "classifier.teacher=svm", code=1)
        assert "bundle" in err
        assert err.count("\n") == 1

    def test_one_run_by_two_names_is_no_ensemble(self, start: Start, finished: Path) -> None:
        name = Store(finished).find("logreg").name
        err, _ = start(*ENSEMBLE, f"classifier.runs=[logreg,{name}]", code=1)
        assert f"logreg, {name} are not different runs" in err

    @pytest.mark.parametrize("words", [DISTILLED, ENSEMBLE], ids=["distilled", "ensemble"])
    def test_members_that_have_seen_the_papers_of_the_thresholds_are_refused(
        self, words: Sequence[str], start: Start
    ) -> None:
        for name in ("logreg", "nb")[: 1 + (words == ENSEMBLE)]:
            start(f"classifier={name}", "split=holdout", "decision.folds=2")
        start(*words, "decision=folds", "decision.folds=2", code=1)

    def test_a_teacher_that_was_trained_on_held_out_papers_is_refused(self, start: Start) -> None:
        start("classifier=svm", "data.limit=40", *HOLDOUT)
        start(*DISTILLED, "classifier.teacher=svm", code=1)

    def test_the_run_of_the_same_experiment_is_preferred(self, start: Start) -> None:
        _, store = start("classifier=logreg", "name=mine", *HOLDOUT)
        start(*DISTILLED, "name=mine")
        start(*DISTILLED)
        assert len(list(store.root.glob("distilled-*"))) == 2

    def test_keys_name_all_papers_that_were_learnt_from(self, start: Start, embedded: Path) -> None:
        corpus = load_corpus(embedded)
        start("classifier=logreg", "data.limit=40", *HOLDOUT)
        _, store = start(*DISTILLED, "data.limit=40")
        result = load_result(store.find("distilled"))
        tested = set(read_scores(store.find("distilled")).ids)
        keys = load_bundle(store.find("distilled") / "bundle").training_keys
        assert result.rows["train"] == [40]
        assert keys & {*corpus.documents.ids} == {*corpus.documents.ids} - tested
        _, store = start(*ENSEMBLE)
        member = load_bundle(store.find("nb") / "bundle").training_keys
        assert load_bundle(store.find("ensemble") / "bundle").training_keys == member
