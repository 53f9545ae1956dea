"""NeuralClassifier: training of a network on crowd labels, with a loss per method."""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import save as to_bytes
from torch import Tensor, nn

from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.findings import Finding
from wisecrowd.core.messages.option_spelling import for_reader
from wisecrowd.core.parameter_checks import (
    MOST_ITERATIONS,
    as_generator,
    check_choice,
    check_flag,
    check_integer,
    check_number,
    is_auto,
)
from wisecrowd.core.saved_attributes import COUNT, SIZES, Saved, SavedValue
from wisecrowd.learning.training.checkpoint import load_checkpoint, save_checkpoint
from wisecrowd.learning.training.crowd_classifier import CrowdClassifier, Learned, Training
from wisecrowd.learning.training.crowd_data import CrowdData, Features, log_probas_of
from wisecrowd.learning.training.crowd_model import CrowdModel
from wisecrowd.learning.training.epoch_selection import crowd_score, gold_score, held_out
from wisecrowd.learning.training.network_files import FILE, network_from
from wisecrowd.learning.training.torch_random import own_random_numbers
from wisecrowd.learning.training.trainer import (
    OPTIMIZERS,
    SCHEDULES,
    TrainerOptions,
    TrainingState,
    train,
)
from wisecrowd.nn.backbones import Standardize, make_backbone

Floats = NDArray[np.float64]
SELECTIONS = ("auto", "last", "crowd", "gold")
BALANCES = ("none", "weights", "sampling")
FINISHED = ("", "patience")  # reasons to stop that need no warning
RARELY = 1.0  # seconds between checkpoints: writing to disk may take longer than an epoch
_SAMPLE = 20_000  # items of a dataset that estimate mean and deviation


@dataclass(frozen=True, eq=False)
class _Run:
    """A trained model, the data it has seen, and how it went."""

    model: CrowdModel
    seen: CrowdData
    state: TrainingState
    history: list[dict[str, float]]


