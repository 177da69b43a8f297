"""Fine-tuning: repeatable, only what is not frozen learns, stopped by held-out papers, resumed when broken off."""

import json
import logging
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from abstag.bundle import Bundle, load_bundle, save_bundle
from abstag.classifiers import _training
from abstag.classifiers.base import Aid, Labelled
from abstag.classifiers.embeddings import EmbedLogReg
from abstag.classifiers.encoder import Encoder, EncoderScorer
from abstag.classifiers.finetuned import FineTuned
from abstag.decision import Decision
from abstag.errors import ConfigError, DataError
from abstag.files import new_folder
from abstag.records import Documents, FloatArray, Targets
from abstag.taxonomy import parse_taxonomy
from tests.conftest import Go

AREAS = parse_taxonomy({"name": "t", "areas": [{"id": "graphs"}, {"id": "odd"}]})
STEPS = 3  # of an epoch, at 40 papers in batches of 16


def papers(n: int, seed: int) -> Labelled:
    """Return n papers: one area holds where "graph" stands, the other where one of two words stands alone."""
    rng = np.random.default_rng(seed)
    words = ["graph", "noise", "heron", "gear", "step", "model"]
    texts = [" ".join(rng.choice(words, rng.integers(3, 7))) for _ in range(n)]
    values = np.array([["graph" in text, ("gear" in text) != ("noise" in text)] for text in texts])
    documents = Documents([f"p{row}" for row in range(n)], ["A survey"] * n, texts)
    return Labelled(documents, Targets(values, np.ones_like(values), np.ones(values.shape)))


TRAINING, HELD = papers(40, 1), papers(12, 2)


@pytest.fixture(autouse=True)
def forgotten() -> None:
    _training.FrozenOutputs._last = None


@pytest.fixture
def make(tiny_encoder: Path) -> Callable[..., FineTuned]:
    """Build a classifier on the tiny encoder, quick to learn."""

    def call(**changes: Any) -> FineTuned:
        values: dict[str, Any] = {"frozen_layers": 1, "learning_rate": 0.01, "device": "cpu", "max_tokens": 32}
        return FineTuned(**({"encoder": str(tiny_encoder)} | values | changes))

    return call


Make = Callable[..., FineTuned]


def fitted(model: FineTuned, targets: Targets | None = None, aid: Aid | None = None) -> FineTuned:
    return model.fit(TRAINING.documents, targets or TRAINING.targets, taxonomy=AREAS, aid=aid)


def scores(model: FineTuned, targets: Targets | None = None, aid: Aid | None = None) -> FloatArray:
    return fitted(model, targets, aid).decision_function(TRAINING.documents)


def encoder_of(model: FineTuned) -> Encoder:
    assert isinstance(model.scorer_, EncoderScorer)
    return model.scorer_.encoder


def loss(found: FloatArray) -> float:
    return float(np.logaddexp(0, np.where(TRAINING.targets.values, -found, found)).mean())


class Evaluations:
    """Stands for `average_precision`: gives set figures, and notes what was scored."""

    def __init__(self, figures: Sequence[float]) -> None:
        self.figures, self.seen = figures, list[FloatArray]()

    def __call__(self, found: FloatArray, labels: FloatArray, weights: FloatArray) -> float:
        self.seen.append(found)
        return self.figures[len(self.seen) - 1]


