"""A fitted tagger on disk, without pickle: weights, decision, taxonomy, training keys, card, checksums, self-test."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from abstag import __version__
from abstag.classifiers.base import Scorer, State
from abstag.classifiers.scorers import SCORERS
from abstag.decision import RIGHT, Decision
from abstag.drift import Reference
from abstag.errors import ArtifactError, DataError
from abstag.files import canonical_hash, file_hash, read_json, write_json
from abstag.records import Documents, FloatArray
from abstag.taxonomy import Taxonomy, parse_taxonomy

FORMAT = 1
_WEIGHTS, _STRINGS, _KEYS, _CARD, _HEAD = "weights.safetensors", "strings.json", "keys.json", "README.md", "bundle.json"
_FILES, _NOTICE = (_WEIGHTS, _STRINGS, _KEYS, _CARD), "NOTICE"
_PROBE = Documents(
    ["probe-1", "probe-2"],
    ["A graph neural network for molecules", ""],
    [
        "We pass messages between atoms and train by stochastic gradient descent with a decaying step size.",
        "A large language model answers questions; a diffusion model draws the pictures.",
    ],
)


@dataclass(frozen=True, slots=True)
class Bundle:
    """A fitted tagger.

    Attributes
    ----------
    name
        The run that made it.
    training_keys
        Title keys and ids of the papers that it was trained on.
    reference
        What it looked like on training papers that it had not seen; None in bundles of older versions.
    digest
        Hash of the whole content, empty for a bundle that is not on disk.
    """

    name: str
    scorer: Scorer
    decision: Decision
    taxonomy: Taxonomy
    training_keys: frozenset[str]
    reference: Reference | None = None
    digest: str = ""

    def probabilities(self, documents: Documents) -> FloatArray:
        """Return (n, k) float64 calibrated probabilities."""
        return self.decision.probabilities(self.scorer(documents))

    def trained_on(self, id: str, key: str | None) -> bool:  # noqa: A002
        """Whether the paper with this id or title key was among the training papers."""
        return id in self.training_keys or (key is not None and key in self.training_keys)


def save_bundle(folder: Path, bundle: Bundle, card: str) -> None:
    """Write a bundle into an existing empty folder (see `files.new_folder`)."""
    from safetensors.numpy import save_file

    if SCORERS.get(bundle.scorer.kind) is not type(bundle.scorer):
        raise ArtifactError(
            f"a scorer of kind {bundle.scorer.kind!r} cannot be restored",
            where=folder,
            remedy=f"known: {', '.join(SCORERS)}",
        )
    state = bundle.scorer.state()
    save_file({name: np.ascontiguousarray(array) for name, array in state.arrays.items()}, folder / _WEIGHTS)
    (folder / _STRINGS).write_text(json.dumps(state.strings, ensure_ascii=False), encoding="utf-8")
    (folder / _KEYS).write_text(json.dumps(sorted(bundle.training_keys), ensure_ascii=False), encoding="utf-8")
    (folder / _CARD).write_text(card, encoding="utf-8")
    if bundle.scorer.notice:
        (folder / _NOTICE).write_text(bundle.scorer.notice, encoding="utf-8")
    head = {
        "format": FORMAT,
        "abstag": __version__,
        "name": bundle.name,
        "kind": bundle.scorer.kind,
        "taxonomy": dict(bundle.taxonomy.source),
        "decision": _decision_json(bundle.decision),
        "reference": bundle.reference and bundle.reference.to_dict(),
        "self_test": bundle.probabilities(_PROBE).tolist(),
        "checksums": {name: file_hash(folder / name) for name in (*_FILES, _NOTICE) if (folder / name).exists()},
    }
    write_json(folder / _HEAD, head | {"digest": canonical_hash(head)})


def load_bundle(folder: Path) -> Bundle:
    """Load, verify and try a bundle.

    Raises
    ------
    ArtifactError
        No bundle here, a newer format, a checksum that differs, damaged content, or a self-test that fails.
    """
    from safetensors import SafetensorError

    head = _verified_head(folder)
    try:
        bundle = Bundle(
            name=head["name"],
            scorer=SCORERS[head["kind"]].restore(_read_state(folder)),
            decision=_decision(head["decision"]),
            taxonomy=parse_taxonomy(head["taxonomy"], where=str(folder)),
            training_keys=_keys(folder),
            reference=Reference.from_dict(head["reference"]) if head.get("reference") else None,
            digest=canonical_hash(head),
        )
        if _NOTICE in head["checksums"]:
            bundle.scorer.notice = (folder / _NOTICE).read_text(encoding="utf-8")
        deviation = float(np.abs(bundle.probabilities(_PROBE) - np.array(head["self_test"])).max())
    except (KeyError, ValueError, TypeError, IndexError, AttributeError, OSError, SafetensorError, DataError) as error:
        raise ArtifactError(f"the bundle is damaged: {error!r}", where=folder) from error
    if not deviation <= bundle.scorer.tolerance:
        raise ArtifactError(f"the self-test is off by {deviation:.2g}", where=folder, remedy="make the bundle again")
    return bundle


def training_keys(folder: Path) -> frozenset[str]:
    """Return the keys and ids of the papers that a bundle has learnt from; raises ArtifactError when it is damaged."""
    _verified_head(folder, [_KEYS])
    return _keys(folder)


def _keys(folder: Path) -> frozenset[str]:
    return frozenset(json.loads((folder / _KEYS).read_text(encoding="utf-8")))


def _verified_head(folder: Path, files: Sequence[str] = ()) -> dict[str, Any]:
    """Return bundle.json, its own content verified and that of some files, by default all."""
    if not (folder / _HEAD).is_file():
        raise ArtifactError("no bundle here", where=folder, remedy="name a run or a folder that holds bundle.json")
    head = read_json(folder / _HEAD)
    if not isinstance(head, dict) or not isinstance(head.get("format"), int):
        raise ArtifactError("this is no bundle", where=folder / _HEAD)
    if head["format"] > FORMAT:
        raise ArtifactError(
            f"bundle format {head['format']} is newer than this version reads ({FORMAT})",
            where=folder,
            remedy="pip install -U abstag",
        )
    if head.pop("digest", None) != canonical_hash(head):
        raise ArtifactError("bundle.json was changed after it was written", where=folder)
    if not isinstance(head.get("checksums"), dict):
        raise ArtifactError("the bundle is damaged: it has no checksums", where=folder)
    for name in files or head["checksums"]:
        if file_hash(folder / name) != head["checksums"].get(name):
            raise ArtifactError(f"{name} was changed or cut after it was written", where=folder)
    return head


def _read_state(folder: Path) -> State:
    from safetensors.numpy import load_file

    return State(load_file(folder / _WEIGHTS), json.loads((folder / _STRINGS).read_text(encoding="utf-8")))


def _decision_json(decision: Decision) -> dict[str, Any]:
    return {
        "slope": decision.slope.tolist(),
        "offset": decision.offset.tolist(),
        "thresholds": decision.thresholds.tolist(),
        "review": decision.review if np.isfinite(decision.review) else None,
        "right": decision.right,
    }


def _decision(value: Mapping[str, Any]) -> Decision:
    slope, offset, thresholds = (np.array(value[name], dtype=np.float64) for name in ("slope", "offset", "thresholds"))
    review = np.inf if value["review"] is None else float(value["review"])
    return Decision(slope, offset, thresholds, review, float(value.get("right", RIGHT)))
