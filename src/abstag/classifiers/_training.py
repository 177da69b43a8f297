"""Fine-tuning of an encoder's upper layers with the Hugging Face Trainer; torch is imported at once, so import it late.

The outputs of frozen lower layers are computed once a paper: `Replay` then stands for these layers, which is why an
epoch costs the upper layers alone.
"""

import hashlib
import logging
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import psutil
import torch
from datasets import Dataset
from safetensors.torch import load_file
from sklearn.base import clone
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits
from tqdm import tqdm
from transformers import EarlyStoppingCallback, PrinterCallback, Trainer, TrainerCallback, TrainingArguments
from transformers.trainer import TRAINER_STATE_NAME
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR
from transformers.utils import SAFE_WEIGHTS_NAME

from abstag.classifiers._partners import DividingTrainer, group
from abstag.classifiers.base import Aid, Labelled
from abstag.classifiers.embeddings import average_precision, cells
from abstag.classifiers.encoder import Encoder, like_length, refuse_more_layers
from abstag.errors import ArtifactError, ConfigError, DataError
from abstag.files import read_json
from abstag.progress import progress
from abstag.records import Documents, FloatArray, Targets

if TYPE_CHECKING:
    from tokenizers import Encoding

    from abstag.classifiers.finetuned import FineTuned

_LOG = logging.getLogger(__name__)
_LABELS = ["labels", "weights"]
_BATCH = 32  # papers that are run through the frozen layers together
_BYTES = 2  # of a float16


class _Reached(Exception):  # noqa: N818
    """The last frozen layer has given its output; the layers above need not run."""


class Replay(nn.Module):
    """Stands for frozen layers: each gives what the last of them has given for the batch; other names are a layer's.

    Parameters
    ----------
    layer
        The layer whose place it takes.
    extras
        Number of values that the layer gives after its hidden states; None where it gives these alone.
    """

    output: ClassVar[Tensor | None] = None

    def __init__(self, layer: nn.Module, extras: int | None) -> None:
        super().__init__()
        self.kept, self.extras = [layer], extras  # a list: its weights are not the net's to train or keep

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self.kept[0], name)

    def forward(self, *_: Any, **__: Any) -> Any:
        """Return the hidden states that `Replay.output` holds, in the form of the layer's own output."""
        assert Replay.output is not None
        return Replay.output if self.extras is None else (Replay.output, *([None] * self.extras))


class FrozenOutputs:
    """What the frozen layers give for papers, computed once, (tokens, d) float16 each, kept in memory.

    Parameters
    ----------
    encoded
        The n papers' tokens.
    frozen
        Number of frozen layers, > 0.
    """

    _last: ClassVar[tuple[str, Tensor] | None] = None  # the jobs of a sweep share papers and encoder

    def __init__(self, encoder: Encoder, encoded: Sequence["Encoding"], frozen: int) -> None:
        order = sorted(range(len(encoded)), key=lambda row: (len(encoded[row].ids), encoded[row].ids))
        ends = np.cumsum([0, *(len(encoded[row].ids) for row in order)])
        self.spans = dict(zip(order, pairwise(ends.tolist()), strict=True))
        key = _digest(encoder, [encoded[row].ids for row in order], frozen)
        if FrozenOutputs._last is None or FrozenOutputs._last[0] != key:
            FrozenOutputs._last = None  # before room is made for others
            FrozenOutputs._last = key, self._computed(encoder, encoded, order, frozen)
        self.values = FrozenOutputs._last[1]

    def _computed(self, encoder: Encoder, encoded: Sequence["Encoding"], order: Sequence[int], frozen: int) -> Tensor:
        values = _room(sum(len(one.ids) for one in encoded), encoder.model.config.hidden_size)
        for begin in progress(range(0, len(order), _BATCH), "encoding", "batches"):
            rows = order[begin : begin + _BATCH]
            hidden = frozen_output(encoder, encoder.tensors([encoded[row] for row in rows]), frozen)[0].cpu()
            for row, one in zip(rows, hidden, strict=True):
                start, end = self.spans[row]
                values[start:end] = one[: end - start]
                if not torch.isfinite(values[start:end]).all():
                    what = "the frozen layers give numbers beyond float16"
                    raise ConfigError(what, where="classifier.frozen_layers", remedy="set it to 0")
        return values

    def __getitem__(self, rows: Sequence[int]) -> Tensor:
        """Return (rows, tokens, d) float32, padded with zeros to the longest."""
        cuts = [self.values[slice(*self.spans[row])] for row in rows]
        return nn.utils.rnn.pad_sequence(cuts, batch_first=True).float()