@dataclass(eq=False, repr=False, kw_only=True)
class NeuralClassifier(CrowdClassifier):
    """Base class of the methods that train a network; a method defines ``_build``.

    Parameters
    ----------
    module : str, torch module, or callable
        "mlp", "linear", "pooled-cnn", "deep-cnn"; a module from features to logits, copied with
        its weights; or a function of ``(shape, n_classes)`` that makes one.
    epochs, batch_size : int
        Number of passes over the tasks, and number of tasks per batch, with all their labels.
    lr, crowd_lr : float
        Learning rates of the network and of the worker parameters.
    weight_decay : float
        Weight decay of the network; worker parameters have none.
    optimizer : {"adam", "adamw", "sgd"}
    schedule : {"constant", "cosine", "one-cycle"}
    clip_gradient : float, optional
        Largest norm of a gradient; larger ones are scaled down.
    balance : {"none", "weights", "sampling"}
        For rare classes: weight labels, or sample tasks, inversely to the label's frequency.
    selection : {"auto", "last", "crowd", "gold"}
        Epoch to keep: the last one ("last"), the one with the most likely labels on held-out tasks
        ("crowd"), or the best one on ``fit(..., valid=(X, y))`` ("gold"). "auto" is "gold" with
        such a validation set, and "last" without.
    valid_fraction : float
        Share of the tasks that "crowd" holds out.
    patience : int, optional
        Number of epochs without improvement after which training stops.
    refit : bool
        Whether to train again on all tasks, up to the epoch that "crowd" selected.
    checkpoint : path, optional
        File to resume from, written during training; ``refit`` writes a second one.
    device : str
        Name of a torch device; "auto" uses a GPU if available.
    random_state : int
    """

    module: Any = "mlp"
    epochs: int = 60
    batch_size: int = 64
    lr: float = 1e-3
    crowd_lr: float = 1e-2
    weight_decay: float = 1e-4
    optimizer: str = "adam"
    schedule: str = "constant"
    clip_gradient: float | None = None
    balance: str = "none"
    selection: str = "auto"
    valid_fraction: float = 0.1
    patience: int | None = None
    refit: bool = True
    checkpoint: Any = None
    device: str = "auto"

    saves: ClassVar[dict[str, Saved]] = {
        "best_epoch_": COUNT,
        "selection_": SavedValue(lambda value: value in SELECTIONS, "a way to choose an epoch"),
        "input_shape_": SIZES,
    }

    # ------------------------------------------------------------------- overridden by the methods

    def _build(self, network: nn.Module, data: CrowdData) -> CrowdModel:
        """Return the model to train, around a new network."""
        raise TypeError(f"{type(self).__name__} must define _build.")

    def _make_network(self, shape: tuple[int, ...], n_classes: int, n_workers: int) -> nn.Module:
        """Return the network that predicts, from features to logits."""
        return make_backbone(self.module, shape, n_classes)

    def _learned(self, model: CrowdModel, data: CrowdData) -> dict[str, Any]:
        """Return results of the trained model: fields of ``Learned``, and others for ``extra``."""
        table = model.confusion()
        return {} if table is None else {"confusion": as_array(table)}

    def _validate_parameters(self) -> None:
        super()._validate_parameters()
        check_integer("epochs", self.epochs, 1, MOST_ITERATIONS)
        check_integer("batch_size", self.batch_size, 1)
        for name in ("lr", "crowd_lr"):
            check_number(name, getattr(self, name), 1e-12)
        check_number("weight_decay", self.weight_decay, 0.0)
        check_choice("optimizer", self.optimizer, OPTIMIZERS)
        check_choice("schedule", self.schedule, SCHEDULES)
        check_choice("selection", self.selection, SELECTIONS)
        check_choice("balance", self.balance, BALANCES)
        check_number("valid_fraction", self.valid_fraction, 1e-6, 0.9)
        check_flag("refit", self.refit)
        if self.clip_gradient is not None:
            check_number("clip_gradient", self.clip_gradient, 1e-12)
        if self.patience is not None:
            check_integer("patience", self.patience, 1)

    # ---------------------------------------------------------------------------------------- fit

    def _fit(self, training: Training) -> Learned:
        selection = self._selection(training)
        device = choose_device(self.device)
        labels = training.labels
        self._require_resumable(training)
        weight = _inverse_frequency(labels.class_totals) if self.balance == "weights" else None
        data = CrowdData(training.X, labels, training.gold, device=device, label_weight=weight)
        cuda = [torch.cuda.current_device()] if device.type == "cuda" else []
        with own_random_numbers(cuda):
            torch.manual_seed(int(as_generator(self.random_state).integers(2**31)))
            run = self._train(_with_features(training, data), data, selection)
            learned = self._learned(run.model, run.seen)
        model, state = run.model, run.state
        network = model.network.eval().to("cpu")
        known = {field.name for field in fields(Learned)}
        result = {key: value for key, value in learned.items() if key in known}
        extra = {key: value for key, value in learned.items() if key not in known}
        extra |= {
            "best_epoch": state.best_epoch,
            "selection": selection,
            "input_shape": data.features.shape,
        }
        return Learned(
            log_probas_of(network, data.features),
            n_iter=state.epoch,
            converged=not state.interrupted and state.stopped in FINISHED,
            history=tuple(run.history),
            findings=(*_findings(state), *result.pop("findings", ())),
            extra=extra,
            private={"network": network, **result.pop("private", {})},
            **result,
        )

    def _require_resumable(self, training: Training) -> None:
        if training.resume and self.checkpoint is None:
            raise ParameterError("There is nothing to resume from; set checkpoint to its file.")
        if training.resume and not isinstance(self.random_state, int | np.integer):
            raise ParameterError(
                f"random_state is {self.random_state!r}; give the integer that the interrupted fit "
                "had, so that it goes on with the same draws."
            )

    def _selection(self, training: Training) -> str:
        if self.selection == "gold" and training.valid is None:
            how = for_reader("fit(..., valid=(X, y))", "--valid FILE --valid-truth FILE")
            raise ParameterError(f"selection is 'gold'; give {how} to choose by.")
        if self.selection != "auto":
            return self.selection
        return "last" if training.valid is None else "gold"

    def _train(self, training: Training, data: CrowdData, selection: str) -> _Run:
        """Train once, or a second time to include the held-out tasks."""
        useful = torch.from_numpy(self._useful_rows(training))
        if selection != "crowd":
            return self._run(data, useful, training, self.epochs, selection == "gold")
        rows, valid = held_out(useful, self.valid_fraction)
        chosen = self._run(data, rows, training, self.epochs, True, valid)
        scale = chosen.model.evidence_scale(data, valid)
        run = self._again(chosen, data, useful, training)
        run.model.scale_evidence(scale)
        return run

    def _again(self, chosen: _Run, data: CrowdData, useful: Tensor, training: Training) -> _Run:
        """Train on all tasks up to the selected epoch, if ``refit`` asks for it."""
        done = not chosen.state.interrupted and chosen.state.stopped in FINISHED
        if not self.refit or not done or not chosen.state.best_epoch:
            return chosen
        again = self._run(data, useful, training, chosen.state.best_epoch, False, None, ".refit")
        if again.state.interrupted:  # the selected model is complete, this one is not
            return replace(chosen, state=replace(chosen.state, interrupted=True))
        return replace(again, history=chosen.history)

    def _useful_rows(self, training: Training) -> NDArray[np.int64]:
        useful = (training.labels.labels_per_task > 0) | (training.gold >= 0)
        return np.flatnonzero(useful | self.uses_unlabelled)

    def _run(
        self, data: CrowdData, rows: Tensor, training: Training, epochs: int, judged: bool,
        valid: Tensor | None = None, suffix: str = "",
    ) -> _Run:  # fmt: skip
        """Train a new model on some rows, or resume from a checkpoint."""
        seen, options = data.only(rows), self._options(epochs)
        network = self._make_network(
            data.features.shape, data.labels.n_classes, data.labels.n_workers
        )
        _standardize(network, data.features)
        _require_logits(network, data.features, data.labels.n_classes)
        model = self._build(network, seen).to(data.device)
        path, key = f"{self.checkpoint}{suffix}", ""
        if self.checkpoint is not None:
            key = self._fingerprint(data) + suffix
        resumed = load_checkpoint(path, key, model, options) if training.resume else None

        def score() -> float:
            if valid is not None:
                return crowd_score(model, data, rows, valid)
            known: Any = training.valid  # given whenever gold selects the epoch
            return gold_score(model, known[0], known[1], data.device)

        saved = -math.inf

        def after_epoch(state: TrainingState, optimizer: Any, best: dict[str, Tensor]) -> None:
            nonlocal saved
            over = state.epoch == epochs or state.stopped
            if self.checkpoint is not None and (over or time.monotonic() > saved + RARELY):
                save_checkpoint(path, key, model, optimizer, state, best)
                saved = time.monotonic()

        state = train(
            model, seen, rows, options,
            score=score if judged else None,
            state=resumed.state if resumed else None,
            optimizer=resumed.optimizer if resumed else None,
            best=resumed.best if resumed else None,
            after_epoch=after_epoch,
            sample=self._sampler(data, rows),
        )  # fmt: skip
        return _Run(model, seen, state, state.history)

    def _options(self, epochs: int) -> TrainerOptions:
        return TrainerOptions(
            epochs, self.batch_size, self.lr, self.crowd_lr, self.weight_decay, self.optimizer,
            self.schedule, self.clip_gradient, self.patience, self.epochs,
        )  # fmt: skip

    def _sampler(self, data: CrowdData, rows: Tensor) -> Callable[[], Tensor] | None:
        if self.balance != "sampling":
            return None
        labels = data.labels[rows.numpy()]
        rarity = _inverse_frequency(labels.class_totals)[labels.label]
        mean = np.bincount(labels.task, rarity, labels.n_tasks) / np.maximum(
            labels.labels_per_task, 1
        )
        odds = torch.from_numpy(np.where(mean > 0, mean, 1.0))
        return lambda: rows[torch.multinomial(odds, len(rows), replacement=True)]

    def _fingerprint(self, data: CrowdData) -> str:
        """Return a hash of method, parameters and data, which identifies a checkpoint."""
        parameters = {k: v for k, v in self.get_params(deep=False).items() if k != "checkpoint"}
        if callable(self.module) and not isinstance(self.module, nn.Module):
            parameters["module"] = getattr(self.module, "__qualname__", type(self.module))
        text = f"{type(self).__name__} {sorted(parameters.items())!r} {data.features.shape}"
        digest = hashlib.sha256(text.encode())
        labels, tensor = data.labels, data.features.tensor
        weight = np.zeros(0) if labels.weight is None else labels.weight
        for part in (labels.task, labels.worker, labels.label, weight, data.gold):
            digest.update(np.ascontiguousarray(part).data)
        if tensor is not None:
            digest.update(tensor.numpy().reshape(-1).data)
        return digest.hexdigest()[:16]

    # ------------------------------------------------------------------------------- afterwards

    def _network_files(self) -> dict[str, bytes]:
        """Return the weights of the network as the content of a file."""
        weights = {k: v.contiguous() for k, v in self._network.state_dict().items()}
        return {FILE: to_bytes(weights)}

    def _set_network(self, files: dict[str, bytes]) -> None:
        """Rebuild the network with the weights of a file."""
        sizes = tuple(self.input_shape_), len(self.classes_), len(self.workers_)
        own = isinstance(self.module, str)
        self._network = network_from(files, lambda: self._make_network(*sizes), trial=own)

    def _log_probas(self, X: Any) -> Floats:
        features = Features(X)
        _require_shape(features, tuple(self.input_shape_), "X has")
        return log_probas_of(self._network, features)