class TestLearning:
    def test_the_seed_decides_everything(self, make: Make) -> None:
        first = scores(make(), aid=Aid(seed=3))
        np.testing.assert_array_equal(scores(make(), aid=Aid(seed=3)), first)
        assert (scores(make(), aid=Aid(seed=4)) != first).any()

    @pytest.mark.parametrize("device", ["cpu", "cuda", "mps"])
    def test_training_beats_the_head_that_it_starts_from(self, device: str, make: Make, tiny_encoder: Path) -> None:
        if not {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}[device]:
            pytest.skip(f"no {device} here")
        head = EmbedLogReg(encoder=str(tiny_encoder), max_tokens=32, device=device)
        start = loss(head.fit(*TRAINING, taxonomy=AREAS).decision_function(TRAINING.documents))
        found = scores(make(epochs=10, device=device))
        assert loss(found) < 0.75 * start
        graphs = TRAINING.targets.values[:, 0]
        assert found[graphs, 0].min() > found[~graphs, 0].max()

    @pytest.mark.parametrize("frozen", [0, 1, 2])
    def test_frozen_layers_and_token_embeddings_keep_their_weights(
        self, frozen: int, make: Make, tiny_encoder: Path
    ) -> None:
        before = Encoder.load(tiny_encoder, max_tokens=32, device="cpu").model.state_dict()
        after = encoder_of(fitted(make(frozen_layers=frozen, epochs=1))).model.state_dict()
        assert before.keys() == after.keys()
        changed = {name for name in before if not torch.equal(before[name], after[name])}
        trained = {name for name in before for layer in range(frozen, 2) if name.startswith(f"encoder.layer.{layer}.")}
        assert changed == trained

    def test_the_head_learns_where_all_layers_are_frozen(self, make: Make, tiny_encoder: Path) -> None:
        start = EmbedLogReg(encoder=str(tiny_encoder), max_tokens=32, device="cpu").fit(*TRAINING, taxonomy=AREAS)
        assert loss(scores(make(frozen_layers=2, epochs=10))) < loss(start.decision_function(TRAINING.documents))

    @pytest.mark.parametrize("held", [None, HELD], ids=["all epochs", "held out"])
    def test_unknown_cells_and_cells_of_no_weight_do_not_count(self, held: Labelled | None, make: Make) -> None:
        rng, shape = np.random.default_rng(5), TRAINING.targets.values.shape
        known, weight = rng.random(shape) < 0.8, rng.choice([0.0, 0.5, 1.0], shape)
        used = known & (weight > 0)
        given = Targets(TRAINING.targets.values, known, weight)
        other = Targets(given.values ^ ~used, known, np.where(known, weight, 9.0))
        assert (other.values != given.values).any()
        first, second = (scores(make(balanced=True), targets, Aid(held)) for targets in (given, other))
        np.testing.assert_array_equal(first, second)

    def test_unknown_cells_of_held_out_papers_do_not_count(self, make: Make) -> None:
        known = np.arange(24).reshape(12, 2) % 3 > 0
        first, second = (
            scores(make(), aid=Aid(Labelled(HELD.documents, Targets(values, known, known.astype(float)))))
            for values in (HELD.targets.values, HELD.targets.values ^ ~known)
        )
        np.testing.assert_array_equal(first, second)

    def test_a_heavier_cell_counts_more(self, make: Make) -> None:
        weight = TRAINING.targets.weight.copy()
        weight[TRAINING.targets.values[:, 1], 1] = 20.0
        heavy = Targets(TRAINING.targets.values, TRAINING.targets.known, weight)
        assert scores(make(), heavy)[:, 1].mean() > scores(make())[:, 1].mean() + 0.3

    def test_balanced_gives_both_sides_the_same_total(self, make: Make) -> None:
        values = TRAINING.targets.values.copy()
        values[: len(values) * 3 // 4, 1] = False
        rare = Targets(values, TRAINING.targets.known, TRAINING.targets.weight)
        assert scores(make(balanced=True), rare)[:, 1].mean() > scores(make(), rare)[:, 1].mean() + 0.3
        ratio = _training._positive_weight(rare, balanced=True)
        positives = values.sum(axis=0)
        np.testing.assert_allclose(ratio.numpy() * positives, 40 - positives, rtol=1e-6)

    def test_layers_uses_the_lowest(self, make: Make) -> None:
        model = fitted(make(layers=1, frozen_layers=0, epochs=1))
        assert encoder_of(model).model.config.num_hidden_layers == len(encoder_of(model).layers) == 1
        assert len({tuple(row) for row in model.decision_function(TRAINING.documents).tolist()}) > 10

    @pytest.mark.parametrize(
        "kind",
        [
            "DistilBert",
            "Roberta",
            "MPNet",
            "ModernBert",
        ],
    )
    def test_encoders_of_other_kinds(self, kind: str, make: Make, tiny_encoder: Path, tmp_path: Path) -> None:
        import transformers

        size = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
        if kind == "DistilBert":
            size = {"dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 32}
        special = {"pad_token_id": 0, "bos_token_id": 2, "cls_token_id": 2, "eos_token_id": 3, "sep_token_id": 3}
        config = getattr(transformers, f"{kind}Config")(vocab_size=67, **size, **special)
        getattr(transformers, f"{kind}Model")(config).save_pretrained(tmp_path)
        shutil.copy(tiny_encoder / "tokenizer.json", tmp_path)
        before = Encoder.load(tmp_path, max_tokens=32, device="cpu").model.state_dict()
        model = fitted(make(encoder=str(tmp_path), epochs=1))
        assert np.isfinite(model.decision_function(HELD.documents)).all()
        after = encoder_of(model).model.state_dict()
        changed = {name for name in before if not torch.equal(before[name], after[name])}
        assert changed
        assert all(".1." in name for name in changed)

    def test_endless_and_empty_abstracts(self, make: Make) -> None:
        texts = ["graph " * 100_000, "", *TRAINING.documents.abstracts[2:]]
        documents = Documents(TRAINING.documents.ids, ["", "", *TRAINING.documents.titles[2:]], texts)
        model = make(epochs=1).fit(documents, TRAINING.targets, taxonomy=AREAS, aid=Aid(HELD))
        assert np.isfinite(model.decision_function(documents)).all()

    def test_nothing_on_standard_output(self, make: Make, capsys: pytest.CaptureFixture[str]) -> None:
        fitted(make(epochs=2), aid=Aid(HELD))
        assert capsys.readouterr().out == ""

    def test_round_trip_through_a_bundle(self, make: Make, tmp_path: Path) -> None:
        decision = Decision(np.ones(2), np.zeros(2), np.full(2, 0.5), 0.6)
        made = Bundle("tuned", fitted(make()).scorer_, decision, AREAS, frozenset())
        with new_folder(tmp_path / "bundle") as folder:
            save_bundle(folder, made, "card")
        found, expected = (one.probabilities(HELD.documents) for one in (load_bundle(tmp_path / "bundle"), made))
        np.testing.assert_array_equal(found, expected)


class TestFrozenOutputs:
    @pytest.fixture
    def encoder(self, tiny_encoder: Path) -> Encoder:
        return Encoder.load(tiny_encoder, max_tokens=32, device="cpu")

    @pytest.mark.parametrize("frozen", [1, 2])
    def test_replayed_they_give_the_embeddings_of_the_whole(self, frozen: int, encoder: Encoder) -> None:
        whole, encoded = encoder.embed(TRAINING.documents), encoder.encode(TRAINING.documents)
        batches = _training.Batches(encoder, encoded, _training.FrozenOutputs(encoder, encoded, frozen))
        rows = np.random.default_rng(0).permutation(40).tolist()
        net = _training.Net(encoder, frozen, torch.ones(2), 0.0).eval()
        with _training._replayed(encoder, encoder.tensors(encoded[:1]), frozen), torch.inference_mode():
            found = net.embed(**batches.inputs(rows)).numpy()
        np.testing.assert_allclose(found, whole[rows], atol=2e-3)
        np.testing.assert_array_equal(encoder.embed(TRAINING.documents), whole)

    def test_shorter_papers_are_padded_with_zeros(self, encoder: Encoder) -> None:
        documents = Documents(["a", "b", "c"], ["graph"] * 3, ["noise " * 9, "", "noise"])
        encoded = encoder.encode(documents)
        outputs = _training.FrozenOutputs(encoder, encoded, 1)
        found, alone = outputs[[1, 0]], outputs[[1]]
        lengths = [len(encoded[row].ids) for row in (1, 0)]
        assert found.shape == (2, lengths[1], 16)
        assert found.dtype == torch.float32
        assert torch.equal(found[0, : lengths[0]], alone[0])
        assert not found[0, lengths[0] :].any()
        assert found[1].any(dim=1).all()

    def test_computed_once_for_the_same_papers_and_weights(
        self, encoder: Encoder, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        encoded = encoder.encode(TRAINING.documents)
        first = _training.FrozenOutputs(encoder, encoded, 1)
        computed = _training.FrozenOutputs._computed
        calls = []

        def counted(*given: Any) -> torch.Tensor:
            calls.append(given)
            return computed(*given)

        monkeypatch.setattr(_training.FrozenOutputs, "_computed", counted)
        again = _training.FrozenOutputs(encoder, encoded[::-1], 1)
        assert not calls
        assert torch.equal(again[[0, 5]], first[[39, 34]])
        with torch.no_grad():
            encoder.model.embeddings.word_embeddings.weight += 1
        changed = _training.FrozenOutputs(encoder, encoded, 1)
        assert len(calls) == 1
        assert not torch.equal(changed[[0]], first[[0]])

    def test_where_memory_lacks_a_file_serves(self, make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
        kept = scores(make())
        monkeypatch.setattr(_training.FrozenOutputs, "_last", None)
        monkeypatch.setattr("psutil.virtual_memory", lambda: SimpleNamespace(available=0))
        np.testing.assert_array_equal(scores(make()), kept)

    def test_where_nothing_holds_them_the_remedy_is_named(self, make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(_training.FrozenOutputs, "_last", None)
        monkeypatch.setattr("psutil.virtual_memory", lambda: SimpleNamespace(available=0))
        monkeypatch.setattr("psutil.disk_usage", lambda _: SimpleNamespace(free=0))
        with pytest.raises(ConfigError, match=r"classifier\.frozen_layers: .* GiB of memory, or in .*; set it to 0"):
            fitted(make())

    def test_numbers_beyond_float16_are_refused(self, encoder: Encoder, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(_training, "frozen_output", lambda *_: (torch.full((32, 64, 16), 1e5), None))
        with pytest.raises(ConfigError, match=r"frozen_layers: .* beyond float16; set it to 0"):
            _training.FrozenOutputs(encoder, encoder.encode(Documents(["a"], ["graph"], ["beyond float16"])), 1)

    def test_the_layers_are_put_back(self, make: Make, encoder: Encoder) -> None:
        kept = list(encoder.layers)
        batch = encoder.tensors(encoder.encode(TRAINING.documents))
        with suppress(KeyboardInterrupt), _training._replayed(encoder, batch, 2):
            assert all(isinstance(layer, _training.Replay) for layer in encoder.layers)
            raise KeyboardInterrupt
        assert list(encoder.layers) == kept
        model = encoder_of(fitted(make(frozen_layers=2, epochs=1))).model
        assert not any(isinstance(module, _training.Replay) for module in model.modules())


class TestStopping:
    def test_the_best_epoch_is_taken_and_patience_ends_the_training(
        self, make: Make, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        evaluations = Evaluations([0.3, 0.9, 0.5, 0.4, 0.99])
        monkeypatch.setattr(_training, "average_precision", evaluations)
        model = fitted(make(epochs=5, patience=2), aid=Aid(HELD))
        assert len(evaluations.seen) == 4
        found = np.sort(model.decision_function(HELD.documents), axis=0)
        fits = [np.allclose(np.sort(seen, axis=0), found, atol=2e-2) for seen in evaluations.seen]
        assert fits == [False, True, False, False]

    def test_held_out_papers_are_not_learnt_from(self, make: Make) -> None:
        lying = Labelled(HELD.documents, Targets(~HELD.targets.values, HELD.targets.known, HELD.targets.weight))
        first, second = (scores(make(epochs=1), aid=Aid(held)) for held in (HELD, lying))
        np.testing.assert_array_equal(first, second)

    def test_without_held_out_papers_all_epochs_run(
        self, make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        evaluations = Evaluations([])
        monkeypatch.setattr(_training, "average_precision", evaluations)
        fitted(make(epochs=4, patience=1), aid=Aid(workdir=tmp_path))
        state = json.loads((tmp_path / f"checkpoint-{4 * STEPS}" / "trainer_state.json").read_text())
        assert state["epoch"] == 4
        assert evaluations.seen == []


class TestRefusals:
    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("learning_rate", 0.0),
            ("learning_rate", float("nan")),
            ("learning_rate", float("inf")),
            ("C", 0.0),
            ("epochs", 0),
            ("patience", 0),
            ("batch_size", 0),
            ("warmup", 1.0),
            ("warmup", -0.1),
            ("dropout", 1.0),
            ("weight_decay", -1.0),
            ("weight_decay", float("nan")),
            ("layers", -1),
            ("frozen_layers", -1),
            ("max_tokens", 2),
            ("device", "tpu"),
        ],
    )
    def test_a_parameter_out_of_range_names_its_key(self, name: str, value: Any, make: Make) -> None:
        with pytest.raises(ConfigError, match=rf"classifier\.{name}: "):
            make(**{name: value}).check()
        make().check()

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"layers": 3}, r"classifier\.layers: the encoder has 2 layers, not 3; 0 to 2"),
            ({"frozen_layers": 3}, r"classifier\.frozen_layers: the encoder has 2 layers, not 3; 0 to 2"),
            ({"layers": 1, "frozen_layers": 2}, r"classifier\.frozen_layers: the encoder has 1 layers, not 2"),
        ],
    )
    def test_more_layers_than_there_are(self, changes: dict[str, int], message: str, make: Make) -> None:
        with pytest.raises(ConfigError, match=message):
            fitted(make(**changes))

    def test_layers_are_counted_before_anything_is_loaded(self, make: Make) -> None:
        with pytest.raises(ConfigError, match=r"classifier\.layers: the encoder has 2 layers, not 3; 0 to 2"):
            make(layers=3).check()
        with pytest.raises(
            ConfigError, match=r"classifier\.frozen_layers: 2 layers cannot be frozen, 1 are used; 0 to 1"
        ):
            make(layers=1, frozen_layers=2).check()

    def test_an_absent_device_is_one_line(self, go: Go, tiny_encoder: Path, embedded: Path, tmp_path: Path) -> None:
        absent = "mps" if torch.cuda.is_available() else "cuda"
        words = [f"classifier.encoder={tiny_encoder}", f"data.path={embedded}", f"runs_dir={tmp_path}"]
        ran = go("run", "classifier=minilm", f"classifier.device={absent}", *words, code=1)
        assert f"classifier.device: this machine has no device '{absent}'; use auto" in ran.err
        assert ran.err.splitlines()[-1].startswith("abstag: ")
        assert "Traceback" not in ran.err

    @pytest.mark.parametrize(
        ("changes", "held"),
        [
            ({"epochs": 3}, None),
            pytest.param({"epochs": 1, "batch_size": 64}, HELD, id="last step, held out"),
            pytest.param({"epochs": 1, "batch_size": 64}, None, id="last step"),
        ],
    )
    def test_a_training_that_diverges_names_the_learning_rate(
        self, changes: dict[str, int], held: Labelled | None, make: Make
    ) -> None:
        model = make(learning_rate=1e30, warmup=0.0, **changes)
        with pytest.raises(DataError, match=r"diverged; lower classifier\.learning_rate"):
            fitted(model, aid=Aid(held))

    @pytest.mark.parametrize(
        "error",
        [
            torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB"),
            RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes"),
            MemoryError(),
        ],
        ids=["cuda", "cpu", "python"],
    )
    def test_memory_that_ends_is_one_line_with_the_remedy(
        self, error: Exception, make: Make, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(_training.Net, "forward", raising(error))
        with pytest.raises(ConfigError, match=r"memory .*; lower classifier\.batch_size or classifier\.max_tokens"):
            fitted(make())

    def test_any_other_error_passes_through(self, make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(_training.Net, "forward", raising(RuntimeError("shapes differ")))
        with pytest.raises(RuntimeError, match="shapes differ"):
            fitted(make())


def raising(error: BaseException) -> Callable[..., None]:
    def call(*_: Any, **__: Any) -> None:
        raise error

    return call


class TestResuming:
    def broken_off(self, model: FineTuned, aid: Aid, step: int) -> None:
        """Fit until the given step, where the user interrupts."""

        def interrupt(_: Any, __: Any, state: Any, *___: Any, **____: Any) -> None:
            if state.global_step == step:
                raise KeyboardInterrupt

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(_training._Progress, "on_step_begin", interrupt)
            with pytest.raises(KeyboardInterrupt):
                fitted(model, aid=aid)

    @pytest.fixture
    def resumed(self, caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
        """Tell from which checkpoints fits went on."""
        caplog.set_level(logging.INFO, logger="abstag")
        return lambda: [text.split()[-1] for text in caplog.messages if text.startswith("going on from")]

    @pytest.mark.parametrize("held", [None, HELD], ids=["all epochs", "held out"])
    @pytest.mark.parametrize("step", [STEPS, 2 * STEPS + 1])
    def test_a_fit_broken_off_ends_with_the_same_scores(
        self, step: int, held: Labelled | None, make: Make, tmp_path: Path, resumed: Callable[[], list[str]]
    ) -> None:
        model, aid = make(epochs=4, patience=4), Aid(held, workdir=tmp_path)
        expected = scores(model, aid=Aid(held))
        self.broken_off(model, aid, step)
        np.testing.assert_array_equal(scores(model, aid=aid), expected)
        assert resumed() == [f"checkpoint-{step // STEPS * STEPS}"]

    @pytest.mark.parametrize(
        "damage",
        [Path.unlink, lambda path: path.write_bytes(path.read_bytes()[:60])],
        ids=["missing", "half"],
    )
    def test_a_checkpoint_half_written_is_passed_over(
        self, damage: Callable[[Path], object], make: Make, tmp_path: Path, resumed: Callable[[], list[str]]
    ) -> None:
        model, aid = make(epochs=4), Aid(workdir=tmp_path)
        expected = scores(model)
        self.broken_off(model, aid, 2 * STEPS + 1)
        damage(tmp_path / f"checkpoint-{2 * STEPS}" / "trainer_state.json")
        np.testing.assert_array_equal(scores(model, aid=aid), expected)
        assert resumed() == [f"checkpoint-{STEPS}"]

    def test_without_a_whole_checkpoint_the_fit_starts_again(
        self, make: Make, tmp_path: Path, resumed: Callable[[], list[str]]
    ) -> None:
        model, aid = make(epochs=2), Aid(workdir=tmp_path)
        expected = scores(model)
        self.broken_off(model, aid, STEPS + 1)
        (tmp_path / f"checkpoint-{STEPS}" / "trainer_state.json").unlink()
        np.testing.assert_array_equal(scores(model, aid=aid), expected)
        assert resumed() == []

    @pytest.mark.parametrize("held", [None, HELD], ids=["all epochs", "held out"])
    def test_a_finished_fit_is_not_trained_further(self, held: Labelled | None, make: Make, tmp_path: Path) -> None:
        model, aid = make(epochs=3), Aid(held, workdir=tmp_path)
        expected = scores(model, aid=aid)
        np.testing.assert_array_equal(scores(model, aid=aid), expected)

    @pytest.mark.parametrize("step", [2 * STEPS + 1, 3 * STEPS], ids=["in the last epoch", "after the last epoch"])
    def test_patience_goes_on_where_it_was(
        self, step: int, make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        evaluations = Evaluations([0.9, 0.5, 0.4, 0.99, 0.99])
        monkeypatch.setattr(_training, "average_precision", evaluations)
        model, aid = make(epochs=5, patience=2), Aid(HELD, workdir=tmp_path)
        if step < 3 * STEPS:
            self.broken_off(model, aid, step)
        fitted(model, aid=aid)
        if step == 3 * STEPS:
            fitted(model, aid=aid)
        assert len(evaluations.seen) == 3

    @pytest.mark.slow
    def test_a_killed_process_goes_on(self, embedded: Path, tiny_encoder: Path, tmp_path: Path) -> None:
        words = [
            f"classifier.encoder={tiny_encoder}",
            f"data.path={embedded}",
            "split=holdout",
            "decision=holdout",
            "classifier=minilm",
            "classifier.frozen_layers=1",
            "classifier.epochs=30",
            "classifier.patience=30",
            "classifier.device=cpu",
        ]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}

        def start(runs: Path) -> subprocess.Popen[str]:
            command = [sys.executable, "-m", "abstag", "run", *words, f"runs_dir={runs}"]
            return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)

        killed = tmp_path / "killed"
        with start(killed) as process:
            while not list(killed.glob(".checkpoints/*/*/*/checkpoint-*/trainer_state.json")):
                assert process.poll() is None, "the run ended before a checkpoint was seen"
                time.sleep(0.01)
            process.kill()
        assert process.returncode == -9
        assert not list(killed.glob("minilm-*"))
        for runs, resumed in ((killed, True), (tmp_path / "whole", False)):
            with start(runs) as process:
                _, err = process.communicate(timeout=300)
            assert process.returncode == 0, err
            assert ("going on from checkpoint-" in err) == resumed
            assert not list(runs.glob(".checkpoints/minilm-*"))
        found, expected = (
            [path.read_bytes() for path in (tmp_path / name).glob("minilm-*/scores.parquet")]
            for name in ("killed", "whole")
        )
        assert len(found) == 1
        assert found == expected