def _room(tokens: int, size: int) -> Tensor:
    """Return an empty (tokens, size) float16 tensor: in half of the free memory, or else in an unnamed file."""
    needed = tokens * size * _BYTES
    if needed < psutil.virtual_memory().available / 2:
        return torch.empty((tokens, size), dtype=torch.float16)
    folder = tempfile.gettempdir()
    if needed > psutil.disk_usage(folder).free / 2:
        what = f"the outputs of the frozen layers need {needed / 2**30:.1f} GiB of memory, or in {folder}"
        raise ConfigError(what, where="classifier.frozen_layers", remedy="set it to 0, or take fewer papers or tokens")
    with tempfile.NamedTemporaryFile() as file:
        return torch.from_file(file.name, shared=True, size=tokens * size, dtype=torch.float16).view(tokens, size)


def _digest(encoder: Encoder, tokens: Sequence[Sequence[int]], frozen: int) -> str:
    """Return a hash of whatever the frozen outputs depend on."""
    digest = hashlib.sha256(f"{frozen} {encoder.device}".encode())
    for name, value in encoder.model.state_dict().items():
        digest.update(name.encode() + value.cpu().numpy().tobytes())
    for ids in tokens:
        digest.update(np.array([len(ids), *ids], dtype=np.int64).tobytes())
    return digest.hexdigest()


def frozen_output(encoder: Encoder, batch: Mapping[str, Tensor], frozen: int) -> tuple[Tensor, int | None]:
    """Return (batch, tokens, d), what layer number ``frozen`` gives, and how many values follow it (see `Replay`).

    The layers above do not run.
    """
    found: list[Any] = []

    def stop(_: Any, __: Any, output: Any) -> None:
        found.append(output)
        raise _Reached

    hook = encoder.layers[frozen - 1].register_forward_hook(stop)
    try:
        with suppress(_Reached), torch.inference_mode():
            encoder.model(**batch)
    finally:
        hook.remove()
    (output,) = found
    return (output[0], len(output) - 1) if isinstance(output, tuple) else (output, None)


@contextmanager
def _replayed(encoder: Encoder, batch: Mapping[str, Tensor], frozen: int) -> Iterator[None]:
    """Put a `Replay` in place of each frozen layer, and the layers back at the end; ``batch`` is any."""
    layers = encoder.layers
    kept = [layers[number] for number in range(frozen)]
    extras = frozen_output(encoder, batch, frozen)[1] if frozen else None
    for number, layer in enumerate(kept):
        layers[number] = Replay(layer, extras)
    try:
        yield
    finally:
        Replay.output = None
        for number, layer in enumerate(kept):
            layers[number] = layer


