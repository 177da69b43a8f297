"""Bundles: what was saved is what tags; whatever was changed since is refused in one line."""

import ast
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import abstag
from abstag.bundle import FORMAT, Bundle, load_bundle, save_bundle
from abstag.classifiers.base import Scorer, State
from abstag.classifiers.scorers import SCORERS, KeywordScorer, LinearScorer, PriorScorer
from abstag.corpus import Corpus
from abstag.decision import Decision
from abstag.errors import AbstagError, ArtifactError
from abstag.files import canonical_hash, file_hash
from abstag.records import Documents, FloatArray
from abstag.taxonomy import load_taxonomy

FILES = {"README.md", "bundle.json", "keys.json", "strings.json", "weights.safetensors"}
AREAS = len(load_taxonomy().ids)


def make_scorer(kind: str) -> Scorer:
    rng = np.random.default_rng(0)
    if kind == "prior":
        return PriorScorer(rng.normal(size=AREAS))
    if kind == "keywords":
        return KeywordScorer([area.keywords for area in load_taxonomy().areas], title_weight=2.5)
    terms = ["convergence", "diffusion", "graph", "graph neural", "language", "model", "naïve", "the"]
    coef = np.asfortranarray(rng.normal(size=(AREAS, len(terms))))
    return LinearScorer(terms, rng.uniform(1, 4, len(terms)), coef, rng.normal(size=AREAS), title_weight=3)


def make_bundle(scorer: Scorer | None = None, **changes: Any) -> Bundle:
    rng = np.random.default_rng(1)
    decision = Decision(rng.uniform(0.5, 2, AREAS), rng.normal(size=AREAS), rng.uniform(0.2, 0.6, AREAS), 0.3)
    values: dict[str, Any] = {
        "decision": decision,
        "training_keys": frozenset({"0123456789abcdef", "p 1", "pÄ"}),
    } | changes
    return Bundle(name="x-1", scorer=scorer or make_scorer("linear"), taxonomy=load_taxonomy(), **values)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "bundle"
    path.mkdir()
    save_bundle(path, make_bundle(), "# card\n")
    return path


@pytest.mark.parametrize("kind", sorted(SCORERS))
def test_loaded_bundle_gives_identical_probabilities(kind: str, tmp_path: Path, corpus: Corpus) -> None:
    saved = make_bundle(make_scorer(kind))
    save_bundle(tmp_path, saved, "# card\n")
    loaded = load_bundle(tmp_path)
    assert np.array_equal(loaded.probabilities(corpus.documents), saved.probabilities(corpus.documents))
    assert loaded.probabilities(Documents([], [], [])).shape == (0, AREAS)
    assert (loaded.name, loaded.training_keys) == (saved.name, saved.training_keys)
    assert loaded.taxonomy.digest == saved.taxonomy.digest
    assert loaded.decision.review == saved.decision.review
    for name in ("slope", "offset", "thresholds"):
        assert np.array_equal(getattr(loaded.decision, name), getattr(saved.decision, name))


def test_infinite_review_line_survives(tmp_path: Path) -> None:
    ones = np.ones(AREAS)
    save_bundle(tmp_path, make_bundle(decision=Decision(ones, ones, ones / 2, np.inf)), "")
    assert load_bundle(tmp_path).decision.review == np.inf


def test_trained_on_asks_id_and_key() -> None:
    bundle = make_bundle()
    assert bundle.trained_on("p 1", None)
    assert bundle.trained_on("other", "0123456789abcdef")
    assert not bundle.trained_on("other", None)


@pytest.mark.parametrize("name", ["a\u2028b", "a\x85b", "a\x0cb", "a\rb"])
def test_ids_with_odd_white_space_stay_training_keys(name: str, tmp_path: Path) -> None:
    save_bundle(tmp_path, make_bundle(training_keys=frozenset({name, "other"})), "")
    assert load_bundle(tmp_path).training_keys == {name, "other"}


def head_of(folder: Path) -> dict[str, Any]:
    head: dict[str, Any] = json.loads((folder / "bundle.json").read_text(encoding="utf-8"))
    return head


