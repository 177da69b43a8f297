"""Encoders: found or refused with the choices, deterministic, indifferent to batches, whole in a bundle."""

import json
import logging
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from abstag.bundle import Bundle, load_bundle, save_bundle
from abstag.classifiers.base import Member
from abstag.classifiers.embeddings import EmbedLogReg, ZeroShot
from abstag.classifiers.encoder import PACKAGES, Encoder, EncoderScorer, encoder_fingerprint, find_encoder
from abstag.classifiers.scorers import EnsembleScorer, PriorScorer
from abstag.decision import Decision
from abstag.errors import ArtifactError, ConfigError, DataError, MissingExtraError
from abstag.files import new_folder
from abstag.records import Documents, Targets
from abstag.taxonomy import load_taxonomy, parse_taxonomy
from tests.conftest import SHORT, Go, make_encoder


def documents(texts: Sequence[str]) -> Documents:
    return Documents([f"p{row}" for row in range(len(texts))], ["A graph"] * len(texts), texts)


TEXTS = ["noise", "language model " * 30, "", "step " * 7, "a graph with noise and a heron"]


@pytest.fixture(scope="module")
def encoder(tiny_encoder: Path) -> Encoder:
    return Encoder.load(tiny_encoder, max_tokens=32, device="cpu")


class TestFinding:
    def test_an_installed_package(self) -> None:
        folder = find_encoder("all-minilm-l6-v2")
        assert (folder / "model.safetensors").is_file()

    @pytest.mark.parametrize("name", ["nothing", "no/such/folder", "", "-"])
    def test_unknown_names_list_the_choices(self, name: str) -> None:
        with pytest.raises(ConfigError, match=r"there is no encoder .*all-minilm-l6-v2; a folder .* hub id"):
            find_encoder(name)

    def test_a_hub_id_offline_is_one_line(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HF_HUB_OFFLINE", "1")
        with pytest.raises(ConfigError, match=r"no folder 'nobody/nothing', and it .*known: all-minilm") as caught:
            find_encoder("nobody/nothing")
        assert "\n" not in str(caught.value)

    @pytest.mark.parametrize("file", ["config.json", "tokenizer.json", "model.safetensors"])
    def test_a_folder_without_a_file(self, file: str, tmp_path: Path) -> None:
        (make_encoder(tmp_path) / file).unlink()
        with pytest.raises(ConfigError, match=f"the encoder lacks {file}"):
            find_encoder(str(tmp_path))

    def test_weights_as_tensors_and_a_vocabulary_serve_too(self, tiny_encoder: Path, tmp_path: Path) -> None:
        """What BERT's descendants have on the hub: pytorch_model.bin and vocab.txt."""
        import torch
        from safetensors.torch import load_file

        folder = make_encoder(tmp_path)
        torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
        vocabulary = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))["model"]["vocab"]
        (folder / "vocab.txt").write_text("\n".join(sorted(vocabulary, key=vocabulary.__getitem__)) + "\n")
        for file in ("model.safetensors", "tokenizer.json"):
            (folder / file).unlink()
        assert find_encoder(str(folder)) == folder
        found, expected = (
            Encoder.load(place, max_tokens=16, device="cpu").embed(documents(TEXTS)) for place in (folder, tiny_encoder)
        )
        np.testing.assert_array_equal(found, expected)

    def test_weights_of_another_encoder_are_refused(self, tmp_path: Path) -> None:
        from safetensors.torch import load_file, save_file

        folder = make_encoder(tmp_path)
        weights = load_file(folder / "model.safetensors")
        kept = {name: value for name, value in weights.items() if ".1." not in name and "pooler" not in name}
        save_file(kept, folder / "model.safetensors", metadata={"format": "pt"})
        message = r"the weights lack 16 of the model's tensors, such as encoder\.layer\.1\.\S+; its config.json"
        with pytest.raises(ConfigError, match=message):
            Encoder.load(folder, max_tokens=16)
        assert Encoder.load(folder, max_tokens=16, layers=1).layers

    def test_a_missing_package_names_the_extra(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(PACKAGES, "gone", "no_such_package")
        with pytest.raises(MissingExtraError, match=r"pip install 'abstag\[transformer\]'"):
            find_encoder("gone")

    def test_missing_torch_names_the_extra(self, monkeypatch: pytest.MonkeyPatch, tiny_encoder: Path) -> None:
        monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
        with pytest.raises(MissingExtraError, match="torch is not installed"):
            find_encoder(str(tiny_encoder))

    def test_damaged_weights_and_a_foreign_tokenizer(self, tmp_path: Path) -> None:
        folder = make_encoder(tmp_path, known=10)
        with pytest.raises(ConfigError, match="the tokenizer knows 67 tokens, the model 10"):
            Encoder.load(folder, max_tokens=16)
        (folder / "model.safetensors").write_bytes(b"\0" * 100)
        with pytest.raises(ConfigError, match="cannot be loaded"):
            Encoder.load(folder, max_tokens=16)

    def test_identity_is_the_content(self, tiny_encoder: Path, tmp_path: Path) -> None:
        assert encoder_fingerprint(make_encoder(tmp_path)) == encoder_fingerprint(tiny_encoder)
        weights = bytearray((tmp_path / "model.safetensors").read_bytes())
        weights[-1] ^= 1
        (tmp_path / "model.safetensors").write_bytes(weights)
        assert encoder_fingerprint(tmp_path) != encoder_fingerprint(tiny_encoder)


class TestEmbedding:
    def test_length_1_and_the_same_in_any_batch_and_order(self, encoder: Encoder) -> None:
        vectors = encoder.embed(documents(TEXTS))
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0)
        for size in (1, 2, 5):
            np.testing.assert_allclose(encoder.embed(documents(TEXTS), batch_size=size), vectors, atol=1e-5)
        np.testing.assert_allclose(encoder.embed(documents(TEXTS[::-1]))[::-1], vectors, atol=1e-5)

    def test_mean_of_the_tokens_as_transformers_gives_them(self, encoder: Encoder, tiny_encoder: Path) -> None:
        import torch
        from tokenizers import Tokenizer
        from transformers import AutoModel

        encoded = Tokenizer.from_file(str(tiny_encoder / "tokenizer.json")).encode("A graph", "noise")
        assert encoded.tokens == ["[CLS]", "a", "graph", "[SEP]", "noise", "[SEP]"]
        model = AutoModel.from_pretrained(tiny_encoder).eval()
        with torch.no_grad():
            hidden = model(input_ids=torch.tensor([encoded.ids]), token_type_ids=torch.tensor([encoded.type_ids]))
        mean = hidden.last_hidden_state[0].mean(0).numpy()
        found = encoder.embed(documents(["noise"]))[0]
        np.testing.assert_allclose(found, mean / np.linalg.norm(mean), atol=1e-5)

    def test_endless_and_empty_papers_and_none(self, encoder: Encoder) -> None:
        vectors = encoder.embed(documents(["word " * 100_000, ""]))
        assert np.isfinite(vectors).all()
        assert encoder.embed(documents([])).shape == (0, 16)

    def test_no_more_tokens_than_the_model_has_places(
        self, tiny_encoder: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        with caplog.at_level(logging.WARNING, logger="abstag"):
            assert Encoder.load(tiny_encoder, max_tokens=10_000).max_tokens == 64
        assert "reads at most 64 tokens, not 10000" in caplog.text


class TestBundle:
    def bundle(self, encoder: Encoder) -> Bundle:
        rng = np.random.default_rng(0)
        scorer = EncoderScorer(encoder, rng.normal(size=(4, 16)), rng.normal(size=4))
        decision = Decision(np.ones(4), np.zeros(4), np.full(4, 0.5), 0.6)
        return Bundle("tiny", scorer, decision, load_taxonomy(), frozenset())

    def test_round_trip_without_the_encoders_folder(self, encoder: Encoder, tmp_path: Path) -> None:
        made = self.bundle(encoder)
        with new_folder(tmp_path / "bundle") as folder:
            save_bundle(folder, made, "card")
        loaded = load_bundle(tmp_path / "bundle")
        np.testing.assert_array_equal(loaded.probabilities(documents(TEXTS)), made.probabilities(documents(TEXTS)))
        for path in (tmp_path / "bundle").iterdir():
            assert str(tmp_path.parent) not in path.read_bytes().decode("latin-1")

    @pytest.mark.parametrize("cut", [10, 5_000])
    def test_truncated_weights_are_refused(self, encoder: Encoder, tmp_path: Path, cut: int) -> None:
        with new_folder(tmp_path / "bundle") as folder:
            save_bundle(folder, self.bundle(encoder), "card")
        weights = tmp_path / "bundle" / "weights.safetensors"
        weights.write_bytes(weights.read_bytes()[:-cut])
        with pytest.raises(ArtifactError, match=r"weights\.safetensors was changed"):
            load_bundle(tmp_path / "bundle")


class TestClassifiers:
    def test_logistic_regression_is_scikit_learns(self, encoder: Encoder, tiny_encoder: Path) -> None:
        from sklearn.linear_model import LogisticRegression

        rng = np.random.default_rng(1)
        papers = documents([" ".join(rng.choice(["graph", "noise", "heron", "gear"], 6)) for _ in range(40)])
        values = np.array([["graph" in text, "gear" in text] for text in papers.abstracts])
        known = np.ones_like(values)
        known[:5, 0] = False
        areas = parse_taxonomy({"name": "t", "areas": [{"id": "a"}, {"id": "b"}]})
        model = EmbedLogReg(encoder=str(tiny_encoder), max_tokens=32, device="cpu")
        model.fit(papers, Targets(values, known, known.astype(float)), taxonomy=areas)
        theirs = LogisticRegression(C=30.0, solver="liblinear", random_state=0)
        theirs.fit(encoder.embed(papers)[5:], values[5:, 0])
        np.testing.assert_allclose(
            model.decision_function(papers)[:, 0], theirs.decision_function(encoder.embed(papers)), atol=1e-3
        )

    def test_zero_shot_needs_descriptions_and_no_labels(self, tiny_encoder: Path) -> None:
        nothing = Targets(np.zeros((0, 4), bool), np.zeros((0, 4), bool), np.zeros((0, 4)))
        model = ZeroShot(encoder=str(tiny_encoder), device="cpu")
        scores = model.fit(documents([]), nothing, taxonomy=load_taxonomy()).decision_function(documents(TEXTS))
        assert scores.shape == (5, 4)
        assert (np.abs(scores) <= 1 + 1e-6).all()
        bare = parse_taxonomy({"name": "t", "areas": [{"id": "a"}]})
        with pytest.raises(DataError, match="area 'a' has no description"):
            model.fit(documents([]), nothing, taxonomy=bare)

    @pytest.mark.parametrize(
        ("word", "message"),
        [
            ("classifier.max_tokens=2", "classifier.max_tokens"),
            ("classifier.device=tpu", "classifier.device: there is no device 'tpu'"),
            ("classifier.C=0", "classifier.C"),
            ("classifier.encoder=nothing", "there is no encoder 'nothing'"),
        ],
    )
    def test_bad_settings_are_one_line(self, word: str, message: str, go: Go, tmp_path: Path) -> None:
        ran = go("run", "classifier=embed_logreg", word, f"runs_dir={tmp_path}", code=1)
        assert message in ran.err
        assert ran.err.count("\n") == 1

    def test_run_and_tag(self, go: Go, embedded: Path, dump: Path, tiny_encoder: Path, tmp_path: Path) -> None:
        words = [f"classifier.encoder={tiny_encoder}", f"data.path={embedded}", f"runs_dir={tmp_path}", *SHORT]
        for name in ("embed_logreg", "zeroshot"):
            go("run", f"classifier={name}", *words, code=0)
        out = go("tag", dump, "--bundle", "embed_logreg", "--runs-dir", tmp_path, code=0).out
        assert out.count("\n") == 80


def test_an_encoder_has_threads_of_its_own(encoder: Encoder) -> None:
    import torch

    scorer, before = EncoderScorer(encoder, np.ones((4, 16)), np.zeros(4)), torch.get_num_threads()
    member = Member(scorer, np.ones(4), np.zeros(4))
    prior = Member(PriorScorer(np.zeros(4)), np.ones(4), np.zeros(4))
    try:
        assert scorer.use_threads(1)
        assert torch.get_num_threads() == 1
        assert EnsembleScorer([member, prior]).use_threads(2)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    assert not EnsembleScorer([prior]).use_threads(3)
    assert torch.get_num_threads() == before


def test_nothing_here_imports_torch_before_it_is_used() -> None:
    import subprocess

    code = "import sys, abstag.bundle, abstag.classifiers.embeddings; print('torch' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "False\n"


def test_a_folders_name_is_its_identity_not_its_place(go: Go, embedded: Path, tmp_path: Path) -> None:
    words = ("run", "classifier=zeroshot", f"data.path={embedded}", *SHORT, "keep_bundle=false")
    for place in ("here", "there"):
        (tmp_path / place / "tiny").mkdir(parents=True)
        make_encoder(tmp_path / place / "tiny")
        go(*words, f"classifier.encoder={tmp_path / place / 'tiny'}", f"runs_dir={tmp_path / 'runs'}", code=0)
    assert len(list((tmp_path / "runs").glob("zeroshot-*"))) == 1


def test_a_bundle_of_an_encoder_names_whose_weights_it_holds(encoder: Encoder, tmp_path: Path) -> None:
    bundle = TestBundle().bundle(encoder)
    for notice, there in (("Weights of the tiny encoder.", True), ("", False)):
        bundle.scorer.notice = notice
        with new_folder(tmp_path / str(there)) as folder:
            save_bundle(folder, bundle, "card")
        assert (tmp_path / str(there) / "NOTICE").exists() == there
        assert load_bundle(tmp_path / str(there)).scorer.notice == notice


def test_fewer_layers_of_alternating_kinds_come_back_from_a_bundle(tmp_path: Path) -> None:
    from transformers import ModernBertConfig, ModernBertModel

    folder = make_encoder(tmp_path)
    size: Any = {"hidden_size": 16, "num_hidden_layers": 4, "num_attention_heads": 2, "intermediate_size": 32}
    config = ModernBertConfig(vocab_size=67, max_position_embeddings=64, pad_token_id=0, **size)
    ModernBertModel(config).save_pretrained(folder)
    made = EncoderScorer(Encoder.load(folder, max_tokens=32, layers=2, device="cpu"), np.ones((4, 16)), np.zeros(4))
    loaded = EncoderScorer.restore(made.state())
    np.testing.assert_array_equal(loaded(documents(TEXTS)), made(documents(TEXTS)))
