"""NeuralClassifier: a network trained on the crowd's labels; methods say by which loss."""

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
from wisecrowd.core.parameters import (
    MOST_ITERATIONS,
    as_generator,
    check_choice,
    check_flag,
    check_integer,
    check_number,
    is_auto,
)
from wisecrowd.core.saved_attributes import COUNT, SIZES, Saved, SavedValue
from wisecrowd.core.spelling import spelled
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
FINISHED = ("", "patience")  # how training may end without a warning
RARELY = 1.0  # seconds between checkpoints: writing to disk may take longer than an epoch
_SAMPLE = 20_000  # items of a dataset that are enough to standardise by


@dataclass(frozen=True, eq=False)
class _Run:
    """A trained model, the data it has seen, and how it went."""

    model: CrowdModel
    seen: CrowdData
    state: TrainingState
    history: list[dict[str, float]]


@dataclass(eq=False, repr=False, kw_only=True)
class NeuralClassifier(CrowdClassifier):
    """Base of the methods that train a network; a method defines ``_build``.

    Parameters
    ----------
    module : str, torch module, or callable
        "mlp", "linear", "pooled-cnn", "deep-cnn"; a module from features to logits, copied with
        its weights; or a function of ``(shape, n_classes)`` that makes one.
    epochs, batch_size : int
        A batch is so many tasks, with all their labels.
    lr, crowd_lr : float
        Rates of learning of the network, and of what belongs to the workers.
    weight_decay : float
        Of the network alone.
    optimizer : {"adam", "adamw", "sgd"}
    schedule : {"constant", "cosine", "one-cycle"}
    clip_gradient : float, optional
        The largest norm that a gradient may have.
    balance : {"none", "weights", "sampling"}
        For rare classes: labels weigh, or tasks are drawn, inversely to how common their label is.
    selection : {"auto", "last", "crowd", "gold"}
        Which epoch to keep: the last; the one under which the labels of held-out tasks are most
        likely; the one that is best on ``fit(..., valid=(X, y))``, which is what "auto" does where
        it is given.
    valid_fraction : float
        The share of tasks that "crowd" holds out.
    patience : int, optional
        Stop after so many epochs without a better one.
    refit : bool
        After "crowd" has chosen an epoch, train again on all tasks up to it.
    checkpoint : path, optional
        A file that is written as training goes on, to resume from; ``refit`` writes one more.
    device : str
        "auto" takes a GPU if there is one.
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

    # ------------------------------------------------------------------------- what a method says

    def _build(self, network: nn.Module, data: CrowdData) -> CrowdModel:
        """Return the model to train around a fresh network."""
        raise TypeError(f"{type(self).__name__} must define _build.")

    def _make_network(self, shape: tuple[int, ...], n_classes: int, n_workers: int) -> nn.Module:
        """Return the network that predicts, from features to logits."""
        return make_backbone(self.module, shape, n_classes)

    def _learned(self, model: CrowdModel, data: CrowdData) -> dict[str, Any]:
        """Return what the trained model knows: fields of ``Learned``; others go to ``extra``."""
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
            warnings=(*_warnings(state), *result.pop("warnings", ())),
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
            how = spelled("fit(..., valid=(X, y))", "--valid FILE --valid-truth FILE")
            raise ParameterError(f"selection is 'gold'; give {how} to choose by.")
        if self.selection != "auto":
            return self.selection
        return "last" if training.valid is None else "gold"

    def _train(self, training: Training, data: CrowdData, selection: str) -> _Run:
        """Train once or, to use the held-out tasks as well, twice."""
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
        """Train on all tasks for as many epochs as were chosen, if there is reason to."""
        done = not chosen.state.interrupted and chosen.state.stopped in FINISHED
        if not self.refit or not done or not chosen.state.best_epoch:
            return chosen
        again = self._run(data, useful, training, chosen.state.best_epoch, False, None, ".refit")
        if again.state.interrupted:  # what was chosen is whole, and this is not
            return replace(chosen, state=replace(chosen.state, interrupted=True))
        return replace(again, history=chosen.history)

    def _useful_rows(self, training: Training) -> NDArray[np.int64]:
        useful = (training.labels.labels_per_task > 0) | (training.gold >= 0)
        return np.flatnonzero(useful | self.uses_unlabelled)

    def _run(
        self, data: CrowdData, rows: Tensor, training: Training, epochs: int, judged: bool,
        valid: Tensor | None = None, suffix: str = "",
    ) -> _Run:  # fmt: skip
        """Train a fresh model on some rows, or go on where a checkpoint stands."""
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
            known: Any = training.valid  # without it nothing is judged by gold
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
        """Say which fit a checkpoint belongs to: method, parameters and data."""
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
        """Return the network's weights as a file's content."""
        weights = {k: v.contiguous() for k, v in self._network.state_dict().items()}
        return {FILE: to_bytes(weights)}

    def _set_network(self, files: dict[str, bytes]) -> None:
        """Make the network again and give it the weights of a file."""
        sizes = tuple(self.input_shape_), len(self.classes_), len(self.workers_)
        own = isinstance(self.module, str)
        self._network = network_from(files, lambda: self._make_network(*sizes), trial=own)

    def _log_probas(self, X: Any) -> Floats:
        features = Features(X)
        _require_shape(features, tuple(self.input_shape_), "X has")
        return log_probas_of(self._network, features)


def as_array(tensor: Tensor) -> Floats:
    """Return a tensor's values as a float64 array of its own."""
    return np.array(tensor.detach().cpu().numpy(), dtype=np.float64)


def choose_device(device: str) -> torch.device:
    """Return the device of a name; "auto" takes a GPU if there is one."""
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
    """Read the validation features once, and see that they are like those of the fit."""
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
    """See that a module takes these features and gives one logit per class."""
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
    """Return (K,) weights inverse to how common a label is, one on average over the labels."""
    used = class_totals > 0
    weight = np.zeros(len(class_totals))
    weight[used] = class_totals.sum() / (used.sum() * class_totals[used])
    return weight


def _warnings(state: TrainingState) -> tuple[str, ...]:
    if state.interrupted:
        return (
            f"Training was interrupted after epoch {state.epoch}; the best model so far, that of "
            f"epoch {state.best_epoch}, was kept.",
        )
    return () if state.stopped in FINISHED else (state.stopped,)