def edit(folder: Path, change: Callable[[dict[str, Any]], object], *, signed: bool) -> None:
    """Change bundle.json; ``signed`` makes checksums and digest right again, as another tool would."""
    head = head_of(folder)
    change(head)
    if signed:
        del head["digest"]
        if "checksums" in head:
            head["checksums"] = {name: file_hash(folder / name) for name in head["checksums"]}
        head["digest"] = canonical_hash(head)
    (folder / "bundle.json").write_text(json.dumps(head), encoding="utf-8")


def resigned(folder: Path, name: str, content: bytes) -> None:
    """Put other content into a file, with checksums that fit."""
    (folder / name).write_bytes(content)
    edit(folder, lambda head: None, signed=True)


def flip_weight(folder: Path) -> None:
    path = folder / "weights.safetensors"
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content)


def cut(name: str) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_bytes((folder / name).read_bytes()[:-5])


DAMAGE: dict[str, tuple[Callable[[Path], object], str]] = {
    "weight flipped": (flip_weight, r"weights\.safetensors was changed or cut"),
    "weights cut": (cut("weights.safetensors"), r"weights\.safetensors was changed or cut"),
    "strings cut": (cut("strings.json"), r"strings\.json was changed or cut"),
    "keys cut": (cut("keys.json"), r"keys\.json was changed or cut"),
    "card edited": (lambda f: (f / "README.md").write_text("F1 1.0"), r"README\.md was changed or cut"),
    "weights gone": (lambda f: (f / "weights.safetensors").unlink(), r"weights\.safetensors: cannot be read"),
    "head cut": (cut("bundle.json"), r"bundle\.json: cannot be read"),
    "head gone": (lambda f: (f / "bundle.json").unlink(), r"no bundle here; name a run"),
    "head a list": (lambda f: (f / "bundle.json").write_text("[]"), r"this is no bundle"),
    "threshold edited": (
        lambda f: edit(f, lambda head: head["decision"]["thresholds"].__setitem__(0, 0.5), signed=False),
        r"bundle\.json was changed",
    ),
    "digest gone": (lambda f: edit(f, lambda head: head.pop("digest"), signed=False), r"bundle\.json was changed"),
    "newer format": (
        lambda f: edit(f, lambda head: head.update(format=FORMAT + 1), signed=False),
        rf"bundle format {FORMAT + 1} is newer than this version reads \({FORMAT}\); pip install -U",
    ),
    "self-test": (
        lambda f: edit(f, lambda head: head["self_test"][1].__setitem__(0, 0.123), signed=True),
        r"the self-test is off by .*; make the bundle again",
    ),
    "other vocabulary": (
        lambda f: resigned(f, "strings.json", b'["model"]'),
        r"damaged",
    ),
    "unknown kind": (lambda f: edit(f, lambda head: head.update(kind="forest"), signed=True), r"forest"),
    "decision gone": (lambda f: edit(f, lambda head: head.pop("decision"), signed=True), r"damaged"),
    "weights garbage": (
        lambda f: resigned(f, "weights.safetensors", b"x" * 64),
        r"damaged",
    ),
    "taxonomy empty": (lambda f: edit(f, lambda head: head.update(taxonomy={}), signed=True), r"areas"),
    "checksums gone": (lambda f: edit(f, lambda head: head.pop("checksums"), signed=True), r"no bundle|damaged"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_damage_is_one_clear_line(name: str, folder: Path) -> None:
    damage, message = DAMAGE[name]
    damage(folder)
    with pytest.raises(ArtifactError, match=message) as caught:
        load_bundle(folder)
    assert "\n" not in str(caught.value)
    assert str(folder) in str(caught.value)


def test_no_pickle_anywhere(folder: Path) -> None:
    assert {path.name for path in folder.iterdir()} == FILES
    assert not [path for path in folder.iterdir() if path.read_bytes().startswith((b"\x80", b"PK"))]
    for path in Path(abstag.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not {name.partition(".")[0] for name in names} & {"pickle", "joblib", "dill", "shelve", "marshal"}


class Foreign(PriorScorer):
    """A scorer that abstag cannot restore."""

    kind = "foreign"

    def __call__(self, documents: Documents) -> FloatArray:
        return super().__call__(documents)

    def state(self) -> State:
        return super().state()


def test_scorer_that_cannot_be_restored_is_not_saved(tmp_path: Path) -> None:
    with pytest.raises(AbstagError, match="foreign"):
        save_bundle(tmp_path, make_bundle(Foreign(np.zeros(AREAS))), "")
