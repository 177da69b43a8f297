"""Several processes train one net: the first runs the fit as ever, the others give gradients of their share of a batch.

So that early stopping, checkpoints and whatever else a fit does stay with one process, the others know nothing but the
net: before each step they get its trained weights and their papers, and give gradients back. The batch is the same as
in one process, and so is the sum of the gradients, to rounding. torch is imported at once, so import it late.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters
from transformers import Trainer

from abstag.errors import DataError

if TYPE_CHECKING:
    from abstag.classifiers.finetuned import FineTuned

_PATIENCE = timedelta(days=365)  # the leader may do other things for long between two fits
_TOLD = ("LOCAL_RANK", "RANK", "WORLD_SIZE")
_group: "Group | None" = None


class _Fit(NamedTuple):
    """A net begins; the classifier's parameters, and how much positives count."""

    settings: "FineTuned"
    positive_weight: Tensor


class _Step(NamedTuple):
    """A process's share of a batch, the weight of the whole batch's cells, and the seed of its dropout."""

    share: Mapping[str, Tensor]
    total: float
    seed: int


class Group:
    """The processes of one launch, of which the first leads."""

    def __init__(self) -> None:
        self.rank, self.size = dist.get_rank(), dist.get_world_size()

    def begin(self, settings: "FineTuned", positive_weight: Tensor) -> None:
        """Have the others build the net of a fit."""
        self._tell([_Fit(settings, positive_weight)] * self.size)

    def end(self) -> None:
        """Let the others go."""
        self._tell([None] * self.size)

    def step(self, net: nn.Module, batch: Mapping[str, Tensor], seed: int, loss_of: Callable[[Any], Tensor]) -> Tensor:
        """Leave in the net the gradients of a whole batch; ``loss_of`` computes those of the leader's share."""
        shares = [{name: value[rank :: self.size] for name, value in batch.items()} for rank in range(self.size)]
        total = float(batch["weights"].sum())
        sent = [{name: value.cpu() for name, value in share.items()} for share in shares]
        self._tell([_Step(share, total, seed + rank) for rank, share in enumerate(sent)])
        dist.broadcast(_weights(net), src=0)
        try:
            return loss_of(shares[0])
        finally:  # the others give theirs in any case
            self._add(net, _share(shares[0], total))

    def follow(self) -> None:
        """Give gradients until the leader lets go."""
        from abstag.classifiers._training import built

        with ExitStack() as stack:
            while (message := self._tell(None)) is not None:
                if isinstance(message, _Fit):
                    stack.close()
                    net = stack.enter_context(built(message.settings, message.positive_weight))
                    device = net.positive_weight.device.type
                else:
                    weights = _weights(net)
                    dist.broadcast(weights, src=0)
                    vector_to_parameters(weights.to(device), _trained(net))
                    _backward(net, message, device)
                    self._add(net, _share(message.share, message.total))

    def _tell(self, messages: list[Any] | None) -> Any:
        """Return this process's message; the leader gives one for each."""
        own: list[Any] = [None]
        dist.scatter_object_list(own, messages, src=0)
        return own[0]

    def _add(self, net: nn.Module, factor: float) -> None:
        """Add up the gradients of all processes, each times its factor, in the leader's net."""
        parameters = _trained(net)
        gradients = [torch.zeros_like(one) if one.grad is None else one.grad for one in parameters]
        added = parameters_to_vector(gradients).cpu() * factor
        dist.reduce(added, dst=0)
        parts = torch.split(added, [one.numel() for one in parameters])
        for one, part in zip(parameters, parts, strict=True):
            one.grad = part.view_as(one).to(one.device)


class DividingTrainer(Trainer):
    """A Trainer whose steps are divided among the processes of a group."""

    group: Group

    def training_step(self, model: nn.Module, inputs: dict[str, Any], *rest: Any, **named: Any) -> Tensor:
        """Return the loss of the leader's share, and leave the gradients of the whole batch in the net."""
        seed = self.args.seed + self.state.global_step * self.group.size
        loss_of = super().training_step
        return self.group.step(model, inputs, seed, lambda share: loss_of(model, share, *rest, **named))


def launched() -> bool:
    """Whether torchrun, accelerate or the like has started several processes, of which this is one."""
    return {*_TOLD, "MASTER_ADDR"} <= os.environ.keys() and int(os.environ["WORLD_SIZE"]) > 1


@contextmanager
def joined() -> Iterator[Group]:
    """Join the processes that were launched together; at its end the leader lets the others go."""
    global _group  # noqa: PLW0603  # one a process, as is torch's own
    dist.init_process_group("gloo", timeout=_PATIENCE)
    if torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    for name in _TOLD:  # else the Trainer would divide the work too
        del os.environ[name]
    _group = Group()
    try:
        yield _group
    finally:
        if _group.rank == 0:
            _group.end()
        _group = None
        dist.destroy_process_group()


def group() -> Group | None:
    """Return the processes that this one leads, if there are any."""
    return _group


def _trained(net: nn.Module) -> list[nn.Parameter]:
    return [parameter for parameter in net.parameters() if parameter.requires_grad]


def _weights(net: nn.Module) -> Tensor:
    return parameters_to_vector(_trained(net)).detach().cpu()


def _share(share: Mapping[str, Tensor], total: float) -> float:
    """Return by what the mean loss of a share counts in that of the batch (see `Net.forward`)."""
    return float(share["weights"].sum()) / max(total, 1e-6)


def _backward(net: nn.Module, step: _Step, device: str) -> None:
    """Leave the gradients of a follower's share in its net; NaN where they are not finite, which the leader reports."""
    net.zero_grad()
    if not len(step.share["weights"]):
        return
    net.train()
    torch.manual_seed(step.seed)
    try:
        with torch.autocast(device, dtype=torch.bfloat16, enabled=device == "cuda"):
            net(**{name: value.to(device) for name, value in step.share.items()})["loss"].backward()
    except DataError:
        for parameter in _trained(net):
            parameter.grad = torch.full_like(parameter, torch.nan)