def as_array(tensor: Tensor) -> Floats:
    """Return a float64 array with a copy of the values of a tensor."""
    return np.array(tensor.detach().cpu().numpy(), dtype=np.float64)


def choose_device(device: str) -> torch.device:
    """Return the device of a name; "auto" is a GPU if available."""
    if is_auto(device):
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        chosen = torch.device(device)
        torch.empty(0, device=chosen)
    except (RuntimeError, AssertionError, TypeError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise ParameterError(f"device is {device!r}, which torch cannot use: {reason}.") from None
    return chosen


def _standardize(network: nn.Module, features: Features) -> None:
    layers = [layer for layer in network.modules() if isinstance(layer, Standardize)]
    if layers:
        sample = features.tensor
        if sample is None:
            sample = features[torch.arange(min(len(features), _SAMPLE))]
        for layer in layers:
            layer.fit(sample.flatten(1))


def _with_features(training: Training, data: CrowdData) -> Training:
    """Convert the validation features once, and require the shape of the training features."""
    if training.valid is None:
        return training
    X, codes = training.valid
    features = Features(X)
    _require_shape(features, data.features.shape, "The validation set has")
    return replace(training, valid=(features, codes))


def _require_shape(features: Features, expected: tuple[int, ...], who: str) -> None:
    if features.shape != expected:
        raise DataError(
            f"{who} features of shape {features.shape} per task, and those of the fit are "
            f"{expected}; give features of the same shape."
        )


def _require_logits(network: nn.Module, features: Features, n_classes: int) -> None:
    """Require that a module takes these features and returns one logit per class."""
    rows = torch.arange(min(len(features), 2))
    x = features[rows]
    network.eval()
    try:
        with torch.no_grad():
            shape = tuple(network(x).shape)
    except (RuntimeError, ValueError, IndexError) as error:
        reason = str(error).splitlines()[0]
        raise ParameterError(
            f"The module cannot take features of shape {features.shape} ({reason}); give one that "
            "fits, or a function of (shape, n_classes) that makes it."
        ) from error
    if shape != (len(rows), n_classes):
        raise ParameterError(
            f"The module's output for {len(rows)} tasks has shape {shape}; it must have one logit "
            f"per class, {(len(rows), n_classes)}."
        )


def _inverse_frequency(class_totals: Floats) -> Floats:
    """Return (K,) weights inverse to label frequency, with mean 1 over the labels."""
    used = class_totals > 0
    weight = np.zeros(len(class_totals))
    weight[used] = class_totals.sum() / (used.sum() * class_totals[used])
    return weight


def _findings(state: TrainingState) -> tuple[Finding, ...]:
    if state.interrupted:
        text = (
            f"Training was interrupted after epoch {state.epoch}; the best model so far, that of "
            f"epoch {state.best_epoch}, was kept."
        )
        return (Finding("interrupted-training", "medium", float(state.epoch), (), text, ""),)
    if state.stopped in FINISHED:
        return ()
    return (Finding("diverged-training", "high", float(state.epoch), (), state.stopped, ""),)