class Net(nn.Module):
    """Encoder, mean of its tokens of length 1, dropout, linear head; the loss is cross-entropy over weighted cells.

    Parameters
    ----------
    frozen
        Number of the encoder's frozen layers.
    positive_weight
        (k,): how much a positive counts against a negative.
    """

    accepts_loss_kwargs: ClassVar[bool] = False  # the Trainer would hand its own to the encoder

    def __init__(self, encoder: Encoder, frozen: int, positive_weight: Tensor, dropout: float) -> None:
        super().__init__()
        self.model, self.pooled, self.frozen = encoder.model, encoder.pooled, frozen
        self.trained = list(encoder.layers[frozen:])
        self.head = nn.Linear(encoder.model.config.hidden_size, len(positive_weight))
        self.dropout, self.positive_weight = nn.Dropout(dropout), positive_weight.to(encoder.device)
        self.to(encoder.device)

    def train(self, mode: bool = True) -> Self:  # noqa: FBT001, FBT002
        """Switch dropout on or off; below and beside the trained layers it stays off where layers are frozen."""
        super().train(mode)
        if self.frozen:
            self.model.eval()
            for layer in self.trained:
                layer.train(mode)
        return self

    def start(self, coef: FloatArray, intercept: FloatArray) -> None:
        """Set the head's (k, d) coefficients and (k,) intercepts."""
        with torch.no_grad():
            self.head.weight.copy_(torch.from_numpy(coef))
            self.head.bias.copy_(torch.from_numpy(intercept))

    def embed(self, *, frozen: Tensor | None = None, **inputs: Tensor) -> Tensor:
        """Return (batch, d) embeddings; ``frozen`` is what the frozen layers give, where it is known."""
        Replay.output = frozen
        return self.pooled(inputs)

    def forward(self, labels: Tensor, weights: Tensor, **inputs: Tensor) -> dict[str, Tensor]:
        """Return the loss and (batch, k) logits; raises DataError when the loss is not finite."""
        logits = self.head(self.dropout(self.embed(**inputs))).float()
        losses = binary_cross_entropy_with_logits(
            logits, labels, weight=weights, pos_weight=self.positive_weight, reduction="sum"
        )
        loss = losses / weights.sum().clamp(min=1e-6)
        if not torch.isfinite(loss):
            raise diverged()
        return {"loss": loss, "logits": logits}


def diverged() -> DataError:
    """Return the error of a training whose loss or weights are not finite."""
    remedy = "lower classifier.learning_rate"
    return DataError("the loss is no longer finite: the training has diverged", remedy=remedy)


class Batches:
    """Puts papers into batches for `Net`: a Trainer's data collator."""

    def __init__(self, encoder: Encoder, encoded: Sequence["Encoding"], outputs: FrozenOutputs | None) -> None:
        self.encoder, self.encoded, self.outputs = encoder, encoded, outputs

    def __call__(self, papers: Sequence[Mapping[str, Any]]) -> dict[str, Tensor]:
        rows = [paper["row"] for paper in papers]
        cells = {name: torch.tensor([paper[name] for paper in papers], dtype=torch.float32) for name in _LABELS}
        return {**self.inputs(rows), **cells}

    def inputs(self, rows: Sequence[int]) -> dict[str, Tensor]:
        """Return what `Net.embed` takes for these papers."""
        batch = self.encoder.tensors([self.encoded[row] for row in rows])
        return batch if self.outputs is None else {**batch, "frozen": self.outputs[rows].to(self.encoder.device)}


def fine_tune(
    encoder: Encoder,
    training: Labelled,
    planes: Callable[[FloatArray], tuple[FloatArray, FloatArray]],
    settings: "FineTuned",
    aid: Aid,
) -> tuple[FloatArray, FloatArray]:
    """Fine-tune an encoder in place, from a head fitted on its embeddings as they are (Kumar et al. 2022).

    Parameters
    ----------
    planes
        Fits the (k, d) coefficients and (k,) intercepts of a linear head on the training papers' (n, d) embeddings.
    settings
        The classifier, for its parameters.
    aid
        Checkpoints go to its folder after each epoch, and a fit that was interrupted goes on from the last whole one.

    Returns
    -------
    tuple
        Coefficients and intercepts of the head, of the epoch with the highest average precision on held-out papers.

    Raises
    ------
    DataError
        The loss is no longer finite.
    ConfigError
        Memory does not suffice.
    """
    with tempfile.TemporaryDirectory() as temporary, _enough_memory():
        parts = [training] if aid.held_out is None else [training, aid.held_out]
        encoded = [one for part in parts for one in encoder.encode(part.documents)]
        frozen = settings.frozen_layers
        _freeze(encoder, frozen)
        batches = Batches(encoder, encoded, FrozenOutputs(encoder, encoded, frozen) if frozen else None)
        torch.manual_seed(aid.seed)
        positive_weight = _positive_weight(training.targets, balanced=settings.balanced)
        net = Net(encoder, frozen, positive_weight, settings.dropout)
        if (partners := group()) is not None:
            partners.begin(clone(settings), positive_weight)
        with _replayed(encoder, encoder.tensors(encoded[:1]), frozen):
            net.start(*planes(_embeddings(net, batches, len(training.documents))))
            arguments = _arguments(settings, aid, encoder.device, aid.workdir or Path(temporary))
            _train(net, batches, [part.targets for part in parts], settings.patience, arguments)
            some = list(range(min(_BATCH, len(training.documents))))
            with torch.inference_mode():
                logits = net.eval().head(net.embed(**batches.inputs(some)))
            if not torch.isfinite(logits).all():
                raise diverged()
        head = net.head
        coef, intercept = (value.detach().cpu().double().numpy() for value in (head.weight, head.bias))
        return coef, intercept


