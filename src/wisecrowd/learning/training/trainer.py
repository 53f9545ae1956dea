"""The module that is trained, the training loop, and torch's random generator for one thread.

The loop keeps the best epoch, and Ctrl-C ends it with the best model so far. All threads share
torch's generator, so a fit has it alone.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from wisecrowd.core.exceptions import DataError
from wisecrowd.inference.monitor import Progress, report
from wisecrowd.learning.training.ranks import current_ranks, require_equal_state

OPTIMIZERS = ("adam", "adamw", "sgd")
SCHEDULES = ("constant", "cosine", "one-cycle")
WARM_UP = 0.3  # share of the steps in which the one-cycle learning rate rises
LOWEST = 0.04  # its initial value, as a share of the highest
TOO_MUCH = 1e3  # ratio of an epoch's loss to the first at which training has diverged
TOO_LARGE = 1e5  # the same for the largest weight, because a loss may be bounded

_ALONE = threading.RLock()


def _renew() -> None:
    """Replace the lock, because the thread that holds it does not exist after a fork."""
    global _ALONE
    _ALONE = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)


@contextmanager
def own_random_numbers(devices: Sequence[int] = ()) -> Iterator[None]:
    """Keep torch's random generator for one thread, and restore its state afterwards.

    A second thread that enters the ``with`` block waits. Torch has one generator for all threads:
    two fits that draw from it at the same time are not reproducible.

    Parameters
    ----------
    devices : indices of CUDA devices whose generators are in use as well
    """
    with _ALONE, torch.random.fork_rng(devices=devices):
        yield


class NetworkModel(nn.Module):
    """A network on features, and a loss over annotations.

    A method defines ``loss``. Everything that changes during training is a parameter or a buffer,
    so that checkpoints contain it.
    """

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def loss(self, batch: Any) -> Tensor:
        """Return the training loss of a batch."""
        raise TypeError(f"{type(self).__name__} must define loss.")

    def begin_epoch(self, epoch: int, data: Any) -> None:
        """Prepare an epoch, for example by the E-step of an EM method."""

    def end_epoch(self, data: Any) -> None:
        """Finish an epoch, for example by fixing what the loss does not determine."""

    def crowd_parameters(self) -> list[nn.Parameter]:
        """Return the parameters outside the network: own learning rate, no weight decay."""
        own = {id(p) for p in self.network.parameters()}
        return [p for p in self.parameters() if id(p) not in own]


@dataclass(frozen=True)
class TrainerOptions:
    """Options of training, from the parameters of ``NeuralClassifier``."""

    epochs: int
    batch_size: int
    lr: float
    crowd_lr: float
    weight_decay: float
    optimizer: str
    schedule: str
    clip_gradient: float | None
    patience: int | None
    horizon: int  # epochs that the schedule spans


@dataclass
class TrainingState:
    """Progress of training, which a checkpoint stores."""

    epoch: int = 0
    best_epoch: int = 0
    best_score: float = -math.inf
    history: list[dict[str, float]] = field(default_factory=list)
    first_loss: float = math.nan  # of the first batch, before any step
    first_size: float = math.nan  # of the largest weight
    interrupted: bool = False
    stopped: str = ""


def train(
    model: NetworkModel,
    data: Any,
    rows: Tensor,
    options: TrainerOptions,
    *,
    score: Callable[[], float] | None = None,
    state: TrainingState | None = None,
    optimizer: torch.optim.Optimizer | None = None,
    best: dict[str, Tensor] | None = None,
    after_epoch: Callable[[TrainingState, torch.optim.Optimizer, dict[str, Tensor]], None]
    | None = None,
    sample: Callable[[], Tensor] | None = None,
) -> TrainingState:
    """Train a model in place and leave it in its best state.

    Parameters
    ----------
    model, data, rows
        The model, the data, and the rows of the data to train on.
    options : TrainerOptions
    score : callable, optional
        Score of the current model, higher is better; without it the last epoch is the best.
    state, optimizer, best : optional
        State of an interrupted run.
    after_epoch : callable, optional
        Called after every epoch, to write a checkpoint.
    sample : callable, optional
        Returns the rows of an epoch; all rows in random order by default.
    """
    state = TrainingState() if state is None else state
    optimizer = make_optimizer(model, options) if optimizer is None else optimizer
    best = _copy(model) if best is None else best
    good = _copy(model)  # the last state that had not diverged
    if math.isnan(state.first_size):
        state.first_size = _largest(model)
    require_equal_state(model, state.epoch)
    try:
        while state.epoch < options.epochs and not state.stopped:
            model.begin_epoch(state.epoch, data)
            drawn = rows[torch.randperm(len(rows))] if sample is None else sample()
            loss = _epoch(model, data, drawn, options, optimizer, state)
            model.end_epoch(data)
            require_equal_state(model, state.epoch, loss)
            state.stopped = _diverged(model, state, loss)
            if state.stopped:
                break
            good = _copy(model)
            state.epoch += 1
            _judge(model, state, options, loss, score)
            if state.best_epoch == state.epoch:
                best = good
            report(_progress(state, options.epochs))
            if after_epoch is not None:
                after_epoch(state, optimizer, best)
    except KeyboardInterrupt:
        if current_ranks() is not None:  # the others cannot know the epoch that this one kept
            raise
        state.interrupted = True
    model.load_state_dict(best if state.best_epoch else good)
    return state


def _epoch(
    model: NetworkModel,
    data: Any,
    rows: Tensor,
    options: TrainerOptions,
    optimizer: torch.optim.Optimizer,
    state: TrainingState,
) -> float:
    """Run over the rows once and return the mean loss; stop early if it is not finite."""
    model.train()
    ranks = current_ranks()
    total, n_batches = 0.0, max(1, -(-len(rows) // options.batch_size))
    for number, batch in enumerate(data.batches(rows, options.batch_size)):
        step = state.epoch * n_batches + number
        factor = rate_factor(options.schedule, step, options.horizon * n_batches)
        for group in optimizer.param_groups:
            group.setdefault("highest_lr", group["lr"])
            group["lr"] = group["highest_lr"] * factor
        with torch.autocast(data.device.type, enabled=data.device.type == "cuda"):
            loss = model.loss(batch)
        optimizer.zero_grad(set_to_none=True)
        torch.autograd.backward(loss)
        if ranks is not None:
            ranks.average_gradients(model.network)
        if options.clip_gradient is not None:
            nn.utils.clip_grad_norm_(model.parameters(), options.clip_gradient)
        optimizer.step()
        value = float(loss.detach())
        if math.isnan(state.first_loss):
            state.first_loss = value
        total += value * len(batch)
        if not math.isfinite(total):
            break
    return total / max(len(rows), 1)


def _diverged(model: NetworkModel, state: TrainingState, loss: float) -> str:
    """Return a message with a remedy if training has diverged, otherwise an empty string."""
    size = _largest(model)
    if not math.isfinite(loss) or loss > TOO_MUCH * max(1.0, abs(state.first_loss)):
        sign = f"the loss went from {state.first_loss:.3g} to {loss:.3g}"
    elif not size <= TOO_LARGE * max(1.0, state.first_size):
        sign = f"a weight grew to {size:.3g}"
    else:
        return ""
    return (
        f"Training diverged in epoch {state.epoch + 1}: {sign}. It stopped, and the state before "
        "that epoch was kept; lower lr or crowd_lr, set clip_gradient, or rescale the features."
    )


def _largest(model: nn.Module) -> float:
    """Return the largest absolute weight; NaN if any weight is NaN."""
    sizes = [p.detach().abs().max() for p in model.parameters() if p.numel()]
    return float(torch.stack(sizes).max()) if sizes else 0.0


def _judge(
    model: NetworkModel,
    state: TrainingState,
    options: TrainerOptions,
    loss: float,
    score: Callable[[], float] | None,
) -> None:
    """Record the epoch, and decide whether it is the best and whether to stop."""
    record = {"epoch": float(state.epoch), "loss": loss}
    if score is None:
        state.best_epoch = state.epoch
    else:
        value = record["score"] = score()
        if value > state.best_score:
            state.best_score, state.best_epoch = value, state.epoch
        if options.patience is not None and state.epoch - state.best_epoch >= options.patience:
            state.stopped = "patience"
    state.history.append(record)


def _progress(state: TrainingState, epochs: int) -> Progress:
    """Return what is reported of the epoch that just ended."""
    record = state.history[-1]
    score = record.get("score")
    best = None if score is None else state.best_epoch
    return Progress(
        state.epoch, epochs, record["loss"], unit="epoch", score=score, best=best
    )  # fmt: skip


def make_optimizer(model: NetworkModel, options: TrainerOptions) -> torch.optim.Optimizer:
    """Return an optimiser with two groups: the network and the worker parameters."""
    crowd = model.crowd_parameters()
    of_crowd = {id(p) for p in crowd}
    network = [p for p in model.network.parameters() if id(p) not in of_crowd]
    groups: list[dict[str, Any]] = [
        {"params": network, "weight_decay": options.weight_decay},
        {"params": crowd, "lr": options.crowd_lr, "weight_decay": 0.0},
    ]
    groups = [group for group in groups if group["params"]]
    if not groups:
        raise DataError("The module has no parameters to train; give another module.")
    if options.optimizer == "sgd":
        return torch.optim.SGD(groups, lr=options.lr, momentum=0.9)
    kind = torch.optim.AdamW if options.optimizer == "adamw" else torch.optim.Adam
    # One pass over each parameter instead of ten: a table of all annotations is large.
    fused = groups[0]["params"][0].device.type in ("cpu", "cuda")
    return kind(groups, lr=options.lr, fused=fused)


def rate_factor(schedule: str, step: int, total: int) -> float:
    """Return the learning rate at a step, as a share of the highest.

    Examples
    --------
    >>> [round(rate_factor("cosine", step, 4), 2) for step in range(4)]
    [1.0, 0.85, 0.5, 0.15]
    """
    done = step / max(total, 1)
    if schedule == "cosine":
        return 0.5 * (1 + math.cos(math.pi * done))
    if schedule == "one-cycle":
        if done < WARM_UP:
            return LOWEST + (1 - LOWEST) * 0.5 * (1 - math.cos(math.pi * done / WARM_UP))
        return 0.5 * (1 + math.cos(math.pi * (done - WARM_UP) / (1 - WARM_UP)))
    return 1.0


def _copy(model: nn.Module) -> dict[str, Tensor]:
    return {name: value.detach().clone() for name, value in model.state_dict().items()}