@contextmanager
def built(settings: "FineTuned", positive_weight: Tensor) -> Iterator[Net]:
    """Give a net as `fine_tune` builds it, for another process that trains it too (see `_partners`)."""
    encoder = settings.load()
    _freeze(encoder, settings.frozen_layers)
    batch = encoder.tensors(encoder.encode(Documents(["x"], ["x"], ["x"])))
    with _replayed(encoder, batch, settings.frozen_layers):
        yield Net(encoder, settings.frozen_layers, positive_weight, settings.dropout)


def _arguments(settings: "FineTuned", aid: Aid, device: str, workdir: Path) -> TrainingArguments:
    early = aid.held_out is not None
    arguments = TrainingArguments(
        output_dir=str(workdir),
        per_device_train_batch_size=settings.batch_size,
        per_device_eval_batch_size=settings.batch_size,
        learning_rate=settings.learning_rate,
        num_train_epochs=settings.epochs,
        warmup_steps=settings.warmup,
        weight_decay=settings.weight_decay,
        max_grad_norm=1.0,
        eval_strategy="epoch" if early else "no",
        save_strategy="epoch",
        save_total_limit=2,
        load_best_model_at_end=early,
        metric_for_best_model="average_precision" if early else None,
        greater_is_better=True if early else None,
        train_sampling_strategy="group_by_length",
        seed=aid.seed,
        use_cpu=device == "cpu",
        bf16=device == "cuda",
        label_names=_LABELS,
        remove_unused_columns=False,
        dataloader_pin_memory=False,  # batches are on the device already
        restore_callback_states_from_checkpoint=True,
        logging_strategy="no",
        report_to="none",
        disable_tqdm=True,
    )
    arguments._n_gpu = 1  # with several the Trainer would copy the net to each
    return arguments


def _train(net: Net, batches: Batches, parts: Sequence[Targets], patience: int, arguments: TrainingArguments) -> None:
    """Train on the first part; the net ends as it was after the epoch that was best on the second, if any."""
    begins = [0, len(parts[0])]
    sets = [_dataset(batches.encoded, targets, begin) for targets, begin in zip(parts, begins, strict=False)]
    early = len(sets) > 1
    partners = group()
    trainer = (Trainer if partners is None else DividingTrainer)(
        model=net,
        args=arguments,
        data_collator=batches,
        train_dataset=sets[0],
        eval_dataset=sets[1] if early else None,
        compute_metrics=_metrics,
        callbacks=[_Progress(), *([EarlyStoppingCallback(patience)] if early else [])],
    )
    if isinstance(trainer, DividingTrainer) and partners is not None:
        trainer.group = partners
    trainer.remove_callback(PrinterCallback)  # which prints to standard output
    workdir = Path(str(arguments.output_dir))
    checkpoint, state = _last_checkpoint(workdir)
    if not (early and state and _waited(state) >= patience):  # it had not stopped early before it was interrupted
        trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
        state = vars(trainer.state)
    if early:  # by number, since the Trainer's own path to the best is lost when the folder was moved
        best = workdir / f"{PREFIX_CHECKPOINT_DIR}-{state['best_global_step']}" / SAFE_WEIGHTS_NAME
        if not best.is_file():
            raise ArtifactError("the checkpoint of the best epoch is gone", where=best, remedy="run again")
        net.load_state_dict(load_file(best))


def _last_checkpoint(workdir: Path) -> tuple[Path | None, dict[str, Any]]:
    """Return the newest checkpoint that was written whole, with its state, which is written last."""
    found = sorted(workdir.glob(f"{PREFIX_CHECKPOINT_DIR}-*"), key=lambda path: int(path.name.rpartition("-")[2]))
    for path in reversed(found):
        with suppress(ArtifactError):
            state: dict[str, Any] = read_json(path / TRAINER_STATE_NAME)
            _LOG.info("going on from %s", path.name)
            return path, state
    return None, {}


def _waited(state: Mapping[str, Any]) -> int:
    """Return how many epochs without a better one a checkpoint's state counts."""
    return int(state["stateful_callbacks"]["EarlyStoppingCallback"]["attributes"]["early_stopping_patience_counter"])


def _dataset(encoded: Sequence["Encoding"], targets: Targets, begin: int) -> Dataset:
    rows = range(begin, begin + len(targets))
    labels, weights = cells(targets)
    columns = {
        "row": list(rows),
        "length": [len(encoded[row].ids) for row in rows],
        "labels": labels.tolist(),
        "weights": weights.tolist(),
    }
    return Dataset.from_dict(columns)


def _metrics(found: Any) -> dict[str, float]:
    return {"average_precision": average_precision(found.predictions, *found.label_ids)}


def _freeze(encoder: Encoder, layers: int) -> None:
    """Freeze so many layers, and all that is no layer; raises ConfigError when there are fewer."""
    refuse_more_layers(layers, len(encoder.layers), "classifier.frozen_layers")
    for parameter in encoder.model.parameters():
        parameter.requires_grad = False
    for layer in encoder.layers[layers:]:
        for parameter in layer.parameters():
            parameter.requires_grad = True


def _positive_weight(targets: Targets, *, balanced: bool) -> Tensor:
    weight = targets.weight * targets.known
    positives, negatives = (weight * targets.values).sum(axis=0), (weight * ~targets.values).sum(axis=0)
    ratio = negatives / np.maximum(positives, 1e-6) if balanced else np.ones_like(positives)
    return torch.tensor(ratio, dtype=torch.float32)


def _embeddings(net: Net, batches: Batches, papers: int) -> FloatArray:
    found = np.zeros((papers, net.head.in_features))
    net.eval()
    with torch.inference_mode():
        for rows in progress(like_length(batches.encoded[:papers], _BATCH), "embedding", "batches"):
            found[rows] = net.embed(**batches.inputs(rows)).float().cpu().numpy()
    return found


class _Progress(TrainerCallback):
    """A bar with the steps done and the time left; a line after each epoch."""

    def on_train_begin(self, args: Any, state: Any, *_: Any, **__: Any) -> None:  # noqa: ARG002
        steps, done = state.max_steps, state.global_step
        self.bar = tqdm(total=steps, initial=done, desc="fine-tuning", unit=" steps", disable=None, leave=False)
        self.begun, self.first = time.monotonic(), done

    def on_step_end(self, args: Any, state: Any, *_: Any, **__: Any) -> None:  # noqa: ARG002
        self.bar.update(state.global_step - self.bar.n)

    def on_evaluate(self, args: Any, state: Any, *_: Any, **given: Any) -> None:
        rate = (time.monotonic() - self.begun) / max(1, state.global_step - self.first)
        left = rate * (state.max_steps - state.global_step)
        epoch, found = round(state.epoch), given["metrics"]["eval_average_precision"]
        text = "epoch %d of %d: average precision %.4f on held-out papers, at most %.0f s left"
        self._say(text, epoch, args.num_train_epochs, found, left)

    def on_epoch_end(self, args: Any, state: Any, *_: Any, **__: Any) -> None:
        if args.eval_strategy == "no":
            self._say("epoch %d of %d", round(state.epoch), args.num_train_epochs)

    def _say(self, text: str, *values: Any) -> None:
        self.bar.clear()
        _LOG.info(text, *values)
        self.bar.refresh()

    def on_train_end(self, *_: Any, **__: Any) -> None:
        self.bar.close()


@contextmanager
def _enough_memory() -> Iterator[None]:
    """Turn what PyTorch raises when memory ends into one line."""
    try:
        yield
    except (MemoryError, torch.OutOfMemoryError) as error:
        raise _memory_ended() from error
    except RuntimeError as error:
        if "allocate memory" not in str(error):
            raise
        raise _memory_ended() from error


def _memory_ended() -> ConfigError:
    remedy = "lower classifier.batch_size or classifier.max_tokens"
    return ConfigError("memory does not suffice for this batch", where="classifier.batch_size", remedy=remedy)
